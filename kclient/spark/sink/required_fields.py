"""Fields of a table that may not be null, also inside of structs, lists and maps.

Arrow's own checks name no record. They do not look at the parents either: below a null struct a field has no value of
its own, and in what decoders make it is null there, which these checks take for a value that is missing.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


class MissingValue(Exception):
    """The first row found without a value for a field, or for a part of it, that may not be null."""

    def __init__(self, row: int, path: str) -> None:
        super().__init__(row, path)
        self.row = row
        self.path = path


def with_optional_parts(field: pa.Field) -> pa.Field:
    """Return a field whose parts, at every level, may be null. The keys of a map never are."""
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_optional(part) for part in kind])
    elif pa.types.is_map(kind):
        kind = pa.map_(with_optional_parts(kind.key_field), _optional(kind.item_field))
    elif pa.types.is_list(kind):
        kind = pa.list_(_optional(kind.value_field))
    return field.with_type(kind)


def _optional(part: pa.Field) -> pa.Field:
    return with_optional_parts(part).with_nullable(True)


def as_required(column: pa.Array, field: pa.Field) -> pa.Array:
    """Return a column, whose parts may be null, with the type of a field. Raises MissingValue."""
    if column.type != field.type:  # a part is required
        return _required(column, field, field.name, pa.array(range(len(column)), pa.int64()))
    if column.null_count and not field.nullable:
        raise MissingValue(pc.index(column.is_valid(), False).as_py(), field.name)
    return column


def _required(values: pa.Array, field: pa.Field, path: str, rows: pa.Array) -> pa.Array:
    """Return values with the type of a field. `rows` has the row of each."""
    if not values.null_count:
        return _whole(values, field.type, path, rows)
    there = values.is_valid()
    if not field.nullable:
        raise MissingValue(rows[pc.index(there, False).as_py()].as_py(), path)
    whole = _whole(values.filter(there), field.type, path, rows.filter(there))
    # A null that Arrow itself makes has values below it that are none. It is the last, and taken for each null.
    place = pc.subtract(pc.cumulative_sum(there.cast(pa.int64())), 1)
    return pa.concat_arrays([whole, pa.array([None], whole.type)]).take(pc.if_else(there, place, len(whole)))


def _whole(values: pa.Array, kind: pa.DataType, path: str, rows: pa.Array) -> pa.Array:
    """Return values, none of which is null, with a type that differs only in what is required."""
    if pa.types.is_struct(kind):
        parts = [_required(values.field(n), part, f"{path}.{part.name}", rows) for n, part in enumerate(kind)]
        return pa.StructArray.from_arrays(parts, fields=list(kind)) if parts else values
    # An array without values may have no offsets.
    if len(values) and (pa.types.is_list(kind) or pa.types.is_map(kind)):
        return _whole_lists(values, kind, path, rows)
    return values.cast(kind)


def _whole_lists(values: pa.Array, kind: pa.DataType, path: str, rows: pa.Array) -> pa.Array:
    """Return lists or maps likewise. A map is a list of its items, and one of its keys."""
    is_map = pa.types.is_map(kind)
    part, inner = (kind.item_field, values.items) if is_map else (kind.value_field, values.values)
    first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
    offsets, inner = pc.subtract(values.offsets, first), inner.slice(first, last - first)
    owners = rows.take(pc.list_parent_indices(pa.ListArray.from_arrays(offsets, inner)))
    inner = _required(inner, part, f"{path}.{part.name}", owners)
    if not is_map:
        return pa.ListArray.from_arrays(offsets, inner, type=kind)
    keys = values.keys.slice(first, last - first).cast(kind.key_type)
    return pa.MapArray.from_arrays(offsets, keys, inner, type=kind)
