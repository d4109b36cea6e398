"""Columns as a pyarrow.Table in the schema of Spark's Kafka source, with leaderEpoch added.

Imported by `Records.to_arrow` alone: pyarrow is the extra `arrow`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, TypeVar

from kclient.errors import ArgumentError, ConfigError, CorruptDataError
from kclient.records.columns import Columns
from kclient.records.reader import Chunk

try:
    import pyarrow as pa
except ImportError as error:
    raise ConfigError(
        "Records.to_arrow() needs pyarrow, which cannot be imported. It is not part of the base install. "
        "Type: pip install 'kclient-kafka[arrow]'."
    ) from error

T = TypeVar("T")

_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("timestampType", pa.int32()),
        pa.field("headers", pa.list_(pa.field("element", _HEADER))),
        pa.field("leaderEpoch", pa.int32()),
    ]
)


def to_table(chunks: Iterable[Chunk], columns: Sequence[str] | None = None) -> pa.Table:
    """The records of the chunks. Only the columns asked for are built: without `value` no value is touched.

    Raises ArgumentError for an unknown column and CorruptDataError for a timestamp beyond microseconds.
    """
    schema = SCHEMA if columns is None else _subset(columns)
    builders = [_BUILDERS[name] for name in schema.names]
    batches = [
        pa.RecordBatch.from_arrays([build(chunk) for build in builders], schema=schema)
        for chunk in chunks
        if len(chunk)
    ]
    return pa.Table.from_batches(batches, schema=schema)


def _subset(columns: Sequence[str]) -> pa.Schema:
    unknown = [name for name in columns if name not in SCHEMA.names]
    if unknown:
        raise ArgumentError(
            f"to_arrow has no column {unknown[0]!r}. Its columns are {', '.join(SCHEMA.names)}."
        )
    return pa.schema([SCHEMA.field(name) for name in columns])


def _flat(chunk: Chunk, column: Callable[[Columns], Iterable[T]]) -> list[T]:
    return list(chain.from_iterable(map(column, chunk.runs)))


def _constant(chunk: Chunk, value_of: Callable[[Columns], T]) -> list[T]:
    return _flat(chunk, lambda run: [value_of(run)] * len(run))


def _timestamps(chunk: Chunk) -> pa.Array:
    try:
        milliseconds = pa.array(_flat(chunk, lambda run: run.timestamps), pa.timestamp("ms", tz="UTC"))
        return milliseconds.cast(SCHEMA.field("timestamp").type)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise CorruptDataError(
            f"A timestamp of {chunk.partition} before offset {chunk.next_offset} does not fit in microseconds. "
            "Its producer probably did not send milliseconds since 1970. "
            "Leave out the column timestamp, or read the records one by one."
        ) from error


_BUILDERS: dict[str, Callable[[Chunk], Any]] = {
    "key": lambda chunk: pa.array(_flat(chunk, Columns.raw_keys), pa.binary()),
    "value": lambda chunk: pa.array(_flat(chunk, Columns.raw_values), pa.binary()),
    "topic": lambda chunk: pa.repeat(pa.scalar(chunk.partition.topic, pa.string()), len(chunk)),
    "partition": lambda chunk: pa.repeat(pa.scalar(chunk.partition.partition, pa.int32()), len(chunk)),
    "offset": lambda chunk: pa.array(_flat(chunk, lambda run: run.offsets), pa.int64()),
    "timestamp": _timestamps,
    "timestampType": lambda chunk: pa.array(
        _constant(chunk, lambda run: int(run.timestamp_type)), pa.int32()
    ),
    "headers": lambda chunk: pa.array(
        _flat(chunk, lambda run: [h or None for h in run.headers]), SCHEMA.field("headers").type
    ),
    "leaderEpoch": lambda chunk: pa.array(_constant(chunk, lambda run: run.leader_epoch), pa.int32()),
}
