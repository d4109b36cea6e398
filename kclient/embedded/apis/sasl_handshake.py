"""SaslHandshake: select the SASL mechanism. After version 0 the tokens have no Kafka headers."""

from __future__ import annotations

from typing import Final

from kclient.embedded import sasl
from kclient.embedded.api_error import ApiError
from kclient.embedded.request_context import RequestContext
from kclient.generated.sasl_handshake_request import SaslHandshakeRequest
from kclient.generated.sasl_handshake_response import SaslHandshakeResponse
from kclient.protocol.errors import ILLEGAL_SASL_STATE, UNSUPPORTED_SASL_MECHANISM

FRAMED_SINCE: Final = 1


async def handle(context: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Accept the mechanism if the listener has it."""
    connection = context.connection
    if not sasl.may_begin(connection):
        raise ApiError(ILLEGAL_SASL_STATE)
    if request.mechanism not in connection.listener.mechanisms:
        connection.last_response = True
        return SaslHandshakeResponse(
            error_code=UNSUPPORTED_SASL_MECHANISM, mechanisms=list(connection.listener.mechanisms)
        )
    sasl.begin(connection, request.mechanism, raw=context.version < FRAMED_SINCE)
    return SaslHandshakeResponse(mechanisms=list(connection.listener.mechanisms))


def error_response(
    context: RequestContext, request: SaslHandshakeRequest, error: ApiError
) -> SaslHandshakeResponse:
    """Return the error code at the top level."""
    return SaslHandshakeResponse(error_code=error.code)
