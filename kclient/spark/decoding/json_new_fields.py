"""The fields of a JSON document that the schema does not name, as JSON text.

    schema a BIGINT, o STRUCT<x: BIGINT>     {"a": 1, "b": 2, "o": {"x": 3, "y": [4]}}  →  {"b":2,"o":{"y":[4]}}

Arrays are searched, and items without such fields are null: `{"l":[null,{"n":2}]}`. A document without such fields has
no text.
Values keep the document's own text, so that no digit of a number is lost. A value that other readers of JSON would
refuse (NaN, an infinity, a name twice in one object, more than DEEPEST levels), or that is longer than Python may read,
is kept as a string of its text.

The documents are those that Arrow's parser has taken. It takes `Inf`, `-NaN` and any depth, and Python's reader does
not: what that refuses is found by its end alone.
"""

from __future__ import annotations

import functools
import json
from typing import Any, Final

import pyarrow as pa

from kclient.spark.decoding.json_text import (
    MOST_READ,
    REFUSALS,
    depth_of,
    end_of,
    past_space,
    past_value,
    scan,
    scanner,
)

DEEPEST: Final = 500
"""Levels of a value that is kept as JSON. Spark reads 1,000 at most."""


def new_fields_of(values: pa.Array, kind: pa.DataType) -> dict[int, str]:
    """Return, by row, the fields of each document that the type leaves out. Every value has been parsed as the type."""
    texts = (
        (row, "" if value is None else _text(value.decode(), kind))
        for row, value in enumerate(values.to_pylist())
    )
    return {row: text for row, text in texts if text}


def _text(text: str, kind: pa.DataType) -> str:
    return _left(text, past_space(text, 0), kind)[0]


def _left(text: str, at: int, kind: pa.DataType) -> tuple[str, int]:
    """Return what the type leaves out of the value at `at`, empty for nothing, and where the value ends."""
    sign = text[at : at + 1]
    if sign == "{" and pa.types.is_struct(kind):
        return _left_of_object(text, at, kind)
    if sign == "[" and pa.types.is_list(kind) and has_struct(kind):
        return _left_of_array(text, at, kind.value_type)
    return "", past_value(text, at)


@functools.lru_cache(maxsize=256)
def has_struct(kind: pa.DataType) -> bool:
    """Return whether values of the type can have fields that it does not name."""
    return pa.types.is_struct(kind) or (pa.types.is_list(kind) and has_struct(kind.value_type))


@functools.lru_cache(maxsize=256)
def _fields(kind: pa.StructType) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in kind}


def _left_of_object(text: str, at: int, kind: pa.StructType) -> tuple[str, int]:
    known, kept = _fields(kind), dict[str, str]()
    at, sign = past_space(text, at + 1), ","
    if text[at : at + 1] == "}":
        return "", at + 1
    while sign == ",":
        begin = at
        _behind(text, at, '"')  # only a string is a name
        name, at = scan(text, at)
        label = text[begin:at]
        at = past_space(text, _behind(text, past_space(text, at), ":"))
        value, at = _left(text, at, known[name]) if name in known else _value(text, at)
        if value:
            kept[name] = f"{label}:{value}"
        sign, at = _next(text, at)
    return "{" + ",".join(kept.values()) + "}" if kept else "", _behind(text, at, "}")


def _left_of_array(text: str, at: int, item: pa.DataType) -> tuple[str, int]:
    found: list[str] = []
    at, sign = past_space(text, at + 1), ","
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
    at = past_space(text, at)
    sign = text[at : at + 1]
    return sign, past_space(text, at + 1) if sign == "," else at


def _value(text: str, at: int) -> tuple[str, int]:
    """Return a value's text; as a JSON string if other readers of JSON would refuse it."""
    if len(text) > MOST_READ:
        value = text[at : end_of(text, at)]
        return _value(value, 0)[0] if len(value) <= MOST_READ else _quoted(value), at + len(value)
    try:
        end = strict_scan(text, at)[1]
        is_strict = not _is_deep(text[at:end])
    except (_NotStrict, *REFUSALS):
        end, is_strict = past_value(text, at), False
    return text[at:end] if is_strict else _quoted(text[at:end]), end


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _is_deep(text: str) -> bool:
    return text.count("[") + text.count("{") > DEEPEST and depth_of(text) > DEEPEST


def _behind(text: str, at: int, sign: str) -> int:
    if text[at : at + 1] != sign:
        raise ValueError(f"no {sign}")
    return at + 1


class _NotStrict(Exception):
    """Raised for NaN, an infinity, or a field that occurs twice."""


def _constant(_: str) -> None:
    raise _NotStrict


def _once(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) < len(pairs):
        raise _NotStrict


strict_scan: Final = scanner(parse_constant=_constant, object_pairs_hook=_once)
