"""Turns the schema's names into Python's: ThrottleTimeMs is throttle_time_ms, and throttleTimeMs in JSON."""

from __future__ import annotations

import keyword
import re

# other capitalised names in a generated module, and the attributes of every class
RESERVED = frozenset(
    {
        "Add",
        "Buffer",
        "ClassVar",
        "Codec",
        "Factory",
        "Field",
        "IsFlexible",
        "Malformed",
        "Message",
        "Self",
        "Struct",
        "UnknownTags",
        "Unwritable",
        "Uuid",
    }
)
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(name: str) -> str:
    """Return the Python name of a field, struct or message; a keyword gets an underscore."""
    snake = _WORD_START.sub("_", name).lower()
    return f"{snake}_" if keyword.iskeyword(snake) else snake


def camel_case(name: str) -> str:
    """Return the JSON name of a field: the schema's name with the first letter lowered."""
    return name[0].lower() + name[1:]


def singular(name: str, taken: frozenset[str]) -> str:
    """Return the name of one element of a list: topics → topic; `_item` is appended to names without a plural s."""
    one = name.removesuffix("s")
    return one if one != name and one not in taken and not keyword.iskeyword(one) else f"{name}_item"


def natural_order(name: str) -> tuple[int, str]:
    """Constants, classes, functions; numbers by value: how the linter sorts imported names."""
    rank = 0 if name.isupper() else 1 if name[0].isupper() else 2
    return rank, re.sub(r"\d+", lambda digits: digits[0].zfill(4), name)
