"""A member that was put out of its group learns from its commit how it polled, and what was allowed."""

from __future__ import annotations

import asyncio
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
def test_who_was_too_slow_is_told_the_time_between_polls_and_both_settings() -> None:
    async def scenario(place: Place) -> None:
        consumer = await consumed(place, max_poll_interval_ms=15_000)
        await asyncio.sleep(17.0)
        error = await refused(place, consumer)
        assert len(place.asked("LeaveGroup")) == 1
        assert error.since_poll_ms == pytest.approx(17_000, abs=100)
        assert (error.max_poll_interval_ms, error.max_poll_records) == (15_000, 7)
        for told in ("15.0 s between two polls", "the last one was 17.0 s ago"):
            assert told in str(error)
        for told in ("max_poll_interval_ms is 15000", "max_poll_records 7"):
            assert told in str(error)

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("D-01", "U-12", "B.15.8")
def test_who_was_silent_is_told_that_the_polls_were_not_the_reason() -> None:
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
def test_who_never_was_a_member_is_told_of_no_polls() -> None:
    async def scenario(place: Place) -> None:
        consumer = place.consumer("t", **GROUP)
        with pytest.raises(CommitFailedError) as failed:
            await place.on_member(consumer.commit({T0: OffsetAndMetadata(1)}))
        assert (failed.value.reason, failed.value.since_poll_ms) == ("not_joined", None)
        assert "{" not in str(failed.value)

    simulate(scenario, topics={"t": 1})
