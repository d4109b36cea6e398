"""What the keys about TLS and SASL must agree on. Nothing insecure happens by leaving a key out.

A key that would have no effect is a problem too: whoever sets a trust store believes that the connection is encrypted.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kclient.config.security_values import SPOKEN, not_for_sasl
from kclient.security.jaas import parse_jaas, shown_module, shown_option

PREFIXES: Final = ("", "kafkashaded.")
PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
NOT_SPOKEN: Final = {
    "GSSAPI": "GSSAPI (Kerberos)",
    "OAUTHBEARER": "OAUTHBEARER",
}
BESIDE_A_CONTEXT: Final = ("ssl_context", "ssl_endpoint_identification_algorithm")
TLS_OWN: Final = ("tls_insecure_skip_verify",)
SASL_OWN: Final = ("scram_max_iterations", "allow_plaintext_credentials")


def disagreements(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> Iterator[str]:
    """What contradicts what, one sentence each. `values` holds every key."""
    changed = [name for name, value in values.items() if name in defaults and value != defaults[name]]
    protocol = values["security_protocol"]
    tls = [name for name in changed if name.startswith("ssl_") or name in TLS_OWN]
    sasl = [name for name in changed if name.startswith("sasl_") or name in SASL_OWN]
    yield from _tls(values, tls) if "SSL" in protocol else _without_effect(tls, protocol, "SSL or SASL_SSL")
    yield from (
        _sasl(values) if "SASL" in protocol else _without_effect(sasl, protocol, "SASL_SSL or SASL_PLAINTEXT")
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


def _sasl(values: Mapping[str, Any]) -> Iterator[str]:
    mechanism, protocol = values["sasl_mechanism"], values["security_protocol"]
    if mechanism not in SPOKEN:
        by_default = ", Kafka's default," if mechanism == "GSSAPI" else ""
        yield (
            f"sasl_mechanism {NOT_SPOKEN[mechanism]}{by_default} is not spoken by kclient yet; "
            f"write {', '.join(SPOKEN[:-1])} or {SPOKEN[-1]}"
        )
        return
    if mechanism == "PLAIN" and protocol == "SASL_PLAINTEXT" and not values["allow_plaintext_credentials"]:
        yield (
            "PLAIN over SASL_PLAINTEXT sends the password for everyone to read; use security_protocol=SASL_SSL or a "
            "SCRAM mechanism, or say allow_plaintext_credentials=True"
        )
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
