"""The partitions of a Delta table: it divides rows by whole columns, whose values are in its log and not in its files.

    carrier                  the column carrier
    year(at)                 at_year         INT      2026
    month(at)                at_month        STRING   2026-11
    day(at)                  at_day          DATE     2026-11-27
    hour(at)                 at_hour         STRING   2026-11-27-13
    truncate(100,amount)     amount_truncate_100      INT, LONG or STRING
    bucket(16,id)            id_bucket_16    INT      what Iceberg's bucket gives, too

Delta has no transforms: what is computed from a column is a column of its own, and a reader finds the rows of a day
without reading other files by a condition on `at_day`. Days and hours are those of UTC. Months and hours are texts as
`date_format(at, 'yyyy-MM')` and `'yyyy-MM-dd-HH'` give them, which is how Delta's own users divide tables: they sort as
the times do, and no reader moves them into its time zone, as it may do with times. A time outside the years 1 to 9999
has null, as most readers have no date for it; so has such a date that is a partition column itself. Pure of delta-rs.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, unquote

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from kclient.errors import ConfigError, SinkError
from kclient.spark.sink.buckets import buckets_of
from kclient.spark.sink.manifest import WrittenFile
from kclient.spark.sink.partitions import (
    MAX_WIDTH,
    NO_VALUE,
    Part,
    PartitionKey,
    PartKey,
    days_of,
    grouped,
    partition_key,
)

MARK: Final = "kclient.partition"
"""What a computed column has in its metadata: its key, as it is typed."""

LONGEST_NAME: Final = 255
"""The bytes of a name on a disk."""

LONGEST_DIRECTORY: Final = 600
"""Of the 1,024 bytes that the name of an object may have."""

_COMPUTED: Final = re.compile(
    r"(?P<column>.+)_(?:(?P<plain>year|month|day|hour)|(?P<sized>bucket|truncate)_(?P<width>[1-9][0-9]{0,9}))",
    re.ASCII | re.DOTALL,
)
_MICROSECONDS: Final = 3_600_000_000
_TEXTS: Final = {"month": r"[0-9]{4}-[0-9]{2}", "hour": r"[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{2}"}


@attrs.frozen
class DeltaPartitioning:
    """Divides rows by the partition columns of a table, in its order. Pickles."""

    keys: tuple[PartitionKey, ...] = ()

    def split(self, rows: pa.RecordBatch) -> Iterator[Part]:
        """Yield the rows of each partition, without its columns."""
        kept = [name for name in rows.schema.names if PartitionKey("identity", name) not in self.keys]
        for numbers, some in grouped(rows, [_numbers(rows.column(key.column), key) for key in self.keys]):
            values = tuple(_value(key, number) for key, number in zip(self.keys, numbers, strict=True))
            yield Part(PartKey(self._directory(values), values), some.select(kept))

    def _directory(self, values: tuple[Any, ...]) -> str:
        """Return where the files of a partition are: some readers take the values from there, not from the log.

        A value that no directory can be named after is in the log alone: a shorter one would be another value.
        """
        longest = min(LONGEST_NAME, LONGEST_DIRECTORY // max(1, len(self.keys)))
        names = [f"{quote(column_of(key), safe='')}=" for key in self.keys]
        texts = [NO_VALUE if (text := text_of(value)) is None else quote(text, safe="") for value in values]
        return "/".join(
            name + (text if len(name + text) <= longest else NO_VALUE)
            for name, text in zip(names, texts, strict=True)
        )


def columns_of(path: str) -> list[str]:
    """Return the partition columns for which a file was written, by its path."""
    return [unquote(directory.partition("=")[0]) for directory in path.split("/")[:-1]]


# --- keys and their columns


def column_of(key: PartitionKey) -> str:
    """Return the partition column of a key: no two keys have the same one."""
    if key.transform == "identity":
        return key.column
    return f"{key.column}_{key.transform}" + ("" if key.width is None else f"_{key.width}")


def field_of(key: PartitionKey, rows: pa.Schema) -> pa.Field:
    """Return the partition column of a key that is not a column of the rows."""
    return pa.field(column_of(key), type_of(key, rows.field(key.column).type), metadata={MARK: str(key)})


def type_of(key: PartitionKey, source: pa.DataType) -> pa.DataType:
    """Return the type of the partition column of a key, for a column of some type."""
    if key.transform in ("year", "bucket"):
        return pa.int32()
    if key.transform in ("month", "hour"):
        return pa.string()
    if key.transform == "day":
        return pa.date32()
    if key.transform == "truncate" and pa.types.is_integer(
        source
    ):  # a short number may be truncated to a longer one
        return pa.int64() if source.bit_width == 64 else pa.int32()
    return source


def key_of(column: pa.Field, rows: pa.Schema) -> PartitionKey | None:
    """Return the key by which rows are divided for a partition column of a table, None if there is none."""
    mark = (column.metadata or {}).get(MARK.encode())
    if mark is None and column.name in rows.names:
        return PartitionKey("identity", column.name)
    key = _named(column.name) if mark is None else _marked(mark.decode())
    return key if key is not None and _problem(key, rows) is None else None


def _marked(text: str) -> PartitionKey | None:
    try:
        return partition_key(text)
    except ValueError:  # a key of a later release
        return None


def _named(column: str) -> PartitionKey | None:
    """Return the key that a column has by its name: one that another program has made has no mark."""
    match = _COMPUTED.fullmatch(column)
    if match is None:
        return None
    width = None if match["width"] is None else int(match["width"])
    if width is not None and width > MAX_WIDTH:
        return None
    return PartitionKey(match["plain"] or match["sized"], match["column"], width)


def check_values(
    table: str, keys: Mapping[str, PartitionKey | None], partitions: Iterable[Mapping[str, Any]]
) -> None:
    """Refuse a table whose months or hours are texts of another form: a condition would miss rows. Raises ConfigError.

    `partitions` has the values of each partition that is there.
    """
    forms = {column: _TEXTS[key.transform] for column, key in keys.items() if key and key.transform in _TEXTS}
    for values in partitions if forms else ():
        for column, form in forms.items():
            value = values.get(column)
            if value is not None and not re.fullmatch(form, str(value), re.ASCII):
                raise ConfigError(
                    f"{table} is divided by {column}, but its {column} has the value {value}, and {keys[column]} gives "
                    "texts as 2026-11 and 2026-11-28-04. Give another table, or leave the column out of its partitions."
                )


def check_not_null(table: str, columns: Sequence[pa.Field], files: Iterable[WrittenFile]) -> None:
    """Refuse files without a value for a partition column that must have one. Raises SinkError.

    delta-rs notices it only after its commit, and then nobody can read the table any more.
    """
    for file in files:
        for column, value in zip(columns, file.values, strict=True):
            if not column.nullable and text_of(value) is None:
                raise SinkError(
                    f"A record of {file.topic}-{file.partition} from the offsets {file.start} to {file.end} has no "
                    f"value for {column.name}, which is a partition column of {table} and NOT NULL there (an empty "
                    "text and a time outside the years 1 to 9999 are null, too). Nothing of this batch was committed. "
                    "Let the column be nullable (in Spark ALTER TABLE … ALTER COLUMN … DROP NOT NULL) and start again.",
                    path=table,
                )


def check_keys(table: str, keys: Sequence[PartitionKey], rows: pa.Schema) -> None:
    """Refuse keys that a Delta table cannot have. Raises ConfigError."""
    problems = [problem for key in keys if (problem := _problem(key, rows))]
    problems += [f"{key} is there twice" for key in sorted(set(keys), key=str) if keys.count(key) > 1]
    there = {name.lower() for name in rows.names}
    problems += [
        f"{key} would be the column {column_of(key)}, and the rows have one of this name"
        for key in keys
        if key.transform != "identity" and column_of(key).lower() in there
    ]
    if sum(key.transform == "identity" for key in keys) >= len(rows):
        problems.append("a table needs a column that is no partition key")
    if problems:
        raise ConfigError(
            f"--partition-by cannot divide {table}: {'; '.join(problems)}. A Delta table is divided by columns of "
            "booleans, whole numbers, texts and dates; by year, month, day and hour of a time; by truncate(N,COLUMN) "
            "of whole numbers and texts; by bucket(N,COLUMN) of these, times and bytes. Choose among these, or give "
            "--sink iceberg:… for other transforms.",
            problems=tuple(problems),
        )


def _problem(key: PartitionKey, rows: pa.Schema) -> str | None:
    if key.column not in rows.names:
        return f"there is no column {key.column}"
    kind = rows.field(key.column).type
    return None if any(fits(kind) for fits in _TAKEN[key.transform]) else f"{key.column} is {kind}"


_DATES: Final = (pa.types.is_timestamp, pa.types.is_date32)
_COUNTED: Final = (pa.types.is_integer, pa.types.is_string)
_TAKEN: Final[dict[str, tuple[Callable[[pa.DataType], bool], ...]]] = {
    "identity": (*_COUNTED, pa.types.is_boolean, pa.types.is_date32),
    "year": _DATES,
    "month": _DATES,
    "day": _DATES,
    "hour": (pa.types.is_timestamp,),
    "truncate": _COUNTED,
    "bucket": (*_COUNTED, *_DATES, pa.types.is_binary),
}
"""The types of which each transform is: those of Iceberg, without decimals."""


# --- values


def text_of(value: Any) -> str | None:
    """Return a value as it is in the log."""
    if isinstance(value, bool):
        return str(value).lower()
    return None if value in (None, "") else str(value)  # the log has no empty text: it means null


def _numbers(column: pa.Array, key: PartitionKey) -> pa.Array:
    """Return what the rows are divided by: for a time a number, of which `_value` makes the value."""
    if key.transform == "identity":
        return days_of(column).cast(pa.date32()) if pa.types.is_date32(column.type) else column
    if key.transform == "bucket":
        return buckets_of(column, key.width or 1)
    if key.transform == "truncate":
        return _truncated(column, key.width or 1)
    days = days_of(column)
    if key.transform == "hour":
        hours = _floored(column.cast(pa.timestamp("us")).cast(pa.int64()), _MICROSECONDS)
        return pc.if_else(days.is_valid(), hours, pa.scalar(None, pa.int64()))
    dates = days.cast(pa.date32())
    years = pc.year(dates)
    return {"day": lambda: dates, "year": lambda: years, "month": lambda: _months(years, dates)}[
        key.transform
    ]()


def _value(key: PartitionKey, number: Any) -> Any:
    if number is None or key.transform not in _TEXTS:
        return number
    if key.transform == "month":
        return f"{number // 12:04d}-{number % 12 + 1:02d}"
    day = datetime.date(1970, 1, 1) + datetime.timedelta(days=number // 24)
    return f"{day.isoformat()}-{number % 24:02d}"


def _months(years: pa.Array, dates: pa.Array) -> pa.Array:
    return pc.add(pc.multiply(years, 12), pc.subtract(pc.month(dates), 1))


def _truncated(column: pa.Array, width: int) -> pa.Array:
    """Return texts of at most so many characters, and multiples of a number that are not greater.

    The least numbers of a type have no such multiple in it: they wrap around, as in Iceberg.
    """
    if pa.types.is_string(column.type):
        return pc.utf8_slice_codeunits(column, 0, width)
    kind = pa.int64() if column.type.bit_width == 64 else pa.int32()
    numbers = column.cast(kind)
    return pc.multiply(_floored(numbers, width), pa.scalar(width, kind))


def _floored(numbers: pa.Array, by: int) -> pa.Array:
    """Return the quotients, rounded down."""
    divisor = pa.scalar(by, numbers.type)
    quotients = pc.divide(numbers, divisor)  # rounded towards zero
    too_large = pc.greater(pc.multiply(quotients, divisor), numbers)
    return pc.subtract(quotients, too_large.cast(numbers.type))
