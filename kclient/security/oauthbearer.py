"""SASL OAUTHBEARER (RFC 7628, KIP-255), both sides, and tokens without a signature.

    client    n,,^Aauth=Bearer TOKEN^Aname=value^A^A      ^A is the byte 1; name=value are extensions (KIP-342)
    broker    nothing                                     the token is accepted
    broker    {"status":"invalid_token"}                  it is refused: the client answers ^A, and an error follows

A token is opaque to the client, which only has to know when it expires. A token with three parts is a JSON Web Token,
whose second part has its claims; a broker checks the third, the signature. An unsecured one has no signature ("alg" is
"none"): Kafka accepts it unless its validator is configured to check signatures. It is for tests.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final

import attrs

from kclient.security.secret import HiddenBytes, HiddenText, without_secret
from kclient.text import printable

SEPARATOR: Final = b"\x01"
SCHEME: Final = "bearer "
AUTH: Final = "auth"
COMPARED: Final = (("aud", "audience"), ("iss", "issuer"), ("scope", "scope"))
MOST_SHOWN: Final = 4_096  # bytes of a refusal; an honest one has a hundred

_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750, 2.1
_NAME = re.compile(r"[A-Za-z]+")
_VALUE = re.compile(r"[\x21-\x7e \t\r\n]+")


@attrs.frozen
class BearerMessage:
    """What a client's message contains."""

    token: str = attrs.field(repr=lambda token: "***")
    extensions: Mapping[str, str]


def check_token(token: str) -> None:
    """Raise ValueError for a token that no broker would read. The text does not contain it."""
    if not _TOKEN.fullmatch(token):
        raise ValueError("a token has letters, digits and -._~+/ and perhaps = at its end")


def check_extensions(extensions: Mapping[str, str]) -> None:
    """Raise ValueError for SASL extensions that cannot be sent."""
    for name, value in extensions.items():
        if not _NAME.fullmatch(name) or name == AUTH or not _VALUE.fullmatch(value):
            raise ValueError(
                f"the SASL extension {printable(name)} cannot be sent: its name has letters and is not auth, its value "
                "has printable ASCII characters"
            )


def bearer_message(token: str, extensions: Mapping[str, str]) -> HiddenBytes:
    """Return the client's first message, whose parts were checked."""
    pairs = [f"auth=Bearer {token}", *(f"{name}={value}" for name, value in extensions.items())]
    separator = SEPARATOR.decode()
    return HiddenBytes(f"n,,{separator}{separator.join(pairs)}{separator}{separator}".encode())


def read_bearer_message(message: bytes) -> BearerMessage:
    """Read a client's first message. Raise ValueError for an invalid one; nothing says whether the token is good."""
    header, _, rest = bytes(message).decode("ascii").partition(SEPARATOR.decode())
    if not re.fullmatch(r"n,(a=[^,]*)?,", header) or not rest.endswith(2 * SEPARATOR.decode()):
        raise ValueError("an OAUTHBEARER message begins with n,, and ends with two separators")
    pairs: dict[str, str] = {}
    for pair in rest[:-2].split(SEPARATOR.decode()):
        name, equals, value = pair.partition("=")
        if not equals or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value) or name in pairs:
            raise ValueError("an OAUTHBEARER message has name=value pairs, each name once")
        pairs[name] = value
    credentials = pairs.pop(AUTH, "")
    if not credentials.lower().startswith(SCHEME):
        raise ValueError("an OAUTHBEARER message has auth=Bearer and a token")
    token = HiddenText(credentials[len(SCHEME) :].strip())
    check_token(token)
    return BearerMessage(token, pairs)


def describe_refusal(challenge: bytes, secret: str = "") -> str:
    """Return what a broker says about a refused token: its status, and the scope that it wants.

    Without `secret`, the token, which it may have repeated.
    """
    try:
        found = json.loads(challenge[:MOST_SHOWN])
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("status"), str):
        return "without a reason that can be read"
    scope = found.get("scope")
    wanted = f", scope {_shown(scope, secret)}" if isinstance(scope, str) and scope else ""
    return f"status {_shown(found['status'], secret)}{wanted}"


def describe_token(token: str, now: float) -> str:
    """Return a sentence with what a broker compares of a JSON Web Token: audience, issuer, times.

    `now` is in seconds since 1970. None of these is secret; the subject and other claims are left out. Return "" for
    any other token.
    """
    try:
        claims = claims_of(token)
        ends, begins = (_seconds(claims.get(name)) for name in ("exp", "nbf"))
    except ValueError:
        return ""
    found = [
        f"{what} {printable(_text(claims.get(name)))}" for name, what in COMPARED if _text(claims.get(name))
    ]
    if ends is not None:
        found.append(f"end in {ends - now:,.0f} s" if ends >= now else f"end {now - ends:,.0f} s ago")
    if begins is not None and begins > now:
        found.append(f"beginning in {begins - now:,.0f} s")
    return f"By this machine's clock, the token has {', '.join(found)}. " if found else ""


