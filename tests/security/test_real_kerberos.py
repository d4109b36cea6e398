"""A real Kafka whose listener wants Kerberos, with tickets of MIT krb5: Java's consumer and ours in one group.

One `client.properties` serves both. Sessions end after three seconds, so each client authenticates again and again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from kclient import Consumer, TopicPartition
from kclient.errors import AuthenticationError
from localkafka import KafkaCluster
from localkafka.cluster import FAST_START
from tests.kafka.member_processes import Team
from tests.kafka.other_clients import produce_numbers
from tests.security.conftest import RECORDS, TOPIC, VERSION, require_kafka
from tests.security.kdc import REALM, SERVICE, Kdc, require

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(180)]

MODULE = "com.sun.security.auth.module.Krb5LoginModule"
REAUTHENTICATE_MS = 3_000
PARTITIONS = 6
WAVE = 60
WAVES = 10


@attrs.frozen
class KerberosKafka:
    """The cluster, the realm, and the keytab of its user alice."""

    kafka: KafkaCluster
    kdc: Kdc
    keytab: Path

    @property
    def properties(self) -> dict[str, str]:
        """Kafka's keys of a client."""
        host, port = self.kafka.address(1, "KERBEROS")
        return {
            "bootstrap.servers": f"{host}:{port}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "GSSAPI",
            "sasl.kerberos.service.name": SERVICE,
            "sasl.jaas.config": login(self.keytab, "alice"),
        }


def login(keytab: Path, principal: str) -> str:
    return (
        f'{MODULE} required useKeyTab=true storeKey=true keyTab="{keytab}" principal="{principal}@{REALM}";'
    )


def of_java(kdc: Kdc) -> str:
    """The option with which a JVM belongs to the realm."""
    return f"-Djava.security.krb5.conf={kdc.folder / 'krb5.conf'}"


@pytest.fixture(scope="module")
def kerberos_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KerberosKafka]:
    require()
    require_kafka()
    listener = "listener.name.kerberos"
    with Kdc(tmp_path_factory.mktemp("realm")) as kdc, pytest.MonkeyPatch.context() as patch:
        kdc.use(patch)
        kdc.add("alice")
        overrides = {
            "sasl.kerberos.service.name": SERVICE,
            f"{listener}.sasl.enabled.mechanisms": "GSSAPI",
            f"{listener}.gssapi.sasl.jaas.config": login(kdc.keytab(kdc.broker), kdc.broker),
            f"{listener}.gssapi.connections.max.reauth.ms": str(REAUTHENTICATE_MS),
        }
        with KafkaCluster(
            VERSION,
            overrides=overrides,
            listeners={"KERBEROS": "SASL_PLAINTEXT"},
            jvm_options=(*FAST_START, of_java(kdc)),
        ) as kafka:
            kafka.create_topic(TOPIC, partitions=2)
            produce_numbers(kafka, TOPIC, range(RECORDS), partitions=2)
            yield KerberosKafka(kafka, kdc, kdc.keytab("alice"))


def consumer(kerberos: KerberosKafka, **changes: Any) -> Consumer[Any, Any]:
    return Consumer(**{**kerberos.properties, "auto.offset.reset": "earliest", **changes})


@pytest.mark.spec("B.1.3", "B.4.12", "B.13.4")
def test_java_and_we_read_each_record_once_in_one_group(
    kerberos_kafka: KerberosKafka, fresh_name: str
) -> None:
    kafka = kerberos_kafka.kafka
    kafka.create_topic(fresh_name, PARTITIONS)
    java = {"jvm.options": of_java(kerberos_kafka.kdc)}
    with Team(kafka, fresh_name, fresh_name) as team:
        members = [
            team.start(kind, kind, **kerberos_kafka.properties, **(java if kind == "java" else {}))
            for kind in ("java", "sync", "async")
        ]
        team.wait_until_shared(members, PARTITIONS)
        for wave in range(WAVES):
            produce_numbers(kafka, fresh_name, range(wave * WAVE, (wave + 1) * WAVE), PARTITIONS)
            time.sleep(1.0)
        team.wait_until_seen(range(WAVES * WAVE))
        for member in members:
            member.close()
    assert set(team.seen().values()) == {1}
    assert all(member.numbers for member in members)
    assert not any(member.has_reported("lost") for member in members)
    for member in members[1:]:
        assert "WARNING" not in member.errors


@pytest.mark.spec("B.4.12")
def test_a_session_is_renewed_while_the_kdc_is_down(
    kerberos_kafka: KerberosKafka, caplog: pytest.LogCaptureFixture
) -> None:
    """The client has the ticket for the broker: nobody asks the KDC until that ends."""
    with caplog.at_level(logging.DEBUG, "kclient"), consumer(kerberos_kafka) as reader:
        reader.assign([TopicPartition(TOPIC, partition) for partition in (0, 1)])
        found = [int(record.value) for record in reader.poll(5.0)]
        kerberos_kafka.kdc.stop()
        try:
            until = time.monotonic() + 3 * REAUTHENTICATE_MS / 1000
            while time.monotonic() < until:
                found += [int(record.value) for record in reader.poll(0.2)]
        finally:
            kerberos_kafka.kdc.start()
    assert sorted(found) == list(range(RECORDS))
    messages = [record.getMessage() for record in caplog.records]
    assert [text for text in messages if "disconnected" in text] == []
    connected = sum(text.endswith(": connected") for text in messages)
    assert sum("authenticated with GSSAPI" in text for text in messages) >= connected + 3


@pytest.mark.spec("B.4.12")
def test_a_service_name_that_is_not_the_brokers_is_named(kerberos_kafka: KerberosKafka) -> None:
    reader = consumer(kerberos_kafka, **{"sasl.kerberos.service.name": "other"})
    with reader, pytest.raises(AuthenticationError) as caught:
        reader.partitions_for(TOPIC)
    assert "the KDC does not know the broker's principal" in caught.value.text
    assert "Compare sasl_kerberos_service_name" in caught.value.text
