"""SASL SCRAM, the server's side as a pure object: it holds keys, never a password.

A user who is not known is refused at the first token, as by Kafka.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import Final

import attrs

from kclient.security.scram import (
    HEADER,
    HEADER_BASE64,
    MIN_ITERATIONS,
    SCRAM_DIGESTS,
    Challenge,
    Keys,
    ScramError,
    attributes,
    decoded,
    encoded,
    is_nonce,
    salted_password,
    text_of,
    unescaped,
    xor,
)

REFUSED: Final = "the proof does not fit the credential"


@attrs.frozen(repr=False)
class ScramCredential:
    """What a server keeps of a password."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes


def scram_credential(
    mechanism: str, password: str, salt: bytes, iterations: int = MIN_ITERATIONS
) -> ScramCredential:
    """The credential of a password. `salt` is random, at least one byte; PBKDF2 runs here."""
    keys = Keys.derive(mechanism, salted_password(mechanism, password, Challenge(salt, iterations)))
    return ScramCredential(salt, iterations, keys.stored_key, keys.server_key)


class ScramServer:
    """One authentication: `step` takes the client's token and returns ours, until `done`.

    `lookup` finds a user's credential for `mechanism`, None where there is none; `nonce` is printable random text.
    `username` is known after the first step and proved when `done`. Raises ScramError.
    """

    def __init__(self, mechanism: str, lookup: Callable[[str], ScramCredential | None], nonce: str) -> None:
        self.mechanism = mechanism
        self.username = ""
        self.token_auth = False
        self.done = False
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
            raise ScramError("a user name is needed, and nobody may speak for another user")
        if not is_nonce(fields["r"]):
            raise ScramError("the client's nonce is no nonce")
        self.token_auth = fields.get("tokenauth", "").lower() == "true"
        self._credential = self._lookup(self.username)
        self._nonce = fields["r"] + self._nonce
        if self._credential is None:
            raise ScramError("nobody has this name")
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
