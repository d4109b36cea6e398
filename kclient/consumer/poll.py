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
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kclient.change_signal import ChangeSignal, wait_any
from kclient.consumer.callbacks import CallbackQueue, inside, is_inside
from kclient.consumer.core import ConsumerCore
from kclient.consumer.delivered import DeliveredRecords, nothing_delivered
from kclient.consumer.subscription import SubscriptionKind
from kclient.consumer.tasks import closed_error
from kclient.errors import ConcurrentUseError, DeadlineError, UsageError, WakeupError
from kclient.records.records import Records


class Poll:
    """The polls of one consumer, one at a time."""

    def __init__(self, core: ConsumerCore) -> None:
        self._core = core
        self._inside: asyncio.Task[Any] | None = None
        self._errors: deque[Exception] = deque()  # of the user's code, not raised yet
        self._left = ChangeSignal()

    async def poll(self, timeout: float, max_records: int, *, one_by_one: bool = False) -> Records[Any, Any]:
        """Return records, or none after `timeout` seconds or if only positions moved."""
        with self._alone(), inside(self):
            calls = self._core.metrics.calls
            calls.poll_started()
            try:
                return await self._poll(timeout, max_records, one_by_one=one_by_one)
            finally:
                calls.poll_ended()

    async def wait_until_left(self, timeout: float) -> None:
        """Wait until the polling task has left poll(), unless it waits for this call: a listener or callback closes."""
        if self._inside is not None and not is_inside(self):
            await wait_any((self._left, self._left.count), timeout=timeout)

    async def _poll(self, timeout: float, max_records: int, *, one_by_one: bool) -> Records[Any, Any]:
        core = self._core
        deadline = core.runtime.now() + timeout
        self._begin()
        while True:
            seen = core.changed.count
            core.timeouts.check()
            self._check_open()
            if core.running or await self._started(deadline):
                await self._run_due_steps()
                self._check_open()  # a listener, or another task during the listener, may have closed
                self._raise_errors(deadline)
                records = await self._deliver(max_records)
                if records is not None:
                    return await self._hand_out(records, one_by_one=one_by_one)
            else:
                core.positions.start_deferred_lookups()  # of a manual assignment, once a broker is reached
            if core.runtime.now() >= deadline:
                await asyncio.sleep(0)  # a loop of poll(0) must let the background tasks run
                return Records(keeps_errors=core.config.on_decode_error == "keep")
            await self._wait_for_change(seen, deadline)

    def _begin(self) -> None:
        """Make the last records committable, and move positions back to records that iteration has not handed out."""
        core = self._core
        if core.subscription.kind is SubscriptionKind.NONE:
            raise UsageError("poll() has nothing to read. Call subscribe() or assign() first.")
        core.return_undelivered()
        core.delivered = nothing_delivered()

    def _check_open(self) -> None:
        if not self._core.timeouts.closing:
            return
        if self._errors and self._core.ending is not None:
            raise self._errors.popleft()  # a listener has closed and then raised: close() is over and could not
        raise closed_error()

    async def _started(self, deadline: float) -> bool:
        core = self._core
        try:
            async with core.timeouts.limit(max(0.0, deadline - core.runtime.now()), "the first connection"):
                await core.start()
        except DeadlineError as exc:
            if exc.waiting_for != "the first connection":
                raise
        return core.running

    async def _run_due_steps(self) -> None:
        """Run steps 2 to 7 of the table. An error of the user's code does not stop the next step."""
        core = self._core
        if core.group_or_none is not None:
            core.group.poll_started()
        core.missing_topics.check(core.runtime.now())
        if core.callbacks:
            await self._run(core.callbacks)
        core.join_group()
        if core.rebalance_steps:
            await self._run(core.rebalance_steps)
        if core.group_or_none is not None and core.group.commits.auto_commit_due():
            core.group.auto_commit()
        core.positions.start_deferred_lookups()

    async def _run(self, work: CallbackQueue) -> None:
        """Run the queue, and keep its error for `_raise_errors`."""
        try:
            await work.run()
        except Exception as exc:  # noqa: BLE001 – raised after all steps
            self._errors.append(exc)

    def unraised_error(self) -> Exception | None:
        """Return the oldest error of the user's code that no poll has raised. close() ignores WakeupError."""
        return next((exc for exc in self._errors if not isinstance(exc, WakeupError)), None)

    def _raise_errors(self, deadline: float) -> None:
        """Raise one error: the oldest of the user's code, else the first that a background task has stored.

        A stored error waits while a rebalance needs this poll, but never beyond the deadline: an application that logs
        the error and pauses would otherwise need a poll, and a pause, for every step of the rebalance.
        """
        core = self._core
        if self._errors:
            raise self._errors.popleft()
        if core.group_or_none is not None:
            if core.group.rebalance.under_way and core.runtime.now() < deadline:
                return
            core.group.commits.raise_if_fenced()
        core.raise_stored()

    async def _deliver(self, max_records: int) -> Records[Any, Any] | None:
        """Decode buffered records. Return None if there are none, or if they were out of date."""
        task = self._core.delivery.begin(max_records)
        if task is None:
            return None
        core = self._core
        await core.decode(task)
        if core.runtime.buggify("others run while records are decoded"):
            await asyncio.sleep(0)
        records = core.delivery.finish(task)
        core.undecoded.note(records.chunks, core.runtime.now())
        return records if records.chunks else None

    async def _hand_out(self, records: Records[Any, Any], *, one_by_one: bool) -> Records[Any, Any]:
        """Run the interceptors. If they are interrupted, move the positions back: no record may be lost."""
        core = self._core
        core.delivered = delivered = DeliveredRecords(records, one_by_one=one_by_one)
        if core.interceptors:
            try:
                records = await core.interceptors.on_consume(records)
            except BaseException:
                core.return_all()
                raise
            delivered.replace(records)
        return records

    async def _wait_for_change(self, seen: int, deadline: float) -> None:
        core = self._core
        now = core.runtime.now()
        times = [deadline, now + core.config.max_poll_interval_ms / 3000]
        if core.runtime.buggify("poll looks again for no reason"):
            times.append(now)
        if (check_at := core.missing_topics.next_check()) is not None:
            times.append(check_at)
        if core.group_or_none is not None and (due := core.group.commits.auto_commit_at()) is not None:
            times.append(due)
        try:
            async with asyncio.timeout_at(min(times)):
                await core.changed.wait(seen)
        except TimeoutError:
            return

    @contextmanager
    def _alone(self) -> Iterator[None]:
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
            self._left.notify()
