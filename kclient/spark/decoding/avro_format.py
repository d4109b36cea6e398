"""Format `avro`: the binary encoding, alone or in the registry's frame (a zero, four bytes of schema id, the value).

Every byte must be read: a value with bytes left over was written with another schema. The writer's schema comes from
the registry by the frame's id, or is the given one; the reader's schema is the same for all values and makes the type.

Elements are counted with the writer's schema before a value becomes Python objects. A value is walked only where its
length allows too many elements, or where the reader would skip an enum: fastavro does not check the number of a skipped
enum.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs
import pyarrow as pa

from kclient.deserializers.avro import AvroReader
from kclient.deserializers.elements import MAX_ELEMENTS, BadValueError
from kclient.deserializers.frame import FRAME_SIZE, NO_FRAME, schema_id_of, unexpected_id
from kclient.network.schema_registry import SchemaRegistry, UnknownSchemaError, avro_text
from kclient.runtime import Runtime
from kclient.spark.decoding.avro_new_fields import AvroNewFields, new_fields_of
from kclient.spark.decoding.avro_schema import AvroReaderSchema, arrow_type, checked, micros
from kclient.spark.decoding.formats import (
    ELEMENTS_OPTION,
    MAX_OBJECTS,
    MAX_WAIT_MS,
    BadValue,
    ConversionError,
    Decoded,
    decode_apart,
    joined,
    of_good,
)

runtime: Final = Runtime()


@attrs.frozen
class AvroFormat:
    """Keys or values in Avro. `schema` is the reader's; `storage` its type as Arrow takes the values."""

    schema: str
    storage: pa.DataType
    ids: frozenset[int] | None
    registry: SchemaRegistry | None
    name: str = "avro"
    max_elements: int = MAX_ELEMENTS

    @classmethod
    def of(
        cls,
        option: str,
        given: AvroReaderSchema,
        registry: SchemaRegistry | None,
        max_elements: int = MAX_ELEMENTS,
    ) -> AvroFormat:
        """Build the format. Raises ConfigError with the field that has no Spark type."""
        storage = arrow_type(checked(option, given.text), option)
        return cls(given.text, storage, given.ids, registry, max_elements=max_elements)

    @property
    def type(self) -> pa.DataType:
        """Spark's type of the reader schema."""
        return micros(self.storage)

    def decode(self, values: pa.Array, *, new_fields: bool = False) -> Decoded:
        """Decode values, each with the schema of its writer."""
        reading = _Reading(self, new_fields=new_fields)
        pieces = (decode_apart(made, self._typed, self.type) for made in reading.pieces(values))
        decoded = joined(pieces)
        bad = {**decoded.bad, **reading.bad}
        return Decoded(decoded.array, bad, of_good(reading.new, bad))

    def _typed(self, made: list[Any]) -> pa.Array:
        try:
            array = pa.array(made, self.storage)
            return array if self.storage == self.type else array.cast(self.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            raise ConversionError("a value in it does not fit the types of the reader schema") from None


class _Reading:
    """Decodes one batch: resolves the schema ids in it, and collects its bad values and new fields."""

    def __init__(self, avro: AvroFormat, *, new_fields: bool) -> None:
        self.bad: dict[int, BadValue] = {}
        self.new: dict[int, str] = {}
        self._avro = avro
        self._framed = avro.registry is not None or avro.ids is not None
        self._first_unknown: int | None = None
        self._waited_ms = 0
        self._objects = 0.0
        self._readers: dict[int | None, AvroReader | str] = {}
        self._looks = new_fields
        self._with_new: dict[int | None, AvroNewFields] = {}
        """By schema id, what reads new fields: of ids alone whose schema has fields that the reader does not name."""
        if not self._framed:
            self._readers[None] = self._reader(avro.schema)

    def pieces(self, values: pa.Array) -> Iterator[list[Any]]:
        """Yield decoded values in lists of at most as many as may be objects at once."""
        made: list[Any] = []
        for row, data in enumerate(values.to_pylist()):
            made.append(None if data is None else self.value(row, data))
            if self._objects > MAX_OBJECTS:
                yield made
                made, self._objects = [], 0.0
        yield made

    def value(self, row: int, data: bytes) -> Any:
        """Return the value; None and an entry in `bad` if it cannot be decoded."""
        schema_id, start = None, 0
        if self._framed:
            schema_id, start = schema_id_of(data), FRAME_SIZE
            if schema_id is None:
                return self._refuse(row, NO_FRAME, None)
        written = self._readers.get(schema_id) or self._find(schema_id)
        if isinstance(written, str):
            return self._refuse(row, written, schema_id)
        try:
            made = written.value(data, start, self._avro.max_elements, ELEMENTS_OPTION)
            if schema_id in self._with_new:
                self._keep_new(row, schema_id, data)
        except BadValueError as exc:
            return self._refuse(row, str(exc), schema_id)
        self._objects += len(data) * written.elements.per_byte
        return made

    def _refuse(self, row: int, reason: str, schema_id: int | None) -> None:
        self.bad[row] = BadValue(reason, schema_id)

    def _keep_new(self, row: int, schema_id: int | None, data: bytes) -> None:
        found = self._with_new[schema_id].text(data, FRAME_SIZE, self._avro.max_elements, ELEMENTS_OPTION)
        if found is not None:
            self.new[row] = found

    def _find(self, schema_id: int | None) -> AvroReader | str:
        found = self._readers[schema_id] = self._writer(schema_id)
        return found

    def _writer(self, schema_id: int | None) -> AvroReader | str:
        avro = self._avro
        if avro.registry is None or schema_id is None:
            if schema_id is None or not avro.ids or schema_id in avro.ids:
                return self._reader(avro.schema)
            return unexpected_id(schema_id)
        began_ms = runtime.wall_ms()
        try:
            text = avro_text(avro.registry.schema(schema_id), f"schema id {schema_id}")
            return self._registered(schema_id, text)
        except UnknownSchemaError as exc:
            self._first_unknown = schema_id if self._first_unknown is None else self._first_unknown
            self._waited_ms += runtime.wall_ms() - began_ms
            if self._waited_ms > MAX_WAIT_MS:
                raise avro.registry.slow(self._first_unknown) from None
            return str(exc)

    def _registered(self, schema_id: int, written: str) -> AvroReader | str:
        found = self._reader(written)
        if self._looks and isinstance(found, AvroReader):
            new = new_fields_of(written, self._avro.schema)
            if new is not None:
                self._with_new[schema_id] = new
        return found

    def _reader(self, written: str) -> AvroReader | str:
        """Return the reader for values of this writer schema, or the reason for which there is none."""
        try:
            return AvroReader.of(written, self._avro.schema)
        except BadValueError as exc:
            return str(exc)
