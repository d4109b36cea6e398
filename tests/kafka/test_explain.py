"""explain() on a real Kafka: the transaction that holds back read_committed, and since when."""

from __future__ import annotations

import datetime
import re
import time

import pytest
from confluent_kafka import Producer

from kclient import Consumer, TopicPartition
from localkafka import KafkaCluster
from tests.kafka.other_clients import SECONDS, producer


def transactional(kafka: KafkaCluster, name: str) -> Producer:
    source = producer(kafka, transactional_id=name, linger_ms=0)
    source.init_transactions(SECONDS)
    return source


def begin(source: Producer, topic: str, value: bytes) -> None:
    source.begin_transaction()
    source.produce(topic, value=value, partition=0)
    assert source.flush(SECONDS) == 0


def holder(consumer: Consumer, tp: TopicPartition) -> tuple[int, datetime.datetime]:
    """The producer id and the time that explain() names."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        consumer.poll(0.2)
        sentence = consumer.explain()[tp]
        found = re.match(
            r"waiting for open transaction: producer id (\d+), since ([\d:]+) UTC on ([\d-]+)\. read_committed ends",
            sentence,
        )
        if found:
            since = datetime.datetime.fromisoformat(f"{found[3]}T{found[2]}+00:00")
            return int(found[1]), since
    raise AssertionError(sentence)


@pytest.mark.spec("U-04", "U-06")
@pytest.mark.parametrize("cluster", ["kafka1", "kafka28"])
def test_the_producer_of_an_open_transaction_is_named(
    request: pytest.FixtureRequest, cluster: str, fresh_name: str
) -> None:
    kafka = request.getfixturevalue(cluster)
    kafka.create_topic(fresh_name)
    tp = TopicPartition(fresh_name, 0)
    first, second = (transactional(kafka, f"{fresh_name}-{number}") for number in (1, 2))
    with Consumer(
        bootstrap_servers=kafka.bootstrap_servers,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        consumer.assign([tp])
        before = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
        begin(first, fresh_name, b"one")
        begin(second, fresh_name, b"two")
        oldest, since = holder(consumer, tp)
        assert before <= since <= datetime.datetime.now(datetime.UTC)
        first.commit_transaction(SECONDS)
        found = []
        while not found:
            found += consumer.poll(1)
        assert [record.value for record in found] == [b"one"]
        younger, later = holder(consumer, tp)
        assert younger != oldest
        assert later >= since
        second.abort_transaction(SECONDS)
        while not consumer.explain()[tp].startswith("at the end"):
            consumer.poll(0.2)
