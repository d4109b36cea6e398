"""The log of one partition: real record batches, kept as bytes, each under the offsets it was given.

A pure object without time and network. Offsets may have gaps (compaction). Batches of format 2 only move their base
offset and leader epoch when they are appended: both lie outside of what the CRC covers.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator

import attrs

from kclient.records.batch import Batch, read_batches

_OFFSET = struct.Struct(">q")
_EPOCH = struct.Struct(">i")
_EPOCH_AT = 12


@attrs.define(eq=False)
class Stored:
    """One batch as it lies in the log."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    data: bytes
    header: Batch


class Log:
    """From `start` (the log start offset) to `end` (the log end offset, of the next record)."""

    def __init__(self) -> None:
        self.start = 0
        self.end = 0
        self.batches: list[Stored] = []
        self.epochs: list[tuple[int, int]] = []  # leader epoch → its first offset, ascending

    def begin_epoch(self, epoch: int) -> None:
        """A leader of this epoch appends from here on. Spec: S0-61."""
        if not self.epochs or self.epochs[-1][0] < epoch:
            self.epochs.append((epoch, self.end))

    def append(self, data: bytes, leader_epoch: int) -> Stored:
        """Give a batch of format 2 the next offsets and keep it."""
        (header,) = read_batches(data)
        delta = header.last_offset - header.base_offset
        kept = _OFFSET.pack(self.end) + data[8:_EPOCH_AT] + _EPOCH.pack(leader_epoch) + data[_EPOCH_AT + 4 :]
        (header,) = read_batches(kept)
        stored = Stored(self.end, self.end + delta, leader_epoch, kept, header)
        self.batches.append(stored)
        self.end = stored.last_offset + 1
        return stored

    def read(self, offset: int, max_bytes: int, below: int) -> list[bytes]:
        """Whole batches from the one that holds `offset` on, all below `below`; the first one whatever its size."""
        found: list[bytes] = []
        size = 0
        for stored in self.from_offset(offset):
            if stored.last_offset >= below or (found and size + len(stored.data) > max_bytes):
                break
            found.append(stored.data)
            size += len(stored.data)
        return found

    def from_offset(self, offset: int) -> Iterator[Stored]:
        """The batches that end at or behind an offset."""
        at = bisect_right(self.batches, offset, key=lambda stored: stored.base_offset)
        if at and self.batches[at - 1].last_offset >= offset:
            at -= 1
        while at < len(self.batches):
            yield self.batches[at]
            at += 1

    def truncate(self, to: int) -> None:
        """Drop every batch that does not end below `to`."""
        while self.batches and self.batches[-1].last_offset >= to:
            self.batches.pop()
        self.end = min(self.end, to)
        self.epochs = [(epoch, first) for epoch, first in self.epochs if first <= self.end]

    def advance_start(self, to: int) -> None:
        """Records below `to` are no longer served; batches that end below it are gone."""
        self.start = max(self.start, min(to, self.end))
        while self.batches and self.batches[0].last_offset < self.start:
            self.batches.pop(0)
