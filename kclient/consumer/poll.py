"""poll(): run the steps that background tasks have left, then return records or wait for a change.

The steps, in this order, repeated after every change until there are records or the timeout has passed:

1  wakeup, close                 the call was interrupted before anything below has begun
2  poll timer, missing topics    a member that polls stays in the group, even if a step below raises
3  commit callbacks              in the order of their commits, before a listener that may need the results
4  join                          a subscribed consumer joins its group with its first poll
5  steps of a rebalance          automatic commit before the revocation, on_partitions_revoked, _lost, _assigned:
                                 the whole group waits for these
6  automatic commit              if due, and of what is assigned now
7  first positions               the lookup of committed offsets for new partitions begins, after any commit in
                                 on_partitions_assigned
8  errors                        one error: the oldest that the user's code raised in 3 and 5, else the first that a
                                 background task stored (group, metadata, positions, fetches, missing topics). Raised
                                 only here, so that an error that every poll raises does not block callbacks or the
                                 group. A stored error waits while a rebalance needs more steps and there is time
9  records                       buffered records are decoded in the caller's context, positions move, interceptors
                                 run. Nothing is raised between moving the positions and returning the records

Polls for iteration read ahead in step 9, and skip the others while nothing is due: `read_ahead.py`. `gather` uses the
same place for records that wait until a batch is full; they count as not handed out meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from kclient.change_signal import ChangeSignal, wait_any
from kclient.config import Config
from kclient.consumer.assigned import AssignedPartitions
from kclient.consumer.callbacks import CallbackQueue, inside, is_inside
from kclient.consumer.delivered import DeliveredRecords, UndecodedRecords, nothing_delivered
from kclient.consumer.group import GroupConsumer
from kclient.consumer.interceptors import Interceptors
from kclient.consumer.missing_topics import MissingTopics
from kclient.consumer.read_ahead import ReadAhead
from kclient.consumer.subscription import SubscriptionKind, SubscriptionState
from kclient.consumer.subscription_updater import SubscriptionUpdater
from kclient.consumer.tasks import CallTimeouts, Lifecycle, closed_error
from kclient.errors import ConcurrentUseError, DeadlineError, KclientError, UsageError, WakeupError
from kclient.fetch.delivery import DecodeTask, RecordDelivery
from kclient.metrics.calls import CallMetrics
from kclient.records.records import Records
from kclient.runtime import Runtime

Decode = Callable[[DecodeTask], Awaitable[None]]
TakeError = Callable[[], KclientError | None]

GATHERED_AT_ONCE: Final = 10_000  # records, between two looks at the size of a batch


class Poll:
    """The polls of one consumer, one at a time."""

    def __init__(
        self,
        runtime: Runtime,
        changed: ChangeSignal,
        timeouts: CallTimeouts,
        lifecycle: Lifecycle,
        subscription: SubscriptionState,
        assigned: AssignedPartitions,
        steps: PollSteps,
        errors: BackgroundErrors,
        collector: RecordCollector,
        read_ahead: ReadAhead,
        metrics: CallMetrics,
    ) -> None:
        self._runtime = runtime
        self._changed = changed
        self._timeouts = timeouts
        self._lifecycle = lifecycle
        self._subscription = subscription
        self._assigned = assigned
        self._steps = steps
        self._errors = errors
        self._collector = collector
        self._read_ahead = read_ahead
        self._metrics = metrics
        self._inside: asyncio.Task[Any] | None = None
        self._ended = ChangeSignal()

    async def poll(self, timeout: float, max_records: int, *, one_by_one: bool = False) -> Records[Any, Any]:
        """Return records, or none after `timeout` seconds or if only positions moved. Read ahead if `one_by_one`."""
        ahead = one_by_one and self._read_ahead.allowed
        with self._inside_poll():
            self._begin(keeps_ahead=ahead)
            return await self._poll(
                timeout, lambda: self._next_records(max_records, one_by_one=one_by_one, ahead=ahead)
            )

    async def poll_until(
        self, timeout: float, max_records: int, until: Callable[[], bool]
    ) -> Records[Any, Any]:
        """Return records, or none after `timeout` seconds or when `until`, asked after each change, returns True."""

        async def next_records() -> Records[Any, Any] | None:
            records = await self._next_records(max_records, one_by_one=False, ahead=False)
            return self._collector.no_records() if records is None and until() else records

        with self._inside_poll():
            self._begin(keeps_ahead=False)
            return await self._poll(timeout, next_records)

    async def gather(self, timeout: float, max_records: int, max_bytes: int) -> Records[Any, Any]:
        """Return records of several polls: `max_records`, or about `max_bytes`, or what is there after `timeout` s."""
        with self._inside_poll():
            # More records wait if they were read ahead for iteration, or for a larger batch: they are fetched again.
            ahead = self._assigned.delivered.ahead
            self._begin(keeps_ahead=ahead.count <= max_records and ahead.size_bytes <= max_bytes)
            records = await self._poll(timeout, lambda: self._collector.next_batch(max_records, max_bytes))
            return records if records.chunks else await self._collector.hand_out_gathered()

    @property
    def is_under_way(self) -> bool:
        """Whether a task is inside a poll."""
        return self._inside is not None

    async def wait_until_ended(self, timeout: float) -> None:
        """Wait until the poll() of another task has ended, unless it waits for this call: its listener closes."""
        if self._inside is not None and not is_inside(self):
            await wait_any((self._ended, self._ended.count), timeout=timeout)

    def unraised_error(self) -> Exception | None:
        """Return the oldest error of the user's code that no poll has raised. close() ignores WakeupError."""
        return next((exc for exc in self._steps.errors if not isinstance(exc, WakeupError)), None)

    async def _poll(
        self, timeout: float, next_records: Callable[[], Awaitable[Records[Any, Any] | None]]
    ) -> Records[Any, Any]:
        """Take the steps of the module's table until `next_records` returns some."""
        deadline = self._runtime.now() + timeout
        while True:
            # Before the state is read: a change during the steps ends the wait below.
            seen = self._changed.count
            self._read_ahead.note_changes()
            self._timeouts.check()
            self._check_open()
            if self._lifecycle.running or await self._started(deadline):
                await self._steps.run()
                self._check_open()  # a listener, or another task during the listener, may have closed
                self._raise_errors(deadline)
                if (records := await next_records()) is not None:
                    return records
            else:
                # Of a manual assignment: looked up once a broker is reached.
                self._assigned.positions.start_deferred_lookups()
            if self._runtime.now() >= deadline:
                await asyncio.sleep(0)  # a loop of poll(0) must let the background tasks run
                return self._collector.no_records()
            await self._wait_for_change(seen, deadline)

    async def _next_records(
        self, max_records: int, *, one_by_one: bool, ahead: bool
    ) -> Records[Any, Any] | None:
        if self._assigned.delivered.ahead:
            self._assigned.return_of_deleted_topics()
        if self._assigned.delivered.ahead:
            return self._read_ahead.hand_out_first()
        records = await self._collector.collect(max_records)
        if records is None:
            return None
        records = await self._collector.hand_out(records, one_by_one=one_by_one)
        if ahead:
            self._read_ahead.read(max_records)
        return records

    def _begin(self, *, keeps_ahead: bool) -> None:
        """Make the last records committable, and move positions back to records that iteration has not handed out.

        Records read ahead stay for iteration that has handed out all before them.
        """
        if self._subscription.kind is SubscriptionKind.NONE:
            raise UsageError("poll() has nothing to read. Call subscribe() or assign() first.")
        last = self._assigned.delivered
        if not (keeps_ahead and last.all_handed_out):
            self._assigned.return_undelivered()
        self._assigned.delivered = nothing_delivered(last.ahead)

    def _check_open(self) -> None:
        if not self._timeouts.closing:
            return
        if self._steps.errors and self._lifecycle.ending is not None:
            raise self._steps.errors.popleft()  # a listener closed, then raised: close() is over and did not raise it
        raise closed_error()

    async def _started(self, deadline: float) -> bool:
        left = max(0.0, deadline - self._runtime.now())
        try:
            async with self._timeouts.limit(left, "the first connection"):
                await self._lifecycle.start()
        except DeadlineError as exc:
            if exc.waiting_for != "the first connection":
                raise
        return self._lifecycle.running

    def _raise_errors(self, deadline: float) -> None:
        """Raise one error: the oldest of the user's code, else the first that a background task has stored.

        A stored error waits while a rebalance needs this poll, but never beyond the deadline: an application that logs
        the error and pauses would otherwise need a poll, and a pause, for every step of the rebalance.
        """
        if self._steps.errors:
            raise self._steps.errors.popleft()
        if self._steps.rebalance_under_way and self._runtime.now() < deadline:
            return
        self._errors.raise_fenced()
        self._errors.raise_first()

    async def _wait_for_change(self, seen: int, deadline: float) -> None:
        now = self._runtime.now()
        times = [deadline, *self._steps.due_times(now)]
        if self._runtime.buggify("poll looks again for no reason"):
            times.append(now)
        try:
            async with asyncio.timeout_at(min(times)):
                await self._changed.wait(seen)
        except TimeoutError:
            return

    @contextmanager
    def _inside_poll(self) -> Iterator[None]:
        with self._exclusive(), inside(self):
            self._metrics.poll_started()
            try:
                yield
            finally:
                self._metrics.poll_ended()

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        task = asyncio.current_task()
        if self._inside is not None:
            inside, caller = (
                self._inside.get_name(),
                task.get_name() if task is not None else "an unknown task",
            )
            raise ConcurrentUseError(
                f"{caller} called poll() while {inside} is inside it. One task polls at a time, and a listener does "
                "not poll. Poll from one task, or give each task a consumer of its own.",
                inside=inside,
                caller=caller,
            )
        self._inside = task
        try:
            yield
        finally:
            self._inside = None
            self._ended.notify()


