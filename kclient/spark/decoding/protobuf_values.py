"""Format `protobuf`: one message, alone or in the registry's frame.

    frame     0 | schema id, int32 | where the message stands in its schema, as zigzag varints: a count and so many
              indexes, or a single 0 for the first message | the message

The message is what is left, to its last byte. Fields that the schema lacks are left out, as protobuf means it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import attrs
import pyarrow as pa

from kclient.errors import ConfigError
from kclient.spark.decoding import frame
from kclient.spark.decoding.elements import MAX_OBJECTS, Meter, TooManyElements, too_many
from kclient.spark.decoding.protobuf_columns import NO_TEXT, Column, Columns
from kclient.spark.decoding.protobuf_elements import Damaged, Part, parts_of, per_byte, walk
from kclient.spark.decoding.protobuf_schema import Given, protobuf_library
from kclient.spark.decoding.values import Bad, Decoded, Refused, decode_apart, joined
from kclient.spark.option_table import MAX_ELEMENTS

MAX_NESTING: Final = 32
VARINT_BYTES: Final = 5


@attrs.frozen
class Protobuf:
    """Keys or values that are messages of one type."""

    given: Given
    type: pa.DataType
    name: str = "protobuf"
    max_elements: int = MAX_ELEMENTS

    @classmethod
    def of(cls, given: Given, max_elements: int = MAX_ELEMENTS) -> Protobuf:
        """Raises ConfigError that names the field which has no Spark type."""
        return cls(given, _reader(given).column.type, max_elements=max_elements)

    def decode(self, values: pa.Array) -> Decoded:
        """The messages, field by field."""
        reader = _reader(self.given)
        reasons: dict[int, str] = {}
        pieces = self._messages(values, reader, reasons)
        decoded = joined(decode_apart(messages, reader.build, self.type) for messages in pieces)
        reasons |= {row: bad.reason for row, bad in decoded.bad.items()}
        return Decoded(decoded.array, {row: self._bad(reasons[row], values[row].as_py()) for row in reasons})

    def _messages(self, values: pa.Array, reader: _Reader, reasons: dict[int, str]) -> Iterator[list[Any]]:
        """The messages, so many at a time as may be objects together, None for bad ones; why goes to `reasons`."""
        messages: list[Any] = []
        objects = 0.0
        for row, data in enumerate(values.to_pylist()):
            try:
                messages.append(None if data is None else self._message(reader, self._message_in(data)))
            except Refused as exc:
                messages.append(None)
                reasons[row] = str(exc)
            objects += len(data or b"") * reader.per_byte
            if objects > MAX_OBJECTS:
                yield messages
                messages, objects = [], 0.0
        yield messages

    def _message(self, reader: _Reader, data: bytes) -> Any:
        if len(data) * reader.per_byte > self.max_elements:
            try:
                walk(data, 0, len(data), reader.parts, Meter(self.max_elements))
            except TooManyElements:
                raise Refused(too_many(self.max_elements)) from None
            except (Damaged, RecursionError):
                raise Refused(f"it is no {self.given.message}") from None
        return reader.read(data)

    def _message_in(self, data: bytes) -> bytes:
        if self.given.ids is None:
            return data
        schema_id = frame.schema_id_of(data)
        if schema_id is None:
            raise Refused(frame.NO_FRAME)
        if self.given.ids and schema_id not in self.given.ids:
            raise Refused(frame.unexpected(schema_id))
        indexes, start = message_indexes(data, frame.SIZE)
        if indexes != self.given.indexes:
            raise Refused(f"it is another message of its schema, with the indexes {list(indexes)}")
        return data[start:]

    def _bad(self, reason: str, data: bytes) -> Bad:
        return Bad(reason, None if self.given.ids is None else frame.schema_id_of(data))


@attrs.frozen
class _Reader:
    """A message type, compiled: what reads one message, and what makes columns of many."""

    column: Column
    read: Callable[[bytes], Any]
    parts: Mapping[int, Part]
    per_byte: float

    def build(self, messages: list[Any]) -> pa.Array:
        """Raises Refused for a message that has a value which its column cannot hold."""
        try:
            return self.column.build(messages)
        except (pa.ArrowInvalid, UnicodeDecodeError):
            raise Refused(NO_TEXT) from None


@functools.lru_cache(maxsize=64)
def _reader(given: Given) -> _Reader:
    """Compiled once in each process."""
    library = protobuf_library()
    pool = library.descriptor_pool.DescriptorPool()
    try:
        for file in given.files:
            pool.AddSerializedFile(file)
        descriptor = pool.FindMessageTypeByName(given.message)
    except (TypeError, KeyError) as exc:
        raise ConfigError(
            f"{given.option} has descriptors that do not fit together: {exc}. Make them with protoc."
        ) from exc
    columns = Columns(given.option)
    column = columns.message(descriptor)
    parts = parts_of(library, descriptor)
    return _Reader(column, _parser(library, descriptor, requires=columns.requires), parts, per_byte(parts))


def _parser(library: Any, descriptor: Any, *, requires: bool) -> Callable[[bytes], Any]:
    parse = library.message_factory.GetMessageClass(descriptor).FromString
    damaged = library.message.DecodeError

    def read(data: bytes) -> Any:
        try:
            message = parse(data)
        except damaged:
            raise Refused(f"it is no {descriptor.full_name}") from None
        except UnicodeDecodeError:
            raise Refused(NO_TEXT) from None
        if requires and not message.IsInitialized():
            raise Refused("it lacks a field that its schema requires")
        return message

    return read


def message_indexes(data: bytes, start: int) -> tuple[tuple[int, ...], int]:
    """Where the message stands in its schema, and where its bytes begin. Raises Refused."""
    count, at = _zigzag(data, start)
    if not 0 <= count <= MAX_NESTING:
        raise Refused("its frame does not say which message of its schema it is")
    found = []
    for _ in range(count):
        index, at = _zigzag(data, at)
        found.append(index)
    return tuple(found) or (0,), at


def _zigzag(data: bytes, start: int) -> tuple[int, int]:
    number = 0
    for place, byte in enumerate(data[start : start + VARINT_BYTES]):
        number |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), start + place + 1
    raise Refused("its frame does not say which message of its schema it is")
