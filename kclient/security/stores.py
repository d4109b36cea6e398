"""Trust stores and key stores as PEM text, from PEM files or text and from PKCS#12 files.

The type of a file follows from its content: Kafka's default type is JKS, under which Java reads PKCS#12 too. A JKS
file is answered with the line that turns it into PKCS#12. PKCS#12 needs `cryptography`, which an extra brings.
"""

from __future__ import annotations

import re
import shlex
from typing import Any, Final

import attrs

from kclient.errors import ConfigError
from kclient.security.local_file import LARGEST_STORE, read_local
from kclient.security.secret import Secret, problem_of

JKS_MAGIC: Final = b"\xfe\xed\xfe\xed"
DER_SEQUENCE: Final = b"\x30"
PEM_MARK: Final = b"-----BEGIN "

_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----", re.DOTALL)
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


@attrs.frozen
class CertificateStore:
    """The location of a store and its configuration keys: `name` is ssl_truststore or ssl_keystore."""

    name: str
    location: str
    kind: str = ""  # PEM, PKCS12, JKS; empty: whatever the content says
    password: Secret | None = None


@attrs.frozen(repr=False)
class ClientIdentity:
    """The client's private key and certificate chain in PEM, and the key's password if it is encrypted."""

    pem: str
    password: str | None = None


def read_trusted(store: CertificateStore) -> str:
    """Return the certificates of a trust store as PEM text. Raise ConfigError if it cannot be read."""
    content = _read(store)
    if PEM_MARK in content:
        return pem_certificates(content.decode("utf-8", "replace"), f"{store.name}_location={store.location}")
    return _pkcs12_trusted(content, store)


def read_identity(store: CertificateStore, key_password: Secret | None) -> ClientIdentity:
    """Return key and chain of a key store. Raise ConfigError if it cannot be read."""
    content = _read(store)
    if PEM_MARK in content:
        text = content.decode("utf-8", "replace")
        return pem_identity(text, text, key_password, f"{store.name}_location={store.location}")
    return _pkcs12_identity(content, store)


def pem_certificates(text: str, what: str) -> str:
    """Return the certificates in a PEM text, and nothing else of it."""
    found = _CERTIFICATE.findall(text)
    if not found:
        raise unusable(what, "holds no PEM certificate", "It must hold -----BEGIN CERTIFICATE----- … blocks.")
    return "\n".join(found) + "\n"


def pem_identity(key: str, chain: str, password: Secret | None, what: str) -> ClientIdentity:
    """Return a private key and the certificates that go with it."""
    keys = _KEY.findall(key)
    if len(keys) != 1:
        raise unusable(
            what,
            f"holds {len(keys) or 'no'} PEM private key{'s' if keys else ''}",
            "It must hold one -----BEGIN … PRIVATE KEY----- block and its certificates.",
        )
    pem = f"{keys[0]}\n{pem_certificates(chain, what)}"
    return ClientIdentity(pem, None if password is None else password.reveal())


def _read(store: CertificateStore) -> bytes:
    """Read a file that is PEM or PKCS#12."""
    what = f"{store.name}_location={store.location}"
    try:
        content = read_local(store.location, LARGEST_STORE)
    except (OSError, ValueError) as exc:  # ValueError: a path with NUL
        if store.location.lower().endswith(".jks"):
            raise java_only(store) from None
        raise unusable(
            what, f"cannot be read: {problem_of(exc)}", "Correct the path or its permissions."
        ) from None
    pem, der = PEM_MARK in content, content.startswith(DER_SEQUENCE)
    if content.startswith(JKS_MAGIC) or (store.location.lower().endswith(".jks") and not (pem or der)):
        raise java_only(store)
    if not (pem or der) or (store.kind == "PEM" and not pem) or (store.kind == "PKCS12" and not der):
        wanted = "PEM or PKCS#12" if store.kind in ("", "JKS") else store.kind
        raise unusable(what, f"is not {wanted}", "Give another file, or the type that it has.")
    return content


def java_only(store: CertificateStore) -> ConfigError:
    """Return the error for a JKS file, with the command that converts it to PKCS#12."""
    source = shlex.quote(store.location)
    target = shlex.quote(re.sub(r"\.jks$", "", store.location, flags=re.IGNORECASE) + ".p12")
    return unusable(
        f"{store.name}_location={store.location}",
        "is a Java key store (JKS), which only Java reads",
        f"Convert it and give the new file: keytool -importkeystore -srckeystore {source} -srcstoretype JKS "
        f"-destkeystore {target} -deststoretype PKCS12",
    )


def unusable(what: str, why: str, advice: str) -> ConfigError:
    """Return one problem with a store as a ConfigError."""
    return ConfigError(f"{what} {why}. {advice}", problems=(f"{what} {why}",))


def _pkcs12_trusted(content: bytes, store: CertificateStore) -> str:
    """Return the certificates of a PKCS#12 trust store."""
    _, certificate, more = _load_pkcs12(content, store, None)
    found = [entry for entry in (certificate, *more) if entry is not None]
    if not found:
        raise unusable(
            f"{store.name}_location={store.location}", "holds no certificate", "Give another file."
        )
    return _pem_of(found)


def _pkcs12_identity(
    content: bytes, store: CertificateStore, key_password: Secret | None = None
) -> ClientIdentity:
    """Return key and chain of a PKCS#12 key store."""
    from cryptography.hazmat.primitives import serialization

    key, certificate, chain = _load_pkcs12(content, store, key_password)
    if key is None or certificate is None:
        raise unusable(
            f"{store.name}_location={store.location}",
            "holds no private key with its certificate",
            "Give another file.",
        )
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return ClientIdentity(pem.decode() + _pem_of([certificate, *chain]))


def _load_pkcs12(
    content: bytes, store: CertificateStore, key_password: Secret | None
) -> tuple[Any, Any, list[Any]]:
    """Load the key, its certificate, and the other certificates."""
    what = f"{store.name}_location={store.location}"
    try:
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError:
        raise ConfigError(
            f"{what} is a PKCS#12 store, and the package that reads it is not installed. "
            "It comes with an extra. Type: pip install 'kclient-kafka[pkcs12]'",
            problems=(f"{what} needs pip install 'kclient-kafka[pkcs12]'",),
        ) from None
    secret = key_password or store.password
    try:
        found = load_pkcs12(content, None if secret is None else secret.reveal().encode())
    except ValueError:
        raise unusable(
            what, "cannot be opened", f"Either {store.name}_password is wrong, or the file is damaged."
        ) from None
    first = None if found.cert is None else found.cert.certificate
    return found.key, first, [entry.certificate for entry in found.additional_certs]


def _pem_of(certificates: list[Any]) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in certificates)
