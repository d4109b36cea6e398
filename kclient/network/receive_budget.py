"""How many bytes of long answers may be on their way at once, over all connections of a client.

A peer says how long its answer will be before it sends any of it. A connection that has received the first part asks
for the whole here; while there is no room it reads nothing more, and the peer waits as TCP makes it wait. All is asked
for at once, so two answers never wait for each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import attrs


@attrs.define(eq=False)
class Claim:
    """Bytes of one answer: granted, or waiting for `granted` to be called."""

    size: int
    on_granted: Callable[[], None]
    is_granted: bool = False


class ReceiveBudget:
    """At most `limit` bytes, and always one answer."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._waiting: deque[Claim] = deque()

    def claim(self, size: int, on_granted: Callable[[], None]) -> Claim:
        """Ask for room; `on_granted` is called later if there is none now. `release` it in either case."""
        claim = Claim(size, on_granted)
        if not self._waiting and self._fits(claim):
            self._grant(claim)
        else:
            self._waiting.append(claim)
        return claim

    def release(self, claim: Claim) -> None:
        """The answer is complete, or its connection has ended."""
        if not claim.is_granted:
            self._waiting.remove(claim)
            return
        self.used -= claim.size
        while self._waiting and self._fits(self._waiting[0]):
            first = self._waiting.popleft()
            self._grant(first)
            first.on_granted()

    def _fits(self, claim: Claim) -> bool:
        return not self.used or self.used + claim.size <= self.limit

    def _grant(self, claim: Claim) -> None:
        claim.is_granted = True
        self.used += claim.size
