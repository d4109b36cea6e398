"""Make an `ssl.SSLContext` from the configuration, and a new one when the certificate files change.

Certificates and host names are verified unless the user disables it explicitly; the oldest version is TLS 1.2. OpenSSL
reads a private key only from a file: on Linux that is a memory file (memfd), which never reaches a disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import ssl
import tempfile
from collections.abc import Iterator
from typing import Final

import attrs

from kclient.errors import ConfigError
from kclient.log import get_logger
from kclient.security.secret import Secret
from kclient.security.stores import (
    CertificateStore,
    ClientIdentity,
    pem_certificates,
    pem_identity,
    read_identity,
    read_trusted,
    unusable,
)

TLS_1_3: Final = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")

_STANDARD = re.compile(r"TLS_(?:(?P<exchange>[A-Z0-9_]+)_)?WITH_(?P<cipher>[A-Z0-9_]+)")


@attrs.frozen
class Ciphers:
    """The chosen suites under their names in the configuration; none: whatever OpenSSL thinks right."""

    names: tuple[str, ...] = ()

    @property
    def newest(self) -> list[str]:
        return [name for name in self.names if name in TLS_1_3]

    @property
    def older(self) -> list[str]:
        return [name for name in self.names if name not in TLS_1_3]

    def versions(
        self, lowest: ssl.TLSVersion, highest: ssl.TLSVersion
    ) -> tuple[ssl.TLSVersion, ssl.TLSVersion]:
        """Return the protocol versions that the suites allow. Raise ConfigError if none is left."""
        if self.newest and set(self.newest) != set(TLS_1_3):
            raise _refused(f"Name all of {', '.join(TLS_1_3)} or none: Python cannot choose among them")
        if self.names and not self.newest:
            highest = min(highest, ssl.TLSVersion.TLSv1_2)
        if self.newest and not self.older:
            lowest = max(lowest, ssl.TLSVersion.TLSv1_3)
        if lowest > highest:
            raise _refused("ssl_enabled_protocols and ssl_protocol leave no version that has such suites")
        return lowest, highest

    def apply(self, context: ssl.SSLContext) -> None:
        """Set the suites of TLS 1.2. Raises ConfigError for a name that OpenSSL does not know."""
        if not self.older:
            return
        for name in self.older:
            try:
                context.set_ciphers(openssl_name(name))
            except ssl.SSLError:
                raise _refused(f"{name} is not a suite that this Python's OpenSSL has") from None
        context.set_ciphers(":".join(openssl_name(name) for name in self.older))


def openssl_name(name: str) -> str:
    """Return OpenSSL's name: ECDHE-RSA-AES128-GCM-SHA256 for TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256."""
    match = _STANDARD.fullmatch(name)
    if match is None:
        return name
    cipher = re.sub(r"AES_(\d+)", r"AES\1", match["cipher"]).replace("_CBC", "")
    cipher = cipher.removesuffix("_SHA256") if "CHACHA20" in cipher else cipher
    exchange = match["exchange"] or "RSA"
    return cipher.replace("_", "-") if exchange == "RSA" else f"{exchange}_{cipher}".replace("_", "-")


def _refused(why: str) -> ConfigError:
    return ConfigError(
        f"ssl_cipher_suites cannot be kept. {why}. Leave the key out, or name other suites.",
        problems=(f"ssl_cipher_suites: {why}",),
    )


logger: Final = get_logger("kclient.tls")

SYSTEM_CERTIFICATES: Final = "the system's certificate authorities"


@attrs.frozen(kw_only=True)
class TlsOptions:
    """The settings of TLS. `trusted` and `key` are a store, or PEM text; without them the system's authorities
    are trusted and no client certificate is shown."""

    trusted: CertificateStore | Secret | None = None
    identity: CertificateStore | None = None
    key: Secret | None = None
    chain: Secret | None = None
    key_password: Secret | None = None
    lowest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    highest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
    ciphers: Ciphers = attrs.field(factory=Ciphers)
    verify: bool = True
    check_hostname: bool = True
    context: ssl.SSLContext | None = None  # a ready one, used as it is
    trusts_system: bool = False  # the authorities of the operating system beside `trusted`

    @property
    def authorities(self) -> str:
        """Return the trusted authorities, for the text of an error."""
        if self.context is not None:
            return "the authorities of the given ssl_context"
        if isinstance(self.trusted, CertificateStore):
            return self.trusted.location
        return SYSTEM_CERTIFICATES if self.trusted is None else "ssl_truststore_certificates"

    @property
    def shows_certificate(self) -> bool | None:
        """Return whether there is a client certificate; None for a ready context, which does not say."""
        return None if self.context is not None else self.identity is not None or self.key is not None


