"""Background tasks of one consumer, the start of the consumer, and the timeouts of its calls.

A task that fails does not end the others. The next poll raises its error and restarts it.

The first call that needs a broker starts the consumer:

    not begun    no call has needed a broker yet
    starting     connecting to the cluster; continues when the call that began it has timed out
    running      the position updater and the fetcher run
    ending       close() has stopped the group and stops the tasks

A call stops waiting when its timeout passes, at `wakeup()`, or at `close()`. Background tasks continue meanwhile, and
the next call finds their results. `wakeup()` does not interrupt calls that a listener or a callback makes inside
`close()` or `unsubscribe()`: the partitions are given up in any case, so an interrupted commit could not be repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final

from kclient.change_signal import ChangeSignal
from kclient.consumer.callbacks import inside, is_inside
from kclient.consumer.subscription import SubscriptionState
from kclient.errors import ClosedError, DeadlineError, InternalError, KclientError, WakeupError
from kclient.log import get_logger

if TYPE_CHECKING:  # importing AsyncConsumer must not import the parts
    from kclient.fetch.fetcher import Fetcher
    from kclient.network.cluster import Cluster
    from kclient.positions.updater import PositionUpdater

log: Final = get_logger("kclient.consumer")

TaskFunction = Callable[[], Coroutine[Any, Any, None]]


class BackgroundTasks:
    """Named tasks that run until `stop`, and short ones that end on their own."""

    def __init__(self, failed: ChangeSignal) -> None:
        self._failed = failed
        self._functions: dict[str, TaskFunction] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._spawned: dict[asyncio.Task[None], None] = {}
        self._errors: dict[str, BaseException] = {}

    def start(self, name: str, run: TaskFunction) -> None:
        """Start a task under this name; `take_error` restarts it after a failure."""
        self._functions[name] = run
        task = self._tasks[name] = asyncio.create_task(run(), name=f"kclient {name}")
        task.add_done_callback(lambda ended: self._task_ended(name, ended))

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
        if name in self._functions:
            self.start(name, self._functions[name])
        if isinstance(error, KclientError):
            return error
        internal = InternalError(
            f"The {name} of this consumer ended with {type(error).__name__}: {error}. That is a bug of kclient. "
            "Please report it with the traceback; poll again to go on."
        )
        internal.__cause__ = error
        return internal

    async def stop(self, *names: str) -> None:
        """Cancel the named tasks, or all, and wait for their end."""
        if ending := self.end(*names):
            await asyncio.wait(ending)

    def end(self, *names: str) -> set[asyncio.Task[None]]:
        """Cancel these tasks, or all. Return the tasks to wait for."""
        ending = {self._tasks.pop(name) for name in names or tuple(self._tasks) if name in self._tasks}
        for name in names or tuple(self._functions):
            self._functions.pop(name, None)
            self._errors.pop(name, None)
        if not names:
            ending |= self._spawned.keys()
        for task in ending:
            task.cancel()
        return ending

    def _task_ended(self, name: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(name) is not task:
            return  # stopped on purpose
        del self._tasks[name]
        self._store_error(name, task)

    def _spawned_ended(self, name: str, task: asyncio.Task[None]) -> None:
        self._spawned.pop(task, None)
        self._store_error(name, task)

    def _store_error(self, name: str, task: asyncio.Task[None]) -> None:
        if task.cancelled() or (error := task.exception()) is None:
            return
        log.debug("the %s failed: %s", name, error)
        self._errors.setdefault(name, error)
        self._failed.notify()


Reason = Callable[[], KclientError]


class CallTimeout:
    """The timeout of one call, and the reason if it ended early."""

    why: str = "The brokers are slow or out of reach."
    ended_early: Reason | None = None

    def note_failure(self, why: str) -> None:
        """Keep the reason why a request failed and is retried, for the text of the DeadlineError."""
        self.why = f"The last try: {why.removesuffix('.')}."


class CallTimeouts:
    """The timeouts of the calls that wait now."""

    def __init__(self, ended: ChangeSignal) -> None:
        self.closing: bool = False
        self._ended = ended
        self._scopes: dict[asyncio.Timeout, CallTimeout] = {}
        self._wakeable: set[asyncio.Timeout] = set()
        self._undisturbed: set[object] = set()
        self._woken = False

    def wakeup(self) -> None:
        """Interrupt the waiting call, or the next one. Call it on the loop's thread, or before there is a loop.

        No effect once `close()` has begun.
        """
        if not self.closing:
            self._woken = True
            self._end(self._wakeable, self._wakeup_error)

    def close(self) -> None:
        """Interrupt all waiting calls with ClosedError, and drop a wakeup that no call has raised.

        Listeners that close() runs may still make calls that wait.
        """
        self.closing = True
        self._woken = False
        self._end(self._scopes, closed_error)

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Defer wakeups of calls made inside this block; the first call after it raises WakeupError."""
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
        """Limit the block to `timeout` seconds. Raise DeadlineError with `waiting_for`, WakeupError or ClosedError."""
        wakeable = not any(map(is_inside, self._undisturbed))
        if wakeable:
            self.check()
        wait = CallTimeout()
        try:
            async with asyncio.timeout(timeout) as scope:
                with self._registered(scope, wait, wakeable=wakeable):
                    yield wait
        except TimeoutError:
            if not scope.expired():
                raise
            # wakeup() or close() moved the end of the scope; its time has not passed.
            if wait.ended_early is not None:
                raise wait.ended_early() from None
            raise DeadlineError(
                f"Waiting for {waiting_for} took longer than {timeout:g} s. {wait.why} "
                "Call again, with a longer timeout if this is expected.",
                waiting_for=waiting_for,
                timeout=timeout,
            ) from None

    @contextmanager
    def _registered(self, scope: asyncio.Timeout, wait: CallTimeout, *, wakeable: bool) -> Iterator[None]:
        """Register the scope, so that `close`, and `wakeup` if it is wakeable, can end it."""
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


