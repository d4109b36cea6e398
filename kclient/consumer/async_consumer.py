"""AsyncConsumer: the public calls. Each checks that the consumer may be used here and now, then calls its parts.

One task at a time is inside `poll` or an iteration; other tasks of the same loop may make the other calls meanwhile.
The sync facade differs only in how user functions are called and where records are decoded (`_call_user`, `_decode`).

Importing the class does not import its parts: ConsumerCore, and with it the protocol, is imported by the first consumer
that is made. The imports inside the methods are the reason why `from kclient import Consumer` is quick.
"""

from __future__ import annotations

import asyncio
import datetime
import inspect
import os
import re
import warnings
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, Self, Unpack

from kclient.change_signal import ChangeSignal
from kclient.consumer.arguments import (
    check_leave,
    checked_listener,
    checked_max_records,
    checked_offset,
    checked_offsets,
    checked_partitions,
    checked_topics,
    compiled_pattern,
)
from kclient.consumer.callbacks import RebalanceListener, inside, is_inside
from kclient.consumer.other_calls import answers_other_keywords, no_attribute
from kclient.consumer.processing import TaskProcessing, calling_task
from kclient.consumer.tasks import closed_error, outlast
from kclient.errors import ArgumentError, ConfigError, UsageError, UsedAfterForkError
from kclient.runtime import Runtime, running_loop
from kclient.timeouts import checked_timeout
from kclient.types import (
    Broker,
    DeserializerLike,
    GroupMetadata,
    K_co,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    PartitionInfo,
    SubscriptionPattern,
    TopicPartition,
    V_co,
)

if TYPE_CHECKING:
    from kclient.config import Config
    from kclient.config.settings import ConsumerSettings
    from kclient.consumer.commits import CommitCallback
    from kclient.consumer.core import ConsumerCore
    from kclient.consumer.explain import Explanation
    from kclient.fetch.delivery import DecodeTask
    from kclient.metrics import MetricValues
    from kclient.positions.state import ResetStrategy
    from kclient.records.arrow_batch import ArrowBatch
    from kclient.records.records import Record, Records

ITERATION_POLL_SECONDS: Final = 1.0
DECODE_SLICE_SECONDS: Final = 0.004
CLOSE_SECONDS: Final = 30.0

_abandoned: set[asyncio.Task[None]] = set()  # asyncio itself keeps no task alive


