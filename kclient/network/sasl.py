"""SASL authentication of a connection, and its renewal before the session ends (KIP-368).

    SaslHandshake            the mechanism's name; the broker must offer it
    SaslAuthenticate …       the mechanism's tokens, one request and one response for each step

After version 0 of SaslHandshake, tokens are sent without Kafka's headers. Only the configured mechanism is used,
whatever else the broker offers. The mechanism defines the number of steps: authentication fails if the broker asks
for another one, or reports success before SCRAM has verified the server's signature.
"""

from __future__ import annotations

import asyncio
import base64
import math
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, Protocol, TypeVar

import attrs

from kclient.config import Config
from kclient.config.security import IN_CLEAR
from kclient.errors import AuthenticationError, ConfigError, InternalError, KclientError, ProtocolDecodeError
from kclient.generated.sasl_authenticate_request import SaslAuthenticateRequest
from kclient.generated.sasl_authenticate_response import SaslAuthenticateResponse
from kclient.generated.sasl_handshake_request import SaslHandshakeRequest
from kclient.generated.sasl_handshake_response import SaslHandshakeResponse
from kclient.log import get_logger
from kclient.network.backoff import Uniform
from kclient.network.errors import where
from kclient.network.peer import Peer
from kclient.network.ticket_source import TicketSource, ticket_source_of
from kclient.network.token_providers import token_source_of
from kclient.network.token_source import TokenSource
from kclient.protocol.errors import ILLEGAL_SASL_STATE, NONE, UNSUPPORTED_SASL_MECHANISM, error
from kclient.protocol.message import Message
from kclient.runtime import Runtime
from kclient.security.jaas import parse_jaas
from kclient.security.kerberos import GssapiClient, KerberosError
from kclient.security.oauthbearer import (
    SEPARATOR,
    TokenError,
    bearer_message,
    describe_refusal,
    describe_token,
)
from kclient.security.plain import plain_token
from kclient.security.scram import Challenge, ScramClient, ScramError, salted_password
from kclient.security.secret import HiddenBytes, HiddenText, Secret, without_secret
from kclient.text import format_names, printable

logger: Final = get_logger("kclient.auth")

MAX_TOKEN_BYTES: Final = 1_048_576
NONCE_BYTES: Final = 24
DERIVE_SECONDS: Final = 10.0
SHORTEST_SESSION_MS: Final = 1_000  # Kafka refuses a renewal within a second of the last one
RENEW_AT: Final = (0.85, 0.95)  # of a session's lifetime
AHEAD_SECONDS: Final = 1.0  # of its end; twice fetch.max.wait.ms
SHORTEST_RENEWAL_SECONDS: Final = 1.2

T = TypeVar("T")


class SaslChannel(Protocol):
    """The methods of a connection that authentication uses. `ask` sends before all waiting requests."""

    peer: Peer
    if_too_slow: (
        KclientError | None
    )  # what a timeout of the set-up means while it does not wait for the broker

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
    tokens: TokenSource | None = None  # of OAUTHBEARER
    tickets: TicketSource | None = None  # of GSSAPI


class Authenticator:
    """Authenticates connections; called again by SaslReauthentication for each renewal."""

    def __init__(self, credentials: Credentials, runtime: Runtime, timeout: float) -> None:
        self._credentials = credentials
        self._runtime = runtime
        self._timeout = timeout  # seconds for one authentication

    async def close(self, timeout: float) -> None:
        """Cancel a request for a token, which no connection waits for any more. Wait at most `timeout` seconds."""
        if self._credentials.tickets is not None:
            self._credentials.tickets.close()
        if self._credentials.tokens is not None:
            await self._credentials.tokens.close(timeout)

    async def __call__(self, channel: SaslChannel) -> float | None:
        """Authenticate. Return the seconds until the next authentication, None for never. Raise ConnectError."""
        deadline = self._runtime.now() + self._timeout
        exchange = _SaslExchange(channel, self._credentials, self._runtime, deadline)
        try:
            lifetime_ms = await exchange.run()
        except ScramError as exc:  # a subclass of ValueError, so it comes first
            raise sasl_error(channel.peer, self._credentials.mechanism, NOT_AUTHENTIC, why=exc) from None
        except ProtocolDecodeError as exc:
            why = f"its response cannot be decoded: {exc.text}"
            raise sasl_error(channel.peer, self._credentials.mechanism, NOT_AUTHENTIC, why=why) from exc
        except ValueError as exc:
            raise sasl_error(channel.peer, self._credentials.mechanism, NO_CREDENTIALS, why=exc) from None
        logger.debug("%s: authenticated with %s", channel.peer, self._credentials.mechanism)
        if lifetime_ms <= 0:
            return None
        if lifetime_ms < SHORTEST_SESSION_MS:
            raise self._session_too_short(channel.peer, lifetime_ms)
        return _renew_after(lifetime_ms / 1000, self._runtime.rng)

    def _session_too_short(self, peer: Peer, lifetime_ms: int) -> AuthenticationError:
        mechanism, tokens = self._credentials.mechanism, self._credentials.tokens
        if tokens is None:
            return sasl_error(peer, mechanism, SESSION_TOO_SHORT, lifetime_ms=lifetime_ms)
        return sasl_error(peer, mechanism, BEARER_ENDS, lifetime_ms=lifetime_ms, source=tokens.name)


