"""The layout of a record of format 2 read field by field, with every bound checked where it matters.

Slow and plain on purpose: what a decoder of the library gives is compared with this. It shares no line with them.
"""

from __future__ import annotations

from collections.abc import Iterator

from kclient.errors import CorruptBatchError
from kclient.records.columns import Columns
from kclient.records.headers import Headers


class Cursor:
    """A place in the bytes that never passes `end`."""

    def __init__(self, data: bytes, position: int, end: int) -> None:
        self.data, self.position, self.end = data, position, end

    def skip(self, size: int) -> int:
        """Go past `size` bytes; where they begin."""
        start = self.position
        if size < 0 or size > self.end - start:
            raise CorruptBatchError(f"{size} bytes of {self.end - start}")
        self.position += size
        return start

    def varint(self, most_bytes: int = 5, bits: int = 32) -> int:
        raw = 0
        for index in range(most_bytes):
            byte = self.data[self.skip(1)]
            raw |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                break
        else:
            raise CorruptBatchError("an endless varint")
        if raw >= 1 << bits:
            raise CorruptBatchError("a varint that is too large")
        return raw // 2 if raw % 2 == 0 else -(raw + 1) // 2

    def nullable(self) -> tuple[int, int]:
        """Start and size of a field that may be null (size −1)."""
        size = self.varint()
        return (self.position, -1) if size == -1 else (self.skip(size), size)


class PlainColumns(Columns):
    """Columns that read headers field by field too."""

    @property
    def headers(self) -> Iterator[Headers]:
        for start in self.header_starts:
            record = Cursor(self.data, start, len(self.data))
            yield () if start < 0 else tuple(header(record) for _ in counted(record))


class PlainDecoder:
    """A `Decoder`, for comparison."""

    columns_type = PlainColumns

    def decode(
        self,
        columns: Columns,
        position: int,
        count: int,
        *,
        end: int,
        base_offset: int,
        base_timestamp: int,
        previous_delta: int,
        last_delta: int,
        max_headers: int,
    ) -> int:
        batch = Cursor(columns.data, position, min(end, len(columns.data)))
        for _ in range(count):
            length = batch.varint()
            start = batch.skip(length)
            record = Cursor(columns.data, start, start + length)
            record.skip(1)
            timestamp = base_timestamp + record.varint(10, 64)
            delta = record.varint()
            if delta <= previous_delta or delta > last_delta:
                raise CorruptBatchError("an offset out of order")
            key, value = record.nullable(), record.nullable()
            header_start, headers = record.position, [header(record) for _ in counted(record)]
            if record.position != record.end:
                raise CorruptBatchError("bytes behind the headers")
            previous_delta = delta
            columns.offsets.append(base_offset + delta)
            columns.timestamps.append(timestamp)
            columns.key_starts.append(key[0])
            columns.key_sizes.append(key[1])
            columns.value_starts.append(value[0])
            columns.value_sizes.append(value[1])
            columns.header_starts.append(header_start if headers else -1)
        return batch.position


def counted(record: Cursor) -> Iterator[int]:
    count = record.varint()
    if count < 0:
        raise CorruptBatchError("a negative count of headers")
    return iter(range(count))


def header(record: Cursor) -> tuple[str, bytes | None]:
    size = record.varint()
    start = record.skip(size)
    key = record.data[start : start + size].decode("utf-8", "replace")
    start, size = record.nullable()
    return key, None if size < 0 else record.data[start : start + size]
