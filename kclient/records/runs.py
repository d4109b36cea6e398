"""Records that are shaped like the one before them, many at once. The results are those of the loop in `decoder`.

Much of what producers send has one size: rows of a table, readings of a sensor, fixed-width keys. Such records lie
`size` bytes apart, so the bytes of one place in all of them are the slice `data[place::size]`, which Python cuts and
compares in C:

    length │ attributes │ timestamp delta │ offset delta │ key size │ key │ value size │ value │ header count
    same     any          decoded           counts up      same       any   same         any     same, no headers

Everything is verified: a run ends at the first record with another byte in a place marked `same`. Timestamp deltas
must be as wide as the first, offset deltas ascend by one; else nothing is taken. What is not taken, the loop decodes
or refuses, so nothing is refused here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from kclient.records.columns import Columns
from kclient.records.headers import NO_HEADERS

SHORTEST: Final = 16
"""Records that are worth the work of a run: it costs about as much as the loop needs for so many."""
_WIDEST_TIME: Final = 9  # bytes, 63 bits: one byte more and the loop must look whether they fit
_BLOCK: Final = 1024


def read_run(
    columns: Columns, model: int, position: int, most: int, end: int, base_offset: int, base_timestamp: int
) -> int:
    """Append up to `most` records from `position` on, as far as they are shaped like the last one in `columns`.

    That one was decoded from `data[model:position]`. Returns how many were appended; each is `position - model`
    bytes long and ends at or before `end`. The caller's `most` keeps offset deltas within their limit.
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
    """How many bytes the varint there has."""
    start = position
    while data[position] > 0x7F:
        position += 1
    return position + 1 - start


def _ascending(data: bytes, position: int, size: int, most: int, first: int, width: int) -> int:
    """How many of the offset deltas are `first` and one more each; a part of them, or none."""
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
    """The deltas of a block as varints of `width` bytes, place by place, up to the highest that fits."""
    raws = range(2 * block * _BLOCK, min(2 * (block + 1) * _BLOCK, 1 << 7 * width), 2)
    more = [0x80] * (width - 1) + [0]
    return tuple(bytes([raw >> 7 * place & 0x7F | more[place] for raw in raws]) for place in range(width))


def _timestamps(
    data: bytes, position: int, size: int, most: int, width: int, base_timestamp: int
) -> list[int] | None:
    """The timestamps of so many records; None where a delta is not a varint of `width` bytes."""
    if width > _WIDEST_TIME:
        return None
    places = [data[position + place : position + place + most * size : size] for place in range(width)]
    if not places[-1].isascii() or any(min(place) < 0x80 for place in places[:-1]):
        return None
    raws = list(places[0])
    for shift, place in zip(range(7, 7 * width, 7), places[1:], strict=True):
        # One less than the byte says, for the bit that told that it follows was counted with the byte before it.
        raws = [raw + (byte - 1 << shift) for raw, byte in zip(raws, place, strict=True)]
    return [base_timestamp + ((raw >> 1) ^ -(raw & 1)) for raw in raws]
