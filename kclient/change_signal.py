"""A counter of changes that tasks wait for, without lost wakeups.

A task reads `count`, looks at the state, then calls `wait(count)`. A change between the look and the wait has already
moved the count, so the wait returns at once:

    while not state.ready:
        seen = state.changed.count
        ...                             # may await; every change in the meantime is counted
        await state.changed.wait(seen)

Imports nothing else of kclient.
"""

from __future__ import annotations

import asyncio


class ChangeSignal:
    """Counts changes. `notify()` wakes every task that waits for a higher count than the one it has seen."""

    __slots__ = ("_chained", "_waiters", "count")

    def __init__(self) -> None:
        self.count: int = 0
        self._waiters: list[asyncio.Future[None]] = []
        self._chained: list[ChangeSignal] = []

    def chain(self, other: ChangeSignal) -> None:
        """Notify `other` of every change of this signal too, so that one wait covers several signals."""
        self._chained.append(other)

    def notify(self) -> None:
        """Count a change and wake the waiting tasks. Call it on the loop's thread."""
        self.count += 1
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
        for signal in self._chained:
            signal.notify()

    async def wait(self, seen: int) -> int:
        """Return the count as soon as it is above `seen`. Use `asyncio.timeout` to limit the wait."""
        while self.count <= seen:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            finally:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
        return self.count


async def wait_any(*seen: tuple[ChangeSignal, int], timeout: float | None = None) -> None:
    """Return once a count is above the one given with its signal, or after `timeout` seconds (None: no limit)."""
    if any(signal.count > count for signal, count in seen):
        return
    waiter = asyncio.get_running_loop().create_future()
    for signal, _ in seen:
        signal._waiters.append(waiter)
    try:
        await asyncio.wait([waiter], timeout=timeout)
    finally:
        for signal, _ in seen:
            if waiter in signal._waiters:
                signal._waiters.remove(waiter)
