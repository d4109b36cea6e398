"""Consumer: the calls of AsyncConsumer for threads.

Heartbeats, fetching and group membership run on a loop thread that all consumers of the process share; slow user code
never blocks them. Listeners, commit callbacks and deserializers run on the calling thread, and may call the consumer
again; without deserializers, records are decoded on the loop, and iteration reads ahead (`consumer/read_ahead.py`).
Only one thread at a time may use a consumer; `wakeup` may be called from any thread.
"""

from __future__ import annotations

import datetime
import re
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, Self, TypeVar, Unpack, cast, overload

from kclient.bridge import LoopThread
from kclient.consumer.arguments import checked_listener
from kclient.consumer.async_consumer import warn_unclosed
from kclient.consumer.callbacks import RebalanceListener, coroutine_methods
from kclient.consumer.other_calls import answers_other_keywords, no_attribute
from kclient.consumer.processing import exception_since
from kclient.consumer.tasks import closed_error
from kclient.errors import ConcurrentUseError, ConfigError
from kclient.on_loop import LentListener, Listeners, OnLoop
from kclient.runtime import Runtime
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
    from kclient.config.settings import ConsumerSettings
    from kclient.consumer.commits import CommitCallback
    from kclient.consumer.delivered import DeliveredRecords
    from kclient.consumer.explain import Explanation
    from kclient.metrics import MetricValues
    from kclient.records.arrow_batch import ArrowBatch
    from kclient.records.records import Record, Records

T = TypeVar("T")


