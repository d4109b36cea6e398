"""Avro schemas: their size, and what makes reading foreign bytes by them fast and safe.

A schema is measured before its names are expanded, which doubles them at each level:

    record R1 {a: R0, b: R0}, record R2 {a: R1, b: R1}, …     60 lines of schema name 2**60 types

A type counts as often as a value may hold it: the fields of a record, the largest branch of a union, an item of an
array once. Each named type is measured once.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from decimal import Context, Decimal
from typing import Any, Final, NamedTuple

from kclient.deserializers.elements import BadValueError
from kclient.errors import ConfigError

PRIMITIVE_TYPES: Final = frozenset({"boolean", "int", "long", "float", "double", "bytes", "string"})
DECIMAL: Final = "kclient-decimal"
"""The name of decimals for the library, so that `decimal_of` reads them."""


MOST_DIGITS: Final = 1_000
"""Of a decimal: many more than a column takes, and few enough to write them down in little time."""


MOST_BITS: Final = 3_322  # of a number with so many digits


EXACT: Final = Context(prec=MOST_DIGITS + 1)


MAX_NODES: Final = 5_000


MAX_DEPTH: Final = 100


MAX_DEFAULT_CHARACTERS: Final = 16_384
"""Of all defaults of a schema together: a reader puts them into each value."""


VALUE: Final = "value"
"""The field of the record around every schema."""


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
def readable(text: str, *, objects: bool = False) -> Any:
    """Parse a schema for reading values, wrapped in a record, which adds no byte; once in each process.

    With `objects` times, dates and UUIDs become Python's; else they stay the numbers and texts that Arrow converts.

    The library caches a parsed record only; it would parse any other outermost schema again for every value.
    Raises ValueError for one with a hazard.
    """
    if found := hazard(expanded(json.loads(text))):
        raise ValueError(found)
    field = {"name": VALUE, "type": without_hazards(json.loads(text), objects=objects)}
    return avro_library().parse_schema({"type": "record", "name": "Outermost", "fields": [field]})


@functools.lru_cache(maxsize=256)
def strict(text: str, *, objects: bool = False) -> Any:
    """Parse a writer's schema so that a negative branch or symbol in the bytes is an error.

    The library counts a negative number from the end, as Python does, and would read damaged bytes as a good value.
    """
    return counted_from_zero(readable.__wrapped__(text, objects=objects))


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


def without_hazards(schema: Any, *, objects: bool) -> Any:
    """Let decimals be read by `decimal_of`; without `objects` remove all other logical types.

    An error is a record: of a union the library names the one and not the other.
    """
    if isinstance(schema, list):
        return [without_hazards(branch, objects=objects) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {name: value for name, value in schema.items() if objects or name != "logicalType"}
    if schema.get("logicalType") == "decimal":
        plain["logicalType"] = DECIMAL
    for part in ("type", "items", "values"):
        if part in plain:
            plain[part] = without_hazards(plain[part], objects=objects)
    if "fields" in plain:
        plain["type"] = "record"
        plain["fields"] = [without_hazards(field, objects=objects) for field in plain["fields"]]
    return plain


def taken_fields(writer: Any, reader: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each field of the writer's record with the reader's field that the library reads it into, None without one.

    It goes by names before aliases, and a field of the reader whose name has been taken does not take it again.
    """
    left = {field["name"]: field for field in reader["fields"]}
    by_alias = {alias: field for field in reader["fields"] for alias in field.get("aliases", ())}
    for field in writer["fields"]:
        taker = left.get(field["name"]) or by_alias.get(field["name"])
        if taker is not None:
            left.pop(taker["name"], None)
        yield field, taker


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
    """Return the number written with this schema. Raises BadValueError if it has more digits than the schema allows.

    The library's own function takes quadratic time, and rounds a number with too many digits.
    """
    unscaled = int.from_bytes(data, "big", signed=True)
    scale = writer.get("scale", 0)
    if unscaled.bit_length() > MOST_BITS or len(str(abs(unscaled))) > writer["precision"]:
        raise BadValueError("a decimal in it has more digits than its schema allows")
    if not 0 <= scale <= MOST_DIGITS:
        raise BadValueError(f"a decimal in it has a scale beyond {MOST_DIGITS:,}")
    return Decimal(unscaled).scaleb(-scale, EXACT)


def hazard(schema: Any) -> str | None:
    """Return why a few bytes of an expanded schema could loop forever or overflow the stack, None if they cannot."""
    if isinstance(schema, list):
        return next((found for branch in schema if (found := hazard(branch))), None)
    if isinstance(schema, str):
        return None if schema in PRIMITIVE_TYPES or schema == "null" else f"it has {schema} inside itself"
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


LEAF: Final = _Size(1, 1)


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
