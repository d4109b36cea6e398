"""The conversation by which a broker learns who we are, and by which it proves that it knows us.

    SaslHandshake            the mechanism's name; the broker must offer it
    SaslAuthenticate …       the mechanism's tokens, one request and one answer for each step

After version 0 of the handshake the tokens go without Kafka's headers. The mechanism is the configured one, whatever
else a broker offers. How many steps there are, the mechanism says: a broker that wants another one is refused, and a
success of which the mechanism has no proof is none. A session that ends is renewed on the same connection (KIP-368).
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, Protocol
from urllib.parse import unquote_to_bytes

import attrs

from kclient.errors import InternalError, ProtocolDecodeError
from kclient.generated.sasl_authenticate_request import SaslAuthenticateRequest
from kclient.generated.sasl_authenticate_response import SaslAuthenticateResponse
from kclient.generated.sasl_handshake_request import SaslHandshakeRequest
from kclient.generated.sasl_handshake_response import SaslHandshakeResponse
from kclient.log import get_logger
from kclient.network import sasl_failures as failures
from kclient.network.unreachable import Peer
from kclient.protocol.errors import ILLEGAL_SASL_STATE, NONE, UNSUPPORTED_SASL_MECHANISM
from kclient.protocol.message import Message
from kclient.runtime import Runtime
from kclient.security.plain import plain_token
from kclient.security.scram import Challenge, ScramClient, ScramError, salted_password
from kclient.security.secret import HiddenBytes, HiddenText, Secret

logger = get_logger("kclient.auth")

MAX_TOKEN_BYTES: Final = 1_048_576
NONCE_BYTES: Final = 24
DERIVE_SECONDS: Final = 10.0
ENCODED: Final = re.compile(r"[A-Za-z0-9+/_-]{4,}")
SHORTEST_SESSION_MS: Final = 1_000  # Kafka refuses a renewal within a second of the last one
NO_CODE: Final = re.compile(r"[^A-Za-z0-9+/_-]+")
RENEW_AT: Final = (0.85, 0.95)  # of a session's lifetime


class Line(Protocol):
    """What the conversation needs of a connection. `ask` goes ahead of all other requests."""

    peer: Peer

    def version_for(self, message: type[Message], lowest: int = 0, highest: int | None = None) -> int: ...

    async def ask(self, message: Message, version: int, deadline: float) -> Message: ...

    async def exchange_raw(self, token: bytes, deadline: float) -> bytes: ...


@attrs.frozen
class Credentials:
    """Who we are."""

    mechanism: str
    username: str
    password: Secret
    token_auth: bool = False  # the user is a delegation token
    max_iterations: int = 131_072


class Authenticator:
    """Authenticates connections, each as often as its broker wants."""

    def __init__(self, credentials: Credentials, runtime: Runtime, timeout: float) -> None:
        self._credentials = credentials
        self._runtime = runtime
        self._timeout = timeout  # seconds for one conversation

    async def __call__(self, line: Line) -> float | None:
        """Authenticate; the seconds after which it must be done again, None for never. Raises ConnectError."""
        conversation = _Conversation(
            line, self._credentials, self._runtime, self._runtime.now() + self._timeout
        )
        try:
            lifetime_ms = await conversation.run()
        except ScramError as exc:  # a kind of ValueError: it comes first
            raise failures.not_proved(line.peer, self._credentials.mechanism, str(exc)) from None
        except ProtocolDecodeError as exc:
            why = f"its answer cannot be read: {exc.text}"
            raise failures.not_proved(line.peer, self._credentials.mechanism, why) from exc
        except ValueError as exc:
            raise failures.no_credentials(line.peer, self._credentials.mechanism, str(exc)) from None
        logger.debug("%s: authenticated with %s", line.peer, self._credentials.mechanism)
        if lifetime_ms <= 0:
            return None
        if lifetime_ms < SHORTEST_SESSION_MS:
            raise failures.session_too_short(line.peer, self._credentials.mechanism, lifetime_ms)
        return lifetime_ms / 1000 * self._runtime.rng.uniform(*RENEW_AT)


@attrs.define(eq=False, repr=False)
class _Conversation:
    """One authentication on one connection."""

    line: Line
    credentials: Credentials
    runtime: Runtime
    deadline: float
    raw: bool = False  # tokens without headers
    lifetime_ms: int = 0

    @property
    def mechanism(self) -> str:
        return self.credentials.mechanism

    async def run(self) -> int:
        """All of it; the lifetime of the session in milliseconds, 0 for no limit."""
        await self._handshake()
        if self.mechanism == "PLAIN":
            await self._plain()
        else:
            await self._scram()
        return self.lifetime_ms

    async def _handshake(self) -> None:
        version = self.line.version_for(SaslHandshakeRequest)
        answer = await self._ask(
            SaslHandshakeRequest(mechanism=self.mechanism), version, SaslHandshakeResponse
        )
        if answer.error_code == UNSUPPORTED_SASL_MECHANISM:
            raise failures.not_offered(self.line.peer, self.mechanism, answer.mechanisms)
        if answer.error_code == ILLEGAL_SASL_STATE:
            raise failures.not_asked_for(self.line.peer, self.mechanism)
        if answer.error_code != NONE:
            raise failures.refused(self.line.peer, self.mechanism, answer.error_code, "")
        if self.mechanism not in answer.mechanisms:
            raise failures.not_offered(self.line.peer, self.mechanism, answer.mechanisms)
        self.raw = version == 0

    async def _plain(self) -> None:
        # A provider may have to read a file; and what runs off the loop gets the secret, not its text.
        password = HiddenText(await self.runtime.offload(self.credentials.password.reveal))
        rest = await self._token(plain_token(self.credentials.username, password))
        if rest:
            raise failures.not_proved(
                self.line.peer, self.mechanism, "the broker goes on after the last token"
            )

    async def _scram(self) -> None:
        credentials = self.credentials
        nonce = base64.b64encode(self.runtime.random_bytes(NONCE_BYTES)).decode()
        client = ScramClient(
            self.mechanism,
            credentials.username,
            nonce,
            max_iterations=credentials.max_iterations,
            token_auth=credentials.token_auth,
        )
        challenge = client.challenge(await self._token(client.first()))
        salted = HiddenBytes(await self._derive(challenge))
        client.verify(await self._token(client.final(salted)))

    async def _derive(self, challenge: Challenge) -> bytes:
        try:
            async with asyncio.timeout(DERIVE_SECONDS):
                return await self.runtime.offload(
                    _salted, self.mechanism, self.credentials.password, challenge
                )
        except TimeoutError as exc:
            raise failures.too_slow(self.line.peer, self.mechanism, DERIVE_SECONDS) from exc

    async def _token(self, token: bytes) -> bytes:
        """Send one token and return the broker's."""
        if self.raw:
            return self._bounded(await self.line.exchange_raw(token, self.deadline))
        version = self.line.version_for(SaslAuthenticateRequest)
        request = SaslAuthenticateRequest(auth_bytes=token)
        answer = await self._ask(request, version, SaslAuthenticateResponse)
        if answer.error_code != NONE:
            said = self._hidden(answer.error_message or "")
            raise failures.refused(self.line.peer, self.mechanism, answer.error_code, said)
        self.lifetime_ms = answer.session_lifetime_ms
        return self._bounded(answer.auth_bytes)

    def _bounded(self, token: bytes) -> bytes:
        if len(token) > MAX_TOKEN_BYTES:
            raise failures.not_proved(self.line.peer, self.mechanism, f"its token has {len(token)} bytes")
        return token

    def _hidden(self, said: str) -> str:
        """What the broker says, without the password that it may have echoed, as it is or within an encoded token."""
        password = self.credentials.password.reveal()
        said = said.replace(password, "***")
        if any(password.encode() in decoded for decoded in _decoded(said)):
            return "(not shown, for it repeats the password)"
        return said

    async def _ask(self, message: Message, version: int, kind: type[Any]) -> Any:
        answer = await self.line.ask(message, version, self.deadline)
        if not isinstance(answer, kind):
            raise InternalError(f"{message.NAME} was answered by {type(answer).__name__}")
        return answer


def _decoded(text: str) -> Iterator[bytes]:
    """What a text is as base64, as hex and percent-encoded: its words, from each place where a group may begin.

    Spaces may have been put into an encoded text, so it is looked at without them, too.
    """
    yield unquote_to_bytes(text)
    for word in ENCODED.findall(f"{text} {NO_CODE.sub('', text)}"):
        for shift in range(4):
            code = word[shift:].replace("+", "-").replace("/", "_")
            with suppress(ValueError):
                yield base64.urlsafe_b64decode(
                    code[: len(code) - (len(code) % 4 == 1)] + "=" * (-len(code) % 4)
                )
            with suppress(ValueError):
                yield bytes.fromhex(code[: len(code) // 2 * 2])


def _salted(mechanism: str, password: Secret, challenge: Challenge) -> bytes:
    return salted_password(mechanism, password.reveal(), challenge)
