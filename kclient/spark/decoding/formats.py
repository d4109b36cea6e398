"""What a format returns for a batch of keys or values, and what all formats share.

    convert all values at once → on a failure halve the batch, until each bad value is found    (`decode_apart`)

A byte or two can be an item of an array, which is a whole struct in columns:

    [{},{},{}]          10 bytes of JSON are three rows of each column below the array

So the elements of a value are counted before it is decoded, and only where its length allows too many. A value with
more than `maxElementsPerValue` is a bad record. Batches are cut where their values together would make too much.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

import attrs
import pyarrow as pa
import pyarrow.compute as pc

MAX_WAIT_MS: Final = 30_000
"""How long one batch looks up unknown schema ids. A retry within a minute does not ask for them again."""
LOOKED_THROUGH: Final = 1_024
"""Of at most this many values that fail together, each is converted alone."""

T = TypeVar("T", "list[Any]", "pa.Array")


@attrs.frozen
class BadValue:
    """Why one value could not be decoded. The reason never contains a part of the value."""

    reason: str
    schema_id: int | None = None


@attrs.frozen
class Decoded:
    """Typed values, one for each input, null for a null or bad one; and the bad ones by row.

    `new` has, by row, the fields that the schema does not name, as JSON text; empty unless they were asked for. A bad
    value has none: it is there as a whole.
    """

    array: pa.Array
    bad: dict[int, BadValue] = attrs.field(factory=dict)
    new: dict[int, str] = attrs.field(factory=dict)


def of_good(new: Mapping[int, str], bad: Collection[int]) -> dict[int, str]:
    """Return the new fields of the values that are good."""
    return {row: text for row, text in new.items() if row not in bad}


def without(values: pa.Array, rows: Collection[int]) -> pa.Array:
    """Return the values with null at some rows."""
    if not rows:
        return values
    # Not pc.if_else: of a sliced array of bytes pyarrow 23.0.1 makes one whose offsets are wrong.
    kept = [None if row in rows else value for row, value in enumerate(values.to_pylist())]
    return pa.array(kept, values.type)


def joined(parts: Iterable[Decoded]) -> Decoded:
    """Join results that were decoded piece by piece."""
    arrays: list[pa.Array] = []
    bad: dict[int, BadValue] = {}
    rows = 0
    for part in parts:
        arrays.append(part.array)
        bad |= {rows + row: why for row, why in part.bad.items()}
        rows += len(part.array)
    return Decoded(arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays), bad)


class ValueFormat(Protocol):
    """Turns the bytes of keys or values into values of one type. Pickles: workers receive it from the driver."""

    @property
    def name(self) -> str:
        """The format's name in the options: json, avro, …"""

    @property
    def type(self) -> pa.DataType:
        """The type of the decoded values."""

    def decode(self, values: pa.Array, *, new_fields: bool = False) -> Decoded:
        """Decode the values of a binary array; with `new_fields` also what the schema does not name."""


class ConversionError(Exception):
    """Raised if some of the values converted together are bad; the text is that of one converted alone."""


def decode_apart(
    values: T,
    convert: Callable[[T], pa.Array],
    kind: pa.DataType,
    fault_of: Callable[[bytes], str | None] | None = None,
) -> Decoded:
    """Convert all at once; if that fails, half as many, down to each bad value; after it more again.

    So a value means the same beside any other values, and a batch without bad values is converted in one call.
    `convert` raises ConversionError; a bad value becomes null. If a call of `convert` is slow, `fault_of` finds most
    bad values of a few hundred one by one, at a low cost for each.
    """
    arrays: list[pa.Array] = [pa.nulls(0, kind)]
    bad: dict[int, BadValue] = {}
    start, size = 0, len(values)
    few = 1 if fault_of is None else LOOKED_THROUGH
    while start < len(values):
        end = min(start + size, len(values))
        try:
            arrays.append(convert(values[start:end]))
        except ConversionError as exc:
            if end - start > few:
                size = (end - start) // 2
                continue
            if fault_of is None:
                found = Decoded(pa.nulls(1, kind), {0: BadValue(str(exc))})
            else:
                found = _looked_through(values[start:end], convert, kind, fault_of)
            arrays.append(found.array)
            bad |= {start + row: why for row, why in found.bad.items()}
        else:
            size *= 2
        start = end
    return Decoded(pa.concat_arrays(arrays) if len(arrays) > 2 else arrays[-1], bad)


def _looked_through(
    values: Any,
    convert: Callable[[Any], pa.Array],
    kind: pa.DataType,
    fault_of: Callable[[bytes], str | None],
) -> Decoded:
    """Convert what `fault_of` finds no fault with."""
    rows = enumerate(values.to_pylist())
    faults = {row: BadValue(why) for row, value in rows if value is not None and (why := fault_of(value))}
    decoded = decode_apart(without(values, faults), convert, kind)
    return Decoded(decoded.array, decoded.bad | faults)


# --- format `string` -------------------------------------------------------------------------------------------------


NO_TEXT: Final = "it is not UTF-8"


@attrs.frozen
class TextFormat:
    """Keys or values that are text."""

    name: str = "string"

    @property
    def type(self) -> pa.DataType:
        """Spark's string."""
        return pa.string()

    def decode(self, values: pa.Array, *, new_fields: bool = False) -> Decoded:
        """Decode the texts."""
        return decode_apart(values, as_text, pa.string())


def as_text(values: pa.Array) -> pa.Array:
    """Return binary as text, without a copy. Raises ConversionError."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        raise ConversionError(NO_TEXT) from None


# --- the number of elements of a value -------------------------------------------------------------------------------


ELEMENTS_OPTION: Final = "maxElementsPerValue"
"""What sets the limit of elements."""
MAX_OBJECTS: Final = 500_000
"""At this many elements as Python objects, columns are built before the next value is read."""
MAX_CELLS: Final = 16_000_000
"""Elements that the columns of one batch may have, each up to 16 bytes."""

FEW_CHARACTERS, CHARACTERS_PER_BYTE, MOST_CHARACTERS = 4_096, 128, 32 << 20


def most_characters(size: int) -> int:
    """Return how many characters the text of new fields may have, of a value of so many bytes.

    A name takes no byte in the value, so a writer's schema with long names makes much text of few bytes.
    """
    return min(FEW_CHARACTERS + CHARACTERS_PER_BYTE * size, MOST_CHARACTERS)


def width(kind: pa.DataType) -> int:
    """Return how many elements one value of a type has: itself, and for a struct all fields."""
    if pa.types.is_struct(kind):
        return 1 + sum(width(field.type) for field in kind)
    return 1


def widest_item(kind: pa.DataType) -> int:
    """Return the elements of the largest item of any array or map in the type, 0 without one."""
    if pa.types.is_struct(kind):
        return max((widest_item(field.type) for field in kind), default=0)
    if pa.types.is_list(kind):
        return max(width(kind.value_type), widest_item(kind.value_type))
    if pa.types.is_map(kind):
        return max(1 + width(kind.item_type), widest_item(kind.item_type))
    return 0


def cuts(columns: Sequence[tuple[pa.Array, int]], rows: int) -> Iterator[tuple[int, int]]:
    """Return where to cut a batch, as (start, length), given the columns of bytes and the elements per byte of each."""
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
