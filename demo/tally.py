"""Which offsets were consumed, counted exactly although a record may come twice: half-open ranges, merged. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence


class Tally:
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
