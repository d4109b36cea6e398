"""Which leader epoch wrote which part of a log: each epoch with its first offset, both ascending.

An epoch that wrote nothing leaves no trace once the next one begins at the same offset. See KIP-101, KIP-320.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter
from typing import Final

UNKNOWN: Final = (-1, -1)

_epoch = itemgetter(0)
_first = itemgetter(1)


class LeaderEpochs:
    """The epochs of one log. Empty for a log of old formats, whose batches carry no epoch."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, int]] = []  # epoch, first offset

    def begin(self, epoch: int, offset: int) -> None:
        """A leader of this epoch appends from `offset` on."""
        if self.entries and self.entries[-1][0] >= epoch:
            return
        self.truncate(offset)
        self.entries.append((epoch, offset))

    def end_of(self, epoch: int, log_end: int) -> tuple[int, int]:
        """The newest epoch up to `epoch`, and where it ended; −1 and −1 where that cannot be said.

        An epoch below all that are known ends where the first known one begins.
        """
        if not self.entries or not 0 <= epoch <= self.entries[-1][0]:
            return UNKNOWN
        if epoch == self.entries[-1][0]:
            return epoch, log_end
        above = bisect_right(self.entries, epoch, key=_epoch)
        known = self.entries[above - 1][0] if above else epoch
        return known, self.entries[above][1]

    def at(self, offset: int) -> int:
        """The epoch that wrote the record at an offset, −1 where unknown."""
        above = bisect_right(self.entries, offset, key=_first)
        return self.entries[above - 1][0] if above else -1

    def truncate(self, to: int) -> None:
        """Forget the epochs that begin at or behind the new end."""
        while self.entries and self.entries[-1][1] >= to:
            self.entries.pop()

    def advance_start(self, to: int) -> None:
        """The log begins at `to` now: the epoch of that offset begins there, older ones are forgotten."""
        above = bisect_right(self.entries, to, key=_first)
        if above:
            self.entries[:above] = [(self.entries[above - 1][0], to)]
