"""SASL on a connection: SaslHandshake begins an exchange, whose tokens authenticate the connection.

    SaslHandshake ─▶ SaslAuthenticate … ─▶ authenticated ─▶ (session near its end) SaslHandshake ─▶ …

An authenticated connection may authenticate again for the same user with the same mechanism, if sessions expire at all,
and not twice within a second (KIP-368). A failure closes the connection after its response.
"""

from __future__ import annotations

from typing import Final

from kclient.embedded.api_error import ApiError
from kclient.embedded.auth import Authentication, AuthenticationFailedError
from kclient.embedded.connection import ServerConnection
from kclient.errors import ProtocolDecodeError
from kclient.network.transport import SMALLEST_FRAME
from kclient.protocol.errors import ILLEGAL_SASL_STATE

NONCE_BYTES: Final = 18
LEAST_SECONDS: Final = 1.0  # between two renewals of one session


def may_begin(connection: ServerConnection) -> bool:
    """Whether a handshake is allowed: on a new connection, or to re-authenticate (KIP-368)."""
    if not connection.listener.mechanisms:
        return False
    if not connection.authenticated:
        return True
    renewed_at, now = connection.renewed_at, connection.broker.state.clock.now()
    long_ago = renewed_at is None or now - renewed_at >= LEAST_SECONDS
    return connection.session_ends is not None and long_ago


def require_turn(connection: ServerConnection, api: str) -> None:
    """Raise ApiError during a SASL exchange for any request but its tokens."""
    if connection.sasl is not None and api != "SaslAuthenticate":
        connection.last_response = True
        raise ApiError(ILLEGAL_SASL_STATE)


def begin(connection: ServerConnection, mechanism: str, *, raw: bool) -> None:
    """Begin a SASL exchange; `raw` tokens have no Kafka headers."""
    state = connection.broker.state
    if connection.authenticated:
        connection.renewed_at = state.clock.now()
    nonce = state.runtime.random_bytes(NONCE_BYTES).hex()
    now = state.runtime.wall_clock()
    exchange = connection.sasl = Authentication(state.users, mechanism, nonce, state.oauth, now)

    async def answer_raw(frame: memoryview) -> bytes:
        try:
            return answer(connection, exchange, bytes(frame))
        except AuthenticationFailedError as exc:
            # Old clients get no error response.
            raise ProtocolDecodeError(f"not authenticated: {exc}") from None

    if raw:
        connection.raw, connection.smallest = answer_raw, 0


def answer(connection: ServerConnection, exchange: Authentication, token: bytes) -> bytes:
    """Return the response to a token; after the last one the connection is authenticated, and the exchange ends.

    Raise AuthenticationFailedError, or ProtocolDecodeError if the connection closes without a response.
    """
    if connection.authenticated and connection.mechanism != exchange.mechanism:
        raise ProtocolDecodeError("a session is renewed by the mechanism that it began with")
    response = exchange.step(token)
    if exchange.username is not None:
        _succeed(connection, exchange)
    return response


def _lifetime_ms(connection: ServerConnection, exchange: Authentication) -> int:
    """Return how long the session lasts: no longer than `connections.max.reauth.ms`, nor than a token. 0: no limit."""
    state = connection.broker.state
    most = state.settings.connections_max_reauth_ms
    if exchange.expires_at is None:
        return most
    left = max(0, int((exchange.expires_at - state.runtime.wall_clock()) * 1000))
    return min(left, most) if most > 0 else left


def _succeed(connection: ServerConnection, exchange: Authentication) -> None:
    principal = f"User:{exchange.username}"
    if connection.authenticated and connection.principal != principal:
        raise AuthenticationFailedError(
            "Cannot change principals during re-authentication from "
            f"{connection.principal.replace(':', '.')}: {principal.replace(':', '.')}"
        )
    lifetime_ms = exchange.lifetime_ms = _lifetime_ms(connection, exchange)
    connection.principal, connection.mechanism = principal, exchange.mechanism
    connection.authenticated = True
    # Expired by the token's end, within the skew, the session has already ended; 0 tells the client nothing of that.
    limited = lifetime_ms > 0 or exchange.expires_at is not None
    connection.session_ends = connection.broker.state.clock.now() + lifetime_ms / 1000 if limited else None
    connection.sasl, connection.raw, connection.smallest = None, None, SMALLEST_FRAME
