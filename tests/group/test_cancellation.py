"""A member whose calls are cancelled at any await of a rebalance, a commit or a close: it goes on, or is gone. I-30.

A scripted run in a group of two is repeated, each time cancelled at another of its awaits, listeners and callbacks
included. Then it runs to its end: nothing may be missing, reported twice, out of order, or left open.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

import attrs
import pytest

from kclient import AsyncConsumer, TopicPartition
from kclient.errors import CommitFailedError, KclientError, ListenerError
from kclient.types import TopicPartition as Tp
from tests.scenarios.simulated import Place, simulate
from tests.simulation.test_cancelling import Cancelling

RECORDS: Final = 40
PARTITIONS: Final = tuple(TopicPartition("t", number) for number in range(2))
NEVER: Final = 1 << 30

KINDS: Final[dict[str, dict[str, Any]]] = {
    "eager": {"partition_assignment_strategy": "range"},
    "cooperative": {"partition_assignment_strategy": "cooperative-sticky"},
    "static": {"partition_assignment_strategy": "range", "group_instance_id": "a"},
    "consumer": {"group_protocol": "consumer"},
}
# Every await of the eager member; of the others one in so many, for their calls wait at the same places mostly.
STEPS: Final = {"eager": 1, "cooperative": 3, "static": 4, "consumer": 3}


def beating(settings: dict[str, Any]) -> dict[str, Any]:
    """With quick heartbeats, where the member decides about them."""
    return settings if "group_protocol" in settings else {"heartbeat_interval_ms": 200, **settings}


@attrs.define
class Owner:
    """A slow listener: it commits what it revokes, and records calls that do not fit what it owns."""

    consumer: AsyncConsumer | None = None
    owned: set[Tp] = attrs.field(factory=set)
    wrong: list[str] = attrs.field(factory=list)

    async def on_partitions_assigned(self, partitions: tuple[Tp, ...]) -> None:
        self._check(not self.owned & set(partitions), f"assigned again: {partitions}")
        self.owned |= set(partitions)
        await asyncio.sleep(0.01)

    async def on_partitions_revoked(self, partitions: tuple[Tp, ...]) -> None:
        self._check(self.owned >= set(partitions), f"revoked what it has not: {partitions}")
        self.owned -= set(partitions)
        await asyncio.sleep(0.01)
        if self.consumer is not None:
            await self.consumer.commit()

    def on_partitions_lost(self, partitions: tuple[Tp, ...]) -> None:
        self._check(self.owned >= set(partitions), f"lost what it has not: {partitions}")
        self.owned -= set(partitions)

    def _check(self, right: bool, wrong: str) -> None:
        if not right:
            self.wrong.append(wrong)


@attrs.define
class Life:
    """One life of the member, and what was seen in it."""

    place: Place
    settings: dict[str, Any]
    at: int
    owner: Owner = attrs.field(factory=Owner)
    offsets: dict[Tp, list[int]] = attrs.field(factory=lambda: {tp: [] for tp in PARTITIONS})
    called_back: list[int] = attrs.field(factory=list)
    asked: int = 0
    points: int = 0
    closing: bool = False

    def __attrs_post_init__(self) -> None:
        keys = {"group_id": "g", "max_poll_records": 5, **beating(self.settings)}
        self.consumer = self.place.consumer("t", listener=self.owner, **keys)
        self.owner.consumer = self.consumer

    consumer: AsyncConsumer = attrs.field(init=False)

    async def read(self) -> None:
        """One poll, and a commit that no task waits for."""
        for record in await self.consumer.poll(0.1):
            self.offsets[Tp("t", record.partition)].append(record.offset)
        number, self.asked = self.asked, self.asked + 1
        self.consumer.commit_async(callback=lambda offsets, error: self.called_back.append(number))

    async def script(self) -> None:
        """Join, commit in every way, rebalance with the other, leave, come back, close."""
        consumer = self.consumer
        while sum(map(len, self.offsets.values())) < RECORDS // 2:
            await self.read()
        await self.commit()
        consumer.enforce_rebalance()
        for _ in range(6):
            await self.read()
        await consumer.committed(PARTITIONS)
        await consumer.unsubscribe()
        await consumer.subscribe(["t"], listener=self.owner)
        while not consumer.assignment():
            await self.read()
        await self.commit()
        self.closing = True
        await consumer.close()

    async def commit(self) -> None:
        with suppress(CommitFailedError):  # a rebalance may have begun, of the other's making
            await self.consumer.commit()

    async def run(self) -> None:
        """The script, cancelled on its way; then to the end manually."""
        cancelling = Cancelling(self.script(), self.at)
        try:
            await cancelling
        except asyncio.CancelledError:
            await self.go_on()
        except ListenerError:
            await self.go_on()
        finally:
            self.points = cancelling.points

    async def go_on(self) -> None:
        """It is closed, or reads on to the last record of what it has, commits, and closes."""
        consumer = self.consumer
        if not consumer.closed:
            if not consumer.subscription():
                await consumer.subscribe(["t"], listener=self.owner)
            async with asyncio.timeout(60.0):
                while not await self._at_the_end():
                    await self.read()
                await self.commit()
        await consumer.close(10.0)

    async def _at_the_end(self) -> bool:
        owned = self.consumer.assignment()
        if not owned:
            return False
        try:
            ends = [await self.consumer.position(tp, timeout=0.5) for tp in owned]
        except KclientError:
            return False  # a rebalance took it away
        return all(end == RECORDS // 2 for end in ends)


async def other(place: Place, life: asyncio.Task[None], settings: dict[str, Any]) -> list[tuple[Tp, int]]:
    """The other member: reads as long as the first lives, and then until everything is committed."""
    keys = {"group_id": "g", "enable_auto_commit": True, **beating(settings)}
    if "group_instance_id" in keys:
        keys["group_instance_id"] = "b"
    seen: list[tuple[Tp, int]] = []
    consumer = place.consumer("t", auto_commit_interval_ms=100, **keys)
    done = dict.fromkeys(PARTITIONS, RECORDS // 2)
    async with asyncio.timeout(120.0):
        while not life.done() or place.cluster.committed("g") != done:
            seen += [(Tp("t", r.partition), r.offset) for r in await consumer.poll(0.1)]
    await consumer.close()
    return seen


async def live(place: Place, kind: str, at: int) -> Life:
    """Both members' lives; the assertions that need the cluster."""
    for number, tp in enumerate(PARTITIONS):
        place.cluster.produce("t", [f"{number}-{n}" for n in range(RECORDS // 2)], partition=tp.partition)
    life = Life(place, KINDS[kind], at)
    mine = asyncio.ensure_future(place.on_member(life.run()))
    theirs = asyncio.ensure_future(place.on_member(other(place, mine, KINDS[kind])))
    await mine
    seen = await theirs
    for tp in PARTITIONS:
        found = {*life.offsets[tp], *(offset for partition, offset in seen if partition == tp)}
        assert found == set(range(RECORDS // 2)), f"{tp}: {sorted(found)}"
    assert _monotone(place), "a commit went back"
    return life


def _monotone(place: Place) -> bool:
    newest: dict[tuple[Any, int], int] = {}
    for one in place.asked("OffsetCommit"):
        if one.response is None:
            continue
        for asked, reported in zip(one.request.topics, one.response.topics, strict=True):
            for stored, response in zip(asked.partitions, reported.partitions, strict=True):
                key = (asked.topic_id, stored.partition_index)
                if response.error_code == 0 and stored.committed_offset < newest.get(key, 0):
                    return False
                if response.error_code == 0:
                    newest[key] = stored.committed_offset
    return True


def lived(kind: str, at: int, seed: int = 1) -> Life:
    config = {"group.initial.rebalance.delay.ms": 0, "group.consumer.heartbeat.interval.ms": 200}
    return simulate(lambda place: live(place, kind, at), seed=seed, topics={"t": 2}, config=config).result


@pytest.mark.spec("I-30", "I-24", "I-12", "I-08", "B.14.2", "M-95")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", KINDS)
def test_a_member_cancelled_at_any_await_continues_or_is_gone(kind: str) -> None:
    points = lived(kind, NEVER).points
    assert points > 60
    for at in range(1, points + 1, STEPS[kind]):
        life = lived(kind, at)
        where = f"{kind}, cancelled at await {at} of {points}"
        assert life.owner.wrong == [], where
        assert life.owner.owned == set() or life.closing, where
        assert life.consumer.closed, where
        assert life.called_back == sorted(set(life.called_back)), where
