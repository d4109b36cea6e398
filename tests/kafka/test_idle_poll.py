"""What a poll costs must not grow with what is assigned and idle."""

from __future__ import annotations

import statistics
import time
from typing import Any

import pytest

from kclient import TopicPartition
from localkafka import KafkaCluster
from tests.kafka.blocking_consumers import FACES, read
from tests.kafka.other_clients import delete_topic, produce_numbers

FEW, MANY = 20, 2000
POLLS = 200


def poll_seconds(consumer: Any) -> float:
    began = time.perf_counter()
    assert len(consumer.poll(0)) == 0
    return time.perf_counter() - began


def medians(consumers: list[Any]) -> list[float]:
    """The median cost of poll(0) of each consumer; they take turns, so that a busy machine is busy for all."""
    costs: list[list[float]] = [[] for _ in consumers]
    for _ in range(POLLS):
        for consumer, spent in zip(consumers, costs, strict=True):
            spent.append(poll_seconds(consumer))
            time.sleep(0.001)
    return [statistics.median(spent) for spent in costs]


def at_the_end(consumer: Any, partitions: list[TopicPartition]) -> None:
    """Assign partitions and wait until each has its position; a broker takes a while to make so many logs."""
    consumer.assign(partitions)
    consumer.seek_to_end()
    for partition in partitions:
        consumer.position(partition)


@pytest.mark.slow
@pytest.mark.exclusive
@pytest.mark.timeout(240)
@pytest.mark.spec("S1-15", "I-26")
def test_poll_0_with_2000_idle_partitions_costs_at_most_twice_that_with_20(
    kafka1: KafkaCluster, fresh_name: str
) -> None:
    kafka1.create_topic(fresh_name, MANY)
    all_partitions = [TopicPartition(fresh_name, partition) for partition in range(MANY)]
    for number, face in enumerate(FACES.values()):
        keys = {"bootstrap_servers": kafka1.bootstrap_servers}
        with face(**keys) as few, face(**keys) as many:
            at_the_end(few, all_partitions[:FEW])
            at_the_end(many, all_partitions)
            with_few, with_many = medians([few, many])
            assert with_many <= 2 * with_few, f"{with_many * 1e6:.0f} µs against {with_few * 1e6:.0f} µs"
            # It was not for doing nothing.
            produce_numbers(kafka1, fresh_name, [number * MANY + MANY - 1], MANY)
            (record,) = read(many, 1)
            assert (record.partition, record.offset) == (MANY - 1, number)
    delete_topic(kafka1, fresh_name)
