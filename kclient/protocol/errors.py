"""The error codes of the wire: an int in every message, a name and a treatment here.

On the wire layer codes stay ints and are compared with the constants of this module (`NOT_LEADER_OR_FOLLOWER`);
`error(code)` tells the rest. Constants and table come from `schemas/errors.tsv`.
"""

from __future__ import annotations

from attrs import frozen

from kclient.generated.error_codes import *  # noqa: F403
from kclient.generated.error_codes import TABLE


@frozen
class ErrorCode:
    """One error code, as Java's client classifies it.

    `retriable`: trying again may help. `invalid_metadata`: fetch new metadata first. `refresh_retriable`: Java's
    RefreshRetriableException.
    """

    code: int
    name: str
    retriable: bool
    invalid_metadata: bool
    refresh_retriable: bool


_ERRORS = {row[0]: ErrorCode(*row) for row in TABLE}


def error(code: int) -> ErrorCode:
    """What a code means; one that is unknown here is UNKNOWN_SERVER_ERROR with its number kept."""
    return _ERRORS.get(code) or ErrorCode(code, "UNKNOWN_SERVER_ERROR", False, False, False)
