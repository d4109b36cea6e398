"""Format `json`: each value is one JSON document; Arrow's own parser reads a whole batch at a time.

    <value 0>            objects go to the parser as they are, one a line, so that a value which is not exactly one
    <value 1>            document (none, two, half of one) breaks the syntax or makes one row too many

    {"v":<value 0>}      any other value is wrapped into an object, which must have exactly this one field

Types are strict: a number is not a string, 1.0 is not an integer, nothing is truncated, no number becomes an infinity.
Fields that the schema does not name are left out, and fields that the value does not name are null. Times are ISO 8601
text.

Elements are counted in the text before it is parsed:

    struct<legs: array<struct<to, by>>>     {"legs": [{}, null, {"to": "IAH"}], "other": [1, 2]}
                                                      3   3     3                no column

A call of Arrow's parser is slow, so `fault_of` finds the fault of a single document. It reports only what the parser
would report too. Where that is not certain (a field twice, half a surrogate pair, Inf, -NaN, a decimal with too many
digits) or takes too much memory (a long document) it returns None, and the parser decides.
"""

from __future__ import annotations

import datetime
import functools
import json
import re
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from kclient.deserializers.elements import MAX_ELEMENTS, too_many
from kclient.errors import ConfigError
from kclient.spark.decoding.ddl import TIMESTAMP_NTZ, list_of, parse_ddl
from kclient.spark.decoding.formats import (
    ELEMENTS_OPTION,
    NO_TEXT,
    BadValue,
    ConversionError,
    Decoded,
    as_text,
    decode_apart,
    widest_item,
    width,
    without,
)
from kclient.spark.decoding.json_new_fields import has_struct, new_fields_of
from kclient.spark.decoding.json_text import MOST_READ, is_document

READ_AS_TEXT: Final = (
    pa.date32(),
    TIMESTAMP_NTZ,
)  # which Arrow's parser does not take as ISO 8601, or not strictly
NO_JSON: Final = "it is not JSON"
NOT_ONE: Final = "it is not exactly one JSON document"
NOT_A_TIME: Final = "a date or time in it is not ISO 8601"
BEFORE, AFTER, NOTHING, NULL, EMPTY, LINE = map(pa.scalar, ('{"v":', "}", "", "null", "{}", "\n"))
SPACE: Final = " \t\r\n"
LINE_END: Final = pc.MatchSubstringOptions("\n")

_PARSE_ERROR: Final = re.compile(
    r"JSON parse error: (?:Column\((?P<field>[^)]*)\) )?(?P<what>.*?)\.? in row \d+"
)
_CONVERSION: Final = re.compile(r"Failed to convert JSON to (?P<type>[a-z0-9]+)")


