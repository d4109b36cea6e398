"""The place of iteration in the records of one poll: which record was handed out last.

`for record in consumer` makes its records through one of these. The place is kept here and not in the iterators that
they return, so that iteration continues after an interrupt or a `break`, in the same loop or in another one.

    NativeIteration     the iterators of the extension count what they hand out, and the place is found from their
                        counts when it is needed: no Python code runs for a record
    PythonIteration     a generator that notes each record before it is handed out

For example two chunks with the offsets 10, 11, 12 of partition 0 and 10, 11 of partition 1:

    the loop has         place()
    no record yet        0, None
    record 10 of 0       0, offset 10 of 0
    record 12 of 0       0, offset 12 of 0      record 12 may be half processed
    record 10 of 1       1, offset 10 of 1
    record 11 of 1       1, offset 11 of 1
    asked for another    2, None
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from kclient.records.reader import Chunk
from kclient.records.records import Record, Records
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.records._native import RecordIterator


class LastRecord(NamedTuple):
    """The record that was handed out last."""

    partition: TopicPartition
    offset: int
    leader_epoch: int | None


class Iteration(Protocol):
    """Hands out the records of chunks, each once, in however many loops."""

    def __iter__(self) -> Iterator[Record[Any, Any]]:
        """Iterate over the records that were not handed out."""
        ...

    def place(self) -> tuple[int, LastRecord | None]:
        """Return the index of the chunk that is handed out, and the last record, None before the first of the chunk.

        The index is the number of chunks once another record was asked for after the last one. The loop may have gone
        further when the caller looks at the result, never back: the user's thread may run meanwhile.
        """
        ...

    def end(self, index: int) -> None:
        """Hand out no more records of this chunk."""
        ...


def iteration(chunks: Sequence[Chunk]) -> Iteration:
    """Return what hands out the records of these chunks."""
    if all(run.has_arrays for chunk in chunks for run in chunk.runs):
        return NativeIteration(chunks)
    return PythonIteration(chunks)


class NativeIteration:
    """An iterator of the extension for each run of each chunk. Implements Iteration."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks
        self._runs = [
            [
                (run, cast("RecordIterator[Record[Any, Any]]", run.rows(Record, chunk.partition)))
                for run in chunk.runs
            ]
            for chunk in chunks
        ]

    def __iter__(self) -> Iterator[Record[Any, Any]]:
        return chain.from_iterable([iterator for runs in self._runs for _, iterator in runs])

    def place(self) -> tuple[int, LastRecord | None]:
        for index, runs in enumerate(self._runs):
            last: LastRecord | None = None  # between two runs of a chunk: that of the run before
            for run, iterator in runs:
                ended, count = iterator.ended, iterator.handed_out
                if count:
                    last = LastRecord(self._chunks[index].partition, run.offsets[count - 1], run.leader_epoch)
                if not ended:
                    return index, last
        return len(self._runs), None

    def end(self, index: int) -> None:
        for _, iterator in self._runs[index]:
            iterator.end()


class PythonIteration:
    """A generator. Implements Iteration."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks
        # One attribute, so that another thread finds the index and the record of one moment.
        self._place: tuple[int, Record[Any, Any] | None] = 0, None
        self._ended: set[int] = set()

    def __iter__(self) -> Iterator[Record[Any, Any]]:
        while self._place[0] < len(self._chunks):
            index, last = self._place
            for record in self._rest(index, last):
                self._place = index, record
                yield record
                if self._place[1] is not record:
                    break  # another loop over the same consumer went on: begin after its record
                if index in self._ended:
                    self._place = index + 1, None
                    break
            else:
                self._place = index + 1, None

    def place(self) -> tuple[int, LastRecord | None]:
        index, record = self._place
        if record is None:
            return index, None
        partition = TopicPartition(record.topic, record.partition)
        return index, LastRecord(partition, record.offset, record.leader_epoch)

    def end(self, index: int) -> None:
        self._ended.add(index)

    def _rest(self, index: int, last: Record[Any, Any] | None) -> Iterator[Record[Any, Any]]:
        if index in self._ended:
            return iter(())
        records = iter(Records[Any, Any]((self._chunks[index],)))
        if last is None:
            return records
        return (record for record in records if record.offset > last.offset)