@attrs.define(eq=False, repr=False)
class _SaslExchange:
    """One authentication on one connection."""

    channel: SaslChannel
    credentials: Credentials
    runtime: Runtime
    deadline: float
    raw: bool = False  # tokens without headers
    secret: str = HiddenText()  # the token of OAUTHBEARER that was sent
    lifetime_ms: int = 0

    @property
    def mechanism(self) -> str:
        return self.credentials.mechanism

    async def run(self) -> int:
        """Authenticate and return the lifetime of the session in milliseconds, 0 for no limit."""
        await self._handshake()
        if self.credentials.tokens is not None:
            await self._bearer(self.credentials.tokens)
        elif self.credentials.tickets is not None:
            await self._gssapi(self.credentials.tickets)
        elif self.mechanism == "PLAIN":
            await self._plain()
        else:
            await self._scram()
        return self.lifetime_ms

    async def _handshake(self) -> None:
        version = self.channel.version_for(SaslHandshakeRequest)
        request = SaslHandshakeRequest(mechanism=self.mechanism)
        response = await self._ask(request, version, SaslHandshakeResponse)
        code, offered = response.error_code, response.mechanisms
        if code == ILLEGAL_SASL_STATE:
            raise self._error(SASL_NOT_ENABLED)
        if code not in (NONE, UNSUPPORTED_SASL_MECHANISM):
            raise self._error(CREDENTIALS_REFUSED, code=describe_code(code, ""))
        if code == UNSUPPORTED_SASL_MECHANISM or self.mechanism not in offered:
            names = format_names(list(offered), MOST_OFFERED) or "no mechanism at all"
            raise self._error(MECHANISM_NOT_OFFERED, offered=names)
        self.raw = version == 0

    async def _plain(self) -> None:
        # A provider may read a file, so it runs in a worker thread. HiddenText keeps the text out of repr().
        password = HiddenText(await self.runtime.offload(self.credentials.password.reveal))
        rest = await self._token(plain_token(self.credentials.username, password))
        if rest:
            raise self._error(NOT_AUTHENTIC, why="the broker sent another token after the last one")

    async def _bearer(self, tokens: TokenSource) -> None:
        too_slow = self._error(BEARER_TOO_SLOW, source=tokens.name)
        try:
            token = await self._login(tokens.token(self.deadline), too_slow)
        except TokenError as exc:
            raise self._error(BEARER_MISSING, why=exc) from exc.__cause__
        self.secret = token.value
        try:
            challenge = await self._token(bearer_message(token.value, token.extensions))
            if challenge:
                # Before the last step, in whose time another connection may send the token, or this one may end.
                tokens.discard(token)
                await self._token(SEPARATOR)  # RFC 7628, 3.2.3: the broker refuses only after this
                raise self._error(
                    BEARER_REFUSED, code=describe_refusal(challenge, token.value), **self._of_token(tokens)
                )
        except AuthenticationError:
            tokens.discard(token)
            raise
        if 0 < self.lifetime_ms < SHORTEST_SESSION_MS:
            tokens.discard(token)

    async def _gssapi(self, tickets: TicketSource) -> None:
        too_slow = self._error(TICKET_TOO_SLOW)
        try:
            ticket = await self._login(tickets.ticket(), too_slow)
            client = GssapiClient(ticket, tickets.service, self.channel.peer.host)
            first = await self._login(tickets.run(client.first), too_slow)
        except KerberosError as exc:
            raise self._error(NO_TICKET, why=exc) from exc.__cause__
        try:
            answer = await self._token(first)
            offer = await self._token(await tickets.run(client.verify, answer))
            rest = await self._token(await tickets.run(client.choose_layer, offer))
        except KerberosError as exc:
            raise self._error(TICKET_UNANSWERED, why=exc) from exc.__cause__
        if rest:
            raise self._error(NOT_AUTHENTIC, why="the broker sent another token after the last one")

    async def _login(self, waiting: Awaitable[T], too_slow: AuthenticationError) -> T:
        """Wait for something that is not the broker, until the authentication's deadline; then raise `too_slow`."""
        self.channel.if_too_slow = too_slow
        try:
            async with asyncio.timeout_at(self.deadline):
                found = await waiting
        except TimeoutError as exc:
            raise too_slow from exc
        self.channel.if_too_slow = None  # not after a timeout of the whole set-up, which reads it
        return found

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
            raise self._error(DERIVATION_TOO_SLOW, seconds=DERIVE_SECONDS) from exc

    async def _token(self, token: bytes) -> bytes:
        """Send one token and return the broker's token."""
        if self.raw:
            return self._checked_size(await self.channel.exchange_raw(token, self.deadline))
        version = self.channel.version_for(SaslAuthenticateRequest)
        request = SaslAuthenticateRequest(auth_bytes=token)
        response = await self._ask(request, version, SaslAuthenticateResponse)
        if response.error_code != NONE:
            message = self._without_secret(response.error_message or "")
            text = REFUSED.get(self.mechanism, CREDENTIALS_REFUSED)
            values = {} if self.credentials.tokens is None else self._of_token(self.credentials.tokens)
            raise self._error(text, code=describe_code(response.error_code, message), **values)
        self.lifetime_ms = response.session_lifetime_ms
        return self._checked_size(response.auth_bytes)

    def _of_token(self, tokens: TokenSource) -> dict[str, str]:
        """Return what BEARER_REFUSED says of the token that was sent."""
        return {"token": describe_token(self.secret, self.runtime.wall_clock()), "advice": tokens.advice}

    def _checked_size(self, token: bytes) -> bytes:
        if len(token) > MAX_TOKEN_BYTES:
            raise self._error(NOT_AUTHENTIC, why=f"its token has {len(token)} bytes")
        return token

    def _without_secret(self, message: str) -> str:
        """Return the broker's message without password or token, which it may have echoed in plain or encoded form."""
        return without_secret(message, self.secret or self.credentials.password.reveal())

    async def _ask(self, message: Message, version: int, kind: type[Any]) -> Any:
        response = await self.channel.ask(message, version, self.deadline)
        if not isinstance(response, kind):
            raise InternalError(f"{message.NAME} was answered by {type(response).__name__}")
        return response

    def _error(self, text: str, **values: Any) -> AuthenticationError:
        return sasl_error(self.channel.peer, self.mechanism, text, **values)


