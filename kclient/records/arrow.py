"""Columns as a pyarrow.Table in the schema of Spark's Kafka source, with leaderEpoch added.

Imported by `Records.to_arrow` alone: pyarrow is the extra `arrow`. Where the native extension is in use, it makes the
columns and pyarrow takes them (`arrow_native`). What is made here is made where it is not.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, TypeAlias, TypeVar

import attrs

from kclient.errors import ConfigError
from kclient.records.arrow_columns import ERROR, beyond_microseconds, checked_names, errors, without_undecoded
from kclient.records.columns import Columns
from kclient.records.decoder import is_native
from kclient.records.reader import Chunk

try:
    import pyarrow as pa
except ImportError:
    raise ConfigError(
        "Records.to_arrow() needs pyarrow, which cannot be imported. It is not part of the base install. "
        "Type: pip install 'kclient-kafka[arrow]'."
    ) from sys.exception()  # no name of this module

from kclient.records import arrow_binary  # it needs pyarrow too

T = TypeVar("T")
Builder: TypeAlias = Callable[[Chunk], Any]
"""Makes one column of the records of a chunk, all of whose runs have some."""

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
_FIELDS = {field.name: field for field in [*SCHEMA, pa.field(ERROR, pa.string())]}


def to_table(
    chunks: Iterable[Chunk], columns: Sequence[str] | None = None, *, keeps_errors: bool = False
) -> pa.Table:
    """The records of the chunks. Only the columns asked for are built: without `value` no value is touched.

    With `keeps_errors` there is the column `error`, and what could not be decoded is null.

    Raises ArgumentError for an unknown column and CorruptDataError for a timestamp beyond microseconds.
    """
    chunks = tuple(chunks)
    if is_native():
        return _native_reader(chunks, columns, keeps_errors=keeps_errors).read_all()
    schema = _schema_of(checked_names(columns, keeps_errors=keeps_errors))
    if keeps_errors:
        chunks = tuple(attrs.evolve(chunk, runs=list(map(without_undecoded, chunk.runs))) for chunk in chunks)
    batches = chain.from_iterable(_batches(chunk, schema) for chunk in chunks)
    return pa.Table.from_batches(batches, schema=schema)


def to_batches(chunk: Chunk, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The records of a chunk, in one batch unless its keys or values have 2 GiB. Raises what `to_table` raises."""
    if is_native():
        return iter(_native_reader([chunk], columns))
    return _batches(chunk, _schema_of(checked_names(columns)))


@attrs.frozen
class _Exported:
    """What pyarrow takes a capsule from."""

    capsule: object

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.capsule


def _native_reader(
    chunks: Sequence[Chunk], columns: Sequence[str] | None, *, keeps_errors: bool = False
) -> pa.RecordBatchReader:
    from kclient.records.arrow_native import export

    return pa.RecordBatchReader.from_stream(_Exported(export(chunks, columns, keeps_errors=keeps_errors)))


def _batches(chunk: Chunk, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    builders = [_BUILDERS[name] for name in schema.names]
    for runs in arrow_binary.portions(chunk.runs, arrow_binary.MOST_BYTES):
        part = attrs.evolve(chunk, runs=runs)
        yield pa.RecordBatch.from_arrays([build(part) for build in builders], schema=schema)


def _schema_of(names: Iterable[str]) -> pa.Schema:
    return pa.schema([_FIELDS[name] for name in names])


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
        raise beyond_microseconds([chunk]) from exc


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
    "error": lambda chunk: pa.array(_flat(chunk, errors), pa.string()),
}
