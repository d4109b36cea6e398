"""SASL authentication of a connection, and its renewal before the session ends (KIP-368).

    SaslHandshake            the mechanism's name; the broker must offer it
    SaslAuthenticate …       the mechanism's tokens, one request and one answer for each step

After version 0 of SaslHandshake, tokens are sent without Kafka's headers. Only the configured mechanism is used,
whatever else the broker offers. The mechanism defines the number of steps: authentication fails if the broker asks
for another one, or reports success before SCRAM has verified the server's signature.
"""

from __future__ import annotations

import asyncio
import base64
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, Protocol
from urllib.parse import unquote_to_bytes

import attrs

from kclient.config import Config
from kclient.errors import AuthenticationError, ConfigError, InternalError, KclientError, ProtocolDecodeError
from kclient.generated.sasl_authenticate_request import SaslAuthenticateRequest
from kclient.generated.sasl_authenticate_response import SaslAuthenticateResponse
from kclient.generated.sasl_handshake_request import SaslHandshakeRequest
from kclient.generated.sasl_handshake_response import SaslHandshakeResponse
from kclient.log import get_logger
from kclient.network.errors import where
from kclient.network.peer import Peer
from kclient.protocol.errors import ILLEGAL_SASL_STATE, NONE, UNSUPPORTED_SASL_MECHANISM, error
from kclient.protocol.message import Message
from kclient.runtime import Runtime
from kclient.security.jaas import parse_jaas
from kclient.security.plain import plain_token
from kclient.security.scram import Challenge, ScramClient, ScramError, salted_password
from kclient.security.secret import HiddenBytes, HiddenText, Secret
from kclient.text import format_names, printable

logger = get_logger("kclient.auth")

MAX_TOKEN_BYTES: Final = 1_048_576
NONCE_BYTES: Final = 24
DERIVE_SECONDS: Final = 10.0
ENCODED: Final = re.compile(r"[A-Za-z0-9+/_-]{4,}")
SHORTEST_SESSION_MS: Final = 1_000  # Kafka refuses a renewal within a second of the last one
NO_CODE: Final = re.compile(r"[^A-Za-z0-9+/_-]+")
RENEW_AT: Final = (0.85, 0.95)  # of a session's lifetime


class SaslChannel(Protocol):
    """The methods of a connection that authentication uses. `ask` sends before all waiting requests."""

    peer: Peer

    def version_for(self, message: type[Message], lowest: int = 0, highest: int | None = None) -> int: ...

    async def ask(self, message: Message, version: int, deadline: float) -> Message: ...

    async def exchange_raw(self, token: bytes, deadline: float) -> bytes: ...


@attrs.frozen
class Credentials:
    """The client's mechanism, user and password."""

    mechanism: str
    username: str
    password: Secret
    token_auth: bool = False  # the user is a delegation token
    max_iterations: int = 131_072


class Authenticator:
    """Authenticates connections; called again by SaslReauthentication for each renewal."""

    def __init__(self, credentials: Credentials, runtime: Runtime, timeout: float) -> None:
        self._credentials = credentials
        self._runtime = runtime
        self._timeout = timeout  # seconds for one conversation

    async def __call__(self, line: SaslChannel) -> float | None:
        """Authenticate. Return the seconds until the next authentication, None for never. Raise ConnectError."""
        conversation = _Conversation(
            line, self._credentials, self._runtime, self._runtime.now() + self._timeout
        )
        try:
            lifetime_ms = await conversation.run()
        except ScramError as exc:  # a kind of ValueError: it comes first
            raise peer_not_authentic(line.peer, self._credentials.mechanism, str(exc)) from None
        except ProtocolDecodeError as exc:
            why = f"its answer cannot be read: {exc.text}"
            raise peer_not_authentic(line.peer, self._credentials.mechanism, why) from exc
        except ValueError as exc:
            raise _no_credentials(line.peer, self._credentials.mechanism, str(exc)) from None
        logger.debug("%s: authenticated with %s", line.peer, self._credentials.mechanism)
        if lifetime_ms <= 0:
            return None
        if lifetime_ms < SHORTEST_SESSION_MS:
            raise _session_too_short(line.peer, self._credentials.mechanism, lifetime_ms)
        return lifetime_ms / 1000 * self._runtime.rng.uniform(*RENEW_AT)


