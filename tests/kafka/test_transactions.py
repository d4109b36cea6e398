"""Transactions of another client's producer, committed, aborted and open, as both isolation levels see them."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Producer

from kclient import TopicPartition
from localkafka import KafkaCluster
from tests.kafka.blocking_consumers import read, read_nothing
from tests.kafka.other_clients import SECONDS, committed, producer

ALL = range(60)
ABORTED = {*range(10, 20), *range(25, 45, 2)}
OPEN = range(50, 60)
COMMITTED = [number for number in ALL if number not in ABORTED and number not in OPEN]


def transactional(kafka: KafkaCluster, name: str) -> Producer:
    source = producer(kafka, transactional_id=name, linger_ms=0)
    source.init_transactions(SECONDS)
    return source


def write(source: Producer, topic: str, numbers: Any) -> None:
    for number in numbers:
        source.produce(topic, value=b"%d" % number, partition=0)
    assert source.flush(SECONDS) == 0


def produce_transactions(kafka: KafkaCluster, topic: str) -> Producer:
    """Committed, aborted, plain, two interleaved of which one aborts, plain, and one that stays open."""
    first, second, plain = (
        transactional(kafka, f"{topic}-1"),
        transactional(kafka, f"{topic}-2"),
        producer(kafka),
    )
    first.begin_transaction()
    write(first, topic, range(10))
    first.commit_transaction()
    first.begin_transaction()
    write(first, topic, range(10, 20))
    first.abort_transaction()
    write(plain, topic, range(20, 25))
    first.begin_transaction()
    second.begin_transaction()
    for number in range(25, 45):
        write(second if number % 2 == 0 else first, topic, [number])
    second.commit_transaction()
    first.abort_transaction()
    write(plain, topic, range(45, 50))
    first.begin_transaction()
    write(first, topic, OPEN)
    return first


def numbers(records: list[Any]) -> list[int]:
    return [int(record.value) for record in records]


@pytest.mark.spec("S0-51", "S2-41", "B.12", "B.10.9", "D-51", "D-52", "U-04", "I-05", "M-20")
@pytest.mark.parametrize("cluster", ["kafka1", "kafka28"])
def test_read_committed(
    request: pytest.FixtureRequest, consumer_class: Any, cluster: str, fresh_name: str
) -> None:
    """Nothing aborted, nothing of the open transaction until it is committed, everything in its order."""
    kafka = request.getfixturevalue(cluster)
    kafka.create_topic(fresh_name)
    open_producer = produce_transactions(kafka, fresh_name)
    tp = TopicPartition(fresh_name, 0)
    keys = {"bootstrap_servers": kafka.bootstrap_servers, "auto_offset_reset": "earliest"}
    with consumer_class(**keys, isolation_level="read_uncommitted") as consumer:
        consumer.assign([tp])
        records = read(consumer, len(ALL))
        assert numbers(records) == list(ALL)
        first_open = records[OPEN[0]].offset
        assert consumer.end_offsets([tp]) == {tp: records[-1].offset + 1}
    with consumer_class(
        fresh_name, **keys, group_id=fresh_name, isolation_level="read_committed"
    ) as consumer:
        assert numbers(read(consumer, len(COMMITTED))) == COMMITTED
        assert consumer.end_offsets([tp]) == {tp: first_open}
        assert consumer.position(tp) == first_open
        assert consumer.current_lag(tp) == 0
        read_nothing(consumer, 0.5)
        open_producer.commit_transaction()
        assert numbers(read(consumer, len(OPEN))) == list(OPEN)
        (end,) = consumer.end_offsets([tp]).values()
        while consumer.position(tp) < end:  # the marker after the last record
            consumer.poll(0.2)
    assert committed(kafka, fresh_name) == {tp: end}


@pytest.mark.spec("S2-41", "B.12", "D-51", "M-19", "M-20")
def test_aborted_data_alone_move_the_position(
    kafka1: KafkaCluster, consumer_class: Any, fresh_name: str
) -> None:
    kafka1.create_topic(fresh_name)
    source = transactional(kafka1, fresh_name)
    source.begin_transaction()
    write(source, fresh_name, range(10))
    source.abort_transaction()
    tp = TopicPartition(fresh_name, 0)
    keys = {"bootstrap_servers": kafka1.bootstrap_servers, "isolation_level": "read_committed"}
    with consumer_class(**keys) as consumer:
        consumer.assign([tp])
        consumer.seek(tp, 3)
        (end,) = consumer.end_offsets([tp]).values()
        assert end > 10
        for _ in range(50):
            records = consumer.poll(0.2)
            assert len(records) == 0
            if consumer.position(tp) == end:
                break
        assert consumer.position(tp) == end
