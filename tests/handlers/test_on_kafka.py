"""Two members with handlers on a real Kafka: a rebalance between them repeats no record and keeps the order."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from typing import Any

import pytest

from kclient import Consumer, RebalanceListener, handlers
from kclient.records.records import Record
from kclient.types import TopicPartition
from localkafka import KafkaCluster
from tests.kafka.other_clients import committed, producer

RECORDS, KEYS, PARTITIONS = 300, 30, 4


class Calls(RebalanceListener):
    """Notes the thread of each call."""

    def __init__(self) -> None:
        self.revoked: list[tuple[int, str]] = []

    def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.revoked.append((len(partitions), threading.current_thread().name))


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("group_protocol", ["classic", "consumer"])
def test_a_member_that_joins_meanwhile(kafka1: KafkaCluster, fresh_name: str, group_protocol: str) -> None:
    kafka1.create_topic(fresh_name, PARTITIONS)
    source = producer(kafka1)
    for number in range(RECORDS):
        source.produce(fresh_name, key=f"key {number % KEYS}", value=str(number))
    source.flush()
    handled: dict[Any, list[int]] = defaultdict(list)
    settings: dict[str, Any] = {
        "bootstrap_servers": kafka1.bootstrap_servers,
        "group_id": fresh_name,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "group_protocol": group_protocol,
        "partition_assignment_strategy": ("cooperative-sticky",) if group_protocol == "classic" else None,
    }

    def handle(record: Record[Any, Any]) -> None:
        time.sleep(0.04)
        handled[record.key].append(int(record.value))

    def member(consumer: Consumer) -> threading.Thread:
        def work() -> None:
            with consumer:
                handlers.run(consumer, handle, concurrency=2, max_in_flight=20, commit_interval=0.2)

        thread = threading.Thread(target=work, name=f"member {len(members)}")
        thread.start()
        return thread

    calls = Calls()
    given = {name: value for name, value in settings.items() if value is not None}
    consumers = [Consumer(fresh_name, listener=calls, **given), Consumer(fresh_name, **given)]
    members: list[threading.Thread] = []
    members.append(member(consumers[0]))
    while len(handled) < KEYS // 3:
        time.sleep(0.05)
    members.append(member(consumers[1]))
    while sum(committed(kafka1, fresh_name).values()) < RECORDS:  # as another client sees them
        time.sleep(0.3)
    for consumer, thread in zip(consumers, members, strict=True):
        consumer.wakeup()
        thread.join(30.0)
    assert sum(map(len, handled.values())) == RECORDS
    assert all(numbers == sorted(numbers) for numbers in handled.values())
    assert calls.revoked[0] == (PARTITIONS // 2, "member 0")
