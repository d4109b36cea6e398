"""Defaults: always a string in the schema, a value of the field's type here."""

from __future__ import annotations

from codegen.spec import INTEGERS, Scalar
from codegen.versions import Versions

_BOOLS = {"true": True, "false": False}
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
    """The default's value and whether it is null; ValueError says why the text does not fit the type.

    A records field is null by default in every version; an array is empty and a struct has its own defaults,
    unless the text is `"null"` (`composite` is true for both).
    """
    if text is not None and not isinstance(text, str):
        raise ValueError(f"default {text!r} is not a string")
    if text == "null":
        if not nullable:
            raise ValueError("default is null, but the field never is")
        return None, True
    if composite or element in ("records", "bytes", "uuid"):
        if text:
            raise ValueError(f"default {text!r} does not fit {element}")
        return (
            (None, element == "records" and not composite)
            if composite or element == "records"
            else (_EMPTY[element], False)
        )
    return (_EMPTY[element] if text is None else _scalar(text, element)), False


def _scalar(text: str, element: str) -> Scalar:
    if element == "string":
        return text
    if element == "bool" and text in _BOOLS:
        return _BOOLS[text]
    try:
        if element == "float64":
            return float(text)
        value = int(text, 16 if text.lower().startswith(("0x", "-0x")) else 10)
    except ValueError:
        raise ValueError(f"default {text!r} does not fit {element}") from None
    if element not in INTEGERS or not _fits(value, element):
        raise ValueError(f"default {text!r} does not fit {element}")
    return value


def _fits(value: int, element: str) -> bool:
    bits = 8 * INTEGERS[element]
    if element.startswith("u"):
        return 0 <= value < 1 << bits
    return -(1 << bits - 1) <= value < 1 << bits - 1
