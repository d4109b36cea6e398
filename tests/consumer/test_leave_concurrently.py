"""Several calls that leave the group at once: the listener is called once, in order, and as a member."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import attrs
import pytest

from kclient import AsyncConsumer, RebalanceListener
from tests.scenarios.simulated import Place, has_left, simulate
from tests.scenarios.support import T0

CLUSTER: Final[dict[str, Any]] = {"topics": {"t": 1}, "config": {"group.initial.rebalance.delay.ms": 0}}
SLOW: Final = 1.0
protocols = pytest.mark.parametrize("protocol", ["classic", "consumer"])

Partitions = tuple[Any, ...]
Act = Callable[[], Awaitable[object]]


@attrs.define
class Journal(RebalanceListener):
    """Records its calls, takes `seconds` for a method, or acts in it; detects two calls at the same time."""

    seconds: dict[str, float] = attrs.field(factory=dict)
    acts: dict[str, Act] = attrs.field(factory=dict)
    calls: list[str] = attrs.field(factory=list)
    inside: str | None = None
    entered: asyncio.Event = attrs.field(factory=asyncio.Event)

    async def on_partitions_assigned(self, partitions: Partitions) -> None:
        await self._hear("assigned")

    async def on_partitions_revoked(self, partitions: Partitions) -> None:
        await self._hear("revoked")

    async def on_partitions_lost(self, partitions: Partitions) -> None:
        await self._hear("lost")

    async def _hear(self, method: str) -> None:
        assert self.inside is None, f"{method} while {self.inside} runs"
        self.inside = method
        self.calls.append(method)
        if method in self.seconds or method in self.acts:
            self.entered.set()
        try:
            await asyncio.sleep(self.seconds.pop(method, 0))
            if method in self.acts:
                await self.acts.pop(method)()
        finally:
            self.inside = None


async def member(place: Place, protocol: str, journal: Journal, **settings: Any) -> AsyncConsumer:
    """A consumer that owns the partition and has read its record."""
    place.cluster.produce("t", ["v"])
    consumer = place.consumer(group_id="g", group_protocol=protocol, **settings)
    await place.on_member(consumer.subscribe(["t"], listener=journal))
    await place.read(consumer, 1)
    return consumer


async def inside_assigned(
    place: Place, protocol: str, journal: Journal, poll_seconds: float
) -> tuple[AsyncConsumer, asyncio.Task[Any]]:
    """A consumer whose poll is inside of on_partitions_assigned, and that poll."""
    consumer = place.consumer(group_id="g", group_protocol=protocol)
    await place.on_member(consumer.subscribe(["t"], listener=journal))
    poll = beside(place, consumer.poll(poll_seconds))
    await journal.entered.wait()
    return consumer, poll


def beside(place: Place, call: Any) -> asyncio.Task[Any]:
    """A call in a task of its own, on the client's host."""
    return asyncio.ensure_future(place.on_member(call))


@pytest.mark.spec("I-12", "B.18")
@protocols
def test_the_listener_is_notified_once_by_two_that_unsubscribe_together(protocol: str) -> None:
    async def scenario(place: Place) -> None:
        journal = Journal()
        consumer = await member(place, protocol, journal)
        await asyncio.gather(
            beside(place, consumer.unsubscribe()),
            beside(place, consumer.unsubscribe()),
        )
        assert journal.calls == ["assigned", "revoked"]
        assert (consumer.subscription(), consumer.assignment()) == ((), ())
        assert has_left(place)

    simulate(scenario, **CLUSTER)


