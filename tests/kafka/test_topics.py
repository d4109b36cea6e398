"""Topics that are created, grow, are recreated, or hold more than a fetch allows."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from kclient import TopicPartition
from kclient.errors import UnknownTopicError
from localkafka import KafkaCluster
from tests.kafka.blocking_consumers import read, wait_for_assignment
from tests.kafka.other_clients import delete_topic, produce_numbers, producer, wait_until_committed

SECONDS = 20


def keys(kafka: KafkaCluster, name: str, **more: Any) -> dict[str, Any]:
    base = {"bootstrap_servers": kafka.bootstrap_servers, "group_id": name, "auto_offset_reset": "earliest"}
    return base | {"metadata_max_age_ms": 1000, "heartbeat_interval_ms": 300} | more


def values(records: list[Any]) -> list[int]:
    return sorted(int(record.value) for record in records)


def poll_for(consumer: Any, seconds: float) -> None:
    """Poll for a while, without records."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert list(consumer.poll(0.1)) == []


def poll_until_at_0(consumer: Any) -> None:
    """The log is shorter now than what was read of the old one; the partition may be unassigned in between."""
    deadline = time.monotonic() + SECONDS
    while [consumer.position(tp) for tp in consumer.assignment()] != [0]:
        assert time.monotonic() < deadline, f"assigned are {consumer.assignment()}"
        poll_for(consumer, 0.1)


@pytest.mark.spec("S1-16", "S1-20", "S3-28", "S4-07", "D-14", "D-81", "U-15")
def test_a_pattern_finds_topics_that_are_made_later(
    kafka1: KafkaCluster, consumer_class: Any, fresh_name: str
) -> None:
    names = [f"{fresh_name}.{kind}" for kind in ("one", "two")]
    kafka1.create_topic(names[0])
    kafka1.create_topic(f"not-{names[0]}")
    produce_numbers(kafka1, names[0], range(5), 1)
    produce_numbers(kafka1, f"not-{names[0]}", range(100, 105), 1)
    with consumer_class(**keys(kafka1, fresh_name)) as consumer:
        consumer.subscribe(pattern=re.compile(re.escape(fresh_name) + r"\..*"))
        assert values(read(consumer, 5)) == list(range(5))
        kafka1.create_topic(names[1])
        produce_numbers(kafka1, names[1], range(5, 10), 1)
        assert values(read(consumer, 5)) == list(range(5, 10))
        assert list(consumer.subscription()) == names
    wait_until_committed(kafka1, fresh_name, {TopicPartition(name, 0): 5 for name in names})


@pytest.mark.spec("S3-29", "S3-27", "D-14", "B.13.2")
def test_partitions_that_are_added_are_read(
    kafka1: KafkaCluster, consumer_class: Any, fresh_name: str
) -> None:
    kafka1.create_topic(fresh_name)
    produce_numbers(kafka1, fresh_name, range(5), 1)
    with consumer_class(fresh_name, **keys(kafka1, fresh_name)) as consumer:
        assert values(read(consumer, 5)) == list(range(5))
        admin = AdminClient({"bootstrap.servers": kafka1.bootstrap_servers})
        admin.create_partitions([NewPartitions(fresh_name, 3)])[fresh_name].result(timeout=SECONDS)
        wait_for_assignment(consumer, 3)
        produce_numbers(kafka1, fresh_name, [101, 102], 3)
        assert values(read(consumer, 2)) == [101, 102]
    ends = {0: 6, 1: 0, 2: 1}  # 102 went to partition 0, 101 to partition 2
    wait_until_committed(kafka1, fresh_name, {TopicPartition(fresh_name, n): end for n, end in ends.items()})


@pytest.mark.spec("B.5.5", "D-25")
@pytest.mark.parametrize("cluster", ["kafka1", "kafka28"])
def test_a_topic_that_is_recreated_is_read_on(
    request: pytest.FixtureRequest, consumer_class: Any, cluster: str, fresh_name: str
) -> None:
    kafka = request.getfixturevalue(cluster)
    kafka.create_topic(fresh_name)
    produce_numbers(kafka, fresh_name, range(10), 1)
    with consumer_class(fresh_name, **keys(kafka, fresh_name, missing_topic_timeout_ms=30_000)) as consumer:
        assert values(read(consumer, 10)) == list(range(10))
        delete_topic(kafka, fresh_name)
        poll_for(consumer, 1.0)
        kafka.create_topic(fresh_name)
        poll_until_at_0(consumer)
        produce_numbers(kafka, fresh_name, range(100, 105), 1)
        assert values(read(consumer, 5)) == list(range(100, 105))


@pytest.mark.spec("U-07", "B.5.4")
def test_a_topic_that_is_missing_is_reported_with_the_nearest_name(
    kafka1: KafkaCluster, consumer_class: Any, fresh_name: str
) -> None:
    kafka1.create_topic(fresh_name)
    wrong = fresh_name[:-1] + "_"
    settings = keys(kafka1, fresh_name, missing_topic_timeout_ms=500, allow_auto_create_topics=False)
    with consumer_class(wrong, **settings) as consumer:
        with pytest.raises(UnknownTopicError) as caught:
            read(consumer, 1, seconds=10)
        assert (caught.value.topic, caught.value.nearest) == (wrong, fresh_name)


@pytest.mark.spec("S2-03", "S2-28", "U-31", "I-32")
@pytest.mark.parametrize("cluster", ["kafka1", "kafka28"])
def test_records_larger_than_every_limit_come_all_the_same(
    request: pytest.FixtureRequest, consumer_class: Any, cluster: str, fresh_name: str
) -> None:
    kafka = request.getfixturevalue(cluster)
    kafka.create_topic(fresh_name, 2, max_message_bytes=6_000_000)
    source = producer(kafka, message_max_bytes=6_000_000)
    for number in range(6):
        source.produce(fresh_name, value=bytes([number]) * 3_000_000, partition=number % 2)
    assert source.flush(SECONDS) == 0
    small = {"max_partition_fetch_bytes": 1024, "fetch_max_bytes": 1024, "buffer_memory_bytes": 2048}
    with consumer_class(fresh_name, **keys(kafka, fresh_name, **small)) as consumer:
        records = read(consumer, 6)
        assert sorted(record.value for record in records) == [bytes([n]) * 3_000_000 for n in range(6)]
    wait_until_committed(kafka, fresh_name, {TopicPartition(fresh_name, n): 3 for n in range(2)})
