"""The columns of written rows: metadata of the record begins with `_`, the payload has its own names.

    _topic _partition _offset _timestamp _headers _key   payload   [_rescued]   _ingest_batch

The payload of a raw or text value is one column, `value`. The fields of a decoded struct are columns of their own, and
`_rescued` holds the fields of a JSON document that the schema does not name, as JSON text:

    schema a BIGINT, o STRUCT<x: BIGINT>     {"a": 1, "b": 2, "o": {"x": 3, "y": [4]}}  →  {"b":2,"o":{"y":[4]}}

Objects inside of arrays are not searched. A document without such fields, or one that cannot be read, gives null.
Values keep the document's own text, so that no digit of a number is lost. A value that is not strict JSON (NaN, an
infinity, a duplicate name in it) is kept as a string of its text.

A dead letter has the same coordinates, the raw key and value, and the reason why they could not be decoded. Pure of
pyspark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, cast

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from kclient.errors import ConfigError, DecodeError
from kclient.records.arrow import SCHEMA
from kclient.spark.decoding import ValueDecoder
from kclient.spark.decoding.decoder import BAD_COLUMNS, COORDINATES, ERROR, RAW
from kclient.spark.decoding.formats import without
from kclient.spark.decoding.json_format import JsonFormat
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

BATCH: Final = "_ingest_batch"
CONSTANT: Final = ("topic", "partition")
"""Columns that are constant in a range; they are not read from the records."""


@attrs.frozen
class RowLayout:
    """Which columns of a range are read and written. `batch` is the number of the batch, None in a backfill.

    `rescue` keeps fields of JSON that the schema does not name; `refuse_new` makes bad records of such values.
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
        decoded = self.decoder.decode(batch)
        form = self.decoder.formats.get("value")
        if not (self.rescue or self.refuse_new) or not isinstance(form, JsonFormat):
            return decoded
        new = rescued(batch.column("value"), form)
        return (
            decoded.append_column(RESCUED, new)
            if self.rescue
            else _refused(self.decoder, batch, decoded, new)
        )

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


def _refused(
    decoder: ValueDecoder, raw: pa.RecordBatch, decoded: pa.RecordBatch, new: pa.Array
) -> pa.RecordBatch:
    """Return the batch with values that have new fields (`new` is not null) as bad records. Raises DecodeError."""
    if new.null_count == len(new):
        return decoded
    texts = [None if text is None else _described(text) for text in new.to_pylist()]
    if ERROR not in decoded.schema.names:
        row = next(row for row, text in enumerate(texts) if text is not None)
        topic, partition, offset = (raw.column(name)[row].as_py() for name in COORDINATES)
        raise DecodeError(
            f"{topic}-{partition} at offset {offset}: the value {texts[row]}. Give a schema that names them with "
            f"--on-new-field add, keep them with --on-new-field rescue, or {decoder.instead} to go on without it.",
            topic=topic,
            partition=partition,
            offset=offset,
            part="value",
        )
    is_new = pc.is_valid(new)
    errors = pa.array([None if text is None else f"value: json: {text}" for text in texts], pa.string())
    value = decoded.column("value")
    changed = {
        "value": pc.if_else(is_new, pa.scalar(None, value.type), value),
        ERROR: pc.coalesce(decoded.column(ERROR), errors),
        RAW: pc.if_else(is_new, raw.column("value"), decoded.column(RAW)),
    }
    arrays = [changed.get(name, decoded.column(name)) for name in decoded.schema.names]
    return pa.RecordBatch.from_arrays(arrays, schema=decoded.schema)


def _described(text: str) -> str:
    """Say which fields are new. Their values are the user's, and stay out of errors."""
    return f"has fields that the schema does not name: {format_names(list(json.loads(text)))}"


def good(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows that could be decoded."""
    return batch.filter(pc.is_null(batch.column(ERROR)))


def bad(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows that could not be decoded."""
    return batch.slice(0, 0) if not _has_errors(batch) else batch.filter(pc.is_valid(batch.column(ERROR)))


def _has_errors(batch: pa.RecordBatch) -> bool:
    return ERROR in batch.schema.names and batch.column(ERROR).null_count < len(batch)


# --- fields that the schema does not name ----------------------------------------------------------------------------


RESCUED: Final = "_rescued"
SPACE: Final = re.compile(r"[ \t\r\n]*")


def rescued(values: pa.Array, form: JsonFormat) -> pa.Array:
    """Return the fields of each value that the schema leaves out.

    A batch without such fields is only read by Arrow's parser, which is fast.
    """
    values = without(values, form.too_large(values))
    if form.knows(values):
        return pa.nulls(len(values), pa.string())
    return pa.array([_text(value, form.type) for value in values.to_pylist()], pa.string())


def _text(value: bytes | None, kind: pa.DataType) -> str | None:
    try:
        text = "" if value is None else value.decode()
        start = _past(text, 0)
        if text[start : start + 1] != "{" or not pa.types.is_struct(kind):
            return None
        kept, end = _kept(text, start, kind)
    except (ValueError, RecursionError):
        return None
    return kept if kept and _past(text, end) == len(text) else None


def _kept(text: str, at: int, kind: pa.StructType) -> tuple[str, int]:
    """Return the fields of the object at `at` that the type does not have, at any depth, and where the object ends.

    Raise ValueError for text that is not JSON.
    """
    known = {field.name: field.type for field in kind}
    kept: dict[str, str] = {}
    at, sign = _past(text, at + 1), ","
    if text[at : at + 1] == "}":
        return "", at + 1
    while sign == ",":
        begin = at
        _behind(text, at, '"')  # only a string is a name
        name, at = ANY.raw_decode(text, at)
        label = text[begin:at]
        at = _past(text, _behind(text, _past(text, at), ":"))
        if name not in known:
            value, at = _value(text, at)
        elif pa.types.is_struct(known[name]) and text[at : at + 1] == "{":
            value, at = _kept(text, at, known[name])
        else:
            value, at = "", ANY.raw_decode(text, at)[1]
        if value:
            kept[name] = f"{label}:{value}"
        at = _past(text, at)
        sign = text[at : at + 1]
        at = _past(text, at + 1) if sign == "," else at
    return "{" + ",".join(kept.values()) + "}" if kept else "", _behind(text, at, "}")


def _value(text: str, at: int) -> tuple[str, int]:
    """Return a value's text; as a JSON string if other readers of JSON would refuse it."""
    try:
        _, end = STRICT.raw_decode(text, at)
    except _NotStrict:
        _, end = ANY.raw_decode(text, at)
        return json.dumps(text[at:end]), end
    return text[at:end], end


def _behind(text: str, at: int, sign: str) -> int:
    if text[at : at + 1] != sign:
        raise ValueError(f"no {sign}")
    return at + 1


def _past(text: str, at: int) -> int:
    """Return where the white space at `at` ends."""
    return cast("re.Match[str]", SPACE.match(text, at)).end()


class _NotStrict(Exception):
    """Raised for NaN, an infinity, or a field that occurs twice."""


def _constant(_: str) -> None:
    raise _NotStrict


def _once(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) < len(pairs):
        raise _NotStrict


ANY: Final = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)
STRICT: Final = json.JSONDecoder(
    parse_float=str, parse_int=str, parse_constant=_constant, object_pairs_hook=_once
)
