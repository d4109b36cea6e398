"""Whether the application has processed the delivered records, as far as that can be seen when it closes.

close() commits the delivered records only if the application has processed them. It counts as asking for the next
record, unless one of these shows that they may be half processed:

    an exception is being handled that was not when the records were delivered      with, finally, contextlib.closing
    the task that took them was cancelled since, also if it caught the exception    task.cancel(), and a lifespan
    that task failed, or is still running and another task closes                   the loop in a task of its own
    another thread than the one that took them closes                               the loop in a thread of its own

The task that called poll() has the records, also if another task awaits them: `create_task(consumer.poll())`, `gather`,
and `wait_for` before Python 3.12. For `anext(consumer)` in such a task the caller is not known, because a check of each
record would slow down iteration; the record counts as half processed.

`ThreadProcessing` of the sync facade implements the last row: a thread, unlike a task, does not show how it ended. A
record whose exception was caught in an except block that is over counts as processed.
"""

from __future__ import annotations

import asyncio
import sys


class TaskProcessing:
    """Whether the task that took the delivered records has processed them."""

    def __init__(self) -> None:
        self._task: asyncio.Task[object] | None = None
        self._cancels = 0
        self._handled: BaseException | None = None

    def taken(self, caller: asyncio.Task[object] | None = None) -> None:
        """Note that a task takes records: `caller`, or the running task.

        An exception that is being handled already has nothing to do with them.
        """
        self._task = task = caller or asyncio.current_task()
        self._cancels = 0 if task is None else task.cancelling()
        self._handled = sys.exception()

    def interrupted(self) -> bool:
        """Return whether they may be half processed. Call it in the task that closes."""
        return self.raising() or self._is_unfinished()

    def raising(self) -> bool:
        """Return whether an exception is being handled that was not when they were taken."""
        return exception_since(self._handled)

    def _is_unfinished(self) -> bool:
        task = self._task
        if task is None:
            return False
        if task.cancelling() > self._cancels:
            return True
        if task is calling_task():
            return False
        if not task.done() or task.cancelled() or _only_awaits_next(task):
            return True
        return bool(
            task.get_stack(limit=1)
        )  # `exception()` would keep asyncio from logging one that is never retrieved


def _only_awaits_next(task: asyncio.Task[object]) -> bool:
    """Return whether this task only ran `anext(consumer)`, so that another task processes the record."""
    return getattr(task.get_coro(), "__name__", "") == "__anext__"


def calling_task() -> asyncio.Task[object] | None:
    """Return the calling task, None outside of a loop: asyncio.run(consumer.poll()) calls poll before the loop runs."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def exception_since(handled: BaseException | None) -> bool:
    """Return whether an exception other than `handled` is being handled."""
    exc = sys.exception()
    return exc is not None and exc is not handled
