"""An application that reads a topic in a group, as users write them: poll, work, commit, and what errors ask for.

One `Member` is one incarnation of a process; it runs on its own host and reports to the invariants what it sees.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Any, Final

from kclient import AsyncConsumer, RebalanceListener, SubscriptionPattern
from kclient.errors import (
    BrokerError,
    ClosedError,
    CorruptBatchError,
    GroupAuthorizationError,
    KclientError,
    OffsetError,
    VersionError,
)
from kclient.protocol.errors import FENCED_INSTANCE_ID
from kclient.records.records import Record, Records
from kclient.simulation.process import ProcessState
from kclient.types import OffsetAndMetadata, TopicPartition
from tests.simulation import endings
from tests.simulation.endings import draw_ending
from tests.simulation.grouping import (
    CLASSIC,
    CONSUMER,
    configured_protocol,
    instance_id_of,
    is_cooperative,
    number_of,
    settings_of,
)
from tests.simulation.holding import Holding
from tests.simulation.issuer import BEARER, TOKEN_BACKOFF_MAX_MS
from tests.simulation.manners import commit_first, pause_after, shrugs
from tests.simulation.probes import watched_runtime
from tests.simulation.watch import Handed

if TYPE_CHECKING:
    from tests.simulation.ledger import Row
    from tests.simulation.stage import Stage

TOPIC: Final = "events"
PATTERN: Final = "eve.*"
GROUP: Final = "readers"
SAME_ERRORS: Final = 5  # that a process hears in a row before it ends itself
CLOSE_SECONDS: Final = 20.0


def rack_of(number: int) -> str:
    """Where a broker or an application stands."""
    return f"rack-{number % 2 + 1}"


class Upset(Exception):
    """Raised by a callback."""


class RecordingListener(RebalanceListener):
    """Reports changes of the assignment, and commits what is revoked if the scenario says so."""

    def __init__(self, member: Member) -> None:
        self.member = member

    async def on_partitions_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        member = self.member
        member.stage.watch.assigned(member, partitions)
        committed = member.stage.ledger.committed_offsets
        for tp in partitions:
            member.holdings[tp] = Holding(tp, member.stage.now, committed.get(tp))
        with member.called_back():
            await commit_first(member, partitions)
            await member.moody()

    async def on_partitions_revoked(self, partitions: Iterable[TopicPartition]) -> None:
        member = self.member
        member.stage.watch.revoked(member, partitions)
        try:
            with member.called_back():
                if member.stage.scenario.commit == "on_revoke":
                    await member.commit()
                await member.moody()
        finally:
            member.stage.watch.revoked_ended(member, partitions)
            member.let_go(partitions)

    def on_partitions_lost(self, partitions: Iterable[TopicPartition]) -> None:
        self.member.stage.watch.lost(self.member, partitions)
        self.member.let_go(partitions)


class Member:
    """See the module. `holdings` are the partitions that its listener was assigned."""

    def __init__(
        self, stage: Stage, name: str, incarnation: int, instead: dict[str, Any] | None = None
    ) -> None:
        self.stage = stage
        self.instead = instead or {}  # of the group's usual settings
        self.name = name
        self.instance_id = self.instead.get("group_instance_id", instance_id_of(stage.scenario, name))
        self.incarnation = incarnation
        self.rng = Random(f"{stage.world.seed}:{name}:{incarnation}")
        self.consumer: AsyncConsumer | None = None
        self.holdings: dict[TopicPartition, Holding] = {}
        self.inside: list[str] = []  # the calls, and in them the callbacks, that have begun and not ended
        self.in_hand: list[Row] = []  # what the last poll returned
        self.records = 0
        self.upset = False  # a callback raised, and no call has said so yet
        self.working_until = 0.0
        self.callback_seconds = 0.0  # spent in callbacks, in all
        self.stopping = False
        self.over = False
        self.polls = 0
        self.extra_work = 0.0  # seconds, on the next records
        self.mood = 0  # of the next callback: 1 raises, 2 takes long, 3 commits, 4 asks for the end
        self.cancel_after: float | None = None  # seconds into the next poll
        self.same_errors = 0  # refusals of the broker's, one poll after the other
        self.unanswered = 0  # asynchronous commits that have no outcome yet
        self.gave_up = False  # it ended because of them

    def __str__(self) -> str:
        return f"{self.name}/{self.incarnation}"

    @property
    def is_cooperative(self) -> bool:
        """Whether it keeps what it has while the group rebalances."""
        is_odd = "partition_assignment_strategy" in self.instead
        return not is_odd and is_cooperative(self.stage.scenario, self.incarnation)

    def settings(self) -> dict[str, Any]:
        """What its consumer is configured with."""
        s = self.stage.scenario
        return {
            "bootstrap_servers": self.stage.bootstrap,
            "group_id": GROUP,
            "client_id": self.name,
            "enable_auto_commit": s.commit == "auto",
            "auto_commit_interval_ms": 2_000,
            "auto_offset_reset": s.reset,
            "client_rack": rack_of(number_of(self.name)) if s.racks else None,
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
            **(self._credentials() if s.sasl else {}),
            **settings_of(self),
        }

    def _credentials(self) -> dict[str, Any]:
        mechanism = self.stage.scenario.sasl
        common = {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": mechanism,
            "allow_plaintext_credentials": True if mechanism in ("PLAIN", BEARER) else None,
        }
        if mechanism == BEARER:
            return common | {
                "sasl_oauth_token_provider": self.stage.issuer.function_of(self),
                "sasl_login_retry_backoff_max_ms": TOKEN_BACKOFF_MAX_MS,
            }
        return common | {"sasl_username": "reader", "sasl_password": self.stage.secret}

    async def live(self) -> None:
        """The whole life of the process; a host that is killed ends it without a word."""
        settings = {name: value for name, value in self.settings().items() if value is not None}
        self.consumer = self.make_consumer(settings)
        self.stage.watch.began(self)
        if self.stage.scenario.pattern:
            await self.follow(self.consumer)
        while not self.stopping:
            try:
                await self._round(self.consumer)
            except KclientError as exc:
                self.stage.watch.raised(self, "poll", exc)
                await self._recover(self.consumer, exc)
        await self._close(self.consumer)

    def make_consumer(self, settings: dict[str, Any]) -> AsyncConsumer:
        """One that is in the group."""
        runtime = watched_runtime(self)
        if self.stage.scenario.pattern:
            return AsyncConsumer(runtime=runtime, **settings)
        return AsyncConsumer(TOPIC, listener=RecordingListener(self), runtime=runtime, **settings)

    async def follow(self, consumer: AsyncConsumer) -> None:
        """Subscribe to what it reads; brokers resolve patterns for members of the consumer protocol."""
        if not self.stage.scenario.pattern:
            await consumer.subscribe([TOPIC], listener=RecordingListener(self))
            return
        by_brokers = self.settings().get("group_protocol") == CONSUMER
        pattern = SubscriptionPattern(PATTERN) if by_brokers else re.compile(PATTERN)
        await consumer.subscribe(pattern=pattern, listener=RecordingListener(self))

    async def prepare(self, consumer: AsyncConsumer) -> None:
        """What it sees to before each poll."""

    @property
    def is_away(self) -> bool:
        """Whether it works for long, or is about to end, or its host stands still."""
        works = self.working_until - self.stage.now > 1.0
        return (
            works
            or (self.stopping and not self.over)
            or self.stage.hosts[self.name].state is ProcessState.PAUSED
        )

    def stop(self) -> None:
        """End it cleanly, soon."""
        self.stopping = True
        if self.consumer is not None and not self.consumer.closed:
            self.consumer.wakeup()

    async def _round(self, consumer: AsyncConsumer) -> None:
        """One poll, the work on what it returned, and the commit."""
        scenario = self.stage.scenario
        self._release()
        await self.prepare(consumer)
        records = await self.poll_once(consumer, scenario.poll_timeout)
        for tp in records.partitions():
            await self._look_where(consumer, tp)
        await self._work(len(records))
        if scenario.fidgety:
            await (self.calm_down if self.stage.quiet else self.fidget)(consumer)
        await self._commit_by_turn(consumer)

    async def poll_once(self, consumer: AsyncConsumer, timeout: float) -> Records[Any, Any]:
        """One poll; its records are in hand then, those before are released."""
        self._release()
        with self.calling("poll"):
            self.stage.watch.poll_began(self, timeout)
            records = await self._poll(consumer, timeout)
        self.polls += 1
        self.same_errors = 0
        for record in records:
            self._take(record)
        self.stage.watch.poll_ended(self, len(records))
        return records

    def _take(self, record: Record[Any, Any]) -> None:
        """Note a record that was delivered."""
        tp = TopicPartition(record.topic, record.partition)
        row, holding = self.stage.ledger.handed_out(record), self.holdings.get(tp)
        self.stage.watch.delivered(Handed(self, record, tp, row, holding))
        self.records += 1
        if row is not None:
            row.delivered = True
            self.in_hand.append(row)
        if holding is not None:
            holding.took(record, row)

    def _release(self) -> None:
        """Asking for more says that one is done with what one has."""
        for row in self.in_hand:
            row.released = True
        self.in_hand.clear()

    async def _look_where(self, consumer: AsyncConsumer, tp: TopicPartition) -> None:
        offset = await consumer.position(tp)
        self.stage.watch.position(self, tp, offset)

    @contextmanager
    def calling(self, what: str) -> Iterator[None]:
        """A call of the consumer's, from its beginning to its end, however it ends."""
        self.inside.append(what)
        try:
            yield
        finally:
            self.inside.remove(what)

    @contextmanager
    def called_back(self) -> Iterator[None]:
        """A callback runs."""
        began = self.stage.now
        try:
            with self.calling("callback"):
                yield
        finally:
            self.callback_seconds += self.stage.now - began

    def let_go(self, partitions: Iterable[TopicPartition]) -> None:
        """They are not this member's any more."""
        for tp in partitions:
            self.holdings.pop(tp, None)

    async def _poll(self, consumer: AsyncConsumer, timeout: float) -> Records[Any, Any]:
        """A poll, or one that is cancelled on the way (F-51)."""
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
        if count and not self.stage.quiet:
            seconds, self.extra_work = seconds + self.extra_work, 0.0
        self.working_until = self.stage.now + seconds
        await asyncio.sleep(seconds)

    async def moody(self) -> None:
        """What callbacks do that they should not (F-50)."""
        mood, self.mood = self.mood, 0
        if self.stage.quiet:
            return
        if mood == 1:
            self.upset = True
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
            self.commit_async(consumer)

    def commit_async(self, consumer: AsyncConsumer) -> None:
        """Commit what was delivered, without waiting."""
        offsets = self._owned(consumer)

        def answered(_: object, error: KclientError | None) -> None:
            self.unanswered -= 1
            self.stage.watch.commit_ended(self, offsets, error)

        self.stage.watch.commit_began(self, offsets)
        self._release()
        consumer.commit_async(offsets, callback=answered)
        self.unanswered += 1

    async def commit(self) -> None:
        """Commit what was delivered; report errors and do not raise them, as most applications do."""
        consumer = self.consumer
        if consumer is None:
            return
        offsets = self._owned(consumer)
        self.stage.watch.commit_began(self, offsets)
        self._release()
        try:
            with self.calling("commit"):
                await consumer.commit(offsets)
        except KclientError as exc:
            self.stage.watch.commit_ended(self, offsets, exc)
        else:
            self.stage.watch.commit_ended(self, offsets, None)

    def _owned(self, consumer: AsyncConsumer) -> dict[TopicPartition, OffsetAndMetadata]:
        """What is to be committed: after what was delivered last, with its leader epoch."""
        owned = consumer.assignment()
        places = {tp: holding.place for tp, holding in self.holdings.items() if tp in owned}
        return {tp: place for tp, place in places.items() if place is not None}

    async def fidget(self, consumer: AsyncConsumer) -> None:
        """Go back, pause, go on, leave and come back, at random (F-49); never forward, which would skip records."""
        assigned = consumer.assignment()
        if not assigned or self.rng.random() > 0.05:
            return
        tp = self.rng.choice(assigned)
        match self.rng.choice(("seek", "pause", "resume", "resubscribe")):
            case "seek" if (place := self.holdings[tp].place) is not None:
                offset = max(0, place.offset - self.rng.randrange(1, 20))
                consumer.seek(tp, offset)
                self._sought(tp, offset)
            case "pause":
                consumer.pause([tp])
                self.stage.watch.paused(self, tp)
                self.holdings[tp].paused = True
            case "resume":
                await self.calm_down(consumer)
            case "resubscribe" if self.rng.random() < 0.2:
                await self.resubscribe(consumer)

    async def resubscribe(self, consumer: AsyncConsumer) -> None:
        if self.stage.scenario.endings:
            consumer.wakeup()
        try:
            with self.calling("unsubscribe"):
                await consumer.unsubscribe()
        finally:
            self.stage.watch.unsubscribed(self)
            self.holdings.clear()
            await self.follow(consumer)

    def _sought(self, tp: TopicPartition, offset: int | None) -> None:
        self.stage.watch.sought(self, tp, offset)
        self.holdings[tp].goes_to(offset)

    async def calm_down(self, consumer: AsyncConsumer) -> None:
        for tp in consumer.paused():
            consumer.resume([tp])
            self.stage.watch.resumed(self, tp)
            self.holdings[tp].paused = False

    async def _recover(self, consumer: AsyncConsumer, error: KclientError) -> None:
        """What an application does about an error: some end it, some want a seek, most want another try."""
        self._count(error)
        if isinstance(error, ClosedError) or getattr(error, "code", 0) == FENCED_INSTANCE_ID:
            self.stopping = True
        elif isinstance(error, CorruptBatchError) and error.topic and error.partition is not None:
            await self._fetch_again(consumer, TopicPartition(error.topic, error.partition))
        elif isinstance(error, OffsetError) and not shrugs(self):
            lost = [tp for tp in consumer.assignment() if tp in getattr(error, "partitions", ())]
            consumer.seek_to_beginning(lost)
            for tp in lost:
                self._sought(tp, None)
        await asyncio.sleep(pause_after(self, error))

    def _count(self, error: KclientError) -> None:
        """Members of the consumer protocol can fail for good: then a new process must take over."""
        if configured_protocol(self.stage.scenario, self.incarnation) == CLASSIC or error.retriable:
            return
        self.same_errors += isinstance(error, (BrokerError, GroupAuthorizationError, VersionError))
        self.gave_up = self.gave_up or self.same_errors >= SAME_ERRORS
        self.stopping = self.stopping or self.gave_up

    async def _fetch_again(self, consumer: AsyncConsumer, tp: TopicPartition) -> None:
        """What is buffered cannot be read: seek to where one is. Not while the position is unknown: it will be seen."""
        holding = self.holdings.get(tp)
        if holding is not None and holding.place is not None:
            consumer.seek(tp, holding.place)
            self._sought(tp, holding.place.offset)
        elif tp in consumer.assignment():
            consumer.seek(tp, await consumer.position(tp))

    async def _close(self, consumer: AsyncConsumer) -> None:
        watch, began = self.stage.watch, self.stage.now
        ending = draw_ending(self)
        watch.close_began(self, CLOSE_SECONDS)
        self._release()
        problem: KclientError | None = None
        try:
            with self.calling("close"):
                await endings.close(self, consumer, ending, CLOSE_SECONDS)
        except KclientError as exc:
            problem = exc
        self.over = True
        watch.close_ended(self, self.stage.now - began, problem)
