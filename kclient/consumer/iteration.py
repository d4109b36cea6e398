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
from typing import Any, NamedTuple, Protocol

from kclient.records.reader import Chunk
from kclient.records.records import Record, Records
from kclient.types import TopicPartition


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

        The index is the number of chunks once another record was asked for after the last one. The loop may be one
        record further when the caller looks at the result: the user's thread may run meanwhile.
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
        self._runs = [(index, run) for index, chunk in enumerate(chunks) for run in chunk.runs]
        self._iterators: list[Any] = [run.rows(Record, chunks[index].partition) for index, run in self._runs]

    def __iter__(self) -> Iterator[Record[Any, Any]]:
        return chain.from_iterable(self._iterators)

    def place(self) -> tuple[int, LastRecord | None]:
        last: tuple[int, LastRecord] | None = None
        for (index, run), iterator in zip(self._runs, self._iterators, strict=True):
            ended, count = iterator.ended, iterator.handed_out
            if count:
                offset = run.offsets[count - 1]
                last = index, LastRecord(self._chunks[index].partition, offset, run.leader_epoch)
            if not ended:
                # Between two runs of a chunk, the last record is that of the run before.
                return last if last is not None and last[0] == index else (index, None)
        return len(self._chunks), None

    def end(self, index: int) -> None:
        for (of, _), iterator in zip(self._runs, self._iterators, strict=True):
            if of == index:
                iterator.end()


class PythonIteration:
    """A generator. Implements Iteration."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks
        self._at = 0
        self._current: Record[Any, Any] | None = None
        self._ended: set[int] = set()

    def __iter__(self) -> Iterator[Record[Any, Any]]:
        while self._at < len(self._chunks):
            index = self._at
            for record in self._rest(index):
                self._current = record
                yield record
                if self._current is not record:
                    break  # another loop over the same consumer went on: begin after its record
                if index in self._ended:
                    self._next_chunk()
                    break
            else:
                self._next_chunk()

    def place(self) -> tuple[int, LastRecord | None]:
        index, record = self._at, self._current
        if record is None:
            return index, None
        return index, LastRecord(TopicPartition(*record[:2]), record.offset, record.leader_epoch)

    def end(self, index: int) -> None:
        self._ended.add(index)

    def _next_chunk(self) -> None:
        self._at += 1
        self._current = None

    def _rest(self, index: int) -> Iterator[Record[Any, Any]]:
        if index in self._ended:
            return iter(())
        records = iter(Records[Any, Any]((self._chunks[index],)))
        last = self._current
        if last is None:
            return records
        return (record for record in records if record.offset > last.offset)
