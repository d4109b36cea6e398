"""The user's rebalance listener, and the queue of callbacks and rebalance steps that the user's next call runs.

A listener's methods run inside the user's own poll, unsubscribe or close, and may commit, seek and pause; with an
AsyncConsumer they may be plain or async. `listener_invoker.py` calls them. The queue holds user code, and changes that
the user sees.

A background task enqueues a step and awaits it. An error of the step is raised in the user's call, not in the task. A
task that is cancelled while it waits removes its step from the queue.

`inside` and `is_inside` detect reentrancy: a call that a listener, a callback, or a task started by one of them makes
inside another call. close() and unsubscribe() wait for other calls, but never for a call that contains them.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Protocol, TypeVar

import attrs

from kclient.change_signal import ChangeSignal
from kclient.types import TopicPartition

T = TypeVar("T")

ASSIGNED: Final = "on_partitions_assigned"
REVOKED: Final = "on_partitions_revoked"
LOST: Final = "on_partitions_lost"
METHODS: Final = (ASSIGNED, REVOKED, LOST)
CallUser = Callable[..., Awaitable[Any]]
"""Runs a user function in the user's context, awaits its result if needed, and returns it."""


class RebalanceListener(Protocol):
    """Inherit from it and write the methods you need.

    A listener that commits or seeks is made with its consumer, and given to `subscribe`:

        consumer.subscribe(["orders"], listener=Totals(consumer))
    """

    def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> Awaitable[None] | None:
        """These partitions are new; their records come after this call. Empty if nothing was added."""
        return None

    def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> Awaitable[None] | None:
        """These partitions are revoked after this call: commit what is processed.

        All partitions in an eager rebalance, also if there are none; only the revoked ones in a cooperative rebalance.
        """
        return None

    def on_partitions_lost(self, partitions: tuple[TopicPartition, ...]) -> Awaitable[None] | None:
        """Another member may have these partitions already; commits for them fail. As revoked, unless overridden."""
        return self.on_partitions_revoked(partitions)


class RunningHandlers(Protocol):
    """The run of `kclient.handlers` that polls this consumer: what explain() reads of it, and pauses of the user."""

    def pauses(self, tp: TopicPartition) -> bool:
        """Return whether the run has paused the partition."""
        ...

    def user_paused(self, tp: TopicPartition) -> None:
        """Note that the user has paused the partition: the run does not resume it."""
        ...

    def user_resumed(self, tp: TopicPartition) -> None:
        """Note that the user has resumed the partition: it stays paused until the run has room."""
        ...

    def describe(self, tp: TopicPartition | None = None) -> str:
        """Return one sentence about the run, or about a partition; "" if nothing of it is in flight."""
        ...


def coroutine_methods(listener: Any) -> list[str]:
    """Return the names of the methods that are coroutine functions."""
    return [name for name in METHODS if inspect.iscoroutinefunction(getattr(listener, name, None))]


@attrs.define(eq=False)
class _Item:
    work: Callable[[], Awaitable[Any]]
    done: asyncio.Future[Any]


class CallbackQueue:
    """Background tasks fill this queue; the user's calls run its items one after another."""

    def __init__(self, changed: ChangeSignal) -> None:
        self._changed = changed
        self._items: deque[_Item] = deque()
        self.running: bool = False

    def __len__(self) -> int:
        return len(self._items)

    async def call(self, work: Callable[[], Awaitable[T]]) -> T | None:
        """Wait until a call of the user has run `work`, and return its result. Return None if it raised: the user's
        call raises that error.
        """
        item = _Item(work, asyncio.get_running_loop().create_future())
        self._items.append(item)
        self._changed.notify()
        try:
            return await item.done  # type: ignore[no-any-return]
        finally:
            # Cancelled before a call of the user has begun the step.
            if item in self._items:
                self._items.remove(item)

    def enqueue(self, work: Callable[[], Awaitable[Any]]) -> None:
        """Let a later call of the user run `work`, without waiting for it."""
        self._items.append(_Item(work, asyncio.get_running_loop().create_future()))
        self._changed.notify()

    def notify(self) -> None:
        """Wake a waiting poll without work: the time until which it waits has changed."""
        self._changed.notify()

    async def run(self) -> None:
        """Run the queued work. Return at once inside of queued work, and if another task runs it."""
        # A listener that commits would otherwise run the next step inside its own.
        if self.running:
            return
        self.running = True
        try:
            while self._items:
                await self._run_item(self._items.popleft())
        finally:
            self.running = False

    async def _run_item(self, item: _Item) -> None:
        result = None
        try:
            result = await item.work()
        finally:
            if not item.done.done():
                item.done.set_result(result)


_scopes: ContextVar[tuple[object, ...]] = ContextVar("scopes", default=())


@contextmanager
def inside(scope: object) -> Iterator[None]:
    """Mark calls made in this block, and in tasks that it starts, as inside `scope`."""
    before = _scopes.get()
    _scopes.set((*before, scope))
    try:
        yield
    finally:
        _scopes.set(before)


def is_inside(scope: object) -> bool:
    """Return whether this code runs inside `scope`."""
    return any(outer is scope for outer in _scopes.get())


async def error_of(step: Awaitable[None]) -> Exception | None:
    """Await a step and return its error, so that the next step runs in any case."""
    try:
        await step
    except Exception as exc:  # noqa: BLE001 – raised when all is done
        return exc
    return None