class Lifecycle:
    """Starts the tasks of one consumer, once. `ending` is the task of close() that stops them."""

    def __init__(
        self,
        cluster: Cluster,
        subscription: SubscriptionState,
        timeouts: CallTimeouts,
        tasks: BackgroundTasks,
        position_updater: PositionUpdater,
        fetcher: Fetcher,
    ) -> None:
        self._cluster = cluster
        self._subscription = subscription
        self._timeouts = timeouts
        self._tasks = tasks
        self._position_updater = position_updater
        self._fetcher = fetcher
        self._start: asyncio.Task[None] | None = None
        self.ending: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """Whether the cluster was reached and the tasks run. False once close() is ending them."""
        start = self._start
        if self.ending is not None or start is None:
            return False
        return start.done() and not start.cancelled() and start.exception() is None

    @property
    def started(self) -> bool:
        """Whether anything of this consumer may run, or be connected."""
        return self._start is not None and self.ending is None

    async def start(self) -> None:
        """Connect and start the background tasks, once. Raise what `Cluster.start` raises; a later call tries again.

        A try continues when its caller has timed out. If it fails then, the next call raises the error, so that callers
        with short timeouts see it too.
        """
        if self._start is None or self._start.cancelled():
            self._start = asyncio.create_task(self._begin(), name="kclient start")
            self._start.add_done_callback(_retrieve)
        start = self._start
        try:
            await asyncio.shield(start)
        except asyncio.CancelledError:
            raise
        except BaseException:
            if self._start is start:
                self._start = None  # its error is raised here
            raise

    async def _begin(self) -> None:
        self._cluster.set_topics(self._subscription.metadata_topics)
        await self._cluster.start()
        if self._timeouts.closing:
            return  # only asynchronous commits wait for the connection
        self._tasks.start("position updater", self._position_updater.run)
        self._tasks.start("fetcher", self._fetcher.run)

    async def cancel_start(self) -> None:
        """Cancel a start that has not succeeded."""
        if self._start is not None and not self._start.done():
            self._start.cancel()
            await asyncio.wait([self._start])


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Keep asyncio from logging the error of a start without a waiter: the next call raises it."""
    if not task.cancelled():
        task.exception()


def closed_error() -> ClosedError:
    """Return the error of calls after close(), and of calls that wait when close() begins."""
    return ClosedError(
        "This consumer is closed. close() was called, or its with-block was left. Make a new consumer."
    )


async def outlast(work: asyncio.Future[Any]) -> None:
    """Await work of a thread, and be cancelled only when it has ended: it goes on in any case, and changes its task."""
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError as exc:
            cancelled = exc
    if cancelled is not None:
        raise cancelled
    work.result()
