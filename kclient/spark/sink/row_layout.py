"""The columns of written rows: metadata of the record begins with `_`, the payload has its own names.

    _topic _partition _offset _timestamp _headers _key   payload   [_rescued]   _ingest_batch

The payload of a raw or text value is one column, `value`. The fields of a decoded struct are columns of their own, and
`_rescued` holds the fields of a value that the schema does not name, as JSON text: null where there are none.

A dead letter has the same coordinates, the raw key and value, and the reason why they could not be decoded. Pure of
pyspark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from kclient.errors import ConfigError, DecodeError
from kclient.records.arrow import SCHEMA
from kclient.spark.decoding import ValueDecoder
from kclient.spark.decoding.decoder import BAD_COLUMNS, COORDINATES, ERROR, RAW
from kclient.spark.decoding.json_text import names_of
from kclient.text import format_names

NAMES: Final = {
    "topic": "_topic",
    "partition": "_partition",
    "offset": "_offset",
    "timestamp": "_timestamp",
    "headers": "_headers",
    "key": "_key",
}
"""Column of the source → column of a landed row."""

RESCUED: Final = "_rescued"
BATCH: Final = "_ingest_batch"
CONSTANT: Final = ("topic", "partition")
"""Columns that are constant in a range; they are not read from the records."""


@attrs.frozen
class RowLayout:
    """Which columns of a range are read and written. `batch` is the number of the batch, None in a backfill.

    `rescue` keeps fields that the schema does not name; `refuse_new` makes bad records of values with such fields.
    """

    batch: int | None = None
    headers: bool = True
    decoder: ValueDecoder | None = None
    rescue: bool = False
    refuse_new: bool = False

    def read(self) -> tuple[str, ...]:
        """Return the columns to read from the source, undecoded."""
        wanted = tuple(name for name in self._columns() if name not in CONSTANT)
        return wanted if self.decoder is None else self.decoder.raw_columns(wanted)

    def schema(self) -> pa.Schema:
        """Return the columns of a landed row. Raises ConfigError if a field of the payload has one of these names."""
        fields = [pa.field(NAMES[name], self._type(name)) for name in self._columns() if name in NAMES]
        payload = self.payload()
        taken = [field.name for field in payload if field.name in (*NAMES.values(), RESCUED, BATCH)]
        if taken:
            raise ConfigError(
                f"The payload has {', '.join(taken)}, which the job writes itself. Two columns cannot have one name. "
                "Rename the field in the schema, or land the value raw."
            )
        rescue = [pa.field(RESCUED, pa.string())] if self.rescue else []
        return pa.schema([*fields, *payload, *rescue, pa.field(BATCH, pa.int64())])

    def payload(self) -> list[pa.Field]:
        """Return the columns that the value becomes."""
        kind = self._type("value")
        return list(kind) if pa.types.is_struct(kind) else [pa.field("value", kind)]

    def pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield a batch of `read()` in pieces that are safe to decode."""
        return iter((batch,)) if self.decoder is None else self.decoder.pieces(batch)

    def decode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Decode the values of a batch of `read()`. Raises DecodeError if a bad value ends the job."""
        if self.decoder is None:
            return batch
        if not (self.rescue or self.refuse_new):
            return self.decoder.decode(batch)
        decoded, new = self.decoder.decode_with_new_fields(batch)
        if self.refuse_new:
            return _refused(self.decoder, batch, decoded, new) if new else decoded
        return decoded.append_column(RESCUED, _column(new, len(batch)))

    def landed(self, topic: str, partition: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows as they are written."""
        constants = self._constants(topic, partition, len(batch))
        arrays: list[Any] = [
            constants[name] if name in CONSTANT else batch.column(name)
            for name in self._columns()
            if name in NAMES
        ]
        value = batch.column("value")
        arrays += value.flatten() if pa.types.is_struct(value.type) else [value]
        arrays += [batch.column(RESCUED)] if self.rescue else []
        return pa.RecordBatch.from_arrays([*arrays, constants[BATCH]], schema=self.schema())

    def dead_schema(self) -> pa.Schema:
        """Return the columns of a dead letter: raw key and value, the value as `_raw`, and the reason as `_error`."""
        fields = [pa.field(NAMES[name], SCHEMA.field(name).type) for name in self._columns() if name in NAMES]
        bad = [pa.field(name, BAD_COLUMNS[name]) for name in (RAW, ERROR)]
        return pa.schema([*fields, *bad, pa.field(BATCH, pa.int64())])

    def dead(
        self, topic: str, partition: int, raw: pa.RecordBatch, decoded: pa.RecordBatch
    ) -> pa.RecordBatch:
        """Return the dead letters of a batch as they are written: `raw` before `decode`, `decoded` after it."""
        rows = bad(raw.append_column(ERROR, decoded.column(ERROR)))
        constants = self._constants(topic, partition, len(rows))
        names = {ours: theirs for theirs, ours in NAMES.items()} | {RAW: "value"}
        arrays = [
            constants[name] if name in constants else rows.column(name)
            for name in (names.get(field.name, field.name) for field in self.dead_schema())
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.dead_schema())

    def _columns(self) -> tuple[str, ...]:
        names = [name for name in NAMES if self.headers or name != "headers"]
        bad = list(BAD_COLUMNS) if self.decoder is not None and self.decoder.bad_records == "column" else []
        return (*names, "value", *bad)

    def _type(self, name: str) -> pa.DataType:
        if self.decoder is None:
            return SCHEMA.field(name).type
        return self.decoder.arrow_schema([name]).field(name).type

    def _constants(self, topic: str, partition: int, rows: int) -> dict[str, pa.Array]:
        return {
            "topic": pa.repeat(pa.scalar(topic, pa.string()), rows),
            "partition": pa.repeat(pa.scalar(partition, pa.int32()), rows),
            BATCH: pa.repeat(pa.scalar(self.batch, pa.int64()), rows),
        }


