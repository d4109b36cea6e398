"""One real Kafka with a listener of every kind, for all tests of this folder that want it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from localkafka import KafkaCluster, unavailable
from tests.kafka.other_clients import produce_numbers
from tests.security.canary import canary
from tests.security.certificates import Authority
from tests.security.oauth_kafka import OAuthKafka
from tests.security.oauth_kafka import running as oauth_kafka_running

__all__ = ["canary"]

VERSION = "4.3.1"
TOPIC = "numbers"
RECORDS = 30
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
REAUTHENTICATE_MS = 2_000


@attrs.frozen
class SecureKafka:
    """The cluster, who issued its certificate, and the password of its users."""

    kafka: KafkaCluster
    authority: Authority
    password: str

    def at(self, listener: str, host: str = "127.0.0.1") -> str:
        """`host:port` of a listener: SSL, MTLS, SASL_SSL, SASL_PLAINTEXT, RENEWED or PLAINTEXT."""
        port = self.kafka.address(1, None if listener == "PLAINTEXT" else listener)[1]
        return f"{host}:{port}"


@pytest.fixture(scope="session")
def secure_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    """Apache Kafka 4.3.1 with TLS, mutual TLS, SASL over TLS and SASL without; alice in PLAIN and both SCRAMs.

    OAUTHBEARER takes unsecured tokens of anyone.

    The session of a SCRAM-SHA-512 user ends after two seconds, at the listener RENEWED after a minute.
    """
    require_kafka()
    authority, password = Authority("Kafka Test Authority"), secrets.token_urlsafe(12)
    folder = tmp_path_factory.mktemp("secure")
    users = [
        f"SCRAM-SHA-{size}=[name={name},iterations=4096,password={password}]"
        for size in (256, 512)
        for name in ("alice", "bob")
    ]
    with KafkaCluster(
        VERSION,
        overrides=_properties(authority, password, folder),
        listeners={
            "SSL": "SSL",
            "MTLS": "SSL",
            "SASL_SSL": "SASL_SSL",
            "SASL_PLAINTEXT": "SASL_PLAINTEXT",
            "RENEWED": "SASL_PLAINTEXT",
        },
        format_options=[part for user in users for part in ("--add-scram", user)],
    ) as kafka:
        kafka.create_topic(TOPIC, partitions=2)
        produce_numbers(kafka, TOPIC, range(RECORDS), partitions=2)
        yield SecureKafka(kafka, authority, password)


def require_kafka() -> None:
    """Skip if Kafka cannot run here; fail in CI."""
    if reason := unavailable(VERSION):
        if os.environ.get("CI") == "true":
            pytest.fail(f"Kafka {VERSION} must run in CI: {reason}", pytrace=False)
        pytest.skip(f"no Kafka {VERSION}: {reason}")


@pytest.fixture(scope="session")
def oauth_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OAuthKafka]:
    """Apache Kafka 4.3.1 that checks signed tokens by a JWKS; see `tests.security.oauth_kafka`."""
    require_kafka()
    with oauth_kafka_running(VERSION, tmp_path_factory.mktemp("oauth")) as running:
        running.kafka.create_topic(TOPIC, partitions=2)
        produce_numbers(running.kafka, TOPIC, range(RECORDS), partitions=2)
        yield running


def _properties(authority: Authority, password: str, folder: Path) -> dict[str, str]:
    jaas = {
        "plain": f'{PLAIN_MODULE} required user_alice="{password}";',
        "scram-sha-256": f"{SCRAM_MODULE} required;",
        "scram-sha-512": f"{SCRAM_MODULE} required;",
        "oauthbearer": f'{OAUTH_MODULE} required unsecuredLoginStringClaim_sub="broker";',
    }
    logins = {
        f"listener.name.{listener}.{mechanism}.sasl.jaas.config": entry
        for listener in ("sasl_ssl", "sasl_plaintext", "renewed")
        for mechanism, entry in jaas.items()
    }
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue("127.0.0.1").write_pem(folder / "broker.pem")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.write_pem(folder / "ca.pem")),
        "listener.name.mtls.ssl.client.auth": "required",
        "listener.name.sasl_ssl.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.renewed.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.renewed.scram-sha-256.connections.max.reauth.ms": "60000",
        "listener.name.renewed.scram-sha-512.connections.max.reauth.ms": "60000",
        "listener.name.sasl_ssl.scram-sha-512.connections.max.reauth.ms": str(REAUTHENTICATE_MS),
        **logins,
    }
