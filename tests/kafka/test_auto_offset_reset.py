"""Where a consumer begins when nothing is committed, with and without a group: the reset policies."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kclient import OffsetAndMetadata, TopicPartition
from kclient.errors import BrokerError, NoOffsetError, OffsetOutOfRangeError
from localkafka import KafkaCluster
from tests.kafka.blocking_consumers import read, read_nothing, wait_for_assignment
from tests.kafka.other_clients import SECONDS, committed, produce_numbers, producer

PARTITIONS = 2
HOUR = 3_600_000


def produce_old_and_new(kafka: KafkaCluster, topic: str) -> None:
    """In each partition five records of two hours ago, then five of ten minutes ago."""
    source = producer(kafka)
    now = int(time.time() * 1000)
    for number in range(20):
        age = 2 * HOUR if number < 10 else HOUR // 6
        source.produce(topic, value=b"%d" % number, partition=number % PARTITIONS, timestamp=now - age)
    assert source.flush(SECONDS) == 0


def values(records: list[Any]) -> list[int]:
    return sorted(int(record.value) for record in records)


@pytest.mark.spec("S0-07", "S0-25", "S0-32", "S0-41", "S0-44", "S2-44", "S2-46", "D-24", "D-82")
@pytest.mark.parametrize("way", ["group", "by hand"])
@pytest.mark.parametrize(
    ("policy", "expected"), [("earliest", range(20)), ("by_duration:PT1H", range(10, 20)), ("latest", [])]
)
def test_where_reading_begins(
    kafka1: KafkaCluster, consumer_class: Any, way: str, policy: str, expected: range, fresh_name: str
) -> None:
    kafka1.create_topic(fresh_name, PARTITIONS, retention_ms=-1)
    produce_old_and_new(kafka1, fresh_name)
    keys = {"bootstrap_servers": kafka1.bootstrap_servers, "auto_offset_reset": policy}
    with consumer_class(**keys, group_id=fresh_name if way == "group" else None) as consumer:
        if way == "group":
            consumer.subscribe([fresh_name])
        else:
            consumer.assign([TopicPartition(fresh_name, partition) for partition in range(PARTITIONS)])
        if policy == "latest":
            wait_for_assignment(consumer, PARTITIONS)
            read_nothing(consumer, 0.3)
        else:
            assert values(read(consumer, len(expected))) == list(expected)
        produce_numbers(kafka1, fresh_name, [100, 101], PARTITIONS)
        assert values(read(consumer, 2)) == [100, 101]
    if way == "group":
        ends = {TopicPartition(fresh_name, partition): 11 for partition in range(PARTITIONS)}
        assert committed(kafka1, fresh_name) == ends
        assert {key: row.lag for key, row in kafka1.describe_group(fresh_name).items()} == dict.fromkeys(
            ends, 0
        )


@pytest.mark.spec("S0-07", "S0-41", "S0-44", "S2-32", "U-01")
def test_without_a_policy_the_user_decides(
    kafka1: KafkaCluster, consumer_class: Any, fresh_name: str
) -> None:
    """Policy `none`: one error that names every partition without a commit, and a seek ends it."""
    kafka1.create_topic(fresh_name, PARTITIONS)
    produce_numbers(kafka1, fresh_name, range(20), PARTITIONS)
    zero, one = (TopicPartition(fresh_name, partition) for partition in range(PARTITIONS))
    keys = {"bootstrap_servers": kafka1.bootstrap_servers, "auto_offset_reset": "none"}
    with consumer_class(fresh_name, **keys, group_id=fresh_name) as consumer:
        with pytest.raises(NoOffsetError) as caught:
            read(consumer, 1)
        assert sorted(caught.value.partitions) == [zero, one]
        consumer.seek(zero, 5)
        consumer.seek(one, 0)
        assert values(read(consumer, 15)) == sorted([*range(10, 20, 2), *range(1, 20, 2)])
        consumer.seek(zero, 500)
        with pytest.raises(OffsetOutOfRangeError) as gone:
            read(consumer, 1)
        assert gone.value.positions == {zero: 500}


@pytest.mark.spec("S2-31", "S2-30", "D-26", "I-15", "U-01")
def test_a_position_that_the_log_does_not_have(
    kafka1: KafkaCluster, consumer_class: Any, fresh_name: str
) -> None:
    """A policy that was set resets it; with none set it is an error, and no silent jump."""
    kafka1.create_topic(fresh_name)
    produce_numbers(kafka1, fresh_name, range(10), 1)
    tp = TopicPartition(fresh_name, 0)
    keys = {"bootstrap_servers": kafka1.bootstrap_servers}
    with consumer_class(**keys, auto_offset_reset="earliest") as consumer:
        consumer.assign([tp])
        consumer.seek(tp, 77)
        assert values(read(consumer, 10)) == list(range(10))
    with consumer_class(**keys) as consumer:
        consumer.assign([tp])
        consumer.seek(tp, 77)
        with pytest.raises(OffsetOutOfRangeError) as caught:
            read(consumer, 1)
        assert (caught.value.positions, caught.value.log_end) == ({tp: 77}, 10)


@pytest.mark.spec("S0-02", "S3-01", "B.14.3", "D-27")
def test_without_a_group(kafka1: KafkaCluster, consumer_class: Any, fresh_name: str) -> None:
    """Nothing of a group works, everything else does; what stays assigned keeps its position."""
    kafka1.create_topic(fresh_name, PARTITIONS)
    produce_numbers(kafka1, fresh_name, range(20), PARTITIONS)
    zero, one = (TopicPartition(fresh_name, partition) for partition in range(PARTITIONS))
    with consumer_class(bootstrap_servers=kafka1.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([zero])
        assert values(read(consumer, 10)) == list(range(0, 20, 2))
        for call in (
            lambda: consumer.commit({zero: OffsetAndMetadata(1)}),
            lambda: consumer.committed([zero]),
            lambda: consumer.subscribe([fresh_name]),
        ):
            with pytest.raises(BrokerError, match="INVALID_GROUP_ID"):
                call()
        consumer.assign([zero, one])
        assert values(read(consumer, 10)) == list(range(1, 20, 2))
