"""A change that flows wait for, without lost wakeups: read `count`, look at the state, then `wait(count)`.

Imports nothing of ours.
"""

from __future__ import annotations

import asyncio


class Notice:
    """Counts changes. `notify()` wakes everybody who waits for a count beyond the one they saw."""

    __slots__ = ("_followers", "_waiters", "count")

    def __init__(self) -> None:
        self.count = 0
        self._waiters: list[asyncio.Future[None]] = []
        self._followers: list[Notice] = []

    def relay(self, follower: Notice) -> None:
        """Let another notice count every change of this one too, so that one wait covers several."""
        self._followers.append(follower)

    def notify(self) -> None:
        """Say that something changed. Call it on the loop's thread."""
        self.count += 1
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
        for follower in self._followers:
            follower.notify()

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


async def wait_any(*seen: tuple[Notice, int], timeout: float | None = None) -> None:
    """Return once one of the notices counts beyond what was seen of it, or after `timeout` seconds (None: no limit)."""
    if any(notice.count > count for notice, count in seen):
        return
    waiter = asyncio.get_running_loop().create_future()
    for notice, _ in seen:
        notice._waiters.append(waiter)
    try:
        await asyncio.wait([waiter], timeout=timeout)
    finally:
        for notice, _ in seen:
            if waiter in notice._waiters:
                notice._waiters.remove(waiter)