def _shown(text: str, secret: str) -> str:
    return printable(without_secret(text, secret))


# --- tokens


class TokenError(ValueError):
    """There is no token. The text is a sentence without its end, and has no part of a token or a secret."""


class TokenUnavailableError(TokenError):
    """There is no token now, and the same request may succeed later: the endpoint is down or busy."""


@attrs.frozen(kw_only=True)
class OAuthToken:
    """A bearer token.

    `expires_at` and `issued_at` are seconds since 1970 (UTC), as `exp` and `iat` of a JSON Web Token. `principal` names
    the user in logs, and `scope` what the token is for. `extensions` are sent to the broker (KIP-342): Confluent Cloud
    wants logicalCluster and identityPoolId. Raise ValueError for a token or extensions that cannot be sent.
    """

    value: str = attrs.field(converter=HiddenText)
    expires_at: float
    issued_at: float | None = None
    principal: str = ""
    extensions: Mapping[str, str] = attrs.field(factory=dict)
    scope: str = ""

    def __attrs_post_init__(self) -> None:
        check_token(self.value)
        check_extensions(self.extensions)
        if not math.isfinite(self.expires_at):
            raise ValueError("expires_at must be a number of seconds since 1970")
        if self.issued_at is not None and not math.isfinite(self.issued_at):
            raise ValueError("issued_at must be a number of seconds since 1970, or None")

    @classmethod
    def from_jwt(
        cls,
        token: str,
        extensions: Mapping[str, str] | None = None,
        principal_claim: str = "sub",
        scope_claim: str = "scope",
    ) -> OAuthToken:
        """Return the token with times, principal and scope of its claims. Raise ValueError without `exp`."""
        claims = claims_of(token)
        expires_at, issued_at = (_seconds(claims.get(name)) for name in ("exp", "iat"))
        if expires_at is None:
            raise ValueError(
                "has no claim exp, so nothing says when it expires; return an OAuthToken instead"
            )
        return cls(
            value=token,
            expires_at=expires_at,
            issued_at=issued_at,
            principal=_text(claims.get(principal_claim)),
            extensions=extensions or {},
            scope=_text(claims.get(scope_claim)),
        )


def _seconds(claim: object) -> float | None:
    """Return a time of a claim. Raise ValueError for one that no clock reaches: JSON has numbers of any size."""
    if isinstance(claim, bool) or not isinstance(claim, int | float):
        return None
    try:
        return float(claim)
    except OverflowError:
        raise ValueError("has a time that no clock reaches") from None


def _text(claim: object) -> str:
    """Return a claim as text: a list of scopes has its items with spaces between."""
    if isinstance(claim, list):
        return " ".join(item for item in claim if isinstance(item, str))
    return claim if isinstance(claim, str) else ""


def claims_of(token: str) -> dict[str, Any]:
    """Return the claims of a JSON Web Token; nothing is verified. Raise ValueError for any other token."""
    _, claims = _parts(token)
    return claims


def header_of(token: str) -> dict[str, Any]:
    """Return the header of a JSON Web Token. Raise ValueError for any other token."""
    header, _ = _parts(token)
    return header


def is_unsecured(token: str) -> bool:
    """Return whether a JSON Web Token has no signature. Raise ValueError for any other token."""
    return header_of(token).get("alg") == "none" and token.endswith(".")


def unsecured_token(claims: Mapping[str, Any]) -> HiddenText:
    """Return a JSON Web Token without a signature, for tests."""
    return HiddenText(f"{encoded_part({'alg': 'none'})}.{encoded_part(claims)}.")


def _parts(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    parts = token.split(".")
    if len(parts) != 3:
        raise ValueError("a JSON Web Token has three parts with dots between")
    header, claims = (_decoded(part) for part in parts[:2])
    return header, claims


def encoded_part(part: Mapping[str, Any]) -> str:
    """Return the header or the claims of a JSON Web Token as it contains them."""
    text = json.dumps(part, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decoded(part: str) -> dict[str, Any]:
    try:
        found = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        raise ValueError("a part of a JSON Web Token is JSON in base64url") from None
    if not isinstance(found, dict):
        raise ValueError("a part of a JSON Web Token is a JSON object")
    return found
