"""Columns as a pyarrow.Table in the schema of Spark's Kafka source, with leaderEpoch added.

Imported by `Records.to_arrow` alone: pyarrow is the extra `arrow`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, TypeAlias, TypeVar

import attrs

from kclient.errors import ArgumentError, ConfigError, CorruptDataError
from kclient.records.columns import Columns
from kclient.records.reader import Chunk
from kclient.records.undecodable import Undecoded

try:
    import pyarrow as pa
except ImportError as exc:
    raise ConfigError(
        "Records.to_arrow() needs pyarrow, which cannot be imported. It is not part of the base install. "
        "Type: pip install 'kclient-kafka[arrow]'."
    ) from exc

from kclient.records import arrow_binary  # it needs pyarrow too

T = TypeVar("T")
Builder: TypeAlias = Callable[[Chunk], Any]
"""Makes one column of the records of a chunk, all of whose runs have some."""

ERROR = pa.field("error", pa.string())
"""Why a key or value is null that has bytes: the column that comes with on_decode_error="keep"."""

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


def to_table(
    chunks: Iterable[Chunk], columns: Sequence[str] | None = None, *, keeps_errors: bool = False
) -> pa.Table:
    """The records of the chunks. Only the columns asked for are built: without `value` no value is touched.

    With `keeps_errors` there is the column `error`, and what could not be decoded is null.

    Raises ArgumentError for an unknown column and CorruptDataError for a timestamp beyond microseconds.
    """
    whole = SCHEMA.append(ERROR) if keeps_errors else SCHEMA
    schema = whole if columns is None else _subset(whole, columns)
    known = _BUILDERS | _WITH_ERRORS if keeps_errors else _BUILDERS
    batches = chain.from_iterable(_batches(chunk, schema, known) for chunk in chunks)
    return pa.Table.from_batches(batches, schema=schema)


def to_batches(chunk: Chunk, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The records of a chunk, in one batch unless its keys or values have 2 GiB. Raises what `to_table` raises."""
    return _batches(chunk, _subset(SCHEMA, columns), _BUILDERS)


def _batches(chunk: Chunk, schema: pa.Schema, known: Mapping[str, Builder]) -> Iterator[pa.RecordBatch]:
    builders = [known[name] for name in schema.names]
    for runs in arrow_binary.portions(chunk.runs, arrow_binary.MOST_BYTES):
        part = attrs.evolve(chunk, runs=runs)
        yield pa.RecordBatch.from_arrays([build(part) for build in builders], schema=schema)


def _subset(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    unknown = [name for name in columns if name not in schema.names]
    if unknown:
        raise ArgumentError(
            f"to_arrow has no column {unknown[0]!r}. Its columns are {', '.join(schema.names)}."
        )
    return pa.schema([schema.field(name) for name in columns])


def _flat(chunk: Chunk, column: Callable[[Columns], Iterable[T]]) -> list[T]:
    return list(chain.from_iterable(map(column, chunk.runs)))


def _int64(chunk: Chunk, kind: pa.DataType, column: Callable[[Columns], Sequence[int]]) -> pa.Array:
    """A column of 64-bit numbers as they lie in memory. Raises OverflowError."""
    numbers = array("q")
    for run in chunk.runs:
        numbers.extend(array("q", column(run)))  # twice as fast as number by number
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)])


def _constant(chunk: Chunk, value_of: Callable[[Columns], int | None]) -> pa.Array:
    """One number a run."""
    values = [(value_of(run), len(run)) for run in chunk.runs]
    if len({value for value, _ in values}) == 1:
        return pa.repeat(_int32_scalar(values[0][0]), len(chunk))
    return pa.concat_arrays([pa.repeat(_int32_scalar(value), count) for value, count in values])


@lru_cache(maxsize=256)
def _int32_scalar(value: int | None) -> Any:
    """Return the number for `pa.repeat`: making it costs more than repeating it 500 times."""
    return pa.scalar(value, pa.int32())


@lru_cache(maxsize=256)
def _text_scalar(value: str) -> Any:
    return pa.scalar(value, pa.string())


def _timestamps(chunk: Chunk) -> pa.Array:
    try:
        milliseconds = _int64(chunk, pa.timestamp("ms", tz="UTC"), lambda run: run.timestamps)
        return milliseconds.cast(SCHEMA.field("timestamp").type)
    except (pa.ArrowInvalid, OverflowError) as exc:
        raise CorruptDataError(
            f"A timestamp of {chunk.partition} before offset {chunk.next_offset} does not fit in microseconds. "
            "Its producer probably did not send milliseconds since 1970. "
            "Leave out the column timestamp, or read the records one by one."
        ) from exc


def _headers(chunk: Chunk) -> pa.Array:
    kind = SCHEMA.field("headers").type
    if not any(run.has_headers for run in chunk.runs):
        return pa.nulls(len(chunk), kind)
    return pa.array(_flat(chunk, lambda run: [headers or None for headers in run.headers]), kind)


_BUILDERS: dict[str, Builder] = {
    "key": lambda chunk: arrow_binary.keys(chunk.runs),
    "value": lambda chunk: arrow_binary.values(chunk.runs),
    "topic": lambda chunk: pa.repeat(_text_scalar(chunk.partition.topic), len(chunk)),
    "partition": lambda chunk: pa.repeat(_int32_scalar(chunk.partition.partition), len(chunk)),
    "offset": lambda chunk: _int64(chunk, pa.int64(), lambda run: run.offsets),
    "timestamp": _timestamps,
    "timestampType": lambda chunk: _constant(chunk, lambda run: int(run.timestamp_type)),
    "headers": _headers,
    "leaderEpoch": lambda chunk: _constant(chunk, lambda run: run.leader_epoch),
}


def _decoded_keys(run: Columns) -> list[bytes | None]:
    return _without_undecoded(run.raw_keys(), run.keys)


def _decoded_values(run: Columns) -> list[bytes | None]:
    return _without_undecoded(run.raw_values(), run.values)


def _without_undecoded(raw: list[bytes | None], decoded: list[Any] | None) -> list[bytes | None]:
    if decoded is None:
        return raw
    return [None if isinstance(made, Undecoded) else data for data, made in zip(raw, decoded, strict=True)]


def _errors(run: Columns) -> list[str | None]:
    """Names of exceptions, never their texts, which may hold what the record holds."""
    if run.keys is None or run.values is None:
        return [None] * len(run)
    return [
        "; ".join(
            f"{made.error.part}: {type(made.error.__cause__).__name__}"
            for made in pair
            if isinstance(made, Undecoded)
        )
        or None
        for pair in zip(run.keys, run.values, strict=True)
    ]


_WITH_ERRORS: dict[str, Builder] = {
    "key": lambda chunk: pa.array(_flat(chunk, _decoded_keys), pa.binary()),
    "value": lambda chunk: pa.array(_flat(chunk, _decoded_values), pa.binary()),
    "error": lambda chunk: pa.array(_flat(chunk, _errors), pa.string()),
}
