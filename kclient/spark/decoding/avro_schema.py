"""Avro schemas in the options: where they come from, and their Arrow types.

    orders.avsc                  a file of the driver            {"type": "record", …}   the schema itself
    frame:17:orders.avsc         values begin with the registry's frame, and its id must be 17 (or 17,18; * is any)
    subject:orders-value[:3]     from the registry, the newest version unless one is named

    null union one type   that type, nullable         enum, uuid            string
    int union long        bigint                      fixed, duration       binary
    float union double    double                      date                  date
    decimal               decimal, up to 38 digits    timestamp-…           timestamp, local-timestamp-… timestamp_ntz
    time-millis           int                         time-micros           bigint, as timestamp-nanos

A type that Spark lacks is a ConfigError that names the field: other unions, null alone, records without fields or
nested in themselves.
"""

from __future__ import annotations

import json
from typing import Any, Final

import attrs
import pyarrow as pa

from kclient.deserializers.avro_schema import check_defaults, expanded, may_be_empty, schema_errors
from kclient.deserializers.elements import reason_of
from kclient.deserializers.frame import split_frame
from kclient.deserializers.schema_file import read_schema_file
from kclient.errors import ConfigError
from kclient.spark.decoding.ddl import map_of, refuse_type

PRIMITIVES: Final = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
LOGICAL: Final = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): pa.timestamp("ms", tz="UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", tz="UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
WIDENED: Final = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}


def arrow_type(schema: Any, option: str, path: str = "") -> pa.DataType:
    """Return the Arrow type of an expanded schema's values, with times in Avro's own unit.

    Raises ConfigError that names the field which has no Spark type.
    """
    if isinstance(schema, list):
        return _union(schema, option, path)
    if isinstance(schema, str):
        schema = {"type": schema}
    kind = schema["type"]
    if isinstance(kind, dict | list):
        return arrow_type(kind, option, path)
    match kind:
        case "record" | "error":
            return _record(schema, option, path)
        case "array":
            items = schema["items"]
            if may_be_empty(items):
                refuse_type(
                    option, path, "is an array of items that take no bytes, whose number nothing bounds"
                )
            return pa.list_(pa.field("element", arrow_type(items, option, f"{path}[]")))
        case "map":
            return map_of(pa.string(), arrow_type(schema["values"], option, f"{path}{{}}"))
        case "enum":
            return pa.string()
        case "bytes" | "fixed" if schema.get("logicalType") == "decimal":
            return _decimal(schema, option, path)
        case "fixed":
            return pa.binary()
    if kind not in PRIMITIVES:
        why = (
            "is null, which is not a column type alone"
            if kind == "null"
            else f"is {kind} inside itself, or unknown"
        )
        refuse_type(option, path, why)
    return LOGICAL.get((kind, schema.get("logicalType", "")), PRIMITIVES[kind])


def micros(kind: pa.DataType) -> pa.DataType:
    """Return the type with times in microseconds, Spark's only unit."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz=kind.tz)
    if pa.types.is_map(kind):
        return map_of(kind.key_type, micros(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", micros(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(micros(field.type)) for field in kind])
    return kind


def _union(branches: list[Any], option: str, path: str) -> pa.DataType:
    rest = [branch for branch in branches if branch != "null" and branch != {"type": "null"}]
    if len(rest) == 1:
        return arrow_type(rest[0], option, path)
    wider = WIDENED.get(frozenset(branch for branch in rest if isinstance(branch, str)))
    if wider is None or not all(isinstance(branch, str) for branch in rest):
        refuse_type(option, path, "is a union of several types, and a column has one")
    return PRIMITIVES[wider]


def _record(schema: Any, option: str, path: str) -> pa.DataType:
    if not schema["fields"]:
        refuse_type(option, path, "is a record without fields")
    return pa.struct(
        [
            pa.field(field["name"], arrow_type(field["type"], option, f"{path}.{field['name']}".lstrip(".")))
            for field in schema["fields"]
        ]
    )


def _decimal(schema: Any, option: str, path: str) -> pa.DataType:
    precision, scale = schema.get("precision", 0), schema.get("scale", 0)
    if not 1 <= precision <= 38 or not 0 <= scale <= precision:
        refuse_type(
            option, path, f"is a decimal of {precision} digits, {scale} after the point; Spark has up to 38"
        )
    return pa.decimal128(precision, scale)


# --- where schemas come from -----------------------------------------------------------------------------------------


@attrs.frozen
class AvroReaderSchema:
    """The text of the reader schema, and the ids that the frame may have: None for no frame, empty for any id."""

    text: str
    ids: frozenset[int] | None = None


def reader_schema(option: str, written: str) -> AvroReaderSchema:
    """Return the reader schema of an option. Raises ConfigError if there is none."""
    ids, written = split_frame(option, written)
    return AvroReaderSchema(
        written if written.lstrip()[:1] in ("{", "[", '"') else _file(option, written), ids
    )


def checked(option: str, text: str) -> Any:
    """Return the schema with all names expanded. Raises ConfigError for text that is not an Avro schema."""
    try:
        schema = json.loads(text)
        check_defaults(schema)
        return expanded(schema)
    except schema_errors() as exc:
        raise ConfigError(
            f"{option} is not an Avro schema: {reason_of(exc)}. Compare it with what producers use."
        ) from exc


def _file(option: str, path: str) -> str:
    data = read_schema_file(option, path, "is not JSON, so it names a file")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ConfigError(
            f"{option}: the file {path} is not UTF-8, which JSON is. Give a schema file."
        ) from None
