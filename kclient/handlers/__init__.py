"""Handle records by many handlers at once: in order for each key, committed when finished, retried, drained at the end.

    from kclient import Consumer, handlers

    settings = {"bootstrap_servers": "localhost:9092", "group_id": "billing", "enable_auto_commit": False}
    with Consumer("orders", **settings) as consumer:
        handlers.run(consumer, handle, concurrency=16, ordered_by="key")

`run_async` is the same for an AsyncConsumer. What both promise:

    at least once     an offset is committed when the handlers of all records before it have finished
    order             records of one key (or of one partition) are handled one after another, in the order of the log
    bounded           at most `concurrency` handlers run, at most `max_in_flight` records are in memory
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from kclient.consumer.async_consumer import AsyncConsumer
from kclient.errors import ArgumentError, UsageError
from kclient.handlers.calling import is_coroutine_function
from kclient.handlers.in_flight import Ordering
from kclient.handlers.options import HandlerOptions
from kclient.handlers.progress import HandlerProgress, PartitionProgress
from kclient.handlers.runner import HandlerRunner
from kclient.records.records import Record
from kclient.sync import Consumer

__all__ = ["HandlerProgress", "PartitionProgress", "progress", "run", "run_async"]

K = TypeVar("K")
V = TypeVar("V")

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def run(
    consumer: Consumer[K, V],
    handler: Callable[[Record[K, V]], object],
    *,
    concurrency: int = 16,
    ordered_by: Ordering | None = "key",
    retries: int = 4,
    retry_backoff_ms: int = 200,
    retry_backoff_max_ms: int = 10_000,
    dead_letter: Callable[[Record[K, V], Exception], object] | None = None,
    max_in_flight: int | None = None,
    commit_interval: float = 1.0,
    drain_timeout: float = 20.0,
    signals: Sequence[signal.Signals] | None = None,
) -> HandlerProgress:
    """Poll, call `handler(record)` on up to `concurrency` threads, and commit, until a signal, `wakeup()` or an error.

    The consumer needs a group, a subscription, and enable_auto_commit=False: records are committed when they have been
    handled.

    `ordered_by`: records of the same "key" are handled one after another; a record without a key is ordered after
    none. "partition" orders all records of a partition, None orders none.

    A handler that raises is called again `retries` times, after `retry_backoff_ms` milliseconds, doubled each time up
    to `retry_backoff_max_ms` (KIP-580). Other keys go on meanwhile. Then `dead_letter(record, exception)` is called,
    and when it has returned the record has finished. Without it, or if it raises, the run ends with HandlerError.

    At `max_in_flight` records in flight (default 500, or twice the concurrency) partitions are paused; polls go on.
    Commits are sent every `commit_interval` seconds, before a revocation, and at the end.

    SIGTERM, SIGINT and `consumer.wakeup()` end the run: running handlers have `drain_timeout` seconds to finish, and
    the positions move back to the records that wait. The second signal acts as it did before the run. `signals` names
    other ones, () none; only the main thread receives signals, so in another one None means none.

    Return the progress at the end. Raise HandlerError, UsageError, ArgumentError, and what `poll` raises; of its
    retriable errors only those before the first connection, later ones are logged and polled again.
    """
    if is_coroutine_function(handler) or (dead_letter is not None and is_coroutine_function(dead_letter)):
        raise ArgumentError(
            "A Consumer calls plain functions, and this handler is a coroutine function. Write def, or use "
            "run_async() with an AsyncConsumer."
        )
    if not isinstance(consumer, Consumer):
        raise ArgumentError(f"run() needs a Consumer, not {type(consumer).__name__}: see run_async().")
    options = HandlerOptions(
        concurrency=concurrency,
        ordered_by=ordered_by,
        retries=retries,
        retry_backoff_ms=retry_backoff_ms,
        retry_backoff_max_ms=retry_backoff_max_ms,
        dead_letter=dead_letter,
        max_in_flight=max_in_flight,
        commit_interval=commit_interval,
        drain_timeout=drain_timeout,
    )
    runner = HandlerRunner(consumer._inner, handler, options, awaits=False)
    with _stopping_on(signals, runner.stop_from_thread):
        return consumer._run(runner.run)


async def run_async(
    consumer: AsyncConsumer[K, V],
    handler: Callable[[Record[K, V]], object],
    *,
    concurrency: int = 16,
    ordered_by: Ordering | None = "key",
    retries: int = 4,
    retry_backoff_ms: int = 200,
    retry_backoff_max_ms: int = 10_000,
    dead_letter: Callable[[Record[K, V], Exception], object] | None = None,
    max_in_flight: int | None = None,
    commit_interval: float = 1.0,
    drain_timeout: float = 20.0,
    signals: Sequence[signal.Signals] | None = None,
) -> HandlerProgress:
    """Do what `run` does, with an AsyncConsumer: coroutine functions run on its loop, plain functions on threads.

    Cancelling the task cancels the handlers that run, and commits what has finished.
    """
    if not isinstance(consumer, AsyncConsumer):
        raise ArgumentError(f"run_async() needs an AsyncConsumer, not {type(consumer).__name__}: see run().")
    options = HandlerOptions(
        concurrency=concurrency,
        ordered_by=ordered_by,
        retries=retries,
        retry_backoff_ms=retry_backoff_ms,
        retry_backoff_max_ms=retry_backoff_max_ms,
        dead_letter=dead_letter,
        max_in_flight=max_in_flight,
        commit_interval=commit_interval,
        drain_timeout=drain_timeout,
    )
    runner = HandlerRunner(consumer, handler, options, awaits=True)
    with _stopping_on(signals, runner.stop_from_thread):
        return await runner.run()


def progress(consumer: Consumer[Any, Any] | AsyncConsumer[Any, Any]) -> HandlerProgress | None:
    """Return what the run on this consumer is doing, None if there is none. From any thread for a Consumer."""
    if isinstance(consumer, AsyncConsumer):
        running = consumer._core.handlers
        return running.progress() if isinstance(running, HandlerRunner) else None
    inner, thread = consumer._inner, consumer._thread
    return None if thread is None else thread.run(lambda: progress(inner))


@contextmanager
def _stopping_on(signals: Sequence[signal.Signals] | None, stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at the first of these signals; the next one acts as it did before.

    Raise UsageError for given signals if this is not the main thread, ArgumentError for one such as SIGKILL.
    """
    before: dict[signal.Signals, Any] = {}

    def restore() -> None:
        for number, handler in before.items():
            if handler is not None:  # None: not set by Python, which cannot set it again
                signal.signal(number, handler)

    def received(number: int, frame: object) -> None:
        restore()
        stop()

    for number in () if signals is None else signals:
        if number not in signal.valid_signals():
            raise ArgumentError(f"signals has {number!r}, which is no signal of this system.")
    try:
        for number in SIGNALS if signals is None else signals:
            before[number] = signal.signal(number, received)
    except ValueError as exc:
        if signals is not None:
            raise UsageError(
                "Only the main thread receives signals, and handlers run in another one. Leave `signals` out, and let "
                "the main thread call consumer.wakeup()."
            ) from exc
    except OSError as exc:
        restore()
        raise ArgumentError(f"signals has {number!r}, which no process can handle.") from exc
    try:
        yield
    finally:
        restore()