class Consumer(Generic[K_co, V_co]):
    """A Kafka consumer for threads; `AsyncConsumer` has the same calls for asyncio.

        with Consumer("flights", bootstrap_servers="localhost:9092", group_id="delays") as consumer:
            for record in consumer:
                ...

    `topics` are subscribed to, which needs `group_id`. Settings are Kafka's own keys in snake_case, as keyword
    arguments, as a mapping (`config=`, dotted names too), or from a Java properties file (`properties=`):
    `kclient.load(settings).explain()` lists them all, docs/configuration.md explains kclient's own. The methods of
    `listener`, plain functions, are called in rebalances. Nothing is sent before the first call that needs a broker.

    An offset is committed only after the record was returned and the application asked for the next one, committed
    explicitly, or closed cleanly. A close does not commit the last record or batch while an exception is handled, nor
    if another thread than the one that reads calls it.

    Every call raises ClosedError after `close()`, UsedAfterForkError in a forked process, and ConcurrentUseError while
    another thread is inside. Calls that wait take a `timeout` in seconds (None: default_api_timeout_ms); they raise
    DeadlineError when it passes, WakeupError after `wakeup()`, and a ConnectError that says why no broker can be
    reached. Ctrl-C ends a wait and leaves the consumer usable. The constructor raises one ConfigError with every
    problem of the configuration.
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
        self._thread: LoopThread | None = None
        self._inside: dict[str, threading.Thread] = {}  # "thread": the one that is inside
        self._processing = ThreadProcessing()
        self._depth = 0  # of nested calls: a listener may call the consumer
        self._listeners: Final = Listeners()
        self._inner = OnLoop[K_co, V_co](
            *topics,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
            config=config,
            properties=properties,
            listener=self._lent(listener),
            runtime=runtime,
            **settings,
        )
        try:
            _refuse_coroutines("The interceptors'", self._inner.coroutine_interceptors())
        except ConfigError:
            self._inner.discard()
            raise

    # --- choosing what to read

    @answers_other_keywords
    def subscribe(
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
        lent = self._lent(listener)
        self._run(lambda: self._inner.subscribe(topics, pattern=pattern, listener=lent))

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign partitions manually, with or without a group. No partitions is `unsubscribe()`.

        Partitions that stay keep their positions. Raise ArgumentError, and UsageError after `subscribe`.
        """
        self._run(lambda: self._inner.assign(partitions))

    def unsubscribe(self) -> None:
        """Leave the group, call the listener, and stop reading. Nothing is auto-committed.

        A subscription that the listener or another task makes meanwhile stays.
        """
        clean = not self._processing.raising()
        self._run(lambda: self._inner.end_subscription(clean=clean))

    def assignment(self) -> tuple[TopicPartition, ...]:
        """Return the assigned partitions."""
        return self._run(self._inner.assignment)

    def subscription(self) -> tuple[str, ...]:
        """Return the subscribed topics; for a pattern, those that match now.

        Empty for a manual assignment, and for a SubscriptionPattern, which only the brokers resolve.
        """
        return self._run(self._inner.subscription)

    # --- records

    def poll(self, timeout: float = 1.0, max_records: int | None = None) -> Records[K_co, V_co]:
        """Return the next records, at most `max_records` (default max_poll_records); none after `timeout` seconds.

        Rebalances, listeners, commit callbacks and automatic commits happen inside this call. It also raises errors of
        background tasks, one at a time; they lose no records. It may return early without records if only positions
        moved. Raise UsageError without a subscription, ConcurrentUseError during another poll, DecodeError and
        CorruptDataError if a record cannot be read (the position stays on it), NoOffsetError, OffsetOutOfRangeError,
        LogTruncatedError, UnknownTopicError, AuthorizationError, ListenerError.
        """
        checked_timeout(timeout)
        records: Records[K_co, V_co] = self._run(lambda: self._inner.poll(timeout, max_records))
        self._processing.taken()
        delivered = self._inner.delivered
        delivered.received = True  # no signal handler runs between here and the caller's next line
        return records

    def __iter__(self) -> Iterator[Record[K_co, V_co]]:
        """Iterate over records until the consumer is closed; see `AsyncConsumer.__aiter__`."""
        from kclient.records.decoder import is_native

        self._run(self._inner.assignment)
        deliveries = Deliveries(self)
        if not is_native():
            return deliveries.records()
        from kclient.records._native import joined_records

        return joined_records(deliveries.following)

    def _next_delivery(self, last: DeliveredRecords | None) -> DeliveredRecords | None:
        """Return what a loop takes from after it has taken all of `last`. Poll for it if needed. None: closed."""
        inner = self._inner
        taken = last is not None and last is inner.delivered
        if taken and not inner.closed and not self._hand_out_ahead():
            self._run(inner.refill)
        if inner.closed:
            return None
        self._processing.taken()
        return inner.delivered

    def arrow_batches(
        self,
        rows: int = 100_000,
        bytes: int = 64 * 1024 * 1024,  # noqa: A002 – `rows` or `bytes`
        timeout: float = 1.0,
        columns: Sequence[str] | None = None,
    ) -> Iterator[ArrowBatch]:
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

        self._run(self._inner.assignment)
        check_batches(rows, bytes, columns)
        return self._arrow_batches(rows, bytes, checked_timeout(timeout), columns)

    def _arrow_batches(
        self, rows: int, size_bytes: int, timeout: float, columns: Sequence[str] | None
    ) -> Iterator[ArrowBatch]:
        from kclient.records.arrow_batch import arrow_batch

        while not self._inner.closed:
            records = self._run(lambda: self._inner.gather(rows, size_bytes, timeout))
            batch = arrow_batch(records, columns)  # if it raises, the records count as not received
            self._processing.taken()
            delivered = self._inner.delivered
            delivered.received = True
            yield batch

    # --- commits

    @answers_other_keywords
    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Commit offsets for the group: those after all returned records, or the given ones.

        An offset is that of the next record to consume: the last processed one + 1.

        Retriable errors are retried. Raise CommitFailedError (`reason`, `uncommitted`), BrokerError,
        AuthorizationError, ArgumentError, UnknownTopicError for a partition that its topic does not have.
        """
        self._run(lambda: self._inner.commit(offsets, timeout))

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        callback: CommitCallback | None = None,
    ) -> None:
        """Commit as `commit` does, without waiting and without retries.

        `callback(offsets, error)` runs inside a later poll, commit, unsubscribe or close, in the order of the commits;
        `error` is None if the offsets are stored. Raise CommitFailedError when 10,000 commits wait.
        """
        self._run(lambda: self._inner.commit_async(offsets, callback))

    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offset of each partition, None if there is none."""
        return self._run(lambda: self._inner.committed(partitions, timeout))

    # --- positions

    def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        """Return the offset of the next record to consume; wait until it is known. Raise NotAssignedError."""
        return self._run(lambda: self._inner.position(partition, timeout))

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Seek to an offset. Raise NotAssignedError, ArgumentError for a negative offset."""
        self._run(lambda: self._inner.seek(partition, offset))

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """Seek to the first offset of these, or of all assigned partitions. Raise NotAssignedError."""
        self._run(lambda: self._inner.seek_to_beginning(partitions))

    def seek_to_end(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """Seek to the end of these, or of all assigned partitions. Raise NotAssignedError."""
        self._run(lambda: self._inner.seek_to_end(partitions))

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no records of these partitions until `resume`. Raise NotAssignedError."""
        self._run(lambda: self._inner.pause(partitions))

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Undo `pause`. Raise NotAssignedError."""
        self._run(lambda: self._inner.resume(partitions))

    def paused(self) -> tuple[TopicPartition, ...]:
        """Return the paused partitions."""
        return self._run(self._inner.paused)

    # --- lookups

    def offsets_for_times(
        self,
        times: Mapping[TopicPartition, int | datetime.datetime | datetime.timedelta],
        timeout: float | None = None,
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first offset at or after each time, None if no record is that new. With timeout 0 all are None.

        A time is in ms since 1970 (UTC), a datetime with a time zone, or a timedelta: so long ago. Raise ArgumentError
        for others, and for numbers that look like seconds.
        """
        return self._run(lambda: self._inner.offsets_for_times(times, timeout))

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset of each partition."""
        return self._run(lambda: self._inner.beginning_offsets(partitions, timeout))

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the end of each partition: the offset after the last record that `isolation_level` lets through.

        High watermark, or last stable offset with read_committed. With timeout 0 the dict is empty. The call waits
        for a partition that does not exist, and DeadlineError names it. Raise TopicAuthorizationError.
        """
        return self._run(lambda: self._inner.end_offsets(partitions, timeout))

    def partitions_for(self, topic: str, timeout: float | None = None) -> list[PartitionInfo]:
        """Return the partitions of a topic, none if it does not exist. Raise TopicAuthorizationError."""
        return self._run(lambda: self._inner.partitions_for(topic, timeout))

    def list_topics(self, timeout: float | None = None) -> dict[str, list[PartitionInfo]]:
        """Return every topic that this client may see, with its partitions."""
        return self._run(lambda: self._inner.list_topics(timeout))

    def brokers(self, timeout: float | None = None) -> dict[int, Broker]:
        """Return the live brokers by id: host, port and rack."""
        return self._run(lambda: self._inner.brokers(timeout))

    def current_lag(self, partition: TopicPartition) -> int | None:
        """Return the number of records from the position to the end, None until it is known. Raise NotAssignedError.

        The end is the high watermark, or the last stable offset with read_committed. An unknown end is requested in
        the background.
        """
        return self._run(lambda: self._inner.current_lag(partition))

    def explain(self, *, ask: bool = True, timeout: float = 5.0) -> Explanation:
        """Explain why no records arrive: a sentence for each partition, and one for the consumer. `str()` is a table.

            paused · at the end · waiting for committed offset, reset, validation or a leader · backing off, how long
            · a Fetch in flight, how long · held by an open transaction, whose · buffer full · ready for the next poll
            · stuck on a record until a seek · the next poll raises what

        Changes nothing. Sends one Fetch for each partition that an open transaction holds back, to find its producer,
        and waits at most `timeout` seconds for the responses; with `ask=False` nothing is sent. A broker that does not
        answer is reported in the sentence, not raised.
        """
        return self._run(lambda: self._inner.explain(ask=ask, timeout=timeout))

    # --- the group, and the consumer itself

    def group_metadata(self) -> GroupMetadata:
        """Return group id, generation, member id and instance id."""
        return self._run(self._inner.group_metadata)

    def enforce_rebalance(self, reason: str = "") -> None:
        """Trigger a rebalance with the next poll. `reason` appears in the broker's log.

        No effect with `assign`, nor with the consumer protocol, where the brokers decide.
        """
        self._run(lambda: self._inner.enforce_rebalance(reason))

    def wakeup(self) -> None:
        """Interrupt the waiting call, or the next one, with WakeupError. From any thread.

        `close` and `unsubscribe` are not interrupted, nor calls that listeners and callbacks make inside them.
        """
        self._inner.wakeup()

    def metrics(self) -> MetricValues:
        """Return every metric with its current value, under the names of the Java consumer; see docs/metrics.md.

            consumer.metrics().value("records-lag", topic="orders", partition=0)

        Times are milliseconds unless the name says otherwise. A metric without a recent measurement is NaN.
        """
        return self._run(self._inner.metrics)

    def close(self, timeout: float = 30.0, *, leave: bool | None = None) -> None:
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
        self._inner.check_process()
        if not self._inner.closed:
            clean = not self._processing.interrupted()
            self._run(lambda: self._inner.end(timeout, clean=clean, leave=leave))

    def __enter__(self) -> Self:
        self._inner.check_process()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not self._inner.in_its_process:
            return  # a forked child exits the block; the consumer belongs to the parent
        self._inner.check_process()
        if not self._inner.closed:
            clean = error is None and not self._processing.interrupted()
            self._run(lambda: self._inner.end(clean=clean))

    if not TYPE_CHECKING:  # a checker refuses unknown names, and would take any if it saw this

        def __getattr__(self, name: str) -> NoReturn:
            raise no_attribute(self, name)

    def __del__(self) -> None:
        thread = getattr(self, "_thread", None)
        if thread is not None and self._inner.in_its_process:
            thread.abandon(self._inner, self._inner.abandon)
            warn_unclosed(self)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self._inner.__reduce_ex__(protocol)

    def _lent(self, listener: RebalanceListener | None) -> RebalanceListener | None:
        """Return the listener for the core. Raise ArgumentError unless it is one, ConfigError for coroutine methods."""
        if listener is None:
            return None
        _refuse_coroutines("The listener's", coroutine_methods(checked_listener(listener)))
        return cast(RebalanceListener, LentListener(self._listeners, listener))

    # --- to the loop and back

    @overload
    def _run(self, function: Callable[[], Awaitable[T]]) -> T: ...

    @overload
    def _run(self, function: Callable[[], T]) -> T: ...

    def _run(self, function: Callable[[], Any]) -> Any:
        """Run one call on the loop thread, and leave that thread after close()."""
        self._inner.check_process()
        caller = threading.current_thread()
        inside = self._inside.setdefault("thread", caller)  # atomic: only one of two threads enters
        if inside is not caller:
            raise ConcurrentUseError(
                f"Thread {caller.name} called a consumer that thread {inside.name} is inside. A consumer is not shared "
                "between threads. Give each thread its own, or hand the records over; wakeup() may come from any.",
                inside=inside.name,
                caller=caller.name,
            )
        depth = self._depth
        try:
            self._depth = depth + 1
            if self._inner.closed:
                raise closed_error()
            if self._thread is None:
                self._thread = LoopThread.join(self._inner)
            return self._thread.run(function)
        finally:
            self._depth = depth
            if depth == 0:
                self._inside.clear()
                self._leave_if_closed()

    def _hand_out_ahead(self) -> bool:
        """Hand out records that an earlier poll has read ahead, without a change of threads. False: call the loop.

        In another thread, in a listener, after a fork: False too, so that the call on the loop refuses it.
        """
        caller = threading.current_thread()
        if self._depth or self._inside.setdefault("thread", caller) is not caller:
            return False
        try:
            return self._inner.hand_out_ahead()
        finally:
            self._inside.clear()

    def _leave_if_closed(self) -> None:
        if self._inner.closed and self._thread is not None:
            self._thread.leave(self._inner)
            self._thread = None