@attrs.frozen
class JsonFormat:
    """Decodes keys or values that are JSON of one type."""

    type: pa.DataType
    name: str = "json"
    max_elements: int = MAX_ELEMENTS

    @classmethod
    def of(cls, option: str, ddl: str, max_elements: int = MAX_ELEMENTS) -> JsonFormat:
        """Build the format for the schema of an option. Raises ConfigError with the field that JSON cannot hold."""
        kind = parse_ddl(option, ddl)
        _check(option, kind, "")
        return cls(kind, max_elements=max_elements)

    def decode(self, values: pa.Array, *, new_fields: bool = False) -> Decoded:
        """Decode the values; a JSON null becomes null.

        If fields that the schema does not name are asked for, a batch without any is parsed once too. A bad value has
        none: it is there as a whole.
        """
        large = self.too_large(values)
        bad = dict.fromkeys(large, BadValue(too_many(self.max_elements, ELEMENTS_OPTION)))
        values = without(values, large)
        looks = new_fields and has_struct(self.type)
        if looks and (whole := self._all_named(values)) is not None:
            return Decoded(whole, bad)
        decoded = decode_apart(values, self._parse, self.type, self._fault_of)
        new = self._new_in(values, decoded.bad) if looks else {}
        return Decoded(decoded.array, decoded.bad | bad, new)

    def _new_in(self, values: pa.Array, bad: Collection[int]) -> dict[int, str]:
        """Return the fields of good values that the schema does not name: the parser finds faster whether any has."""
        values = without(values, bad)
        return {} if bad and self._all_named(values) is not None else new_fields_of(values, self.type)

    def _all_named(self, values: pa.Array) -> pa.Array | None:
        """Return the parsed values, None if one is bad or has a field that the schema does not name."""
        try:
            return self._parse(values, unexpected="error")
        except ConversionError:
            return None

    def _fault_of(self, data: bytes) -> str | None:
        return fault_of(data, self.type)

    def too_large(self, values: pa.Array) -> list[int]:
        """Return the rows with more elements than the limit: parsing them could use too much memory."""
        longest = longest_harmless(self.type, self.max_elements)
        if longest is None or values.nbytes <= longest:
            return []
        rows: list[int] = pc.indices_nonzero(pc.greater(pc.binary_length(values), longest)).to_pylist()
        return [row for row in rows if has_more(values[row].as_py(), self.type, self.max_elements)]

    def _parse(self, values: pa.Array, unexpected: str = "ignore") -> pa.Array:
        texts = as_text(values).fill_null(NULL)
        by_line = pa.types.is_struct(self.type)
        read = self._objects(texts, unexpected) if by_line else self._wrapped(texts, unexpected)
        _check_infinities(read, texts)
        try:
            return read if read.type == self.type else read.cast(self.type)
        except pa.ArrowInvalid as exc:
            raise ConversionError(_reason(str(exc))) from None

    def _objects(self, texts: pa.Array, unexpected: str) -> pa.StructArray:
        """Parse one object a line; a null, which Arrow's parser refuses as a line, is an empty one meanwhile."""
        lines, nulls = _lines(texts)
        read = _read(lines, pa.schema(list(_storage(self.type))), unexpected, "")
        return pa.StructArray.from_arrays(
            [column.combine_chunks() for column in read.columns], fields=list(read.schema), mask=nulls
        )

    def _wrapped(self, texts: pa.Array, unexpected: str) -> pa.Array:
        """Parse each value inside an object of its own, `{"v":…}`; the value must not add a second field to it."""
        wrapped = pc.binary_join_element_wise(BEFORE, texts, AFTER, NOTHING)
        ignores = unexpected == "ignore" and has_struct(self.type)  # whose unknown fields are left out
        if ignores and not all(map(is_document, texts.to_pylist())):
            raise ConversionError(NOT_ONE)
        schema = pa.schema([("v", _storage(self.type))])
        return _read(wrapped, schema, "ignore" if ignores else "error", "/v").column(0).combine_chunks()


