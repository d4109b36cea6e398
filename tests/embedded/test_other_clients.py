"""librdkafka (confluent-kafka) on the embedded cluster: what it writes and reads there is what it was given.

A cluster that only our own client can talk to would prove nothing. Clients in Python are in test_python_clients.py,
those in Java in test_java_clients.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, OffsetSpec

from kclient import Consumer
from kclient.embedded import EmbeddedCluster

SECONDS = 20
QUIET = {"log_level": 3}
RECORDS = 300


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=3, topics={"orders": 6}) as cluster:
        yield cluster


def values(count: int = RECORDS) -> list[bytes]:
    return [b"value-%d" % number for number in range(count)]


def read_by_us(cluster: EmbeddedCluster, group: str, count: int) -> list[Any]:
    settings = {"group_id": group, "auto_offset_reset": "earliest", "isolation_level": "read_committed"}
    records: list[Any] = []
    deadline = time.monotonic() + SECONDS
    with Consumer("orders", bootstrap_servers=cluster.bootstrap_servers, **settings) as consumer:
        while len(records) < count:
            assert time.monotonic() < deadline, f"only {len(records)} of {count} records"
            records += consumer.poll(timeout=0.5)
    return records


def librdkafka_consumer(cluster: EmbeddedCluster, group: str, **settings: Any) -> confluent_kafka.Consumer:
    dotted = {key.replace("_", "."): value for key, value in settings.items()}
    return confluent_kafka.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            **QUIET,
            **dotted,
        }
    )


def librdkafka_reads(consumer: confluent_kafka.Consumer, count: int) -> list[confluent_kafka.Message]:
    found: list[confluent_kafka.Message] = []
    deadline = time.monotonic() + SECONDS
    while len(found) < count:
        assert time.monotonic() < deadline, f"only {len(found)} of {count} records"
        for message in consumer.consume(num_messages=count - len(found), timeout=0.5):
            assert message.error() is None, message.error()
            found.append(message)
    return found


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_librdkafka_writes_with_every_codec_and_reads_in_a_group(
    cluster: EmbeddedCluster, codec: str
) -> None:
    settings = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "compression.type": codec,
        "linger.ms": 5,
        **QUIET,
    }
    producer = confluent_kafka.Producer({**settings, "enable.idempotence": True})
    for number, value in enumerate(values()):
        producer.produce("orders", value, key=b"%d" % number, headers=[("n", b"%d" % number)])
    assert producer.flush(SECONDS) == 0
    consumer = librdkafka_consumer(cluster, "billing")
    consumer.subscribe(["orders"])
    found = librdkafka_reads(consumer, RECORDS)
    assert sorted(message.value() for message in found) == sorted(values())
    assert all(message.headers() == [("n", message.key())] for message in found)
    consumer.commit(asynchronous=False)
    consumer.close()
    assert sum(cluster.committed("billing").values()) == RECORDS
    assert sorted(record.value for record in read_by_us(cluster, "audit", RECORDS)) == sorted(values())


@pytest.mark.parametrize("release", ["0.10.0", "0.10.2", "0.11.0", "1.1", "2.0", "2.8", "3.3", "4.0"])
def test_librdkafka_gets_along_with_every_age_of_kafka(release: str) -> None:
    with EmbeddedCluster(brokers=2, topics={"orders": 6}, release=release) as cluster:
        for codec in ("gzip", "lz4"):
            producer = confluent_kafka.Producer(
                {"bootstrap.servers": cluster.bootstrap_servers, "compression.type": codec, **QUIET}
            )
            for value in values(30):
                producer.produce("orders", value)
            assert producer.flush(SECONDS) == 0
        consumer = librdkafka_consumer(cluster, "billing")
        consumer.subscribe(["orders"])
        assert sorted(message.value() for message in librdkafka_reads(consumer, 60)) == sorted(values(30) * 2)
        consumer.commit(asynchronous=False)
        consumer.close()
        assert sum(cluster.committed("billing").values()) == 60


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
def test_members_of_librdkafka_share_the_partitions_and_a_survivor_takes_over(
    cluster: EmbeddedCluster, assignor: str
) -> None:
    settings = {"partition_assignment_strategy": assignor, "heartbeat_interval_ms": 100}
    share_and_take_over(cluster, settings)


def share_and_take_over(cluster: EmbeddedCluster, settings: dict[str, Any]) -> None:
    """Two members own three partitions each; when one leaves the other owns all six."""
    members = [librdkafka_consumer(cluster, "billing", **settings) for _ in range(2)]
    for member in members:
        member.subscribe(["orders"])
    poll_until(members, lambda: [len(member.assignment()) for member in members] == [3, 3])
    members[0].close()
    poll_until(members[1:], lambda: len(members[1].assignment()) == 6)
    members[1].close()


def poll_until(members: list[confluent_kafka.Consumer], reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not reached():
        assert time.monotonic() < deadline, [member.assignment() for member in members]
        for member in members:
            message = member.poll(0.05)
            assert message is None or message.error() is None


def test_members_of_librdkafka_share_by_the_consumer_protocol() -> None:
    config = {"group.consumer.heartbeat.interval.ms": 100}
    with EmbeddedCluster(brokers=3, topics={"orders": 6}, config=config) as cluster:
        share_and_take_over(cluster, {"group_protocol": "consumer"})
        assert any(entry.api == "ConsumerGroupHeartbeat" for entry in cluster.requests)


def test_librdkafka_reads_on_through_the_death_of_leader_and_coordinator(cluster: EmbeddedCluster) -> None:
    cluster.produce("orders", values(), codec="lz4")
    consumer = librdkafka_consumer(cluster, "billing", reconnect_backoff_max_ms=200)
    consumer.subscribe(["orders"])
    found = librdkafka_reads(consumer, RECORDS)
    cluster.kill(cluster.coordinator_of("billing"))
    cluster.produce("orders", [b"later"] * 6)
    found += librdkafka_reads(consumer, 6)
    assert len(found) == RECORDS + 6
    consumer.commit(asynchronous=False)
    consumer.close()
    assert sum(cluster.committed("billing").values()) == RECORDS + 6


def test_transactions_of_librdkafka_are_seen_whole_or_not_at_all(cluster: EmbeddedCluster) -> None:
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "payments", **QUIET}
    producer = confluent_kafka.Producer(settings)
    producer.init_transactions(SECONDS)
    for number in range(4):
        producer.begin_transaction()
        for value in range(10):
            producer.produce("orders", b"%d-%d" % (number, value), partition=value % 6)
        if number % 2:
            producer.abort_transaction(SECONDS)
        else:
            producer.commit_transaction(SECONDS)
    kept = sorted(b"%d-%d" % (number, value) for number in (0, 2) for value in range(10))
    assert sorted(record.value for record in read_by_us(cluster, "audit", 20)) == kept
    consumer = librdkafka_consumer(cluster, "billing")
    consumer.subscribe(["orders"])
    assert sorted(message.value() for message in librdkafka_reads(consumer, 20)) == kept
    consumer.close()


def test_librdkafka_commits_offsets_within_a_transaction(cluster: EmbeddedCluster) -> None:
    cluster.produce("orders", values(30), partition=0)
    consumer = librdkafka_consumer(cluster, "billing", enable_auto_commit=False)
    consumer.subscribe(["orders"])
    librdkafka_reads(consumer, 30)
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "payments", **QUIET}
    producer = confluent_kafka.Producer(settings)
    producer.init_transactions(SECONDS)
    for number, end in enumerate((producer.abort_transaction, producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce("results", b"%d" % number)
        offsets = [one for one in consumer.position(consumer.assignment()) if one.offset > 0]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), SECONDS)
        assert cluster.committed("billing") == {}
        end(SECONDS)
    assert cluster.committed("billing") == {("orders", 0): 30}
    consumer.close()


def test_the_admin_client_of_librdkafka_makes_describes_and_deletes(cluster: EmbeddedCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, **QUIET})
    admin.create_topics([NewTopic("more", 4, 3)])["more"].result(SECONDS)
    assert len(admin.list_topics("more", SECONDS).topics["more"].partitions) == 4
    cluster.produce("orders", values(6))
    consumer = librdkafka_consumer(cluster, "billing")
    consumer.subscribe(["orders"])
    librdkafka_reads(consumer, 6)
    described = admin.describe_consumer_groups(["billing"])["billing"].result(SECONDS)
    assert (described.state.name, len(described.members)) == ("STABLE", 1)
    assert len(described.members[0].assignment.topic_partitions) == 6
    consumer.close()
    listed = admin.list_consumer_groups().result(SECONDS)
    assert [(group.group_id, group.state.name) for group in listed.valid] == [("billing", "EMPTY")]
    admin.delete_consumer_groups(["billing"])["billing"].result(SECONDS)
    admin.delete_topics(["more"])["more"].result(SECONDS)
    assert list(cluster.state.topics) == ["orders", "__consumer_offsets"]


def test_librdkafka_reads_from_the_follower_in_its_rack() -> None:
    selector = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
    with EmbeddedCluster(brokers=3, topics={"orders": 1}, racks=["a", "b", "c"], config=selector) as cluster:
        consumer = librdkafka_consumer(cluster, "billing", client_rack="b")
        consumer.subscribe(["orders"])
        for number in range(3):
            cluster.produce("orders", [b"%d" % number])
            assert [message.value() for message in librdkafka_reads(consumer, 1)] == [b"%d" % number]
        consumer.close()
        fetches = [entry for entry in cluster.requests if entry.api == "Fetch" and entry.response is not None]
        with_records = [entry.node for entry in fetches if any(rows(entry))]
    assert cluster.state.topics["orders"].partitions[0].leader == 1
    assert with_records == [2, 2, 2]


def rows(entry: Any) -> list[Any]:
    return [part.records for topic in entry.response.responses for part in topic.partitions]


def test_the_admin_client_of_librdkafka_looks_up_and_changes(cluster: EmbeddedCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, **QUIET})
    cluster.produce("orders", values(20), partition=0, timestamp_ms=1_000)
    cluster.produce("orders", values(5), partition=0, timestamp_ms=2_000)
    first, tenth = TopicPartition("orders", 0), TopicPartition("orders", 0, 10)
    for spec, offset in (
        (OffsetSpec.earliest(), 0),
        (OffsetSpec.latest(), 25),
        (OffsetSpec.for_timestamp(1_500), 20),
    ):
        assert admin.list_offsets({first: spec})[first].result(SECONDS).offset == offset
    assert admin.delete_records([tenth])[tenth].result(SECONDS).low_watermark == 10
    admin.create_partitions([NewPartitions("orders", 8)])["orders"].result(SECONDS)
    assert len(admin.list_topics("orders", SECONDS).topics["orders"].partitions) == 8
    resource = ConfigResource(ConfigResource.Type.TOPIC, "orders")
    described = admin.describe_configs([resource])[resource].result(SECONDS)
    assert described["retention.ms"].value == "604800000"
    assert admin.describe_cluster().result(SECONDS).controller.id == 1
