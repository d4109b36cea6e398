"""A Protobuf message type as Arrow columns.

Each field has a function, built once, that takes the field out of all messages of a batch:

    bool, double, float, bytes, string      the same          repeated           array, empty where there is none
    int32, sint32, sfixed32                 int               map                map, in the order of its keys
    int64, …; uint32, fixed32               bigint            enum               string: the name, or an unknown number
    uint64, fixed64                         decimal(20,0)     Timestamp          timestamp
    message, group                          struct

A field is null where the message records that it was not set (optional, a member of a oneof, a message), unless the
schema has a default for it; other fields have protobuf's own default, a zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, chain
from operator import attrgetter, itemgetter
from typing import Any, Final, TypeAlias

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from kclient.deserializers.protobuf import protobuf_library
from kclient.errors import ConfigError
from kclient.spark.decoding.ddl import TIMESTAMP, list_of, map_of, refuse_type
from kclient.spark.decoding.formats import ConversionError

MAX_COLUMNS: Final = 5_000
MAX_DEPTH: Final = 50
UINT64: Final = pa.decimal128(20, 0)
FIRST_SECOND: Final = -62_135_596_800
LAST_SECOND: Final = 253_402_300_799
LAST_NANO: Final = 999_999_999
"""The years 1 to 9999, the range of a Timestamp."""

NO_TEXT_IN_IT: Final = "a string in it is not UTF-8"

Build: TypeAlias = Callable[[list[Any]], pa.Array]


@attrs.frozen
class MessageColumn:
    """A type, and the function that builds an array of it; None among its values becomes null."""

    type: pa.DataType
    build: Build


class MessageColumns:
    """Turns the messages of one schema into columns."""

    def __init__(self, option: str) -> None:
        library = protobuf_library()
        field = library.descriptor.FieldDescriptor
        self._option = option
        self._library = library
        self._left = MAX_COLUMNS
        self.requires: bool = False
        """Whether any of the messages has fields that must be set, as those of proto2 may."""
        self._message, self._enum = (field.TYPE_MESSAGE, field.TYPE_GROUP), field.TYPE_ENUM
        self._arrow = {getattr(field, f"TYPE_{name}"): kind for name, kind in SCALARS.items()}

    def message(self, message: Any, path: str = "", around: tuple[str, ...] = ()) -> MessageColumn:
        """Return the column of a message type. Raises ConfigError with the field that has no Spark type."""
        if message.full_name == "google.protobuf.Timestamp":
            return MessageColumn(TIMESTAMP, _timestamps)
        if message.full_name in around:
            refuse_type(self._option, path, f"is {message.full_name} inside itself")
        if len(around) >= MAX_DEPTH:
            refuse_type(self._option, path, f"is inside of {MAX_DEPTH} messages")
        if not message.fields:
            refuse_type(self._option, path, f"is {message.full_name}, a message without fields")
        around = (*around, message.full_name)
        made = {
            field.name: self._field(field, f"{path}.{field.name}".lstrip("."), around)
            for field in message.fields
        }
        kind = pa.struct([pa.field(name, column.type) for name, column in made.items()])
        empty = self._library.message_factory.GetMessageClass(message)()
        self.requires |= not empty.IsInitialized()
        return MessageColumn(kind, _structs(kind, [column.build for column in made.values()], empty))

    def _field(self, field: Any, path: str, around: tuple[str, ...]) -> MessageColumn:
        """Return the column of one field."""
        if isinstance(field.default_value, list):  # only a repeated field has such a default
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                return self._map(field, path, around)
            item = self._item(field, f"{path}[]", around)
            return MessageColumn(list_of(item.type), _lists(field.name, item))
        item = self._item(field, path, around)
        unset_is_null = field.has_presence and not field.has_default_value
        return MessageColumn(item.type, (_optional if unset_is_null else _plain)(field.name, item.build))

    def _map(self, field: Any, path: str, around: tuple[str, ...]) -> MessageColumn:
        key, value = (
            self._item(field.message_type.fields_by_name[name], f"{path}{{}}", around)
            for name in ("key", "value")
        )
        return MessageColumn(map_of(key.type, value.type), _maps(field.name, key, value))

    def _item(self, field: Any, path: str, around: tuple[str, ...]) -> MessageColumn:
        """Return the builder of an array of the field's values."""
        self._left -= 1
        if self._left < 0:
            raise ConfigError(
                f"{self._option} makes more than {MAX_COLUMNS} columns. Give a schema with less in it."
            )
        if field.type in self._message:
            return self.message(field.message_type, path, around)
        if field.type == self._enum:
            return MessageColumn(pa.string(), _enums(field.enum_type))
        kind = self._arrow[field.type]
        return MessageColumn(kind, _decimals if kind == UINT64 else lambda values: pa.array(values, kind))


