"""Token endpoints (OAuth 2.0, RFC 6749): a provider of tokens that asks one with HTTP (KIP-768, KIP-1139, KIP-1258).

    ClientSecret       grant_type=client_credentials, the client's id and secret in the header Authorization
    ClientAssertion    grant_type=client_credentials, client_assertion=… in place of a secret
    JwtBearer          grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer, assertion=…

    200, 201                         {"access_token": …, "expires_in": …}, or id_token in its place
    408, 425, 429, 5xx, no answer    TokenUnavailableError: the next request may succeed
    3xx                              TokenError: the credentials would be sent along
    any other                        TokenError, with the error that the endpoint names (RFC 6749, 5.2)

A token's end is that of its claim `exp`; `expires_in` counts only for an opaque token, or one without `exp`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, Protocol
from urllib.parse import quote_plus, urlencode

import attrs

from kclient.network.http_client import HttpAnswer, HttpCertificateError, HttpError, exchange
from kclient.security.assertion import read_text
from kclient.security.oauthbearer import OAuthToken, TokenError, TokenUnavailableError
from kclient.security.secret import HiddenBytes, HiddenText, Secret, without_secret
from kclient.security.tls import Tls
from kclient.text import printable

ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
MOST_BYTES: Final = 1 << 20
LONGEST_SECONDS: Final = 10 * 365 * 86_400.0
BUSY: Final = frozenset({408, 425, 429})
HEADERS: Final = {
    "Accept": "application/json",
    "Cache-Control": "no-cache",
    "Content-Type": "application/x-www-form-urlencoded",
    "User-Agent": "kclient",
}

ADVICE: Final = {
    400: "It does not accept the request: look at the scope, the client and the grant that it allows the client",
    401: "Client id or secret is wrong, or the endpoint does not know this client",
    403: "The client is known, and may not have such a token",
    404: "Look at sasl_oauthbearer_token_endpoint_url: the server has no such path",
    405: "Look at sasl_oauthbearer_token_endpoint_url: it is not a token endpoint",
    407: "The proxy of the environment wants a login",
}

ANOTHER_PAGE: Final = "Look at sasl_oauthbearer_token_endpoint_url: it may be another page of the server"

Assertion = Callable[[], HiddenText]


class Grant(Protocol):
    """How the client asks. `secret` is what an answer must not repeat."""

    def request(self) -> GrantRequest: ...


@attrs.frozen
class GrantRequest:
    """The parameters of a request, its headers, and the secret in them."""

    form: dict[str, str] = attrs.field(repr=False)
    secret: HiddenText
    headers: dict[str, str] = attrs.field(factory=dict, repr=False)


@attrs.frozen
class ClientSecret:
    """The client's id and secret (RFC 6749, 2.3.1). With `is_encoded` both are percent-encoded first, as it demands."""

    client_id: str
    client_secret: Secret
    is_encoded: bool = False

    def request(self) -> GrantRequest:
        user = self.client_id
        try:
            secret = HiddenText(self.client_secret.reveal().strip())
        except ValueError as exc:  # its file or variable has gone
            raise TokenError(f"the client's secret {exc}") from exc
        try:
            if self.is_encoded:
                pair = HiddenText(f"{quote_plus(user)}:{quote_plus(secret)}")
            else:
                pair = HiddenText(f"{user}:{secret}")
            basic = HiddenText(base64.b64encode(pair.encode()).decode())
        except UnicodeEncodeError:  # its text shows a part of the secret
            raise TokenError(
                "the client's id or secret is not text that UTF-8 has, so it cannot be sent"
            ) from None
        headers: dict[str, str] = {"Authorization": HiddenText(f"Basic {basic}")}
        return GrantRequest({"grant_type": "client_credentials"}, secret, headers)


@attrs.frozen
class ClientAssertion:
    """An assertion in place of the client's secret (RFC 7523, 2.2)."""

    client_id: str | None
    assertion: Assertion

    def request(self) -> GrantRequest:
        assertion = self.assertion()
        form = {
            "client_assertion_type": ASSERTION_TYPE,
            "client_assertion": assertion,
            "grant_type": "client_credentials",
        }
        if self.client_id is not None:
            form["client_id"] = self.client_id
        return GrantRequest(form, assertion)


@attrs.frozen
class JwtBearer:
    """An assertion that is exchanged for a token (RFC 7523, 2.1)."""

    assertion: Assertion

    def request(self) -> GrantRequest:
        assertion = self.assertion()
        return GrantRequest({"grant_type": JWT_BEARER, "assertion": assertion}, assertion)


@attrs.frozen(kw_only=True)
class TokenShape:
    """How a token is read, and the SASL extensions that are sent with it."""

    extensions: Mapping[str, str] = attrs.field(factory=dict)
    principal_claim: str = "sub"
    scope_claim: str = "scope"

    def of(self, token: str) -> OAuthToken:
        """Return a JSON Web Token as an OAuthToken. Raise ValueError."""
        return OAuthToken.from_jwt(token, self.extensions, self.principal_claim, self.scope_claim)