class AsyncConsumer(Generic[K_co, V_co]):
    """A Kafka consumer for asyncio; `Consumer` has the same calls for threads.

        async with AsyncConsumer("flights", bootstrap_servers="localhost:9092", group_id="delays") as consumer:
            async for record in consumer:
                ...

    `topics` are subscribed to, which needs `group_id`. Settings are Kafka's own keys in snake_case, as keyword
    arguments, as a mapping (`config=`, dotted names too), or from a Java properties file (`properties=`):
    `kclient.load(settings).explain()` lists them all, docs/configuration.md explains kclient's own. `listener` is
    called in rebalances. Nothing is sent before the first call that needs a broker.

    Calls that may wait for a broker or a listener are awaited, `assign` and `subscribe` among them; seeking, pausing,
    `commit_async`, `wakeup` and what only looks are plain calls.

    An offset is committed only after the record was returned and the application asked for the next one, committed
    explicitly, or closed cleanly. A close does not commit the last record or batch while an exception is handled, nor
    if the task that iterates was cancelled.

    Every call raises ClosedError after `close()` and UsedAfterForkError in a forked process. Calls that wait take a
    `timeout` in seconds (None: default_api_timeout_ms); they raise DeadlineError when it passes, WakeupError after
    `wakeup()`, and a ConnectError that says why no broker can be reached. The constructor raises one ConfigError with
    every problem of the configuration.
    """

    def __init__(
        self,
        *topics: str,
        key_deserializer: DeserializerLike[K_co] | None = None,
        value_deserializer: DeserializerLike[V_co] | None = None,
        config: Mapping[str, Any] | None = None,
        properties: str | PathLike[str] | None = None,
        listener: RebalanceListener | None = None,
        runtime: Runtime | None = None,
        **settings: Unpack[ConsumerSettings],
    ) -> None:
        from kclient.config import discard, load

        checked_topics(topics)  # a mapping of settings here explains why settings are missing
        deserializers = {"key_deserializer": key_deserializer, "value_deserializer": value_deserializer}
        given = {name: value for name, value in deserializers.items() if value is not None}
        loaded = load({**settings, **given}, config, properties)
        try:
            self._set_up(loaded, topics, listener, runtime or Runtime())
        except BaseException:
            discard(loaded)
            raise

    def _set_up(
        self, config: Config, topics: tuple[str, ...], listener: RebalanceListener | None, runtime: Runtime
    ) -> None:
        from kclient.consumer import close, explain  # noqa: F401 – here, so that no call on a loop reads modules
        from kclient.consumer.core import ConsumerCore

        self._core = ConsumerCore(config, runtime, self._call_user, self._decode)
        self._processing = TaskProcessing()
        self._pid = os.getpid()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.closed: bool = False
        self._close_ended = ChangeSignal()
        if listener is not None and not topics:
            raise ConfigError(
                "The listener is given without topics, so it is never called. Name the topics here as well, or give "
                "the listener to subscribe().",
                problems=("a listener is given without topics",),
            )
        if topics and config.group_id is None:
            raise ConfigError(
                f"Following {', '.join(map(repr, topics))} needs group_id: a group shares out the partitions. "
                "Set group_id, or name no topics and call assign() with partitions.",
                problems=("topics are given without group_id",),
            )
        if topics:
            self._core.subscription.subscribe(topics, checked_listener(listener))

    async def __aenter__(self) -> Self:
        self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close(CLOSE_SECONDS, clean=error is None and not self._processing.interrupted())

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise UsageError(
            "A consumer is neither pickled nor copied: connections and a place in a group do not leave their process. "
            "Make it inside of the function that Spark or multiprocessing runs elsewhere, and send it the settings."
        )

    if not TYPE_CHECKING:  # a checker refuses unknown names, and would take any if it saw this

        def __getattr__(self, name: str) -> NoReturn:
            raise no_attribute(self, name)

    def __del__(self) -> None:
        core = getattr(self, "_core", None)  # None: the constructor has raised
        if core is None or self.closed or not core.lifecycle.started or not self.in_its_process:
            return
        if self._loop is not None:
            _abandon(self._loop, core)
        warn_unclosed(self)

    # --- subscription

    @answers_other_keywords
    async def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: re.Pattern[str] | SubscriptionPattern | str | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Subscribe to topics, or to every topic whose whole name matches `pattern`, in place of the last subscription.

        A SubscriptionPattern is resolved by the brokers, if group_protocol is consumer. The assignment changes with the
        next rebalance. No topics and no pattern is `unsubscribe()`. Raise ArgumentError for a blank name, UsageError
        after `assign` or for a SubscriptionPattern in a classic group, BrokerError (INVALID_GROUP_ID) without a group.
        """
        from kclient.consumer import close

        core = self._open()
        checked_listener(listener)
        names = checked_topics(topics)
        if pattern is not None and names:
            raise ArgumentError("Give topics or a pattern, not both.")
        core.group  # noqa: B018 – raises for a consumer without a group
        if isinstance(pattern, SubscriptionPattern):
            core.group.protocol.require_broker_patterns()
            core.subscription.subscribe_broker_pattern(pattern, listener)
        elif pattern is not None:
            core.subscription.subscribe_pattern(compiled_pattern(pattern), listener)
        elif names:
            core.subscription.subscribe(names, listener)
        else:
            await close.unsubscribe(core)
            return
        core.subscription_updater.stop_unsubscribed()
        core.subscription_updater.follow_subscription()

    async def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign partitions manually, with or without a group. No partitions is `unsubscribe()`.

        Partitions that stay keep their positions. Raise ArgumentError, and UsageError after `subscribe`.
        """
        from kclient.consumer import close

        core = self._open()
        chosen = checked_partitions(partitions)
        if not chosen:
            await close.unsubscribe(core)
            return
        core.subscription.assign(chosen)
        if core.group_or_none is not None and core.lifecycle.running and core.group.commits.auto_commit_due():
            core.group.auto_commit()
        core.assigned.assign(chosen)
        core.subscription_updater.follow_subscription()

    async def unsubscribe(self) -> None:
        """Leave the group, call the listener, and stop reading. Nothing is auto-committed.

        A subscription that the listener or another task makes meanwhile stays.
        """
        from kclient.consumer import close

        await close.unsubscribe(self._open(), clean=not self._processing.raising())

    def assignment(self) -> tuple[TopicPartition, ...]:
        """Return the assigned partitions."""
        return self._open().positions.assigned()

    def subscription(self) -> tuple[str, ...]:
        """Return the subscribed topics; for a pattern, those that match now.

        Empty for a manual assignment, and for a SubscriptionPattern, which only the brokers resolve.
        """
        subscription = self._open().subscription
        return subscription.topics if subscription.automatic else ()

    # --- records

    def poll(
        self, timeout: float = 1.0, max_records: int | None = None
    ) -> Coroutine[Any, Any, Records[K_co, V_co]]:
        """Return the next records, at most `max_records` (default max_poll_records); none after `timeout` seconds.

        Rebalances, listeners, commit callbacks and automatic commits happen inside this call. It also raises errors of
        background tasks, one at a time; they lose no records. It may return early without records if only positions
        moved. Raise UsageError without a subscription, ConcurrentUseError during another poll, DecodeError and
        CorruptDataError if a record cannot be read (the position stays on it), NoOffsetError, OffsetOutOfRangeError,
        LogTruncatedError, UnknownTopicError, AuthorizationError, ListenerError.
        """
        return self._poll(timeout, max_records, calling_task())

    async def _poll(
        self, timeout: float, max_records: int | None, caller: asyncio.Task[object] | None
    ) -> Records[K_co, V_co]:
        core = self._open()
        records = await self._core.polls.poll(checked_timeout(timeout), _count(max_records, core))
        if records.chunks:
            self._processing.taken(caller)
        return records

    def __aiter__(self) -> AsyncIterator[Record[K_co, V_co]]:
        """Iterate over records until the consumer is closed; each poll returns up to `max_poll_records`.

        A record is committable when the next one is requested. A later loop continues after it.
        """
        from kclient.records.decoder import is_native

        self._open()
        self._processing.taken()
        if not is_native():
            return self
        from kclient.records._native import async_records

        return async_records(self._delivered_records, self.__anext__)

    def _delivered_records(self) -> Iterator[Record[K_co, V_co]]:
        return self._core.assigned.delivered.shared()

    async def __anext__(self) -> Record[K_co, V_co]:
        """Return the next record. Raise what `poll` raises."""
        while not self.closed:
            record = next(self._delivered_records(), None)
            if record is not None:
                return record
            if self._hand_out_ahead():
                # Nothing is due for the consumer; other tasks of the loop run between two polls nevertheless.
                await asyncio.sleep(0)
            else:
                await self._poll_for_iteration()
        raise StopAsyncIteration

    def arrow_batches(
        self,
        rows: int = 100_000,
        bytes: int = 64 * 1024 * 1024,  # noqa: A002 – `rows` or `bytes`
        timeout: float = 1.0,
        columns: Sequence[str] | None = None,
    ) -> AsyncIterator[ArrowBatch]:
        """Yield batches of `rows` records, or of fewer if they have about `bytes` or if `timeout` seconds have passed.

            for batch, offsets in consumer.arrow_batches(rows=500_000):
                write(batch)
                consumer.commit(offsets)

        `batch` is a pyarrow.RecordBatch with the columns of `Records.to_arrow`, without rows if none came in time;
        `offsets` is what to commit after it. The rows of a partition follow each other. They are gathered over as many
        polls as it takes, and count as returned when the batch is: position(), commit() and automatic commits know
        nothing of rows that wait for more. Raise what `poll` and `to_arrow` raise; the rows are then returned again.
        """
        from kclient.records.arrow_batch import check_batches

        self._open()
        check_batches(rows, bytes, columns)
        return self._arrow_batches(rows, bytes, checked_timeout(timeout), columns)

    async def _arrow_batches(
        self, rows: int, size_bytes: int, timeout: float, columns: Sequence[str] | None
    ) -> AsyncIterator[ArrowBatch]:
        from kclient.records.arrow_batch import arrow_batch

        while not self.closed:
            records = await self._gather(rows, size_bytes, timeout)
            self._processing.taken()
            try:
                batch = await self._core.runtime.offload(arrow_batch, records, columns)
            except BaseException:
                self._core.assigned.return_all()
                raise
            yield batch

    async def _gather(self, rows: int, size_bytes: int, timeout: float) -> Records[K_co, V_co]:
        self._open()
        return await self._core.polls.gather(timeout, rows, size_bytes)

    # --- commits

    @answers_other_keywords
    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Commit offsets for the group: those after all returned records, or the given ones.

        An offset is that of the next record to consume: the last processed one + 1.

        Retriable errors are retried. Raise CommitFailedError (`reason`, `uncommitted`), BrokerError,
        AuthorizationError, ArgumentError, UnknownTopicError for a partition that its topic does not have.
        """
        core = self._open()
        commits = core.group.commits
        chosen = core.assigned.consumed() if offsets is None else checked_offsets(offsets)
        async with core.timeouts.limit(self._seconds(timeout), "the commit") as wait:
            with core.metrics.calls.inside("commit"):
                await core.lifecycle.start()
                await commits.commit(chosen, wait.note_failure)
        core.assigned.delivered.mark_committed(chosen)
        await core.callbacks.run()

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        callback: CommitCallback | None = None,
    ) -> None:
        """Commit as `commit` does, without waiting and without retries.

        `callback(offsets, error)` runs inside a later poll, commit, unsubscribe or close, in the order of the commits;
        `error` is None if the offsets are stored. Raise CommitFailedError when 10,000 commits wait.
        """
        core = self._open()
        chosen = core.assigned.consumed() if offsets is None else checked_offsets(offsets)
        core.group.commits.commit_async(chosen, callback, core.lifecycle.start)
        core.assigned.delivered.mark_committed(chosen)

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offset of each partition, None if there is none."""
        core = self._open()
        committed = core.group.committed
        chosen = checked_partitions(partitions)
        async with core.timeouts.limit(self._seconds(timeout), "the committed offsets") as wait:
            with core.metrics.calls.inside("committed"):
                await core.lifecycle.start()
                found = await committed.fetch(chosen, wait.note_failure)
        for tp, offset in found.items():
            if offset is not None:
                core.cluster.update_last_seen_epoch(tp, offset.leader_epoch)
        return found

    # --- positions

    async def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        """Return the offset of the next record to consume; wait until it is known. Raise NotAssignedError."""
        core, seconds = self._open(), self._seconds(timeout)
        (tp,) = checked_partitions([partition])
        async with core.timeouts.limit(seconds, f"the position of {tp}"):
            while True:
                seen = core.changed.count
                known = core.positions.position(tp)
                if known is not None:
                    here = OffsetAndMetadata(known.offset, known.offset_epoch)
                    return core.assigned.delivered.consumed({tp: here})[tp].offset
                await core.lifecycle.start()
                core.positions.start_deferred_lookups([tp])
                core.errors.raise_first()
                await core.changed.wait(seen)

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Seek to an offset. Raise NotAssignedError, ArgumentError for a negative offset."""
        core = self._open()
        (tp,) = checked_partitions([partition])
        target = checked_offset(
            tp, offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
        )
        core.positions.state(tp)  # raises NotAssignedError
        core.assigned.return_undelivered([tp])
        # Before the leader is read: metadata older than the record would name the leader of an earlier epoch.
        core.cluster.update_last_seen_epoch(tp, target.leader_epoch)
        core.positions.seek(tp, target, core.cluster.metadata.leader(tp))
        core.buffer.drop([tp])

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """Seek to the first offset of these, or of all assigned partitions. Raise NotAssignedError."""
        from kclient.positions.state import EARLIEST

        self._reset(partitions, EARLIEST)

    def seek_to_end(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """Seek to the end of these, or of all assigned partitions. Raise NotAssignedError."""
        from kclient.positions.state import LATEST

        self._reset(partitions, LATEST)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no records of these partitions until `resume`. Raise NotAssignedError."""
        core = self._open()
        for tp in _assigned(core, partitions):
            core.assigned.return_undelivered([tp])
            core.positions.pause(tp)
            if core.handlers is not None:
                core.handlers.user_paused(tp)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Undo `pause`. Raise NotAssignedError."""
        core = self._open()
        for tp in _assigned(core, partitions):
            core.positions.resume(tp)
            if core.handlers is not None:
                core.handlers.user_resumed(tp)

    def paused(self) -> tuple[TopicPartition, ...]:
        """Return the paused partitions."""
        return self._open().positions.paused()

    # --- lookups

    async def offsets_for_times(
        self,
        times: Mapping[TopicPartition, int | datetime.datetime | datetime.timedelta],
        timeout: float | None = None,
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first offset at or after each time, None if no record is that new. With timeout 0 all are None.

        A time is in ms since 1970 (UTC), a datetime with a time zone, or a timedelta: so long ago. Raise ArgumentError
        for others, and for numbers that look like seconds.
        """
        return await self._open().offset_lookup.offsets_for_times(times, self._seconds(timeout))

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset of each partition."""
        return await self._open().offset_lookup.beginning_offsets(partitions, self._seconds(timeout))

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the end of each partition: the offset after the last record that `isolation_level` lets through.

        High watermark, or last stable offset with read_committed. With timeout 0 the dict is empty. The call waits
        for a partition that does not exist, and DeadlineError names it. Raise TopicAuthorizationError.
        """
        return await self._open().offset_lookup.end_offsets(partitions, self._seconds(timeout))

    async def partitions_for(self, topic: str, timeout: float | None = None) -> list[PartitionInfo]:
        """Return the partitions of a topic, none if it does not exist. Raise TopicAuthorizationError."""
        return await self._open().offset_lookup.partitions_for(topic, self._seconds(timeout))

    async def list_topics(self, timeout: float | None = None) -> dict[str, list[PartitionInfo]]:
        """Return every topic that this client may see, with its partitions."""
        return await self._open().offset_lookup.list_topics(self._seconds(timeout))

    async def brokers(self, timeout: float | None = None) -> dict[int, Broker]:
        """Return the live brokers by id: host, port and rack."""
        return await self._open().offset_lookup.brokers(self._seconds(timeout))

    def current_lag(self, partition: TopicPartition) -> int | None:
        """Return the number of records from the position to the end, None until it is known. Raise NotAssignedError.

        The end is the high watermark, or the last stable offset with read_committed. An unknown end is requested in
        the background.
        """
        return self._open().lag.current(partition)

    async def explain(self, *, ask: bool = True, timeout: float = 5.0) -> Explanation:
        """Explain why no records arrive: a sentence for each partition, and one for the consumer. `str()` is a table.

            paused · at the end · waiting for committed offset, reset, validation or a leader · backing off, how long
            · a Fetch in flight, how long · held by an open transaction, whose · buffer full · ready for the next poll
            · stuck on a record until a seek · the next poll raises what

        Changes nothing. Sends one Fetch for each partition that an open transaction holds back, to find its producer,
        and waits at most `timeout` seconds for the responses; with `ask=False` nothing is sent. A broker that does not
        answer is reported in the sentence, not raised.
        """
        from kclient.consumer import explain

        core = self._open()
        return await explain.explain(core, ask=ask, timeout=checked_timeout(timeout))

    # --- the group, and the consumer itself

    def group_metadata(self) -> GroupMetadata:
        """Return group id, generation, member id and instance id."""
        return self._open().group.membership.group_metadata()

    def enforce_rebalance(self, reason: str = "") -> None:
        """Trigger a rebalance with the next poll. `reason` appears in the broker's log.

        No effect with `assign`, nor with the consumer protocol, where the brokers decide.
        """
        self._open().group.membership.request_rejoin(reason or "the application asked for it")

    def wakeup(self) -> None:
        """Interrupt the waiting call, or the next one, with WakeupError. From any thread.

        `close` and `unsubscribe` are not interrupted, nor calls that listeners and callbacks make inside them.
        """
        self._check_usable()
        if self._loop is None or self._loop.is_closed() or self._loop is running_loop():
            self._core.timeouts.wakeup()
        else:
            self._loop.call_soon_threadsafe(self._core.timeouts.wakeup)

    def metrics(self) -> MetricValues:
        """Return every metric with its current value, under the names of the Java consumer; see docs/metrics.md.

            consumer.metrics().value("records-lag", topic="orders", partition=0)

        Times are milliseconds unless the name says otherwise. A metric without a recent measurement is NaN.
        """
        return self._open().metrics.values()

    def close(self, timeout: float = 30.0, *, leave: bool | None = None) -> Coroutine[Any, Any, None]:
        """Commit (with automatic commits), leave the group, and close all connections.

        The last record or batch is left out while an exception is handled, or if the task that took it was cancelled,
        failed, or has not asked for more records: docs/services.md.

        Takes at most `timeout` seconds, and less if every broker refuses connections. A member that is joining leaves
        in any case, which takes at most a second; so does the end of a close that is cancelled. A second close waits
        for the first, for its own timeout. Raise ListenerError at the end, and UsageError on another event loop than
        that of the first call, or when that loop has ended.

        A static member (group_instance_id) stays in the group until its session times out, so that a restart causes no
        rebalance; a dynamic member leaves, so that others get its partitions at once. `leave=True` leaves in either
        case, `leave=False` stays (KIP-1092). Leaving a with-block is `leave=None`.
        """
        # Decided in the calling task, which also has the records: `wait_for` before 3.12 runs the coroutine in another.
        return self._close(timeout, clean=not self._processing.interrupted(), leave=leave)

    # --- what the sync facade does differently; the core keeps these functions, and must not keep the consumer

    @staticmethod
    async def _call_user(function: Callable[..., Any], *args: Any) -> Any:
        """Run a function of the user, and await its result if needed."""
        result = function(*args)
        return await result if inspect.isawaitable(result) else result

    @staticmethod
    async def _decode(task: DecodeTask) -> None:
        """Decode in this task, and let other tasks run every few milliseconds. What may wait runs in a thread."""
        if task.may_block:
            await outlast(asyncio.get_running_loop().run_in_executor(None, task.decode))
            return
        done = False
        while not done:
            await asyncio.sleep(0)  # before each slice, so that polls which never wait let others run too
            done = task.decode(DECODE_SLICE_SECONDS)

    # --- inside

    async def _close(self, timeout: float, *, clean: bool, leave: bool | None = None) -> None:
        from kclient.consumer import close

        timeout = checked_timeout(timeout)
        check_leave(leave)
        self.check_process()
        if self.closed:
            return
        self._check_loop_is_open()
        self._check_loop()
        if self._core.timeouts.closing:
            await self._wait_for_other_close(timeout)
            return
        try:
            with inside(self):
                await close.close(self._core, timeout, clean=clean, leave=leave)
        finally:
            self.closed = True
            self._processing = TaskProcessing()  # lets go of the task, and with it of what it raised
            self._close_ended.notify()

    async def _wait_for_other_close(self, timeout: float) -> None:
        """Wait for another close(), at most `timeout` seconds, unless it waits for this call."""
        group = self._core.group_or_none
        if any(map(is_inside, (self, self._core.polls, group and group.rebalance.invoker))):
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while not self.closed:
                    await self._close_ended.wait(self._close_ended.count)

    def _open(self) -> ConsumerCore:
        """Return the core. Raise UsageError or ClosedError if this consumer may not be used here and now."""
        self._check_usable()
        self._check_loop()
        return self._core

    def _check_loop(self) -> None:
        """Raise UsageError on another loop than that of the first call."""
        loop = running_loop()
        if self._loop is None:
            self._loop = loop
        elif loop is not None and self._loop is not loop:
            raise UsageError(
                "This consumer belongs to another event loop: its connections live there. "
                "Make a consumer for each loop, or call it from the loop that called it first."
            )

    def _check_loop_is_open(self) -> None:
        """Raise UsageError if the event loop has ended, so that the consumer cannot close; it counts as closed then."""
        if self._loop is not None and self._loop.is_closed():
            self.closed = True
            raise UsageError(
                "The event loop of this consumer ended before it was closed. Its connections went with the loop: "
                "nothing was committed, and its group goes on without it only when the session times out. "
                "Close a consumer on the loop that used it, with `async with` or in a finally."
            )

    def _check_usable(self) -> None:
        self.check_process()
        if self.closed:
            raise closed_error()

    @property
    def in_its_process(self) -> bool:
        """Whether this is the process that made the consumer, not a fork."""
        return os.getpid() == self._pid

    def check_process(self) -> None:
        """Raise UsedAfterForkError in a forked process."""
        if not self.in_its_process:
            pid = os.getpid()
            raise UsedAfterForkError(
                f"This consumer was created in process {self._pid} and is used in process {pid}. A fork copies neither "
                "its connections nor its place in the group. Create it in the child: gunicorn's post_fork, celery's "
                "worker_process_init, or inside the function that multiprocessing runs.",
                created_pid=self._pid,
                pid=pid,
            )

    def _seconds(self, timeout: float | None) -> float:
        return (
            self._core.config.default_api_timeout_ms / 1000 if timeout is None else checked_timeout(timeout)
        )

    async def _poll_for_iteration(self) -> None:
        core = self._open()
        await core.polls.poll(ITERATION_POLL_SECONDS, core.config.max_poll_records, one_by_one=True)
        self._processing.taken()

    def _hand_out_ahead(self) -> bool:
        """Hand out records that an earlier poll has read ahead. Return False if a poll is needed, or is under way."""
        core = self._open()
        if core.polls.is_under_way or not core.read_ahead.hand_out(asyncio.get_running_loop().time()):
            return False
        self._processing.taken()
        return True

    def _reset(self, partitions: Iterable[TopicPartition], strategy: ResetStrategy) -> None:
        """Look these up again, or all assigned partitions, when they are next needed."""
        core = self._open()
        for tp in _assigned(core, partitions) or core.positions.assigned():
            core.assigned.return_undelivered([tp])
            core.positions.request_offset_reset(tp, strategy)
            core.buffer.drop([tp])


def _assigned(core: ConsumerCore, partitions: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    """Return the partitions. Raise NotAssignedError for the first that is not assigned, before any is changed."""
    chosen = checked_partitions(partitions)
    for tp in chosen:
        core.positions.state(tp)
    return chosen


def _count(max_records: int | None, core: ConsumerCore) -> int:
    return core.config.max_poll_records if max_records is None else checked_max_records(max_records)


def warn_unclosed(consumer: object) -> None:
    """Warn that a consumer was garbage-collected without close()."""
    warnings.warn(
        f"{type(consumer).__name__} was not closed: nothing more was committed, and its group waits until the session "
        "times out. Use a with block, or call close() in a finally.",
        ResourceWarning,
        source=consumer,
        stacklevel=2,
    )


def _abandon(loop: asyncio.AbstractEventLoop, core: ConsumerCore) -> None:
    """End the tasks of a consumer that was not closed. The garbage collector runs on any thread."""

    def begin() -> None:
        from kclient.consumer import close

        task = loop.create_task(close.abandon(core), name="kclient end")
        _abandoned.add(task)
        task.add_done_callback(_abandoned.discard)

    with suppress(RuntimeError):  # the loop has ended, and with it all that ran
        loop.call_soon_threadsafe(begin)
