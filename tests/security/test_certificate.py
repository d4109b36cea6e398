"""What a certificate says of itself, against an independent reader; and bytes that are no certificate."""

from __future__ import annotations

import datetime
import random

import pytest
from cryptography import x509

from kclient.security.certificate import read_certificate
from tests.security.certificates import Authority

ISSUED = Authority("An Authority").issue("broker.example", "*.example", "10.0.0.1", "::1", subject="broker-1")


@pytest.mark.spec("U-17")
def test_names_issuer_and_dates_are_those_that_another_reader_finds() -> None:
    facts, certificate = read_certificate(ISSUED.der), ISSUED.certificate
    assert facts.subject == certificate.subject.rfc4514_string() == "CN=broker-1"
    assert facts.issuer == certificate.issuer.rfc4514_string() == "CN=An Authority"
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert (
        facts.names
        == tuple(str(name.value) for name in names)
        == ("broker.example", "*.example", "10.0.0.1", "::1")
    )
    assert facts.not_after == f"{certificate.not_valid_after_utc:%Y-%m-%d %H:%M:%S} UTC"
    assert facts.not_before == f"{certificate.not_valid_before_utc:%Y-%m-%d %H:%M:%S} UTC"


def test_dates_after_2050_and_certificates_without_names_are_read() -> None:
    far = Authority().issue(until=datetime.timedelta(days=365 * 40))
    facts = read_certificate(far.der)
    assert facts.names == ()
    assert facts.not_after == f"{far.certificate.not_valid_after_utc:%Y-%m-%d %H:%M:%S} UTC"


def test_damaged_bytes_give_a_value_error_or_a_result_and_nothing_else() -> None:
    rng, der = random.Random(4), ISSUED.der
    for _ in range(3000):
        damaged = bytearray(der[: rng.randrange(len(der) + 1)] if rng.random() < 0.3 else der)
        for _ in range(rng.randrange(4)):
            if damaged:
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            read_certificate(bytes(damaged))
        except ValueError:
            continue