class PollSteps:
    """Steps 2 to 7. `errors` are those of the user's code that no poll has raised."""

    def __init__(
        self,
        config: Config,
        runtime: Runtime,
        callbacks: CallbackQueue,
        rebalance_steps: CallbackQueue,
        updater: SubscriptionUpdater,
        assigned: AssignedPartitions,
        missing_topics: MissingTopics,
        group: GroupConsumer | None,
    ) -> None:
        self.errors: deque[Exception] = deque()
        self._config = config
        self._runtime = runtime
        self._callbacks = callbacks
        self._rebalance_steps = rebalance_steps
        self._updater = updater
        self._assigned = assigned
        self._missing_topics = missing_topics
        self._group = group

    async def run(self) -> None:
        """Run the steps. An error of the user's code does not stop the next step."""
        if self._group is not None:
            self._group.membership.poll_started()
        self._missing_topics.check(self._runtime.now())
        if self._callbacks:
            await self._run(self._callbacks)
        self._updater.join_group()
        if self._rebalance_steps:
            await self._run(self._rebalance_steps)
        if self._group is not None and self._group.commits.auto_commit_due():
            self._group.auto_commit()
        self._assigned.positions.start_deferred_lookups()

    async def _run(self, work: CallbackQueue) -> None:
        """Run the queue, and keep its error until all steps have run."""
        try:
            await work.run()
        except Exception as exc:  # noqa: BLE001 – raised after all steps
            self.errors.append(exc)

    @property
    def rebalance_under_way(self) -> bool:
        """Whether a rebalance waits for more of these steps."""
        return self._group is not None and self._group.rebalance.under_way

    def due_times(self, now: float) -> list[float]:
        """Return when a waiting poll must run the steps again even if nothing has changed."""
        # The poll timer is restarted well before its end.
        times = [now + self._config.max_poll_interval_ms / 3000]
        if (check_at := self._missing_topics.next_check()) is not None:
            times.append(check_at)
        if self._group is not None and (due := self._group.commits.auto_commit_at()) is not None:
            times.append(due)
        return times


