"""Certificates for tests: an authority, and what it issues, made when a test asks for them."""

from __future__ import annotations

import datetime
import functools
import ipaddress
import ssl
from pathlib import Path
from typing import Any

import attrs
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)
PEM = serialization.Encoding.PEM
PKCS8 = serialization.PrivateFormat.PKCS8


@attrs.frozen
class Issued:
    """A certificate with its key."""

    certificate: x509.Certificate
    key: rsa.RSAPrivateKey
    issuer: x509.Certificate

    @property
    def chain_pem(self) -> str:
        return self.certificate.public_bytes(PEM).decode()

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

    def key_pem(self, password: str | None = None) -> str:
        if password is None:
            return self.key.private_bytes(PEM, PKCS8, serialization.NoEncryption()).decode()
        encryption = serialization.BestAvailableEncryption(password.encode())
        return self.key.private_bytes(PEM, PKCS8, encryption).decode()

    def write_pem(self, path: Path, password: str | None = None) -> Path:
        """Key and chain in one file, as Kafka's PEM key stores are."""
        path.write_text(self.key_pem(password) + self.chain_pem)
        return path

    def write_pkcs12(self, path: Path, password: str) -> Path:
        encryption = serialization.BestAvailableEncryption(password.encode())
        path.write_bytes(
            pkcs12.serialize_key_and_certificates(
                b"key", self.key, self.certificate, [self.issuer], encryption
            )
        )
        return path

    def server_context(self, folder: Path, trusted: str | None = None) -> ssl.SSLContext:
        """A server's side; with `trusted` it wants a client certificate of that authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.write_pem(folder / f"server-{self.certificate.serial_number}.pem"))
        if trusted is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=trusted)
        return context


@functools.cache
def _key(number: int) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Authority:
    """A certificate authority of a test's own."""

    def __init__(self, name: str = "Test Authority") -> None:
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = _key(hash(name))
        extension = x509.BasicConstraints(ca=True, path_length=None)
        self.certificate = (
            _builder(self.name, self.name, self._key, -DAY, 30 * DAY)
            .add_extension(extension, critical=True)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(PEM).decode()

    def write_pem(self, path: Path) -> Path:
        path.write_text(self.pem)
        return path

    def write_pkcs12(self, path: Path, password: str) -> Path:
        """A trust store that Java takes too: for it a certificate is trusted only if it says so."""
        encryption = serialization.BestAvailableEncryption(password.encode())
        entry = pkcs12.PKCS12Certificate(self.certificate, b"ca")
        path.write_bytes(pkcs12.serialize_java_truststore([entry], encryption))
        return path

    def issue(self, *names: str, subject: str = "broker", since: Any = -DAY, until: Any = 30 * DAY) -> Issued:
        """A certificate for these host names and IP addresses, valid between these distances from now."""
        key = _key(len(names))
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)])
        builder = _builder(name, self.name, key, since, until)
        if names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_name(n) for n in names]), critical=False
            )
        return Issued(builder.sign(self._key, hashes.SHA256()), key, self.certificate)


def _builder(subject: Any, issuer: Any, key: Any, since: Any, until: Any) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + since)
        .not_valid_after(now + until)
    )


def _name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
