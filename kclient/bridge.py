"""From a user's thread into the event loop and back.

    user's thread                         loop thread
    run(function) ──────────────────────▶ a task awaits function()
    waits on its inbox ◀── user call ──── await call_user(f): f must run on the user's thread
    runs f, sends what came of it ──────▶ the task goes on
    waits on its inbox ◀── outcome ────── the task has ended
    returns or raises

One loop thread per process serves all consumers: `join` takes part in it, `leave` gives it up, `abandon` leaves for a
consumer that nobody closed, and the last one ends the thread. A thread that runs `f` may call `run` again: that is
another task with another inbox, in the context of the first. Whatever interrupts the waiting thread
(KeyboardInterrupt) cancels the task, and goes on when the task has ended.
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

log = get_logger("kclient.consumer")

T = TypeVar("T")

ENDING_SECONDS: Final = 5.0


@attrs.define(eq=False)
class _UserCall:
    """A function that the loop wants to have run by the thread that waits."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    came_of_it: asyncio.Future[_Outcome]
    context: Context


@attrs.define(eq=False)
class _Outcome:
    """How a task ended, or a function of the user's."""

    result: Any = None
    error: BaseException | None = None

    def unwrap(self) -> Any:
        """Give back the result, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.result


_Inbox = queue.SimpleQueue[_UserCall | _Outcome]
_inbox: ContextVar[_Inbox] = ContextVar("inbox")
"""On the loop: where the thread waits that made the call."""
_outer: ContextVar[Context | None] = ContextVar("outer", default=None)
"""On the thread: the context of the task whose function runs here."""


async def call_user(function: Callable[..., Any], *args: Any) -> Any:
    """On the loop, inside of `run`: have the waiting thread run a function, and give back its result."""
    came_of_it: asyncio.Future[_Outcome] = asyncio.get_running_loop().create_future()
    _inbox.get().put(_UserCall(function, args, came_of_it, copy_context()))
    return (await came_of_it).unwrap()


class LoopThread:
    """An event loop on a thread of its own."""

    _of_process: ClassVar[tuple[int, LoopThread] | None] = None
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._users: dict[object, asyncio.Task[None] | None] = {}
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=self._work, name="kclient", daemon=True)

    # --- one per process

    @classmethod
    def join(cls, user: object) -> LoopThread:
        """The process's loop thread, started if there is none; a forked child does not inherit its parent's.

        Joining twice is joining once, for an interrupt may make it look as if the first time had failed.
        """
        with cls._lock:
            found = cls._of_process
            if found is None or found[0] != os.getpid():
                found = cls._of_process = (os.getpid(), cls._started())
            found[1]._users[user] = None
            return found[1]

    @classmethod
    def _started(cls) -> Self:
        """A new one. An interrupt while the thread starts ends it again, for nobody would know of it."""
        new = cls()
        try:
            new._thread.start()
        except BaseException:
            new.loop.call_soon_threadsafe(new._over.set)
            raise
        return new

    def leave(self, user: object) -> None:
        """Take no part any more; the last one to leave ends the thread."""
        with self._lock:
            self._users.pop(user, None)
            if self._users or LoopThread._of_process != (os.getpid(), self):
                return
            LoopThread._of_process = None
        self.loop.call_soon_threadsafe(self._over.set)
        if threading.current_thread() is not self._thread:
            self._thread.join(ENDING_SECONDS)

    def abandon(self, user: object, end: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `end` on the loop, then leave. Waits for nothing and takes no lock: garbage is collected anywhere."""

        def begin() -> None:
            task = self._users[user] = self.loop.create_task(end())
            task.add_done_callback(lambda ended: self.leave(user))

        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(begin)

    def _work(self) -> None:
        asyncio.set_event_loop(self.loop)
        life = self.loop.create_task(self._live())
        try:
            while not life.done():
                # The handler of the line that is logged about this may be what exits.
                with suppress(SystemExit, KeyboardInterrupt):
                    self._run_until(life)
        finally:
            self.loop.close()

    def _run_until(self, life: asyncio.Task[None]) -> None:
        """Run the loop. asyncio lets sys.exit() out of it, which is to end the task that calls it and nothing else."""
        try:
            self.loop.run_until_complete(life)
        except (SystemExit, KeyboardInterrupt) as exc:
            log.error(
                "something that kclient calls on its own thread, such as a log handler, raised %s; the consumers of "
                "this process go on. Exit from your own thread instead; the traceback says where this comes from",
                type(exc).__name__,
                exc_info=exc,
            )

    async def _live(self) -> None:
        await self._over.wait()
        await _finish(ENDING_SECONDS / 2)

    # --- calls

    def run(self, function: Callable[[], Any]) -> Any:
        """Call `function` on the loop, await what it returns, give that back; serve the loop's user calls meanwhile."""
        if threading.current_thread() is self._thread:
            raise UsageError(
                "A Consumer was called on kclient's own thread, where nobody may wait. An assignor runs there: "
                "it does not call a consumer. Do that from a listener, which runs on your own thread."
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
        """The waiting thread was interrupted: cancel the call and see it end, whatever interrupts that."""
        interrupted = True
        while interrupted:
            try:
                self.loop.call_soon_threadsafe(call.cancel)
                call.drain(self.loop)
                interrupted = False
            except KeyboardInterrupt:
                continue


class _Call:
    """One call of a user's thread: `start` and `cancel` belong to the loop, `serve` and `drain` to the thread."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._inbox: _Inbox = queue.SimpleQueue()
        self._task: asyncio.Task[Any] | None = None
        self._cancelled = False

    def start(self) -> None:
        """Begin, unless cancelled already; the outcome goes to the inbox."""
        if self._cancelled:
            return
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._task.add_done_callback(self._report)

    def cancel(self) -> None:
        """End the task; say so again if it has ended, for the interrupt may have swallowed its outcome."""
        self._cancelled = True
        if self._task is None or self._task.done():
            self._inbox.put(_Outcome())
        else:
            self._task.cancel()

    async def _run(self) -> Any:
        _inbox.set(self._inbox)
        result = self._function()
        return await result if inspect.isawaitable(result) else result

    def _report(self, task: asyncio.Task[Any]) -> None:
        if task.cancelled():
            error: BaseException | None = InternalError("A call was cancelled on the loop.")
        else:
            error = task.exception()
        self._inbox.put(_Outcome(None if error is not None else task.result(), error))

    def serve(self, loop: asyncio.AbstractEventLoop) -> _Outcome:
        """Run what the loop asks for until the outcome comes."""
        while True:
            item = self._inbox.get()
            if isinstance(item, _Outcome):
                return item
            came_of_it = _run_here(item)
            loop.call_soon_threadsafe(_settle, item.came_of_it, came_of_it)

    def drain(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait, within limits, until the cancelled task has ended; what it still asks for is not run."""
        try:
            while not isinstance(item := self._inbox.get(timeout=ENDING_SECONDS), _Outcome):
                loop.call_soon_threadsafe(item.came_of_it.cancel)
        except queue.Empty:
            log.warning("a call that was interrupted has not ended within %g s", ENDING_SECONDS)


class LoopThreadRunner:
    """`run` and `close` of asyncio.Runner, for a caller whose own loop runs already: a notebook."""

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
    """A loop for blocking calls from this thread. It leaves a loop that the thread has alone."""
    return (
        LoopThreadRunner()
        if running_loop() is not None
        else asyncio.Runner(loop_factory=asyncio.new_event_loop)
    )


def run_blocking(step: Coroutine[Any, Any, T]) -> T:
    """asyncio.run(), also where a loop runs already."""
    with closing(new_runner()) as runner:
        return runner.run(step)


def _run_here(call: _UserCall) -> _Outcome:
    before = _outer.set(call.context)
    try:
        return _Outcome(call.function(*call.args))
    except Exception as exc:  # noqa: BLE001 – goes back to who asked
        return _Outcome(error=exc)
    finally:
        _outer.reset(before)


def _settle(came_of_it: asyncio.Future[_Outcome], outcome: _Outcome) -> None:
    if not came_of_it.done():
        came_of_it.set_result(outcome)


async def _finish(seconds: float) -> None:
    """The loop is about to end: what an interrupted close has left gets time to end by itself, then it is cancelled."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    if left:
        _, late = await asyncio.wait(left, timeout=seconds)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=seconds)


def _forget_parent() -> None:
    """In a forked child: the parent's loop thread is not here, and its lock may be held by a thread that is not."""
    LoopThread._of_process = None
    LoopThread._lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_parent)
