"""Format `json`: each value is one JSON document, read by Arrow's own parser, a whole batch at a time.

    <value 0>            objects stand as they are, one a line, so that a value which is not exactly one document
    <value 1>            (none, two, half of one) either breaks the syntax or makes one row too many

    {"v":<value 0>}      other values are each put into an object of their own, which must have that one field

Types are strict: a number is no string, 1.0 is no integer, nothing is cut off. What the schema does not name is left
out, and what the value does not name is null. Times are ISO 8601 text.
"""

from __future__ import annotations

import json
import re
from typing import Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from kclient.errors import ConfigError
from kclient.spark.decoding.ddl import parse_ddl
from kclient.spark.decoding.elements import too_many
from kclient.spark.decoding.json_elements import has_more, longest_harmless
from kclient.spark.decoding.json_faults import NOT_ONE, fault_of
from kclient.spark.decoding.spark_types import TIMESTAMP_NTZ, list_of
from kclient.spark.decoding.text import as_text
from kclient.spark.decoding.values import Bad, Decoded, Refused, decode_apart, without
from kclient.spark.option_table import MAX_ELEMENTS

READ_AS_TEXT: Final = (
    pa.date32(),
    TIMESTAMP_NTZ,
)  # which Arrow's parser does not take as ISO 8601, or not strictly
BEFORE, BEHIND, NOTHING, NULL, EMPTY, LINE = map(pa.scalar, ('{"v":', "}", "", "null", "{}", "\n"))
SPACE: Final = " \t\r\n"
LINE_END: Final = pc.MatchSubstringOptions("\n")

_PARSE_ERROR: Final = re.compile(
    r"JSON parse error: (?:Column\((?P<field>[^)]*)\) )?(?P<what>.*?)\.? in row \d+"
)
_CONVERSION: Final = re.compile(r"Failed to convert JSON to (?P<type>[a-z0-9]+)")


@attrs.frozen
class Json:
    """Keys or values that are JSON of one type."""

    type: pa.DataType
    name: str = "json"
    max_elements: int = MAX_ELEMENTS

    @classmethod
    def of(cls, option: str, ddl: str, max_elements: int = MAX_ELEMENTS) -> Json:
        """With the schema that the option gives. Raises ConfigError, which names the field that JSON cannot hold."""
        kind = parse_ddl(option, ddl)
        _check(option, kind, "")
        return cls(kind, max_elements=max_elements)

    def decode(self, values: pa.Array) -> Decoded:
        """The values; a JSON null is null as well."""
        large = self.too_large(values)
        decoded = decode_apart(without(values, large), self._parse, self.type, self._fault_of)
        return Decoded(
            decoded.array, {**decoded.bad, **dict.fromkeys(large, Bad(too_many(self.max_elements)))}
        )

    def _fault_of(self, data: bytes) -> str | None:
        return fault_of(data, self.type)

    def too_large(self, values: pa.Array) -> list[int]:
        """The rows with more elements than a value may hold, none of which may be parsed."""
        longest = longest_harmless(self.type, self.max_elements)
        if longest is None or values.nbytes <= longest:
            return []
        rows: list[int] = pc.indices_nonzero(pc.greater(pc.binary_length(values), longest)).to_pylist()
        return [row for row in rows if has_more(values[row].as_py(), self.type, self.max_elements)]

    def knows(self, values: pa.Array) -> bool:
        """Whether all of them can be read, and have no field that the schema does not name."""
        try:
            self._parse(values, unexpected="error")
        except Refused:
            return False
        return True

    def _parse(self, values: pa.Array, unexpected: str = "ignore") -> pa.Array:
        texts = as_text(values).fill_null(NULL)
        read = self._objects(texts, unexpected) if pa.types.is_struct(self.type) else self._wrapped(texts)
        try:
            return read if read.type == self.type else read.cast(self.type)
        except pa.ArrowInvalid as exc:
            raise Refused(_reason(str(exc))) from None

    def _objects(self, texts: pa.Array, unexpected: str) -> pa.StructArray:
        """One object a line; a null, which Arrow's parser does not take as a line, is an empty one for a moment."""
        lines, nulls = _lines(texts)
        read = _read(lines, pa.schema(list(_storage(self.type))), unexpected, "")
        return pa.StructArray.from_arrays(
            [column.combine_chunks() for column in read.columns], fields=list(read.schema), mask=nulls
        )

    def _wrapped(self, texts: pa.Array) -> pa.Array:
        """Each value in an object of its own, `{"v":…}`, which must get no second field from it."""
        wrapped = pc.binary_join_element_wise(BEFORE, texts, BEHIND, NOTHING)
        inside = _has_struct(self.type)  # whose unknown fields are left out
        if inside and not all(map(_is_document, texts.to_pylist())):
            raise Refused(NOT_ONE)
        schema = pa.schema([("v", _storage(self.type))])
        return _read(wrapped, schema, "ignore" if inside else "error", "/v").column(0).combine_chunks()


