"""Signed tokens, each bad in one way at most, and what a broker does with them: Kafka and the embedded cluster alike.

The broker expects the audience "kafka" and the issuer of the server, and allows two seconds of clock skew.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import attrs

from kclient.embedded import OAuthValidator
from kclient.security.oauthbearer import claims_of
from tests.security.authorization_server import AuthorizationServer
from tests.security.signed_tokens import SigningKey, ec_key, rsa_key
from tests.security.tokens import jwt

SKEW_SECONDS = 2
Sign = Callable[[AuthorizationServer], str]


@attrs.frozen
class Case:
    """A token, and the reason in the embedded cluster's log if it is refused; `kafka` is a part of Kafka's reason."""

    name: str
    sign: Sign
    reason: str | None = None
    kafka: str = ""


def expected_by(server: AuthorizationServer) -> OAuthValidator:
    """The rules of the module docstring for the embedded cluster."""
    return OAuthValidator(
        jwks=server.jwks(),
        expected_audience=["kafka"],
        expected_issuer=server.issuer,
        clock_skew_seconds=SKEW_SECONDS,
    )


def with_claims(lifetime: float = 60, key: SigningKey | None = None, **claims: object) -> Sign:
    """A token of alice with other claims, or, where they are None, without them."""
    return lambda server: server.sign({"sub": "alice", **claims}, lifetime, key)


def later(seconds: float, **others: float) -> Sign:
    """A token whose times are so many seconds from now, others than the expiry."""
    return lambda server: server.sign(
        {"sub": "alice", **{name: time.time() + value for name, value in others.items()}}, seconds
    )


def signed_by(key: SigningKey, **header: object) -> Sign:
    """A good token's claims under another key or header."""
    return lambda server: key.sign(claims_of(server.sign({"sub": "alice"})), **header)


ACCEPTED = [
    Case("RS256", with_claims()),
    Case("ES256", with_claims(key=ec_key())),
    Case("one audience of two", with_claims(aud=["other", "kafka"])),
    Case("no nbf", with_claims(nbf=None)),
    Case("valid in a second", later(60, nbf=1.5)),
    Case("issued in the future", later(60, iat=30)),
    Case("no kid", signed_by(rsa_key(), kid=None)),
    Case("another typ", signed_by(rsa_key(), typ="at+jwt")),
    Case("a list of scopes", with_claims(scope=["read", "write"])),
    Case("a scope that is no text", with_claims(scope=7)),
    Case("blanks around the subject", with_claims(sub=" alice ")),
]
NO_KEY = "Unable to find a suitable verification key"
REFUSED = [
    Case("wrong audience", with_claims(aud="other"), "the audience is other", "Audience (aud) claim [other]"),
    Case(
        "no audience", with_claims(aud=None), "the token has no audience", "No Audience (aud) claim present"
    ),
    Case("wrong issuer", with_claims(iss="other"), "the issuer is other", "Issuer (iss) claim value (other)"),
    Case("no issuer", with_claims(iss=None), "the issuer is None", "No Issuer (iss) claim present"),
    Case("expired", later(-5, iat=-60, nbf=-60), "the token expired", "The JWT is no longer valid"),
    Case("expires before it is issued", later(5, iat=30), "before its iat", "cannot be before the Issued At"),
    Case("expires before it is valid", later(5, nbf=30), "before its iat", "cannot be before the Not Before"),
    Case("not yet valid", later(60, nbf=10), "the token is not valid before", "The JWT is not yet valid"),
    Case("no exp", with_claims(exp=None), "no exp", "No Expiration Time (exp) claim present"),
    Case("exp as a text", with_claims(exp="9999999999"), "exp is not a number", "is not the expected type"),
    Case("no iat", with_claims(iat=None), "no iat", "No Issued At (iat) claim present"),
    Case("no subject", with_claims(sub=None), "no sub", "sub value must be non-null"),
    Case("a blank subject", with_claims(sub=" "), "no sub", "sub value must not contain only whitespace"),
    Case("a blank scope", with_claims(scope=""), "the scope has an item", "scope value must be non-empty"),
    Case("a scope twice", with_claims(scope=["a", "a"]), "there twice", "scope value must not contain dup"),
    Case("unknown key id", signed_by(rsa_key("rsa-9")), "no key rsa-9 for RS256", NO_KEY),
    Case(
        "bad signature", signed_by(rsa_key("rsa-9"), kid="rsa-1"), "not by the key", "Invalid JWS Signature"
    ),
    Case("an RSA key for ES256", signed_by(ec_key(), kid="rsa-1"), "no key rsa-1 for ES256", NO_KEY),
    Case("alg none with a signature", signed_by(rsa_key(), alg="none"), "for none", "none"),
    Case("a critical header", signed_by(rsa_key(), crit=["x"], x=1), "critical", "crit"),
    Case("unsecured", lambda server: jwt(), "no key None for none", "Malformed JWT provided"),
    Case("opaque", lambda server: "opaque", "three parts", "Malformed JWT provided"),
]
