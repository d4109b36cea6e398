"""What fetching writes to the log, at which level: data that come and go, and faults once in a while (S2-53)."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kclient import AsyncConsumer, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.errors import OffsetOutOfRangeError, TopicAuthorizationError
from kclient.log import MAX_REMEMBERED, THROTTLE_SECONDS, TRACE, ThrottledLogger
from tests.consumer.mini_broker import FAST
from tests.waiting import until

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)

Play = Callable[[EmbeddedCluster, AsyncConsumer], Awaitable[None]]
Lines = Callable[[int], list[str]]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    """The lines of one level, of fetching and positions."""
    for name in ("kclient.fetch", "kclient.positions"):
        caplog.set_level(TRACE, name)
    return lambda level: [
        record.getMessage()
        for record in caplog.records
        if record.levelno == level and record.name in ("kclient.fetch", "kclient.positions")
    ]


def fetch(play: Play, **settings: Any) -> None:
    async def main() -> None:
        async with EmbeddedCluster(brokers=1, topics={"a": 2}) as kafka:
            kafka.produce("a", ["0", "1", "2", "3"], partition=0)
            keys = {"bootstrap_servers": kafka.bootstrap_servers, "auto_offset_reset": "earliest"}
            async with AsyncConsumer(**{**FAST, **keys, **settings}) as consumer:
                await play(kafka, consumer)

    asyncio.run(asyncio.wait_for(main(), 30))


def one_of(lines: list[str], pattern: str) -> str:
    found = [line for line in lines if re.search(pattern, line)]
    assert len(found) == 1, lines
    return found[0]


@pytest.mark.spec("S2-53")
def test_trace_reports_data_that_come_and_records_that_go_with_both_positions(lines: Lines) -> None:
    async def play(kafka: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        await consumer.assign([A0])
        await consumer.poll(5, max_records=3)
        await consumer.poll(5)

    fetch(play)
    assert "Added a-0 at 0 to the Fetch to node 1" in lines(TRACE)
    assert "Added a-0 at 4 to the Fetch to node 1" in lines(TRACE)
    one_of(lines(TRACE), r"^Fetch of a-0 at 0 brought \d+ bytes$")
    one_of(lines(TRACE), r"^a-0: handed out 3 records, position 0 → 3$")
    one_of(lines(TRACE), r"^a-0: handed out 1 records, position 3 → 4$")


@pytest.mark.spec("S2-53")
def test_debug_reports_data_that_is_not_wanted_any_more(lines: Lines) -> None:
    async def play(kafka: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        kafka.delay("Fetch", ms=100, times=1)
        await consumer.assign([A0])
        await consumer.poll(0)
        await until(lambda: any(one.api == "Fetch" for one in kafka.requests))
        await consumer.assign([A1])
        await consumer.poll(0.3)

    fetch(play)
    one_of(lines(logging.DEBUG), r"^Dropping a fetch of a-0 at 0: moved or revoked meanwhile$")


@pytest.mark.spec("S2-53")
def test_debug_reports_a_request_that_failed(lines: Lines) -> None:
    async def play(kafka: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        kafka.cut("Fetch", times=1)
        await consumer.assign([A0])
        assert len(await consumer.poll(5)) == 4

    fetch(play)
    one_of(lines(logging.DEBUG), r"^Fetch from node 1 failed: ")


@pytest.mark.spec("S2-53", "U-01")
def test_info_reports_an_offset_out_of_range_and_where_it_continues(lines: Lines) -> None:
    async def play(kafka: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        await consumer.assign([A0])
        consumer.seek(A0, 77)
        assert len(await consumer.poll(5)) == 4

    fetch(play)
    one_of(lines(logging.INFO), r"^Offset 77 of a-0 is out of range$")
    one_of(lines(logging.INFO), r"^Beginning a-0 at 0$")


@pytest.mark.spec("S2-53")
def test_info_reports_an_offset_out_of_range_without_a_reset(lines: Lines) -> None:
    async def play(kafka: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        await consumer.assign([A0])
        consumer.seek(A0, 77)
        with pytest.raises(OffsetOutOfRangeError):
            await consumer.poll(5)

    fetch(play, auto_offset_reset="none")
    one_of(lines(logging.INFO), r"^Offset 77 of a-0 is out of range$")


@pytest.mark.spec("S2-53", "S2-33", "U-28")
def test_a_topic_that_may_not_be_read_is_a_warning_and_not_one_for_every_response(lines: Lines) -> None:
    async def play(kafka: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        kafka.deny("User:ANONYMOUS", "READ", "Topic:a")
        await consumer.assign([A0])
        for _ in range(5):
            with pytest.raises(TopicAuthorizationError):
                await consumer.poll(5)

    fetch(play)
    assert one_of(lines(logging.WARNING), "TOPIC_AUTHORIZATION_FAILED").startswith("Fetch of a-0 at 0")


@pytest.mark.spec("S2-53", "S2-34", "U-28")
def test_an_error_that_says_nothing_is_a_warning_and_not_one_for_every_response(lines: Lines) -> None:
    def edit(request: Any, response: Any) -> Any:
        for topic in response.responses:
            for partition in topic.partitions:
                partition.error_code, partition.records = -1, b""
        return response

    async def play(kafka: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        kafka.on("Fetch", edit, times=5)
        await consumer.assign([A0])
        assert len(await consumer.poll(5)) == 4

    fetch(play)
    assert one_of(lines(logging.WARNING), "UNKNOWN_SERVER_ERROR").startswith("Fetch of a-0 at 0")


@pytest.mark.spec("U-28")
def test_a_fault_that_lasts_is_reported_again_with_how_often_it_came(
    caplog: pytest.LogCaptureFixture,
) -> None:
    throttled = ThrottledLogger(logging.getLogger("kclient.fetch"))
    for tenth in range(25):
        throttled.warning("one", tenth * THROTTLE_SECONDS / 10, "it is %s", "broken")
    throttled.warning("another", 0.0, "so is this")
    for number in range(2 * MAX_REMEMBERED):
        throttled.warning(number, 100.0 + number, "many")
    assert caplog.messages[:4] == [
        "it is broken",
        "it is broken (9 times more since the last such line)",
        "it is broken (9 times more since the last such line)",
        "so is this",
    ]
