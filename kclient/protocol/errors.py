"""The error codes of the protocol: constants, and the properties of each code.

Messages hold codes as ints, which are compared with the constants of this module (`NOT_LEADER_OR_FOLLOWER`);
`error(code)` returns name and properties. Constants and table come from `schemas/errors.tsv`.
"""

from __future__ import annotations

from attrs import frozen

from kclient.generated.error_codes import *  # noqa: F403
from kclient.generated.error_codes import TABLE


@frozen
class ErrorCode:
    """One error code, as Java's client classifies it.

    `retriable`: a retry may succeed. `invalid_metadata`: fetch new metadata first. `refresh_retriable`: Java's
    RefreshRetriableException.
    """

    code: int
    name: str
    retriable: bool
    invalid_metadata: bool
    refresh_retriable: bool


_ERRORS = {row[0]: ErrorCode(*row) for row in TABLE}


def error(code: int) -> ErrorCode:
    """Return the properties of a code; an unknown code gets the name UNKNOWN_SERVER_ERROR and keeps its number."""
    return _ERRORS.get(code) or ErrorCode(code, "UNKNOWN_SERVER_ERROR", False, False, False)
