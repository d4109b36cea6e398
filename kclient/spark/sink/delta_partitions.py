"""The partitions of a Delta table: it divides rows by whole columns, whose values are in its log and not in its files.

    identity(carrier)    the column carrier
    day(_timestamp)      a column of its own, `_timestamp_day`, of type DATE: the day in UTC

A reader finds the rows of a day without reading other files by a condition on `_timestamp_day`. The other transforms
are Iceberg's: a Delta table has none. Pure of delta-rs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import quote

import attrs
import pyarrow as pa

from kclient.errors import ConfigError
from kclient.spark.sink.partitions import NO_VALUE, Part, PartitionKey, PartKey, days_of, grouped

SUFFIX: Final = "_day"


@attrs.frozen
class DeltaPartitioning:
    """Divides rows by the partition columns of a table, in its order. Pickles."""

    keys: tuple[PartitionKey, ...] = ()

    def split(self, rows: pa.RecordBatch) -> Iterator[Part]:
        """Yield the rows of each partition, without its columns."""
        kept = [name for name in rows.schema.names if PartitionKey("identity", name) not in self.keys]
        for values, some in grouped(rows, [_values(rows.column(key.column), key) for key in self.keys]):
            yield Part(PartKey(self._directory(values), values), some.select(kept))

    def _directory(self, values: tuple[Any, ...]) -> str:
        """Return where the files of a partition are: some readers take the values from there, not from the log."""
        texts = [NO_VALUE if (text := text_of(value)) is None else quote(text, safe="") for value in values]
        names = [quote(column_of(key), safe="") for key in self.keys]
        return "/".join(f"{name}={text}" for name, text in zip(names, texts, strict=True))


def column_of(key: PartitionKey) -> str:
    """Return the partition column of a key."""
    return key.column + (SUFFIX if key.transform == "day" else "")


def key_of(column: str, rows: pa.Schema) -> PartitionKey | None:
    """Return the key by which rows are divided for a partition column of a table, None if there is none."""
    if column in rows.names:
        return PartitionKey("identity", column)
    timed = column.removesuffix(SUFFIX)
    return PartitionKey("day", timed) if timed in rows.names and timed != column else None


def check_keys(table: str, keys: Sequence[PartitionKey], rows: pa.Schema) -> None:
    """Refuse keys that a Delta table cannot have. Raises ConfigError."""
    problems = [problem for key in keys if (problem := _problem(key, rows))]
    if len(keys) >= len(rows):
        problems.append("a table needs a column that is no partition key")
    if problems:
        raise ConfigError(
            f"--partition-by cannot divide {table}: {'; '.join(problems)}. A Delta table is divided by columns of "
            "booleans, whole numbers, texts and dates, and by day(COLUMN) of a time. Choose among these, or give "
            "--sink iceberg:… for other transforms.",
            problems=tuple(problems),
        )


def text_of(value: Any) -> str | None:
    """Return a value as it is in the log."""
    if isinstance(value, bool):
        return str(value).lower()
    return None if value in (None, "") else str(value)  # the log has no empty text: it means null


def _problem(key: PartitionKey, rows: pa.Schema) -> str | None:
    if key.column not in rows.names:
        return f"there is no column {key.column}"
    kind = rows.field(key.column).type
    if key.transform == "day":
        fits = pa.types.is_timestamp(kind)
    elif key.transform == "identity":
        fits = any(
            test(kind)
            for test in (pa.types.is_integer, pa.types.is_boolean, pa.types.is_string, pa.types.is_date32)
        )
    else:
        return f"{key.transform} is no transform of Delta"
    return None if fits else f"{key.column} is {kind}"


def _values(column: pa.Array, key: PartitionKey) -> pa.Array:
    """Return what the rows are divided by. A day that no DATE of all readers has is null."""
    return days_of(column).cast(pa.date32()) if key.transform == "day" else column
