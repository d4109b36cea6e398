"""How long the group's work stood still after a kill, by the times that the members tell."""

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

    def progressed(self, who: Collection[int | str], at: float) -> Recovery | None:
        """These went on at a moment behind the kill; the recovery once none waits any more."""
        if at <= self.at or not self.waiting:
            return None
        self.waiting.difference_update(set(who) - self.unsure)
        self.unsure.difference_update(who)
        return None if self.waiting else Recovery(self.name, self.at, round(at - self.at, 3), self.meaning)
