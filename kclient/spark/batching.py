"""From the pieces of a range to Arrow batches of the size that Spark likes: 1 to 10 MB, the first one small."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from kclient.records.reader import Chunk, PartitionReader
from kclient.spark.columns import to_batches

if TYPE_CHECKING:
    import pyarrow as pa

FIRST_BATCH_ROWS: Final = 1_000
UNKNOWN_ROW_BYTES: Final = (
    65_536  # what a row is taken to be until one was seen, so that no batch grows too large
)


class Batcher:
    """Batches of one range: at most `rows` records or about `size` bytes of records each."""

    def __init__(self, columns: Sequence[str], rows: int, size: int) -> None:
        self._columns = columns
        self._rows = rows
        self._size = size
        self._rows_now = min(rows, FIRST_BATCH_ROWS)
        self._row_bytes = UNKNOWN_ROW_BYTES

    def batches(self, reader: PartitionReader, end: int) -> Iterator[pa.RecordBatch]:
        """The records of a piece below `end`."""
        chunks: list[Chunk] = []
        rows = size = unpacked = 0
        while not reader.exhausted and reader.next_offset < end:
            count = min(self._how_many(rows, size), end - reader.next_offset)
            chunk = reader.take(count, self._size - unpacked)
            chunk.cut_at(end)
            if not len(chunk):
                continue
            taken = chunk.size_bytes
            self._row_bytes = taken // len(chunk) + 1
            chunks.append(chunk)
            rows, size, unpacked = rows + len(chunk), size + taken, unpacked + chunk.unpacked_bytes
            if rows >= self._rows_now or size >= self._size or unpacked >= self._size:
                yield from to_batches(chunks, self._columns)
                chunks, rows, size, unpacked, self._rows_now = [], 0, 0, 0, self._rows
        if chunks:
            yield from to_batches(chunks, self._columns)

    def _how_many(self, rows: int, size: int) -> int:
        return min(self._rows_now - rows, (self._size - size) // self._row_bytes + 1)