@pytest.mark.spec("I-12", "I-30", "B.18")
@protocols
@pytest.mark.parametrize("turns", [2, 3, 4])
def test_the_listener_is_notified_by_the_call_that_comes_while_another_is_cancelled(
    protocol: str, turns: int
) -> None:
    async def scenario(place: Place) -> None:
        journal = Journal()
        consumer = await member(place, protocol, journal)

        async def cut_and_again() -> None:
            first = asyncio.ensure_future(consumer.unsubscribe())
            for _ in range(turns):
                await asyncio.sleep(0)
            first.cancel()
            await consumer.unsubscribe()
            await asyncio.wait({first})

        await place.on_member(cut_and_again())
        assert len(journal.calls) == 2
        assert journal.calls[1] in ("revoked", "lost")

    simulate(scenario, **CLUSTER)


@pytest.mark.spec("I-12", "I-30")
@protocols
def test_a_call_that_waits_for_another_to_leave_and_is_cancelled_takes_nothing_from_the_listener(
    protocol: str,
) -> None:
    """The first waits for a slow on_partitions_assigned, the second for the first."""

    async def scenario(place: Place) -> None:
        journal = Journal({"assigned": SLOW})
        consumer, poll = await inside_assigned(place, protocol, journal, 2 * SLOW)
        first = beside(place, consumer.unsubscribe())
        await asyncio.sleep(SLOW / 10)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(SLOW / 10):
                await place.on_member(consumer.unsubscribe())
        await asyncio.gather(first, poll)
        assert len(journal.calls) == 2
        assert journal.calls[1] in ("revoked", "lost")

    simulate(scenario, **CLUSTER)


@pytest.mark.spec("I-25", "I-12")
@protocols
@pytest.mark.parametrize("way", ["unsubscribe", "close"])
def test_a_listener_that_leaves_does_not_wait_for_who_waits_for_it(protocol: str, way: str) -> None:
    async def scenario(place: Place) -> None:
        journal = Journal({"assigned": SLOW})
        consumer = place.consumer(group_id="g", group_protocol=protocol)
        journal.acts["assigned"] = getattr(consumer, way)
        await place.on_member(consumer.subscribe(["t"], listener=journal))
        poll = beside(place, consumer.poll(2 * SLOW))
        await journal.entered.wait()
        began = place.now
        await place.on_member(consumer.unsubscribe())
        assert place.now - began < 2 * SLOW
        await asyncio.gather(poll, return_exceptions=True)
        assert len(journal.calls) == 2
        assert journal.calls[1] in ("revoked", "lost")
        assert has_left(place)

    simulate(scenario, **CLUSTER)


@pytest.mark.spec("B.18", "I-12")
@protocols
@pytest.mark.parametrize("last", ["subscribes", "unsubscribes"])
def test_what_is_chosen_last_counts_while_others_leave(protocol: str, last: str) -> None:
    async def scenario(place: Place) -> None:
        journal = Journal({"revoked": SLOW})
        consumer = await member(place, protocol, journal)

        async def leave_and_come_back() -> None:
            await consumer.unsubscribe()
            await consumer.subscribe(["t"], listener=journal)

        first = beside(place, leave_and_come_back() if last == "subscribes" else consumer.unsubscribe())
        await journal.entered.wait()
        if last == "unsubscribes":
            await place.on_member(consumer.subscribe(["t"], listener=journal))
        joins = len(place.asked("JoinGroup"))
        await place.on_member(consumer.unsubscribe())
        await first
        if last == "subscribes":
            await place.poll_until(consumer, consumer.assignment, 5.0)
            assert journal.calls == ["assigned", "revoked", "assigned"]
        else:
            await asyncio.sleep(SLOW)
            assert (consumer.subscription(), journal.calls) == ((), ["assigned", "revoked"])
            assert has_left(place)
            assert len(place.asked("JoinGroup")) <= joins + 1

    simulate(scenario, **CLUSTER)


# --- close


