"""The fields of Protobuf messages that the schema does not name, as JSON text.

A message has the numbers of its fields and no names. So the text of a new field is base64 of all its bytes, with the
tags, under its number. These bytes are a message themselves, which a newer schema reads:

    {"9":"SgJDMQ=="}     Leg.FromString(b64decode("SgJDMQ==")) is Leg(gate="C1"), if gate is field 9 of the newer Leg

With a registry the message of the writer (`protobuf_writers.py`) names the field: `{"gate":"C1"}`, in protobuf's JSON
mapping. Where that does not say all of a field, or makes too much of it, the field has its number and bytes. A message
may also carry fields that its writer did not know, so its id does not say whether it has new ones.

Messages in fields, arrays and maps are searched: `{"legs":[null,{"9":"SgJDMQ=="}]}` is the gate of the second leg. Also
new are a value that the schema's enum does not have (of a closed enum, as in proto2) and one that is written as another
kind than the schema says: protobuf keeps both with the unknown fields. Extensions are new fields too.
"""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

import attrs

from kclient.deserializers.elements import MAX_ELEMENTS, ElementBudget, TooManyElements
from kclient.deserializers.protobuf import MessageSchema, protobuf_library
from kclient.spark.decoding.formats import most_characters
from kclient.spark.decoding.protobuf_wire import by_number

UNSAID: Final = ("google.protobuf.Any", "google.protobuf.FieldMask")
"""Of an Any the text would depend on which types the process has imported; of a path with a comma it makes two."""
KEY: Final = "key"
VALUE: Final = "value"
"""The field of a map's entry that may be a message."""
SIGNS: Final = 4
"""Quotes, colon and comma beside a name or value."""
NUMBER: Final = 22


def without_extensions(schema: MessageSchema) -> MessageSchema:
    """Return the schema without the extensions in its files: their values would not be unknown, and have no column."""
    parse = protobuf_library().descriptor_pb2.FileDescriptorProto.FromString
    files = (_plain(parse(file)).SerializeToString() for file in schema.files)
    return attrs.evolve(schema, files=tuple(files))


def _plain(file: Any) -> Any:
    waiting = [file]
    while waiting:
        node = waiting.pop()
        del node.extension[:]
        waiting += node.message_type if node is file else node.nested_type
    return file


@functools.lru_cache(maxsize=256)
def with_new_fields(descriptor: Any) -> Callable[[Sequence[Any]], list[int]]:
    """Return what finds the messages of this type that have new fields, among others and None, by their place.

    It may take the fields away. It looks at many messages in one call: a call costs as much as to look at a small one.
    """
    from google.protobuf.unknown_fields import UnknownFieldSet

    def outermost(messages: Sequence[Any]) -> list[int]:
        return [row for row, each in enumerate(messages) if each is not None and len(UnknownFieldSet(each))]

    def at_any_depth(messages: Sequence[Any]) -> list[int]:
        there = [(row, each, each.ByteSize()) for row, each in enumerate(messages) if each is not None]
        for _, each, _ in there:
            each.DiscardUnknownFields()
        return [row for row, each, size in there if each.ByteSize() < size]

    flat = all(field.message_type is None for field in descriptor.fields)
    return outermost if flat else at_any_depth


@attrs.frozen
class _Room:
    """What the named fields of one value may still take. One that would take more has number and bytes."""

    elements: ElementBudget
    characters: ElementBudget

    def take(self, elements: int, characters: int) -> None:
        """Raise TooManyElements."""
        self.elements.take(elements)
        self.characters.take(characters)


def new_fields_of(message: Any, writer: Any = None, max_elements: int = MAX_ELEMENTS) -> str:
    """Return the new fields of a message that has some. Takes the message apart.

    `writer` is the descriptor of the message as its writer has it, None if that is not known.
    """
    room = _Room(ElementBudget(max_elements), ElementBudget(most_characters(message.ByteSize())))
    return json.dumps(_found(message, writer, room), ensure_ascii=False, separators=(",", ":"))


def _found(message: Any, writer: Any, room: _Room) -> dict[str, Any]:
    """Return the new fields by name or number, and those inside of other fields by name."""
    fields = message.ListFields()
    inner = {
        field.name: _inside(field, value, _field(writer, field.number), room)
        for field, value in fields
        if field.message_type is not None
    }
    for field, _ in fields:
        message.ClearField(field.name)
    own = by_number(message.SerializePartialToString())
    known = message.DESCRIPTOR.fields_by_name
    texts = dict(_named(writer, number, data, known, room) for number, data in own.items())
    return texts | {name: found for name, found in inner.items() if found}


