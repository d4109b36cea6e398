"""Runs calls of a user's thread on the event loop, and user callbacks on that thread.

    user's thread                         loop thread
    run(function) ──────────────────────▶ a task awaits function()
    waits on its inbox ◀── user call ──── await call_user(f): f must run on the user's thread
    runs f, sends the outcome ──────────▶ the task continues
    waits on its inbox ◀── outcome ────── the task has ended
    returns or raises

One loop thread per process serves all consumers: `join` adds a user of the thread, `leave` removes it, `abandon`
removes a consumer that was garbage-collected without `close()`. The thread ends with its last user. A thread that runs
`f` may call `run` again: that is another task with another inbox, in the context of the first. An interrupt of the
waiting thread (KeyboardInterrupt) cancels the task, and is raised again after the task has ended.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import queue
import threading
from collections.abc import Callable, Coroutine
from contextlib import closing, suppress
from contextvars import Context, ContextVar, copy_context
from typing import Any, ClassVar, Final, Self, TypeAlias, TypeVar

import attrs

from kclient.errors import InternalError, UsageError
from kclient.log import get_logger
from kclient.runtime import running_loop

log: Final = get_logger("kclient.consumer")

T = TypeVar("T")

ENDING_SECONDS: Final = 5.0


@attrs.define(eq=False)
class _UserCall:
    """A function that the loop passes to the waiting thread."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    outcome_future: asyncio.Future[_Outcome]
    context: Context


@attrs.define(eq=False)
class _Outcome:
    """The result or the error of a task or a user function."""

    result: Any = None
    error: BaseException | None = None

    def unwrap(self) -> Any:
        """Return the result, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.result


_Inbox = queue.SimpleQueue[_UserCall | _Outcome]
_inbox: ContextVar[_Inbox] = ContextVar("inbox")
"""On the loop: the inbox of the thread that made the call."""
_outer: ContextVar[Context | None] = ContextVar("outer", default=None)
"""On the thread: the context of the task whose function runs here."""


async def call_user(function: Callable[..., Any], *args: Any) -> Any:
    """On the loop, inside `run`: run a function on the waiting thread, and return its result."""
    outcome_future: asyncio.Future[_Outcome] = asyncio.get_running_loop().create_future()
    _inbox.get().put(_UserCall(function, args, outcome_future, copy_context()))
    return (await outcome_future).unwrap()


class LoopThread:
    """An event loop on a separate thread."""

    _of_process: ClassVar[tuple[int, LoopThread] | None] = None
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self) -> None:
        self.loop: Final = asyncio.new_event_loop()
        self._users: dict[object, asyncio.Task[None] | None] = {}
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=self._work, name="kclient", daemon=True)

    # --- one per process

    @classmethod
    def join(cls, user: object) -> LoopThread:
        """Return the process's loop thread; start it if there is none. A forked child does not inherit its parent's.

        Joining twice has the same effect as once: after an interrupt the caller may repeat a join that succeeded.
        """
        with cls._lock:
            found = cls._of_process
            if found is None or found[0] != os.getpid():
                found = cls._of_process = (os.getpid(), cls._started())
            found[1]._users[user] = None
            return found[1]

    @classmethod
    def _started(cls) -> Self:
        """Return a new, started thread. An interrupt during the start ends it, because no caller would own it."""
        new = cls()
        try:
            new._thread.start()
        except BaseException:
            new.loop.call_soon_threadsafe(new._over.set)
            raise
        return new

    def leave(self, user: object) -> None:
        """Remove a user; the last one to leave ends the thread."""
        with self._lock:
            self._users.pop(user, None)
            if self._users or LoopThread._of_process != (os.getpid(), self):
                return
            LoopThread._of_process = None
        self.loop.call_soon_threadsafe(self._over.set)
        if threading.current_thread() is not self._thread:
            self._thread.join(ENDING_SECONDS)

    def abandon(self, user: object, end: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `end` on the loop, then leave. Neither wait nor take a lock: garbage collection may run on any thread."""

        def begin() -> None:
            task = self._users[user] = self.loop.create_task(end())
            task.add_done_callback(lambda ended: self.leave(user))

        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(begin)

    def _work(self) -> None:
        asyncio.set_event_loop(self.loop)
        main = self.loop.create_task(self._run_until_over())
        try:
            while not main.done():
                # The log handler that gets the line about this may itself be what exits.
                with suppress(SystemExit, KeyboardInterrupt):
                    self._run_until(main)
        finally:
            self.loop.close()

    def _run_until(self, main: asyncio.Task[None]) -> None:
        """Run the loop. asyncio lets SystemExit out of it, which must end only the task that raised it."""
        try:
            self.loop.run_until_complete(main)
        except (SystemExit, KeyboardInterrupt) as exc:
            log.error(
                "something that kclient calls on its own thread, such as a log handler, raised %s; the consumers of "
                "this process continue. Exit from your own thread instead; the traceback says where this comes from",
                type(exc).__name__,
                exc_info=exc,
            )

    async def _run_until_over(self) -> None:
        await self._over.wait()
        await _finish(ENDING_SECONDS / 2)

    # --- calls

    def run(self, function: Callable[[], Any]) -> Any:
        """Call `function` on the loop and return its awaited result. Run the loop's user calls in the meantime."""
        if threading.current_thread() is self._thread:
            raise UsageError(
                "A Consumer was called on kclient's own thread, which must not block. An assignor runs there: "
                "it must not call a consumer. Use a listener, which runs on your own thread."
            )
        call = _Call(function)
        try:
            self.loop.call_soon_threadsafe(call.start, context=_outer.get())
            outcome = call.serve(self.loop)
        except BaseException:
            self._end(call)
            raise
        return outcome.unwrap()

    def _end(self, call: _Call) -> None:
        """Cancel the call of an interrupted thread and wait until it has ended, despite further interrupts."""
        interrupted = True
        while interrupted:
            try:
                self.loop.call_soon_threadsafe(call.cancel)
                call.drain(self.loop)
                interrupted = False
            except KeyboardInterrupt:
                continue


