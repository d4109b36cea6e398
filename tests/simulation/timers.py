"""The timers of a loop, by time; equal deadlines come in a seeded order, for asyncio promises none."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from random import Random
from typing import Final

from tests.simulation.handles import SimHandle, SimTimer

FEW: Final = 100


class Timers:
    """See the module. Cancelled timers are thrown away when they are most of what is here."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._heap: list[tuple[float, float, int, SimTimer]] = []
        self._made = 0
        self._cancelled = 0

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[SimTimer]:
        """Those that will fire, in no order."""
        return (entry[3] for entry in self._heap if not entry[3]._cancelled)

    def add(self, timer: SimTimer) -> None:
        timer._scheduled = True
        self._made += 1
        heappush(self._heap, (timer._when, self._rng.random(), self._made, timer))

    def next_time(self) -> float | None:
        """When the next one fires; None when none will."""
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

    def was_cancelled(self, timer: SimTimer) -> None:
        """Count a timer that was cancelled before it fired; drop these when they are most of the heap."""
        if not timer._scheduled:
            return
        self._cancelled += 1
        if self._cancelled > FEW and self._cancelled * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if not entry[3]._cancelled and entry[3] is not timer]
            heapify(self._heap)
            self._cancelled = 0
