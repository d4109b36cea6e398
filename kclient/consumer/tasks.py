"""The background tasks of one consumer. A failed task ends no other; the next poll raises its error and restarts it.

What ends a wait early: the call's own timeout, `wakeup()`, and `close()`.

Only the wait ends. What the flows have in flight goes on, and the next call finds its result. No wakeup reaches a call
that a listener or a callback makes inside `close()` or `unsubscribe()`: the partitions go all the same, and an
interrupted commit of theirs could not be made again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from kclient.change_signal import ChangeSignal
from kclient.consumer.callbacks import inside, is_inside
from kclient.errors import ClosedError, DeadlineError, InternalError, KclientError, WakeupError
from kclient.log import get_logger

log = get_logger("kclient.consumer")

Flow = Callable[[], Coroutine[Any, Any, None]]


class BackgroundTasks:
    """Named tasks that run until `stop`, and short ones that end on their own."""

    def __init__(self, failed: ChangeSignal) -> None:
        self._failed = failed
        self._flows: dict[str, Flow] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._spawned: dict[asyncio.Task[None], None] = {}
        self._errors: dict[str, BaseException] = {}

    def start(self, name: str, flow: Flow) -> None:
        """Run a flow under this name."""
        self._flows[name] = flow
        task = self._tasks[name] = asyncio.create_task(flow(), name=f"kclient {name}")
        task.add_done_callback(lambda ended: self._flow_ended(name, ended))

    def spawn(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a short background task. The next poll raises its error."""
        task = asyncio.create_task(work, name=f"kclient {name}")
        self._spawned[task] = None
        task.add_done_callback(lambda ended: self._spawned_ended(name, ended))
        return task

    def take_error(self) -> KclientError | None:
        """Return the error of a task that failed, and restart the task."""
        if not self._errors:
            return None
        name = next(iter(self._errors))
        error = self._errors.pop(name)
        if name in self._flows:
            self.start(name, self._flows[name])
        if isinstance(error, KclientError):
            return error
        internal = InternalError(
            f"The {name} of this consumer ended with {type(error).__name__}: {error}. That is a bug of kclient. "
            "Please report it with the traceback; poll again to go on."
        )
        internal.__cause__ = error
        return internal

    async def stop(self, *names: str) -> None:
        """End these flows, or everything, and wait until it has ended."""
        if ending := self.end(*names):
            await asyncio.wait(ending)

    def end(self, *names: str) -> set[asyncio.Task[None]]:
        """Cancel these tasks, or all. Return the tasks to wait for."""
        ending = {self._tasks.pop(name) for name in names or tuple(self._tasks) if name in self._tasks}
        for name in names or tuple(self._flows):
            self._flows.pop(name, None)
            self._errors.pop(name, None)
        if not names:
            ending |= self._spawned.keys()
        for task in ending:
            task.cancel()
        return ending

    def _flow_ended(self, name: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(name) is not task:
            return  # stopped on purpose
        del self._tasks[name]
        self._keep(name, task)

    def _spawned_ended(self, name: str, task: asyncio.Task[None]) -> None:
        self._spawned.pop(task, None)
        self._keep(name, task)

    def _keep(self, name: str, task: asyncio.Task[None]) -> None:
        if task.cancelled() or (error := task.exception()) is None:
            return
        log.debug("the %s failed: %s", name, error)
        self._errors.setdefault(name, error)
        self._failed.notify()


Reason = Callable[[], KclientError]


class CallTimeout:
    """One call's wait, and what ended it before its time."""

    why: str = "The brokers are slow or out of reach."
    ended_early: Reason | None = None

    def note_failure(self, why: str) -> None:
        """What was asked for was refused, and is asked for again."""
        self.why = f"The last try: {why.removesuffix('.')}."


class CallTimeouts:
    """The waits of one consumer's calls."""

    def __init__(self, ended: ChangeSignal) -> None:
        self.closing = False
        self._ended = ended
        self._scopes: dict[asyncio.Timeout, CallTimeout] = {}
        self._wakeable: set[asyncio.Timeout] = set()
        self._undisturbed: set[object] = set()
        self._woken = False

    def wakeup(self) -> None:
        """End the wait of a call, or of the next one if none waits. On the loop's thread, or before there is a loop.

        Without effect once `close()` has begun.
        """
        if not self.closing:
            self._woken = True
            self._end(self._wakeable, self._wakeup_error)

    def close(self) -> None:
        """End the waits of this moment for good, and forget a wakeup that no call has raised yet.

        Listeners that close() runs may still make calls that wait.
        """
        self.closing = True
        self._woken = False
        self._end(self._scopes, closed_error)

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """No wakeup ends a call that is made inside of this block; the first call after it raises WakeupError."""
        block = object()
        self._undisturbed.add(block)
        try:
            with inside(block):
                yield
        finally:
            self._undisturbed.discard(block)

    def check(self) -> None:
        """Raise WakeupError, once for each `wakeup`."""
        if self._woken:
            raise self._wakeup_error()

    @asynccontextmanager
    async def limit(self, timeout: float, waiting_for: str) -> AsyncIterator[CallTimeout]:
        """Bound what is awaited inside; `waiting_for` names it. Raise DeadlineError, WakeupError, ClosedError."""
        wakeable = not any(map(is_inside, self._undisturbed))
        if wakeable:
            self.check()
        wait = CallTimeout()
        try:
            async with asyncio.timeout(timeout) as scope:
                with self._known(scope, wait, wakeable=wakeable):
                    yield wait
        except TimeoutError:
            if not scope.expired():
                raise
            if wait.ended_early is not None:
                raise wait.ended_early() from None
            raise DeadlineError(
                f"Waiting for {waiting_for} took longer than {timeout:g} s. {wait.why} "
                "Call again, with a longer timeout if this is expected.",
                waiting_for=waiting_for,
                timeout=timeout,
            ) from None

    @contextmanager
    def _known(self, scope: asyncio.Timeout, wait: CallTimeout, *, wakeable: bool) -> Iterator[None]:
        """Let `close`, and `wakeup` if it may, end this scope."""
        self._scopes[scope] = wait
        if wakeable:
            self._wakeable.add(scope)
        try:
            yield
        finally:
            del self._scopes[scope]
            self._wakeable.discard(scope)

    def _wakeup_error(self) -> WakeupError:
        self._woken = False
        return WakeupError("wakeup() ended this call. Nothing is lost. Call again to go on.")

    def _end(self, scopes: Iterable[asyncio.Timeout], reason: Reason) -> None:
        for scope in scopes:
            if not scope.expired():
                self._scopes[scope].ended_early = reason
                scope.reschedule(asyncio.get_running_loop().time())
        self._ended.notify()


def closed_error() -> ClosedError:
    """What every call raises after close(), and one that waits when close() is called."""
    return ClosedError(
        "This consumer is closed. close() was called, or its with-block was left. Make a new consumer."
    )
