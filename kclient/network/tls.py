"""The typed errors of TLS handshakes, and the TlsOptions of a configuration."""

from __future__ import annotations

import ssl
from typing import Final

from kclient.config import Config
from kclient.config.security import VERSIONS
from kclient.errors import (
    CertificateError,
    ConnectError,
    HostnameMismatchError,
    PeerDoesNotSpeakTlsError,
    PortClosedError,
    TlsError,
)
from kclient.network.errors import where
from kclient.network.peer import Peer
from kclient.security.certificate import CertificateFacts
from kclient.security.secret import Secret
from kclient.security.stores import CertificateStore
from kclient.security.tls import Ciphers, Tls, TlsOptions
from kclient.text import format_names

MOST_NAMES: Final = 20
HOSTNAME_MISMATCH: Final = 62  # OpenSSL's X509_V_ERR_…
IP_ADDRESS_MISMATCH: Final = 64
NOT_YET_VALID: Final = 9
HAS_EXPIRED: Final = 10
NOT_TLS: Final = (
    "WRONG_VERSION_NUMBER",
    "HTTP_REQUEST",
    "HTTPS_PROXY_REQUEST",
    "UNKNOWN_PROTOCOL",
    "RECORD_LAYER_FAILURE",
    "PACKET_LENGTH_TOO_LONG",
    "BAD_RECORD_TYPE",
)
NO_VERSION: Final = ("PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL", "NO_PROTOCOLS_AVAILABLE", "VERSION_TOO_LOW")
CLIENT_CERTIFICATE: Final = (
    "CERTIFICATE_REQUIRED",
    "BAD_CERTIFICATE",
    "UNKNOWN_CA",
    "CERTIFICATE_UNKNOWN",
    "CERTIFICATE_EXPIRED",
    "CERTIFICATE_REVOKED",
    "UNSUPPORTED_CERTIFICATE",
    "ACCESS_DENIED",
)


def certificate_not_trusted(
    peer: Peer,
    seconds: float,
    error: ssl.SSLCertVerificationError,
    facts: CertificateFacts | None,
    tls: TlsOptions,
) -> TlsError:
    """Return the error for a certificate that OpenSSL does not trust, or that is for another name."""
    if error.verify_code in (HOSTNAME_MISMATCH, IP_ADDRESS_MISMATCH):
        return _hostname_mismatch(peer, seconds, facts)
    described = (
        ""
        if facts is None
        else (
            f" It is for {format_names(facts.names, MOST_NAMES) or facts.subject}, issued by {facts.issuer}, "
            f"valid from {facts.not_before} to {facts.not_after}."
        )
    )
    why = f"It was checked against {tls.authorities}."
    advice = (
        "Give the certificate of the authority that issued it as ssl_truststore_location (a PEM or PKCS#12 file) "
        "or ssl_truststore_certificates (PEM text)."
    )
    if error.verify_code in (HAS_EXPIRED, NOT_YET_VALID):
        advice = "Renew the broker's certificate, or set the clock of this machine."
    return CertificateError(
        f"{peer}: the broker's certificate is not trusted ({error.verify_message}; {seconds:.2f} s).{described} "
        f"{why} {advice}",
        names=() if facts is None else facts.names,
        issuer="" if facts is None else facts.issuer,
        not_after="" if facts is None else facts.not_after,
        authorities=tls.authorities,
        **where(peer),
    )


def _hostname_mismatch(peer: Peer, seconds: float, facts: CertificateFacts | None) -> HostnameMismatchError:
    names = () if facts is None else facts.names
    shown = format_names(names, MOST_NAMES) or "no name at all, as the subject alone does not count"
    return HostnameMismatchError(
        f"{peer}: the broker's certificate is not for {peer.host!r} ({seconds:.2f} s); it is for {shown}. "
        "The certificate lacks the name that the broker is addressed by, or this is another server. "
        "Use one of its names, or have a certificate issued that contains this one too.",
        names=names,
        **where(peer),
    )