def _renew_after(lifetime: float, rng: Uniform) -> float:
    """Return the seconds until a session is renewed: most of its lifetime, and a second before its end.

    The last requests before the renewal may wait at the broker for the end of a long Fetch, and must not come too late.
    """
    ahead = max(lifetime - AHEAD_SECONDS, min(RENEW_AT[0] * lifetime, SHORTEST_RENEWAL_SECONDS))
    return min(lifetime * rng.uniform(*RENEW_AT), ahead)


def _salted(mechanism: str, password: Secret, challenge: Challenge) -> bytes:
    return salted_password(mechanism, password.reveal(), challenge)


class SaslReauthentication:
    """Authenticates a connection and starts a renewal before the session expires (KIP-368).

    `authenticate` returns the seconds until the next authentication, None for never.
    `renewed` is called after a renewal, with its error if it failed.
    """

    def __init__(
        self,
        authenticate: Callable[[SaslChannel], Awaitable[float | None]],
        channel: SaslChannel,
        renewed: Callable[[KclientError | None], None],
    ) -> None:
        self._authenticate = authenticate
        self._channel = channel
        self._renewed = renewed
        self._loop = asyncio.get_running_loop()
        self._renew_at = math.inf
        self._renewal: asyncio.Task[None] | None = None
        # True if the session had expired when it began: one request is sent before the next renewal, otherwise
        # a connection with very short sessions would only renew.
        self._request_due = False

    async def begin(self) -> None:
        """Authenticate. Raise KclientError if that fails."""
        began = self._loop.time()
        seconds = await self._authenticate(self._channel)
        self._renew_at = math.inf if seconds is None else began + seconds
        self._request_due = self._loop.time() >= self._renew_at

    def renewing(self) -> bool:
        """Return whether requests must wait for a renewal. Start it if it is due."""
        is_due = not self._request_due and self._loop.time() >= self._renew_at
        if self._renewal is None and is_due:
            self._renew_at = math.inf
            self._renewal = asyncio.create_task(self._renew())
        return self._renewal is not None

    def request_sent(self) -> None:
        """Note that a request is being sent, after which a renewal may start."""
        self._request_due = False

    async def _renew(self) -> None:
        failure: KclientError | None = None
        try:
            await self.begin()
        except KclientError as exc:
            failure = exc
        finally:
            self._renewal = None
        self._renewed(failure)

    def end(self) -> None:
        """Cancel a running renewal, because the connection is closed."""
        if self._renewal is not None:
            self._renewal.cancel()


