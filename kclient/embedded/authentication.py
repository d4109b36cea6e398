"""The broker's side of SASL on one connection: which mechanism, whose turn, and when the session ends.

    SaslHandshake ─▶ SaslAuthenticate … ─▶ authenticated ─▶ (session near its end) SaslHandshake ─▶ …

A connection that was authenticated once may be so again for the same user by the same mechanism, if sessions end at
all, and not twice within a second (KIP-368). Whatever fails ends the connection behind its answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kclient.embedded.refusal import Refused
from kclient.errors import ProtocolDecodeError
from kclient.protocol.errors import ILLEGAL_SASL_STATE
from kclient.security import SCRAM_DIGESTS, ScramError, ScramServer, plain_user

if TYPE_CHECKING:
    from kclient.embedded.call import Call
    from kclient.embedded.connection import ServerConnection

NONCE_BYTES: Final = 18
LEAST_SECONDS: Final = 1.0  # between two renewals of one session


class Denied(Exception):
    """Not authenticated; the text is what Kafka tells the client."""


class Authentication:
    """One conversation."""

    def __init__(self, connection: ServerConnection, mechanism: str) -> None:
        self.mechanism = mechanism
        self.done = False
        self._connection = connection
        self._users = connection.broker.state.users
        nonce = connection.broker.state.runtime.random_bytes(NONCE_BYTES).hex()
        self._scram: ScramServer | None = None
        if mechanism in SCRAM_DIGESTS:
            self._scram = ScramServer(mechanism, lambda name: self._users.credential(mechanism, name), nonce)

    def step(self, token: bytes) -> bytes:
        """Answer a token; behind the last one the connection is the user's.

        Raises Denied, and ProtocolDecodeError where the connection ends without an answer.
        """
        if self._connection.authenticated and self._connection.mechanism != self.mechanism:
            raise ProtocolDecodeError("a session is renewed by the mechanism that it began with")
        if self._scram is None:
            self._succeed(self._plain(token))
            return b""
        try:
            answer = self._scram.step(token)
        except ScramError:
            raise Denied(
                "Authentication failed during authentication due to invalid credentials with SASL mechanism "
                f"{self.mechanism}"
            ) from None
        if self._scram.done:
            self._succeed(self._scram.username)
        return answer

    def _plain(self, token: bytes) -> str:
        try:
            user = plain_user(token)
        except ValueError as exc:
            raise Denied(f"Authentication failed: {exc}") from None
        if not self._users.admits(user):
            raise Denied("Authentication failed: Invalid username or password")
        return user.username

    def _succeed(self, name: str) -> None:
        connection = self._connection
        principal = f"User:{name}"
        if connection.authenticated and connection.principal != principal:
            raise Denied(
                "Cannot change principals during re-authentication from "
                f"{connection.principal.replace(':', '.')}: {principal.replace(':', '.')}"
            )
        state = connection.broker.state
        lifetime_ms = state.settings.connections_max_reauth_ms
        connection.principal, connection.mechanism = principal, self.mechanism
        connection.authenticated = self.done = True
        connection.session_ends = state.clock.now() + lifetime_ms / 1000 if lifetime_ms > 0 else None


def may_begin(connection: ServerConnection) -> bool:
    """Whether a handshake is in place now: at the start, or to renew a session that ends."""
    if not connection.listener.mechanisms:
        return False
    if not connection.authenticated:
        return True
    renewed_at, now = connection.renewed_at, connection.broker.state.clock.now()
    long_ago = renewed_at is None or now - renewed_at >= LEAST_SECONDS
    return connection.session_ends is not None and long_ago


def require_turn(call: Call) -> None:
    """While a conversation is under way nothing but its tokens is in place. Raises Refused."""
    connection = call.connection
    if connection.sasl is not None and call.api != "SaslAuthenticate":
        connection.last_answer = True
        raise Refused(ILLEGAL_SASL_STATE)


def begin(connection: ServerConnection, mechanism: str, *, raw: bool) -> None:
    """Wait for the first token; `raw` ones come without Kafka's headers."""
    if connection.authenticated:
        connection.renewed_at = connection.broker.state.clock.now()
    authentication = connection.sasl = Authentication(connection, mechanism)

    async def token(frame: memoryview) -> bytes:
        try:
            answer = authentication.step(bytes(frame))
        except Denied as exc:
            raise ProtocolDecodeError(f"not authenticated: {exc}") from None  # old clients are told nothing
        if authentication.done:
            end(connection)
        return answer

    if raw:
        connection.raw, connection.smallest = token, 0


def end(connection: ServerConnection) -> None:
    """The conversation is over."""
    from kclient.network.transport import SMALLEST_FRAME

    connection.sasl, connection.raw, connection.smallest = None, None, SMALLEST_FRAME
