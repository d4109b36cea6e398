"""How long the group's work stood still after a kill, by the times that the members report."""

from __future__ import annotations

from collections.abc import Collection

import attrs

from demo.recording import Recovery


@attrs.define
class Stall:
    """What waits since a kill at `at`: members for a commit, or partitions for a record read by another member."""

    name: str
    at: float
    meaning: str
    waiting: set[int | str]
    unsure: set[int | str] = attrs.Factory(set)  # whose first step may have begun before the kill
    last: float | None = None

    def progressed(self, who: Collection[int | str], at: float) -> Recovery | None:
        """Note that these continued at a time after the kill; return the recovery when none waits any more."""
        if at <= self.at or not self.waiting:
            return None
        went_on = (set(who) - self.unsure) & self.waiting
        self.unsure.difference_update(who)
        self.waiting -= went_on
        self.last = at if went_on else self.last
        return self._over()

    def without(self, who: int | str) -> Recovery | None:
        """Remove one that was killed too; return the recovery if all others continued."""
        if who not in self.waiting:
            return None
        self.waiting.discard(who)
        return self._over()

    def _over(self) -> Recovery | None:
        if self.waiting or self.last is None:
            return None
        return Recovery(self.name, self.at, round(self.last - self.at, 3), self.meaning)
