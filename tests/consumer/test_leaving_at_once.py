"""Calls that leave the group, and what becomes of what is chosen meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import attrs
import pytest

from kclient import AsyncConsumer, RebalanceListener
from tests.scenarios.simulated import Place, simulate
from tests.scenarios.support import T0

CLUSTER: Final[dict[str, Any]] = {"topics": {"t": 1}, "config": {"group.initial.rebalance.delay.ms": 0}}
SLOW: Final = 1.0
protocols = pytest.mark.parametrize("protocol", ["classic", "consumer"])

Partitions = tuple[Any, ...]
Act = Callable[[], Awaitable[object]]


@attrs.define
class Journal(RebalanceListener):
    """Writes down what it was told, takes `seconds` for a method, or does something in it; notices two at a time."""

    seconds: dict[str, float] = attrs.field(factory=dict)
    acts: dict[str, Act] = attrs.field(factory=dict)
    told: list[str] = attrs.field(factory=list)
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
        self.told.append(method)
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


def beside(place: Place, call: Any) -> asyncio.Task[Any]:
    """A call in a task of its own, on the client's host."""
    return asyncio.ensure_future(place.on_member(call))


@pytest.mark.spec("I-12", "I-30")
@protocols
def test_what_was_lost_is_told_before_what_another_membership_brings(protocol: str) -> None:
    """The poll is still inside of on_partitions_assigned when the next membership has something to tell."""

    async def scenario(place: Place) -> None:
        journal = Journal({"assigned": SLOW})
        consumer = place.consumer(group_id="g", group_protocol=protocol)
        await place.on_member(consumer.subscribe(["t"], listener=journal))
        poll = beside(place, consumer.poll(3 * SLOW))
        await journal.entered.wait()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(SLOW / 10):
                await place.on_member(consumer.unsubscribe())
        await place.on_member(consumer.subscribe(["t"], listener=journal))
        await poll
        assert journal.told == ["assigned", "lost", "assigned"]
        assert consumer.assignment() == (T0,)

    simulate(scenario, **CLUSTER)


@pytest.mark.spec("I-12", "I-30")
@protocols
@pytest.mark.parametrize("way", ["unsubscribe", "close"])
def test_what_was_lost_is_told_by_the_next_call_that_leaves_and_not_beside_another_method(
    protocol: str, way: str
) -> None:
    async def scenario(place: Place) -> None:
        journal = Journal({"assigned": SLOW})
        consumer = place.consumer(group_id="g", group_protocol=protocol)
        await place.on_member(consumer.subscribe(["t"], listener=journal))
        poll = beside(place, consumer.poll(2 * SLOW))
        await journal.entered.wait()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(SLOW / 10):
                await place.on_member(consumer.unsubscribe())
        await place.on_member(getattr(consumer, way)())
        await asyncio.gather(poll, return_exceptions=True)
        assert journal.told == ["assigned", "lost"]

    simulate(scenario, **CLUSTER)


@pytest.mark.spec("B.18", "S0-13")
@protocols
@pytest.mark.parametrize("method", ["assigned", "revoked"])
def test_what_the_listener_assigns_by_hand_stays(protocol: str, method: str) -> None:
    """Also where it is the very partition that it is told of, and where another call waits to give that up."""

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
