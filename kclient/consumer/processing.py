"""Whether the application has processed the records in hand: close() commits them only then.

close() counts as asking for the next record, unless one of these says that the records may be half processed:

    an exception is being handled that was not yet when the records were taken      with, finally, contextlib.closing
    the task that took them was cancelled since, whatever became of the exception   task.cancel(), and a lifespan
    that task failed, or has not ended and another one closes                       the loop in a task of its own
    another thread than the one that took them closes                               the loop in a thread of its own

The task that asks has the records, also where another one waits for them: `create_task(consumer.poll())`, `gather`, and
`wait_for` before Python 3.12. Of `anext(consumer)` in such a task it is not known which one asked: looking at every
record would slow down iteration, so it counts as half processed.

`ThreadProcessing` of the sync facade holds the last line: a thread, unlike a task, leaves no trace of how it ended. A
record whose exception the application has caught, and whose except block is over, counts as processed.
"""

from __future__ import annotations

import asyncio
import sys


class TaskProcessing:
    """The records in hand, as taken by a task."""

    def __init__(self) -> None:
        self._task: asyncio.Task[object] | None = None
        self._cancels = 0
        self._handled: BaseException | None = None

    def taken(self, asking: asyncio.Task[object] | None = None) -> None:
        """This task takes records, or the running one. An exception that is handled already says nothing about them."""
        self._task = task = asking or asyncio.current_task()
        self._cancels = 0 if task is None else task.cancelling()
        self._handled = sys.exception()

    def interrupted(self) -> bool:
        """Whether they may be half processed, judged in the task that closes."""
        return self.raising() or self._is_unfinished()

    def raising(self) -> bool:
        """Whether an exception is being handled that was not yet when they were taken."""
        return exception_since(self._handled)

    def _is_unfinished(self) -> bool:
        task = self._task
        if task is None:
            return False
        if task.cancelling() > self._cancels:
            return True
        if task is asking_task():
            return False
        if not task.done() or task.cancelled() or _only_asked(task):
            return True
        return bool(
            task.get_stack(limit=1)
        )  # `exception()` would keep asyncio from logging one that is never retrieved


def _only_asked(task: asyncio.Task[object]) -> bool:
    """Whether this task ran `anext(consumer)` and nothing else: another one processes the record."""
    return getattr(task.get_coro(), "__name__", "") == "__anext__"


def asking_task() -> asyncio.Task[object] | None:
    """The task that makes a call, if there is one: `asyncio.run(consumer.poll())` is called before its loop runs."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def exception_since(handled: BaseException | None) -> bool:
    """Whether an exception is being handled that is not this one."""
    exc = sys.exception()
    return exc is not None and exc is not handled
