"""Deserializers that need no schema."""

from __future__ import annotations

import json
from typing import Any, Final

from kclient.deserializers.elements import MAX_ELEMENTS, BadValueError
from kclient.types import Headers

ELEMENT_SIGNS: Final = (b",", b"[", b"{")


def text(topic: str, headers: Headers, data: bytes) -> str:
    """Return UTF-8 as text. Raise BadValueError for bytes that are not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as exc:
        raise BadValueError(f"it is not UTF-8, from byte {exc.start} on") from None


def json_value(topic: str, headers: Headers, data: bytes) -> Any:
    """Return what one JSON document in UTF-8 holds. Raise BadValueError for anything else, NaN among it.

    A document with more than a million commas and opening brackets is refused, as each may be an object of 60 bytes.
    """
    return parse_json(data)


def parse_json(data: bytes) -> Any:
    """Return what one JSON document in UTF-8 holds. Raise BadValueError."""
    if len(data) > MAX_ELEMENTS and sum(map(data.count, ELEMENT_SIGNS)) > MAX_ELEMENTS:
        raise BadValueError(f"it has more than {MAX_ELEMENTS:,} elements")
    try:
        return json.loads(data.decode(), parse_constant=_refuse)
    except BadValueError:
        raise
    except UnicodeDecodeError as exc:
        raise BadValueError(f"it is not UTF-8, from byte {exc.start} on") from None
    except json.JSONDecodeError as exc:
        raise BadValueError(f"it is not JSON: {exc.msg} at character {exc.pos}") from None
    except (ValueError, RecursionError) as exc:  # a number of thousands of digits; brackets inside brackets
        raise BadValueError(f"it is not JSON that can be read ({type(exc).__name__})") from None


def _refuse(constant: str) -> Any:
    raise BadValueError(f"it has {constant}, which JSON does not know")
