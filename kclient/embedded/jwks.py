"""The public keys of a JSON Web Key Set (RFC 7517), and the signatures of tokens: RS256, and ES256 with P-256.

The signatures are checked by the package `cryptography`, which is imported with the first set.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from kclient.errors import ArgumentError, ConfigError
from kclient.security.oauthbearer import header_of
from kclient.text import printable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

RS256: Final = "RS256"
ES256: Final = "ES256"
HALF: Final = 32  # bytes of each of the two numbers of an ES256 signature


@attrs.frozen
class VerificationKey:
    """A public key, with the id and the algorithm for which the set lists it."""

    kid: str | None
    algorithm: str
    public: RSAPublicKey | EllipticCurvePublicKey

    def verify(self, content: bytes, signature: bytes) -> None:
        """Raise ValueError unless the signature of the content is by this key."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
        from cryptography.hazmat.primitives.hashes import SHA256

        try:
            if isinstance(self.public, rsa.RSAPublicKey):
                self.public.verify(signature, content, padding.PKCS1v15(), SHA256())
            elif len(signature) == 2 * HALF:
                # JWS has the two numbers side by side (RFC 7518, 3.4), OpenSSL wants them in DER.
                halves = (int.from_bytes(half, "big") for half in (signature[:HALF], signature[HALF:]))
                self.public.verify(utils.encode_dss_signature(*halves), content, ec.ECDSA(SHA256()))
            else:
                raise InvalidSignature
        except InvalidSignature:
            raise ValueError("the signature of the token is not by the key of the JWKS") from None


def verification_keys(jwks: Mapping[str, Any]) -> list[VerificationKey]:
    """Return the keys for RS256 and ES256; skip those of other algorithms and uses.

    Raise ArgumentError if there is none or one cannot be read, ConfigError without `cryptography`.
    """
    try:
        import cryptography.hazmat.primitives.asymmetric.ec
        import cryptography.hazmat.primitives.asymmetric.rsa  # noqa: F401
    except ImportError:
        raise ConfigError(
            "The embedded cluster checks signed tokens with the package cryptography, which is not installed. "
            "It comes with an extra. Type: pip install 'kclient-kafka[pkcs12]'"
        ) from None
    try:
        found = [key for entry in jwks["keys"] if (key := _verification_key(entry)) is not None]
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise ArgumentError(f"The JWKS cannot be read: {type(exc).__name__}: {exc}") from None
    if not found:
        raise ArgumentError("The JWKS has no key for RS256, nor one for ES256 with the curve P-256.")
    return found


def _verification_key(entry: Mapping[str, Any]) -> VerificationKey | None:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    kind, algorithm, kid = entry.get("kty"), entry.get("alg"), entry.get("kid")
    if entry.get("use") not in (None, "sig"):
        return None
    if kind == "RSA" and algorithm in (None, RS256):
        numbers = rsa.RSAPublicNumbers(_integer(entry["e"]), _integer(entry["n"]))
        return VerificationKey(kid, RS256, numbers.public_key())
    if kind == "EC" and algorithm in (None, ES256) and entry.get("crv") == "P-256":
        point = ec.EllipticCurvePublicNumbers(_integer(entry["x"]), _integer(entry["y"]), ec.SECP256R1())
        return VerificationKey(kid, ES256, point.public_key())
    return None


def check_signature(token: str, jwks: Mapping[str, Any]) -> None:
    """Raise ValueError unless the first key that fits the token's header has signed it."""
    header = header_of(token)
    algorithm, kid = header.get("alg"), header.get("kid")
    if "crit" in header:
        raise ValueError("the token has critical headers")
    for key in verification_keys(jwks):
        if kid in (None, key.kid) and key.algorithm == algorithm:
            content, _, signature = token.rpartition(".")
            key.verify(content.encode(), _bytes(signature))
            return
    raise ValueError(f"the JWKS has no key {printable(str(kid))} for {printable(str(algorithm))}")


def _integer(text: str) -> int:
    return int.from_bytes(_bytes(text), "big")


def _bytes(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        raise ValueError("a number or signature is not base64url") from None
