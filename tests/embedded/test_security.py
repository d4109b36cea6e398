"""TLS and SASL with the embedded cluster: our client, other clients, sessions that end, users that change."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer as LibrdkafkaConsumer
from confluent_kafka import KafkaException

from kclient import AsyncConsumer, Consumer, TopicPartition, file
from kclient.embedded import EmbeddedCluster, Listener
from kclient.errors import (
    ArgumentError,
    AuthenticationError,
    CertificateError,
    ConnectError,
    GroupAuthorizationError,
    PeerDoesNotSpeakTlsError,
    PeerSpeaksTlsError,
    TopicAuthorizationError,
)
from tests.security.certificates import Authority

AUTHORITY = Authority("Embedded Authority")
BROKER = AUTHORITY.issue("127.0.0.1")
PASSWORD = "pass,word=1"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
VALUES = [b"%d" % number for number in range(20)]

Start = Callable[..., EmbeddedCluster]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Makes clusters with a listener of every kind and 20 records in `orders`; ends them."""
    running: list[EmbeddedCluster] = []

    def make(**given: Any) -> EmbeddedCluster:
        tls, mutual = BROKER.server_context(tmp_path), BROKER.server_context(tmp_path, AUTHORITY.pem)
        listeners = [
            Listener("SSL", ssl=tls),
            Listener("MTLS", ssl=mutual),
            Listener("SASL_SSL", ssl=tls, mechanisms=MECHANISMS),
            Listener("SASL_PLAINTEXT", mechanisms=("SCRAM-SHA-256",)),
        ]
        users = {"alice": PASSWORD}
        cluster = EmbeddedCluster(topics={"orders": 1}, listeners=listeners, users=users, **given)
        running.append(cluster.__enter__())
        cluster.produce("orders", VALUES)
        return cluster

    yield make
    for cluster in running:
        cluster.__exit__(None, None, None)


def settings(cluster: EmbeddedCluster, listener: str, **keys: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"bootstrap_servers": cluster.servers(listener)}
    given["security_protocol"] = "SSL" if listener == "MTLS" else listener
    if "SSL" in given["security_protocol"]:
        given["ssl_truststore_certificates"] = AUTHORITY.pem
    if "SASL" in listener:
        given |= {"sasl_mechanism": "SCRAM-SHA-256", "sasl_username": "alice", "sasl_password": PASSWORD}
    return {**given, **keys}


def read(
    cluster: EmbeddedCluster, listener: str, group: str = "g", count: int = len(VALUES), **keys: Any
) -> list[bytes]:
    """What a member of a group reads there."""
    found: list[bytes] = []
    with Consumer(
        "orders", group_id=group, auto_offset_reset="earliest", **settings(cluster, listener, **keys)
    ) as consumer:
        until = time.monotonic() + 10
        while len(found) < count and time.monotonic() < until:
            found += [record.value for record in consumer.poll(timeout=0.5)]
    return found


def failure(cluster: EmbeddedCluster, listener: str, **keys: Any) -> ConnectError:
    with Consumer(**settings(cluster, listener, **keys)) as consumer, pytest.raises(ConnectError) as caught:
        consumer.list_topics(timeout=5.0)
    return caught.value


@pytest.mark.spec("B.4.3", "B.4.12", "S1-36")
@pytest.mark.parametrize(
    ("listener", "keys"),
    [
        ("PLAINTEXT", {}),
        ("SSL", {}),
        *(("SASL_SSL", {"sasl_mechanism": mechanism}) for mechanism in MECHANISMS),
        ("SASL_PLAINTEXT", {}),
    ],
)
def test_a_group_reads_through_every_kind_of_listener(
    start: Start, listener: str, keys: dict[str, Any]
) -> None:
    cluster = start()
    assert read(cluster, listener, **keys) == VALUES
    through = {entry.api for entry in cluster.requests}
    assert ("SaslAuthenticate" in through) == ("SASL" in listener)
    assert PASSWORD not in repr(cluster.requests)


@pytest.mark.spec("B.4.12")
@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"sasl_mechanism": "PLAIN", "sasl_password": "wrong"}, "Invalid username or password"),
        ({"sasl_mechanism": "PLAIN", "sasl_username": "mallory"}, "Invalid username or password"),
        ({"sasl_password": "wrong"}, "invalid credentials with SASL mechanism SCRAM-SHA-256"),
        ({"sasl_username": "mallory"}, "invalid credentials with SASL mechanism SCRAM-SHA-256"),
    ],
)
def test_wrong_credentials_are_refused_in_kafkas_words(start: Start, keys: dict[str, Any], said: str) -> None:
    error = failure(start(), "SASL_SSL", **keys)
    assert isinstance(error, AuthenticationError)
    assert said in error.text


