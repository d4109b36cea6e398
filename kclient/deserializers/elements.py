"""How many elements a value may hold: counted before it is decoded, because a byte or two can be a whole object.

0A 00  0A 00  0A 00     in protobuf: three messages in a repeated field, each with all its fields
"""

from __future__ import annotations

from typing import Final

from kclient.text import printable

MAX_ELEMENTS: Final = 1_000_000


class BadValueError(ValueError):
    """Raised for bytes that are no value of their schema; the text says why, without any part of the value."""


class TooManyElements(Exception):
    """Raised for a value with more elements than the limit."""


class ElementBudget:
    """Counts how many elements a value may still hold."""

    __slots__ = ("left",)

    def __init__(self, limit: int) -> None:
        self.left: int = limit

    def take(self, elements: int) -> None:
        """Subtract elements. Raises TooManyElements below zero."""
        self.left -= elements
        if self.left < 0:
            raise TooManyElements


def too_many(limit: int, option: str) -> str:
    """Return the reason of a bad value with too many elements; `option` names what sets the limit."""
    return f"it holds more than {limit:,} elements ({option})"


def reason_of(problem: Exception) -> str:
    """Return a library's error text for a schema, short enough for each bad record to repeat it."""
    return f"{type(problem).__name__}: {printable(str(problem))}"
