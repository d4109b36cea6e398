"""Defaults: always a string in the schema, a value of the field's type here.

Without one, a number is 0, a string or an array is empty, a struct has all its fields at their defaults, and
records are null.
"""

from __future__ import annotations

import re

from codegen.spec import INTEGERS, Scalar
from codegen.versions import Versions

_BOOLS = {"true": True, "false": False}
_INTEGER = re.compile(r"-?(0[xX][0-9a-fA-F]+|\d+)")
_DECIMAL = re.compile(r"-?\d+(\.\d+)?")
_EMPTY: dict[str, Scalar] = {
    "bool": False,
    "float64": 0.0,
    "string": "",
    "bytes": b"",
    "uuid": bytes(16),
    **dict.fromkeys(INTEGERS, 0),
}


def parse_default(
    text: object, element: str, composite: bool, nullable: Versions
) -> tuple[Scalar | None, bool]:
    """Return the default's value and whether it is null. Raise ValueError if the text does not fit the type.

    `composite` is true for arrays and structs: their default is None here, as it takes no value to describe it.
    """
    if text == "null":
        if not nullable:
            raise ValueError("default is null, but the field never is")
        return None, True
    if text is None:
        return (None, False) if composite else (_EMPTY.get(element), element == "records")
    if not isinstance(text, str):
        raise ValueError(f"default {text!r} is not a string")
    if composite:
        raise ValueError(f"default {text!r} does not fit an array or a struct")
    return _parse_scalar(text, element), False


def _parse_scalar(text: str, element: str) -> Scalar:
    if element == "string":
        return text
    if element == "bool" and text in _BOOLS:
        return _BOOLS[text]
    if element == "float64" and _DECIMAL.fullmatch(text):
        return float(text)
    if element in INTEGERS and _INTEGER.fullmatch(text):
        value = int(text, 0 if "x" in text.lower() else 10)
        if _fits(value, element):
            return value
    raise ValueError(f"default {text!r} does not fit {element}")


def _fits(value: int, element: str) -> bool:
    bits = 8 * INTEGERS[element]
    if element.startswith("u"):
        return 0 <= value < 1 << bits
    return -(1 << bits - 1) <= value < 1 << bits - 1
