"""TLS and SASL with a real Apache Kafka: every way that must work, every way that must be refused, and renewal."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kclient import Consumer
from kclient.errors import (
    AuthenticationError,
    CertificateError,
    ConnectError,
    HostnameMismatchError,
    PeerDoesNotSpeakTlsError,
    PeerSpeaksTlsError,
    TlsError,
)
from kclient.security.oauthbearer import unsecured_token
from tests.realtime import within
from tests.security.certificates import Authority
from tests.security.conftest import PLAIN_MODULE, REAUTHENTICATE_MS, RECORDS, SCRAM_MODULE, TOPIC, SecureKafka
from tests.security.tokens import jwt

pytestmark = pytest.mark.kafka

MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


def consumer(secure: SecureKafka, listener: str, host: str = "127.0.0.1", **keys: Any) -> Consumer:
    given: dict[str, Any] = {"security_protocol": "SSL" if listener == "MTLS" else listener}
    if "SSL" in given["security_protocol"] or listener == "MTLS":
        given["ssl_truststore_certificates"] = secure.authority.pem
    if "SASL" in listener:
        given |= {
            "sasl_mechanism": "SCRAM-SHA-256",
            "sasl_username": "alice",
            "sasl_password": secure.password,
        }
    given |= keys
    return Consumer(
        TOPIC,
        bootstrap_servers=secure.at(listener, host),
        group_id=f"secure-{secrets.token_hex(4)}",
        auto_offset_reset="earliest",
        **{name: value for name, value in given.items() if value is not None},
    )


def with_tokens(secure: SecureKafka, provider: Callable[[], str]) -> Consumer:
    """A consumer that authenticates with the tokens of this function."""
    keys = {"sasl_username": None, "sasl_password": None, "sasl_oauth_token_provider": provider}
    return consumer(secure, "SASL_SSL", sasl_mechanism="OAUTHBEARER", **keys)


def numbers(reader: Consumer, count: int = RECORDS) -> list[int]:
    """Read through the group, over both connections that it takes."""
    found: list[int] = []
    deadline = time.monotonic() + 20
    with reader:
        while len(found) < count and time.monotonic() < deadline:
            found += [int(record.value) for record in reader.poll(timeout=0.5)]
        reader.commit()
    return sorted(found)


def failure(reader: Consumer) -> ConnectError:
    """What the first poll raises, soon."""
    with within(2.5), reader, pytest.raises(ConnectError) as caught:
        reader.poll(timeout=5.0)
    return caught.value


@pytest.mark.spec("B.1.2", "B.4.3")
def test_tls(secure_kafka: SecureKafka) -> None:
    assert numbers(consumer(secure_kafka, "SSL")) == list(range(RECORDS))


@pytest.mark.spec("B.1.3", "B.4.12")
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_sasl_over_tls(secure_kafka: SecureKafka, mechanism: str) -> None:
    assert numbers(consumer(secure_kafka, "SASL_SSL", sasl_mechanism=mechanism)) == list(range(RECORDS))


@pytest.mark.spec("B.1.3", "B.4.12")
@pytest.mark.parametrize("mechanism", MECHANISMS[:2])
def test_sasl_with_the_properties_of_a_java_client(
    secure_kafka: SecureKafka, tmp_path: Path, mechanism: str
) -> None:
    module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
    store = secure_kafka.authority.write_pkcs12(tmp_path / "trust.p12", "changeit")
    properties = tmp_path / "client.properties"
    properties.write_text(
        f"""
        bootstrap.servers={secure_kafka.at("SASL_SSL")}
        security.protocol=SASL_SSL
        sasl.mechanism={mechanism}
        sasl.jaas.config={module} required \\
            username="alice" \\
            password="{secure_kafka.password}";
        ssl.truststore.location={store}
        ssl.truststore.password=changeit
        group.id=java-{secrets.token_hex(4)}
        auto.offset.reset=earliest
        """
    )
    assert numbers(Consumer(TOPIC, properties=properties)) == list(range(RECORDS))


@pytest.mark.spec("B.1.3", "B.4.12")
def test_oauthbearer_over_tls(secure_kafka: SecureKafka) -> None:
    assert numbers(with_tokens(secure_kafka, jwt)) == list(range(RECORDS))


@pytest.mark.spec("B.4.12")
def test_a_token_that_a_real_kafka_refuses(secure_kafka: SecureKafka) -> None:
    without_subject = unsecured_token({"iat": time.time(), "exp": time.time() + 60})
    refused = failure(with_tokens(secure_kafka, lambda: without_subject))
    assert type(refused) is AuthenticationError
    assert 'SASL_AUTHENTICATION_FAILED (58): "{"status":"invalid_token"}"' in refused.text
    assert without_subject not in refused.text


@pytest.mark.spec("B.4.12")
def test_the_session_of_a_token_is_renewed_with_the_next_token(
    secure_kafka: SecureKafka, caplog: pytest.LogCaptureFixture
) -> None:
    """Tokens of three seconds for nine: the broker closes a connection whose token has expired (KIP-368)."""
    calls = []

    def provider() -> str:
        calls.append(time.monotonic())
        return jwt(3.0)

    with caplog.at_level(logging.DEBUG, "kclient"), with_tokens(secure_kafka, provider) as reader:
        until, found = time.monotonic() + 9.0, list[int]()
        while time.monotonic() < until:
            found += [int(record.value) for record in reader.poll(timeout=0.1)]
            reader.commit()
    messages = [record.getMessage() for record in caplog.records]
    assert sorted(found) == list(range(RECORDS))
    assert len(calls) >= 3
    assert [each for each in messages if "ended while" in each or "cannot be renewed" in each] == []


@pytest.mark.spec("B.4.12")
def test_scram_without_tls(secure_kafka: SecureKafka) -> None:
    assert numbers(consumer(secure_kafka, "SASL_PLAINTEXT")) == list(range(RECORDS))


@pytest.mark.spec("B.1.2")
def test_a_client_certificate_in_pem_and_pkcs12(secure_kafka: SecureKafka, tmp_path: Path) -> None:
    issued = secure_kafka.authority.issue("client", subject="client")
    pem = issued.write_pem(tmp_path / "client.pem", "k3y")
    p12 = issued.write_pkcs12(tmp_path / "client.p12", "changeit")
    for keys in (
        {"ssl_keystore_location": str(pem), "ssl_key_password": "k3y"},
        {"ssl_keystore_location": str(p12), "ssl_keystore_password": "changeit"},
        {"ssl_keystore_key": issued.key_pem(), "ssl_keystore_certificate_chain": issued.chain_pem},
    ):
        assert numbers(consumer(secure_kafka, "MTLS", **keys)) == list(range(RECORDS))


@pytest.mark.spec("B.1.2", "U-17")
def test_a_client_certificate_that_is_missing_or_of_a_stranger(
    secure_kafka: SecureKafka, tmp_path: Path
) -> None:
    without = failure(consumer(secure_kafka, "MTLS"))
    assert type(without) is TlsError
    assert "requires a client certificate" in without.text
    stranger = Authority("Stranger").issue("client").write_pem(tmp_path / "stranger.pem")
    refused = failure(consumer(secure_kafka, "MTLS", ssl_keystore_location=str(stranger)))
    assert type(refused) is TlsError
    assert "does not accept the client's certificate" in refused.text


@pytest.mark.spec("B.4.8", "B.4.12", "I-39")
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("wrong", [{"sasl_password": "hunter2"}, {"sasl_username": "mallory"}])
def test_wrong_credentials(secure_kafka: SecureKafka, mechanism: str, wrong: dict[str, str]) -> None:
    error = failure(consumer(secure_kafka, "SASL_SSL", sasl_mechanism=mechanism, **wrong))
    assert isinstance(error, AuthenticationError)
    assert (error.mechanism, error.stage) == (mechanism, "sasl")
    assert "SASL_AUTHENTICATION_FAILED (58)" in error.text
    words = (
        "Invalid username or password"
        if mechanism == "PLAIN"
        else f"invalid credentials with SASL mechanism {mechanism}"
    )
    assert words in error.text
    assert "hunter2" not in error.text
    assert secure_kafka.password not in error.text


@pytest.mark.spec("B.4.12")
def test_a_mechanism_that_the_listener_lacks(secure_kafka: SecureKafka) -> None:
    error = failure(consumer(secure_kafka, "SASL_PLAINTEXT", sasl_mechanism="SCRAM-SHA-512"))
    assert isinstance(error, AuthenticationError)
    assert "does not offer SCRAM-SHA-512; it offers SCRAM-SHA-256" in error.text


@pytest.mark.spec("B.4.12")
def test_sasl_where_the_listener_asks_for_none(secure_kafka: SecureKafka) -> None:
    keys = {"bootstrap_servers": None, "security_protocol": "SASL_PLAINTEXT"}
    login = {"sasl_mechanism": "SCRAM-SHA-256", "sasl_username": "alice", "sasl_password": "any"}
    error = failure(consumer(secure_kafka, "PLAINTEXT", **{**keys, **login}))
    assert isinstance(error, AuthenticationError)
    assert "does not use SASL" in error.text


@pytest.mark.spec("U-17")
@pytest.mark.parametrize(
    ("listener", "offered"), [("SASL_PLAINTEXT", "SCRAM-SHA-256"), ("SASL_SSL", "PLAIN, SCRAM")]
)
def test_no_sasl_where_the_listener_asks_for_it(
    secure_kafka: SecureKafka, listener: str, offered: str
) -> None:
    keys = dict.fromkeys(("sasl_mechanism", "sasl_username", "sasl_password"))
    error = failure(consumer(secure_kafka, listener, security_protocol=listener[5:], **keys))
    assert isinstance(error, AuthenticationError)
    assert f"offers {offered}" in error.text


@pytest.mark.spec("U-17")
def test_a_certificate_of_an_authority_that_is_not_trusted(secure_kafka: SecureKafka) -> None:
    error = failure(consumer(secure_kafka, "SSL", ssl_truststore_certificates=Authority("Another").pem))
    assert isinstance(error, CertificateError)
    assert (error.issuer, error.names) == ("CN=Kafka Test Authority", ("127.0.0.1",))


@pytest.mark.spec("U-17", "D-80")
def test_a_certificate_for_another_name(secure_kafka: SecureKafka) -> None:
    error = failure(consumer(secure_kafka, "SSL", "localhost"))
    assert isinstance(error, HostnameMismatchError)
    assert error.names == ("127.0.0.1",)
    reader = consumer(secure_kafka, "SSL", "localhost", ssl_endpoint_identification_algorithm="")
    assert numbers(reader) == list(range(RECORDS))


@pytest.mark.spec("U-17")
def test_plain_text_to_tls_and_tls_to_plain_text(secure_kafka: SecureKafka) -> None:
    plain = Consumer(TOPIC, bootstrap_servers=secure_kafka.at("SSL"), group_id="g")
    assert isinstance(failure(plain), PeerSpeaksTlsError)
    pem = secure_kafka.authority.pem
    tls = consumer(secure_kafka, "PLAINTEXT", security_protocol="SSL", ssl_truststore_certificates=pem)
    assert isinstance(failure(tls), PeerDoesNotSpeakTlsError)


@pytest.mark.spec("B.4.12")
def test_sessions_are_renewed_under_traffic_without_a_lost_connection(
    secure_kafka: SecureKafka, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker closes a connection whose session has ended; none may be lost in three lifetimes."""
    with (
        caplog.at_level(logging.DEBUG, "kclient"),
        consumer(secure_kafka, "SASL_SSL", sasl_mechanism="SCRAM-SHA-512") as reader,
    ):
        until = time.monotonic() + 3 * REAUTHENTICATE_MS / 1000
        found: list[int] = []
        while time.monotonic() < until:
            found += [int(record.value) for record in reader.poll(timeout=0.1)]
            reader.commit()
    messages = [record.getMessage() for record in caplog.records]
    connected = sum("connected" in message and "disconnected" not in message for message in messages)
    renewed = sum("authenticated with SCRAM-SHA-512" in message for message in messages) - connected
    assert sorted(found) == list(range(RECORDS))
    assert [message for message in messages if "disconnected" in message or "ended while" in message] == []
    assert renewed >= 4  # the broker's connection and the coordinator's, at least twice each
