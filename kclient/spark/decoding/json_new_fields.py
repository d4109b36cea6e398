"""The fields of a JSON document that the schema does not name, as JSON text.

    schema a BIGINT, o STRUCT<x: BIGINT>     {"a": 1, "b": 2, "o": {"x": 3, "y": [4]}}  →  {"b":2,"o":{"y":[4]}}

Objects inside of arrays are not searched. A document without such fields, or one that cannot be read, has no text.
Values keep the document's own text, so that no digit of a number is lost. A value that is not strict JSON (NaN, an
infinity, a duplicate name in it) is kept as a string of its text.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, cast

import pyarrow as pa

SPACE: Final = re.compile(r"[ \t\r\n]*")


def new_fields_of(values: pa.Array, kind: pa.DataType) -> dict[int, str]:
    """Return, by row, the fields of each document that the type leaves out."""
    texts = ((row, _text(value, kind)) for row, value in enumerate(values.to_pylist()))
    return {row: text for row, text in texts if text is not None}


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
    """Return the fields of the object at `at` that the type does not have, at any depth, and where the object ends.

    Raise ValueError for text that is not JSON.
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
    """Return a value's text; as a JSON string if other readers of JSON would refuse it."""
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
    """Return where the white space at `at` ends."""
    return cast("re.Match[str]", SPACE.match(text, at)).end()


class _NotStrict(Exception):
    """Raised for NaN, an infinity, or a field that occurs twice."""


def _constant(_: str) -> None:
    raise _NotStrict


def _once(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) < len(pairs):
        raise _NotStrict


ANY: Final = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)
STRICT: Final = json.JSONDecoder(
    parse_float=str, parse_int=str, parse_constant=_constant, object_pairs_hook=_once
)
