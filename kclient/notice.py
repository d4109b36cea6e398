"""A change that flows wait for, without lost wakeups: read `count`, look at the state, then `wait(count)`.

Imports nothing of ours.
"""

from __future__ import annotations

import asyncio


class Notice:
    """Counts changes. `notify()` wakes everybody who waits for a count beyond the one they saw."""

    __slots__ = ("_waiters", "count")

    def __init__(self) -> None:
        self.count = 0
        self._waiters: list[asyncio.Future[None]] = []

    def notify(self) -> None:
        """Say that something changed. Call it on the loop's thread."""
        self.count += 1
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, seen: int) -> int:
        """Return the count once it is beyond `seen`; at once if it already is. Bound it with `asyncio.timeout`."""
        while self.count <= seen:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            finally:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
        return self.count
