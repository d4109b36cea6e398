"""Format `protobuf`: one message, alone or in the registry's frame.

    frame     0 | schema id, int32 | where the message stands in its schema, as zigzag varints: a count and that many
              indexes, or a single 0 for the first message | the message

The message takes all remaining bytes. Fields that the schema lacks are ignored, as protobuf intends, or returned as
text (`protobuf_new_fields.py`).

Elements are counted in the bytes before a message becomes Python objects. Only messages and repeated fields count:

    0A 00  0A 00  0A 00     two bytes each are a message in a repeated field, with all columns that it has
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import pyarrow as pa

from kclient.deserializers.elements import (
    MAX_ELEMENTS,
    BadValueError,
    ElementBudget,
    TooManyElements,
    too_many,
)
from kclient.deserializers.frame import schema_id_of
from kclient.deserializers.protobuf import MessageSchema, protobuf_library
from kclient.network.schema_registry import SchemaRegistry
from kclient.spark.decoding.formats import (
    ELEMENTS_OPTION,
    MAX_OBJECTS,
    BadValue,
    ConversionError,
    Decoded,
    decode_apart,
    joined,
    of_good,
)
from kclient.spark.decoding.protobuf_new_fields import new_fields_of, with_new_fields, without_extensions
from kclient.spark.decoding.protobuf_schema import NO_TEXT_IN_IT, MessageColumn, MessageColumns
from kclient.spark.decoding.protobuf_wire import GROUP, GROUP_END, LENGTH, VARINT, Damaged, varint, width
from kclient.spark.decoding.protobuf_writers import Writers


@attrs.frozen
class ProtobufFormat:
    """Keys or values that are messages of one type."""

    given: MessageSchema
    type: pa.DataType
    name: str = "protobuf"
    max_elements: int = MAX_ELEMENTS
    registry: SchemaRegistry | None = None

    @classmethod
    def of(
        cls,
        given: MessageSchema,
        max_elements: int = MAX_ELEMENTS,
        registry: SchemaRegistry | None = None,
    ) -> ProtobufFormat:
        """Build the format; `registry` names new fields. Raises ConfigError with the field that has no Spark type."""
        return cls(given, _reader(given).column.type, max_elements=max_elements, registry=registry)

    def decode(self, values: pa.Array, *, new_fields: bool = False) -> Decoded:
        """Decode the messages, field by field."""
        reader = _reader(self.given)
        reasons: dict[int, str] = {}
        new: dict[int, str] = {}
        pieces = self._messages(values, reader, reasons)
        pieces = self._looked_through(pieces, values, reader, new) if new_fields else pieces
        decoded = joined(decode_apart(messages, reader.build, self.type) for messages in pieces)
        reasons |= {row: bad.reason for row, bad in decoded.bad.items()}
        bad = {row: self._bad(reasons[row], values[row].as_py()) for row in reasons}
        return Decoded(decoded.array, bad, of_good(new, bad))

    def _messages(self, values: pa.Array, reader: _Reader, reasons: dict[int, str]) -> Iterator[list[Any]]:
        """Yield messages in lists of at most as many as may be objects at once, None for bad ones; add to `reasons`."""
        messages: list[Any] = []
        objects = 0.0
        for row, data in enumerate(values.to_pylist()):
            try:
                message = None if data is None else self._message(reader, self._message_in(data))
            except ConversionError as exc:
                message, reasons[row] = None, str(exc)
            messages.append(message)
            objects += len(data or b"") * reader.per_byte
            if objects > MAX_OBJECTS:
                yield messages
                messages, objects = [], 0.0
        yield messages

    def _message(self, reader: _Reader, data: bytes) -> Any:
        if len(data) * reader.per_byte > self.max_elements:
            try:
                walk(data, 0, len(data), reader.parts, ElementBudget(self.max_elements))
            except TooManyElements:
                raise ConversionError(too_many(self.max_elements, ELEMENTS_OPTION)) from None
            except (Damaged, RecursionError):
                raise ConversionError(f"it is not a {self.given.message}") from None
        return reader.read(data)

    def _looked_through(
        self, pieces: Iterable[list[Any]], values: pa.Array, reader: _Reader, new: dict[int, str]
    ) -> Iterator[list[Any]]:
        """Yield the messages; add to `new` the new fields of those that have some."""
        start, writers = 0, Writers(self.given, self.registry)
        for messages in pieces:
            for row in reader.with_new(messages):
                data = values[start + row].as_py()
                again = reader.read(self._message_in(data))  # to look for new fields may take them away
                new[start + row] = new_fields_of(again, writers.of(data), self.max_elements)
            start += len(messages)
            yield messages

    def _message_in(self, data: bytes) -> bytes:
        try:
            return self.given.message_in(data)
        except BadValueError as exc:
            raise ConversionError(str(exc)) from None

    def _bad(self, reason: str, data: bytes) -> BadValue:
        return BadValue(reason, None if self.given.ids is None else schema_id_of(data))


@attrs.frozen
class _Reader:
    """The parser of a message type, compiled, and the builder of its columns."""

    column: MessageColumn
    read: Callable[[bytes], Any]
    with_new: Callable[[Sequence[Any]], list[int]]
    parts: Mapping[int, FieldCost]
    per_byte: float

    def build(self, messages: list[Any]) -> pa.Array:
        """Build the column of messages. Raises ConversionError if a value does not fit its column."""
        try:
            return self.column.build(messages)
        except (pa.ArrowInvalid, UnicodeDecodeError):
            raise ConversionError(NO_TEXT_IN_IT) from None


@functools.lru_cache(maxsize=64)
def _reader(given: MessageSchema) -> _Reader:
    """Return the compiled reader; one for each schema in each process."""
    library, descriptor = protobuf_library(), without_extensions(given).descriptor()
    columns = MessageColumns(given.option)
    column = columns.message(descriptor)
    parts = parts_of(library, descriptor)
    read = _parser(library, descriptor, requires=columns.requires)
    return _Reader(column, read, with_new_fields(descriptor), parts, per_byte(parts))


def _parser(library: Any, descriptor: Any, *, requires: bool) -> Callable[[bytes], Any]:
    parse = library.message_factory.GetMessageClass(descriptor).FromString
    damaged = library.message.DecodeError

    def read(data: bytes) -> Any:
        try:
            message = parse(data)
        except damaged:
            raise ConversionError(f"it is not a {descriptor.full_name}") from None
        except UnicodeDecodeError:
            raise ConversionError(NO_TEXT_IN_IT) from None
        if requires and not message.IsInitialized():
            raise ConversionError("it lacks a field that its schema requires")
        return message

    return read


# --- counting elements -----------------------------------------------------------------------------------------------


PACKED: Final = {"DOUBLE": 8, "FIXED64": 8, "SFIXED64": 8, "FLOAT": 4, "FIXED32": 4, "SFIXED32": 4, "BOOL": 1}
NO_NUMBER: Final = bytes(range(0x80, 0x100))  # of varints, all bytes but the last
SHORTEST_MESSAGE: Final = 2


@attrs.frozen
class FieldCost:
    """How a field makes elements: `elements` of each value, the parts of a message, the bytes of a number."""

    elements: int
    message: Mapping[int, FieldCost] | None = None
    bytes: int | None = None
    is_text: bool = False


def parts_of(library: Any, message: Any) -> Mapping[int, FieldCost]:
    """Return the fields of a message type by number. The type is finite: it has passed the checks of columns."""
    field_type = library.descriptor.FieldDescriptor
    found = {field.number: _part(library, field_type, field) for field in message.fields}
    return {number: part for number, part in found.items() if part is not None}


def _part(library: Any, types: Any, field: Any) -> FieldCost | None:
    if field.type in (types.TYPE_MESSAGE, types.TYPE_GROUP):
        return FieldCost(_size(types, field.message_type), parts_of(library, field.message_type))
    if not isinstance(field.default_value, list):
        return None
    for name, size in PACKED.items():
        if field.type == getattr(types, f"TYPE_{name}"):
            return FieldCost(1, bytes=size)
    return FieldCost(1, is_text=field.type in (types.TYPE_STRING, types.TYPE_BYTES))


def _size(types: Any, message: Any) -> int:
    """Return how many elements one message has, without the items of repeated fields."""
    return 1 + sum(
        _size(types, field.message_type)
        if field.type in (types.TYPE_MESSAGE, types.TYPE_GROUP) and not isinstance(field.default_value, list)
        else 1
        for field in message.fields
    )


def per_byte(parts: Mapping[int, FieldCost]) -> float:
    """Return how many elements a byte may make."""
    return max(
        (
            max(part.elements / SHORTEST_MESSAGE, per_byte(part.message)) if part.message is not None else 1.0
            for part in parts.values()
        ),
        default=0.0,
    )


def walk(data: bytes, at: int, end: int, parts: Mapping[int, FieldCost], meter: ElementBudget) -> int:
    """Walk from a message's start to its end, or to the end of its group. Raises TooManyElements, Damaged."""
    while at < end:
        tag, at = varint(data, at)
        part, kind = parts.get(tag >> 3), tag & 7
        if kind == GROUP_END:
            return at
        if kind == LENGTH:
            size, at = varint(data, at)
            if size > end - at:
                raise Damaged
            if part is not None:
                _take(data, at, at + size, part, meter)
            at += size
            continue
        if part is not None:
            meter.take(part.elements)
        if kind == GROUP:
            inner = part.message if part is not None and part.message is not None else {}
            at = walk(data, at, end, inner, meter)
        else:
            at = varint(data, at)[1] if kind == VARINT else at + width(kind)
    return at


def _take(data: bytes, at: int, end: int, part: FieldCost, meter: ElementBudget) -> None:
    """Walk a length-delimited field: a message, a text, or packed numbers."""
    if part.message is not None:
        meter.take(part.elements)
        walk(data, at, end, part.message, meter)
    elif part.is_text:
        meter.take(1)
    elif part.bytes is not None:
        meter.take((end - at) // part.bytes)
    else:
        meter.take(len(data[at:end].translate(None, NO_NUMBER)))