@pytest.mark.spec("B.4.12", "U-17")
def test_what_does_not_fit_the_listener_is_reported(start: Start) -> None:
    cluster = start()
    error = failure(cluster, "SASL_PLAINTEXT", sasl_mechanism="SCRAM-SHA-512")
    assert "does not offer SCRAM-SHA-512; it offers SCRAM-SHA-256" in error.text
    login = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-256"}
    error = failure(cluster, "PLAINTEXT", **login, sasl_username="alice", sasl_password=PASSWORD)
    assert "does not use SASL" in error.text
    error = failure(cluster, "SSL", ssl_truststore_certificates=Authority("Another").pem)
    assert isinstance(error, CertificateError)
    assert error.issuer == "CN=Embedded Authority"
    plain = {"security_protocol": "PLAINTEXT", "ssl_truststore_certificates": None}
    assert isinstance(failure(cluster, "SSL", **plain), PeerSpeaksTlsError)
    tls = {"security_protocol": "SSL", "ssl_truststore_certificates": AUTHORITY.pem}
    assert isinstance(failure(cluster, "PLAINTEXT", **tls), PeerDoesNotSpeakTlsError)


@pytest.mark.spec("B.4.12", "U-17")
@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_a_client_without_sasl_is_notified_that_the_listener_wants_it(start: Start, listener: str) -> None:
    cluster = start()
    keys = {"security_protocol": "PLAINTEXT"}
    if listener == "SASL_SSL":
        keys = {"security_protocol": "SSL", "ssl_truststore_certificates": AUTHORITY.pem}
    with Consumer(bootstrap_servers=cluster.servers(listener), **keys) as consumer:
        for _ in range(20):
            with pytest.raises(AuthenticationError, match=r"offers (PLAIN, )?SCRAM-SHA-256"):
                consumer.list_topics(timeout=5.0)
    assert len({entry.connection for entry in cluster.requests}) <= 3  # no storm


@pytest.mark.spec("B.1.2")
def test_the_client_certificate_is_the_principal(start: Start, tmp_path: Path) -> None:
    cluster = start()
    client = AUTHORITY.issue("client", subject="client").write_pem(tmp_path / "client.pem")
    keys = {"ssl_keystore_location": str(client)}
    assert read(cluster, "MTLS", **keys) == VALUES
    cluster.deny("User:CN=client", "READ", "Topic:orders")
    with (
        Consumer("orders", group_id="h", **settings(cluster, "MTLS", **keys)) as consumer,
        pytest.raises(TopicAuthorizationError),
    ):
        consumer.poll(timeout=5.0)
    assert failure(cluster, "MTLS").stage in ("tls", "versions")


@pytest.mark.spec("S1-06")
def test_the_user_is_the_principal(start: Start) -> None:
    cluster = start()
    cluster.deny("User:alice", "READ", "Group:g")
    with (
        Consumer("orders", group_id="g", **settings(cluster, "SASL_SSL")) as consumer,
        pytest.raises(GroupAuthorizationError),
    ):
        consumer.poll(timeout=5.0)
    assert read(cluster, "SSL") == VALUES


@pytest.mark.spec("B.4.12")
@pytest.mark.parametrize("release", ["0.10.2", "0.11.0", "1.0", "2.1", "2.4"])
def test_old_brokers_take_tokens_in_their_own_framing(start: Start, release: str) -> None:
    cluster = start(release=release)
    for mechanism in MECHANISMS:
        assert read(cluster, "SASL_SSL", "g-" + mechanism, sasl_mechanism=mechanism) == VALUES
    framed = {entry.api for entry in cluster.requests} & {"SaslAuthenticate"}
    assert bool(framed) == (release not in ("0.10.2", "0.11.0"))


@pytest.mark.spec("B.4.12")
def test_sessions_are_renewed_under_traffic_and_no_connection_is_lost(start: Start) -> None:
    """Renewed in three lifetimes; the broker ends a connection whose session has ended."""
    cluster = start(config={"connections.max.reauth.ms": 1_300})
    with Consumer(
        "orders", group_id="g", auto_offset_reset="earliest", **settings(cluster, "SASL_SSL")
    ) as consumer:
        found: list[bytes] = []
        until = time.monotonic() + 4.0
        while time.monotonic() < until:
            found += [record.value for record in consumer.poll(timeout=0.1)]
            consumer.commit()
        requests = list(cluster.requests)
    handshakes = [entry.connection for entry in requests if entry.api == "SaslHandshake"]
    connections = list(dict.fromkeys(entry.connection for entry in requests))
    assert found == VALUES
    assert handshakes.count(max(connections)) >= 3
    assert len(connections) == 3  # bootstrap, broker, coordinator: none was opened again


