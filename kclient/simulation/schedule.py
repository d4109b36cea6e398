"""What a loop schedules: handles and timers that are cheap to make, futures and tasks that hash by a number.

A set of plain futures iterates by address, another order in every process; numbers make it the same in each run.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Iterator
from heapq import heapify, heappop, heappush
from random import Random
from typing import Any, Final

from kclient.simulation.process import CURRENT_PROCESS, Process

LEAST_CANCELLED: Final = 100  # timers, before the heap is made again without them


class SimHandle(asyncio.Handle):
    """A callback to be run once in its context."""

    __slots__ = ()

    _callback: Callable[..., object]
    _context: contextvars.Context

    def __init__(
        self,
        callback: Callable[..., object],
        args: tuple[object, ...],
        loop: asyncio.AbstractEventLoop,
        context: contextvars.Context | None,
    ) -> None:
        # asyncio.Handle.__init__ would take a traceback and copy more; this is the hottest line of a run.
        self._callback = callback
        self._args = args
        self._loop = loop
        self._context = contextvars.copy_context() if context is None else context
        self._cancelled = False
        self._repr = None
        self._source_traceback = None


class SimTimer(SimHandle, asyncio.TimerHandle):
    """A callback to be run at `when`, in seconds of the loop's time."""

    __slots__ = ()

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[object, ...],
        loop: asyncio.AbstractEventLoop,
        context: contextvars.Context | None,
    ) -> None:
        SimHandle.__init__(self, callback, args, loop, context)
        self._when = when
        self._scheduled = False


class SimFuture(asyncio.Future[Any]):
    """A future that hashes by its number."""

    __slots__ = ("number",)

    def __init__(self, loop: asyncio.AbstractEventLoop, number: int) -> None:
        self.number: int = number
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self.number


class SimTask(asyncio.Task[Any]):
    """A task that hashes by its number and knows the process that it belongs to."""

    __slots__ = ("host", "number")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        number: int,
        coro: Coroutine[Any, Any, Any],
        name: str | None,
        context: contextvars.Context | None,
    ) -> None:
        self.number: int = number
        self.host: Process | None = CURRENT_PROCESS.get() if context is None else context.get(CURRENT_PROCESS)
        super().__init__(coro, loop=loop, name=name or f"task-{self.number}", context=context)

    def __hash__(self) -> int:
        return self.number


class Timers:
    """The timers of a loop, by time. Equal deadlines come in a seeded order, for asyncio promises none."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._heap: list[tuple[float, float, int, SimTimer]] = []
        self._made = 0
        self._cancelled = 0

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[SimTimer]:
        """Iterate over those that will fire, in no order."""
        return (entry[3] for entry in self._heap if not entry[3]._cancelled)

    def add(self, timer: SimTimer) -> None:
        """Take a timer."""
        timer._scheduled = True
        self._made += 1
        heappush(self._heap, (timer._when, self._rng.random(), self._made, timer))

    def next_time(self) -> float | None:
        """Return when the next one fires; None if none will."""
        heap = self._heap
        while heap and heap[0][3]._cancelled:
            heappop(heap)
            self._cancelled -= 1
        return heap[0][0] if heap else None

    def take_due(self, now: float, batch: list[SimHandle]) -> None:
        """Move what is due to the end of `batch`."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            timer = heappop(heap)[3]
            timer._scheduled = False
            if timer._cancelled:
                self._cancelled -= 1
            else:
                batch.append(timer)

    def on_cancelled(self, timer: SimTimer) -> None:
        """Count a timer that was cancelled before it fired; drop these when they are most of the heap."""
        if not timer._scheduled:
            return
        self._cancelled += 1
        if self._cancelled > LEAST_CANCELLED and self._cancelled * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if not entry[3]._cancelled and entry[3] is not timer]
            heapify(self._heap)
            self._cancelled = 0