@pytest.mark.spec("B.13.8", "B.18", "S3-34")
@protocols
def test_close_waits_for_the_listener_that_another_call_notifies(protocol: str) -> None:
    """So its commit is that of a member."""

    async def scenario(place: Place) -> None:
        journal = Journal({"revoked": SLOW})
        consumer = await member(place, protocol, journal)
        journal.acts["revoked"] = consumer.commit
        leaving = beside(place, consumer.unsubscribe())
        await journal.entered.wait()
        began = place.now
        await place.on_member(consumer.close(10 * SLOW))
        assert SLOW / 2 < place.now - began < 2 * SLOW
        await leaving
        assert place.cluster.committed("g") == {T0: 1}
        goodbyes = [
            one for one in place.asked("ConsumerGroupHeartbeat") if one.request.member_epoch < 0
        ] or place.asked("LeaveGroup")
        assert place.asked("OffsetCommit")[0].at <= goodbyes[0].at
        assert journal.calls == ["assigned", "revoked"]

    simulate(scenario, **CLUSTER)


@pytest.mark.spec("I-24", "B.18")
@protocols
def test_close_does_not_wait_for_ever_for_the_listener_that_another_call_notifies(protocol: str) -> None:
    async def scenario(place: Place) -> None:
        journal = Journal({"revoked": 100 * SLOW})
        consumer = await member(place, protocol, journal)
        leaving = beside(place, consumer.unsubscribe())
        await journal.entered.wait()
        began = place.now
        await place.on_member(consumer.close(5 * SLOW))
        assert place.now - began <= 5 * SLOW
        assert has_left(place)
        await leaving
        assert journal.calls == ["assigned", "revoked"]

    simulate(scenario, **CLUSTER)


# --- what comes after


@pytest.mark.spec("I-12", "I-30")
@protocols
def test_what_was_lost_is_reported_before_what_another_membership_brings(protocol: str) -> None:
    """The poll is still inside of on_partitions_assigned when the next membership has a call for the listener."""

    async def scenario(place: Place) -> None:
        journal = Journal({"assigned": SLOW})
        consumer, poll = await inside_assigned(place, protocol, journal, 3 * SLOW)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(SLOW / 10):
                await place.on_member(consumer.unsubscribe())
        await place.on_member(consumer.subscribe(["t"], listener=journal))
        await poll
        assert journal.calls == ["assigned", "lost", "assigned"]
        assert consumer.assignment() == (T0,)

    simulate(scenario, **CLUSTER)


@pytest.mark.spec("I-12", "I-30")
@protocols
@pytest.mark.parametrize("way", ["unsubscribe", "close"])
def test_what_was_lost_is_reported_by_the_next_call_that_leaves_and_not_beside_another_method(
    protocol: str, way: str
) -> None:
    async def scenario(place: Place) -> None:
        journal = Journal({"assigned": SLOW})
        consumer, poll = await inside_assigned(place, protocol, journal, 2 * SLOW)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(SLOW / 10):
                await place.on_member(consumer.unsubscribe())
        await place.on_member(getattr(consumer, way)())
        await asyncio.gather(poll, return_exceptions=True)
        assert journal.calls == ["assigned", "lost"]

    simulate(scenario, **CLUSTER)


@pytest.mark.spec("B.18", "S0-13")
@protocols
@pytest.mark.parametrize("method", ["assigned", "revoked"])
def test_what_the_listener_assigns_manually_stays(protocol: str, method: str) -> None:
    """Also if it is the partition that the listener is called for, and another call waits to revoke that one."""

    async def scenario(place: Place) -> None:
        async def by_hand() -> None:
            await consumer.unsubscribe()
            await consumer.assign([T0])
            consumer.seek_to_beginning()

        place.cluster.produce("t", ["v"])
        journal = Journal({method: SLOW}, {method: by_hand})
        consumer = place.consumer(group_id="g", group_protocol=protocol)
        await place.on_member(consumer.subscribe(["t"], listener=journal))
        poll = beside(place, consumer.poll(SLOW))
        if method == "assigned":
            await journal.entered.wait()
        else:
            await poll
        await place.on_member(consumer.unsubscribe())
        await poll
        assert consumer.assignment() == (T0,)
        await place.read(consumer, 1)

    simulate(scenario, **CLUSTER)
