"""SASL SCRAM (RFC 5802, RFC 7677), the client's side as a pure object, and the grammar that both sides share.

    client                                       server
    n,,n=user,r=nonce                 ────────▶
                                      ◀────────  r=nonce+more,s=salt,i=iterations
    c=biws,r=nonce+more,p=proof       ────────▶
                                      ◀────────  v=signature                       or e=error

The password never travels. The signature proves that the server knows the credential too, so authentication without
one is a failure, whatever else the server says. Deriving the key (PBKDF2) takes milliseconds to a second: that is the
caller's to do off the loop, with `salted_password`. As in Kafka, names and passwords are UTF-8 without SASLprep.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from typing import Final

import attrs

from kclient.errors import InternalError

SCRAM_DIGESTS: Final[Mapping[str, str]] = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MIN_ITERATIONS: Final = 4_096
MAX_ITERATIONS: Final = 131_072
MAX_TEXT: Final = 1_024  # characters of a nonce, a salt or a signature; real ones have some dozens
HEADER: Final = "n,,"  # no channel binding, no authorization id
HEADER_BASE64: Final = "biws"

_NONCE = re.compile(r"[\x21-\x2b\x2d-\x7e]+")  # printable, no comma
_ATTRIBUTE = re.compile(r"([A-Za-z]+)=([^\x00,]*)")


class ScramError(ValueError):
    """The other side broke the protocol or proved nothing. The text never holds what it sent."""


@attrs.frozen
class Challenge:
    """The server's parameters for deriving the key."""

    salt: bytes
    iterations: int


def salted_password(mechanism: str, password: str, challenge: Challenge) -> bytes:
    """Return the key derived from the password: PBKDF2 with HMAC. Slow by design."""
    return hashlib.pbkdf2_hmac(
        SCRAM_DIGESTS[mechanism], password.encode(), challenge.salt, challenge.iterations
    )


class ScramClient:
    """One authentication: `first`, `challenge`, `final`, `verify`, each once and in this order.

    `nonce` is printable and at least 18 random bytes' worth. Every method that reads raises ScramError, after which
    the object is of no use.
    """

    def __init__(
        self,
        mechanism: str,
        username: str,
        nonce: str,
        *,
        max_iterations: int = MAX_ITERATIONS,
        token_auth: bool = False,
    ) -> None:
        self.mechanism = mechanism
        self._nonce = nonce
        self._max_iterations = max_iterations
        extension = ",tokenauth=true" if token_auth else ""
        self._first_bare = f"n={escaped(username)},r={nonce}{extension}"
        self._server_first = ""
        self._full_nonce = ""
        self._signature = b""

    def first(self) -> bytes:
        """Return the first token: the user name and a nonce."""
        return f"{HEADER}{self._first_bare}".encode()

    def challenge(self, token: bytes) -> Challenge:
        """Read the server's first token."""
        self._server_first = text_of(token)
        fields = attributes(self._server_first, "r", "s", "i")
        nonce, salt, iterations = fields["r"], decoded("salt", fields["s"]), fields["i"]
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise ScramError("the server's nonce does not extend ours")
        if not is_nonce(nonce):
            raise ScramError("the server's nonce is too long or has characters that it may not have")
        if not iterations.isascii() or not iterations.isdigit() or len(iterations) > 9:
            raise ScramError("the iteration count is not a number")
        if not MIN_ITERATIONS <= int(iterations) <= self._max_iterations:
            raise ScramError(
                f"the server asks for {int(iterations)} iterations, and {MIN_ITERATIONS} to {self._max_iterations} "
                "are allowed"
            )
        self._full_nonce = nonce
        return Challenge(salt, int(iterations))

    def final(self, salted: bytes) -> bytes:
        """Return the second token: the proof that we know the password, given the key from `salted_password`."""
        if not self._full_nonce:
            raise InternalError("a SCRAM proof was asked for before the server's challenge")
        without_proof = f"c={HEADER_BASE64},r={self._full_nonce}"
        signed = f"{self._first_bare},{self._server_first},{without_proof}".encode()
        keys = Keys.derive(self.mechanism, salted)
        self._signature = keys.server_signature(signed)
        return f"{without_proof},p={encoded(keys.proof(signed))}".encode()

    def verify(self, token: bytes) -> None:
        """Read the server's last token, which must prove that the server knows the credential."""
        text = text_of(token)
        if text.startswith("e="):
            raise ScramError("the server refused the proof")
        signature = decoded("signature", attributes(text, "v")["v"])
        if not self._signature or not hmac.compare_digest(signature, self._signature):
            raise ScramError("the server's signature is wrong: it does not know the credential")


@attrs.frozen(repr=False)
class Keys:
    """The keys derived from a salted password."""

    digest: str
    client_key: bytes
    stored_key: bytes
    server_key: bytes

    @classmethod
    def derive(cls, mechanism: str, salted: bytes) -> Keys:
        digest = SCRAM_DIGESTS[mechanism]
        client_key = hmac.digest(salted, b"Client Key", digest)
        stored_key = hashlib.new(digest, client_key).digest()
        return cls(digest, client_key, stored_key, hmac.digest(salted, b"Server Key", digest))

    def proof(self, signed: bytes) -> bytes:
        """Return the client's proof over the messages so far."""
        return xor(self.client_key, hmac.digest(self.stored_key, signed, self.digest))

    def server_signature(self, signed: bytes) -> bytes:
        """Return the server's proof over the messages so far."""
        return hmac.digest(self.server_key, signed, self.digest)


# --- the grammar -----------------------------------------------------------------------------------------------------