def authenticator_of(config: Config, runtime: Runtime) -> Authenticator | None:
    """Return the authenticator, None without SASL. Raise ConfigError for secrets on a plain connection."""
    if "SASL" not in config.security_protocol:
        return None
    in_clear = config.security_protocol == "SASL_PLAINTEXT" and config.sasl_mechanism in IN_CLEAR
    if in_clear and not config.allow_plaintext_credentials:
        raise ConfigError(
            f"{config.sasl_mechanism} needs TLS. It sends the secret as it is. Use security_protocol=SASL_SSL."
        )
    timeout = config.request_timeout_ms / 1000
    if config.sasl_mechanism == "GSSAPI":
        tickets = ticket_source_of(config, runtime)
        return Authenticator(Credentials("GSSAPI", "", Secret(""), tickets=tickets), runtime, timeout)
    if config.sasl_mechanism == "OAUTHBEARER":
        tokens = token_source_of(config, runtime)
        return Authenticator(
            Credentials(config.sasl_mechanism, "", Secret(""), tokens=tokens), runtime, timeout
        )
    user, password, token = config.sasl_username or "", config.sasl_password or Secret(""), False
    if (jaas := config.sasl_jaas_config) is not None:
        options = parse_jaas(jaas.reveal()).options
        user, token = options["username"], options.get("tokenauth", "").lower() == "true"
        # The provider is called again for each authentication.
        password = Secret(lambda: parse_jaas(jaas.reveal()).options["password"])
    credentials = Credentials(config.sasl_mechanism, user, password, token, config.scram_max_iterations)
    return Authenticator(credentials, runtime, timeout)


MOST_OFFERED: Final = 20

