"""Members of a group, each on a simulated host of its own: each polls all the time and records its callbacks.

    async def scenario(place: Place) -> None:
        async with team(place, group_id="g") as join:
            a = join("a")
            await until(lambda: a.partitions == ALL)

A record's value is its number; `publishing` writes them for as long as its block stands.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Protocol

import attrs

from kclient import AsyncConsumer, RebalanceListener
from kclient.embedded.observer import LoggedRequest
from kclient.errors import KclientError
from kclient.types import TopicPartition
from tests.scenarios.simulated import Place
from tests.scenarios.support import SETTINGS
from tests.simulation.support import PORT

TOPIC = "t"
GROUP = "g"
ALL = (0, 1, 2, 3)


@attrs.frozen
class ListenerCall:
    """One call of the listener: when, which method, its partitions, and the assignment at that moment."""

    at: float
    method: str
    partitions: tuple[int, ...]
    assignment: tuple[int, ...]


@attrs.frozen
class Seen:
    """One record that a poll returned."""

    at: float
    number: int
    partition: int
    offset: int


class GroupMember(RebalanceListener):
    """See the module. `errors` are what polls raised; `fails` is raised by the next call of that listener's method."""

    def __init__(self, place: Place, name: str, settings: dict[str, Any]) -> None:
        servers = ",".join(f"broker-{node}:{PORT}" for node in place.cluster.state.brokers)
        self.place, self.name = place, name
        self.host = place.world.host(name)
        keys = {**SETTINGS, "bootstrap_servers": servers, "client_id": name, "group_id": GROUP, **settings}
        self.consumer = AsyncConsumer(runtime=place.world.runtime(name), **keys)
        self.listener_calls: list[ListenerCall] = []
        self.seen: list[Seen] = []
        self.errors: list[KclientError] = []
        self.fails: tuple[str, Exception] | None = None
        self.commits_when_revoked = False
        self._polling: asyncio.Task[None] | None = None
        self._over = False

    # --- listener calls

    def on_partitions_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        self._note("assigned", partitions)

    async def on_partitions_revoked(self, partitions: Iterable[TopicPartition]) -> None:
        if self.commits_when_revoked and self.consumer.assignment():
            await self.consumer.commit()
        self._note("revoked", partitions)

    def on_partitions_lost(self, partitions: Iterable[TopicPartition]) -> None:
        self._note("lost", partitions)

    def _note(self, method: str, partitions: Iterable[TopicPartition]) -> None:
        self.listener_calls.append(ListenerCall(self.place.now, method, numbers(partitions), self.partitions))
        if self.fails is not None and self.fails[0] == method:
            error, self.fails = self.fails[1], None
            raise error

    @property
    def partitions(self) -> tuple[int, ...]:
        """What is assigned to it now."""
        return numbers(self.consumer.assignment())

    @property
    def calls(self) -> list[tuple[str, tuple[int, ...]]]:
        """Every call of the listener, without the circumstances."""
        return [(call.method, call.partitions) for call in self.listener_calls]

    def take_calls(self) -> list[tuple[str, tuple[int, ...]]]:
        """Every call of the listener since the last look."""
        calls = self.calls
        self.listener_calls.clear()
        return calls

    def asked(self, api: str, since: float = 0.0) -> list[LoggedRequest]:
        """Its own requests of one API."""
        return [one for one in self.place.asked(api, since) if one.client_id == self.name]

    # --- its life

    async def subscribe(self, *topics: str) -> None:
        """Subscribe, with itself as the listener."""
        await self.host.start(self.consumer.subscribe(topics or (TOPIC,), listener=self))

    def poll(self) -> None:
        """Poll from now on, until `stop`."""
        self._polling = self.host.start(self._poll(), name=f"{self.name} polls")

    async def _poll(self) -> None:
        while not self._over:
            try:
                records = await self.consumer.poll(0.2)
            except KclientError as exc:
                self.errors.append(exc)
                await asyncio.sleep(0.05)
                continue
            self.seen += [
                Seen(self.place.now, int(record.value), record.partition, record.offset) for record in records
            ]
            await asyncio.sleep(0.001)

    async def stop(self) -> None:
        """Poll no more, as an application that is busy."""
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.wait({self._polling})
            self._polling = None

    async def close(self) -> None:
        """The clean end; nothing of it is left. A task that is cancelled would leave its last records uncommitted."""
        if self.host.alive:
            self._over = True
            if self._polling is not None:
                await asyncio.wait({self._polling}, timeout=1)
            await self.stop()
            await self.host.start(self.leave())
            await asyncio.sleep(1)
            assert self.host.leftovers() == []
            self.host.kill()

    async def leave(self) -> None:
        """What the application calls at its end."""
        await self.consumer.close()

    def kill(self) -> None:
        """kill -9."""
        self.host.kill()
        self.consumer.closed = True  # its process is gone, and nothing warns of what it left open


class Joining(Protocol):
    """Makes a member that subscribes and polls."""

    async def __call__(
        self, name: str, kind: type[GroupMember] = GroupMember, **settings: Any
    ) -> GroupMember: ...


@asynccontextmanager
async def team(place: Place, **common: Any) -> AsyncIterator[Joining]:
    """A group whose members are closed at the end of the block; `common` are settings of all."""
    members: list[GroupMember] = []

    async def join(name: str, kind: type[GroupMember] = GroupMember, **settings: Any) -> GroupMember:
        members.append(kind(place, name, {**common, **settings}))
        await members[-1].subscribe()
        members[-1].poll()
        return members[-1]

    yield join
    place.cluster.lift()
    await place.cluster.heal()
    for member in members:
        await member.close()


@asynccontextmanager
async def publishing(place: Place, every: float = 0.05, partitions: int = 4) -> AsyncIterator[list[int]]:
    """Write numbered records to all partitions in turn; gives the numbers so far."""
    written: list[int] = []

    async def publish() -> None:
        while True:
            place.cluster.produce(TOPIC, [str(len(written))], partition=len(written) % partitions)
            written.append(len(written))
            await asyncio.sleep(every)

    task = asyncio.create_task(publish())
    try:
        yield written
    finally:
        task.cancel()
        await asyncio.wait({task})


def numbers(partitions: Iterable[TopicPartition]) -> tuple[int, ...]:
    """The partitions of the one topic."""
    return tuple(sorted(tp.partition for tp in partitions))


def shared_out(*members: GroupMember, of: Iterable[int] = ALL) -> bool:
    """Whether the members have all partitions, each of them some, and none of them twice."""
    parts = [member.partitions for member in members]
    return all(parts) and sorted(number for part in parts for number in part) == list(of)


def all_seen(*members: GroupMember) -> list[int]:
    """The numbers of all records that were delivered to anybody, in order of numbers."""
    return sorted(seen.number for member in members for seen in member.seen)
