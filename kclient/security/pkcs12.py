"""PKCS#12 stores as PEM text, with `cryptography`. The only module that needs it, imported when a store does."""

from __future__ import annotations

from typing import Any

from kclient.errors import ConfigError
from kclient.security.secret import Secret
from kclient.security.stores import CertificateStore, ClientIdentity, unusable


def trusted(content: bytes, store: CertificateStore) -> str:
    """The certificates of a trust store."""
    _, certificate, more = _load(content, store, None)
    found = [entry for entry in (certificate, *more) if entry is not None]
    if not found:
        raise unusable(
            f"{store.name}_location={store.location}", "holds no certificate", "Give another file."
        )
    return _pem(found)


def identity(content: bytes, store: CertificateStore, key_password: Secret | None = None) -> ClientIdentity:
    """Key and chain of a key store."""
    from cryptography.hazmat.primitives import serialization

    key, certificate, chain = _load(content, store, key_password)
    if key is None or certificate is None:
        raise unusable(
            f"{store.name}_location={store.location}",
            "holds no private key with its certificate",
            "Give another file.",
        )
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return ClientIdentity(pem.decode() + _pem([certificate, *chain]))


def _load(content: bytes, store: CertificateStore, key_password: Secret | None) -> tuple[Any, Any, list[Any]]:
    """Key, its certificate, and the other certificates."""
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


def _pem(certificates: list[Any]) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in certificates)
