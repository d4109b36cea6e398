"""Rebalances as the application lives through them: listeners that commit, and polls that come too late."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from kclient import AsyncConsumer, Consumer, RebalanceListener, TopicPartition
from kclient.errors import CommitFailedError, ListenerError
from localkafka import KafkaCluster
from tests.kafka.blocking_consumers import read, wait_for_assignment
from tests.kafka.other_clients import committed, members, produce_numbers, wait_until_committed

PARTITIONS = 4
COUNT = 40
SECONDS = 20


def keys(kafka: KafkaCluster, name: str, **more: Any) -> dict[str, Any]:
    base = {"bootstrap_servers": kafka.bootstrap_servers, "group_id": name, "auto_offset_reset": "earliest"}
    quick = {"enable_auto_commit": False, "session_timeout_ms": 6000, "heartbeat_interval_ms": 300}
    return base | quick | more


class Committer(RebalanceListener):
    """Commits what was read when partitions go, and keeps a log of the calls."""

    def __init__(self) -> None:
        self.commit: Callable[[], Any] = lambda: None
        self.calls: list[tuple[str, int]] = []

    def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.calls.append(("assigned", len(partitions)))

    def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> Any:
        self.calls.append(("revoked", len(partitions)))
        return self.commit()

    def on_partitions_lost(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.calls.append(("lost", len(partitions)))


class Other(threading.Thread):
    """A second member on its own thread; it polls until it is stopped."""

    def __init__(self, topic: str, settings: dict[str, Any]) -> None:
        super().__init__(daemon=True)
        self.numbers: list[int] = []
        self.stopped = threading.Event()
        self.assigned: tuple[TopicPartition, ...] = ()
        self._arguments = (topic, settings)

    def run(self) -> None:
        topic, settings = self._arguments
        with Consumer(topic, **settings) as consumer:
            while not self.stopped.is_set():
                self.numbers += [int(record.value) for record in consumer.poll(0.05)]
                self.assigned = consumer.assignment()

    def stop(self) -> None:
        self.stopped.set()
        self.join(SECONDS)


def all_at(topic: str, offset: int) -> dict[TopicPartition, int]:
    return {TopicPartition(topic, partition): offset for partition in range(PARTITIONS)}


@pytest.mark.spec(
    "S3-32", "S3-34", "S3-43", "S3-48", "S3-49", "B.13.6", "B.13.7", "D-12", "D-15", "I-12", "U-05"
)
def test_a_commit_in_on_partitions_revoked_is_where_the_next_owner_begins(
    kafka1: KafkaCluster, fresh_name: str
) -> None:
    kafka1.create_topic(fresh_name, PARTITIONS)
    produce_numbers(kafka1, fresh_name, range(COUNT), PARTITIONS)
    listener = Committer()
    with Consumer(fresh_name, **keys(kafka1, fresh_name), listener=listener) as consumer:
        listener.commit = consumer.commit
        numbers = [int(record.value) for record in read(consumer, COUNT)]
        assert committed(kafka1, fresh_name) == {}
        other = Other(fresh_name, keys(kafka1, fresh_name))
        other.start()
        deadline = time.monotonic() + SECONDS
        while len(other.assigned) < 2 and time.monotonic() < deadline:
            numbers += [int(record.value) for record in consumer.poll(0.05)]
        assert listener.calls == [("assigned", 4), ("revoked", 4), ("assigned", 2)]
        assert committed(kafka1, fresh_name) == all_at(fresh_name, COUNT // PARTITIONS)
        produce_numbers(kafka1, fresh_name, range(COUNT, 2 * COUNT), PARTITIONS)
        while len(numbers) + len(other.numbers) < 2 * COUNT and time.monotonic() < deadline:
            numbers += [int(record.value) for record in consumer.poll(0.05)]
        other.stop()
        assert sorted(numbers + other.numbers) == list(range(2 * COUNT))
    assert listener.calls[3:] == [("revoked", 2)]


@pytest.mark.spec("S3-34", "B.3.1", "D-12", "U-24")
def test_an_async_listener_awaits_its_commit(kafka1: KafkaCluster, fresh_name: str) -> None:
    kafka1.create_topic(fresh_name, PARTITIONS)
    produce_numbers(kafka1, fresh_name, range(COUNT), PARTITIONS)
    listener = Committer()

    async def consume() -> list[int]:
        numbers: list[int] = []
        async with AsyncConsumer(fresh_name, **keys(kafka1, fresh_name), listener=listener) as consumer:
            listener.commit = consumer.commit  # on_partitions_revoked returns what must be awaited
            async for record in consumer:
                numbers.append(int(record.value))
                if len(numbers) == COUNT:
                    return numbers
        return numbers

    assert sorted(asyncio.run(consume())) == list(range(COUNT))
    assert listener.calls == [("assigned", 4), ("revoked", 4)]
    wait_until_committed(kafka1, fresh_name, all_at(fresh_name, COUNT // PARTITIONS))


@pytest.mark.spec("S3-36", "S3-50", "S3-17", "I-12")
def test_a_listener_that_raises_stops_nothing(
    kafka1: KafkaCluster, consumer_class: Any, fresh_name: str
) -> None:
    kafka1.create_topic(fresh_name, PARTITIONS)
    produce_numbers(kafka1, fresh_name, range(COUNT), PARTITIONS)

    class Broken(RebalanceListener):
        def on_partitions_assigned(self, partitions: Iterable[TopicPartition]) -> None:
            raise ArithmeticError("in the listener")

    with consumer_class(fresh_name, **keys(kafka1, fresh_name), listener=Broken()) as consumer:
        with pytest.raises(ListenerError) as caught:
            read(consumer, 1)
        assert isinstance(caught.value.__cause__, ArithmeticError)
        assert len(consumer.assignment()) == PARTITIONS
        assert len(read(consumer, COUNT)) == COUNT


@pytest.mark.slow
@pytest.mark.spec("S1-18", "S3-26", "S3-31", "S3-53", "B.13.5", "B.15.8", "D-01", "D-17", "I-28", "U-12")
def test_a_poll_that_comes_too_late(kafka1: KafkaCluster, fresh_name: str) -> None:
    """Longer than max_poll_interval between polls: out of the group, its commit refused, back at the next poll."""
    kafka1.create_topic(fresh_name, PARTITIONS)
    produce_numbers(kafka1, fresh_name, range(COUNT), PARTITIONS)
    listener = Committer()
    settings = keys(kafka1, fresh_name, max_poll_interval_ms=1500)
    with Consumer(fresh_name, **settings, listener=listener) as consumer:
        wait_for_assignment(consumer, PARTITIONS)
        time.sleep(1.0)
        assert members(kafka1, fresh_name)[0] == "STABLE"
        consumer.poll(0)
        generation = consumer.group_metadata().generation_id
        time.sleep(2.5)
        assert members(kafka1, fresh_name) == ("EMPTY", {})
        with pytest.raises(CommitFailedError, match="max_poll_interval_ms"):
            consumer.commit()
        consumer.seek_to_beginning()
        wait_for_assignment(consumer)
        deadline = time.monotonic() + SECONDS
        while len(listener.calls) < 3 and time.monotonic() < deadline:
            consumer.poll(0.05)
        assert listener.calls == [("assigned", 4), ("lost", 4), ("assigned", 4)]
        assert consumer.group_metadata().generation_id > generation
        assert len(consumer.assignment()) == PARTITIONS
        consumer.seek_to_beginning()
        assert len(read(consumer, COUNT)) == COUNT
        consumer.commit()
    wait_until_committed(kafka1, fresh_name, all_at(fresh_name, COUNT // PARTITIONS))
