"""From the schema's names to Python's: ThrottleTimeMs is throttle_time_ms, and throttleTimeMs in JSON."""

from __future__ import annotations

import keyword
import re

# what else a generated module knows by a capitalised name, and what every class already has
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
    """The Python name of a field, struct or message; a keyword gets an underscore."""
    snake = _WORD_START.sub("_", name).lower()
    return f"{snake}_" if keyword.iskeyword(snake) else snake


def camel_case(name: str) -> str:
    """The JSON name of a field: the first letter lowered, nothing else changed."""
    return name[0].lower() + name[1:]


def singular(name: str, taken: frozenset[str]) -> str:
    """What one element of a list is called: topics → topic; `_item` behind names without a plural s."""
    one = name.removesuffix("s")
    return one if one != name and one not in taken and not keyword.iskeyword(one) else f"{name}_item"


def natural_order(name: str) -> tuple[int, str]:
    """Constants, classes, functions; numbers by value: how the linter sorts imported names."""
    rank = 0 if name.isupper() else 1 if name[0].isupper() else 2
    return rank, re.sub(r"\d+", lambda digits: digits[0].zfill(4), name)
