"""Fields of JSON documents that the schema does not name, kept as JSON text in a column of their own.

    schema a BIGINT, o STRUCT<x: BIGINT>     {"a": 1, "b": 2, "o": {"x": 3, "y": [4]}}  →  {"b":2,"o":{"y":[4]}}

Objects inside of arrays are not looked into. A document without such fields, or one that cannot be read, gives null.

Values keep the document's own text, so that no digit of a number is lost. One that is not strictly JSON (NaN, an
infinity, a name twice in it) is kept as a string of its text.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, cast

import pyarrow as pa

from kclient.spark.decoding.json_values import Json
from kclient.spark.decoding.values import without

RESCUED: Final = "_rescued"
SPACE: Final = re.compile(r"[ \t\r\n]*")


def rescued(values: pa.Array, form: Json) -> pa.Array:
    """What the schema leaves out of each value. A batch without such fields is looked at by Arrow's parser alone."""
    values = without(values, form.too_large(values))
    if form.knows(values):
        return pa.nulls(len(values), pa.string())
    return pa.array([_text(value, form.type) for value in values.to_pylist()], pa.string())


def _text(value: bytes | None, kind: pa.DataType) -> str | None:
    try:
        text = "" if value is None else value.decode()
        start = _past(text, 0)
        if text[start : start + 1] != "{" or not pa.types.is_struct(kind):
            return None
        kept, end = _kept(text, start, kind)
    except (ValueError, RecursionError):
        return None
    return kept if kept and _past(text, end) == len(text) else None


def _kept(text: str, at: int, kind: pa.StructType) -> tuple[str, int]:
    """The fields that the type does not have of the object at a place, at any depth of objects; and where it ends.

    Raises ValueError for what is no JSON.
    """
    known = {field.name: field.type for field in kind}
    kept: dict[str, str] = {}
    at, sign = _past(text, at + 1), ","
    if text[at : at + 1] == "}":
        return "", at + 1
    while sign == ",":
        begin = at
        _behind(text, at, '"')  # only a string is a name
        name, at = ANY.raw_decode(text, at)
        label = text[begin:at]
        at = _past(text, _behind(text, _past(text, at), ":"))
        if name not in known:
            value, at = _value(text, at)
        elif pa.types.is_struct(known[name]) and text[at : at + 1] == "{":
            value, at = _kept(text, at, known[name])
        else:
            value, at = "", ANY.raw_decode(text, at)[1]
        if value:
            kept[name] = f"{label}:{value}"
        at = _past(text, at)
        sign = text[at : at + 1]
        at = _past(text, at + 1) if sign == "," else at
    return "{" + ",".join(kept.values()) + "}" if kept else "", _behind(text, at, "}")


def _value(text: str, at: int) -> tuple[str, int]:
    """A value as it stands in the text; as a string where other readers of JSON would refuse it."""
    try:
        _, end = STRICT.raw_decode(text, at)
    except _NotStrict:
        _, end = ANY.raw_decode(text, at)
        return json.dumps(text[at:end]), end
    return text[at:end], end


def _behind(text: str, at: int, sign: str) -> int:
    if text[at : at + 1] != sign:
        raise ValueError(f"no {sign}")
    return at + 1


def _past(text: str, at: int) -> int:
    """Where the space from a place on ends."""
    return cast("re.Match[str]", SPACE.match(text, at)).end()


class _NotStrict(Exception):
    """NaN, an infinity, or a field twice."""


def _constant(_: str) -> None:
    raise _NotStrict


def _once(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) < len(pairs):
        raise _NotStrict


ANY: Final = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)
STRICT: Final = json.JSONDecoder(
    parse_float=str, parse_int=str, parse_constant=_constant, object_pairs_hook=_once
)