SCALARS: Final = {
    "BOOL": pa.bool_(),
    "DOUBLE": pa.float64(),
    "FLOAT": pa.float32(),
    "BYTES": pa.binary(),
    "STRING": pa.string(),
    **dict.fromkeys(("INT32", "SINT32", "SFIXED32"), pa.int32()),
    **dict.fromkeys(("INT64", "SINT64", "SFIXED64", "UINT32", "FIXED32"), pa.int64()),
    **dict.fromkeys(("UINT64", "FIXED64"), UINT64),
}


def _plain(name: str, build: Build) -> Build:
    get = attrgetter(name)
    return lambda messages: build(list(map(get, messages)))


def _optional(name: str, build: Build) -> Build:
    get = attrgetter(name)
    return lambda messages: build([get(each) if each.HasField(name) else None for each in messages])


def _lists(name: str, item: MessageColumn) -> Build:
    get, kind = attrgetter(name), list_of(item.type)

    def build(messages: list[Any]) -> pa.Array:
        lists = list(map(get, messages))
        values = item.build(list(chain.from_iterable(lists)))
        return pa.ListArray.from_arrays(_offsets(lists), values, type=kind)

    return build


def _maps(name: str, key: MessageColumn, value: MessageColumn) -> Build:
    get, kind = attrgetter(name), map_of(key.type, value.type)

    def build(messages: list[Any]) -> pa.Array:
        maps = [_in_order(get(each)) for each in messages]
        pairs = list(chain.from_iterable(maps))
        keys, values = (part.build([pair[n] for pair in pairs]) for n, part in enumerate((key, value)))
        return pa.MapArray.from_arrays(_offsets(maps), keys, values, type=kind)

    return build


def _in_order(entries: Any) -> list[tuple[Any, Any]]:
    try:
        return sorted(entries.items(), key=itemgetter(0))
    except TypeError:  # proto2 returns a key that is not UTF-8 as bytes
        raise ConversionError(NO_TEXT_IN_IT) from None


def _offsets(lists: Sequence[Sequence[Any]]) -> pa.Array:
    return pa.array(accumulate(map(len, lists), initial=0), pa.int32())


def _structs(kind: pa.StructType, builds: Sequence[Build], empty: Any) -> Build:
    fields = list(kind)

    def build(messages: list[Any]) -> pa.Array:
        absent = pa.array([each is None for each in messages], pa.bool_())
        filled = [empty if each is None else each for each in messages]
        return pa.StructArray.from_arrays([build(filled) for build in builds], fields=fields, mask=absent)

    return build


def _enums(enum: Any) -> Build:
    names: dict[int | None, str | None] = {None: None}
    for value in enum.values:
        names.setdefault(value.number, value.name)

    def build(numbers: list[Any]) -> pa.Array:
        return pa.array([names[each] if each in names else str(each) for each in numbers], pa.string())

    return build


def _decimals(values: list[Any]) -> pa.Array:
    return pa.array(values, pa.uint64()).cast(UINT64)


def _timestamps(values: list[Any]) -> pa.Array:
    seconds = pa.array([None if each is None else each.seconds for each in values], pa.int64())
    nanos = pa.array([None if each is None else each.nanos for each in values], pa.int64())
    if not (_within(seconds, FIRST_SECOND, LAST_SECOND) and _within(nanos, 0, LAST_NANO)):
        raise ConversionError("a Timestamp in it is none of the years 1 to 9999")
    return pc.add(pc.multiply(seconds, 1_000_000), pc.divide(nanos, 1000)).cast(TIMESTAMP)


def _within(numbers: pa.Array, lowest: int, highest: int) -> bool:
    found = pc.min_max(numbers).as_py()
    return found["min"] is None or (found["min"] >= lowest and found["max"] <= highest)
