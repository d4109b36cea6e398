"""Callbacks and rebalance steps that wait for the user's next call: they run user code or change what the user sees.

The background task awaits the step. An error of the step is raised in the user's call, not in the task.
A task that is cancelled while it waits removes its step from the queue.

Reentrancy: whether a call comes from inside another one: from a listener, a callback, or a task that they started.

close() and unsubscribe() wait for other tasks, but must not wait for a call that waits for them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import attrs

from kclient.change_signal import ChangeSignal

T = TypeVar("T")


@attrs.define(eq=False)
class _Item:
    work: Callable[[], Awaitable[Any]]
    done: asyncio.Future[Any]


class CallbackQueue:
    """A queue that flows fill and the user's calls empty, one piece after the other."""

    def __init__(self, posted: ChangeSignal) -> None:
        self._posted = posted
        self._items: deque[_Item] = deque()
        self.running = False

    def __len__(self) -> int:
        return len(self._items)

    async def post(self, work: Callable[[], Awaitable[T]]) -> T | None:
        """Wait until a call of the user's has done this; None where it raised, for the user has that error."""
        item = _Item(work, asyncio.get_running_loop().create_future())
        self._items.append(item)
        self._posted.notify()
        try:
            return await item.done  # type: ignore[no-any-return]
        finally:
            if item in self._items:
                self._items.remove(item)

    def leave(self, work: Callable[[], Awaitable[Any]]) -> None:
        """Have this done by a call of the user's, without waiting for it."""
        self._items.append(_Item(work, asyncio.get_running_loop().create_future()))
        self._posted.notify()

    def look_again(self) -> None:
        """Wake a call that waits: there is nothing to do, but something it waits for is due at another time."""
        self._posted.notify()

    async def run(self) -> None:
        """Do what is posted. Returns at once inside of work, and where another task is doing it."""
        if self.running:
            return
        self.running = True
        try:
            while self._items:
                await self._do(self._items.popleft())
        finally:
            self.running = False

    async def _do(self, item: _Item) -> None:
        result = None
        try:
            result = await item.work()
        finally:
            if not item.done.done():
                item.done.set_result(result)


_around: ContextVar[tuple[object, ...]] = ContextVar("around", default=())


@contextmanager
def inside(scope: object) -> Iterator[None]:
    """What is called in this block, and in the tasks that it begins, is inside of `scope`."""
    before = _around.get()
    _around.set((*before, scope))
    try:
        yield
    finally:
        _around.set(before)


def is_inside(scope: object) -> bool:
    """Whether this code was called from inside of `scope`."""
    return any(outer is scope for outer in _around.get())


async def error_of(step: Awaitable[None]) -> Exception | None:
    """Await a step and return what it raised, so that the next step runs in any case."""
    try:
        await step
    except Exception as exc:  # noqa: BLE001 – raised when all is done
        return exc
    return None
