"""How the brokers check the tokens of OAUTHBEARER: by a JWKS, or, as Kafka does by default, without signatures.

    EmbeddedCluster(
        listeners=[Listener("SASL_SSL", ssl=context, mechanisms=("OAUTHBEARER",))],
        oauth=OAuthValidator(jwks=keys, expected_audience=["kafka"], expected_issuer="https://login.example"),
    )

The rules for signed tokens are those of Kafka's OAuthBearerValidatorCallbackHandler:

| part of the token | accepted |
|---|---|
| signature | RS256 or ES256, by the first key of the JWKS that fits `kid` (if there is one) and `alg` |
| exp, iat | both are there; now - skew < exp; neither iat nor nbf is after exp |
| nbf | missing, or nbf <= now + skew |
| aud | one of the expected ones; without expected ones, missing |
| iss | the expected one; without one, anything |
| scope | missing, a text that is not blank, or a list of different ones |
| sub | a text that is not blank: the principal |

Any other token is refused with {"status":"invalid_token"}, and the reason is only in the log. The session ends with the
token: one that has expired by less than the skew is accepted, and the connection closes with the next request.

`required_scope` is a rule of Kafka's validator of unsecured tokens. It applies to signed ones too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import attrs

from kclient.embedded.jwks import check_signature, verification_keys
from kclient.security.oauthbearer import claims_of, is_unsecured
from kclient.text import printable

INVALID: Final = '{"status":"invalid_token"}'


class TokenRefusedError(Exception):
    """A token is refused: the text is the reason, `challenge` what the client gets (RFC 7628, 3.2.2)."""

    def __init__(self, reason: str, challenge: str = INVALID) -> None:
        super().__init__(reason)
        self.challenge = challenge


@attrs.frozen
class AcceptedToken:
    """Whom a token authenticates, and until when, in seconds since 1970."""

    principal: str
    expires_at: float


def _texts(given: Collection[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


@attrs.define(eq=False, kw_only=True)
class OAuthValidator:
    """What the brokers demand of a token; attributes are named after Kafka's `sasl.oauthbearer.*` keys.

    `jwks` is a JSON Web Key Set (RFC 7517) as a mapping, None for unsecured tokens. Assign another one to it, and all
    brokers use that from then on. Raise ArgumentError for a set without a key for RS256 or ES256, ConfigError if the
    package `cryptography` is not installed.
    """

    jwks: Mapping[str, Any] | None = attrs.field(default=None)
    expected_audience: Collection[str] = attrs.field(default=(), converter=_texts)
    expected_issuer: str | None = None
    clock_skew_seconds: float = 30.0
    scope_claim_name: str = "scope"
    sub_claim_name: str = "sub"
    required_scope: str = ""

    @jwks.validator
    def _readable(self, attribute: object, jwks: Mapping[str, Any] | None) -> None:
        if jwks is not None:
            verification_keys(jwks)

    def validate(self, token: str, now: float) -> AcceptedToken:
        """Accept a token at a time in seconds since 1970. Raise TokenRefusedError."""
        try:
            claims = claims_of(token)
            if self.jwks is None:
                accepted = self._unsecured(token, claims, now)
            else:
                check_signature(token, self.jwks)
                accepted = self._signed(claims, now)
        except ValueError as exc:
            raise TokenRefusedError(str(exc)) from None
        self._check_required_scope(claims)
        return accepted

    def _unsecured(self, token: str, claims: Mapping[str, Any], now: float) -> AcceptedToken:
        if not is_unsecured(token):
            raise ValueError("the token has a signature, and there is no JWKS")
        expires_at = _time(claims, "exp")
        if expires_at is None or expires_at <= now:
            raise ValueError("the token has expired, or has no exp")
        return AcceptedToken(self._principal(claims), expires_at)

    def _signed(self, claims: Mapping[str, Any], now: float) -> AcceptedToken:
        expires_at = self._check_times(claims, now)
        self._check_audience(claims.get("aud"))
        issuer = claims.get("iss")
        if self.expected_issuer is not None and issuer != self.expected_issuer:
            raise ValueError(f"the issuer is {printable(str(issuer))}, not {self.expected_issuer}")
        self._check_scope(claims.get(self.scope_claim_name))
        return AcceptedToken(self._principal(claims).strip(), expires_at)

    def _check_times(self, claims: Mapping[str, Any], now: float) -> float:
        expires_at, issued_at, since = (_time(claims, name) for name in ("exp", "iat", "nbf"))
        if expires_at is None or issued_at is None:
            raise ValueError("the token has no exp, or no iat")
        if now - self.clock_skew_seconds >= expires_at:
            raise ValueError(f"the token expired {now - expires_at:.0f} s ago")
        if issued_at > expires_at or (since is not None and since > expires_at):
            raise ValueError("the token expires before its iat or nbf")
        if since is not None and since > now + self.clock_skew_seconds:
            raise ValueError(f"the token is not valid before {since - now:.0f} s from now")
        return expires_at

    def _check_audience(self, audience: object) -> None:
        found = audience if isinstance(audience, list) else [] if audience is None else [audience]
        if not found and self.expected_audience:
            raise ValueError("the token has no audience")
        if found and not any(one in self.expected_audience for one in found):
            expected = ", ".join(self.expected_audience) or "none"
            raise ValueError(f"the audience is {printable(str(audience))}; expected: {expected}")

    def _check_scope(self, scope: object) -> None:
        if isinstance(scope, str):
            scope = [scope]
        if isinstance(scope, list):
            found = [one.strip() if isinstance(one, str) else "" for one in scope]
            if not all(found) or len(set(found)) < len(found):
                raise ValueError("the scope has an item that is blank, no text, or there twice")

    def _principal(self, claims: Mapping[str, Any]) -> str:
        found = claims.get(self.sub_claim_name)
        if not isinstance(found, str) or not found.strip():
            raise ValueError(f"the token has no {self.sub_claim_name}")
        return found

    def _check_required_scope(self, claims: Mapping[str, Any]) -> None:
        required, scope = self.required_scope.split(), claims.get(self.scope_claim_name)
        found = scope.split() if isinstance(scope, str) else scope if isinstance(scope, list) else []
        if missing := [one for one in required if one not in found]:
            # Java's List.toString
            wanted = f"[{', '.join(required)}]"
            raise TokenRefusedError(
                f"the scope has no {', '.join(missing)}",
                f'{{"status":"insufficient_scope", "scope":"{wanted}"}}',
            )


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    """Return a time. Raise ValueError for a claim of another type, or one beyond Java's long: JSON has any number."""
    found = claims.get(name)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise ValueError(f"the claim {name} is not a number")
    if not abs(found) < 1 << 63:  # NaN is not, either
        raise ValueError(f"the claim {name} is no time")
    return found
