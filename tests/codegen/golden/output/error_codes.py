"""The error codes of the wire: a constant for each, and how Java's client treats it.

Generated from schemas/errors.tsv by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

from typing import Final

UNKNOWN_SERVER_ERROR: Final = -1
NONE: Final = 0
NOT_LEADER_OR_FOLLOWER: Final = 6

# code, name, retriable, invalid metadata, refresh and retry
TABLE: Final[tuple[tuple[int, str, bool, bool, bool], ...]] = (
    (-1, "UNKNOWN_SERVER_ERROR", False, False, False),
    (0, "NONE", False, False, False),
    (6, "NOT_LEADER_OR_FOLLOWER", True, True, False),
)
