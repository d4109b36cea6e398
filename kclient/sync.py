"""Consumer: the calls of AsyncConsumer for threads.

Heartbeats, fetching and the group flow live on a loop thread that all consumers of the process share; slow user code
never stops them. Listeners, commit callbacks and deserializers run on the thread that called, and may call the consumer
again; records that need no deserializer are cut out of their batches on the loop, in slices. One thread is inside a
consumer at a time; only `wakeup` may come from any.
"""

from __future__ import annotations

import datetime
import re
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar, cast

from kclient.bridge import LoopThread
from kclient.consumer import interceptors
from kclient.consumer.arguments import checked_listener
from kclient.consumer.async_consumer import AsyncConsumer, warn_unclosed
from kclient.consumer.commits import CommitCallback
from kclient.consumer.delivered import exception_since
from kclient.consumer.explain import Explanation
from kclient.consumer.listener import RebalanceListener, coroutine_methods
from kclient.consumer.tasks import closed_error
from kclient.errors import ConcurrentUseError, ConfigError
from kclient.metrics import MetricValues
from kclient.on_loop import LentListener, Listeners, OnLoop
from kclient.records.records import Record, Records
from kclient.runtime import Runtime
from kclient.types import (
    Broker,
    GroupMetadata,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    PartitionInfo,
    SubscriptionPattern,
    TopicPartition,
)

T = TypeVar("T")