@pytest.mark.spec("B.4.12")
def test_a_session_that_is_not_renewed_ends_with_the_next_request(start: Start) -> None:
    cluster = start(config={"connections.max.reauth.ms": 1_200})
    old = LibrdkafkaConsumer(librdkafka(cluster, "SCRAM-SHA-256"))
    old.list_topics(timeout=5)
    cluster.clock.advance(2.0)  # faster than any client can renew
    until = time.monotonic() + 10
    while time.monotonic() < until:
        with contextlib.suppress(KafkaException):  # the connection that it had is closed
            old.list_topics(timeout=5)
            break
    old.close()
    connections = {entry.connection for entry in cluster.requests if entry.api == "Metadata"}
    assert len(connections) >= 2


@pytest.mark.spec("B.4.12")
def test_a_password_that_changes_is_read_again_from_its_file(start: Start, tmp_path: Path) -> None:
    cluster = start(config={"connections.max.reauth.ms": 1_200})
    path = tmp_path / "password"
    path.write_text(PASSWORD)
    keys = settings(cluster, "SASL_SSL", sasl_password=file(path))
    with Consumer(**keys) as consumer:
        consumer.list_topics(timeout=5.0)
        cluster.add_user("alice", "another")
        path.write_text("another")
        time.sleep(1.2)
        consumer.list_topics(timeout=5.0)
        cluster.remove_user("alice")
        time.sleep(1.2)
        with pytest.raises(AuthenticationError):
            consumer.list_topics(timeout=5.0)


def librdkafka(cluster: EmbeddedCluster, mechanism: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": cluster.servers("SASL_SSL"),
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": PASSWORD,
        "ssl.ca.pem": AUTHORITY.pem,
        "ssl.endpoint.identification.algorithm": "https",
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "log_level": 0,
    }


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_reads_over_sasl_ssl(start: Start, mechanism: str) -> None:
    consumer = LibrdkafkaConsumer(librdkafka(start(), mechanism))
    consumer.subscribe(["orders"])
    assert [record.value() for record in consumer.consume(len(VALUES), timeout=15)] == VALUES
    consumer.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python_reads_over_sasl_ssl(start: Start, mechanism: str) -> None:
    from kafka import KafkaConsumer  # here, so that its use of old functions is no error for the other tests

    cluster = start()
    consumer = KafkaConsumer(
        "orders",
        bootstrap_servers=cluster.servers("SASL_SSL"),
        security_protocol="SASL_SSL",
        sasl_mechanism=mechanism,
        sasl_plain_username="alice",
        sasl_plain_password=PASSWORD,
        ssl_context=ssl.create_default_context(cadata=AUTHORITY.pem),
        auto_offset_reset="earliest",
        consumer_timeout_ms=10_000,
    )
    assert [next(consumer).value for _ in VALUES] == VALUES
    consumer.close()


def test_a_listener_with_a_mechanism_without_a_client_is_refused() -> None:
    with pytest.raises(ArgumentError, match="does not speak 'GSSAPI'"):
        Listener("SASL_SSL", mechanisms=("GSSAPI",))


def test_users_can_be_changed_on_the_running_loop_too() -> None:
    async def main() -> None:
        listener = Listener("SASL_PLAINTEXT", mechanisms=("SCRAM-SHA-512",))
        async with EmbeddedCluster(topics={"orders": 1}, listeners=[listener]) as cluster:
            cluster.add_user("bob", "secret")
            keys = settings(cluster, "SASL_PLAINTEXT", sasl_mechanism="SCRAM-SHA-512", sasl_username="bob")
            async with AsyncConsumer(**{**keys, "sasl_password": "secret"}) as consumer:
                await consumer.assign([TopicPartition("orders", 0)])
                assert await consumer.end_offsets([TopicPartition("orders", 0)])
            with pytest.raises(ArgumentError, match="no user"):
                cluster.remove_user("nobody")

    asyncio.run(main())


@pytest.mark.spec("B.4.12")
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.parametrize("failure", [ConnectionRefusedError(111, "x"), TimeoutError("x"), KeyError("x")])
def test_a_provider_whose_own_network_fails_does_not_pass_for_ours(
    start: Start, mechanism: str, failure: Exception
) -> None:
    cluster, well = start(), True

    def vault() -> str:
        if not well:
            raise failure
        return PASSWORD

    keys = settings(cluster, "SASL_SSL", sasl_mechanism=mechanism, sasl_password=vault)
    with Consumer(**keys) as consumer:
        well = False
        with pytest.raises(AuthenticationError, match=f"password .* failed with {type(failure).__name__}"):
            consumer.list_topics()


@pytest.mark.spec("H-21")
def test_a_token_that_no_mechanism_needs_is_refused_by_its_size(start: Start) -> None:
    def swell(_: Any, response: Any) -> Any:
        response.auth_bytes = b"x" * (1 << 20)
        return response

    cluster = start()
    cluster.on("SaslAuthenticate", swell)
    refused = pytest.raises(
        AuthenticationError, match=r"announced a frame of \d+ bytes\. The peer does not follow"
    )
    with Consumer(**settings(cluster, "SASL_SSL")) as consumer, refused:
        consumer.list_topics()
