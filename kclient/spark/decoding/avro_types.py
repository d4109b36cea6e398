"""Avro schemas as Arrow types, and the two small changes that make reading them fast and safe.

    null union one type   that type, nullable         enum, uuid            string
    int union long        bigint                      fixed, duration       binary
    float union double    double                      date                  date
    decimal               decimal, up to 38 digits    timestamp-…           timestamp, local-timestamp-… timestamp_ntz
    time-millis           int                         time-micros           bigint, as timestamp-nanos

What Spark has no type for is a ConfigError that names the field: other unions, null alone, records without fields or
inside themselves.
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any, Final

import pyarrow as pa

from kclient.spark.decoding.spark_types import map_of, refuse_type

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
DECIMAL: Final = "kclient-decimal"
"""What decimals are called to the library, so that `decimal_of` reads them."""
MOST_BITS: Final = 127  # of a number with 38 digits
MOST_DIGITS: Final = 38
EXACT: Final = Context(prec=MOST_DIGITS + 1)
WIDENED: Final = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}


def arrow_type(schema: Any, option: str, path: str = "") -> pa.DataType:
    """What the values of an expanded schema are, with times in Avro's own unit.

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
            "is null, which is no type by itself"
            if kind == "null"
            else f"is {kind} inside itself, or unknown"
        )
        refuse_type(option, path, why)
    return LOGICAL.get((kind, schema.get("logicalType", "")), PRIMITIVES[kind])


def micros(kind: pa.DataType) -> pa.DataType:
    """The same type with times in microseconds, Spark's only unit."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz=kind.tz)
    if pa.types.is_map(kind):
        return map_of(kind.key_type, micros(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", micros(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(micros(field.type)) for field in kind])
    return kind


def without_objects(schema: Any) -> Any:
    """The schema with only those logical types that need one: times stay numbers, which Arrow takes as they are."""
    if isinstance(schema, list):
        return [without_objects(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {name: value for name, value in schema.items() if name != "logicalType"}
    if schema.get("logicalType") == "decimal":
        plain["logicalType"] = DECIMAL
    for part in ("type", "items", "values"):
        if part in plain:
            plain[part] = without_objects(plain[part])
    if "fields" in plain:
        plain["fields"] = [without_objects(field) for field in plain["fields"]]
    return plain


class Branches(list[Any]):
    """The branches of a union. Compiled code asks for the length of such a list only to count from its end."""

    __slots__ = ()

    def __len__(self) -> int:
        raise IndexError("a branch below zero")

    def __bool__(self) -> bool:
        return True


def branches_of(union: list[Any]) -> Branches:
    """A list that finds its items as a dict does, which has nothing below zero and is as fast as a list."""
    found = dict(enumerate(union)).__getitem__
    made: Branches = type("Branches", (Branches,), {"__slots__": (), "__getitem__": found})(union)
    return made


def counted_from_zero(parsed: Any) -> Any:
    """A parsed schema, changed in place, with unions and symbols that nothing below zero finds. Not for readers."""
    if isinstance(parsed, list):
        return branches_of([counted_from_zero(branch) for branch in parsed])
    if not isinstance(parsed, dict) or isinstance(parsed.get("symbols"), dict):
        return parsed
    if "symbols" in parsed:
        parsed["symbols"] = dict(enumerate(parsed["symbols"]))
    for part in ("type", "items", "values"):
        if part in parsed:
            parsed[part] = counted_from_zero(parsed[part])
    for field in parsed.get("fields", ()):
        counted_from_zero(field)
    for named in parsed.get("__named_schemas", {}).values():
        counted_from_zero(named)
    return parsed


def decimal_of(data: bytes, writer: Any, _reader: Any = None) -> Decimal:
    """The number that a writer with this schema wrote. Raises ValueError where it has more digits than that allows.

    The library's own takes as long as the square of the number's length, and rounds what has too many digits.
    """
    unscaled = int.from_bytes(data, "big", signed=True)
    scale = writer.get("scale", 0)
    if unscaled.bit_length() > MOST_BITS or len(str(abs(unscaled))) > writer["precision"]:
        raise ValueError("more digits than the precision allows")
    if not 0 <= scale <= MOST_DIGITS:
        raise ValueError("a scale that no column can have")
    return Decimal(unscaled).scaleb(-scale, EXACT)


def hazard(schema: Any) -> str | None:
    """Why a few bytes written with an expanded schema could keep a reader busy for ever, or overflow its stack."""
    if isinstance(schema, list):
        return next((found for branch in schema if (found := hazard(branch))), None)
    if isinstance(schema, str):
        return None if schema in PRIMITIVES or schema == "null" else f"it has {schema} inside itself"
    if schema["type"] == "array" and may_be_empty(schema["items"]):
        return "it has an array of items that take no bytes, whose number nothing bounds"
    if schema["type"] in ("enum", "fixed"):
        return None
    inner = [schema[part] for part in ("items", "values") if part in schema]
    inner += [field["type"] for field in schema.get("fields", ())]
    return hazard(inner or [schema["type"]])


def may_be_empty(schema: Any) -> bool:
    """Whether a value of the schema takes no bytes at all."""
    if isinstance(schema, list):
        return False  # the number of the branch
    if isinstance(schema, str):
        return schema == "null"
    kind = schema["type"]
    if kind in ("record", "error"):
        return all(may_be_empty(field["type"]) for field in schema["fields"])
    return (
        kind == "null"
        or (kind == "fixed" and schema["size"] == 0)
        or (isinstance(kind, dict | list) and may_be_empty(kind))
    )


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
            option, path, f"is a decimal of {precision} digits, {scale} behind the point; Spark has up to 38"
        )
    return pa.decimal128(precision, scale)