class Deliveries(Generic[K_co, V_co]):
    """What one loop over a consumer takes from: the delivered records, then those after them, until it is closed."""

    def __init__(self, consumer: Consumer[K_co, V_co]) -> None:
        self._consumer = consumer
        self._last: DeliveredRecords | None = None

    def following(self) -> Iterator[Record[K_co, V_co]] | None:
        """Return an iterator over the next delivered records, None when the consumer is closed. May poll."""
        self._last = self._consumer._next_delivery(self._last)
        return None if self._last is None else iter(self._last)

    def records(self) -> Iterator[Record[K_co, V_co]]:
        """Iterate over all records, as the extension's joined_records does."""
        while (delivered := self.following()) is not None:
            yield from delivered


class ThreadProcessing:
    """Whether the thread that took the delivered records has processed them; see `kclient.consumer.processing`."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._handled: BaseException | None = None

    def taken(self) -> None:
        """Note that this thread takes records. An exception that it is handling has nothing to do with them."""
        self._thread = threading.current_thread()
        self._handled = sys.exception()

    def interrupted(self) -> bool:
        """Return whether they may be half processed. Call it in the thread that closes."""
        elsewhere = self._thread is not None and self._thread is not threading.current_thread()
        return elsewhere or self.raising()

    def raising(self) -> bool:
        """Return whether an exception is being handled that was not when they were taken."""
        return exception_since(self._handled)


def _refuse_coroutines(whose: str, names: Sequence[str]) -> None:
    """Raise ConfigError for coroutine functions, because a Consumer cannot await them."""
    if names:
        raise ConfigError(
            f"{whose} {' and '.join(names)} are coroutine functions, and a Consumer calls plain ones: they run on your "
            "thread, where no loop is. Write def, or use an AsyncConsumer.",
            problems=(f"{whose} {' and '.join(names)} are coroutine functions",),
        )
