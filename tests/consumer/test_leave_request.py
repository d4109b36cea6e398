"""LeaveGroup: sent however short of time the member is, and whatever interrupts its last call."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

import attrs
import pytest

from tests.scenarios.simulated import Place, has_left, simulate

SESSION_MS: Final = 45_000
SOON: Final = 5.0  # much sooner than the session ends
GROUP: Final[dict[str, Any]] = {
    "group_id": "g",
    "session_timeout_ms": SESSION_MS,
    "heartbeat_interval_ms": 300,
    "partition_assignment_strategy": "range",
}
CLUSTER: Final[dict[str, Any]] = {"topics": {"t": 2}, "config": {"group.initial.rebalance.delay.ms": 0}}
PROTOCOLS: Final = ("classic", "consumer")


async def cancelled_after(turns: int, call: asyncio.Future[Any]) -> None:
    """Cancel a call after so many turns of the loop."""
    for _ in range(turns):
        await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait({call})


async def seen(place: Place, api: str, times: int = 1) -> None:
    """Wait until the cluster was asked this so often."""
    async with asyncio.timeout(30):
        while len(place.asked(api)) < times:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


@pytest.mark.spec("B.15.6", "B.18")
@pytest.mark.parametrize("cancelled_at", [None, 3, 5, 9, 15])
def test_a_group_does_not_wait_for_a_member_that_was_joining_and_closed_without_time(
    cancelled_at: int | None,
) -> None:
    async def scenario(place: Place) -> None:
        first = place.consumer("t", **GROUP)
        await place.poll_until(first, first.assignment)
        generation = first.group_metadata().generation_id
        joins = len(place.asked("JoinGroup"))
        second = place.consumer("t", **GROUP)
        poll = asyncio.ensure_future(place.on_member(second.poll(60)))
        await seen(
            place, "JoinGroup", joins + 2
        )  # the one without a member id, and the one that is not answered
        if cancelled_at is None:
            await place.on_member(second.close(0))
        else:
            closing = asyncio.ensure_future(place.on_member(second.close(30)))
            await cancelled_after(cancelled_at, closing)
        await asyncio.gather(poll, return_exceptions=True)
        began = place.now
        await place.poll_until(first, lambda: first.group_metadata().generation_id > generation)
        await place.poll_until(first, lambda: len(first.assignment()) == 2)
        assert place.now - began < SOON

    simulate(scenario, **CLUSTER)


@pytest.mark.spec("I-30", "B.15.6", "B.18")
@pytest.mark.parametrize("turns", [3, 5, 9, 15])
def test_a_member_that_cancels_unsubscribing_while_joining_and_subscribes_again_does_not_wait_for_itself(
    turns: int,
) -> None:
    async def scenario(place: Place) -> None:
        place.cluster.delay("SyncGroup", 1_000, times=1)
        consumer = place.consumer("t", **GROUP)
        poll = asyncio.ensure_future(place.on_member(consumer.poll(60)))
        await seen(place, "SyncGroup")
        leaving = asyncio.ensure_future(place.on_member(consumer.unsubscribe()))
        await cancelled_after(turns, leaving)
        await cancelled_after(0, poll)
        await place.on_member(consumer.subscribe(["t"]))
        began = place.now
        await place.poll_until(consumer, consumer.assignment)
        assert place.now - began < SOON

    simulate(scenario, **CLUSTER)


@pytest.mark.spec("I-30", "B.17.5", "B.18")
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("turns", [3, 4, 8])
def test_a_member_that_joins_again_joins_after_leave_group(protocol: str, turns: int) -> None:
    """Otherwise LeaveGroup would remove the new member: the consumer protocol keeps the member id."""

    async def scenario(place: Place) -> None:
        consumer = place.consumer("t", group_id="g", group_protocol=protocol)
        await place.poll_until(consumer, consumer.assignment)
        began = place.now
        leaving = asyncio.ensure_future(place.on_member(consumer.unsubscribe()))
        await cancelled_after(turns, leaving)
        await place.on_member(consumer.subscribe(["t"]))
        await place.poll_until(consumer, consumer.assignment)
        if protocol == "classic":
            ((left,), joined) = place.asked("LeaveGroup", began), place.asked("JoinGroup", began)
            assert left.at <= joined[0].at
        else:
            epochs = [one.request.member_epoch for one in place.asked("ConsumerGroupHeartbeat", began)]
            assert epochs.index(-1) < epochs.index(0)
        assert place.now - began < SOON

    simulate(scenario, **CLUSTER)


@attrs.define
class Closes:
    """An interceptor and a deserializer of Java's shape."""

    closed: int = 0

    def deserialize(self, topic: str, headers: Any, data: bytes) -> bytes:
        return data

    def on_consume(self, records: Any) -> None:
        return None

    def close(self) -> None:
        self.closed += 1


@pytest.mark.spec("B.18", "I-30")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_close_cut_short_by_a_slow_commit_leaves_the_group_and_closes_what_the_user_gave(
    protocol: str,
) -> None:
    async def scenario(place: Place) -> None:
        place.cluster.produce("t", ["v0", "v1"], partition=0)
        interceptor, deserializer = Closes(), Closes()
        consumer = place.consumer(
            "t",
            group_id="g",
            enable_auto_commit=True,
            group_protocol=protocol,
            interceptors=[interceptor],
            value_deserializer=deserializer,
        )
        await place.read(consumer, 2)
        place.cluster.fail("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", times=None)
        began = place.now
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await place.on_member(consumer.close(30))
        assert place.now - began < 3.1
        assert consumer.closed
        assert has_left(place)
        assert (interceptor.closed, deserializer.closed) == (1, 1)

    simulate(scenario, **CLUSTER)


@pytest.mark.spec("B.18", "U-28")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_leave_group_request_that_no_call_waits_for_is_not_an_error_of_the_broker(
    protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(place: Place) -> None:
        consumer = place.consumer("t", group_id="g", group_protocol=protocol)
        await place.poll_until(consumer, consumer.assignment)
        await place.on_member(consumer.close(0))
        await asyncio.sleep(1)
        assert has_left(place)

    with caplog.at_level(logging.INFO, "kclient.connection"):
        simulate(scenario, **CLUSTER)
    assert [
        record
        for record in caplog.records
        if record.levelno >= logging.WARNING and record.name == "kclient.connection"
    ] == []
