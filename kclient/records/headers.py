"""The headers of a record: counted and checked while the record is decoded, made into objects when they are read.

    header count varint │ { key size varint, key │ value size varint, value }…        size −1: the value is null

A compressed batch of 1.3 kB can hold a record of 20 million headers, so the count is checked against a limit first, and
`check_headers` makes no objects: columns keep where the headers of a record begin, and `read_headers` starts there.
"""

from __future__ import annotations

from typing import Final

from kclient.errors import CorruptBatchError, TooManyHeadersError
from kclient.records.varint import VARINT_BITS, read_signed, read_unsigned
from kclient.types import Headers

EMPTY: Final[Headers] = ()
NO_HEADERS: Final = -1
"""Where the headers of a record begin that has none."""

MAX_HEADERS_PER_RECORD: Final = 10_000
ANY_NUMBER: Final = 2**31 - 1


def check_headers(data: bytes, position: int, end: int, limit: int, offset: int) -> int:
    """Return the position after the headers of the record at `offset`, which begin with their count at `position`.

    `end` is the record's end, and may lie beyond the data: reading on past those is an IndexError. Raise
    TooManyHeadersError above `limit` headers, else CorruptBatchError.
    """
    count, position = read_signed(data, position, VARINT_BITS)
    if not 0 <= count <= (end - position) // 2:
        raise CorruptBatchError(f"a record claims {count} headers in {end - position} bytes")
    if count > limit:
        raise TooManyHeadersError(
            f"the record at offset {offset} has {count} headers, more than {limit}",
            offset=offset,
            count=count,
            limit=limit,
        )
    for _ in range(count):
        raw = data[position]
        position += 1
        if raw > 0x7F:
            raw, position = read_unsigned(data, position - 1, VARINT_BITS)
        if raw & 1 or raw >> 1 > end - position:
            raise CorruptBatchError(f"a header's key does not fit into {end - position} bytes")
        position += raw >> 1

        raw = data[position]
        position += 1
        if raw > 0x7F:
            raw, position = read_unsigned(data, position - 1, VARINT_BITS)
        if raw & 1:
            if raw != 1:
                raise CorruptBatchError("a header's value has a negative size")
        elif raw >> 1 > end - position:
            raise CorruptBatchError(f"a header's value does not fit into {end - position} bytes")
        else:
            position += raw >> 1
    return position


def read_headers(data: bytes, position: int) -> Headers:
    """Return the headers that `check_headers` found sound. Keys that are not UTF-8 get U+FFFD, as in Java."""
    if position < 0:
        return EMPTY
    count, position = read_signed(data, position, VARINT_BITS)
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        raw = data[position]
        position += 1
        if raw > 0x7F:
            raw, position = read_unsigned(data, position - 1, VARINT_BITS)
        start, position = position, position + (raw >> 1)
        key = data[start:position].decode("utf-8", "replace")

        raw = data[position]
        position += 1
        if raw > 0x7F:
            raw, position = read_unsigned(data, position - 1, VARINT_BITS)
        if raw & 1:
            headers.append((key, None))
        else:
            start, position = position, position + (raw >> 1)
            headers.append((key, data[start:position]))
    return tuple(headers)