def tls_handshake_failed(peer: Peer, seconds: float, error: ssl.SSLError, tls: TlsOptions) -> TlsError:
    """Return the error for a handshake that OpenSSL or the broker ended."""
    reason = error.reason or ""
    if any(word in reason for word in NOT_TLS):
        return does_not_speak_tls(peer, seconds)
    shown = reason.replace("_", " ").lower() or type(error).__name__
    cause, advice = (
        "Client and broker have no cipher suite in common, or the broker requires a feature that this client lacks.",
        "Compare ssl_cipher_suites and ssl_enabled_protocols with the broker's, and read the broker's log.",
    )
    if "HANDSHAKE_FAILURE" in reason and tls.shows_certificate is False:
        cause = (
            "Client and broker have no cipher suite in common, or the broker requires a client certificate, "
            "and none is configured."
        )
        advice = f"If it requires one, set ssl_keystore_location; otherwise {advice[0].lower()}{advice[1:]}"
    elif any(word in reason for word in NO_VERSION):
        cause = "Client and broker have no TLS version in common; kclient supports only 1.2 and 1.3."
        advice = "Enable one of these in the broker's ssl.enabled.protocols."
    elif any(word in reason for word in CLIENT_CERTIFICATE):
        cause, advice = _client_certificate_rejected(tls.shows_certificate)
    return TlsError(
        f"{peer}: the TLS handshake failed ({shown}; {seconds:.2f} s). {cause} {advice}", **where(peer)
    )


def _client_certificate_rejected(shown: bool | None) -> tuple[str, str]:
    if shown is False:
        return (
            "The broker requires a client certificate (ssl.client.auth=required), and none is configured.",
            "Set ssl_keystore_location, or ssl_keystore_key and ssl_keystore_certificate_chain.",
        )
    return (
        "The broker does not accept the client's certificate.",
        "Have it issued by an authority that is in the broker's trust store, and check whether it has expired.",
    )


def does_not_speak_tls(peer: Peer, seconds: float) -> PeerDoesNotSpeakTlsError:
    """Return the error for a TLS handshake with a port that does not speak TLS."""
    return PeerDoesNotSpeakTlsError(
        f"{peer} does not speak TLS, and this client does ({seconds:.2f} s). "
        "The port is a listener without TLS, or not a Kafka listener. "
        "Give the port of the TLS listener, or set security_protocol to PLAINTEXT or SASL_PLAINTEXT.",
        **where(peer),
    )


def closed_in_handshake(peer: Peer, seconds: float) -> PortClosedError:
    """Return the error for a connection that ended during the handshake without a TLS alert."""
    return PortClosedError(
        f"{peer} closed the connection during the TLS handshake ({seconds:.2f} s). "
        "The broker is starting or stopping, or the port does not speak TLS. "
        "kclient reconnects automatically; if this repeats, check that the port is a TLS listener.",
        **where(peer, "tls"),
    )


def silent_in_handshake(peer: Peer, seconds: float) -> PortClosedError:
    """Return the error for a peer that sent nothing before the handshake timeout."""
    return PortClosedError(
        f"{peer} accepted the connection and sent no TLS for {seconds:.2f} s. "
        "The port does not speak TLS, or the broker is overloaded. "
        "Check that the port is a TLS listener; slow networks need a larger socket_connection_setup_timeout_ms.",
        **where(peer, "tls"),
    )


def tls_connect_error(peer: Peer, seconds: float, error: OSError, tls: TlsOptions) -> ConnectError | None:
    """Return the error for a failed handshake; None if the TCP connection failed."""
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError | ConnectionResetError | BrokenPipeError):
        return closed_in_handshake(peer, seconds)
    if isinstance(error, ConnectionAbortedError):
        return silent_in_handshake(peer, seconds)
    if isinstance(error, ssl.SSLError):
        return tls_handshake_failed(peer, seconds, error, tls)
    return None


def tls_of(config: Config) -> Tls | None:
    """Return the TLS settings of the configuration, None for plain text. Raise ConfigError for an unusable store."""
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
            trusted=trusted_of(config),
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


def trusted_of(config: Config) -> CertificateStore | Secret | None:
    """Return the authorities that the configuration names, None for those of the operating system."""
    if config.ssl_context is not None:
        known = config.ssl_context.get_ca_certs(binary_form=True)
        return Secret("".join(map(ssl.DER_cert_to_PEM_cert, known))) if known else None
    if config.ssl_truststore_location is None:
        return config.ssl_truststore_certificates
    kind, password = config.ssl_truststore_type, config.ssl_truststore_password
    return CertificateStore("ssl_truststore", config.ssl_truststore_location, kind, password)


def _identity(config: Config) -> CertificateStore | None:
    if config.ssl_keystore_location is None:
        return None
    kind, password = config.ssl_keystore_type, config.ssl_keystore_password
    return CertificateStore("ssl_keystore", config.ssl_keystore_location, kind, password)
