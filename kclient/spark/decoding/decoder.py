"""From raw columns to decoded ones: the formats of key and value, and what happens to records that cannot be decoded.

    badRecords=fail      the batch raises DecodeError, which names the first bad record
    badRecords=null      the key or value becomes null
    badRecords=column    the same, and the columns `_error` and `_raw` hold the reason and the bytes

`decoder_of` builds the decoder from the options, once, on the driver: schema files and the registry's newest schema are
read there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import attrs
import pyarrow as pa

from kclient.errors import ConfigError, DecodeError
from kclient.records.arrow import SCHEMA
from kclient.spark.arrow_batches import TYPES, default_columns
from kclient.spark.decoding.ddl import spark_name
from kclient.spark.decoding.formats import BadValue, Decoded, TextFormat, ValueFormat, cuts, widest_item
from kclient.spark.kafka_keys import secret_of
from kclient.spark.option_table import Topics

if TYPE_CHECKING:
    from kclient.network.schema_registry import SchemaRegistry
    from kclient.spark.decoding.avro_schema import AvroReaderSchema
    from kclient.spark.options import SourceOptions

ERROR: Final = "_error"
RAW: Final = "_raw"
COORDINATES: Final = ("topic", "partition", "offset")
INSTEAD: Final = "set badRecords to null or column"
BAD_COLUMNS: Final = {ERROR: pa.string(), RAW: pa.binary()}


@attrs.frozen
class ValueDecoder:
    """Decodes keys and values by `keyFormat`, `valueFormat` and `badRecords`; pickles for workers.

    `instead` is the advice of the error: how to go on without bad records.
    """

    formats: Mapping[str, ValueFormat]
    bad_records: str = "fail"
    instead: str = INSTEAD

    @property
    def types(self) -> dict[str, str]:
        """Every available column and its Spark type, in the order of `load()` without a schema."""
        decoded = {part: spark_name(chosen.type) for part, chosen in self.formats.items()}
        extra = {name: spark_name(kind) for name, kind in BAD_COLUMNS.items()}
        return TYPES | decoded | (extra if self.bad_records == "column" else {})

    def default_columns(self, *, include_headers: bool) -> tuple[str, ...]:
        """Return the columns of `load()` without a schema; the two about bad records are last."""
        extra = tuple(BAD_COLUMNS) if self.bad_records == "column" else ()
        return default_columns(include_headers=include_headers) + extra

    def ddl(self, columns: Iterable[str]) -> str:
        """Return the schema of these columns as DDL text for Spark."""
        schema = self.arrow_schema(columns)
        return ", ".join(f"`{field.name}` {spark_name(field.type, quoted=True)}" for field in schema)

    def arrow_schema(self, columns: Iterable[str]) -> pa.Schema:
        """Return the Arrow schema of `decode` for these columns, which equals Spark's of `ddl`."""
        return pa.schema([pa.field(name, self._type(name)) for name in columns])

    def raw_columns(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the columns to read so that `decode` can return these and identify bad records."""
        wanted = [name for name in columns if name not in BAD_COLUMNS]
        if len(wanted) < len(columns):
            wanted += [part for part in self.formats if part not in wanted]
        decoded = any(part in wanted for part in self.formats)
        if decoded and self.bad_records == "fail":
            wanted += [name for name in COORDINATES if name not in wanted]
        return tuple(wanted or ["offset"])

    def decode(self, batch: pa.RecordBatch, columns: Sequence[str] | None = None) -> pa.RecordBatch:
        """Decode keys and values of a batch of `raw_columns(columns)`; return these columns, or all that it has.

        Raises DecodeError for a bad record where `badRecords=fail`.
        """
        return self._decoded(batch, self._results(batch), columns)

    def decode_with_new_fields(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Mapping[int, str]]:
        """Decode as `decode` does; return also, by row, the fields of values that the schema does not name, as JSON."""
        results = self._results(batch, new_fields=True)
        new = results["value"].new if "value" in results else {}
        return self._decoded(batch, results, None), new

    def _results(self, batch: pa.RecordBatch, *, new_fields: bool = False) -> dict[str, Decoded]:
        names = batch.schema.names
        return {
            part: chosen.decode(batch.column(part), new_fields=new_fields and part == "value")
            for part, chosen in self.formats.items()
            if part in names
        }

    def _decoded(
        self, batch: pa.RecordBatch, results: Mapping[str, Decoded], columns: Sequence[str] | None
    ) -> pa.RecordBatch:
        arrays = dict(zip(batch.schema.names, batch.columns, strict=True)) | {
            part: made.array for part, made in results.items()
        }
        if self.bad_records == "column":
            arrays |= _bad_record_columns(batch, results, self.formats)
        elif self.bad_records == "fail":
            self._fail(batch, results)
        schema = self.arrow_schema(arrays if columns is None else columns)
        return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)

    def decode_all(
        self, batches: Iterator[pa.RecordBatch], columns: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Decode the batches of a range that was read with `raw_columns(columns)`.

        Raises as `decode` and the reader do.
        """
        if not self.formats:
            return batches
        return self._each(batches, columns)

    def _each(self, batches: Iterator[pa.RecordBatch], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for piece in self.pieces(batch):
                yield self.decode(piece, columns)

    def pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield a batch whole, or in pieces if its values might become too large together."""
        names = batch.schema.names
        parts = [
            (batch.column(part), widest_item(form.type))
            for part, form in self.formats.items()
            if part in names
        ]
        for start, length in cuts(parts, len(batch)):
            yield batch.slice(start, length)

    def _type(self, name: str) -> pa.DataType:
        if name in self.formats:
            return self.formats[name].type
        return BAD_COLUMNS[name] if name in BAD_COLUMNS else SCHEMA.field(name).type

    def _fail(self, batch: pa.RecordBatch, results: Mapping[str, Decoded]) -> None:
        first = min(((row, part) for part, made in results.items() for row in made.bad), default=None)
        if first is None:
            return
        row, part = first
        topic, partition, offset = (batch.column(name)[row].as_py() for name in COORDINATES)
        raise DecodeError(
            f"{topic}-{partition} at offset {offset}: the {part} cannot be read as "
            f"{_why(self.formats[part], results[part].bad[row])}. Its producer may write another format or schema. "
            f"Give the right one, or {self.instead} to go on without it.",
            topic=topic,
            partition=partition,
            offset=offset,
            part=part,
        )


def _bad_record_columns(
    batch: pa.RecordBatch, results: Mapping[str, Decoded], formats: Mapping[str, ValueFormat]
) -> dict[str, pa.Array]:
    """Return the columns about bad records. If key and value are both bad, `_raw` is the value."""
    errors: dict[int, list[str]] = {}
    raw: dict[int, bytes | None] = {}
    for part, made in results.items():
        for row, bad in made.bad.items():
            errors.setdefault(row, []).append(f"{part}: {_why(formats[part], bad)}")
            raw[row] = batch.column(part)[row].as_py()
    if not errors:
        return {name: pa.nulls(len(batch), kind) for name, kind in BAD_COLUMNS.items()}
    rows = range(len(batch))
    texts = ["; ".join(errors[row]) if row in errors else None for row in rows]
    return {ERROR: pa.array(texts, pa.string()), RAW: pa.array([raw.get(row) for row in rows], pa.binary())}


def _why(chosen: ValueFormat, bad: BadValue) -> str:
    schema = "" if bad.schema_id is None else f" with schema id {bad.schema_id}"
    return f"{chosen.name}{schema}: {bad.reason}"


# --- the decoder of the options --------------------------------------------------------------------------------------


SUBJECT = "subject:"
BY_NAME: Final[Mapping[str, str]] = {}
BY_INGEST: Final[Mapping[str, str]] = {
    "keyFormat": "--options keyFormat",
    "keySchema": "--options keySchema",
    "valueFormat": "--format",
    "valueSchema": "--schema",
    "badRecords": "give --on-bad-record null, or dlq with --dlq parquet:DIR,",
}
"""The names of the options in `kclient ingest`, for its errors, and its advice for bad records."""


class _PartOptions(NamedTuple):
    """Key or value, with the names of its options for error texts."""

    name: str
    form: str
    schema: str


def decoder_of(options: SourceOptions, called: Mapping[str, str] = BY_NAME) -> ValueDecoder | None:
    """Return the decoder of keys and values, None if both are raw. `called` maps options to their names in errors.

    Asks the registry where the reader schema comes from there. Raises ConfigError and ConnectError.
    """
    formats = {
        part: made
        for part, chosen, schema in (
            ("key", options.key_format, options.key_schema),
            ("value", options.value_format, options.value_schema),
        )
        if (made := _format(options, _part(part, called), chosen, schema)) is not None
    }
    instead = called.get("badRecords", INSTEAD)
    return ValueDecoder(formats, options.bad_records, instead) if formats else None


def _part(name: str, called: Mapping[str, str]) -> _PartOptions:
    form, schema = f"{name}Format", f"{name}Schema"
    return _PartOptions(name, called.get(form, form), called.get(schema, schema))


def _format(
    options: SourceOptions, part: _PartOptions, chosen: str, schema: str | None
) -> ValueFormat | None:
    match chosen:
        case "raw":
            return None
        case "string":
            return TextFormat()
        case "json" if schema is not None:
            from kclient.spark.decoding.json_format import JsonFormat

            return JsonFormat.of(part.schema, schema, options.max_elements)
        case "avro":
            from kclient.spark.decoding.avro_format import AvroFormat

            registry = _registry(options)
            reader = _avro_schema(options, part, schema, registry)
            return AvroFormat.of(part.schema, reader, registry, options.max_elements)
        case "protobuf" if schema is not None and not schema.startswith(SUBJECT):
            from kclient.deserializers.protobuf import message_schema
            from kclient.spark.decoding.protobuf_format import ProtobufFormat

            given = message_schema(part.schema, schema)
            return ProtobufFormat.of(given, options.max_elements, _registry(options))
        case "protobuf":
            raise ConfigError(
                f"{part.form}=protobuf needs {part.schema}=FILE#MESSAGE: a registry is asked for Avro schemas only. "
                "Make the file with protoc --include_imports --descriptor_set_out=FILE; for values in the registry's "
                f"frame write {part.schema}=frame:*:FILE#MESSAGE."
            )
    raise ConfigError(
        f"{part.form}=json needs {part.schema}, the schema as DDL: a registry is asked for Avro schemas only. "
        f"Write it as Spark does, such as {part.schema}='id BIGINT, name STRING'."
    )


def _registry(options: SourceOptions) -> SchemaRegistry | None:
    from kclient.network.schema_registry import SchemaRegistry

    if options.registry_url is None:
        return None
    auth, reference = options.registry_auth, options.registry_auth_reference
    credentials = None if auth is None else partial(secret_of, auth, reference)  # followed where it is used
    return SchemaRegistry(
        options.registry_url, credentials, "schema.registry.auth, or the same with .env or .file"
    )


def _avro_schema(
    options: SourceOptions, part: _PartOptions, schema: str | None, registry: SchemaRegistry | None
) -> AvroReaderSchema:
    """Return the reader's schema: given, or the newest of the subject, which is `<topic>-value` by default."""
    from kclient.network.schema_registry import UnknownSchemaError, avro_text
    from kclient.spark.decoding.avro_schema import AvroReaderSchema, reader_schema

    if schema is not None and not schema.startswith(SUBJECT):
        return reader_schema(part.schema, schema)
    if registry is None:
        raise ConfigError(
            f"{part.schema}={schema} needs schema.registry.url, where the subject is asked for."
        )
    if schema is None:
        name, version = _usual_subject(options, part), "latest"
    else:
        name, _, version = schema.removeprefix(SUBJECT).partition(":")
    try:
        found = registry.subject(name, version or "latest")
        return AvroReaderSchema(avro_text(found, f"version {version or 'latest'} of the subject {name}"))
    except UnknownSchemaError as exc:
        raise ConfigError(
            f"{part.form}=avro: {exc}. Name the subject with {part.schema}=subject:NAME, or give the schema."
        ) from exc


def _usual_subject(options: SourceOptions, part: _PartOptions) -> str:
    topics = options.selection.names if isinstance(options.selection, Topics) else ()
    if len(topics) != 1:
        raise ConfigError(
            f"{part.form}=avro has no {part.schema}, and only one topic says which subject of the registry is meant. "
            f"Give {part.schema}=subject:NAME, or read one topic."
        )
    return f"{topics[0]}-{part.name}"