class BackgroundErrors:
    """The errors of background tasks, which the next call raises; those of the group come first."""

    def __init__(self, group: GroupConsumer | None, sources: tuple[TakeError, ...]) -> None:
        self._group = group
        self._sources = sources

    def raise_fenced(self) -> None:
        """Raise FENCED_INSTANCE_ID if another consumer has taken over the group instance id."""
        if self._group is not None:
            self._group.commits.raise_if_fenced()

    def raise_first(self) -> None:
        """Raise the first error that a background task has stored."""
        if self._group is not None:
            error = self._group.take_error()
            if error is not None and not self._group.fall_back(error):
                raise error
        for take_error in self._sources:
            if (error := take_error()) is not None:
                raise error


class RecordCollector:
    """Step 9: decodes buffered records, and passes them to the interceptors and to the application."""

    def __init__(
        self,
        config: Config,
        runtime: Runtime,
        delivery: RecordDelivery,
        decode: Decode,
        undecoded: UndecodedRecords,
        interceptors: Interceptors,
        assigned: AssignedPartitions,
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._delivery = delivery
        self._decode = decode
        self._undecoded = undecoded
        self._interceptors = interceptors
        self._assigned = assigned

    async def collect(self, max_records: int) -> Records[Any, Any] | None:
        """Decode buffered records, move the positions. Return None if there are none, or if they were out of date.

        An error of the next records waits while others are gathered: the poll that hands out nothing else raises it.
        """
        task = self._delivery.begin(max_records, ahead=bool(self._assigned.delivered.ahead))
        if task is None:
            return None
        await self._decode(task)
        if self._runtime.buggify("others run while records are decoded"):
            await asyncio.sleep(0)
        records = self._delivery.finish(task)
        self._undecoded.note(records.chunks, self._runtime.now())
        return records if records.chunks else None

    async def next_batch(self, max_records: int, max_bytes: int) -> Records[Any, Any] | None:
        """Gather records. Return them when there are enough; until then None, and the poll waits for a change."""
        while True:
            gathered = self._assigned.delivered.ahead
            if gathered.count >= max_records or gathered.size_bytes >= max_bytes:
                return await self.hand_out_gathered()
            records = await self.collect(min(max_records - gathered.count, GATHERED_AT_ONCE))
            if records is None:
                return None
            self._assigned.delivered.ahead.add(records)

    async def hand_out_gathered(self) -> Records[Any, Any]:
        """Hand out what was gathered, as the records of one poll."""
        chunks = self._assigned.delivered.ahead.chunks()
        records = Records[Any, Any](chunks, keeps_errors=self._config.on_decode_error == "keep")
        return await self.hand_out(records, one_by_one=False)

    async def hand_out(self, records: Records[Any, Any], *, one_by_one: bool) -> Records[Any, Any]:
        """Run the interceptors. If they are interrupted, move the positions back: no record may be lost."""
        self._assigned.delivered = delivered = DeliveredRecords(records, one_by_one=one_by_one)
        if self._interceptors:
            try:
                records = await self._interceptors.on_consume(records)
            except BaseException:
                self._assigned.return_all()
                raise
            delivered.replace(records)
        return records

    def no_records(self) -> Records[Any, Any]:
        """Return the result of a poll without records."""
        return Records(keeps_errors=self._config.on_decode_error == "keep")
