"""What the application has in hand: the records of the last poll, until it asks for more.

A record is *consumed* when it was handed out, and *released* when the application then asked for the next one,
committed, or closed cleanly. Explicit commits and `position()` go by what is consumed, automatic commits by what is
released. The positions table is ahead of both while records wait here to be iterated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kclient.records.reader import Chunk
from kclient.records.records import Record, Records
from kclient.types import OffsetAndMetadata, TopicPartition

Offsets = dict[TopicPartition, OffsetAndMetadata]


class Hand:
    """The records of one poll: handed out at once, or one by one while iterating.

    Iterating goes on where it stopped, also after an interrupt or a `break`: the place is kept here and not in the
    iterator.
    """

    def __init__(self, records: Records[Any, Any], *, one_by_one: bool) -> None:
        self._chunks = [chunk for chunk in records.chunks if len(chunk)]
        self._one_by_one = one_by_one
        self._at = 0  # the chunk that is being handed out
        self._current: Record[Any, Any] | None = None  # the record that was handed out last, of that chunk
        self._taken_back: set[TopicPartition] = set()
        self._confirmed: Offsets = {}
        self._half_processed = False
        self._iterator: Iterator[Record[Any, Any]] | None = None

    def replace(self, records: Records[Any, Any]) -> None:
        """Hand out these instead, before anything was: what interceptors left out counts as handed out."""
        self._chunks = [chunk for chunk in records.chunks if len(chunk)]

    def next(self) -> Record[Any, Any] | None:
        """The next record, None when all were handed out."""
        if self._iterator is None:
            self._iterator = iter(self)
        return next(self._iterator, None)

    def __iter__(self) -> Iterator[Record[Any, Any]]:
        """The records that were not handed out yet, each consumed as it comes out."""
        if not self._one_by_one:
            return
        while self._at < len(self._chunks):
            chunk = self._chunks[self._at]
            overtaken = False
            for record in self._rest(chunk):
                self._current = record
                yield record
                overtaken = self._current is not record  # by another loop over the same consumer
                if overtaken or chunk.partition in self._taken_back:
                    break
            if not overtaken:
                self._at += 1
                self._current = None

    def _rest(self, chunk: Chunk) -> Iterator[Record[Any, Any]]:
        if chunk.partition in self._taken_back:
            return iter(())
        records = iter(Records[Any, Any]((chunk,)))
        last = self._current
        if last is None or _partition(last) != chunk.partition:
            return records
        return (record for record in records if record.offset > last.offset)

    def consumed(self, positions: Mapping[TopicPartition, OffsetAndMetadata]) -> Offsets:
        """Positions, less what was not handed out yet; less all that is in hand once that is half processed."""
        if self._half_processed:
            return self.released(positions)
        held = self._waiting() if self._one_by_one else {}
        if self._current is not None and _partition(self._current) not in self._taken_back:
            held[_partition(self._current)] = _behind(self._current)
        return _overlaid(positions, held)

    def released(self, positions: Mapping[TopicPartition, OffsetAndMetadata]) -> Offsets:
        """Positions, less all that is in hand. An application that iterates meanwhile may be a record further on."""
        held = self._waiting() if self._one_by_one else _first_offsets(self._chunks)
        if (current := self._current) is not None:
            held[_partition(current)] = _at(current)
        for tp, confirmed in self._confirmed.items():
            if tp in held and held[tp].offset < confirmed.offset:
                held[tp] = confirmed
        return _overlaid(positions, held)

    def mark_half_processed(self) -> None:
        """An interrupted application closes: a commit() of its listener must not store what was being processed."""
        self._half_processed = True

    @contextmanager
    def half_processed(self, is_so: bool) -> Iterator[None]:
        """The same for the length of an unsubscribe, which the consumer outlives."""
        before, self._half_processed = self._half_processed, self._half_processed or is_so
        try:
            yield
        finally:
            self._half_processed = before

    def count_from(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> dict[TopicPartition, int]:
        """How many records of each partition there are from these offsets on; partitions without any are left out."""
        counts: Counter[TopicPartition] = Counter()
        for chunk in self._chunks:
            if chunk.partition in offsets and chunk.partition not in self._taken_back:
                first = offsets[chunk.partition].offset
                counts[chunk.partition] += sum(
                    offset >= first for run in chunk.runs for offset in run.offsets
                )
        return dict(+counts)

    def confirm(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """The application committed these itself: they are released."""
        self._confirmed.update(offsets)

    def take_back(self, partitions: Iterable[TopicPartition] | None = None) -> Offsets:
        """Give up what iteration has not handed out yet, of these partitions or of all; where each goes on from."""
        rest = self._waiting() if self._one_by_one else {}
        if self._current is not None and _partition(self._current) not in self._taken_back:
            rest[_partition(self._current)] = _behind(self._current)
        chosen = rest if partitions is None else {tp: rest[tp] for tp in partitions if tp in rest}
        self._taken_back.update(chosen)
        return chosen

    def take_all_back(self) -> Offsets:
        """Give up everything, for the poll that should have returned it was interrupted."""
        return _first_offsets(self._chunks)

    def _waiting(self) -> Offsets:
        """The first record of each partition that iteration has not begun with."""
        waiting, current = self._chunks[self._at :], self._current
        if current is not None and waiting and waiting[0].partition == _partition(current):
            waiting = waiting[1:]
        firsts = _first_offsets(waiting)
        return {tp: offset for tp, offset in firsts.items() if tp not in self._taken_back}


def empty_hand() -> Hand:
    """Nothing in hand."""
    return Hand(Records(), one_by_one=False)


def _first_offsets(chunks: Iterable[Chunk]) -> Offsets:
    first: Offsets = {}
    for chunk in chunks:
        run = chunk.runs[0]
        first.setdefault(chunk.partition, OffsetAndMetadata(run.offsets[0], run.leader_epoch))
    return first


def _overlaid(positions: Mapping[TopicPartition, OffsetAndMetadata], held: Offsets) -> Offsets:
    return {tp: held.get(tp, position) for tp, position in positions.items()}


def _partition(record: Record[Any, Any]) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)


def _at(record: Record[Any, Any]) -> OffsetAndMetadata:
    return OffsetAndMetadata(record.offset, record.leader_epoch)


def _behind(record: Record[Any, Any]) -> OffsetAndMetadata:
    return OffsetAndMetadata(record.offset + 1, record.leader_epoch)
