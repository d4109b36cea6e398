"""The fields of Avro values that the reader's schema does not name, as JSON text.

    writer {a, b, o: {x, y}}     reader {a, o: {x}}     →     {"b":1,"o":{"y":2}}

Both schemas decide once whether values have such fields. If they have, a value is read a second time, with the schema
of its writer alone, and what the reader takes is left out of it. Arrays and maps are searched; an item without new
fields is null:

    "legs": [{"to": "IAH"}, {"to": "ORD", "gate": "C1"}]     →     {"legs":[null,{"gate":"C1"}]}

Values are written as Avro has them without logical types: a date is its number of days. Bytes are base64, a decimal is
a number with all digits, NaN and the infinities are strings.
"""

from __future__ import annotations

import base64
import functools
import json
import math
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, Final, TypeAlias

import attrs

from kclient.deserializers.avro import AvroReader
from kclient.deserializers.avro_schema import expanded, taken_fields
from kclient.deserializers.elements import BadValueError
from kclient.spark.decoding.formats import most_characters

Rest: TypeAlias = Callable[[Any], Any]
"""From a value, read as it was written, to what the reader leaves out of it; None for nothing."""

NOT_KEPT: Final = "the fields that the schema does not name cannot be kept"
WITHOUT_THEM: Final = "With --on-new-field ignore it lands without them"


@attrs.frozen
class AvroNewFields:
    """Takes the new fields out of values of one writer schema."""

    reader: AvroReader
    rest: Rest

    def text(self, data: bytes, start: int, limit: int, option: str) -> str | None:
        """Return the new fields of the value that begins at `start`, None without any.

        Raises BadValueError if they do not follow the schema of the writer: reading the other fields skips them.
        """
        try:
            found = self.rest(self.reader.value(data, start, limit, option))
            return None if found is None else _json(found, most_characters(len(data)))
        except BadValueError as exc:
            raise BadValueError(f"{NOT_KEPT}: {exc}. {WITHOUT_THEM}") from None


@functools.lru_cache(maxsize=256)
def new_fields_of(written: str, wanted: str) -> AvroNewFields | None:
    """Return what reads new fields, None where the reader names every field. Both texts have passed `AvroReader.of`."""
    if written == wanted:
        return None
    rest = _rest(expanded(json.loads(written)), expanded(json.loads(wanted)))
    return None if rest is None else AvroNewFields(AvroReader.of(written, None, names=True), rest)


# --- what the reader leaves out --------------------------------------------------------------------------------------


def _rest(writer: Any, reader: Any) -> Rest | None:
    """Return what takes the new fields out of a value, None if it can have none. Both schemas are expanded."""
    if isinstance(writer, list):
        return _of_union([(branch, _rest(branch, reader)) for branch in writer])
    if isinstance(reader, list):
        reader = next((branch for branch in reader if _resolves(writer, branch)), None)
    if reader is None or not _resolves(writer, reader):
        return None  # such a value cannot be read, or has no fields
    match writer["type"]:
        case "array":
            return _of_items(_rest(writer["items"], reader["items"]))
        case "map":
            return _of_entries(_rest(writer["values"], reader["values"]))
    return _of_record(writer, reader)


def _resolves(writer: Any, reader: Any) -> bool:
    """Return whether the library reads values with fields in them by this branch of the reader."""
    if not (isinstance(writer, dict) and isinstance(reader, dict)):
        return False
    if writer["type"] in ("record", "error") and reader["type"] in ("record", "error"):
        short = _short(writer["name"])
        return short == _short(reader["name"]) or not {short, writer["name"]}.isdisjoint(_aliases(reader))
    return writer["type"] == reader["type"] and writer["type"] in ("array", "map")


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _aliases(schema: Any) -> list[str]:
    return list(schema.get("aliases", ()))


def _of_record(writer: Any, reader: Any) -> Rest | None:
    fields = list(taken_fields(writer, reader))
    new = [field["name"] for field, taker in fields if taker is None]
    inner = [
        (field["name"], rest)
        for field, taker in fields
        if taker is not None and (rest := _rest(field["type"], taker["type"])) is not None
    ]
    if not new and not inner:
        return None

    def rest_of(value: Mapping[str, Any]) -> Any:
        found = {name: value[name] for name in new}
        found |= {name: left for name, rest in inner if (left := rest(value[name])) is not None}
        return found or None

    return rest_of


def _of_items(item: Rest | None) -> Rest | None:
    if item is None:
        return None

    def rest_of(values: list[Any]) -> Any:
        found = [item(value) for value in values]
        return found if any(left is not None for left in found) else None

    return rest_of


def _of_entries(entry: Rest | None) -> Rest | None:
    if entry is None:
        return None

    def rest_of(values: Mapping[str, Any]) -> Any:
        return {key: left for key, value in values.items() if (left := entry(value)) is not None} or None

    return rest_of


WITHOUT_NAME: Final[Mapping[str, type]] = {"array": list, "map": dict}


def _of_union(branches: list[tuple[Any, Rest | None]]) -> Rest | None:
    """Return what looks which branch a value has: a record comes with its name, and a union has one array and map."""
    rests = {
        WITHOUT_NAME.get(branch["type"]) or branch["name"]: rest
        for branch, rest in branches
        if rest is not None
    }
    if not rests:
        return None

    def rest_of(value: Any) -> Any:
        branch, inner = value if type(value) is tuple else (type(value), value)
        rest = rests.get(branch)
        return None if rest is None else rest(inner)

    return rest_of


# --- JSON ------------------------------------------------------------------------------------------------------------


class _JsonText:
    """JSON text that grows to a limit: names and symbols are in the schema, and not in the bytes of the value."""

    def __init__(self, limit: int) -> None:
        self.parts: list[str] = []
        self._limit = self._left = limit

    def add(self, part: str) -> None:
        """Add text. Raises BadValueError beyond the limit."""
        self._left -= len(part)
        if self._left < 0:
            raise BadValueError(f"as JSON they have more than {self._limit:,} characters")
        self.parts.append(part)

    def value(self, value: Any) -> None:
        """Add a value: every digit of a number is kept."""
        match value:
            case tuple():  # a record of a union, with its name
                self.value(value[1])
            case dict():
                self._each("{}", ((f"{_text(key)}:", inner) for key, inner in value.items()))
            case list():
                self._each("[]", (("", inner) for inner in value))
            case _:
                self.add(_scalar(value))

    def _each(self, brackets: str, values: Iterable[tuple[str, Any]]) -> None:
        self.add(brackets[0])
        for number, (label, value) in enumerate(values):
            self.add(f",{label}" if number else label)
            self.value(value)
        self.add(brackets[1])


def _json(value: Any, limit: int) -> str:
    text = _JsonText(limit)
    text.value(value)
    return "".join(text.parts)


def _scalar(value: Any) -> str:
    match value:
        case bytes():
            return _text(base64.b64encode(value).decode())
        case Decimal():
            return str(value)
        case float() if not math.isfinite(value):
            return _text({math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN"))
    return _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
