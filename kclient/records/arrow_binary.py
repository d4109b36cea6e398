"""Keys or values of many records as one Arrow array of binary, copied by Arrow and not by Python.

The bytes of the batches become an Arrow array without a copy, with twice as many entries as there are records: every
second one is a key (or value), the others are the bytes between them.

    data     │ header  key  value │ header  key  value │ …
    offsets                ▲     ▲               ▲     ▲       start and end of one, start and end of the next
    entries                wanted│──── between ──│wanted│

A filter then copies the wanted entries, once, without a Python object per record. For example with the values "ab" and
"xyz" at 10 and 20:

    offsets    10 12 20 23 23       entries   "ab", bytes 12 to 20, "xyz", ""
    filter     1  0  1  0           array     "ab", "xyz"

Large values are concatenated one by one instead, because a filter grows its output by copying. A single large value is
not copied at all.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from kclient.records.columns import Columns

Numbers: TypeAlias = Callable[[Columns], Sequence[int]]

MOST_BYTES: Final = 2**31 - 1
"""Of one array: its offsets are signed and have 32 bits."""

LARGE_BYTES: Final = 65_536
"""Values that are as large as this on average cost more to copy than to look at one by one."""

MOST_JOINED_BYTES: Final = 33_554_432
"""Of different batches in one array, for which they have to be copied together first."""

_EVERY_SECOND: Final = b"\x55"  # the lowest bit is the first entry
_NULL_SIZE: Final = b"\xff" * 4  # -1, as it lies in memory
_ZERO: Final = pa.scalar(0, pa.int32())  # a bare 0 would make 64 bits of everything


def portions(runs: Sequence[Columns], most_bytes: int = MOST_BYTES) -> Iterator[list[Columns]]:
    """Group the runs that have records so that the keys and values of a group fit into arrays. One run always fits."""
    group: list[Columns] = []
    size = 0
    for run in runs:
        if not len(run):
            continue
        size_of_run = _extent_bytes(run)
        most = most_bytes if not group or run.data is group[0].data else min(most_bytes, MOST_JOINED_BYTES)
        if group and size + size_of_run > most:
            yield group
            group, size = [], 0
        group.append(run)
        size += size_of_run
    if group:
        yield group


def keys(runs: Sequence[Columns]) -> Any:
    """Return the keys as a pyarrow array of binary, null for a null key."""
    return _cut_out(runs, lambda run: run.key_starts, lambda run: run.key_sizes)


def values(runs: Sequence[Columns]) -> Any:
    """Return the values as a pyarrow array of binary, null for a null value."""
    return _cut_out(runs, lambda run: run.value_starts, lambda run: run.value_sizes)


def _cut_out(runs: Sequence[Columns], starts_of: Numbers, sizes_of: Numbers) -> Any:
    numbers = _end_to_end(runs, sizes_of)
    sizes, count = _int32(numbers), len(numbers)
    # A search of bytes costs a tenth of a kernel's call. Any four bytes in a row contain the highest of a number, which
    # is ff in no size: what is found is a null.
    has_nulls = _NULL_SIZE in numbers.tobytes()
    if has_nulls and pc.max(sizes).as_py() < 0:
        return pa.nulls(count, pa.binary())
    data, starts = _in_one(runs, starts_of)
    offsets = array("i", bytes(4)) * (2 * count + 1)
    offsets[:-1:2] = _numbers(starts)
    offsets[1::2] = _numbers(pc.add(starts, pc.max_element_wise(sizes, _ZERO) if has_nulls else sizes))
    offsets[-1] = offsets[-2]
    entries = pa.Array.from_buffers(pa.binary(), 2 * count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    large = LARGE_BYTES * count
    is_large = sum(map(_extent_bytes, runs)) >= large and pc.sum(sizes).as_py() >= large
    wanted = _every_second(entries, is_large=is_large)
    if not has_nulls:
        return wanted
    known = pc.greater_equal(sizes, _ZERO).buffers()[1]
    return pa.Array.from_buffers(pa.binary(), count, [known, *wanted.buffers()[1:]], offset=wanted.offset)


def _every_second(entries: Any, *, is_large: bool) -> Any:
    count = len(entries) // 2
    if is_large and count == 1:
        return entries.slice(0, 1)
    if is_large:
        return pa.concat_arrays([entries.slice(2 * index, 1) for index in range(count)])
    every_second = pa.py_buffer(_EVERY_SECOND * (count // 4 + 1))
    return entries.filter(pa.Array.from_buffers(pa.bool_(), 2 * count, [None, every_second]))


def _in_one(runs: Sequence[Columns], starts_of: Numbers) -> tuple[bytes, Any]:
    """Return bytes that contain the spans of all runs, and where the spans begin there."""
    starts = _int32(_end_to_end(runs, starts_of))
    if all(run.data is runs[0].data for run in runs):  # one batch, or all of a Fetch that was not compressed
        return runs[0].data, starts
    parts: list[memoryview] = []
    shifts = array("i")
    size = 0
    for run in runs:
        low, high = _extent(run)
        parts.append(memoryview(run.data)[low:high])
        shifts.extend(array("i", [size - low]) * len(run))
        size += high - low
    return b"".join(parts), pc.add(starts, _int32(shifts))


def _end_to_end(runs: Sequence[Columns], numbers_of: Numbers) -> array[int]:
    numbers = array("i")
    for run in runs:
        numbers.extend(array("i", numbers_of(run)))  # twice as fast as number by number
    return numbers


def _extent(run: Columns) -> tuple[int, int]:
    """Return start and end of the run's keys and values in its bytes: they are in the order of the records."""
    return run.key_starts[0], run.value_starts[-1] + max(run.value_sizes[-1], 0)


def _extent_bytes(run: Columns) -> int:
    start, end = _extent(run)
    return end - start


def _int32(numbers: array[int]) -> Any:
    return pa.Array.from_buffers(pa.int32(), len(numbers), [None, pa.py_buffer(numbers)])


def _numbers(column: Any) -> array[int]:
    """Return an Arrow column as an array, because Arrow itself cannot interleave two columns."""
    numbers = array("i")
    numbers.frombytes(column.buffers()[1])
    return numbers[: len(column)]
