"""HandlerRunner: poll, handle, commit, for one consumer, on its event loop.

    while not stopped:
        commit what is committable, every `commit_interval` seconds
        pause the partitions that have enough in flight, resume them when half of it has finished
        poll for as many records as there is room for      # the rebalance steps below run in here
        start a task for each new lane                     # a lane handles its records one after another
    drop what has not begun, wait for running handlers, commit, move the positions back to what has not finished

What becomes of the records in flight; those that wait for their turn, or for another try, are dropped in each case:

    partitions revoked        handlers that run may finish, for `drain_timeout` seconds and at most half of
                              max_poll_interval_ms; then commit, and cancel those that still run
    partitions lost           handlers that run are cancelled; no commit, because it would fail
    stop(), an error          handlers that run may finish, for `drain_timeout` seconds; then cancel, and commit
    the task is cancelled     handlers that run are cancelled; then commit

A thread cannot be cancelled: its handler runs on, and does not count. Dropped records are not committed, so they are
delivered again. The consumer keeps polling while everything is paused:
a slow handler costs neither the membership nor a rebalance of the group.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from kclient.change_signal import ChangeSignal, wait_any
from kclient.consumer.async_consumer import AsyncConsumer
from kclient.consumer.callbacks import LOST, REVOKED
from kclient.consumer.core import ConsumerCore
from kclient.errors import HandlerError, KclientError, UsageError, WakeupError
from kclient.handlers.calling import HandlerCaller
from kclient.handlers.in_flight import HandlingState, InFlight, InFlightRecord, Lane
from kclient.handlers.options import HandlerOptions
from kclient.handlers.progress import HandlerCounts, HandlerProgress, partition_progress, progress_of
from kclient.log import ThrottledLogger, get_logger
from kclient.network.backoff import Backoff
from kclient.records.records import Record, Records
from kclient.text import format_count, format_partitions
from kclient.types import OffsetAndMetadata, TopicPartition

log: Final = get_logger("kclient.handlers")

Partitions = tuple[TopicPartition, ...]
Handler = Callable[[Record[Any, Any]], Any]

POLL_SECONDS: Final = 1.0
MAX_HELD_BACK: Final = 10_000  # records of a partition that wait for one of them to be committed
FINAL_COMMIT_SECONDS: Final = 10.0
CANCELLED_SECONDS: Final = 2.0  # for the last commit of a run that was cancelled, and for cancelled handlers


class HandlerRunner:
    """One run, on the loop of its consumer."""

    def __init__(
        self, consumer: AsyncConsumer[Any, Any], handler: Handler, options: HandlerOptions, *, awaits: bool
    ) -> None:
        self.options = options
        self._consumer: Final = consumer
        self._core: ConsumerCore = consumer._core
        if self._core.config.enable_auto_commit:
            raise UsageError(
                "enable_auto_commit is on, so the consumer would commit records whose handlers have not finished. "
                "Handlers commit what they have finished: give the consumer enable_auto_commit=False."
            )
        self._handler = handler
        self._caller = HandlerCaller(options.concurrency, self._fail, awaits=awaits)
        self._in_flight = InFlight(options.ordered_by)
        self._counts = HandlerCounts()
        self._slots = asyncio.Semaphore(options.concurrency)
        self._lane_tasks: set[asyncio.Task[None]] = set()
        self._lane_ended = ChangeSignal()
        self._paused: set[TopicPartition] = set()
        self._full = False  # as many are in flight as may be; until half of them have finished
        self._stopping = False
        self._failure: BaseException | None = None
        self._next_commit = 0.0
        self._commit_in_flight = False
        self._throttled = ThrottledLogger(log)

    # --- the run

    async def run(self) -> HandlerProgress:
        """Handle records until `stop`. Raise HandlerError, and what poll() raises."""
        self._consumer._open()
        drain_seconds = self.options.drain_timeout
        with self._attached():
            try:
                await self._poll_until_stopped()
            except asyncio.CancelledError:
                await self._end(0.0)
                raise
            except Exception:
                await self._end(drain_seconds)
                raise
            await self._end(drain_seconds)
        if self._failure is not None:
            raise self._failure
        return self.progress()

    def stop(self) -> None:
        """Begin no further record, and let `run` return when the running handlers have finished."""
        self._stopping = True
        # At once: after a record that failed for good, its lane must not come to the next one.
        self._in_flight.drop(self._in_flight.partitions)
        self._core.changed.notify()

    def stop_from_thread(self) -> None:
        """Call `stop` from another thread, or from a signal handler."""
        self._stopping = True
        loop = self._consumer._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self.stop)

    def progress(self) -> HandlerProgress:
        """Return what this run is doing."""
        return progress_of(self._in_flight, self._counts, self._core.runtime.now())

    def pauses(self, tp: TopicPartition) -> bool:
        """Return whether this run has paused the partition, because enough is in flight."""
        return tp in self._paused

    def user_paused(self, tp: TopicPartition) -> None:
        """Leave it to the user when the partition is resumed."""
        self._paused.discard(tp)

    def user_resumed(self, tp: TopicPartition) -> None:
        """Keep a partition paused that has enough in flight, until it has room."""
        if self._full or tp in self._held_back():
            self._pause([tp])

    def describe(self, tp: TopicPartition | None = None) -> str:
        """Return one sentence for `explain()` about the run, or a partition; "" if nothing of it is in flight."""
        if tp is None:
            return self.progress().summary
        partition = self._in_flight.partitions.get(tp)
        if partition is None or not partition.records:
            return ""
        return str(partition_progress(partition, self._core.runtime.now()))

    @contextmanager
    def _attached(self) -> Iterator[None]:
        """Take part in the rebalances and in explain() of the consumer. Raise UsageError if another run does."""
        core, invoker = self._core, self._core.group.rebalance.invoker
        if core.handlers is not None:
            raise UsageError(
                "Handlers are running on this consumer already. One run polls a consumer. Raise `concurrency` for more "
                "at the same time, or make a consumer for each run."
            )
        core.handlers, invoker.on_rebalance = self, self._on_rebalance
        try:
            yield
        finally:
            core.handlers = invoker.on_rebalance = None

    async def _poll_until_stopped(self) -> None:
        backoff = Backoff.for_retries(self._core.config, self._core.runtime)
        while not self._stopping:
            self._commit_if_due()
            self._pause_and_resume()
            try:
                self._start(await self._poll())
                backoff.reset()
            except WakeupError:
                self.stop()
            except KclientError as exc:
                # Before the first connection a retriable error is a wrong address as often as an outage.
                if not (exc.retriable and self._core.lifecycle.running):
                    raise
                self._throttled.warning(
                    exc.kc_code, self._core.runtime.now(), "poll() failed and is called again: %s", exc
                )
                await asyncio.sleep(backoff.next())

    async def _poll(self) -> Records[Any, Any]:
        now = self._core.runtime.now()
        timeout = POLL_SECONDS
        if not self._commit_in_flight and self._committable():
            timeout = min(timeout, max(0.0, self._next_commit - now))
        room = max(1, self.options.most_in_flight - self._in_flight.count)
        self._consumer._open()
        return await self._core.polls.poll_until(timeout, room, self._is_due)

    def _is_due(self) -> bool:
        """Return whether a poll that waits for records shall return without any."""
        return self._stopping or (bool(self._paused) and self._may_resume())

    def _start(self, records: Records[Any, Any]) -> None:
        """Put the records of a poll in flight."""
        if not records.chunks:
            return
        try:
            lanes = self._in_flight.add(records, self._core.runtime.now())
        except UsageError:
            self._core.assigned.return_all()
            raise
        for lane in lanes:
            task = asyncio.create_task(self._run_lane(lane), name="kclient handler")
            self._lane_tasks.add(task)
            task.add_done_callback(self._lane_done)

    # --- back-pressure

    def _pause_and_resume(self) -> None:
        self._full = self._in_flight.count >= self._low_water if self._full else not self._has_room
        held_back = self._held_back()
        assigned = self._consumer.assignment()
        wanted = {tp for tp in assigned if self._full or tp in held_back}
        self._paused &= set(assigned)
        # A partition that the user has paused is neither paused nor resumed here.
        self._pause(wanted.difference(self._paused, self._consumer.paused()))
        if resumed := self._paused - wanted:
            self._resume(resumed)

    def _pause(self, partitions: Iterable[TopicPartition]) -> None:
        for tp in sorted(partitions):
            self._core.assigned.return_undelivered([tp])
            self._core.positions.pause(tp)
            self._paused.add(tp)

    def _resume(self, partitions: Iterable[TopicPartition]) -> None:
        for tp in sorted(partitions):
            self._core.positions.resume(tp)
            self._paused.discard(tp)

    def _may_resume(self) -> bool:
        if self._full:
            return self._in_flight.count < self._low_water
        return bool(self._paused - self._held_back())

    @property
    def _has_room(self) -> bool:
        return self._in_flight.count < self.options.most_in_flight

    @property
    def _low_water(self) -> int:
        """The number in flight at which reading goes on: each poll then returns more than a few records."""
        return max(1, self.options.most_in_flight // 2)

    def _held_back(self) -> set[TopicPartition]:
        """Return the partitions with too many finished records after an unfinished one; those paused, until half."""
        return {
            tp
            for tp, partition in self._in_flight.partitions.items()
            if len(partition.records) >= (MAX_HELD_BACK // 2 if tp in self._paused else MAX_HELD_BACK)
        }

    # --- handlers

    async def _run_lane(self, lane: Lane) -> None:
        while (record := self._in_flight.next(lane)) is not None:
            finished = False
            try:
                async with asyncio.timeout(None) as record.scope:
                    finished = await self._handle(record)
            except TimeoutError:
                pass  # the record was dropped while it waited, or cancelled
            finally:
                self._in_flight.end(record, finished=finished)
            self._ended()

    def _ended(self) -> None:
        self._lane_ended.notify()
        if self._paused and self._may_resume():
            self._core.changed.notify()

    def _lane_done(self, task: asyncio.Task[None]) -> None:
        self._lane_tasks.discard(task)
        self._lane_ended.notify()
        if not task.cancelled() and (exc := task.exception()) is not None:
            self._fail(exc)

    async def _handle(self, record: InFlightRecord) -> bool:
        """Call the handler until it returns. Return whether the record has finished, or is a dead letter."""
        options = self.options
        backoff = Backoff(options.retry_backoff_ms, options.retry_backoff_max_ms, self._core.runtime.rng)
        while not record.is_dropped():
            async with self._slots:
                if record.is_dropped():
                    break
                failure = await self._attempt(record)
            if failure is None:
                self._counts.handled += 1
                return True
            if record.is_dropped():
                break
            record.failure = type(failure).__name__
            if record.attempts > options.retries or self._caller.returns_coroutines:
                return await self._give_up(record, failure)
            self._counts.retries += 1
            seconds = backoff.next()
            self._log_retry(record, seconds)
            record.state = HandlingState.BACKING_OFF
            await asyncio.sleep(seconds)
            record.state = HandlingState.WAITING
        return False

    async def _attempt(self, record: InFlightRecord) -> Exception | None:
        """Call the handler once. Return what it raised."""
        record.state = HandlingState.RUNNING
        record.attempts += 1
        try:
            return await self._caller.call(record, self._handler, record.record)
        finally:
            record.state = HandlingState.WAITING

    async def _give_up(self, record: InFlightRecord, failure: Exception) -> bool:
        """Make the record a dead letter. Without a function for them, or if that raises, stop the run."""
        dead_letter = None if self._caller.returns_coroutines else self.options.dead_letter
        if dead_letter is not None:
            record.state = HandlingState.RUNNING
            refused = await self._caller.call(record, dead_letter, record.record, failure)
            if refused is None:
                self._counts.dead_letters += 1
                self._throttled.warning(
                    ("dead letter", record.partition.tp),
                    self._core.runtime.now(),
                    "%s offset %d is a dead letter: its handler raised %s in %s",
                    record.partition.tp,
                    record.offset,
                    record.failure,
                    format_count(record.attempts, "attempt"),
                )
                return True
            failure = refused
        self._fail(handler_error(record, failure, is_dead_letter=dead_letter is not None))
        return False

    def _log_retry(self, record: InFlightRecord, seconds: float) -> None:
        self._throttled.warning(
            record.partition.tp,
            self._core.runtime.now(),
            "the handler raised %s for %s offset %d (attempt %d of %d) and is called again in %.1f s",
            record.failure,
            record.partition.tp,
            record.offset,
            record.attempts,
            self.options.retries + 1,
            seconds,
        )

    def _fail(self, failure: BaseException) -> None:
        if self._failure is None:
            self._failure = failure
        self.stop()

    # --- commits

    def _committable(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what no commit has sent yet."""
        return {
            tp: partition.committable
            for tp, partition in self._in_flight.partitions.items()
            if partition.committable is not None and partition.committable != partition.sent
        }

    def _commit_if_due(self) -> None:
        now = self._core.runtime.now()
        if now < self._next_commit or self._commit_in_flight:
            return
        if not (offsets := self._committable()):
            return
        self._next_commit = now + self.options.commit_interval
        self._commit_in_flight = True
        self._note_sent(offsets)
        self._consumer.commit_async(offsets, callback=self._committed)

    def _committed(self, offsets: Any, error: KclientError | None) -> None:
        # On the user's thread for a Consumer, so the loop's time is not to be had here; `kclient.commit` has logged it.
        if error is not None:
            self._forget_sent()
        self._commit_in_flight = False

    async def _commit(self, partitions: Iterable[TopicPartition], timeout: float) -> None:
        """Commit what is committable of these. An error is logged: the records are delivered again."""
        wanted = set(partitions)
        offsets = {tp: offset for tp, offset in self._committable_or_sent().items() if tp in wanted}
        if not offsets:
            return
        self._note_sent(offsets)
        try:
            with self._core.timeouts.undisturbed():
                await self._consumer.commit(offsets, timeout)
        except KclientError as exc:
            self._forget_sent()
            log.warning("the commit of handled records failed; they may come again: %s", exc)

    def _committable_or_sent(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what is committable; with what an asynchronous commit has sent that is in flight, and may fail."""
        if not self._commit_in_flight:
            return self._committable()
        partitions = self._in_flight.partitions.items()
        return {
            tp: partition.committable for tp, partition in partitions if partition.committable is not None
        }

    def _note_sent(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        for tp, offset in offsets.items():
            self._in_flight.partitions[tp].sent = offset

    def _forget_sent(self) -> None:
        """Send everything that is committable again with the next commit."""
        for partition in tuple(self._in_flight.partitions.values()):
            partition.sent = None

    # --- rebalances, and the end

    async def _on_rebalance(self, method: str, partitions: Partitions) -> None:
        """Run before the user's listener, inside the call that runs it."""
        if method == REVOKED:
            await self._revoke(partitions)
        elif method == LOST:
            self._in_flight.forget(partitions)
        elif self._full:
            self._pause(partitions)
        if method in (REVOKED, LOST):
            self._paused.difference_update(partitions)

    async def _revoke(self, partitions: Partitions) -> None:
        limit = self._core.config.max_poll_interval_ms / 2000
        self._in_flight.drop(partitions)
        await self._wait_for_running(partitions, min(self.options.drain_timeout, limit))
        await self._commit(partitions, min(FINAL_COMMIT_SECONDS, limit))
        self._in_flight.forget(partitions)

    async def _wait_for_running(self, partitions: Partitions, timeout: float) -> None:
        """Wait until no handler of these partitions runs. Log those that still run after `timeout` seconds."""
        deadline = self._core.runtime.now() + timeout
        while running := self._in_flight.running(partitions):
            left = deadline - self._core.runtime.now()
            if left <= 0:
                where = format_partitions(f"{one.partition.tp} offset {one.offset}" for one in running)
                log.warning(
                    "handlers have not finished within %g s; their records come again: %s", timeout, where
                )
                return
            await wait_any((self._lane_ended, self._lane_ended.count), timeout=left)

    async def _end(self, drain_seconds: float) -> None:
        """Drop what waits, wait for what runs, commit, and leave the positions on what has not finished.

        A cancellation skips to the next step, but never the last one: the next poll must return what has not finished.
        """
        self.stop()
        partitions = tuple(self._in_flight.partitions)
        try:
            if drain_seconds:
                await self._wait_for_running(partitions, drain_seconds)
        finally:
            try:
                await self._cancel_lanes()
                if self._is_open:
                    await self._commit(
                        partitions, FINAL_COMMIT_SECONDS if drain_seconds else CANCELLED_SECONDS
                    )
            finally:
                self._caller.close()
                if self._is_open:
                    self._rewind()

    @property
    def _is_open(self) -> bool:
        return not self._consumer.closed and not self._core.timeouts.closing

    async def _cancel_lanes(self) -> None:
        if lanes := set(self._lane_tasks):
            for task in lanes:
                task.cancel()
            await asyncio.wait(lanes, timeout=CANCELLED_SECONDS)

    def _rewind(self) -> None:
        """Move the positions back to the first unfinished records, so that the next poll returns them."""
        assigned = set(self._consumer.assignment())
        self._resume(self._paused & assigned)
        for tp, partition in self._in_flight.partitions.items():
            if tp in assigned and (offset := partition.resume_at) is not None:
                self._consumer.seek(tp, offset)


def handler_error(record: InFlightRecord, failure: Exception, *, is_dead_letter: bool) -> HandlerError:
    """Return the error of a record that its handler has refused for good."""
    tp, raised = record.partition.tp, type(failure).__name__
    what = (
        f"The dead_letter function raised {raised} for"
        if is_dead_letter
        else f"The handler raised {raised} for"
    )
    tries = format_count(record.attempts, "attempt")
    error = HandlerError(
        f"{what} {tp} offset {record.offset} after {tries}. It has not finished, so neither its "
        "offset nor a later one of its partition is committed. See the cause; mend the handler, or give dead_letter a "
        "function that keeps such records, and run again.",
        topic=tp.topic,
        partition=tp.partition,
        offset=record.offset,
        attempts=record.attempts,
    )
    error.__cause__ = failure
    return error
