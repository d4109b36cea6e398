"""CommitFailedError of a member that was removed: the time between its polls, and the limits that it exceeded."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from kclient import AsyncConsumer, OffsetAndMetadata
from kclient.errors import CommitFailedError
from tests.scenarios.simulated import Place, simulate
from tests.scenarios.support import T0

GROUP: dict[str, Any] = {"group_id": "g", "session_timeout_ms": 10_000, "max_poll_records": 7}
RECORDS = [f"v{number}" for number in range(10)]


async def consumed(place: Place, **settings: Any) -> AsyncConsumer:
    """A member that was given seven records."""
    consumer = place.consumer("t", **GROUP, **settings)
    place.cluster.produce("t", RECORDS, partition=0)
    assert len(await place.read(consumer, 7)) == 7
    return consumer


async def refused(place: Place, consumer: AsyncConsumer) -> CommitFailedError:
    with pytest.raises(CommitFailedError) as failed:
        await place.on_member(consumer.commit())
    assert failed.value.reason == "evicted"
    assert failed.value.uncommitted == {T0: OffsetAndMetadata(7, 0)}
    return failed.value


@pytest.mark.spec("D-01", "U-12", "B.13.5", "B.14.3")
def test_a_member_that_was_too_slow_gets_the_time_between_polls_and_both_settings() -> None:
    async def scenario(place: Place) -> None:
        consumer = await consumed(place, max_poll_interval_ms=15_000)
        await asyncio.sleep(17.0)
        error = await refused(place, consumer)
        assert len(place.asked("LeaveGroup")) == 1
        assert error.since_poll_ms == pytest.approx(17_000, abs=100)
        assert (error.max_poll_interval_ms, error.max_poll_records) == (15_000, 7)
        for text in ("15.0 s between two polls", "the last one was 17.0 s ago"):
            assert text in str(error)
        for text in ("max_poll_interval_ms is 15000", "max_poll_records 7"):
            assert text in str(error)

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("D-01", "U-12", "B.15.8")
def test_a_member_that_was_silent_is_notified_that_the_polls_were_not_the_reason() -> None:
    """The numbers say so: the last poll was within the limit."""

    async def scenario(place: Place) -> None:
        consumer = await consumed(place)
        await asyncio.sleep(4.0)
        place.cluster.expire_member("g", consumer.group_metadata().member_id)
        error = await refused(place, consumer)
        assert "UNKNOWN_MEMBER_ID (25)" in str(error)
        assert error.since_poll_ms == pytest.approx(4_000, abs=100)
        assert (error.max_poll_interval_ms, error.max_poll_records) == (300_000, 7)

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("B.14.3")
def test_a_consumer_that_never_was_a_member_is_notified_of_no_polls() -> None:
    async def scenario(place: Place) -> None:
        consumer = place.consumer("t", **GROUP)
        with pytest.raises(CommitFailedError) as failed:
            await place.on_member(consumer.commit({T0: OffsetAndMetadata(1)}))
        assert (failed.value.reason, failed.value.since_poll_ms) == ("not_joined", None)
        assert "{" not in str(failed.value)

    simulate(scenario, topics={"t": 1})


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    logged = [
        one
        for one in caplog.records
        if one.levelno == logging.WARNING and "since the last poll" in one.message
    ]
    return [one.getMessage() for one in logged]


@pytest.mark.spec("U-12", "S1-18")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_handler_at_four_fifths_of_the_limit_is_warned_of_once(
    protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(place: Place) -> None:
        place.cluster.produce("t", RECORDS, partition=0)
        settings = {"group_id": "g", "max_poll_records": 7, "max_poll_interval_ms": 15_000}
        consumer = place.consumer("t", **settings, group_protocol=protocol)
        for _ in range(3):
            await place.on_member(anext(consumer))
        polled = place.now
        await asyncio.sleep(11.9 - (place.now - polled))
        assert warned(caplog) == []
        await asyncio.sleep(2.6)
        (text,) = warned(caplog)
        assert "group g: 12.0 s since the last poll(); after 15 s" in text
        assert "In hand: 5 records of t-0." in text
        assert "max_poll_records (7), or raise max_poll_interval_ms (15000)" in text
        await place.on_member(consumer.poll(0))
        await asyncio.sleep(11.0)
        assert len(warned(caplog)) == 1
        await asyncio.sleep(2.0)
        assert len(warned(caplog)) == 2
        assert consumer.assignment() == (T0,)

    simulate(scenario, topics={"t": 1}, config={"group.initial.rebalance.delay.ms": 0})
