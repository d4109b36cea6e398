"""The harness alone: other programs' records, commits and tables agree, and the faults do what they say."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Consumer, Producer

from localkafka import CommittedOffset, KafkaCluster, probe

pytestmark = pytest.mark.kafka

PARTITIONS = 3
RECORDS = 10  # in each partition


def produce(kafka: KafkaCluster, topic: str) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(RECORDS * PARTITIONS):
        producer.produce(topic, value=b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(30) == 0


def consume_and_commit(kafka: KafkaCluster, topic: str, group: str) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    values: list[bytes] = []
    deadline = time.monotonic() + 30
    while len(values) < RECORDS * PARTITIONS and time.monotonic() < deadline:
        values += [message.value() for message in consumer.consume(100, timeout=1) if not message.error()]
    consumer.commit(asynchronous=False)
    consumer.close()
    return values


def produce_one(kafka: KafkaCluster, topic: str) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce(topic, value=b"one")
    assert producer.flush(30) == 0


@pytest.mark.parametrize("cluster", ["kafka1", "kafka3", "kafka28"])
def test_another_client_and_kafkas_own_tool_agree(
    request: pytest.FixtureRequest, cluster: str, fresh_name: str
) -> None:
    kafka = request.getfixturevalue(cluster)
    kafka.create_topic(fresh_name, PARTITIONS)
    produce(kafka, fresh_name)
    values = consume_and_commit(kafka, fresh_name, fresh_name)
    assert sorted(map(int, values)) == list(range(RECORDS * PARTITIONS))
    assert kafka.describe_group(fresh_name) == {
        (fresh_name, partition): CommittedOffset(RECORDS, RECORDS, 0) for partition in range(PARTITIONS)
    }


def test_a_killed_brokers_work_moves_and_it_comes_back(kafka3: KafkaCluster, fresh_name: str) -> None:
    kafka3.create_topic(fresh_name, PARTITIONS)
    killed = kafka3.coordinator_of(fresh_name)
    leaders = [kafka3.leader_of(fresh_name, partition) for partition in range(PARTITIONS)]
    led = leaders.index(killed)  # each of the three nodes leads one
    kafka3.kill(killed)
    kafka3.wait_until_ready()
    assert kafka3.leader_of(fresh_name, led) != killed
    assert kafka3.coordinator_of(fresh_name) != killed
    produce_one(kafka3, fresh_name)
    kafka3.restart(killed)
    assert probe.metadata(kafka3.address(killed), timeout=10).brokers == {1, 2, 3}


def test_a_paused_broker_is_replaced_and_resumes(kafka3: KafkaCluster, fresh_name: str) -> None:
    kafka3.create_topic(fresh_name)
    paused = kafka3.leader_of(fresh_name, 0)
    kafka3.pause(paused)
    kafka3.wait_until_ready()
    assert kafka3.leader_of(fresh_name, 0) != paused
    kafka3.resume(paused)
    kafka3.wait_until_ready()
    assert probe.metadata(kafka3.address(paused), timeout=10).brokers == {1, 2, 3}