def _lines(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return texts that begin and end as objects do, and which of them were null. Raises ConversionError.

    A line of these cannot be part of an object with the next one: inside one document, a comma always stands between a
    closing brace before a line end and an opening brace after it.
    """
    nulls = pc.equal(texts, NULL)
    if not _are_objects(texts):
        texts = pc.ascii_trim(texts, SPACE)
        nulls = pc.equal(texts, NULL)
        texts = pc.if_else(nulls, EMPTY, texts)
        if not _are_objects(texts):
            raise ConversionError("it is not one JSON object")
    return texts, nulls


def _are_objects(texts: pa.Array) -> bool:
    framed = pc.and_(pc.starts_with(texts, "{"), pc.ends_with(texts, "}"))
    return bool(pc.all(framed, min_count=0).as_py())


def _read(texts: pa.Array, schema: pa.Schema, unexpected: str, above: str) -> pa.Table:
    """Return one row for each text; `above` is the path of the schema's fields for the parser.

    Raises ConversionError.
    """
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
        raise ConversionError(_reason(str(exc), above)) from None
    if len(table) != len(texts):
        raise ConversionError(NOT_ONE)
    return table


def _check_infinities(made: pa.Array, texts: pa.Array) -> None:
    """Raise ConversionError for a number that is no infinity in the text: the parser makes one of what does not fit."""
    if _infinite(made) is None:
        return
    written = pc.match_substring(texts, "Inf")
    if (kind := _infinite(made.filter(pc.invert(written)))) is not None:
        raise ConversionError(f"a value in it does not fit the type {kind}")


def _infinite(made: pa.Array) -> pa.DataType | None:
    """Return the type of the first column below an array that holds an infinity."""
    if pa.types.is_floating(made.type):
        return made.type if pc.any(pc.is_inf(made)).as_py() else None
    inner: list[pa.Array] = made.flatten() if pa.types.is_struct(made.type) else []
    inner = [made.flatten()] if pa.types.is_list(made.type) else inner
    return next((found for each in inner if (found := _infinite(each)) is not None), None)


def _storage(kind: pa.DataType) -> pa.DataType:
    """Return the type to parse into: text if Arrow's cast from text is stricter than its parser."""
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
    """Return Arrow's message without the quoted value, with field names relative to `above`."""
    if match := _CONVERSION.search(problem):
        return f"a value in it does not fit the type {match['type']}"
    if match := _PARSE_ERROR.search(problem):
        field = (match["field"] or "").removeprefix(above).strip("/").replace("/", ".")
        return f"field {field} {match['what']}" if field else match["what"]
    return NOT_A_TIME if "cast" in problem or "parse" in problem else NO_JSON


# --- counting elements -----------------------------------------------------------------------------------------------


TOKEN: Final = re.compile(rb'"[^"]*"?|[\[\]{},:]')
IS_EMPTY: Final = re.compile(rb"[ \t\r\n]*\]")
SHORTEST_ITEM: Final = 2  # with its comma
QUOTE: Final = ord('"')


class _Shape(NamedTuple):
    """How many elements a type's documents make: the fields of an object, or the items of an array."""

    fields: Mapping[bytes, _Shape] | None = None
    item: _Shape | None = None
    elements: int = 0


OTHER: Final = _Shape()
"""A scalar, or what makes no column."""


def longest_harmless(kind: pa.DataType, limit: int) -> int | None:
    """Return the length in bytes up to which no text can hold too many elements, None if every length is safe."""
    widest = widest_item(kind)
    return limit * SHORTEST_ITEM // widest if widest else None


def has_more(text: bytes, kind: pa.DataType, limit: int) -> bool:
    """Return whether the document has more than `limit` elements. Text that is not JSON counts up to its error."""
    structs, others = text.count(b"{") + text.count(b"null"), text.count(b",") + text.count(b"[")
    if structs * widest_item(kind) + others <= limit:
        return False  # as almost always: counting token by token takes ten times as long as the parser
    text = text.replace(rb"\\", rb"\u005c").replace(
        rb"\"", rb"\u0022"
    )  # so that a string ends at the next quote
    left, expected, name = limit, _shape(kind), b""
    opened, around = OTHER, [OTHER]
    for match in TOKEN.finditer(text):
        token = match[0]
        if token[0] == QUOTE:
            name = token
        elif token == b":":
            expected = opened.fields.get(_plain(name), OTHER) if opened.fields else OTHER
        elif token == b",":
            left -= opened.elements
            expected = opened.item or OTHER
        elif token == b"{":
            around.append(opened)
            opened = expected if expected.fields is not None else OTHER
        elif token == b"[":
            around.append(opened)
            opened = expected if expected.item is not None else OTHER
            expected = opened.item or OTHER
            left -= opened.elements if not IS_EMPTY.match(text, match.end()) else 0
        elif len(around) > 1:
            opened = around.pop()
        if left < 0:
            return True
    return False


@functools.lru_cache(maxsize=256)
def _shape(kind: pa.DataType) -> _Shape:
    if pa.types.is_struct(kind):
        return _Shape(fields={field.name.encode(): _shape(field.type) for field in kind})
    if pa.types.is_list(kind):
        return _Shape(item=_shape(kind.value_type), elements=width(kind.value_type))
    return OTHER


def _plain(name: bytes) -> bytes:
    if b"\\" not in name:
        return name[1:-1]
    try:
        return str(json.loads(name)).encode()
    except ValueError:  # half a surrogate pair is not a name
        return b""


# --- the fault of one document ---------------------------------------------------------------------------------------


UNSURE: Final = ("\0", "Inf", "-NaN")  # other readers of JSON differ here
Check: TypeAlias = Callable[[Any], str | None]
MOST: Final = {32: 3.403e38, 64: sys.float_info.max}
"""By the bits of a number, above what it is an infinity, for certain."""
DAY: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")


class _Whole(str):
    """The text of a number without point and exponent."""

    __slots__ = ()


class _Number(str):
    """The text of any other number."""

    __slots__ = ()


_READ: Final = json.JSONDecoder(parse_int=_Whole, parse_float=_Number, parse_constant=_Number, strict=False)


def fault_of(data: bytes, kind: pa.DataType) -> str | None:
    """Return why the document is not a value of the type; None if it is, or if only the parser can know."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return NO_TEXT
    if len(text) > MOST_READ or any(sign in text for sign in UNSURE):
        return None
    try:
        document = _READ.decode(text)
    except json.JSONDecodeError as exc:
        return NOT_ONE if exc.msg == "Extra data" else NO_JSON
    except RecursionError:
        return None
    return _check_of(kind)(document)


@functools.lru_cache(maxsize=64)
def _check_of(kind: pa.DataType, path: str = "") -> Check:
    """Return the check that finds the fault of a value; build it once, because inspecting an Arrow type is slow."""
    wanted, inner = _form(kind), _inner_check(kind, path)
    fault = (
        f"field {path} is of another type than {_name(kind)}" if path else f"it is not of type {_name(kind)}"
    )

    def check(value: Any) -> str | None:
        if value is None:
            return None
        if type(value) not in wanted:
            return fault
        return inner(value) if inner is not None else None

    return check


def _inner_check(kind: pa.DataType, path: str) -> Check | None:
    """Return the check of the content of a value that has the right Python type; None if every content is valid."""
    if pa.types.is_struct(kind):
        return _fields_check(
            [(field.name, _check_of(field.type, f"{path}.{field.name}".lstrip("."))) for field in kind]
        )
    if pa.types.is_list(kind):
        item = _check_of(kind.value_type, f"{path}[]")
        return lambda values: next((found for each in values if (found := item(each))), None)
    if pa.types.is_integer(kind):
        fault, bits = f"a value in it does not fit the type {kind}", kind.bit_width
        return lambda value: None if _fits(value, bits) else fault
    if pa.types.is_floating(kind):
        fault, most = f"a value in it does not fit the type {kind}", MOST[kind.bit_width]
        return lambda value: fault if abs(float(value)) > most else None
    if pa.types.is_temporal(kind):
        return lambda value: None if _may_be_time(value) else NOT_A_TIME
    return None


def _fields_check(fields: list[tuple[str, Check]]) -> Check:
    def check(values: dict[str, Any]) -> str | None:
        for name, field in fields:
            if name in values and (found := field(values[name])):
                return found
        return None

    return check


def _form(kind: pa.DataType) -> tuple[type, ...]:
    """Return the Python types that `_READ` makes of a value of the type."""
    if pa.types.is_struct(kind):
        return (dict,)
    if pa.types.is_list(kind):
        return (list,)
    if pa.types.is_boolean(kind):
        return (bool,)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _Whole, _Number
    return (str, _Whole, _Number) if pa.types.is_decimal(kind) else (str,)


def _name(kind: pa.DataType) -> str:
    if pa.types.is_struct(kind):
        return "JSON object"
    return "array" if pa.types.is_list(kind) else str(kind)


def _fits(text: str, bits: int) -> bool:
    if isinstance(text, _Number) or len(text) > 20:
        return False
    return -(1 << bits - 1) <= int(text) < 1 << bits - 1


def _may_be_time(text: str) -> bool:
    """Return whether the text begins with a day; other forms of the year are not examined."""
    match = DAY.match(text)
    if match is None:
        return text[:1] in "+-" and text != ""
    year, month, day = map(int, match.groups())
    try:
        datetime.date(max(year, 1), month, day)
    except ValueError:
        return year < 1
    return True
