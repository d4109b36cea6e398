"""Decode many records at once that have the shape of the one before them, with the results of `decoder_python`.

Much of what producers send has one size: rows of a table, readings of a sensor, fixed-width keys. Such records lie
`size` bytes apart, so the bytes of one place in all of them are the slice `data[place::size]`, which Python cuts and
compares in C:

    length │ attributes │ timestamp delta │ offset delta │ key size │ key │ value size │ value │ header count
    same     any          decoded           counts up      same       any   same         any     same, no headers

For example, records of 9 bytes with the keys "a", "b", "c" and the value "x", offset deltas 1, 2, 3 (zigzag 02 04 06):

    place          0   1   2   3   4   5   6   7   8
    model          10  00  00  02  02  61  02  78  00
    next           10  00  00  04  02  62  02  78  00
    next           10  00  00  06  02  63  02  78  00

    data[0::9]     10 10 10       as in the model: same length
    data[3::9]     02 04 06       the offset deltas, compared with a prepared table
    data[4::9]     02 02 02       same key size; places 5 (key) and 7 (value) are not looked at
    key_starts     range(14, …, 9): the spans of all keys without a loop

Every byte that matters is verified: a run ends at the first record with another byte in a place marked `same`. If a
timestamp delta is not as wide as the first, or offset deltas do not ascend by one, no run is decoded. The loop decodes
or rejects what this module leaves, so this module raises no errors.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from kclient.records.columns import Columns
from kclient.records.headers import NO_HEADERS

SHORTEST: Final = 16
"""Shortest run: preparing one costs about as much as decoding so many records in the loop."""
_WIDEST_TIME: Final = (
    9  # bytes, 63 bits: with one more, only the loop checks that the number fits into 64 bits
)
_BLOCK: Final = 1024


def read_run(
    columns: Columns, model: int, position: int, most: int, end: int, base_offset: int, base_timestamp: int
) -> int:
    """Append up to `most` records from `position` on that have the shape of the last one in `columns`.

    The last one was decoded from `data[model:position]`. Return how many were appended; each is `position - model`
    bytes long and ends at or before `end`. The caller limits `most` so that offset deltas stay within the batch.

    The steps stay in one function because they share most of their locals, and because short runs are frequent: each
    further call would make the shortest useful run longer.
    """
    if most < SHORTEST or columns.header_starts[-1] != NO_HEADERS:
        return 0
    data, size = columns.data, position - model
    key_start, key_size = columns.key_starts[-1], columns.key_sizes[-1]
    value_start, value_size = columns.value_starts[-1], columns.value_sizes[-1]
    time_at = _width(data, model) + 1
    delta_at = time_at + _width(data, model + time_at)
    key_size_at = delta_at + _width(data, model + delta_at)

    most = min(most, (end - position) // size)
    for places in (
        range(time_at - 1),
        range(key_size_at, key_start - model),
        range(key_start - model + max(key_size, 0), value_start - model),
        range(value_start - model + max(value_size, 0), size),
    ):
        for place in places:
            if most < SHORTEST:
                return 0
            column = data[position + place : position + most * size : size]
            # lstrip removes the equal bytes at the front: what is left begins with the first record that differs.
            most -= len(column.lstrip(data[model + place : model + place + 1]))

    first_offset = columns.offsets[-1] + 1
    most = _ascending(
        data, position + delta_at, size, most, first_offset - base_offset, key_size_at - delta_at
    )
    if most < SHORTEST:
        return 0
    timestamps = _timestamps(data, position + time_at, size, most, delta_at - time_at, base_timestamp)
    if timestamps is None:
        return 0

    columns.offsets += range(first_offset, first_offset + most)
    columns.timestamps += timestamps
    columns.key_starts += range(key_start + size, key_start + size * most + 1, size)
    columns.key_sizes += [key_size] * most
    columns.value_starts += range(value_start + size, value_start + size * most + 1, size)
    columns.value_sizes += [value_size] * most
    columns.header_starts += [NO_HEADERS] * most
    return most


def _width(data: bytes, position: int) -> int:
    """Return the number of bytes of the varint at this position."""
    start = position
    while data[position] > 0x7F:
        position += 1
    return position + 1 - start


def _ascending(data: bytes, position: int, size: int, most: int, first: int, width: int) -> int:
    """Return how many of the offset deltas are `first`, `first` + 1, …, or 0.

    They are compared place by place with tables of 1,024 deltas, up to the end of the table or of this varint width.
    """
    block, skipped = divmod(first, _BLOCK)
    expected = _deltas(block, width)
    most = min(most, len(expected[0]) - skipped)
    for place, column in enumerate(expected):
        found = data[position + place : position + place + most * size : size]
        if found != column[skipped : skipped + most]:
            return 0
    return most


@lru_cache(maxsize=256)
def _deltas(block: int, width: int) -> tuple[bytes, ...]:
    """Return a block of deltas as varints of `width` bytes, one bytes object per place, up to the highest that fits.

    Two bytes hold 64 … 8191: the delta 200 is raw 400 = 0b11_0010000, so 0x90 (7 low bits, with the bit that another
    byte follows) in the first bytes object and 0x03 in the second.
    """
    raws = range(2 * block * _BLOCK, min(2 * (block + 1) * _BLOCK, 1 << 7 * width), 2)
    more = [0x80] * (width - 1) + [0]
    return tuple(bytes([raw >> 7 * place & 0x7F | more[place] for raw in raws]) for place in range(width))


def _timestamps(
    data: bytes, position: int, size: int, most: int, width: int, base_timestamp: int
) -> list[int] | None:
    """Return the timestamps of so many records, None if a delta is not a varint of `width` bytes."""
    if width > _WIDEST_TIME:
        return None
    places = [data[position + place : position + place + most * size : size] for place in range(width)]
    if not places[-1].isascii() or any(min(place) < 0x80 for place in places[:-1]):
        return None
    raws = list(places[0])
    for shift, place in zip(range(7, 7 * width, 7), places[1:], strict=True):
        # `raw` still contains bit 7 of the byte before, which only says that this one follows: 1 << shift too much.
        # 0x90 0x03: 0x90 + ((0x03 − 1) << 7) = 400.
        raws = [raw + (byte - 1 << shift) for raw, byte in zip(raws, place, strict=True)]
    return [base_timestamp + ((raw >> 1) ^ -(raw & 1)) for raw in raws]
