"""An application that reads a topic in a group, as users write them: poll, work, commit, and what errors ask for.

One `Member` is one incarnation of a process; it lives on a host of its own and tells the invariants what it sees.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from random import Random
from typing import TYPE_CHECKING, Any, Final

from kclient import AsyncConsumer, RebalanceListener
from kclient.errors import BrokerError, ClosedError, CorruptBatchError, KclientError, OffsetError
from kclient.protocol.errors import FENCED_INSTANCE_ID
from kclient.records.records import Records
from kclient.types import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from tests.simulation.stage import Stage

TOPIC: Final = "events"
GROUP: Final = "readers"
CLOSE_SECONDS: Final = 20.0


class Upset(Exception):
    """Raised by a callback."""


class Ear(RebalanceListener):
    """Tells what happens to the assignment, and commits what is about to go where the scenario says so."""

    def __init__(self, member: Member) -> None:
        self.member = member

    async def on_partitions_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        self.member.stage.watch.assigned(self.member, partitions)
        await self.member.moody()

    async def on_partitions_revoked(self, partitions: Iterable[TopicPartition]) -> None:
        member = self.member
        member.stage.watch.revoked(member, partitions)
        if member.stage.scenario.commit == "on_revoke":
            await member.commit()
        await member.moody()
        member.stage.watch.revoked_ended(member, partitions)

    def on_partitions_lost(self, partitions: Iterable[TopicPartition]) -> None:
        self.member.stage.watch.lost(self.member, partitions)


class Member:
    """See the module. `next` holds, per partition, the offset behind what this member was handed last."""

    def __init__(self, stage: Stage, name: str, incarnation: int) -> None:
        self.stage = stage
        self.name = name
        self.incarnation = incarnation
        self.rng = Random(f"{stage.world.seed}:{name}:{incarnation}")
        self.consumer: AsyncConsumer | None = None
        self.next: dict[TopicPartition, int] = {}
        self.stopping = False
        self.over = False
        self.polls = 0
        self.extra_work = 0.0  # seconds, on the next records
        self.mood = 0  # of the next callback: 1 raises, 2 takes long, 3 commits, 4 asks for the end
        self.cancel_after: float | None = None  # seconds into the next poll

    def __str__(self) -> str:
        return f"{self.name}/{self.incarnation}"

    def settings(self) -> dict[str, Any]:
        """What its consumer is configured with."""
        s = self.stage.scenario
        return {
            "bootstrap_servers": self.stage.bootstrap,
            "group_id": GROUP,
            "client_id": self.name,
            "group_instance_id": self.name if s.static else None,
            "partition_assignment_strategy": (s.assignor,),
            "enable_auto_commit": s.commit == "auto",
            "auto_commit_interval_ms": 2_000,
            "auto_offset_reset": s.reset,
            "isolation_level": s.isolation,
            "max_poll_records": s.max_poll_records,
            "session_timeout_ms": s.session_timeout_ms,
            "heartbeat_interval_ms": s.heartbeat_interval_ms,
            "max_poll_interval_ms": s.max_poll_interval_ms,
            "request_timeout_ms": s.request_timeout_ms,
            "default_api_timeout_ms": 4 * s.request_timeout_ms,
            "fetch_max_bytes": s.fetch_max_bytes,
            "max_partition_fetch_bytes": s.max_partition_fetch_bytes,
            "buffer_memory_bytes": s.buffer_memory_bytes,
            "metadata_max_age_ms": s.metadata_max_age_ms,
        }

    async def live(self) -> None:
        """The whole life of the process; a host that is killed ends it without a word."""
        settings = {name: value for name, value in self.settings().items() if value is not None}
        self.consumer = AsyncConsumer(
            TOPIC, listener=Ear(self), runtime=self.stage.world.runtime(self.name), **settings
        )
        self.stage.watch.began(self)
        while not self.stopping:
            try:
                await self._round(self.consumer)
            except KclientError as error:
                self.stage.watch.raised(self, "poll", error)
                await self._recover(self.consumer, error)
        await self._close(self.consumer)

    def stop(self) -> None:
        """End it cleanly, soon."""
        self.stopping = True
        if self.consumer is not None and not self.consumer.closed:
            self.consumer.wakeup()

    async def _round(self, consumer: AsyncConsumer) -> None:
        """One poll, the work on what it returned, and the commit."""
        scenario, watch = self.stage.scenario, self.stage.watch
        watch.poll_began(self)
        records = await self._poll(consumer)
        self.polls += 1
        for record in records:
            tp = TopicPartition(record.topic, record.partition)
            watch.delivered(self, record)
            self.next[tp] = record.offset + 1
        watch.poll_ended(self, len(records))
        for tp in records.partitions():
            watch.position(self, tp, await consumer.position(tp))
        await self._work(len(records))
        if scenario.fidgety:
            await (self._calm_down if self.stage.quiet else self._fidget)(consumer)
        await self._commit_by_turn(consumer)

    async def _poll(self, consumer: AsyncConsumer) -> Records[Any, Any]:
        """A poll, or one that is cancelled on the way (F-51)."""
        timeout = self.stage.scenario.poll_timeout
        if self.cancel_after is None:
            return await consumer.poll(timeout)
        polling = asyncio.ensure_future(consumer.poll(timeout))
        await asyncio.wait([polling], timeout=self.cancel_after)
        self.cancel_after = None
        polling.cancel()
        await asyncio.wait([polling])
        return Records() if polling.cancelled() else polling.result()

    async def _work(self, count: int) -> None:
        """On what a poll returned. A loop that never waits would test the simulation, not the client."""
        seconds = self.stage.scenario.process_seconds if count and not self.stage.quiet else 0.01
        if count:
            seconds, self.extra_work = seconds + self.extra_work, 0.0
        await asyncio.sleep(seconds)

    async def moody(self) -> None:
        """What callbacks do that they should not (F-50)."""
        mood, self.mood = self.mood, 0
        if mood == 1:
            raise Upset(f"{self} does not like this")
        if mood == 2:
            await asyncio.sleep(4.0)
        if mood == 3:
            await self.commit()
        if mood == 4:
            self.stop()

    async def _commit_by_turn(self, consumer: AsyncConsumer) -> None:
        how = self.stage.scenario.commit
        if how == "sync" and self.polls % 5 == 0:
            await self.commit()
        elif how == "async" and self.polls % 5 == 0:
            offsets = self._owned(consumer)
            self.stage.watch.commit_began(self, offsets)
            consumer.commit_async(
                offsets, callback=lambda _, error: self.stage.watch.commit_ended(self, offsets, error)
            )

    async def commit(self) -> None:
        """Commit what was handed out; what goes wrong is told and not raised, as most applications have it."""
        consumer = self.consumer
        if consumer is None:
            return
        offsets = self._owned(consumer)
        self.stage.watch.commit_began(self, offsets)
        try:
            await consumer.commit(offsets)
        except KclientError as error:
            self.stage.watch.commit_ended(self, offsets, error)
        else:
            self.stage.watch.commit_ended(self, offsets, None)

    def _owned(self, consumer: AsyncConsumer) -> dict[TopicPartition, OffsetAndMetadata]:
        owned = consumer.assignment()
        return {tp: OffsetAndMetadata(offset) for tp, offset in self.next.items() if tp in owned}

    async def _fidget(self, consumer: AsyncConsumer) -> None:
        """Go back, pause, go on, leave and come back, at random (F-49); never forward, which would skip records."""
        assigned = consumer.assignment()
        if not assigned or self.rng.random() > 0.05:
            return
        tp = self.rng.choice(assigned)
        match self.rng.choice(("seek", "pause", "resume", "resubscribe")):
            case "seek" if tp in self.next:
                offset = max(0, self.next[tp] - self.rng.randrange(1, 20))
                consumer.seek(tp, offset)
                self.next[tp] = offset
                self.stage.watch.sought(self, tp, offset)
            case "pause":
                consumer.pause([tp])
                self.stage.watch.paused(self, tp)
            case "resume":
                await self._calm_down(consumer)
            case "resubscribe" if self.rng.random() < 0.2:
                await consumer.unsubscribe()
                self.stage.watch.unsubscribed(self)
                await consumer.subscribe([TOPIC], listener=Ear(self))

    async def _calm_down(self, consumer: AsyncConsumer) -> None:
        for tp in consumer.paused():
            consumer.resume([tp])
            self.stage.watch.resumed(self, tp)

    async def _recover(self, consumer: AsyncConsumer, error: KclientError) -> None:
        """What an application does about an error: some end it, some want a seek, most want another try."""
        if isinstance(error, ClosedError) or getattr(error, "code", 0) == FENCED_INSTANCE_ID:
            self.stopping = True
        elif isinstance(error, CorruptBatchError) and error.topic and error.partition is not None:
            tp = TopicPartition(error.topic, error.partition)
            consumer.seek(tp, await consumer.position(tp))  # fetch it again
        elif isinstance(error, OffsetError):
            lost = [tp for tp in consumer.assignment() if tp in getattr(error, "partitions", ())]
            consumer.seek_to_beginning(lost)
            for tp in lost:
                self.next.pop(tp, None)
                self.stage.watch.sought(self, tp, 0)
        await asyncio.sleep(0.1 if isinstance(error, BrokerError) else 0.02)

    async def _close(self, consumer: AsyncConsumer) -> None:
        watch, began = self.stage.watch, self.stage.now
        watch.close_began(self, CLOSE_SECONDS)
        problem: KclientError | None = None
        try:
            await consumer.close(CLOSE_SECONDS)
        except KclientError as error:
            problem = error
        self.over = True
        watch.close_ended(self, self.stage.now - began, problem)