# The texts of AuthenticationError: what failed, the likely cause, the next step.
CREDENTIALS_REFUSED: Final = (
    "{peer} refused the authentication with {mechanism}: {code}. "
    "User name or password is wrong, or the broker does not have this user for this mechanism. "
    "Correct sasl_username and sasl_password (or sasl_jaas_config); the same ones will be refused again."
)
BEARER_REFUSED: Final = (
    "{peer} refused the token of {mechanism}: {code}. "
    "It may have expired, not be valid yet by the broker's clock, or have another audience, issuer or scope than the "
    "broker expects. {token}{advice}"
)
BEARER_MISSING: Final = (
    "{peer}: no token for {mechanism}: {why}. "
    "Nothing was sent to the broker. It is asked again after a pause (sasl_login_retry_backoff_ms)."
)
BEARER_TOO_SLOW: Final = (
    "{peer}: no token for {mechanism}: {source} has not returned in time. "
    "It is slow or cannot be reached. Give it a timeout of its own, below request_timeout_ms."
)
BEARER_ENDS: Final = (
    "{peer} accepted the token of {mechanism} for {lifetime_ms} ms only. "
    "By the broker's clock it is about to expire: {source} gives old tokens, or the clocks differ. "
    "Compare the clocks of this machine, the broker and the issuer; the next attempt requests another token."
)
TICKET_REFUSED: Final = (
    "{peer} refused the ticket of {mechanism}: {code}. "
    "Its keytab has not the key with which the KDC made the ticket, its principal is another one than the ticket's, or "
    "its clock differs from the KDC's by more than five minutes. "
    "Compare klist -k of the broker's keytab with klist of this client, and look into the broker's log."
)
NO_TICKET: Final = "{peer}: no Kerberos ticket for {mechanism}: {why}. Nothing was sent to the broker."
TICKET_UNANSWERED: Final = "{peer}: {mechanism} failed after the ticket was sent: {why}."
REFUSED: Final = {"OAUTHBEARER": BEARER_REFUSED, "GSSAPI": TICKET_REFUSED}
"""Texts for a refusal that is not about a password."""
TICKET_TOO_SLOW: Final = (
    "{peer}: no Kerberos ticket for {mechanism} in time. Nothing was sent to the broker. "
    "The KDC does not answer, or the names in krb5.conf take long to resolve. "
    "Check the KDC, its kdc lines in krb5.conf, and what a firewall drops."
)
MECHANISM_NOT_OFFERED: Final = (
    "{peer} does not offer {mechanism}; it offers {offered}. "
    "The listener is set up for others. "
    "Set sasl_mechanism to one that it offers, or add it to the broker's sasl.enabled.mechanisms."
)
SASL_NOT_ENABLED: Final = (
    "{peer} refused the authentication with {mechanism}: ILLEGAL_SASL_STATE (34). "
    "The listener does not use SASL. "
    "Give the port of a SASL listener, or set security_protocol to SSL or PLAINTEXT as the listener has it."
)
SASL_REQUIRED: Final = (
    "{peer} requires SASL authentication, and this client has none configured. "
    "The listener offers {offered}. "
    "Set security_protocol to SASL_SSL (or SASL_PLAINTEXT), sasl_mechanism to one of these, and user and password."
)
# The broker broke the mechanism's rules, or could not prove that it knows the credential.
NOT_AUTHENTIC: Final = (
    "{peer}: {mechanism} failed: {why}. "
    "The peer does not follow the mechanism; it may not be the broker that it claims to be. "
    "Nothing was sent to it after this. Check the address, and the broker's own log."
)
DERIVATION_TOO_SLOW: Final = (
    "{peer}: {mechanism} asked for a key that took more than {seconds:.0f} s to derive. "
    "The broker's iteration count is very high, or this machine is busy. "
    "Lower the iterations of this user's credential on the broker."
)
NO_CREDENTIALS: Final = (
    "{peer}: no credentials for {mechanism}: the password {why}. "
    "Its provider worked when the client was made and does not now. "
    "Correct it; the next attempt calls it again."
)
SESSION_TOO_SHORT: Final = (
    "{peer} accepted {mechanism} for a session of {lifetime_ms} ms. "
    "No broker renews a session within a second of the last time: connections.max.reauth.ms is set too low, or the "
    "peer is not the broker that it claims to be. Set connections.max.reauth.ms to 1000 or more, or to 0."
)


def sasl_error(peer: Peer, mechanism: str, text: str, **values: Any) -> AuthenticationError:
    """Return the error with one of the texts above and the `values` that it names."""
    return AuthenticationError(
        text.format(peer=peer, mechanism=mechanism, **values), mechanism=mechanism, **where(peer)
    )


def sasl_required(peer: Peer, offered: Iterable[str]) -> AuthenticationError:
    """Return the error for a listener that requires SASL, which this client has not configured."""
    return sasl_error(peer, "", SASL_REQUIRED, offered=format_names(list(offered), MOST_OFFERED))


def peer_not_authentic(peer: Peer, mechanism: str, why: str) -> AuthenticationError:
    """Return the error for a peer that broke the mechanism's rules, or could not prove that it knows the credential."""
    return sasl_error(peer, mechanism, NOT_AUTHENTIC, why=why)


def describe_code(code: int, message: str) -> str:
    """Return name and number of an error code, with the broker's message in quotes."""
    quoted = f': "{printable(message)}"' if message else ""
    return f"{error(code).name} ({code}){quoted}"