def _field(message: Any, number: int) -> Any:
    return None if message is None else message.fields_by_number.get(number)


def _inside(field: Any, value: Any, written: Any, room: _Room) -> Any:
    """Return the new fields in the value of a field with messages, nothing (empty, None) without any."""
    writer = None if written is None else written.message_type
    if field.message_type.GetOptions().map_entry:
        each_value = field.message_type.fields_by_name[VALUE]
        if each_value.message_type is None:
            return None
        entry = _field(writer, each_value.number)
        writer = None if entry is None else entry.message_type
        return {_key(key): found for key, each in value.items() if (found := _found(each, writer, room))}
    if not isinstance(field.default_value, list):
        return _found(value, writer, room)
    items = [_found(each, writer, room) or None for each in value]
    return items if any(items) else None


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _named(writer: Any, number: int, data: bytes, known: Collection[str], room: _Room) -> tuple[str, Any]:
    """Return the name and value of a new field, or number and bytes where a name would not say all of it."""
    field = _field(writer, number)
    if field is not None and field.name not in known and _is_said(field.message_type):
        value = _as_json(writer, data, room).get(field.name)
        if value is not None:
            return field.name, value
    return str(number), base64.b64encode(data).decode()


@functools.lru_cache(maxsize=256)
def _is_said(kind: Any) -> bool:
    """Return whether the JSON mapping says all of a message of this type; None for a field without messages."""
    waiting, seen = [] if kind is None else [kind], set[str]()
    while waiting:
        each = waiting.pop()
        if each.full_name in UNSAID or each.is_extendable:
            return False
        if each.full_name not in seen:
            seen.add(each.full_name)
            waiting += [field.message_type for field in each.fields if field.message_type is not None]
    return True


class _NoText(Exception):
    """Raised for a string of proto2 that is not UTF-8: the mapping would write Python's form of bytes."""


def _as_json(writer: Any, data: bytes, room: _Room) -> dict[str, Any]:
    """Return a message in protobuf's JSON mapping; nothing if that is too large, or does not say all of it.

    The mapping leaves out what the writer does not name either.
    """
    from google.protobuf import json_format

    library = protobuf_library()
    try:
        message = library.message_factory.GetMessageClass(writer).FromString(data)
        room.take(*_size(message))
        found: dict[str, Any] = json_format.MessageToDict(message, preserving_proto_field_name=True)
    except (library.message.DecodeError, json_format.Error, TypeError, ValueError, RecursionError):
        return {}  # such as a time that has no text
    except (TooManyElements, _NoText):
        return {}
    return {} if with_new_fields(writer)([message]) else found


def _size(message: Any) -> tuple[int, int]:
    """Return the elements of a message, and about how many characters it has in JSON. Raises _NoText."""
    fields = message.ListFields()
    names = sum(len(field.name) + SIGNS for field, _ in fields)
    return _sum([(1, SIGNS + names), *(_size_of(field, value) for field, value in fields)])


def _size_of(field: Any, value: Any) -> tuple[int, int]:
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        key, inner = kind.fields_by_name[KEY], kind.fields_by_name[VALUE]
        return _sum(size for pair in value.items() for size in map(_size_of, (key, inner), pair))
    values = value if isinstance(field.default_value, list) else [value]
    if kind is not None:
        return _sum(map(_size, values))
    if field.type in (field.TYPE_STRING, field.TYPE_BYTES):
        return len(values), sum(_length(field, each) for each in values)
    return len(values), len(values) * (_longest(field.enum_type) + SIGNS)


def _sum(sizes: Iterable[tuple[int, int]]) -> tuple[int, int]:
    elements, characters = 0, 0
    for more, longer in sizes:
        elements, characters = elements + more, characters + longer
    return elements, characters


def _length(field: Any, value: str | bytes) -> int:
    if field.type == field.TYPE_STRING and isinstance(value, bytes):
        raise _NoText
    return len(value) + SIGNS


@functools.lru_cache(maxsize=256)
def _longest(enum: Any) -> int:
    """Return the characters of an enum's longest name, or of any number."""
    return NUMBER if enum is None else max(len(value.name) for value in enum.values)
