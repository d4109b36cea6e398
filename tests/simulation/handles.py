"""What a loop schedules: handles and timers that are cheap to make, futures and tasks that hash by a number.

A set of plain futures iterates by address, another order in every process; numbers make it the same in each run.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from tests.simulation.hosts import HOST

if TYPE_CHECKING:
    from tests.simulation.loop import SimLoop


class SimHandle(asyncio.Handle):
    """A callback to be run once in its context."""

    __slots__ = ()

    def __init__(
        self,
        callback: Callable[..., object],
        args: tuple[object, ...],
        loop: SimLoop,
        context: contextvars.Context | None,
    ) -> None:
        self._callback = callback
        self._args = args
        self._loop = loop
        self._context = contextvars.copy_context() if context is None else context
        self._cancelled = False
        self._repr = None
        self._source_traceback = None


class SimTimer(SimHandle, asyncio.TimerHandle):
    """A callback to be run at `when`."""

    __slots__ = ()

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[object, ...],
        loop: SimLoop,
        context: contextvars.Context | None,
    ) -> None:
        SimHandle.__init__(self, callback, args, loop, context)
        self._when = when
        self._scheduled = False


class SimFuture(asyncio.Future):
    """A future that hashes by its number."""

    __slots__ = ("number",)

    def __init__(self, loop: SimLoop) -> None:
        self.number = loop.next_number()
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self.number


class SimTask(asyncio.Task):
    """A task that hashes by its number and knows the host it runs on."""

    __slots__ = ("host", "number")

    def __init__(
        self,
        loop: SimLoop,
        coro: Coroutine[Any, Any, Any],
        name: str | None,
        context: contextvars.Context | None,
    ) -> None:
        self.number = loop.next_number()
        self.host = HOST.get() if context is None else context.get(HOST)
        super().__init__(coro, loop=loop, name=name or f"task-{self.number}", context=context)

    def __hash__(self) -> int:
        return self.number
