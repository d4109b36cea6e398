"""Scenario A-01 on a real Kafka: groups come to a cluster that has never had one, with each reset policy at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kclient import Consumer, TopicPartition
from kclient.errors import NoOffsetError
from localkafka import KafkaCluster
from tests.kafka.blocking_consumers import read, wait_for_assignment
from tests.kafka.fixtures import start
from tests.kafka.other_clients import SECONDS, committed, producer

HOUR = 3_600_000
ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def cold_kafka() -> Iterator[KafkaCluster]:
    """A cluster of one node, new for this test: it has no `__consumer_offsets`."""
    yield from start("4.3.1", 1)


def fill(kafka: KafkaCluster) -> None:
    """In each partition five records of two hours ago, then five of ten minutes ago."""
    kafka.create_topic("t", 2, retention_ms=-1)
    source, now = producer(kafka), int(time.time() * 1000)
    for number in range(20):
        age = 2 * HOUR if number < 10 else HOUR // 6
        source.produce("t", value=b"%d" % number, partition=number % 2, timestamp=now - age)
    assert source.flush(SECONDS) == 0


def offsets(records: list[Any]) -> list[tuple[int, int]]:
    return sorted((record.partition, record.offset) for record in records)


def begin(kafka: KafkaCluster, policy: str) -> Any:
    """What a group with this policy gets; every one of these runs in its own thread."""
    keys = {"bootstrap_servers": kafka.bootstrap_servers, "group_id": policy, "auto_offset_reset": policy}
    with Consumer("t", **keys) as consumer:
        if policy == "none":
            with pytest.raises(NoOffsetError) as caught:
                read(consumer, 1)
            return sorted(caught.value.partitions)
        if policy == "latest":
            wait_for_assignment(consumer, 2)
            return {tp: consumer.position(tp) for tp in consumer.assignment()}
        return offsets(read(consumer, 20 if policy == "earliest" else 10))


@pytest.mark.kafka
@pytest.mark.spec("A-01", "S0-07", "S0-41", "S0-44", "S1-03", "E1")
def test_a_cold_start_with_each_policy(cold_kafka: KafkaCluster) -> None:
    fill(cold_kafka)
    policies = ("earliest", "latest", "none", "by_duration:PT1H")
    with ThreadPoolExecutor(len(policies)) as threads:
        found = dict(
            zip(policies, threads.map(lambda policy: begin(cold_kafka, policy), policies), strict=True)
        )
    everything = [(partition, offset) for partition in (0, 1) for offset in range(10)]
    assert found["earliest"] == everything
    assert found["latest"] == {ZERO: 10, ONE: 10}
    assert found["none"] == [ZERO, ONE]
    assert found["by_duration:PT1H"] == [place for place in everything if place[1] >= 5]
    assert committed(cold_kafka, "earliest") == {ZERO: 10, ONE: 10}
    keys = {"bootstrap_servers": cold_kafka.bootstrap_servers, "group_id": "earliest"}
    with Consumer("t", **keys, auto_offset_reset="none") as again:
        wait_for_assignment(again, 2)
        assert {tp: again.position(tp) for tp in again.assignment()} == {ZERO: 10, ONE: 10}
