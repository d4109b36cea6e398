"""What the values of the keys about TLS and SASL may be. The rules are as in `values.py`.

No message of a rule here holds a value that is a secret, and the loader shows none for these keys either.
"""

from __future__ import annotations

import re
import ssl
from typing import Any, Final

from kclient.config.values import filled_text, items, text
from kclient.security.jaas import parse_jaas
from kclient.security.secret import Secret

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SPOKEN: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS: Final = (*SPOKEN, "GSSAPI", "OAUTHBEARER")
STORE_TYPES: Final = ("JKS", "PKCS12", "PEM")
VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
OLD_VERSIONS: Final = ("SSL", "SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1")


def secret(raw: Any) -> Secret:
    """A text that nobody sees: text, a Secret, or a provider of text."""
    found = raw if isinstance(raw, Secret) else Secret(raw) if isinstance(raw, str) or callable(raw) else None
    if found is None:
        raise ValueError("must be text, or a function that returns it")
    if not found.reveal().strip():
        raise ValueError("must not be empty or blank; leave the key out instead")
    return found


def jaas(raw: Any) -> Secret:
    """A JAAS entry."""
    found = secret(raw)
    parse_jaas(found.reveal())
    return found


def store_type(raw: Any) -> str:
    """JKS, PKCS12 or PEM, in any case."""
    return _word(raw, STORE_TYPES)


def security_protocol(raw: Any) -> str:
    """How to talk to brokers, in any case."""
    return _word(raw, PROTOCOLS)


def mechanism(raw: Any) -> str:
    """A SASL mechanism, in any case; whether kclient speaks it is for the rules between keys."""
    return _word(raw, MECHANISMS)


def tls_version(raw: Any) -> str:
    """The newest version of TLS to speak."""
    word = text(raw)
    if word in OLD_VERSIONS:
        raise ValueError("is not safe; write TLSv1.3 or TLSv1.2")
    if word not in ("TLS", *VERSIONS):
        raise ValueError("must be TLSv1.3 or TLSv1.2")
    return word


def tls_versions(raw: Any) -> tuple[str, ...]:
    """The versions of TLS that may be spoken."""
    words = tuple(items(raw))
    for word in words:
        if word in OLD_VERSIONS:
            raise ValueError(f"names {word}, which is not safe; write TLSv1.2,TLSv1.3")
    if not words or any(word not in VERSIONS for word in words):
        raise ValueError("must be TLSv1.2,TLSv1.3 or one of them")
    return words


def ciphers(raw: Any) -> tuple[str, ...]:
    """Names of cipher suites; none for OpenSSL's own choice."""
    words = tuple(items(raw))
    if any(
        not isinstance(word, str) or not word.replace("-", "").replace("_", "").isalnum() for word in words
    ):
        raise ValueError("must name cipher suites, with commas between")
    return words


def identification(raw: Any) -> str:
    """`https`: the certificate must name the host. Empty: it need not."""
    word = text(raw).lower()
    if word not in ("", "https"):
        raise ValueError("must be https, or empty to let a certificate for another host pass")
    return word


def ready_context(raw: Any) -> ssl.SSLContext:
    """A context of `ssl.create_default_context` or the like."""
    if not isinstance(raw, ssl.SSLContext):
        raise ValueError("must be an ssl.SSLContext")
    return raw


def username(raw: Any) -> str:
    """A user's name."""
    name = filled_text(raw)
    if why := not_for_sasl(name):
        raise ValueError(why)
    return name


def not_for_sasl(text: str) -> str:
    """Why a user or password cannot be sent; nothing if it can. What the environment holds need not be text."""
    if "\x00" in text:
        return "must not hold a NUL character"
    return "must be text in UTF-8, and a part of it is none" if re.search("[\ud800-\udfff]", text) else ""


def _word(raw: Any, choices: tuple[str, ...]) -> str:
    word = text(raw).upper()
    if word not in choices:
        raise ValueError(f"must be {', '.join(choices[:-1])} or {choices[-1]}")
    return word
