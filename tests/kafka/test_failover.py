"""Brokers die while a member reads and commits: the group's coordinator, and the leader of a partition."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kclient import TopicPartition
from localkafka import KafkaCluster
from tests.kafka.other_clients import producer, wait_until_committed

PARTITIONS = 3
SECONDS = 60
SETTINGS = {
    "auto_offset_reset": "earliest",
    "session_timeout_ms": 10_000,
    "heartbeat_interval_ms": 500,
    "enable_auto_commit": False,
}


class Source(threading.Thread):
    """Writes numbers to all partitions in turn, through everything, until it is stopped."""

    def __init__(self, kafka: KafkaCluster, topic: str) -> None:
        super().__init__(daemon=True)
        self._producer = producer(kafka, acks="all", enable_idempotence="true")
        self._topic = topic
        self._stopped = threading.Event()
        self.count = 0

    def run(self) -> None:
        while not self._stopped.wait(0.005):
            self._producer.produce(self._topic, value=b"%d" % self.count, partition=self.count % PARTITIONS)
            self._producer.poll(0)
            self.count += 1

    def stop(self) -> int:
        """Stop; how many were written."""
        self._stopped.set()
        self.join(SECONDS)
        assert self._producer.flush(SECONDS) == 0
        return self.count


@contextmanager
def source(kafka: KafkaCluster, topic: str) -> Iterator[Source]:
    thread = Source(kafka, topic)
    thread.start()
    try:
        yield thread
    finally:
        thread.stop()


class Reader:
    """What one consumer has read, and that each partition's offsets follow each other."""

    def __init__(self, consumer: Any) -> None:
        self.consumer = consumer
        self.numbers: list[int] = []
        self.next_offsets: dict[TopicPartition, int] = {}

    def poll(self) -> None:
        """Poll once, and commit what came."""
        records = list(self.consumer.poll(0.2))
        for record in records:
            tp = TopicPartition(record.topic, record.partition)
            assert record.offset == self.next_offsets.get(tp, 0)
            self.next_offsets[tp] = record.offset + 1
            self.numbers.append(int(record.value))
        if records:
            self.consumer.commit()

    def read_until(self, count: int) -> None:
        """Poll until so many records came in all."""
        deadline = time.monotonic() + SECONDS
        while len(self.numbers) < count:
            assert time.monotonic() < deadline, (
                f"{len(self.numbers)} of {count} records, at {self.next_offsets}"
            )
            self.poll()

    def read_for(self, seconds: float) -> int:
        """Poll for a while; how many records came."""
        before, deadline = len(self.numbers), time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.poll()
        return len(self.numbers) - before


def check(kafka: KafkaCluster, group: str, reader: Reader, written: int) -> None:
    """Everything once and in order, and committed to the end as another client sees it."""
    reader.read_until(written)
    assert sorted(reader.numbers) == list(range(written))
    assert sum(reader.next_offsets.values()) == written
    wait_until_committed(kafka, group, reader.next_offsets)


@pytest.mark.slow
@pytest.mark.parametrize("consumer_class", ["Consumer"], indirect=True)
@pytest.mark.spec("S1-19", "S1-23", "S4-09", "S4-17", "B.15.2", "B.15.5", "B.15.8", "D-10", "I-22")
def test_the_coordinators_broker_is_killed(
    kafka3: KafkaCluster, consumer_class: Any, fresh_name: str
) -> None:
    """Reading goes on, commits go to the new coordinator, and the member stays in its generation."""
    kafka3.create_topic(fresh_name, PARTITIONS)
    killed = kafka3.coordinator_of(fresh_name)
    with (
        source(kafka3, fresh_name) as writer,
        consumer_class(
            fresh_name, bootstrap_servers=kafka3.bootstrap_servers, group_id=fresh_name, **SETTINGS
        ) as consumer,
    ):
        reader = Reader(consumer)
        reader.read_until(100)
        generation = consumer.group_metadata()
        kafka3.kill(killed)
        reader.read_until(len(reader.numbers) + 300)
        assert kafka3.coordinator_of(fresh_name) != killed
        reader.read_until(len(reader.numbers) + 300)
        assert consumer.group_metadata() == generation
        check(kafka3, fresh_name, reader, writer.stop())


@pytest.mark.slow
@pytest.mark.parametrize("consumer_class", ["AsyncConsumer"], indirect=True)
@pytest.mark.spec("S2-12", "S2-18", "S2-29", "B.4.8", "B.5.8", "B.15.12", "U-06", "I-04", "I-22")
def test_the_leader_of_a_partition_is_killed(
    kafka3: KafkaCluster, consumer_class: Any, fresh_name: str
) -> None:
    """Nothing is lost, skipped or repeated, and the partitions of the other leaders never stop."""
    kafka3.create_topic(fresh_name, PARTITIONS, min_insync_replicas=1)
    leaders = [kafka3.leader_of(fresh_name, partition) for partition in range(PARTITIONS)]
    killed = next(leader for leader in leaders if leader != kafka3.coordinator_of(fresh_name))
    with (
        source(kafka3, fresh_name) as writer,
        consumer_class(
            fresh_name, bootstrap_servers=kafka3.bootstrap_servers, group_id=fresh_name, **SETTINGS
        ) as consumer,
    ):
        reader = Reader(consumer)
        reader.read_until(100)
        kafka3.kill(killed)
        reader.read_until(len(reader.numbers) + 300)
        kafka3.wait_until_ready()
        at_first = dict(reader.next_offsets)
        assert reader.read_for(2.0) > 0
        assert all(reader.next_offsets[tp] > offset for tp, offset in at_first.items())
        check(kafka3, fresh_name, reader, writer.stop())
