"""Values in Avro's binary encoding, read with the schema of their writer and resolved to that of the reader.

Every byte must be read: a value with bytes left over was written with another schema.

Elements are counted with the writer's schema before a value becomes Python objects. A value is walked only where its
length allows too many elements, or where the reader would skip an enum: fastavro does not check the number of a skipped
enum.
"""

from __future__ import annotations

import functools
import io
import json
import struct
from collections.abc import Callable
from decimal import DecimalException
from typing import Any, Final, TypeAlias

import attrs

from kclient.deserializers.avro_schema import (
    VALUE,
    avro_library,
    expanded,
    parts_of,
    readable,
    schema_errors,
    strict,
    taken_fields,
)
from kclient.deserializers.elements import BadValueError, ElementBudget, TooManyElements, reason_of, too_many

DAMAGE: Final = (
    EOFError, IndexError, KeyError, ValueError, TypeError, OverflowError, struct.error, MemoryError,
    RecursionError, DecimalException,
)  # fmt: skip
"""What reading foreign bytes raises."""
FAULTS: Final[tuple[tuple[tuple[type[Exception], ...], str], ...]] = (
    ((UnicodeDecodeError,), ": a text in it is not UTF-8"),
    ((EOFError, IndexError), ": it ends too early, or has a branch or symbol that its schema lacks"),
    (
        (KeyError,),
        ": it has a branch or symbol that its schema lacks, or two fields for one of the reader schema",
    ),
)


@attrs.frozen
class AvroReader:
    """Reads values of one writer schema, and knows how many elements such a value may hold."""

    read: Callable[[io.BytesIO], Any]
    elements: AvroElements

    @classmethod
    def of(
        cls, written: str, wanted: str | None, *, objects: bool = False, names: bool = False
    ) -> AvroReader:
        """Return the reader of values of the schema `written`, resolved to `wanted` (None: as they were written).

        With `names` a record in a union is a tuple of its name and itself. Raises BadValueError for a schema that
        cannot be used.
        """
        library = avro_library()
        read, unresolved = library.schemaless_reader, library.read.SchemaResolutionError
        read = functools.partial(read, return_record_name=True) if names else read
        try:
            writer = strict(written, objects=objects)
        except schema_errors() as exc:
            raise BadValueError(f"the schema of its writer cannot be used: {reason_of(exc)}") from None
        same = wanted is None or written == wanted
        reader = None if wanted is None or same else readable(wanted, objects=objects)

        def reading(stream: io.BytesIO) -> Any:
            try:
                return read(stream, writer, reader)[VALUE]
            except unresolved as exc:
                raise BadValueError("its schema and the reader schema do not agree") from exc

        return cls(reading, elements_of(written, None if same else wanted))

    def value(self, data: bytes, start: int, limit: int, option: str) -> Any:
        """Return the value that begins at `start`. Raises BadValueError; `option` names what sets the limit."""
        stream = io.BytesIO(data)
        stream.seek(start)
        try:
            self.elements.check(data, start, limit)
            made = self.read(stream)
        except TooManyElements:
            raise BadValueError(too_many(limit, option)) from None
        except BadValueError:
            raise
        except DAMAGE as exc:
            why = next((text for kinds, text in FAULTS if isinstance(exc, kinds)), "")
            raise BadValueError(f"it does not follow its schema{why}") from exc
        if left := len(data) - stream.tell():
            raise BadValueError(f"{left} bytes are left after it")
        return made


# --- counting elements -----------------------------------------------------------------------------------------------


FIXED: Final = {"null": 0, "boolean": 1, "float": 4, "double": 8}


Walk: TypeAlias = Callable[[bytes, int, ElementBudget], int]
"""From where a value begins to where it ends. Raises TooManyElements, and IndexError or ValueError for damage."""


@attrs.frozen
class AvroElements:
    """Counts the elements of values of one writer schema, as one reader schema resolves them.

    `per_byte` is how many elements a byte may make, 0 where there are no arrays and maps. `walk` skips a value.
    """

    per_byte: float
    leaves_out_enum: bool
    walk: Walk

    @classmethod
    def of(cls, writer: Any, reader: Any | None) -> AvroElements:
        """Expand both schemas; without a reader it is the writer's."""
        added = 0 if reader is None else _added(reader)
        leaves_out = reader is not None and _leaves_out_enum(writer, reader)
        return cls(_per_byte(writer, added), leaves_out, _walk_of(writer, added))

    def check(self, data: bytes, start: int, limit: int) -> None:
        """Raise TooManyElements for a value above `limit`, IndexError or ValueError if it is damaged.

        A value too short to exceed the limit is not walked.
        """
        if self.leaves_out_enum or (len(data) - start) * self.per_byte > limit:
            self.walk(data, start, ElementBudget(limit))


@functools.lru_cache(maxsize=256)
def elements_of(written: str, reader: str | None) -> AvroElements:
    """Return the element counter for the text of a writer's schema; `reader` None means the same schema.

    Both have passed `readable`.
    """
    return AvroElements.of(
        expanded(json.loads(written)), None if reader is None else expanded(json.loads(reader))
    )


def _size(schema: Any) -> int:
    """Return how many elements one value has, without the items of arrays and maps."""
    kind = _kind(schema)
    if kind == "union":
        return max(map(_size, schema), default=1)
    if kind == "record":
        return 1 + sum(_size(field["type"]) for field in schema["fields"])
    return 1


