"""How many elements a value may hold: a byte or two can be an item of an array, which is a whole struct in columns.

    [{},{},{}]      10 bytes of JSON are three rows of each column below the array

What a value would make is counted before it is read, and only where its length allows it to hold too much. A value with
more than `maxElementsPerValue` is a bad record. Batches are cut where many values together would make too much.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

MAX_OBJECTS: Final = 500_000
"""Where so many elements are Python objects, they become columns before the next value is read."""
MAX_CELLS: Final = 16_000_000
"""Elements that the columns of one batch may have, each up to 16 bytes."""


class TooManyElements(Exception):
    """A value holds more elements than it may."""


class Meter:
    """How many elements a value may still hold."""

    __slots__ = ("left",)

    def __init__(self, limit: int) -> None:
        self.left = limit

    def take(self, elements: int) -> None:
        """Raises TooManyElements."""
        self.left -= elements
        if self.left < 0:
            raise TooManyElements


def too_many(limit: int) -> str:
    """Why the value is bad."""
    return f"it holds more than {limit:,} elements (maxElementsPerValue)"


def width(kind: pa.DataType) -> int:
    """How many elements one value of a type is: itself, and for a struct all fields."""
    if pa.types.is_struct(kind):
        return 1 + sum(width(field.type) for field in kind)
    return 1


def widest_item(kind: pa.DataType) -> int:
    """The same of the largest item of any array or map in the type, 0 where it has none."""
    if pa.types.is_struct(kind):
        return max((widest_item(field.type) for field in kind), default=0)
    if pa.types.is_list(kind):
        return max(width(kind.value_type), widest_item(kind.value_type))
    if pa.types.is_map(kind):
        return max(1 + width(kind.item_type), widest_item(kind.item_type))
    return 0


def cuts(columns: Sequence[tuple[pa.Array, int]], rows: int) -> Iterator[tuple[int, int]]:
    """Where to cut a batch, as (start, length): columns of bytes, each with the elements that one byte may make."""
    if sum(column.nbytes * factor for column, factor in columns) <= MAX_CELLS:
        yield 0, rows
        return
    lengths = [pc.fill_null(pc.binary_length(column), 0).to_pylist() for column, _ in columns]
    factors = [factor for _, factor in columns]
    start, cells = 0, 0
    for row, sizes in enumerate(zip(*lengths, strict=True)):
        more = sum(size * factor for size, factor in zip(sizes, factors, strict=True))
        if row > start and cells + more > MAX_CELLS:
            yield start, row - start
            start, cells = row, 0
        cells += more
    yield start, rows - start
