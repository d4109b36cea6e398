"""The log lines of the position updater: level, text and rate."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from kclient.errors import TopicAuthorizationError
from kclient.types import TopicPartition
from tests.positions.fake_cluster import FakeCluster, run, settle
from tests.positions.updater_support import LIST, P0, led_by_1, lists, updater


def lines(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno == level and record.name == "kclient.positions"
    ]


@pytest.fixture(autouse=True)
def everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)


@pytest.mark.spec("S0-63", "S0-45")
def test_a_leader_that_is_not_known_is_a_line_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        many = [TopicPartition("orders", n) for n in range(50)]
        async with updater(FakeCluster({}), *many):
            await settle()

    run(scenario())
    first = lines(caplog, logging.DEBUG)[0]
    assert first.startswith("ListOffsets waits for a leader of orders-0, orders-1,")
    assert first.endswith("and 45 more")


@pytest.mark.parametrize(("code", "name"), [(6, "NOT_LEADER_OR_FOLLOWER"), (78, "OFFSET_NOT_AVAILABLE")])
@pytest.mark.spec("S0-63", "B.15.9", "U-28")
def test_a_code_that_passes_is_a_line_a_response_at_debug(
    caplog: pytest.LogCaptureFixture, code: int, name: str
) -> None:
    async def scenario() -> None:
        cluster = led_by_1(50)
        cluster.answer(LIST, lists(-1, code))
        async with updater(cluster, *(TopicPartition("orders", n) for n in range(50))):
            await asyncio.sleep(0.01)
            assert len(cluster.of(LIST)) == 1

    run(scenario())
    (line,) = [line for line in lines(caplog, logging.DEBUG) if name in line]
    assert line.startswith(f"ListOffsets: {name} ({code}) for orders-0,")
    assert lines(caplog, logging.WARNING) == []


@pytest.mark.parametrize(
    ("code", "name"), [(3, "UNKNOWN_TOPIC_OR_PARTITION"), (12, "OFFSET_METADATA_TOO_LARGE")]
)
@pytest.mark.spec("S0-63", "B.15.9", "U-28")
def test_a_code_that_may_last_is_a_warning_once_in_ten_seconds(
    caplog: pytest.LogCaptureFixture, code: int, name: str
) -> None:
    async def scenario() -> int:
        cluster = led_by_1()
        cluster.answer(LIST, lists(-1, code))
        async with updater(cluster, P0):
            await asyncio.sleep(15)
            return len(cluster.of(LIST))

    asked = run(scenario())
    assert asked > 10
    first, second = lines(caplog, logging.WARNING)
    assert name in first
    assert "times more since the last such line" in second


@pytest.mark.spec("S0-63", "S0-49")
def test_an_error_that_is_dropped_because_another_one_waits_is_a_line_at_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        cluster = FakeCluster({("orders", n): (1 + n, 5) for n in range(2)})

        def refused(node: int, request: Any) -> Any:
            return TopicAuthorizationError(f"broker {node} says no", topics=("orders",))

        cluster.answer(LIST, refused)
        async with updater(cluster, P0, TopicPartition("orders", 1)) as (_, one):
            error = one.take_error()
            assert error is not None
            assert "broker 1 says no" in error.text
            assert one.take_error() is None

    run(scenario())
    (line,) = lines(caplog, logging.ERROR)
    assert "broker 2 says no" in line