def _column(texts: Mapping[int, str], rows: int) -> pa.Array:
    """Return the texts by row as a column, null where there is none."""
    if not texts:
        return pa.nulls(rows, pa.string())
    return pa.array([texts.get(row) for row in range(rows)], pa.string())


def _refused(
    decoder: ValueDecoder, raw: pa.RecordBatch, decoded: pa.RecordBatch, new: Mapping[int, str]
) -> pa.RecordBatch:
    """Return the batch with values that have new fields as bad records. Raises DecodeError."""
    if ERROR not in decoded.schema.names:
        raise _new_field_error(decoder, raw, new)
    name, rows = decoder.formats["value"].name, len(raw)
    texts = _column({row: f"value: {name}: {_described(text)}" for row, text in new.items()}, rows)
    is_new, value = pc.is_valid(texts), decoded.column("value")
    changed = {
        "value": pc.if_else(is_new, pa.scalar(None, value.type), value),
        ERROR: pc.coalesce(decoded.column(ERROR), texts),
        RAW: pc.if_else(is_new, raw.column("value"), decoded.column(RAW)),
    }
    arrays = [changed.get(name, decoded.column(name)) for name in decoded.schema.names]
    return pa.RecordBatch.from_arrays(arrays, schema=decoded.schema)


def _new_field_error(decoder: ValueDecoder, raw: pa.RecordBatch, new: Mapping[int, str]) -> DecodeError:
    """Return the error that ends a job at the first value with new fields."""
    row = min(new)
    topic, partition, offset = (raw.column(name)[row].as_py() for name in COORDINATES)
    return DecodeError(
        f"{topic}-{partition} at offset {offset}: the value {_described(new[row])}. Give a schema that names them with "
        f"--on-new-field add, keep them with --on-new-field rescue, or {decoder.instead} to go on without it.",
        topic=topic,
        partition=partition,
        offset=offset,
        part="value",
    )


def _described(text: str) -> str:
    """Say which fields are new. Their values are the user's, and stay out of errors."""
    return f"has fields that the schema does not name: {format_names(names_of(text))}"


def rescued_advice(rows: Collection[str], table: Collection[str]) -> str:
    """Return what to do about a table that lacks the column of new fields: nobody may have asked for it."""
    if RESCUED not in rows or RESCUED in table:
        return ""
    return (
        f" {RESCUED} keeps fields that the schema does not name: --on-new-field add adds it to the table, and "
        "--on-new-field ignore leaves it and such fields out."
    )


def good(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows that could be decoded."""
    return batch.filter(pc.is_null(batch.column(ERROR)))


def bad(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows that could not be decoded."""
    return batch.slice(0, 0) if not _has_errors(batch) else batch.filter(pc.is_valid(batch.column(ERROR)))


def _has_errors(batch: pa.RecordBatch) -> bool:
    return ERROR in batch.schema.names and batch.column(ERROR).null_count < len(batch)
