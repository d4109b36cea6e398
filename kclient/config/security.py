"""The rules between the TLS and SASL keys. All defaults are secure.

A key without effect is a problem too: a user who sets a trust store believes that the connection is encrypted.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kclient.config import kerberos, oauth
from kclient.config.cloud import AWS_MSK_IAM
from kclient.config.values import filled_text, items, text
from kclient.security.jaas import parse_jaas, shown_module, shown_option
from kclient.security.secret import Secret

PREFIXES: Final = ("", "kafkashaded.")
PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
BESIDE_A_CONTEXT: Final = ("ssl_context", "ssl_endpoint_identification_algorithm")
TLS_OWN: Final = ("tls_insecure_skip_verify",)
SASL_OWN: Final = ("scram_max_iterations", "allow_plaintext_credentials")
OAUTH_KEYS: Final = ("sasl_oauth", "sasl_login_")
IN_CLEAR: Final = {"PLAIN": "the password", "OAUTHBEARER": "the token", AWS_MSK_IAM: "the token"}
"""What these mechanisms send as it is."""


def disagreements(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> Iterator[str]:
    """Return the contradictions, one sentence each. `values` holds every key."""
    changed = [name for name, value in values.items() if name in defaults and value != defaults[name]]
    protocol = values["security_protocol"]
    tls = [name for name in changed if name.startswith("ssl_") or name in TLS_OWN]
    sasl = [name for name in changed if name.startswith("sasl_") or name in SASL_OWN]
    yield from _tls(values, tls) if "SSL" in protocol else _without_effect(tls, protocol, "SSL or SASL_SSL")
    yield from (
        _sasl(values, sasl)
        if "SASL" in protocol
        else _without_effect(sasl, protocol, "SASL_SSL or SASL_PLAINTEXT")
    )


def _without_effect(names: list[str], protocol: str, wanted: str) -> Iterator[str]:
    if names:
        yield (
            f"security_protocol is {protocol}, under which {', '.join(names)} would do nothing: "
            f"write security_protocol={wanted}, or leave the rest out"
        )


# --- TLS -------------------------------------------------------------------------------------------------------------


def _tls(values: Mapping[str, Any], changed: list[str]) -> Iterator[str]:
    context: ssl.SSLContext | None = values["ssl_context"]
    if context is not None:
        yield from _ready_context(values, context, changed)
        return
    given = values.__getitem__
    for place, inline in (("truststore", "truststore_certificates"), ("keystore", "keystore_key")):
        if given(f"ssl_{place}_location") is not None and given(f"ssl_{inline}") is not None:
            yield f"ssl_{place}_location and ssl_{inline} exclude each other; keep one"
        if given(f"ssl_{place}_location") is None and given(f"ssl_{place}_password") is not None:
            yield f"ssl_{place}_password is for the file of ssl_{place}_location, which is not set"
        if given(f"ssl_{place}_type") == "PKCS12" and given(f"ssl_{place}_location") is None:
            yield f"ssl_{place}_type=PKCS12 is for the file of ssl_{place}_location, which is not set"
        if given(f"ssl_{place}_type") == "PEM" and given(f"ssl_{place}_password") is not None:
            yield f"ssl_{place}_password is not for PEM; an encrypted key's password is ssl_key_password"
    if (given("ssl_keystore_key") is None) != (given("ssl_keystore_certificate_chain") is None):
        yield "ssl_keystore_key and ssl_keystore_certificate_chain belong together; give both"
    no_key = given("ssl_keystore_location") is None and given("ssl_keystore_key") is None
    if no_key and given("ssl_key_password") is not None:
        yield "ssl_key_password is for a key, and neither ssl_keystore_location nor ssl_keystore_key is set"
    if given("ssl_protocol") == "TLSv1.2" and given("ssl_enabled_protocols") == ("TLSv1.3",):
        yield "ssl_protocol=TLSv1.2 and ssl_enabled_protocols=TLSv1.3 leave no version"


def _ready_context(values: Mapping[str, Any], context: ssl.SSLContext, changed: list[str]) -> Iterator[str]:
    others = [name for name in changed if name not in (*BESIDE_A_CONTEXT, *TLS_OWN)]
    if others:
        yield f"ssl_context says everything about TLS; leave out {', '.join(others)}"
    skips = values["tls_insecure_skip_verify"]
    if (context.verify_mode is not ssl.CERT_REQUIRED) and not skips:
        yield (
            "ssl_context does not verify certificates; set its verify_mode to ssl.CERT_REQUIRED, "
            "or say tls_insecure_skip_verify=True too"
        )
    elif not context.check_hostname and not skips and values["ssl_endpoint_identification_algorithm"]:
        yield (
            "ssl_context does not check host names; set its check_hostname, "
            'or say ssl_endpoint_identification_algorithm="" too'
        )
    if context.check_hostname and (skips or not values["ssl_endpoint_identification_algorithm"]):
        yield "ssl_context checks host names, and another key says not to; keep one of the two"
    if context.minimum_version < ssl.TLSVersion.TLSv1_2:
        yield "ssl_context allows versions before TLS 1.2; set its minimum_version to ssl.TLSVersion.TLSv1_2"


# --- SASL ------------------------------------------------------------------------------------------------------------


def _sasl(values: Mapping[str, Any], changed: list[str]) -> Iterator[str]:
    mechanism, protocol = values["sasl_mechanism"], values["security_protocol"]
    if mechanism == "GSSAPI":
        yield from kerberos.disagreements(values, changed)
        return
    if of_kerberos := [name for name in changed if name.startswith(kerberos.PREFIX)]:
        yield f"{', '.join(of_kerberos)} would do nothing: {mechanism} has no tickets; leave it out, or say GSSAPI"
    if mechanism in IN_CLEAR and protocol == "SASL_PLAINTEXT" and not values["allow_plaintext_credentials"]:
        yield (
            f"{mechanism} over SASL_PLAINTEXT sends {IN_CLEAR[mechanism]} for everyone to read; use "
            "security_protocol=SASL_SSL or a SCRAM mechanism, or say allow_plaintext_credentials=True"
        )
    if mechanism in ("OAUTHBEARER", AWS_MSK_IAM):
        yield from oauth.disagreements(values, changed)
        return
    if idle := [name for name in changed if name.startswith(OAUTH_KEYS)]:
        yield f"{', '.join(idle)} would do nothing: {mechanism} has no tokens; leave it out, or say OAUTHBEARER"
    if values["sasl_jaas_config"] is not None:
        if values["sasl_username"] is not None or values["sasl_password"] is not None:
            yield "sasl_jaas_config says user and password; leave sasl_username and sasl_password out"
        yield from _jaas(values, mechanism)
    elif values["sasl_username"] is None or values["sasl_password"] is None:
        yield f"{mechanism} needs sasl_username and sasl_password, or sasl_jaas_config"
    elif why := not_for_sasl(values["sasl_password"].reveal()):
        yield f"sasl_password {why}"


def _jaas(values: Mapping[str, Any], mechanism: str) -> Iterator[str]:
    entry = parse_jaas(values["sasl_jaas_config"].reveal())
    wanted = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
    if entry.module not in [prefix + wanted for prefix in PREFIXES]:
        yield f"sasl_jaas_config must name {wanted} for {mechanism}; it names {shown_module(entry.module)}"
        return
    known = ("username", "password") if mechanism == "PLAIN" else ("username", "password", "tokenauth")
    for name in entry.options:
        if name not in known:
            yield f"sasl_jaas_config has an option {shown_option(name)}, which {mechanism} does not know"
    if not entry.options.get("username") or not entry.options.get("password"):
        yield "sasl_jaas_config must hold a username and a password"
    if why := not_for_sasl("".join(entry.options.values())):
        yield f"sasl_jaas_config {why}"
    if entry.options.get("tokenauth", "false").lower() not in ("true", "false"):
        yield "sasl_jaas_config: tokenauth must be true or false"


PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", AWS_MSK_IAM)
STORE_TYPES: Final = ("JKS", "PKCS12", "PEM")
VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
OLD_VERSIONS: Final = ("SSL", "SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1")


def secret(raw: Any) -> Secret:
    """Check a secret: text, a Secret, or a provider of text."""
    found = raw if isinstance(raw, Secret) else Secret(raw) if isinstance(raw, str) or callable(raw) else None
    if found is None:
        raise ValueError("must be text, or a function that returns it")
    if not found.reveal().strip():
        raise ValueError("must not be empty or blank; leave the key out instead")
    return found


def jaas(raw: Any) -> Secret:
    """Check a JAAS entry."""
    found = secret(raw)
    parse_jaas(found.reveal())
    return found


def store_type(raw: Any) -> str:
    """Check a store type: JKS, PKCS12 or PEM, in any case."""
    return _word(raw, STORE_TYPES)


def security_protocol(raw: Any) -> str:
    """Check the security protocol, in any case."""
    return _word(raw, PROTOCOLS)


def mechanism(raw: Any) -> str:
    """Check a SASL mechanism, in any case."""
    return _word(raw, MECHANISMS)


def tls_version(raw: Any) -> str:
    """Check the newest TLS version to use."""
    word = text(raw)
    if word in OLD_VERSIONS:
        raise ValueError("is not safe; write TLSv1.3 or TLSv1.2")
    if word not in ("TLS", *VERSIONS):
        raise ValueError("must be TLSv1.3 or TLSv1.2")
    return word


def tls_versions(raw: Any) -> tuple[str, ...]:
    """Check the TLS versions that may be used."""
    words = tuple(items(raw))
    for word in words:
        if word in OLD_VERSIONS:
            raise ValueError(f"names {word}, which is not safe; write TLSv1.2,TLSv1.3")
    if not words or any(word not in VERSIONS for word in words):
        raise ValueError("must be TLSv1.2,TLSv1.3 or one of them")
    return words


def ciphers(raw: Any) -> tuple[str, ...]:
    """Check names of cipher suites; none for OpenSSL's default."""
    words = tuple(items(raw))
    if any(
        not isinstance(word, str) or not word.replace("-", "").replace("_", "").isalnum() for word in words
    ):
        raise ValueError("must name cipher suites, with commas between")
    return words


def identification(raw: Any) -> str:
    """Check the identification: `https`, the certificate must name the host; empty, it need not."""
    word = text(raw).lower()
    if word not in ("", "https"):
        raise ValueError("must be https, or empty to let a certificate for another host pass")
    return word


def ready_context(raw: Any) -> ssl.SSLContext:
    """Check a context, from `ssl.create_default_context` or the like."""
    if not isinstance(raw, ssl.SSLContext):
        raise ValueError("must be an ssl.SSLContext")
    return raw


def username(raw: Any) -> str:
    """Check a user name."""
    name = filled_text(raw)
    if why := not_for_sasl(name):
        raise ValueError(why)
    return name


def not_for_sasl(text: str) -> str:
    """Return why a user or password cannot be sent, empty if it can. The environment may hold invalid text."""
    if "\x00" in text:
        return "must not hold a NUL character"
    return "must be text in UTF-8, and a part of it is none" if re.search("[\ud800-\udfff]", text) else ""


def _word(raw: Any, choices: tuple[str, ...]) -> str:
    word = text(raw).upper()
    if word not in choices:
        raise ValueError(f"must be {', '.join(choices[:-1])} or {choices[-1]}")
    return word