class Consumer:
    """A Kafka consumer for threads; `AsyncConsumer` has the same calls for asyncio.

        with Consumer("flights", bootstrap_servers="localhost:9092", group_id="delays") as consumer:
            for record in consumer:
                ...

    `topics` are subscribed to, which needs `group_id`. Settings are Kafka's own keys in snake_case, as keyword
    arguments, as a mapping (`config=`, dotted names too), or from a Java properties file (`properties=`):
    `kclient.load(settings).explain()` lists them all, docs/configuration.md explains kclient's own. `listener` is told
    about rebalances, by plain functions. Nothing is sent before the first call that needs a broker.

    An offset is committed only after the record was returned and the application asked for the next one, committed
    explicitly, or closed cleanly. What was in hand is not committed by a close while an exception is handled, nor by
    one in another thread than the one that reads.

    Every call raises ClosedError after `close()`, UsedAfterForkError in a forked process, and ConcurrentUseError while
    another thread is inside. Calls that wait take a `timeout` in seconds (None: default_api_timeout_ms); they raise
    DeadlineError when it passes, WakeupError after `wakeup()`, and a ConnectError that says why no broker can be
    reached. Ctrl-C ends a wait and leaves the consumer usable. The constructor raises one ConfigError with every
    problem of the configuration.
    """

    def __init__(
        self,
        *topics: str,
        config: Mapping[str, Any] | None = None,
        properties: str | PathLike[str] | None = None,
        listener: RebalanceListener | None = None,
        runtime: Runtime | None = None,
        **settings: Any,
    ) -> None:
        self._thread: LoopThread | None = None
        self._inside: dict[str, threading.Thread] = {}  # "thread": the one that is inside
        self._processing = ThreadProcessing()
        self._depth = 0  # its calls, one within the other
        self._listeners: Listeners = Listeners()
        self._inner = OnLoop(
            *topics,
            config=config,
            properties=properties,
            listener=self._lent(listener),
            runtime=runtime,
            **settings,
        )
        try:
            _refuse_coroutines("The interceptors'", interceptors.coroutine_methods(self._inner.interceptors))
        except ConfigError:
            self._inner.discard()
            raise

    # --- choosing what to read

    def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: re.Pattern[str] | SubscriptionPattern | str | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        lent = self._lent(listener)
        self._await(lambda: self._inner.subscribe(topics, pattern=pattern, listener=lent))

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        self._await(lambda: self._inner.assign(partitions))

    def unsubscribe(self) -> None:
        clean = not self._processing.raising()
        self._await(lambda: self._inner.end_subscription(clean=clean))

    def assignment(self) -> tuple[TopicPartition, ...]:
        return self._call(self._inner.assignment)

    def subscription(self) -> tuple[str, ...]:
        return self._call(self._inner.subscription)

    # --- records

    def poll(self, timeout: float = 1.0, max_records: int | None = None) -> Records[Any, Any]:
        records = self._await(lambda: self._inner.poll(timeout, max_records))
        self._processing.taken()
        self._inner.received = True  # from here to the caller's next line no signal is looked at
        return records

    def __iter__(self) -> Iterator[Record[Any, Any]]:
        """Records one by one, until the consumer is closed; see `AsyncConsumer.__aiter__`."""
        self._call(self._inner.assignment)
        return self._records()

    def _records(self) -> Iterator[Record[Any, Any]]:
        while not self._inner.closed:
            delivered = self._inner.delivered
            self._processing.taken()
            yield from delivered
            if delivered is self._inner.delivered and not self._inner.closed:
                self._await(self._inner.refill)

    # --- commits

    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        timeout: float | None = None,
    ) -> None:
        self._await(lambda: self._inner.commit(offsets, timeout))

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        callback: CommitCallback | None = None,
    ) -> None:
        self._call(lambda: self._inner.commit_async(offsets, callback))

    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        return self._await(lambda: self._inner.committed(partitions, timeout))

    # --- positions

    def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        return self._await(lambda: self._inner.position(partition, timeout))

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        self._call(lambda: self._inner.seek(partition, offset))

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] = ()) -> None:
        self._call(lambda: self._inner.seek_to_beginning(partitions))

    def seek_to_end(self, partitions: Iterable[TopicPartition] = ()) -> None:
        self._call(lambda: self._inner.seek_to_end(partitions))

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        self._call(lambda: self._inner.pause(partitions))

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self._call(lambda: self._inner.resume(partitions))

    def paused(self) -> tuple[TopicPartition, ...]:
        return self._call(self._inner.paused)

    # --- questions to the cluster

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int | datetime.datetime], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        return self._await(lambda: self._inner.offsets_for_times(times, timeout))

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        return self._await(lambda: self._inner.beginning_offsets(partitions, timeout))

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        return self._await(lambda: self._inner.end_offsets(partitions, timeout))

    def partitions_for(self, topic: str, timeout: float | None = None) -> list[PartitionInfo]:
        return self._await(lambda: self._inner.partitions_for(topic, timeout))

    def list_topics(self, timeout: float | None = None) -> dict[str, list[PartitionInfo]]:
        return self._await(lambda: self._inner.list_topics(timeout))

    def brokers(self, timeout: float | None = None) -> dict[int, Broker]:
        return self._await(lambda: self._inner.brokers(timeout))

    def current_lag(self, partition: TopicPartition) -> int | None:
        return self._call(lambda: self._inner.current_lag(partition))

    def explain(self, *, ask: bool = True, timeout: float = 5.0) -> Explanation:
        return self._await(lambda: self._inner.explain(ask=ask, timeout=timeout))

    # --- the group, and the consumer itself

    def group_metadata(self) -> GroupMetadata:
        return self._call(self._inner.group_metadata)

    def enforce_rebalance(self, reason: str = "") -> None:
        self._call(lambda: self._inner.enforce_rebalance(reason))

    def wakeup(self) -> None:
        self._inner.wakeup()

    def metrics(self) -> MetricValues:
        return self._call(self._inner.metrics)

    def close(self, timeout: float = 30.0, *, leave: bool | None = None) -> None:
        self._inner.check_process()
        if not self._inner.closed:
            clean = not self._processing.interrupted()
            self._await(lambda: self._inner.end(timeout, clean=clean, leave=leave))

    def __enter__(self) -> Self:
        self._inner.check_process()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not self._inner.in_its_process:
            return  # a forked child is leaving; the parent's consumer is none of its business
        self._inner.check_process()
        if not self._inner.closed:
            clean = error is None and not self._processing.interrupted()
            self._await(lambda: self._inner.end(clean=clean))

    def __del__(self) -> None:
        thread = getattr(self, "_thread", None)
        if thread is not None and self._inner.in_its_process:
            thread.abandon(self._inner, self._inner.abandon)
            warn_unclosed(self)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self._inner.__reduce_ex__(protocol)

    def _lent(self, listener: RebalanceListener | None) -> RebalanceListener | None:
        """A listener for the session. Raises ArgumentError for what is none, ConfigError for coroutine methods."""
        if listener is None:
            return None
        _refuse_coroutines("The listener's", coroutine_methods(checked_listener(listener)))
        return cast(RebalanceListener, LentListener(self._listeners, listener))

    # --- to the loop and back

    def _await(self, function: Callable[[], Awaitable[T]]) -> T:
        return self._run(function)  # type: ignore[no-any-return]

    def _call(self, function: Callable[[], T]) -> T:
        return self._run(function)  # type: ignore[no-any-return]

    def _run(self, function: Callable[[], Any]) -> Any:
        """Do one call on the loop; the last one, close, lets the loop thread go."""
        self._inner.check_process()
        caller = threading.current_thread()
        inside = self._inside.setdefault("thread", caller)  # one step: of two threads only one gets in
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

    def _leave_if_closed(self) -> None:
        if self._inner.closed and self._thread is not None:
            self._thread.leave(self._inner)
            self._thread = None


class ThreadProcessing:
    """Whether the records that a thread took are processed; see `kclient.consumer.delivered`."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._handled: BaseException | None = None

    def taken(self) -> None:
        """The running thread takes records. An exception that it handles already says nothing about them."""
        self._thread = threading.current_thread()
        self._handled = sys.exception()

    def interrupted(self) -> bool:
        """Whether they may be half processed, judged in the thread that closes."""
        elsewhere = self._thread is not None and self._thread is not threading.current_thread()
        return elsewhere or self.raising()

    def raising(self) -> bool:
        """Whether an exception is being handled that was not yet when they were taken."""
        return exception_since(self._handled)


def _refuse_coroutines(whose: str, names: Sequence[str]) -> None:
    """Raise ConfigError for coroutine functions, which nobody would await on the user's thread."""
    if names:
        raise ConfigError(
            f"{whose} {' and '.join(names)} are coroutine functions, and a Consumer calls plain ones: they run on your "
            "thread, where no loop is. Write def, or use an AsyncConsumer.",
            problems=(f"{whose} {' and '.join(names)} are coroutine functions",),
        )


for _name, _method in vars(Consumer).items():
    if callable(_method) and not _name.startswith("_"):
        _method.__doc__ = getattr(AsyncConsumer, _name).__doc__
