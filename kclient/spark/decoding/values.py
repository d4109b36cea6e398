"""What a format gives for a batch of keys or values, and how the bad ones among them are found."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, Protocol, TypeVar

import attrs
import pyarrow as pa

from kclient.text import printable

LOOKED_THROUGH: Final = 1_024
"""Of so many values that are refused together, each is looked at by itself."""

T = TypeVar("T", "list[Any]", "pa.Array")


@attrs.frozen
class Bad:
    """Why one value could not be read. The reason never holds what the value holds."""

    reason: str
    schema_id: int | None = None


@attrs.frozen
class Decoded:
    """Typed values, one for each that came, null where there was none or a bad one; and the bad ones by row."""

    array: pa.Array
    bad: dict[int, Bad] = attrs.field(factory=dict)


def without(values: pa.Array, rows: Collection[int]) -> pa.Array:
    """The values with null at some rows."""
    if not rows:
        return values
    # Not pc.if_else: of a sliced array of bytes pyarrow 23.0.1 makes one whose offsets are wrong.
    kept = [None if row in rows else value for row, value in enumerate(values.to_pylist())]
    return pa.array(kept, values.type)


def joined(parts: Iterable[Decoded]) -> Decoded:
    """What was decoded piece by piece, as one."""
    arrays: list[pa.Array] = []
    bad: dict[int, Bad] = {}
    rows = 0
    for part in parts:
        arrays.append(part.array)
        bad |= {rows + row: why for row, why in part.bad.items()}
        rows += len(part.array)
    return Decoded(arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays), bad)


class Format(Protocol):
    """How the bytes of keys or values become values of one type. It pickles: workers get it from the driver."""

    @property
    def name(self) -> str:
        """As the option says it: json, avro, …"""

    @property
    def type(self) -> pa.DataType:
        """What the values become."""

    def decode(self, values: pa.Array) -> Decoded:
        """The values of a binary array."""


def reason_of(problem: Exception) -> str:
    """What a library says of a schema, in so few characters that each bad record can repeat it."""
    return f"{type(problem).__name__}: {printable(str(problem))}"


class Refused(Exception):
    """Some of the values given together are bad; the text tells of one that was given alone."""


def decode_apart(
    values: T,
    convert: Callable[[T], pa.Array],
    kind: pa.DataType,
    fault_of: Callable[[bytes], str | None] | None = None,
) -> Decoded:
    """Convert all at once; where that is refused, half as many, down to each bad value, and behind it more again.

    So a value means the same whatever stands beside it, and a batch without bad values is read in one go. `convert`
    raises Refused; a bad value becomes null. Where a call of `convert` costs much, `fault_of` finds most bad values of
    a few hundred one by one, so that each costs little however many there are.
    """
    arrays: list[pa.Array] = [pa.nulls(0, kind)]
    bad: dict[int, Bad] = {}
    start, size = 0, len(values)
    few = 1 if fault_of is None else LOOKED_THROUGH
    while start < len(values):
        end = min(start + size, len(values))
        try:
            arrays.append(convert(values[start:end]))
        except Refused as exc:
            if end - start > few:
                size = (end - start) // 2
                continue
            if fault_of is None:
                found = Decoded(pa.nulls(1, kind), {0: Bad(str(exc))})
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
    faults = {row: Bad(why) for row, value in rows if value is not None and (why := fault_of(value))}
    decoded = decode_apart(without(values, faults), convert, kind)
    return Decoded(decoded.array, decoded.bad | faults)
