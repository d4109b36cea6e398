"""Decode the records of a batch of format 2 into columns, in Python: the reference for every other decoder.

Records that have the shape of the record before them are decoded many at once (`runs`), with the results of the loop.

    record   length varint │ attributes i8 │ timestamp delta varlong │ offset delta varint
             │ key size varint, key │ value size varint, value │ header count varint, headers

`_decode` is one long function on purpose: a function call costs more than reading a varint of one or two bytes, and
each record has five. So these are read in line, longer ones by `read_unsigned`:

    0x08             0x08 < 0x80: one byte, raw 8; zigzag: 8 >> 1 = 4
    0x90 0x03        0x90 > 0x7F: two bytes, raw 0x90 + (0x03 << 7) − 0x80 = 400; 400 >> 1 = 200
    raw & 1          the number is negative: 1 is −1, the null key or value; 3 is −2, an error for a size

One bound check per record is enough: the record must end where its length says, and at or before `end`. All sizes are
≥ 0, so key, value and headers lie before that end. Reading past `data` on the way there is an IndexError. A record is
appended as a whole after all checks, so that after an error the columns hold only whole records.
"""

from __future__ import annotations

from typing import Final

from kclient.errors import CorruptBatchError
from kclient.records.columns import Columns
from kclient.records.headers import ANY_NUMBER, NO_HEADERS, check_headers
from kclient.records.runs import read_run
from kclient.records.varint import VARINT_BITS, VARLONG_BITS, read_unsigned

LONG_RUN: Final = 32  # records; preparing a shorter run costs as much as the loop
LONGEST_TURN: Final = 256  # records that the loop decodes before the next try for a run


class PythonDecoder:
    """Implement `decoder.Decoder`, which documents the arguments."""

    columns_type = Columns

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
        max_headers: int = ANY_NUMBER,
    ) -> int:
        try:
            return _decode_in_turns(
                columns,
                position,
                count,
                end,
                base_offset,
                base_timestamp,
                previous_delta,
                last_delta,
                max_headers,
            )
        except IndexError:
            raise CorruptBatchError("its records end in the middle of a record") from None


def _decode_in_turns(
    columns: Columns,
    position: int,
    count: int,
    end: int,
    base_offset: int,
    base_timestamp: int,
    previous_delta: int,
    last_delta: int,
    max_headers: int,
) -> int:
    """Decode one record in the loop and those with its shape in a run, and so on.

    After a short run the loop decodes 4, then 16, 64 and LONGEST_TURN records before the next try, so that records of
    different shapes cost hardly more than the loop alone.
    """
    turn = 1
    while count:
        turn = min(turn, count)
        last, position = _decode(
            columns, position, turn, end, base_offset, base_timestamp, previous_delta, last_delta, max_headers
        )
        count -= turn
        previous_delta = columns.offsets[-1] - base_offset
        most = min(count, last_delta - previous_delta)
        run = read_run(columns, last, position, most, end, base_offset, base_timestamp)
        position += run * (position - last)
        previous_delta += run
        count -= run
        turn = 1 if run >= LONG_RUN else min(4 * turn, LONGEST_TURN)
    return position


def _decode(
    columns: Columns,
    position: int,
    count: int,
    end: int,
    base_offset: int,
    base_timestamp: int,
    previous_delta: int,
    last_delta: int,
    max_headers: int,
) -> tuple[int, int]:
    """Decode `count` records. Return where the last one begins, and where it ends."""
    data = columns.data
    offsets, timestamps, header_starts = columns.offsets, columns.timestamps, columns.header_starts
    key_starts, key_sizes = columns.key_starts, columns.key_sizes
    value_starts, value_sizes = columns.value_starts, columns.value_sizes

    start = position
    for _ in range(count):
        start = position
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

        raw = data[position + 1]  # after the record's attributes, which no version uses
        position += 2
        if raw > 0x7F:
            high = data[position]
            if high < 0x80:
                raw += (high << 7) - 0x80
                position += 1
            else:
                raw, position = read_unsigned(data, position - 1, VARLONG_BITS)
        timestamp = base_timestamp + ((raw >> 1) ^ -(raw & 1))

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

        raw = data[position]
        position += 1
        if raw > 0x7F:
            high = data[position]
            if high < 0x80:
                raw += (high << 7) - 0x80
                position += 1
            else:
                raw, position = read_unsigned(data, position - 1, VARINT_BITS)
        key_start = position
        if raw & 1:
            if raw != 1:
                raise CorruptBatchError("a record's key has a negative size")
            key_size = -1
        else:
            key_size = raw >> 1
            position += key_size

        raw = data[position]
        position += 1
        if raw > 0x7F:
            high = data[position]
            if high < 0x80:
                raw += (high << 7) - 0x80
                position += 1
            else:
                raw, position = read_unsigned(data, position - 1, VARINT_BITS)
        value_start = position
        if raw & 1:
            if raw != 1:
                raise CorruptBatchError("a record's value has a negative size")
            value_size = -1
        else:
            value_size = raw >> 1
            position += value_size

        if data[position]:
            header_start = position
            position = check_headers(data, position, record_end, max_headers, base_offset + delta)
        else:
            header_start = NO_HEADERS
            position += 1
        if position != record_end or position > end:
            raise CorruptBatchError(
                "a record does not end where its length says, or not before the batch does"
            )

        offsets.append(base_offset + delta)
        timestamps.append(timestamp)
        key_starts.append(key_start)
        key_sizes.append(key_size)
        value_starts.append(value_start)
        value_sizes.append(value_size)
        header_starts.append(header_start)
    return start, position
