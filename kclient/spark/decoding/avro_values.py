"""Format `avro`: the binary encoding, alone or in the registry's frame (a zero, four bytes of schema id, the value).

Every byte must be read: a value with bytes left over was written with another schema. The writer's schema comes from
the registry by the frame's id, or is the given one; the reader's schema is the same for all values and makes the type.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator
from decimal import DecimalException
from typing import Any, Final

import attrs
import pyarrow as pa

from kclient.spark.decoding import frame
from kclient.spark.decoding.avro_elements import Elements
from kclient.spark.decoding.avro_schema import (
    VALUE,
    Given,
    avro_library,
    checked,
    elements_of,
    readable,
    schema_errors,
    strict,
)
from kclient.spark.decoding.avro_types import arrow_type, micros
from kclient.spark.decoding.elements import MAX_OBJECTS, TooManyElements, too_many
from kclient.spark.decoding.registry import Registry, UnknownSchemaError, runtime
from kclient.spark.decoding.values import Bad, Decoded, Refused, decode_apart, joined, reason_of
from kclient.spark.option_table import MAX_ELEMENTS

DAMAGE: Final = (
    EOFError, IndexError, KeyError, ValueError, TypeError, OverflowError, struct.error, MemoryError,
    RecursionError, DecimalException,
)  # fmt: skip
"""What reading foreign bytes raises."""
MAX_WAIT_MS: Final = 30_000
"""How long a batch asks for ids that are unknown; whoever tries again within a minute does not ask for them again."""


@attrs.frozen
class Avro:
    """Keys or values in Avro. `schema` is the reader's; `storage` its type as Arrow takes the values."""

    schema: str
    storage: pa.DataType
    ids: frozenset[int] | None
    registry: Registry | None
    name: str = "avro"
    max_elements: int = MAX_ELEMENTS

    @classmethod
    def of(
        cls, option: str, given: Given, registry: Registry | None, max_elements: int = MAX_ELEMENTS
    ) -> Avro:
        """Raises ConfigError that names the field which has no Spark type."""
        storage = arrow_type(checked(option, given.text), option)
        return cls(given.text, storage, given.ids, registry, max_elements=max_elements)

    @property
    def type(self) -> pa.DataType:
        """Spark's type of the reader schema."""
        return micros(self.storage)

    def decode(self, values: pa.Array) -> Decoded:
        """The values, each as its own writer wrote it."""
        reading = _Reading(self)
        pieces = (decode_apart(made, self._typed, self.type) for made in reading.pieces(values))
        decoded = joined(pieces)
        return Decoded(decoded.array, {**decoded.bad, **reading.bad})

    def _typed(self, made: list[Any]) -> pa.Array:
        try:
            array = pa.array(made, self.storage)
            return array if self.storage == self.type else array.cast(self.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            raise Refused("a value in it does not fit the types of the reader schema") from None


@attrs.frozen
class _Written:
    """What reads a value that was written with one schema, and how many elements such a value may hold."""

    read: Callable[[io.BytesIO], Any]
    elements: Elements


class _Reading:
    """One batch: what the schema ids in it mean, and which values are bad."""

    def __init__(self, avro: Avro) -> None:
        self.bad: dict[int, Bad] = {}
        self._avro = avro
        self._framed = avro.registry is not None or avro.ids is not None
        self._first_unknown: int | None = None
        self._waited_ms = 0
        self._objects = 0.0
        self._readers: dict[int | None, _Written | str] = {}
        if not self._framed:
            self._readers[None] = self._reader(avro.schema)

    def pieces(self, values: pa.Array) -> Iterator[list[Any]]:
        """The values, so many at a time as may be objects together."""
        made: list[Any] = []
        for row, data in enumerate(values.to_pylist()):
            made.append(None if data is None else self.value(row, data))
            if self._objects > MAX_OBJECTS:
                yield made
                made, self._objects = [], 0.0
        yield made

    def value(self, row: int, data: bytes) -> Any:
        """The value, or None and an entry in `bad`."""
        schema_id, start = None, 0
        if self._framed:
            schema_id, start = frame.schema_id_of(data), frame.SIZE
            if schema_id is None:
                return self._refuse(row, frame.NO_FRAME, None)
        written = self._readers.get(schema_id) or self._find(schema_id)
        if isinstance(written, str):
            return self._refuse(row, written, schema_id)
        stream = io.BytesIO(data)
        stream.seek(start)
        try:
            written.elements.check(data, start, self._avro.max_elements)
            made = written.read(stream)
        except TooManyElements:
            return self._refuse(row, too_many(self._avro.max_elements), schema_id)
        except DAMAGE as exc:
            return self._refuse(row, f"it does not follow its schema ({type(exc).__name__})", schema_id)
        self._objects += len(data) * written.elements.per_byte
        left = len(data) - stream.tell()
        return made if not left else self._refuse(row, f"{left} bytes are left behind it", schema_id)

    def _refuse(self, row: int, reason: str, schema_id: int | None) -> None:
        self.bad[row] = Bad(reason, schema_id)

    def _find(self, schema_id: int | None) -> _Written | str:
        found = self._readers[schema_id] = self._writer(schema_id)
        return found

    def _writer(self, schema_id: int | None) -> _Written | str:
        avro = self._avro
        if avro.registry is None or schema_id is None:
            if schema_id is None or not avro.ids or schema_id in avro.ids:
                return self._reader(avro.schema)
            return frame.unexpected(schema_id)
        began_ms = runtime.wall_ms()
        try:
            return self._reader(avro.registry.schema(schema_id))
        except UnknownSchemaError as exc:
            self._first_unknown = schema_id if self._first_unknown is None else self._first_unknown
            self._waited_ms += runtime.wall_ms() - began_ms
            if self._waited_ms > MAX_WAIT_MS:
                raise avro.registry.slow(self._first_unknown) from None
            return str(exc)

    def _reader(self, written: str) -> _Written | str:
        """Reads one value that was written with this schema; or why none can be."""
        library = avro_library()
        read, unresolved = library.schemaless_reader, library.read.SchemaResolutionError
        try:
            writer = strict(written)
        except schema_errors() as exc:
            return f"the schema of its writer cannot be used: {reason_of(exc)}"
        same = written == self._avro.schema
        reader = None if same else readable(self._avro.schema)

        def reading(stream: io.BytesIO) -> Any:
            try:
                return read(stream, writer, reader)[VALUE]
            except unresolved as exc:
                raise ValueError("writer and reader do not agree") from exc

        return _Written(reading, elements_of(written, None if same else self._avro.schema))
