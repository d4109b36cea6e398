"""The statistics of a Parquet file in the form of a Delta log: readers skip files whose bounds exclude what they seek.

    {"numRecords": 3, "minValues": {"_offset": 7}, "maxValues": {"_offset": 9}, "nullCount": {"a": {"x": 1}}}

Bounds are given for integers, dates, times with a zone, and short texts. None are given for floats, because a file's
bounds leave out NaN, which Spark sorts above all numbers; for decimals, which JSON would round; and for times without a
zone, whose text differs between writers. Times are cut to milliseconds, so an upper bound is the next millisecond.
Nulls are counted for columns and for fields of structures. Pure.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable
from io import BytesIO
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

COLUMNS: Final = 32
"""So many columns have statistics, as in Delta's own writers: what a log holds is read by each reader of the table."""

LONGEST_TEXT: Final = 32
_LISTS: Final = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
_EPOCH: Final = datetime.date(1970, 1, 1).toordinal()


class _Column(NamedTuple):
    """One leaf of a file: its path, and the statistics of it in each row group."""

    path: tuple[str, ...]
    kind: pa.DataType
    groups: list[pq.Statistics | None]


def statistics(footer: bytes) -> str:
    """Return the statistics of a file whose footer this is, as JSON."""
    metadata = pq.read_metadata(BytesIO(footer))
    found: dict[str, dict[str, Any]] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
    for column in _columns(metadata):
        low, high = _bounds(column)
        counts = [
            None if group is None or not group.has_null_count else group.null_count for group in column.groups
        ]
        nulls = None if None in counts else sum(count or 0 for count in counts)
        for name, value in (("minValues", low), ("maxValues", high), ("nullCount", nulls)):
            if value is not None:
                _put(found[name], column.path, value)
    return json.dumps({"numRecords": metadata.num_rows, **found}, separators=(",", ":"))


def _columns(metadata: pq.FileMetaData) -> Iterable[_Column]:
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    leaves = list(_leaves(metadata.schema.to_arrow_schema()))
    if len(leaves) != metadata.num_columns:
        return  # a type hides others: each leaf would get the bounds of another one
    for index, (path, kind) in enumerate(leaves):
        if path is not None and index < COLUMNS:
            yield _Column(path, kind, [group.column(index).statistics for group in groups])


def _leaves(
    fields: Iterable[pa.Field], above: tuple[str, ...] | None = ()
) -> Iterable[tuple[tuple[str, ...] | None, pa.DataType]]:
    """Yield each leaf in a file's order; its path is None inside of lists and maps, which have no statistics."""
    for field in fields:
        path = None if above is None else (*above, field.name)
        if pa.types.is_struct(field.type):
            yield from _leaves(field.type, path)
        elif pa.types.is_map(field.type):
            yield from _leaves([field.type.key_field, field.type.item_field], None)
        elif any(is_one(field.type) for is_one in _LISTS):
            yield from _leaves([field.type.value_field], None)
        else:
            yield path, field.type


def _bounds(column: _Column) -> tuple[Any, Any]:
    """Return the least and the greatest value as JSON has them, None where there is no such bound."""
    known = [group for group in column.groups if group is not None and group.has_min_max]
    if len(known) < len(column.groups) or not known:
        return None, None
    low, high = min(group.min_raw for group in known), max(group.max_raw for group in known)
    if pa.types.is_integer(column.kind):
        return low, high
    if pa.types.is_date32(column.kind):
        return _date(low), _date(high)
    if pa.types.is_timestamp(column.kind) and column.kind.tz is not None:
        return _time(low // 1000), _time(high // 1000 + 1)
    if pa.types.is_string(column.kind):
        return _text(low), _text(high)
    return None, None


def _date(day: int) -> str | None:
    try:
        return datetime.date.fromordinal(_EPOCH + day).isoformat()
    except (ValueError, OverflowError):  # a year that no text of a date has
        return None


def _time(milliseconds: int) -> str | None:
    day, rest = divmod(milliseconds, 86_400_000)
    seconds, fraction = divmod(rest, 1000)
    date = _date(day)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:03d}Z"
    return None if date is None else f"{date}T{clock}"


def _text(value: Any) -> str | None:
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    return text if len(text) <= LONGEST_TEXT and "\ufffd" not in text else None


def _put(values: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        values = values.setdefault(name, {})
    values[path[-1]] = value