def _lines(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Texts that begin and end as objects do, and which of them were null. Raises Refused for other texts.

    A line of these cannot be part of an object with the next one: a brace before a line end and one behind it have a
    comma between them everywhere but between two documents.
    """
    nulls = pc.equal(texts, NULL)
    if not _are_objects(texts):
        texts = pc.ascii_trim(texts, SPACE)
        nulls = pc.equal(texts, NULL)
        texts = pc.if_else(nulls, EMPTY, texts)
        if not _are_objects(texts):
            raise Refused("it is not one JSON object")
    return texts, nulls


def _are_objects(texts: pa.Array) -> bool:
    framed = pc.and_(pc.starts_with(texts, "{"), pc.ends_with(texts, "}"))
    return bool(pc.all(framed, min_count=0).as_py())


def _read(texts: pa.Array, schema: pa.Schema, unexpected: str, above: str) -> pa.Table:
    """One row for each text, or Refused. `above` is where the schema's fields are for the parser."""
    data = pc.binary_join_element_wise(texts, NOTHING, LINE).buffers()[2]
    try:
        table = pj.read_json(
            pa.BufferReader(data),
            read_options=pj.ReadOptions(use_threads=False, block_size=data.size + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=schema,
                newlines_in_values=pc.any(pc.match_substring(texts, options=LINE_END)).as_py(),
                unexpected_field_behavior=unexpected,
            ),
        )
    except pa.ArrowInvalid as exc:
        raise Refused(_reason(str(exc), above)) from None
    if len(table) != len(texts):
        raise Refused(NOT_ONE)
    return table


def _is_document(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _has_struct(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind) or (pa.types.is_list(kind) and _has_struct(kind.value_type))


def _storage(kind: pa.DataType) -> pa.DataType:
    """The type to parse into: text where Arrow's cast from text is the stricter reader."""
    if kind in READ_AS_TEXT:
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_storage(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return list_of(_storage(kind.value_type))
    return kind


def _check(option: str, kind: pa.DataType, path: str) -> None:
    where = f"field {path}" if path else "the type"
    if pa.types.is_map(kind):
        raise ConfigError(
            f"{option}: {where} is a map, which JSON is not read into here. Name the keys as a struct, "
            "or read text with the format string and use from_json."
        )
    if pa.types.is_binary(kind):
        raise ConfigError(
            f"{option}: {where} is binary, and JSON holds text. "
            "Declare string, and use unbase64 or unhex on the column."
        )
    if pa.types.is_list(kind):
        _check(option, kind.value_type, f"{path}[]")
    if pa.types.is_struct(kind):
        for field in kind:
            _check(option, field.type, f"{path}.{field.name}".lstrip("."))


def _reason(problem: str, above: str = "") -> str:
    """What Arrow says, without the value that it quotes; fields are told below `above`."""
    if match := _CONVERSION.search(problem):
        return f"a value in it does not fit the type {match['type']}"
    if match := _PARSE_ERROR.search(problem):
        field = (match["field"] or "").removeprefix(above).strip("/").replace("/", ".")
        return f"field {field} {match['what']}" if field else match["what"]
    return (
        "a date or time in it is not ISO 8601" if "cast" in problem or "parse" in problem else "it is no JSON"
    )