def text_of(token: bytes) -> str:
    """Return a token as text."""
    try:
        return bytes(token).decode()
    except UnicodeDecodeError:
        raise ScramError("a token is not UTF-8 text") from None


def attributes(text: str, *wanted: str) -> dict[str, str]:
    """Parse `r=…,s=…,i=…` to a dict: these attributes first, in this order, then optional extensions, none twice."""
    found: dict[str, str] = {}
    for part in text.split(","):
        match = _ATTRIBUTE.fullmatch(part)
        if match is None:
            raise ScramError(f"{' and '.join(wanted)} were expected, and something else came")
        name, value = match.groups()
        if name == "m":
            raise ScramError("an unknown mandatory extension was requested")
        if name in found:
            raise ScramError(f"attribute {name} came twice")
        found[name] = value
    if tuple(found)[: len(wanted)] != wanted:
        raise ScramError(f"{' and '.join(wanted)} were expected, and something else came")
    return found


def is_nonce(text: str) -> bool:
    """Return whether a text can be a nonce."""
    return len(text) <= MAX_TEXT and _NONCE.fullmatch(text) is not None


def decoded(what: str, text: str) -> bytes:
    """Decode base64 in its canonical form, not empty."""
    try:
        value = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        value = b""
    if not value or len(text) > MAX_TEXT or encoded(value) != text:
        raise ScramError(f"the {what} is empty, too long or not base64")
    return value


def encoded(value: bytes) -> str:
    """Encode bytes as base64 text."""
    return base64.b64encode(value).decode()


def escaped(username: str) -> str:
    """Return a user name as SCRAM writes it: `=` is =3D, `,` is =2C."""
    return username.replace("=", "=3D").replace(",", "=2C")


def unescaped(name: str) -> str:
    """Return the user name of its SCRAM form. Raise ScramError if it has any other `=`."""
    if "=" in name.replace("=2C", "").replace("=3D", ""):
        raise ScramError("the user name is not escaped as it must be")
    return name.replace("=2C", ",").replace("=3D", "=")


def xor(one: bytes, other: bytes) -> bytes:
    """Return the exclusive or of two byte strings of the same length."""
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


REFUSED: Final = "the proof does not fit the credential"


@attrs.frozen(repr=False)
class ScramCredential:
    """The credential that a server stores for a password."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes


def scram_credential(
    mechanism: str, password: str, salt: bytes, iterations: int = MIN_ITERATIONS
) -> ScramCredential:
    """Return the credential of a password. `salt` is random, at least one byte; PBKDF2 runs here."""
    keys = Keys.derive(mechanism, salted_password(mechanism, password, Challenge(salt, iterations)))
    return ScramCredential(salt, iterations, keys.stored_key, keys.server_key)


class ScramServer:
    """One authentication: `step` takes the client's token and returns the server's, until `done`.

    `lookup` finds a user's credential for `mechanism`, None where there is none; `nonce` is printable random text.
    `username` is known after the first step and proved when `done`. Raises ScramError.
    """

    def __init__(self, mechanism: str, lookup: Callable[[str], ScramCredential | None], nonce: str) -> None:
        self.mechanism = mechanism
        self.username: str = ""
        self.token_auth: bool = False
        self.done: bool = False
        self._lookup = lookup
        self._nonce = nonce
        self._credential: ScramCredential | None = None
        self._header = self._first_bare = self._first = ""

    def step(self, token: bytes) -> bytes:
        """Answer the client's next token."""
        if self.done:
            raise ScramError("a token came after the last one")
        return self._challenge(text_of(token)) if not self._first else self._signature(text_of(token))

    def _challenge(self, text: str) -> bytes:
        flag, comma, rest = text.partition(",")
        authorization_id, second_comma, bare = rest.partition(",")
        if flag != "n" or not (comma and second_comma):
            raise ScramError("only a client that knows no channel binding is expected")
        fields = attributes(bare, "n", "r")
        self.username = unescaped(fields["n"])
        if not self.username or authorization_id not in ("", f"a={fields['n']}"):
            raise ScramError("a user name is needed, and no user may authenticate for another")
        if not is_nonce(fields["r"]):
            raise ScramError("the client's nonce is not valid")
        self.token_auth = fields.get("tokenauth", "").lower() == "true"
        self._credential = self._lookup(self.username)
        self._nonce = fields["r"] + self._nonce
        if self._credential is None:
            raise ScramError("no user has this name")
        self._header = text[: len(text) - len(bare)]
        self._first_bare = bare
        self._first = f"r={self._nonce},s={encoded(self._credential.salt)},i={self._credential.iterations}"
        return self._first.encode()

    def _signature(self, text: str) -> bytes:
        fields = attributes(text, "c", "r")
        without_proof, comma, proof_field = text.rpartition(",")
        if not comma or not proof_field.startswith("p="):
            raise ScramError("the proof is missing, or it is not the last")
        header = HEADER_BASE64 if self._header == HEADER else encoded(self._header.encode())
        if fields["c"] != header or fields["r"] != self._nonce:
            raise ScramError("the channel binding or the nonce is not that of the first token")
        proof = decoded("proof", proof_field.removeprefix("p="))
        signed = f"{self._first_bare},{self._first},{without_proof}".encode()
        credential, digest = self._credential, SCRAM_DIGESTS[self.mechanism]
        if credential is None or len(proof) != len(credential.stored_key):
            raise ScramError(REFUSED)
        client_key = xor(proof, hmac.digest(credential.stored_key, signed, digest))
        if not hmac.compare_digest(hashlib.new(digest, client_key).digest(), credential.stored_key):
            raise ScramError(REFUSED)
        self.done = True
        return f"v={encoded(hmac.digest(credential.server_key, signed, digest))}".encode()
