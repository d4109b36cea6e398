"""What a producer is told that somebody took over its transactional id: older versions have no word for that."""

from __future__ import annotations

from typing import Final

from kclient.embedded.api_error import ApiError
from kclient.embedded.request_context import RequestContext
from kclient.protocol.errors import INVALID_PRODUCER_EPOCH, PRODUCER_FENCED

FENCED_SINCE: Final = 2  # of AddPartitionsToTxn, AddOffsetsToTxn and EndTxn


def error_of(call: RequestContext, refused: ApiError, fenced_since: int) -> int:
    """The code as a client of this version knows it."""
    if refused.code == PRODUCER_FENCED and call.version < fenced_since:
        return INVALID_PRODUCER_EPOCH
    return refused.code
