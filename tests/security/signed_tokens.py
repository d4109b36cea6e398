"""JSON Web Tokens with a signature: keys that sign with RS256 and ES256, and what a JWKS says of them."""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Mapping
from typing import Any, Literal

import attrs
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from kclient.security.oauthbearer import claims_of

Algorithm = Literal["RS256", "ES256"]
HALF = 32  # bytes of each number of an ES256 signature


def encoded(value: bytes) -> str:
    """Base64url without padding."""
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def decoded(text: str) -> bytes:
    """The bytes of base64url without padding."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@attrs.frozen
class SigningKey:
    """A private key with the id under which a JWKS lists its public half."""

    kid: str
    private: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey = attrs.field(repr=False)

    @property
    def algorithm(self) -> Algorithm:
        return "RS256" if isinstance(self.private, rsa.RSAPrivateKey) else "ES256"

    def sign(self, claims: Mapping[str, Any], **header: Any) -> str:
        """A token of exactly these claims; `header` replaces and adds to alg, typ and kid."""
        head = {"alg": self.algorithm, "typ": "JWT", "kid": self.kid, **header}
        parts = (json.dumps(part, separators=(",", ":")).encode() for part in (head, claims))
        content = ".".join(map(encoded, parts))
        return f"{content}.{encoded(self._signature(content.encode()))}"

    def _signature(self, content: bytes) -> bytes:
        if isinstance(self.private, rsa.RSAPrivateKey):
            return self.private.sign(content, padding.PKCS1v15(), hashes.SHA256())
        numbers = decode_dss_signature(self.private.sign(content, ec.ECDSA(hashes.SHA256())))
        return b"".join(number.to_bytes(HALF, "big") for number in numbers)

    def verified(self, token: str) -> dict[str, Any]:
        """The claims of a token that this key signed. Raise ValueError for any other."""
        content, _, signature = token.rpartition(".")
        claims, value = claims_of(token), decoded(signature)
        try:
            if isinstance(self.private, rsa.RSAPrivateKey):
                rsa_key = self.private.public_key()
                rsa_key.verify(value, content.encode(), padding.PKCS1v15(), hashes.SHA256())
            else:
                halves = (int.from_bytes(half, "big") for half in (value[:HALF], value[HALF:]))
                der = encode_dss_signature(*halves)
                self.private.public_key().verify(der, content.encode(), ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            raise ValueError("another key signed the token") from None
        return claims

    def jwk(self) -> dict[str, str]:
        """The public half as an entry of a JWKS (RFC 7517)."""
        common = {"kid": self.kid, "use": "sig", "alg": self.algorithm}
        if isinstance(self.private, rsa.RSAPrivateKey):
            rsa_numbers = self.private.public_key().public_numbers()
            return {"kty": "RSA", **common, "n": _integer(rsa_numbers.n), "e": _integer(rsa_numbers.e)}
        point = self.private.public_key().public_numbers()
        x, y = (encoded(number.to_bytes(HALF, "big")) for number in (point.x, point.y))
        return {"kty": "EC", "crv": "P-256", **common, "x": x, "y": y}

    def private_pem(self, password: str | None = None) -> str:
        """PKCS #8, as Kafka's assertion private key files are."""
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password is not None:
            encryption = serialization.BestAvailableEncryption(password.encode())
        pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        return self.private.private_bytes(pem, pkcs8, encryption).decode()


def _integer(number: int) -> str:
    return encoded(number.to_bytes((number.bit_length() + 7) // 8, "big"))


@functools.cache
def rsa_key(kid: str = "rsa-1") -> SigningKey:
    """A key for RS256; the same one for the same id."""
    return SigningKey(kid, rsa.generate_private_key(public_exponent=65537, key_size=2048))


@functools.cache
def ec_key(kid: str = "ec-1") -> SigningKey:
    """A key for ES256; the same one for the same id."""
    return SigningKey(kid, ec.generate_private_key(ec.SECP256R1()))
