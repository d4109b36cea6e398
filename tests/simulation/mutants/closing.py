"""Bugs of close() and unsubscribe(), M-130 to M-137."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kclient import sync
from kclient.consumer import close
from kclient.consumer.callbacks import CallbackQueue
from kclient.consumer.commits import CommitManager
from kclient.consumer.core import ConsumerCore
from kclient.consumer.processing import TaskProcessing, exception_since
from kclient.consumer.tasks import CallTimeouts, closed_error
from tests.simulation.mutants import closing_scripts, plans
from tests.simulation.mutants.table import Patch, mutant


@mutant("M-130", "I-24", look=plans.looking_at(plans.RESTLESS))
def wakeup_ends_close(patch: Patch) -> None:
    """Let a wakeup reach close(), and what its listener calls."""

    def wakeup(self: CallTimeouts) -> None:
        self._woken = True
        self._end(self._wakeable, self._wakeup_error)

    def close(self: CallTimeouts) -> None:
        self.closing = True
        self._end(self._scopes, closed_error)

    patch.put(CallTimeouts, "wakeup", wakeup)
    patch.put(CallTimeouts, "close", close)


@mutant("M-131", "I-24", look=plans.looking_at(plans.RESTLESS))
def wakeup_ends_unsubscribe(patch: Patch) -> None:
    """Let a wakeup reach what the listener calls in unsubscribe()."""

    @contextmanager
    def undisturbed(self: CallTimeouts) -> Iterator[None]:
        yield

    patch.put(CallTimeouts, "undisturbed", undisturbed)


@mutant("M-132", "I-24", look=closing_scripts.commit_before_connected)
def unconnected_commits_dropped(patch: Patch) -> None:
    """Forget the asynchronous commits of a consumer that is closed before it was connected."""

    async def part(session: ConsumerCore, deadline: float, *, running: bool, **how: Any) -> Exception | None:
        return await before(session, deadline, running=running, **how) if running else None  # type: ignore[no-any-return]

    before = patch.put(close, "_leave_group", part)


@mutant("M-133", "I-24", look=closing_scripts.commit_without_answer)
def unanswered_commits_dropped(patch: Patch) -> None:
    """Forget the asynchronous commits that have no response when close() has no time left."""

    async def end(self: CommitManager, until: float, give_up: Any) -> None:
        await asyncio.wait(
            {asyncio.ensure_future(self.wait_for_responses())}, timeout=until - self._runtime.now()
        )

    patch.put(CommitManager, "end", end)


@mutant("M-134", "I-01", look=plans.looking_at(plans.DYING))
def exception_in_flight_ignored(patch: Patch) -> None:
    """Commit the current record at a close() in a finally, whatever the exception."""
    patch.put(TaskProcessing, "interrupted", lambda self: self._is_unfinished())


@mutant("M-135", "I-01", look=plans.looking_at(plans.DYING))
def cancelled_reader_ignored(patch: Patch) -> None:
    """Commit the current record of a task that was cancelled, or that has not asked for the next one."""
    patch.put(TaskProcessing, "interrupted", lambda self: exception_since(self._handled))


@mutant("M-136", "I-01", look=closing_scripts.another_thread_closes)
def other_thread_ignored(patch: Patch) -> None:
    """Commit the current record of another thread."""
    patch.put(sync.ThreadProcessing, "interrupted", lambda self: exception_since(self._handled))


@mutant("M-137", "I-24", look=closing_scripts.callbacks_that_raise)
def callback_keeps_others(patch: Patch) -> None:
    """Run no callback after one that raised."""

    async def run_all(work: CallbackQueue) -> None:
        await work.run()

    patch.put(close, "_run_all", run_all)
