"""Avro schemas: where they come from, their Arrow types, their size, and two changes that make reading fast and safe.

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

A schema is measured before its names are expanded, which doubles them at each level:

    record R1 {a: R0, b: R0}, record R2 {a: R1, b: R1}, …     60 lines of schema name 2**60 types

A type counts as often as a value may hold it: the fields of a record, the largest branch of a union, an item of an
array once. Each named type is measured once.
"""

from __future__ import annotations

import functools
import json
from decimal import Context, Decimal
from typing import Any, Final, NamedTuple

import attrs
import pyarrow as pa

from kclient.errors import ConfigError
from kclient.spark.decoding.ddl import map_of, refuse_type
from kclient.spark.decoding.formats import read_schema_file, reason_of, split_frame

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
"""The name of decimals for the library, so that `decimal_of` reads them."""
MOST_BITS: Final = 127  # of a number with 38 digits
MOST_DIGITS: Final = 38
EXACT: Final = Context(prec=MOST_DIGITS + 1)
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


def without_objects(schema: Any) -> Any:
    """Remove the logical types that Arrow can convert itself: times stay numbers."""
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
    """The branches of a union. Compiled code uses the length of such a list only to count from its end."""

    __slots__ = ()

    def __len__(self) -> int:
        raise IndexError("a branch below zero")

    def __bool__(self) -> bool:
        return True


def branches_of(union: list[Any]) -> Branches:
    """Return a list that looks items up as a dict does, so that a negative index finds nothing; as fast as a list."""
    found = dict(enumerate(union)).__getitem__
    made: Branches = type("Branches", (Branches,), {"__slots__": (), "__getitem__": found})(union)
    return made


def counted_from_zero(parsed: Any) -> Any:
    """Change a parsed schema in place so that negative indexes into unions and symbols fail. Not for reader schemas."""
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
    """Return the number written with this schema. Raises ValueError if it has more digits than the schema allows.

    The library's own function takes quadratic time, and rounds a number with too many digits.
    """
    unscaled = int.from_bytes(data, "big", signed=True)
    scale = writer.get("scale", 0)
    if unscaled.bit_length() > MOST_BITS or len(str(abs(unscaled))) > writer["precision"]:
        raise ValueError("more digits than the precision allows")
    if not 0 <= scale <= MOST_DIGITS:
        raise ValueError("a scale that no column can have")
    return Decimal(unscaled).scaleb(-scale, EXACT)


def hazard(schema: Any) -> str | None:
    """Return why a few bytes of an expanded schema could loop forever or overflow the stack, None if they cannot."""
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
    """Return whether a value of the schema may take no bytes at all."""
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
            option, path, f"is a decimal of {precision} digits, {scale} after the point; Spark has up to 38"
        )
    return pa.decimal128(precision, scale)


# --- where schemas come from -----------------------------------------------------------------------------------------


VALUE: Final = "value"
"""The field of the record around every schema."""


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


def expanded(schema: Any) -> Any:
    """Replace each name in a schema by its definition. Raises ValueError if the result is too large."""
    library = avro_library()
    json.dumps(schema, ensure_ascii=False).encode()  # half a surrogate pair is not text
    check_size(library.parse_schema(schema))
    return library.schema.expand_schema(schema)


def schema_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that fastavro and json raise for text that is not a schema."""
    schema = avro_library().schema
    own = (schema.SchemaParseException, schema.UnknownType)
    return ValueError, KeyError, TypeError, RecursionError, *own


@functools.lru_cache(maxsize=256)
def readable(text: str) -> Any:
    """Parse a schema for reading values, wrapped in a record, which adds no byte; once in each process.

    The library caches a parsed record only; it would parse any other outermost schema again for every value.
    Raises ValueError for one with a hazard.
    """
    if found := hazard(expanded(json.loads(text))):
        raise ValueError(found)
    field = {"name": VALUE, "type": without_objects(json.loads(text))}
    return avro_library().parse_schema({"type": "record", "name": "Outermost", "fields": [field]})


@functools.lru_cache(maxsize=256)
def strict(text: str) -> Any:
    """Parse a writer's schema so that a negative branch or symbol in the bytes is an error.

    The library counts a negative number from the end, as Python does, and would read damaged bytes as a good value.
    """
    return counted_from_zero(readable.__wrapped__(text))


def avro_library() -> Any:
    """Import fastavro. Raises ConfigError with the command to install it."""
    try:
        import fastavro
    except ImportError as exc:
        raise ConfigError(
            "The format avro needs fastavro, which cannot be imported. It is not part of the base install. "
            "Type: pip install 'kclient-kafka[avro]', on the workers too."
        ) from exc
    for kind in ("bytes", "fixed"):
        fastavro.read.LOGICAL_READERS[f"{kind}-{DECIMAL}"] = decimal_of
    return fastavro


def _file(option: str, path: str) -> str:
    data = read_schema_file(option, path, "is not JSON, so it names a file")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ConfigError(
            f"{option}: the file {path} is not UTF-8, which JSON is. Give a schema file."
        ) from None


# --- the size of a schema --------------------------------------------------------------------------------------------


MAX_NODES: Final = 5_000
MAX_DEPTH: Final = 100
MAX_DEFAULT_CHARACTERS: Final = 16_384
"""Of all defaults of a schema together: a reader puts them into each value."""


def check_size(parsed: Any) -> None:
    """Raise ValueError for a parsed schema, with its names, that would expand to too much or too deep."""
    found = _Counter().size_of(parsed)
    if found.nodes > MAX_NODES:
        raise ValueError(f"it has more than {MAX_NODES:,} types when each name in it is written out")
    if found.depth > MAX_DEPTH:
        raise ValueError(f"it has more than {MAX_DEPTH} types inside each other")


def check_defaults(schema: Any) -> None:
    """Raise ValueError for defaults that are too long to be put into each value."""
    if _default_characters(schema) > MAX_DEFAULT_CHARACTERS:
        raise ValueError(f"its defaults have more than {MAX_DEFAULT_CHARACTERS:,} characters")


class _Size(NamedTuple):
    nodes: int
    depth: int


class _Counter:
    """Measures a schema; a name that is still being measured (a recursion) counts as one type."""

    def __init__(self) -> None:
        self._by_name: dict[str, _Size] = {}

    def size_of(self, schema: Any) -> _Size:
        if isinstance(schema, str):
            return self._by_name.get(schema, LEAF)
        name = schema.get("name") if isinstance(schema, dict) else None
        if name is not None:
            self._by_name[name] = LEAF
        inner = [self.size_of(part) for part in parts_of(schema)]
        found = _Size(
            1 + sum(each.nodes for each in inner), 1 + max((each.depth for each in inner), default=0)
        )
        if name is not None:
            self._by_name[name] = found
        return found


LEAF: Final = _Size(1, 1)


def parts_of(schema: Any) -> list[Any]:
    """Return the schemas directly inside a schema."""
    if isinstance(schema, list):
        return schema
    inner = [schema[part] for part in ("items", "values") if part in schema]
    inner += [field["type"] for field in schema.get("fields", ())]
    return inner if isinstance(schema["type"], str) else [*inner, schema["type"]]


def _default_characters(schema: Any) -> int:
    found, waiting = 0, [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            found += len(repr(node.get("default", "")))
            waiting += [value for name, value in node.items() if name != "default"]
        elif isinstance(node, list):
            waiting += node
    return found
