"""The log of one partition: real record batches, kept as bytes, and the leader epochs that wrote them.

A pure object without time and network. Offsets may have gaps (compaction). Leader epochs: KIP-101, KIP-320. Headers are
read once, when a batch is appended; only the log cleaner, the conversion to old formats and lookups by time read
records. Lookups are bisections, so a long log costs no more than a short one.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from operator import attrgetter, itemgetter
from typing import Final

import attrs

from kclient.embedded.producers import ProducerStateManager
from kclient.errors import InternalError
from kclient.records.batch import Batch, read_batches
from kclient.records.columns import Columns
from kclient.records.sections import columns_for, open_batch
from kclient.records.writer import NewRecord

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
        """Remove the epochs that begin at or after the new end."""
        while self.entries and self.entries[-1][1] >= to:
            self.entries.pop()

    def advance_start(self, to: int) -> None:
        """The log begins at `to` now: the epoch of that offset begins there, older ones are forgotten."""
        above = bisect_right(self.entries, to, key=_first)
        if above:
            self.entries[:above] = [(self.entries[above - 1][0], to)]


_OFFSET = struct.Struct(">q")
_EPOCH = struct.Struct(">i")
_EPOCH_AT = 12
_last_offset = attrgetter("last_offset")


@attrs.define(eq=False)
class StoredBatch:
    """One batch as it lies in the log: a batch of format 2, or one message (a wrapper, perhaps) of format 0 or 1."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    data: bytes
    header: Batch

    @classmethod
    def of(cls, data: bytes, base_offset: int) -> StoredBatch:
        """A batch whose offsets are final. `base_offset` is what wrappers of old formats do not say."""
        header = next(read_batches(data), None)
        if header is None or header.end != len(data):
            raise InternalError(f"{len(data)} bytes to be stored are not one whole batch.")
        return cls(base_offset, header.last_offset, header.partition_leader_epoch, data, header)


def placed(data: bytes, base_offset: int, leader_epoch: int) -> StoredBatch:
    """A batch of format 2 under these. Both fields lie outside of what its CRC covers."""
    offset, epoch = _OFFSET.pack(base_offset), _EPOCH.pack(leader_epoch)
    return StoredBatch.of(offset + data[8:_EPOCH_AT] + epoch + data[_EPOCH_AT + 4 :], base_offset)


class Log:
    """From `start` (the log start offset) to `end` (the log end offset, of the next record)."""

    def __init__(self) -> None:
        self.start: int = 0
        self.end: int = 0
        self.batches: list[StoredBatch] = []
        self.epochs: Final = LeaderEpochs()
        self.producers: ProducerStateManager = ProducerStateManager()
        self._peaks: list[int] = []  # the highest timestamp up to each batch

    # --- writing

    def append(self, data: bytes, leader_epoch: int) -> StoredBatch:
        """Append a batch of format 2 at the next offsets."""
        return self.keep(placed(data, self.end, leader_epoch))

    def keep(self, stored: StoredBatch) -> StoredBatch:
        """Append a batch with its final offsets."""
        if stored.leader_epoch >= 0:
            self.epochs.begin(stored.leader_epoch, stored.base_offset)
        self.batches.append(stored)
        highest = stored.header.max_timestamp
        self._peaks.append(max(highest, self._peaks[-1]) if self._peaks else highest)
        self.end = stored.last_offset + 1
        self.producers.record(stored.header)
        return stored

    def truncate(self, to: int) -> None:
        """Drop every batch that does not end below `to`."""
        if to >= self.end:
            return
        cut = self._index(to)
        del self.batches[cut:], self._peaks[cut:]
        self.end = to
        self.start = min(self.start, to)
        self.epochs.truncate(to)
        self.producers = ProducerStateManager.replayed(stored.header for stored in self.batches)

    def advance_start(self, to: int) -> None:
        """Records below `to` are no longer served; batches that end below it are gone."""
        if to <= self.start:
            return
        self.start = min(to, self.end)
        self.epochs.advance_start(self.start)
        self.replace(self.batches[self._index(self.start) :])

    def replace(self, batches: Iterable[StoredBatch]) -> None:
        """Keep these batches instead of those that are there: what retention or a cleaner left of them."""
        self.batches = list(batches)
        self._peaks = list(accumulate((stored.header.max_timestamp for stored in self.batches), max))

    # --- reading

    def from_offset(self, offset: int) -> Iterator[StoredBatch]:
        """Iterate over the batches that end at or after an offset."""
        at = self._index(offset)
        while at < len(self.batches):
            yield self.batches[at]
            at += 1

    def read(self, offset: int, below: int, max_bytes: int) -> list[StoredBatch]:
        """Batches from the one that holds `offset` on, all below `below`, until they have `max_bytes` together."""
        found: list[StoredBatch] = []
        size = 0
        for stored in self.from_offset(offset):
            if stored.last_offset >= below:
                break
            found.append(stored)
            size += len(stored.data)
            if size >= max_bytes:
                break
        return found

    def not_before(self, timestamp: int) -> Iterator[StoredBatch]:
        """The batches from the first one on that has a record with this timestamp or a later one."""
        at = bisect_left(self._peaks, timestamp)
        while at < len(self.batches):
            yield self.batches[at]
            at += 1

    @property
    def latest(self) -> StoredBatch | None:
        """The first of the batches with the highest timestamp."""
        return next(self.not_before(self._peaks[-1]), None) if self._peaks else None

    def size_bytes(self, below: int) -> int:
        """Return the bytes of the batches that begin below an offset."""
        return sum(len(stored.data) for stored in self.batches if stored.base_offset < below)

    def _index(self, offset: int) -> int:
        """Return the index of the first batch that ends at or after an offset."""
        return bisect_left(self.batches, offset, key=_last_offset)


ALL_RECORDS = 2**31


def columns_of(header: Batch) -> Columns:
    """All records of a batch. Raise CorruptBatchError, BatchTooLargeError, UnsupportedFormatError."""
    section = open_batch(header)
    columns = columns_for(section)
    section.read_into(columns, ALL_RECORDS)
    return columns


def records_of(header: Batch) -> list[NewRecord]:
    """The same one by one, each with its offset."""
    columns = columns_of(header)
    rows = zip(
        columns.raw_keys(),
        columns.raw_values(),
        columns.timestamps,
        columns.headers,
        columns.offsets,
        strict=True,
    )
    return [NewRecord(*row) for row in rows]
