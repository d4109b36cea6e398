"""The fields of a certificate for error texts: subject, issuer, names and validity.

Python shows the fields of a certificate only after it was trusted, and we need them when it was not. So this reads
the DER form, and of it only what the text needs (RFC 5280, X.690). It decides nothing: trust is OpenSSL's business.
The bytes come from a stranger: every length is checked, and whatever is odd raises ValueError.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Final

import attrs

from kclient.text import printable

SEQUENCE: Final = 0x30
OID: Final = 0x06
OCTETS: Final = 0x04
VERSION: Final = 0xA0
EXTENSIONS: Final = 0xA3
UTC_TIME: Final = 0x17
DNS_NAME: Final = 0x82
IP_ADDRESS: Final = 0x87
SUBJECT_ALTERNATIVE_NAME: Final = b"\x55\x1d\x11"
NAME_PARTS: Final = {b"\x55\x04\x03": "CN", b"\x55\x04\x0a": "O", b"\x55\x04\x0b": "OU", b"\x55\x04\x06": "C"}
MAX_SHOWN: Final = 200

Element = tuple[int, bytes]


@attrs.frozen
class CertificateFacts:
    """Names as text, times as `2026-01-31 12:00:00 UTC`."""

    subject: str
    issuer: str
    names: tuple[str, ...]
    not_before: str
    not_after: str


def read_certificate(der: bytes) -> CertificateFacts:
    """Read one X.509 certificate. Raises ValueError."""
    (_, certificate), *_ = _elements(der)
    (_, body), *_ = _elements(certificate)
    fields = list(_elements(body))
    if fields and fields[0][0] == VERSION:
        fields = fields[1:]
    if len(fields) < 6:
        raise ValueError("a certificate has at least six fields")
    _, _, (_, issuer), (_, validity), (_, subject), *rest = fields
    not_before, not_after = [_time(element) for element in _elements(validity)][:2]
    extensions = next((content for tag, content in rest if tag == EXTENSIONS), b"")
    return CertificateFacts(
        _name(subject), _name(issuer), _alternative_names(extensions), not_before, not_after
    )


def _elements(data: bytes) -> Iterator[Element]:
    """Yield the elements in order: tag and content."""
    at = 0
    while at < len(data):
        tag, at = data[at], at + 1
        length, at = _length(data, at)
        if len(data) - at < length:
            raise ValueError("an element is longer than what holds it")
        yield tag, data[at : at + length]
        at += length


def _length(data: bytes, at: int) -> tuple[int, int]:
    first = data[at] if at < len(data) else 0x80
    if first < 0x80:
        return first, at + 1
    count = first & 0x7F
    if not 1 <= count <= 4 or len(data) - at <= count:
        raise ValueError("the length of an element cannot be read")
    return int.from_bytes(data[at + 1 : at + 1 + count], "big"), at + 1 + count


def _name(content: bytes) -> str:
    """Return a name as `CN=broker, O=Example`: the well-known parts, in their order."""
    parts = []
    for _, attribute_set in _elements(content):
        for _, attribute in _elements(attribute_set):
            (_, kind), (_, value) = list(_elements(attribute))[:2]
            if kind in NAME_PARTS:
                parts.append(f"{NAME_PARTS[kind]}={_text(value)}")
    return ", ".join(parts) or "(no name)"


def _alternative_names(extensions: bytes) -> tuple[str, ...]:
    names: list[str] = []
    for _, sequence in _elements(extensions):
        for _, extension in _elements(sequence):
            (_, kind), *_, (_, value) = _elements(extension)
            if kind == SUBJECT_ALTERNATIVE_NAME:
                names += [_general_name(name) for _, inner in _elements(value) for name in _elements(inner)]
    return tuple(name for name in names if name)


def _general_name(name: Element) -> str:
    tag, value = name
    if tag == DNS_NAME:
        return _text(value)
    if tag == IP_ADDRESS and len(value) in (4, 16):
        return str(ipaddress.ip_address(value))
    return ""


def _time(element: Element) -> str:
    tag, value = element
    digits = value.decode("ascii", "replace").removesuffix("Z")
    if tag == UTC_TIME:
        digits = ("20" if digits[:2] < "50" else "19") + digits
    if len(digits) != 14 or not digits.isdigit():
        raise ValueError("a time cannot be read")
    year, month, day, hour, minute, second = digits[:4], *(digits[at : at + 2] for at in range(4, 14, 2))
    return f"{year}-{month}-{day} {hour}:{minute}:{second} UTC"


def _text(value: bytes) -> str:
    """Return untrusted text in a form that is safe in a log line."""
    return printable(value.decode("utf-8", "replace"), MAX_SHOWN)