class _Call:
    """One call of a user's thread: `start` and `cancel` belong to the loop, `serve` and `drain` to the thread.

    The task itself sends its outcome, as its last step: a callback of the task would cost another turn of the loop.
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._inbox: _Inbox = queue.SimpleQueue()
        self._task: asyncio.Task[None] | None = None
        self._runs = False
        self._cancelled = False

    def start(self) -> None:
        """Start the task, unless it is cancelled already."""
        if not self._cancelled:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def cancel(self) -> None:
        """Cancel the task. If it does not run, send an outcome: an interrupt may have dropped the one it sent."""
        self._cancelled = True
        if self._task is not None:
            self._task.cancel()
        if not self._runs:
            self._inbox.put(_Outcome())

    async def _run(self) -> None:
        self._runs = True
        _inbox.set(self._inbox)
        try:
            result = self._function()
            outcome = _Outcome(await result if inspect.isawaitable(result) else result)
        except asyncio.CancelledError:
            outcome = _Outcome(error=InternalError("A call was cancelled on the loop."))
            raise
        except BaseException as exc:
            outcome = _Outcome(error=exc)
            if not isinstance(exc, Exception):
                raise
        finally:
            self._runs = False
            self._inbox.put(outcome)
            del outcome  # a frame of its error's traceback refers to it

    def serve(self, loop: asyncio.AbstractEventLoop) -> _Outcome:
        """Run the user calls of the loop until the outcome arrives."""
        while True:
            item = self._inbox.get()
            if isinstance(item, _Outcome):
                return item
            loop.call_soon_threadsafe(_settle, item.outcome_future, _run_here(item))

    def drain(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait for ENDING_SECONDS at most until the cancelled task has ended; its user calls are cancelled."""
        try:
            while not isinstance(item := self._inbox.get(timeout=ENDING_SECONDS), _Outcome):
                loop.call_soon_threadsafe(item.outcome_future.cancel)
        except queue.Empty:
            log.warning("a call that was interrupted has not ended within %g s", ENDING_SECONDS)


class LoopThreadRunner:
    """`run` and `close` of asyncio.Runner, for a caller whose own loop is running: a notebook."""

    def __init__(self) -> None:
        self._thread = LoopThread.join(self)

    def run(self, step: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop thread and wait for its result."""
        result: T = self._thread.run(lambda: step)
        return result

    def close(self) -> None:
        """Leave the loop thread."""
        self._thread.leave(self)


Runner: TypeAlias = asyncio.Runner | LoopThreadRunner


def new_runner() -> Runner:
    """Return a runner for blocking calls from this thread, which does not touch a running loop of the thread."""
    return (
        LoopThreadRunner()
        if running_loop() is not None
        else asyncio.Runner(loop_factory=asyncio.new_event_loop)
    )


def run_blocking(step: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine like asyncio.run(), even if this thread has a running loop."""
    with closing(new_runner()) as runner:
        return runner.run(step)


def _run_here(call: _UserCall) -> _Outcome:
    before = _outer.set(call.context)
    try:
        return _Outcome(call.function(*call.args))
    except Exception as exc:  # noqa: BLE001 – is raised in the task that waits for it
        return _Outcome(error=exc)
    finally:
        _outer.reset(before)


def _settle(outcome_future: asyncio.Future[_Outcome], outcome: _Outcome) -> None:
    if not outcome_future.done():
        outcome_future.set_result(outcome)


async def _finish(seconds: float) -> None:
    """Before the loop ends, give tasks of an interrupted close `seconds` to finish, then cancel them."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    if left:
        _, late = await asyncio.wait(left, timeout=seconds)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=seconds)


def _forget_parent() -> None:
    """In a forked child, drop the parent's loop thread, which is not running here, and its lock, which may be held."""
    LoopThread._of_process = None
    LoopThread._lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_parent)