class Tls:
    """The context of a client's connections."""

    def __init__(self, options: TlsOptions) -> None:
        """Raise ConfigError if the context cannot be made, so that bad files fail before any connection."""
        self.options = options
        self._made_of = b""
        self._context = self.refresh()

    def refresh(self) -> ssl.SSLContext:
        """Return the context for the next connection. Reads files, so call it off the loop.

        Changed files give a new context. If they cannot be used, log a warning and return the last context: a
        half-finished rotation must not stop a working client.
        """
        if self.options.context is not None:
            return self.options.context
        try:
            material = _Material.read(self.options)
            if material.digest != self._made_of:
                self._context = material.context(self.options)
                self._made_of = material.digest
        except (ConfigError, ValueError) as exc:
            if not self._made_of:
                raise
            why = exc.text if isinstance(exc, ConfigError) else str(exc)
            logger.warning("the certificates changed and cannot be used; the last ones are kept: %s", why)
        return self._context


@attrs.frozen(repr=False)
class _Material:
    """The material of a context, read from files and settings."""

    trusted: str | None
    identity: ClientIdentity | None

    @classmethod
    def read(cls, options: TlsOptions) -> _Material:
        trusted = None
        if isinstance(options.trusted, CertificateStore):
            trusted = read_trusted(options.trusted)
        elif options.trusted is not None:
            trusted = pem_certificates(options.trusted.reveal(), "ssl_truststore_certificates")
        return cls(trusted, _identity(options))

    @property
    def digest(self) -> bytes:
        """Return a digest that is equal for equal material and reveals nothing of it."""
        parts = (self.trusted, self.identity and self.identity.pem, self.identity and self.identity.password)
        return hashlib.sha256(repr(parts).encode()).digest()

    def context(self, options: TlsOptions) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = options.verify and options.check_hostname
        # RFC 9525: only the alternative names of a certificate say what a host is called.
        context.hostname_checks_common_name = False
        context.verify_mode = ssl.CERT_REQUIRED if options.verify else ssl.CERT_NONE
        context.minimum_version, context.maximum_version = options.ciphers.versions(
            options.lowest, options.highest
        )
        context.options |= ssl.OP_NO_RENEGOTIATION
        options.ciphers.apply(context)
        if self.trusted is None or options.trusts_system:
            context.load_default_certs()
        if self.trusted is not None:
            _trust(context, self.trusted, options.authorities)
        if self.identity is not None:
            _show(context, self.identity)
        return context


def _identity(options: TlsOptions) -> ClientIdentity | None:
    if options.identity is not None:
        return read_identity(options.identity, options.key_password)
    if options.key is None or options.chain is None:
        return None
    what = "ssl_keystore_key with ssl_keystore_certificate_chain"
    return pem_identity(options.key.reveal(), options.chain.reveal(), options.key_password, what)


def _trust(context: ssl.SSLContext, pem: str, what: str) -> None:
    try:
        context.load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError) as exc:
        raise unusable(
            what, f"holds a certificate that cannot be read ({_reason(exc)})", "Correct it."
        ) from None


def _show(context: ssl.SSLContext, identity: ClientIdentity) -> None:
    """Give OpenSSL the client's certificate and key, which it takes from files only."""
    asked: list[str] = []

    def password() -> str:
        asked.append("password")
        return identity.password or ""

    try:
        with _as_file(identity.pem) as path:
            context.load_cert_chain(path, password=password)
    except (ssl.SSLError, ValueError, OSError) as exc:
        if asked and identity.password is None:
            raise unusable("the client's key", "is encrypted", "Give its ssl_key_password.") from None
        why = "the password is wrong" if asked else _reason(exc)
        raise unusable(
            "the client's key and certificate",
            f"cannot be used: {why}",
            "Check that the key belongs to the first certificate of the chain, and its password.",
        ) from None


@contextlib.contextmanager
def _as_file(text: str) -> Iterator[str]:
    """Yield a path whose file holds the text while the block lasts; on Linux in memory only."""
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("kclient", os.MFD_CLOEXEC)
        with os.fdopen(number, "wb") as memory:
            memory.write(text.encode())
            memory.flush()
            yield f"/proc/self/fd/{number}"
        return
    with tempfile.TemporaryDirectory(prefix="kclient-") as folder:  # 0700, and gone when the block ends
        path = os.path.join(folder, "key.pem")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        yield path


def _reason(problem: Exception) -> str:
    reason = problem.reason if isinstance(problem, ssl.SSLError) else None
    return (reason or type(problem).__name__).replace("_", " ").lower()
