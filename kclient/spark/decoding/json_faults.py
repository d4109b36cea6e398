"""Why a JSON document is certainly bad, found for one document and quickly: a call of Arrow's parser is slow.

It only says what the parser would say too. Where that is not certain (a field twice, a half of a pair, Inf, a decimal
with too many digits) it says nothing, and the parser decides.
"""

from __future__ import annotations

import datetime
import functools
import json
import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pyarrow as pa

from kclient.spark.decoding.text import NO_TEXT

NO_JSON: Final = "it is no JSON"
NOT_ONE: Final = "it is not exactly one JSON document"
NOT_A_TIME: Final = "a date or time in it is not ISO 8601"
UNSURE: Final = ("\0", "Inf")  # other readers of JSON differ here
Check: TypeAlias = Callable[[Any], str | None]
DAY: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")


class _Whole(str):
    """The text of a number without point and exponent."""

    __slots__ = ()


class _Number(str):
    """The text of any other number."""

    __slots__ = ()


_READ: Final = json.JSONDecoder(parse_int=_Whole, parse_float=_Number, parse_constant=_Number, strict=False)


def fault_of(data: bytes, kind: pa.DataType) -> str | None:
    """Why the document is no value of the type; None where it is one, or where only the parser knows."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return NO_TEXT
    if any(sign in text for sign in UNSURE):
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
    """What finds the fault of a value of the type: made once, as asking a type is slow."""
    wanted, inner = _form(kind), _inner_check(kind, path)
    told = f"field {path} is of another type than {_name(kind)}" if path else f"it is no {_name(kind)}"

    def check(value: Any) -> str | None:
        if value is None:
            return None
        if type(value) not in wanted:
            return told
        return inner(value) if inner is not None else None

    return check


def _inner_check(kind: pa.DataType, path: str) -> Check | None:
    """The same for a value that is of the right form."""
    if pa.types.is_struct(kind):
        return _fields_check(
            [(field.name, _check_of(field.type, f"{path}.{field.name}".lstrip("."))) for field in kind]
        )
    if pa.types.is_list(kind):
        item = _check_of(kind.value_type, f"{path}[]")
        return lambda values: next((found for each in values if (found := item(each))), None)
    if pa.types.is_integer(kind):
        told, bits = f"a value in it does not fit the type {kind}", kind.bit_width
        return lambda value: None if _fits(value, bits) else told
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
    """What a value of the type is in Python, as `_READ` makes it."""
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
    """False for what does not begin with a day; another form of the year is not looked at."""
    match = DAY.match(text)
    if match is None:
        return text[:1] in "+-" and text != ""
    year, month, day = map(int, match.groups())
    try:
        datetime.date(max(year, 1), month, day)
    except ValueError:
        return year < 1
    return True
