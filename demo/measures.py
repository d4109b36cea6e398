"""What the members of the group have consumed, and how long a kill stopped them. Pure.

Offsets are counted exactly although a record may come twice: as half-open ranges, merged.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence

import attrs

from demo.recording import Recovery


class ConsumedOffsets:
    """Distinct offsets of each partition, and how often any was delivered."""

    def __init__(self, partitions: int) -> None:
        self.delivered = 0
        self._starts: list[list[int]] = [[] for _ in range(partitions)]
        self._ends: list[list[int]] = [[] for _ in range(partitions)]

    def add(self, partition: int, start: int, end: int) -> None:
        """Add the consumed offsets from `start` to before `end` of a partition."""
        self.delivered += end - start
        starts, ends = self._starts[partition], self._ends[partition]
        first = bisect_left(ends, start)  # the ranges that touch or overlap the new one
        last = bisect_right(starts, end)
        if first < last:
            start, end = min(start, starts[first]), max(end, ends[last - 1])
        starts[first:last], ends[first:last] = [start], [end]

    def distinct(self, partition: int) -> int:
        """Return the number of different consumed offsets of the partition."""
        return sum(self._ends[partition]) - sum(self._starts[partition])

    @property
    def total(self) -> int:
        """How many different records were consumed."""
        return sum(self.distinct(partition) for partition in range(len(self._starts)))

    @property
    def repeated(self) -> int:
        """Deliveries beyond the first."""
        return self.delivered - self.total


def ranges(offsets: Iterable[int]) -> list[tuple[int, int]]:
    """Ascending offsets as half-open ranges without gaps."""
    found: list[tuple[int, int]] = []
    for offset in offsets:
        if found and found[-1][1] == offset:
            found[-1] = (found[-1][0], offset + 1)
        else:
            found.append((offset, offset + 1))
    return found


def lags(published: Sequence[int], positions: Sequence[int]) -> list[int]:
    """Return the unread records of each partition."""
    return [end - position for end, position in zip(published, positions, strict=True)]


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
