"""The hot loop: records of format 2 into columns. A native decoder can stand in for `decode_records` alone.

    record   length varint │ attributes i8 │ timestamp delta varlong │ offset delta varint
             │ key size varint, key │ value size varint, value │ header count varint, headers

Varints of one and two bytes are read in line, longer ones by `read_unsigned`; that, and not the style of the
rest, is why the function is long. There is one bound check a record: it must end where its length says, and not
behind `end`. All sizes are ≥ 0, so every span lies before that place; reading on past all of `data` meanwhile is
an IndexError.
"""

from __future__ import annotations

from kclient.errors import CorruptBatchError
from kclient.records.columns import Columns, Headers
from kclient.records.varint import VARINT_BITS, VARLONG_BITS, read_signed, read_unsigned

MIN_RECORD_BYTES = 7
NO_HEADERS: Headers = ()


def decode_records(
    columns: Columns,
    position: int,
    count: int,
    *,
    end: int,
    base_offset: int,
    base_timestamp: int,
    previous_delta: int,
    last_delta: int,
) -> int:
    """Append `count` records that begin at `position` of `columns.data`; return the position behind them.

    They must end at or before `end`; their offset deltas ascend from above `previous_delta` to at most
    `last_delta`. On CorruptBatchError the columns hold the records before the bad one, and nothing of it.

    Spec: B.11.1, H-12, H-26.
    """
    try:
        return _decode(columns, position, count, end, base_offset, base_timestamp, previous_delta, last_delta)
    except IndexError:
        _drop_unfinished(columns)
        raise CorruptBatchError("its records end in the middle of a record") from None
    except CorruptBatchError:
        _drop_unfinished(columns)
        raise


def _decode(
    columns: Columns,
    position: int,
    count: int,
    end: int,
    base_offset: int,
    base_timestamp: int,
    previous_delta: int,
    last_delta: int,
) -> int:
    data = columns.data
    append_offset = columns.offsets.append
    append_timestamp = columns.timestamps.append
    append_key_start = columns.key_starts.append
    append_key_size = columns.key_sizes.append
    append_value_start = columns.value_starts.append
    append_value_size = columns.value_sizes.append
    append_headers = columns.headers.append

    for _ in range(count):
        raw = data[position]
        position += 1
        if raw > 0x7F:
            high = data[position]
            if high < 0x80:
                raw += (high << 7) - 0x80
                position += 1
            else:
                raw, position = read_unsigned(data, position - 1, VARINT_BITS)
        if raw & 1:
            raise CorruptBatchError("a record has a negative length")
        record_end = position + (raw >> 1)

        raw = data[position + 1]  # behind the record's attributes, which no version uses
        position += 2
        if raw > 0x7F:
            high = data[position]
            if high < 0x80:
                raw += (high << 7) - 0x80
                position += 1
            else:
                raw, position = read_unsigned(data, position - 1, VARLONG_BITS)
        append_timestamp(base_timestamp + ((raw >> 1) ^ -(raw & 1)))

        raw = data[position]
        position += 1
        if raw > 0x7F:
            high = data[position]
            if high < 0x80:
                raw += (high << 7) - 0x80
                position += 1
            else:
                raw, position = read_unsigned(data, position - 1, VARINT_BITS)
        delta = raw >> 1
        if raw & 1 or not previous_delta < delta <= last_delta:
            raise CorruptBatchError(
                f"the offset delta of a record is not in {previous_delta + 1}…{last_delta}"
            )
        previous_delta = delta
        append_offset(base_offset + delta)

        raw = data[position]
        position += 1
        if raw > 0x7F:
            high = data[position]
            if high < 0x80:
                raw += (high << 7) - 0x80
                position += 1
            else:
                raw, position = read_unsigned(data, position - 1, VARINT_BITS)
        append_key_start(position)
        if raw & 1:
            if raw != 1:
                raise CorruptBatchError("a record's key has a negative size")
            append_key_size(-1)
        else:
            raw >>= 1
            append_key_size(raw)
            position += raw

        raw = data[position]
        position += 1
        if raw > 0x7F:
            high = data[position]
            if high < 0x80:
                raw += (high << 7) - 0x80
                position += 1
            else:
                raw, position = read_unsigned(data, position - 1, VARINT_BITS)
        append_value_start(position)
        if raw & 1:
            if raw != 1:
                raise CorruptBatchError("a record's value has a negative size")
            append_value_size(-1)
        else:
            raw >>= 1
            append_value_size(raw)
            position += raw

        if data[position]:
            headers, position = read_headers(data, position, record_end)
        else:
            headers = NO_HEADERS
            position += 1
        if position != record_end or position > end:
            raise CorruptBatchError(
                "a record does not end where its length says, or not before the batch does"
            )
        append_headers(headers)
    return position


def read_headers(data: bytes, position: int, end: int) -> tuple[Headers, int]:
    """Headers from their count on, and the position behind them. Keys that are not UTF-8 get U+FFFD, as in
    Java.

    Spec: B.11.1, H-26.
    """
    count, position = read_signed(data, position, VARINT_BITS)
    if not 0 <= count <= (end - position) // 2:
        raise CorruptBatchError(f"a record claims {count} headers in {end - position} bytes")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        size, position = read_signed(data, position, VARINT_BITS)
        if not 0 <= size <= end - position:
            raise CorruptBatchError(f"a header's key of {size} bytes in {end - position} bytes")
        key = data[position : position + size].decode("utf-8", "replace")
        size, position = read_signed(data, position + size, VARINT_BITS)
        if not -1 <= size <= end - position:
            raise CorruptBatchError(f"a header's value of {size} bytes in {end - position} bytes")
        if size < 0:
            headers.append((key, None))
        else:
            headers.append((key, data[position : position + size]))
            position += size
    return tuple(headers), position


def _drop_unfinished(columns: Columns) -> None:
    """Headers are appended last, when the whole record was found sound."""
    columns.drop(len(columns.headers), len(columns.timestamps))
