"""How many elements a protobuf message holds, counted in its bytes before it becomes objects.

    0A 00  0A 00  0A 00     two bytes each are a message in a repeated field, with all columns that it has

Only messages and repeated fields are looked at; fields that the schema lacks make nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from kclient.spark.decoding.elements import Meter

VARINT, FIXED64, LENGTH, GROUP, GROUP_END, FIXED32 = range(6)
PACKED: Final = {"DOUBLE": 8, "FIXED64": 8, "SFIXED64": 8, "FLOAT": 4, "FIXED32": 4, "SFIXED32": 4, "BOOL": 1}
NO_NUMBER: Final = bytes(range(0x80, 0x100))  # of varints, all bytes but the last
SHORTEST_MESSAGE: Final = 2


@attrs.frozen
class Damaged(Exception):
    """The bytes are no message."""


@attrs.frozen
class Part:
    """A field that makes elements: `elements` for each value; what is inside of a message; the bytes of a number."""

    elements: int
    message: Mapping[int, Part] | None = None
    bytes: int | None = None
    is_text: bool = False


def parts_of(library: Any, message: Any) -> Mapping[int, Part]:
    """The fields of a message type by number. The type has passed the checks of columns: it ends."""
    field_type = library.descriptor.FieldDescriptor
    found = {field.number: _part(library, field_type, field) for field in message.fields}
    return {number: part for number, part in found.items() if part is not None}


def _part(library: Any, types: Any, field: Any) -> Part | None:
    if field.type in (types.TYPE_MESSAGE, types.TYPE_GROUP):
        return Part(_size(types, field.message_type), parts_of(library, field.message_type))
    if not isinstance(field.default_value, list):
        return None
    for name, size in PACKED.items():
        if field.type == getattr(types, f"TYPE_{name}"):
            return Part(1, bytes=size)
    return Part(1, is_text=field.type in (types.TYPE_STRING, types.TYPE_BYTES))


def _size(types: Any, message: Any) -> int:
    """How many elements one message is, without what repeated fields hold."""
    return 1 + sum(
        _size(types, field.message_type)
        if field.type in (types.TYPE_MESSAGE, types.TYPE_GROUP) and not isinstance(field.default_value, list)
        else 1
        for field in message.fields
    )


def per_byte(parts: Mapping[int, Part]) -> float:
    """How many elements a byte may make."""
    return max(
        (
            max(part.elements / SHORTEST_MESSAGE, per_byte(part.message)) if part.message is not None else 1.0
            for part in parts.values()
        ),
        default=0.0,
    )


def walk(data: bytes, at: int, end: int, parts: Mapping[int, Part], meter: Meter) -> int:
    """From where a message begins to its end, or to the end of its group. Raises TooManyElements, Damaged."""
    while at < end:
        tag, at = _varint(data, at)
        part, kind = parts.get(tag >> 3), tag & 7
        if kind == GROUP_END:
            return at
        if kind == LENGTH:
            size, at = _varint(data, at)
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
            at = _varint(data, at)[1] if kind == VARINT else at + _width(kind)
    return at


def _take(data: bytes, at: int, end: int, part: Part, meter: Meter) -> None:
    """A field with a length: a message, a text, or packed numbers."""
    if part.message is not None:
        meter.take(part.elements)
        walk(data, at, end, part.message, meter)
    elif part.is_text:
        meter.take(1)
    elif part.bytes is not None:
        meter.take((end - at) // part.bytes)
    else:
        meter.take(len(data[at:end].translate(None, NO_NUMBER)))


def _width(kind: int) -> int:
    if kind == FIXED64:
        return 8
    if kind == FIXED32:
        return 4
    raise Damaged


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number, shift = 0, 0
    try:
        while (byte := data[at]) >= 0x80:
            number |= (byte & 0x7F) << shift
            shift += 7
            at += 1
            if shift > 63:
                raise Damaged
    except IndexError:
        raise Damaged from None
    return number | byte << shift, at + 1
