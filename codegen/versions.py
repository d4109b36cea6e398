"""Version ranges as closed intervals: `"3-5"`, `"4"`, `"2+"` (no end) and `"none"` (empty)."""

from __future__ import annotations

import re

from attrs import frozen

_RANGE = re.compile(r"(\d+)(?:(\+)|-(\d+))?")
_NO_END = 32767  # a version is an int16 on the wire


@frozen
class Versions:
    """The versions from `lowest` to `highest`, both included; empty when `lowest` is above `highest`."""

    lowest: int
    highest: int

    def __contains__(self, version: int) -> bool:
        return self.lowest <= version <= self.highest

    def __bool__(self) -> bool:
        return self.lowest <= self.highest

    def __and__(self, other: Versions) -> Versions:
        both = Versions(max(self.lowest, other.lowest), min(self.highest, other.highest))
        return both or NONE

    def __str__(self) -> str:
        return f"{self.lowest}-{self.highest}" if self else "none"

    @property
    def open(self) -> bool:
        return self.highest == _NO_END

    def numbers(self) -> range:
        return range(self.lowest, self.highest + 1)


NONE = Versions(0, -1)


def parse_versions(text: object) -> Versions:
    """Parse a range. Raise ValueError if it is invalid."""
    if text == "none":
        return NONE
    match = _RANGE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"{text!r} is not a version range: write 3, 3-5, 3+ or none")
    lowest = int(match[1])
    highest = _NO_END if match[2] else int(match[3] or match[1])
    if not lowest <= highest <= _NO_END:
        raise ValueError(f"version range {text!r} ends before it begins or above {_NO_END}")
    return Versions(lowest, highest)