def _kind(schema: Any) -> str:
    if isinstance(schema, list):
        return "union"
    kind = str(schema if isinstance(schema, str) else schema["type"])
    return "record" if kind == "error" else kind


def _least_bytes(schema: Any) -> int:
    kind = _kind(schema)
    if kind == "union":
        return 1 + min(map(_least_bytes, schema), default=0)
    if kind == "record":
        return sum(_least_bytes(field["type"]) for field in schema["fields"])
    if kind == "fixed":
        return int(schema["size"])
    return FIXED.get(kind, 1)


def _per_byte(schema: Any, added: int) -> float:
    inner = [] if isinstance(schema, str) else parts_of(schema)
    most = max((_per_byte(part, added) for part in inner), default=0.0)
    kind = _kind(schema)
    if kind == "array":
        most = max(most, (_size(schema["items"]) + added) / max(1, _least_bytes(schema["items"])))
    if kind == "map":
        most = max(most, (1 + _size(schema["values"]) + added) / (1 + _least_bytes(schema["values"])))
    return most


def _added(reader: Any) -> int:
    """Return how many elements a reader adds at most to an item of an array: the fields that have defaults."""
    found, waiting = 0, [(reader, False)]
    while waiting:
        schema, in_item = waiting.pop()
        if isinstance(schema, str):
            continue
        kind = _kind(schema)
        if in_item and kind == "record":
            found += sum(_default_size(field) for field in schema["fields"] if "default" in field)
        waiting += [(part, in_item or kind in ("array", "map")) for part in parts_of(schema)]
    return found


def _default_size(field: Any) -> int:
    return _size(field["type"]) + len(repr(field["default"])) // 8


def _leaves_out_enum(writer: Any, reader: Any) -> bool:
    """Return whether the writer has an enum in a part that the reader skips."""
    if not _has_enum(writer):
        return False
    if isinstance(writer, list):
        return any(_leaves_out_enum(branch, reader) for branch in writer)
    if isinstance(reader, list):
        return all(_leaves_out_enum(writer, branch) for branch in reader if _kind(branch) == _kind(writer))
    kind = _kind(writer)
    if kind != _kind(reader) or kind == "enum":
        return False
    if kind == "record":
        return any(
            _has_enum(field["type"]) if taker is None else _leaves_out_enum(field["type"], taker["type"])
            for field, taker in taken_fields(writer, reader)
        )
    part = {"array": "items", "map": "values"}.get(kind)
    return part is not None and _leaves_out_enum(writer[part], reader[part])


def _has_enum(schema: Any) -> bool:
    if _kind(schema) == "enum":
        return True
    return not isinstance(schema, str) and any(map(_has_enum, parts_of(schema)))


def _walk_of(schema: Any, added: int) -> Walk:
    kind = _kind(schema)
    match kind:
        case "union":
            return _choice([_walk_of(branch, added) for branch in schema])
        case "record":
            return _record([_walk_of(field["type"], added) for field in schema["fields"]])
        case "array":
            items = schema["items"]
            return _blocks(_walk_of(items, added), _size(items) + added, FIXED.get(_kind(items)))
        case "map":
            entry = _record([_bytes, _walk_of(schema["values"], added)])
            return _blocks(entry, 1 + _size(schema["values"]) + added, None)
        case "enum":
            return _choice([_nothing] * len(schema["symbols"]))
        case "fixed":
            return _skip(int(schema["size"]))
        case "bytes" | "string":
            return _bytes
        case "int" | "long":
            return _number
    return _skip(FIXED[kind])


def _skip(size: int) -> Walk:
    return lambda _data, at, _meter: at + size


def _nothing(_data: bytes, at: int, _meter: ElementBudget) -> int:
    return at


def _number(data: bytes, at: int, _meter: ElementBudget) -> int:
    while data[at] >= 0x80:
        at += 1
    return at + 1


def _read(data: bytes, at: int) -> tuple[int, int]:
    """Return a zigzag number, and where it ends."""
    value, shift = 0, 0
    while (byte := data[at]) >= 0x80:
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if shift > 63:
            raise ValueError("a number of more than 64 bits")
    value |= byte << shift
    return (value >> 1) ^ -(value & 1), at + 1


def _bytes(data: bytes, at: int, _meter: ElementBudget) -> int:
    size, at = _read(data, at)
    if not 0 <= size <= len(data) - at:
        raise ValueError("text beyond the end")
    return at + size


def _choice(branches: list[Walk]) -> Walk:
    def walk(data: bytes, at: int, meter: ElementBudget) -> int:
        index, at = _read(data, at)
        if index < 0:
            raise IndexError("a branch or symbol below zero")
        return branches[index](data, at, meter)

    return walk


def _record(fields: list[Walk]) -> Walk:
    def walk(data: bytes, at: int, meter: ElementBudget) -> int:
        for field in fields:
            at = field(data, at, meter)
        return at

    return walk


def _blocks(item: Walk, elements: int, size: int | None) -> Walk:
    """Return a walk over an array or map: blocks of items, each of `elements` elements and `size` bytes if known."""

    def walk(data: bytes, at: int, meter: ElementBudget) -> int:
        while True:
            count, at = _read(data, at)
            if count == 0:
                return at
            if count < 0:  # followed by the bytes of the block
                count, at = -count, _read(data, at)[1]
            meter.take(count * elements)
            if size is not None:
                at += count * size
                continue
            for _ in range(count):
                at = item(data, at, meter)

    return walk