@attrs.frozen(kw_only=True)
class TokenEndpoint:
    """A provider of tokens, for a worker thread. `parameters` are sent with each request, such as the scope."""

    url: str
    grant: Grant
    parameters: Mapping[str, str]
    shape: TokenShape
    tls: Tls | None
    seconds: float
    connect_seconds: float
    wall_clock: Callable[[], float]

    def __call__(self) -> OAuthToken:
        """Request a token. Raise TokenError."""
        request = self.grant.request()
        began = self.wall_clock()
        answer = self._send(request)
        if answer.status not in (HTTPStatus.OK, HTTPStatus.CREATED):
            raise self._refused(answer, request.secret)
        return self._token_in(answer, began)

    def _send(self, request: GrantRequest) -> HttpAnswer:
        body = HiddenBytes(urlencode(request.form | dict(self.parameters)).encode())
        try:
            return exchange(
                self.url,
                HEADERS | request.headers,
                body=body,
                most=MOST_BYTES,
                seconds=self.seconds,
                connect_seconds=self.connect_seconds,
                context=None if self.tls is None else self.tls.refresh(),
            )
        except HttpCertificateError as exc:
            raise TokenError(
                f"the token endpoint {self.url} is not trusted: {printable(str(exc))}. Its certificate was checked "
                "against the authorities of the operating system and those of ssl_truststore_location; options ssl.… "
                "of sasl_jaas_config replace both"
            ) from None
        except HttpError as exc:
            raise TokenUnavailableError(
                f"the token endpoint {self.url} does not answer: {printable(str(exc))}"
            ) from None

    def _refused(self, answer: HttpAnswer, secret: str) -> TokenError:
        status, found = answer.status, describe_error(answer.body)
        shown = printable(without_secret(found, secret))
        what = f"the token endpoint {self.url} answered HTTP {status}{f' ({shown})' if shown else ''}"
        if status in BUSY or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return TokenUnavailableError(f"{what}. It is busy or out of order")
        if status < HTTPStatus.MULTIPLE_CHOICES:
            return TokenError(f"{what} without an access_token. {ANOTHER_PAGE}")
        if status < HTTPStatus.BAD_REQUEST:
            return TokenError(
                f"{what}, which sends elsewhere. That is not followed, as the credentials would go along. Give the "
                "address at the end of it as sasl_oauthbearer_token_endpoint_url"
            )
        return TokenError(f"{what}. {ADVICE.get(status, 'Look into its log')}")

    def _token_in(self, answer: HttpAnswer, began: float) -> OAuthToken:
        if len(answer.body) > MOST_BYTES:
            raise TokenError(f"the token endpoint {self.url} answered more than {MOST_BYTES >> 20} MiB")
        token, expires_in = _token_of(answer.body)
        if not token:
            raise TokenError(
                f"the token endpoint {self.url} answered HTTP {answer.status} without an access_token. {ANOTHER_PAGE}"
            )
        try:
            return self._made(token, expires_in, began)
        except ValueError as exc:
            raise TokenError(
                f"the token endpoint {self.url} returned a token that cannot be used: {exc}"
            ) from None

    def _made(self, token: HiddenText, expires_in: object, began: float) -> OAuthToken:
        try:
            return self.shape.of(token)
        except ValueError:
            seconds = seconds_in(expires_in)
            if seconds is None:
                raise
            return OAuthToken(
                value=token, issued_at=began, expires_at=began + seconds, extensions=self.shape.extensions
            )


def _token_of(body: bytes) -> tuple[HiddenText, object]:
    """Return the token of an answer, empty without one, and what it says of its lifetime."""
    found = _json_object(body)
    tokens = (found[name] for name in ("access_token", "id_token") if _is_filled(found.get(name)))
    return HiddenText(next(tokens, "").strip()), found.get("expires_in")


def seconds_in(expires_in: object) -> float | None:
    """Return `expires_in` of an answer, which some servers write as text. None for anything else."""
    try:
        seconds = float(expires_in)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):  # a number of 400 digits
        return None
    return seconds if 0 < seconds <= LONGEST_SECONDS else None


def describe_error(body: bytes) -> str:
    """Return the `error` and `error_description` of a refusal (RFC 6749, 5.2), or what Okta has in their place."""
    found = _json_object(body[:MOST_BYTES])
    for code, description in (("error", "error_description"), ("errorCode", "errorSummary")):
        if _is_filled(found.get(code)):
            text = found.get(description)
            return f"{found[code]}: {text}" if _is_filled(text) else str(found[code])
    return ""


def _is_filled(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _json_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body, an empty one for anything else."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


@attrs.frozen(kw_only=True)
class TokenFile:
    """A provider of tokens that reads a file which another program renews, such as the kubelet."""

    path: str
    shape: TokenShape

    def __call__(self) -> OAuthToken:
        """Read the token. Raise TokenError."""
        text = read_text(self.path, "the token file")
        try:
            return self.shape.of(text)
        except ValueError as exc:
            raise TokenError(f"the token file {self.path} does not hold a token: {exc}") from None
