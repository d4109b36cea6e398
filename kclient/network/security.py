"""What the configuration says about TLS and SASL, in the form that connections use."""

from __future__ import annotations

import ssl

from kclient.config import Config
from kclient.config.security_values import VERSIONS
from kclient.errors import ConfigError
from kclient.network.sasl import Authenticator, Credentials
from kclient.runtime import Runtime
from kclient.security.ciphers import Ciphers
from kclient.security.jaas import parse_jaas
from kclient.security.secret import Secret
from kclient.security.stores import Store
from kclient.security.tls import Tls, TlsOptions


def tls_of(config: Config) -> Tls | None:
    """TLS as the configuration wants it, None for plain text. Raises ConfigError where a store cannot be used."""
    if "SSL" not in config.security_protocol:
        return None
    identification = bool(config.ssl_endpoint_identification_algorithm)
    if config.ssl_context is not None:
        return Tls(
            TlsOptions(
                context=config.ssl_context,
                verify=config.ssl_context.verify_mode is ssl.CERT_REQUIRED,
                check_hostname=config.ssl_context.check_hostname,
            )
        )
    versions = [VERSIONS[name] for name in config.ssl_enabled_protocols]
    return Tls(
        TlsOptions(
            trusted=_trusted(config),
            identity=_identity(config),
            key=config.ssl_keystore_key,
            chain=config.ssl_keystore_certificate_chain,
            key_password=config.ssl_key_password,
            lowest=min(versions),
            highest=min(max(versions), VERSIONS.get(config.ssl_protocol, max(versions))),
            ciphers=Ciphers(config.ssl_cipher_suites),
            verify=not config.tls_insecure_skip_verify,
            check_hostname=identification,
        )
    )


def _trusted(config: Config) -> Store | Secret | None:
    if config.ssl_truststore_location is None:
        return config.ssl_truststore_certificates
    kind, password = config.ssl_truststore_type, config.ssl_truststore_password
    return Store("ssl_truststore", config.ssl_truststore_location, kind, password)


def _identity(config: Config) -> Store | None:
    if config.ssl_keystore_location is None:
        return None
    kind, password = config.ssl_keystore_type, config.ssl_keystore_password
    return Store("ssl_keystore", config.ssl_keystore_location, kind, password)


def authenticator_of(config: Config, runtime: Runtime) -> Authenticator | None:
    """Who we are to brokers, None without SASL. Raises ConfigError for what must not go over a plain connection."""
    if "SASL" not in config.security_protocol:
        return None
    in_clear = config.security_protocol == "SASL_PLAINTEXT" and config.sasl_mechanism == "PLAIN"
    if in_clear and not config.allow_plaintext_credentials:
        raise ConfigError("PLAIN needs TLS. It sends the password as it is. Use security_protocol=SASL_SSL.")
    user, password, token = config.sasl_username or "", config.sasl_password or Secret(""), False
    if (jaas := config.sasl_jaas_config) is not None:
        options = parse_jaas(jaas.reveal()).options
        user, token = options["username"], options.get("tokenauth", "").lower() == "true"
        # Its provider is asked anew for each authentication.
        password = Secret(lambda: parse_jaas(jaas.reveal()).options["password"])
    credentials = Credentials(config.sasl_mechanism, user, password, token, config.scram_max_iterations)
    return Authenticator(credentials, runtime, config.request_timeout_ms / 1000)
