"""The fields of a JSON document that the schema does not name, as JSON text.

    schema a BIGINT, o STRUCT<x: BIGINT>     {"a": 1, "b": 2, "o": {"x": 3, "y": [4]}}  →  {"b":2,"o":{"y":[4]}}

Arrays are searched, and items without such fields are null: `{"l":[null,{"n":2}]}`. A document without such fields, or
one that cannot be read, has no text.
Values keep the document's own text, so that no digit of a number is lost. A value that is not strict JSON (NaN, an
infinity, a duplicate name in it) is kept as a string of its text.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
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
        kept, end = _left(text, _past(text, 0), kind)
    except (ValueError, RecursionError, StopIteration):
        return None
    return kept if kept and _past(text, end) == len(text) else None


def _left(text: str, at: int, kind: pa.DataType) -> tuple[str, int]:
    """Return what the type leaves out of the value at `at`, empty for nothing, and where the value ends.

    Raise ValueError or StopIteration for text that is not JSON.
    """
    sign = text[at : at + 1]
    if sign == "{" and pa.types.is_struct(kind):
        return _left_of_object(text, at, kind)
    if sign == "[" and pa.types.is_list(kind) and _has_fields(kind):
        return _left_of_array(text, at, kind.value_type)
    return "", scan(text, at)[1]


@functools.lru_cache(maxsize=256)
def _has_fields(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind) or (pa.types.is_list(kind) and _has_fields(kind.value_type))


@functools.lru_cache(maxsize=256)
def _fields(kind: pa.StructType) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in kind}


def _left_of_object(text: str, at: int, kind: pa.StructType) -> tuple[str, int]:
    known, kept = _fields(kind), dict[str, str]()
    at, sign = _past(text, at + 1), ","
    if text[at : at + 1] == "}":
        return "", at + 1
    while sign == ",":
        begin = at
        _behind(text, at, '"')  # only a string is a name
        name, at = scan(text, at)
        label = text[begin:at]
        at = _past(text, _behind(text, _past(text, at), ":"))
        value, at = _left(text, at, known[name]) if name in known else _value(text, at)
        if value:
            kept[name] = f"{label}:{value}"
        sign, at = _next(text, at)
    return "{" + ",".join(kept.values()) + "}" if kept else "", _behind(text, at, "}")


def _left_of_array(text: str, at: int, item: pa.DataType) -> tuple[str, int]:
    found: list[str] = []
    at, sign = _past(text, at + 1), ","
    if text[at : at + 1] == "]":
        return "", at + 1
    while sign == ",":
        value, at = _left(text, at, item)
        found.append(value)
        sign, at = _next(text, at)
    kept = "[" + ",".join(value or "null" for value in found) + "]" if any(found) else ""
    return kept, _behind(text, at, "]")


def _next(text: str, at: int) -> tuple[str, int]:
    """Return the sign behind a value, and where the next value begins; behind the last value, where the sign is."""
    at = _past(text, at)
    sign = text[at : at + 1]
    return sign, _past(text, at + 1) if sign == "," else at


def _value(text: str, at: int) -> tuple[str, int]:
    """Return a value's text; as a JSON string if other readers of JSON would refuse it."""
    try:
        _, end = strict_scan(text, at)
    except _NotStrict:
        _, end = scan(text, at)
        return json.dumps(text[at:end]), end
    return text[at:end], end


def _behind(text: str, at: int, sign: str) -> int:
    if text[at : at + 1] != sign:
        raise ValueError(f"no {sign}")
    return at + 1


def _past(text: str, at: int) -> int:
    """Return where the white space at `at` ends."""
    if text[at : at + 1] > " ":
        return at
    return cast("re.Match[str]", SPACE.match(text, at)).end()


class _NotStrict(Exception):
    """Raised for NaN, an infinity, or a field that occurs twice."""


def _constant(_: str) -> None:
    raise _NotStrict


def _once(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) < len(pairs):
        raise _NotStrict


def _scanner(**hooks: Any) -> Callable[[str, int], tuple[Any, int]]:
    """Return what reads a value and where it ends. Not `raw_decode`, which calls this and takes as much time again."""
    decoder: Any = json.JSONDecoder(parse_float=str, parse_int=str, **hooks)
    scan_once: Callable[[str, int], tuple[Any, int]] = decoder.scan_once
    return scan_once


scan: Final = _scanner(parse_constant=str)
strict_scan: Final = _scanner(parse_constant=_constant, object_pairs_hook=_once)
