"""Assertions: JSON Web Tokens with which a client proves to a token endpoint who it is (RFC 7523, KIP-1139, KIP-1258).

    AssertionFile        a file that another program renews
    SignedAssertion      made for each request, and signed with a private key

The claims of a signed one come in three layers, of which the later wins, as in Java:

    sasl.oauthbearer.assertion.claim.aud, .iss, .sub
    sasl.oauthbearer.assertion.template.file            {"header": {…}, "payload": {…}}
    alg, typ, iat, exp, nbf, and jti if wanted          by the clock of this machine

Files are read again for each request, so that a renewed key or template is used without a restart.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from kclient.errors import ConfigError
from kclient.security.local_file import LARGEST_TEXT, read_local
from kclient.security.oauthbearer import TokenError, check_token, encoded_part
from kclient.security.secret import HiddenBytes, HiddenText, Secret, problem_of

COORDINATE_BYTES: Final = 32  # of a signature with the curve P-256
NEEDS_EXTRA: Final = (
    "Signing an assertion needs a package that is not installed. It comes with an extra. "
    "Type: pip install 'kclient-kafka[oauth]'"
)


def read_text(path: str, key: str) -> HiddenText:
    """Return the text of a file without space around it. Raise TokenError with the name of the key."""
    try:
        text = HiddenText(read_local(path, LARGEST_TEXT).decode().strip())
    except (OSError, ValueError) as exc:
        why = "it is not UTF-8 text" if isinstance(exc, UnicodeDecodeError) else problem_of(exc)
        raise TokenError(f"{key}={path} cannot be read: {why}") from None
    if not text:
        raise TokenError(f"{key}={path} is empty")
    return text


@attrs.frozen
class AssertionFile:
    """A file with an assertion in its serialized form."""

    path: str

    def __call__(self) -> HiddenText:
        """Return the assertion. Raise TokenError."""
        text = read_text(self.path, "sasl_oauthbearer_assertion_file")
        try:
            check_token(text)
        except ValueError:
            raise TokenError(
                f"sasl_oauthbearer_assertion_file={self.path} does not hold an assertion"
            ) from None
        return text


@attrs.frozen(kw_only=True)
class SignedAssertion:
    """Makes assertions. `algorithm` is RS256 or ES256; the file has the private key in PEM (PKCS#8)."""

    algorithm: str
    key_file: str
    passphrase: Secret | None
    claims: Mapping[str, str]
    template_file: str | None
    exp_seconds: int
    nbf_seconds: int
    jti_include: bool
    wall_clock: Callable[[], float]
    random_bytes: Callable[[int], bytes]

    def __call__(self) -> HiddenText:
        """Return a new assertion. Raise TokenError, or ConfigError without the package that signs."""
        header, payload = self._template()
        header |= {"alg": self.algorithm, "typ": "JWT"}
        payload = {**self.claims, **payload, **self._times()}
        content = f"{encoded_part(header)}.{encoded_part(payload)}"
        signature = base64.urlsafe_b64encode(self._sign(content.encode())).decode().rstrip("=")
        return HiddenText(f"{content}.{signature}")

    def _times(self) -> dict[str, Any]:
        now = int(self.wall_clock())
        times: dict[str, Any] = {"iat": now, "exp": now + self.exp_seconds, "nbf": now - self.nbf_seconds}
        if self.jti_include:
            times["jti"] = str(uuid.UUID(bytes=self.random_bytes(16), version=4))
        return times

    def _template(self) -> tuple[dict[str, Any], dict[str, Any]]:
        if self.template_file is None:
            return {}, {}
        key = "sasl_oauthbearer_assertion_template_file"
        text = read_text(self.template_file, key)
        try:
            found = json.loads(text)
            header, payload = dict(found.get("header", {})), dict(found.get("payload", {}))
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise TokenError(
                f"{key}={self.template_file} must hold a JSON object with the objects header and payload"
            ) from None
        return header, payload

    def _sign(self, content: bytes) -> bytes:
        try:
            from cryptography.hazmat.primitives import hashes
            from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
        except ImportError:
            raise ConfigError(NEEDS_EXTRA) from None
        key = self._key()
        if self.algorithm == "RS256" and isinstance(key, rsa.RSAPrivateKey):
            return key.sign(content, padding.PKCS1v15(), hashes.SHA256())
        if (
            self.algorithm == "ES256"
            and isinstance(key, ec.EllipticCurvePrivateKey)
            and isinstance(key.curve, ec.SECP256R1)
        ):
            # OpenSSL writes the two numbers as ASN.1; a JSON Web Token has them one after the other (RFC 7518, 3.4).
            numbers = utils.decode_dss_signature(key.sign(content, ec.ECDSA(hashes.SHA256())))
            return b"".join(each.to_bytes(COORDINATE_BYTES, "big") for each in numbers)
        kind = "an RSA key" if self.algorithm == "RS256" else "a key of the curve P-256"
        raise TokenError(
            f"sasl_oauthbearer_assertion_private_key_file={self.key_file} is not {kind}, which "
            f"sasl_oauthbearer_assertion_algorithm={self.algorithm} needs"
        )

    def _key(self) -> Any:
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        what = f"sasl_oauthbearer_assertion_private_key_file={self.key_file}"
        pem = read_text(self.key_file, "sasl_oauthbearer_assertion_private_key_file").encode()
        try:
            password = None if self.passphrase is None else HiddenBytes(self.passphrase.reveal().encode())
        except ValueError as exc:  # its file or variable has gone
            why = "is not UTF-8 text" if isinstance(exc, UnicodeEncodeError) else str(exc)
            raise TokenError(f"sasl_oauthbearer_assertion_private_key_passphrase {why}") from None
        try:
            return load_pem_private_key(pem, password)
        except TypeError:
            need = "needs" if self.passphrase is None else "does not need"
            raise TokenError(f"{what} {need} sasl_oauthbearer_assertion_private_key_passphrase") from None
        except ValueError:
            raise TokenError(
                f"{what} cannot be opened: sasl_oauthbearer_assertion_private_key_passphrase is wrong, or it is not a "
                "private key in PEM"
            ) from None