@attrs.define(eq=False, repr=False)
class _Conversation:
    """One authentication on one connection."""

    line: SaslChannel
    credentials: Credentials
    runtime: Runtime
    deadline: float
    raw: bool = False  # tokens without headers
    lifetime_ms: int = 0

    @property
    def mechanism(self) -> str:
        return self.credentials.mechanism

    async def run(self) -> int:
        """Authenticate and return the lifetime of the session in milliseconds, 0 for no limit."""
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
            raise _mechanism_not_offered(self.line.peer, self.mechanism, answer.mechanisms)
        if answer.error_code == ILLEGAL_SASL_STATE:
            raise _sasl_not_enabled(self.line.peer, self.mechanism)
        if answer.error_code != NONE:
            raise _credentials_refused(self.line.peer, self.mechanism, answer.error_code, "")
        if self.mechanism not in answer.mechanisms:
            raise _mechanism_not_offered(self.line.peer, self.mechanism, answer.mechanisms)
        self.raw = version == 0

    async def _plain(self) -> None:
        # A provider may have to read a file; and what runs off the loop gets the secret, not its text.
        password = HiddenText(await self.runtime.offload(self.credentials.password.reveal))
        rest = await self._token(plain_token(self.credentials.username, password))
        if rest:
            raise peer_not_authentic(
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
            raise _derivation_too_slow(self.line.peer, self.mechanism, DERIVE_SECONDS) from exc

    async def _token(self, token: bytes) -> bytes:
        """Send one token and return the broker's token."""
        if self.raw:
            return self._bounded(await self.line.exchange_raw(token, self.deadline))
        version = self.line.version_for(SaslAuthenticateRequest)
        request = SaslAuthenticateRequest(auth_bytes=token)
        answer = await self._ask(request, version, SaslAuthenticateResponse)
        if answer.error_code != NONE:
            said = self._hidden(answer.error_message or "")
            raise _credentials_refused(self.line.peer, self.mechanism, answer.error_code, said)
        self.lifetime_ms = answer.session_lifetime_ms
        return self._bounded(answer.auth_bytes)

    def _bounded(self, token: bytes) -> bytes:
        if len(token) > MAX_TOKEN_BYTES:
            raise peer_not_authentic(self.line.peer, self.mechanism, f"its token has {len(token)} bytes")
        return token

    def _hidden(self, said: str) -> str:
        """Return the broker's message without the password, which it may have echoed in plain or encoded form."""
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
    """Return a text's base64, hex and percent-encoded forms, from each offset where a group may begin.

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


class SaslReauthentication:
    """`authenticate` gives the seconds until it must be done again, None for never.

    `renewed` is called when a renewal is over, with its error if it failed.
    """

    def __init__(
        self,
        authenticate: Callable[[SaslChannel], Awaitable[float | None]],
        line: SaslChannel,
        renewed: Callable[[KclientError | None], None],
    ) -> None:
        self._authenticate = authenticate
        self._line = line
        self._renewed = renewed
        self._loop = asyncio.get_running_loop()
        self._renew_at = math.inf
        self._renewal: asyncio.Task[None] | None = None
        self._request_is_owed = False  # the session was over as soon as it began

    async def begin(self) -> None:
        """Authenticate. Raise KclientError if that fails."""
        began = self._loop.time()
        seconds = await self._authenticate(self._line)
        self._renew_at = math.inf if seconds is None else began + seconds
        self._request_is_owed = self._loop.time() >= self._renew_at

    def renewing(self) -> bool:
        """Return whether requests must wait for a renewal. Start it if it is due."""
        is_due = not self._request_is_owed and self._loop.time() >= self._renew_at
        if self._renewal is None and is_due:
            self._renew_at = math.inf
            self._renewal = asyncio.create_task(self._renew())
        return self._renewal is not None

    def request_sent(self) -> None:
        """Note that a request is being sent, after which a renewal may start."""
        self._request_is_owed = False

    async def _renew(self) -> None:
        problem: KclientError | None = None
        try:
            await self.begin()
        except KclientError as exc:
            problem = exc
        finally:
            self._renewal = None
        self._renewed(problem)

    def end(self) -> None:
        """Cancel a running renewal, because the connection is closed."""
        if self._renewal is not None:
            self._renewal.cancel()


def authenticator_of(config: Config, runtime: Runtime) -> Authenticator | None:
    """Return the authenticator, None without SASL. Raise ConfigError for secrets on a plain connection."""
    if "SASL" not in config.security_protocol:
        return None
    in_clear = config.security_protocol == "SASL_PLAINTEXT" and config.sasl_mechanism == "PLAIN"
    if in_clear and not config.allow_plaintext_credentials:
        raise ConfigError("PLAIN needs TLS. It sends the password as it is. Use security_protocol=SASL_SSL.")
    user, password, token = config.sasl_username or "", config.sasl_password or Secret(""), False
    if (jaas := config.sasl_jaas_config) is not None:
        options = parse_jaas(jaas.reveal()).options
        user, token = options["username"], options.get("tokenauth", "").lower() == "true"
        # Its provider is called again for each authentication.
        password = Secret(lambda: parse_jaas(jaas.reveal()).options["password"])
    credentials = Credentials(config.sasl_mechanism, user, password, token, config.scram_max_iterations)
    return Authenticator(credentials, runtime, config.request_timeout_ms / 1000)


MOST_OFFERED: Final = 20


def _credentials_refused(peer: Peer, mechanism: str, code: int, said: str) -> AuthenticationError:
    """The broker answered with an error code."""
    quoted = f': "{printable(said)}"' if said else ""
    return AuthenticationError(
        f"{peer} refused the authentication with {mechanism}: {error(code).name} ({code}){quoted}. "
        "User name or password is wrong, or the broker does not have this user for this mechanism. "
        "Correct sasl_username and sasl_password (or sasl_jaas_config); the same ones will be refused again.",
        mechanism=mechanism,
        **where(peer),
    )


def _mechanism_not_offered(peer: Peer, mechanism: str, offered: Iterable[str]) -> AuthenticationError:
    """The listener has other mechanisms."""
    names = format_names(list(offered), MOST_OFFERED) or "no mechanism at all"
    return AuthenticationError(
        f"{peer} does not offer {mechanism}; it offers {names}. "
        "The listener is set up for others. "
        "Set sasl_mechanism to one that it offers, or have the broker's sasl.enabled.mechanisms name it.",
        mechanism=mechanism,
        **where(peer),
    )


def _sasl_not_enabled(peer: Peer, mechanism: str) -> AuthenticationError:
    """The listener wants no SASL at all."""
    return AuthenticationError(
        f"{peer} refused the authentication with {mechanism}: ILLEGAL_SASL_STATE (34). "
        "The listener does not ask for SASL. "
        "Give the port of a SASL listener, or set security_protocol to SSL or PLAINTEXT as the listener has it.",
        mechanism=mechanism,
        **where(peer),
    )


def sasl_required(peer: Peer, offered: Iterable[str]) -> AuthenticationError:
    """The listener wants SASL, and we have none."""
    return AuthenticationError(
        f"{peer} wants clients to authenticate with SASL, and this client does not. "
        f"The listener offers {format_names(list(offered), MOST_OFFERED)}. "
        "Set security_protocol to SASL_SSL (or SASL_PLAINTEXT), sasl_mechanism to one of these, and user and password.",
        **where(peer),
    )


def peer_not_authentic(peer: Peer, mechanism: str, why: str) -> AuthenticationError:
    """The broker broke the mechanism's rules, or could not prove that it knows the credential."""
    return AuthenticationError(
        f"{peer}: {mechanism} failed: {why}. "
        "The peer does not follow the mechanism; it may not be the broker that it claims to be. "
        "Nothing was sent to it after this. Check the address, and the broker's own log.",
        mechanism=mechanism,
        **where(peer),
    )


def _derivation_too_slow(peer: Peer, mechanism: str, seconds: float) -> AuthenticationError:
    """The key could not be derived in time."""
    return AuthenticationError(
        f"{peer}: {mechanism} asked for a key that took more than {seconds:.0f} s to derive. "
        "The broker's iteration count is very high, or this machine is busy. "
        "Lower the iterations of this user's credential on the broker.",
        mechanism=mechanism,
        **where(peer),
    )


def _no_credentials(peer: Peer, mechanism: str, why: str) -> AuthenticationError:
    """The provider of user or password has none now."""
    return AuthenticationError(
        f"{peer}: no credentials for {mechanism}: the password {why}. "
        "What provides it worked when the client was made and does not now. "
        "Correct it; the next attempt asks it again.",
        mechanism=mechanism,
        **where(peer),
    )


def _session_too_short(peer: Peer, mechanism: str, lifetime_ms: int) -> AuthenticationError:
    """The broker limits sessions to less than any broker can renew."""
    return AuthenticationError(
        f"{peer} accepted {mechanism} for a session of {lifetime_ms} ms. "
        "No broker renews a session within a second of the last time: connections.max.reauth.ms is set too low, or the "
        "peer is not the broker that it claims to be. Set connections.max.reauth.ms to 1000 or more, or to 0.",
        mechanism=mechanism,
        **where(peer),
    )
