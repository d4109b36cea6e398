"""Arrow batches for Spark: the columns of Spark's Kafka source, the size of a batch, and a check of its schema.

Spark compares the schema of the first batch with its own (same names, order and types, all nullable), so a reader keeps
one schema object. Imports pyarrow when a batch is built, never pyspark.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from kclient.errors import ConfigError, InternalError
from kclient.records.reader import Chunk, PartitionReader

if TYPE_CHECKING:
    import pyarrow as pa

TYPES: Final = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    "headers": "array<struct<key:string,value:binary>>",
}
"""Column → Spark's type, in the order of `load()` without a schema of its own."""


def default_columns(*, include_headers: bool) -> tuple[str, ...]:
    """Return the names of all columns; headers only on demand."""
    return tuple(name for name in TYPES if include_headers or name != "headers")


def ddl(columns: Iterable[str], types: Mapping[str, str] = TYPES) -> str:
    """Return the schema as DDL text for Spark."""
    return ", ".join(f"`{name}` {types[name]}" for name in columns)


def check_columns(fields: Sequence[tuple[str, str]], types: Mapping[str, str] = TYPES) -> tuple[str, ...]:
    """Return the column names of a schema that the user gave as (name, Spark type) pairs, in any order.

    `types` are the columns that there are, which differ from Spark's own where keys or values are decoded.

    Raises ConfigError with every field that is none of them.
    """
    names = [name for name, _ in fields]
    problems = [problem for name, kind in fields if (problem := _problem(name, kind, types))]
    problems += [f"column {name} is named twice" for name in dict.fromkeys(names) if names.count(name) > 1]
    if problems or not fields:
        listed = "; ".join(problems) or "it has no column"
        raise ConfigError(
            f"This schema cannot be read from Kafka: {listed}. The source gives these columns, in any order: "
            f"{ddl(types, types)}. Name some of them with these types in .schema(…).",
            problems=tuple(problems),
        )
    return tuple(names)


def to_batches(chunks: Sequence[Chunk], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Return the records of one partition as one Arrow batch of these columns; as several beyond 2 GiB."""
    from kclient.records.arrow import to_batches

    last = chunks[-1]
    runs = [run for chunk in chunks for run in chunk.runs]
    return to_batches(Chunk(last.partition, last.next_offset, last.leader_epoch, runs), columns)


def _problem(name: str, kind: str, types: Mapping[str, str]) -> str | None:
    if name not in types:
        near = difflib.get_close_matches(name, types, n=1, cutoff=0.5)
        return f"column {name} is unknown" + (f" (did you mean {near[0]}?)" if near else "")
    return None if kind == types[name] else f"column {name} is {types[name]}, not {kind}"


# --- the size of a batch ---------------------------------------------------------------------------------------------


FIRST_BATCH_ROWS: Final = 1_000
UNKNOWN_ROW_BYTES: Final = (
    65_536  # the assumed size of a row before the first one, so that no batch grows too large
)


class Batcher:
    """Batches of one range: at most `rows` records or about `size` bytes of records each."""

    def __init__(self, columns: Sequence[str], rows: int, size: int) -> None:
        self._columns = columns
        self._rows = rows
        self._size = size
        self._rows_now = min(rows, FIRST_BATCH_ROWS)
        self._row_bytes = UNKNOWN_ROW_BYTES

    def batches(self, reader: PartitionReader, end: int) -> Iterator[pa.RecordBatch]:
        """Yield batches of the records of a reader with offsets below `end`."""
        chunks: list[Chunk] = []
        rows = size = unpacked = 0
        while not reader.exhausted and reader.next_offset < end:
            count = min(self._how_many(rows, size), end - reader.next_offset)
            chunk = reader.take(count, self._size - unpacked)
            chunk.cut_at(end)
            if not len(chunk):
                continue
            taken = chunk.size_bytes
            self._row_bytes = taken // len(chunk) + 1
            chunks.append(chunk)
            rows, size, unpacked = rows + len(chunk), size + taken, unpacked + chunk.unpacked_bytes
            if rows >= self._rows_now or size >= self._size or unpacked >= self._size:
                yield from to_batches(chunks, self._columns)
                chunks, rows, size, unpacked, self._rows_now = [], 0, 0, 0, self._rows
        if chunks:
            yield from to_batches(chunks, self._columns)

    def _how_many(self, rows: int, size: int) -> int:
        return min(self._rows_now - rows, (self._size - size) // self._row_bytes + 1)


# --- the schema of the first batch -----------------------------------------------------------------------------------


def checked(batches: Iterator[pa.RecordBatch], expected: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the same batches. Raises InternalError if the schema of the first differs from `expected`."""
    first = True
    for batch in batches:
        if first and not batch.schema.equals(expected):
            raise InternalError(
                f"The columns of a batch differ from the schema given to Spark: {_differences(batch.schema, expected)}"
                ". This is a bug of kclient. Please report it."
            )
        first = False
        yield batch


def _differences(found: pa.Schema, expected: pa.Schema) -> str:
    pairs = zip_longest(map(_described, found), map(_described, expected), fillvalue="nothing")
    return "; ".join(f"{one} instead of {other}" for one, other in pairs if one != other)


def _described(field: pa.Field) -> str:
    return f"{field.name} {field.type}{'' if field.nullable else ' not null'}"
