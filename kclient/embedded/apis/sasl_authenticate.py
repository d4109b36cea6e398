"""SaslAuthenticate: one token of the SASL exchange that SaslHandshake began."""

from __future__ import annotations

from kclient.embedded import sasl
from kclient.embedded.api_error import ApiError
from kclient.embedded.auth import AuthenticationFailedError
from kclient.embedded.request_context import RequestContext
from kclient.errors import ProtocolDecodeError
from kclient.generated.sasl_authenticate_request import SaslAuthenticateRequest
from kclient.generated.sasl_authenticate_response import SaslAuthenticateResponse
from kclient.protocol.errors import ILLEGAL_SASL_STATE, SASL_AUTHENTICATION_FAILED


async def handle(context: RequestContext, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    """Return the response to a token. A failure closes the connection after the response."""
    connection = context.connection
    exchange = connection.sasl
    if exchange is None and not connection.authenticated:
        # The connection ends without a response.
        raise ProtocolDecodeError("a token came before the handshake")
    if exchange is None:
        late = "SaslAuthenticate request received after successful authentication"
        raise ApiError(ILLEGAL_SASL_STATE, late)
    try:
        response = SaslAuthenticateResponse(auth_bytes=sasl.answer(connection, exchange, request.auth_bytes))
    except AuthenticationFailedError as exc:
        raise ApiError(SASL_AUTHENTICATION_FAILED, str(exc)) from None
    response.session_lifetime_ms = exchange.lifetime_ms
    return response


def error_response(
    context: RequestContext, request: SaslAuthenticateRequest, error: ApiError
) -> SaslAuthenticateResponse:
    """Return the error message at the top level."""
    context.connection.last_response = error.code == SASL_AUTHENTICATION_FAILED
    return SaslAuthenticateResponse(error_code=error.code, error_message=error.message)
