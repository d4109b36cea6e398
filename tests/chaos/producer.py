"""The producer of a cycle: idempotent, with acks=all; it keeps the acknowledged records.

A value is `partition:number:crc32`, so a record that is cut, mixed up or invented is seen.
"""

from __future__ import annotations

import threading
import zlib
from typing import Any, Self

from confluent_kafka import Producer

from localkafka import KafkaCluster

PAUSE_SECONDS = 0.004
FLUSH_SECONDS = 60


class Source(threading.Thread):
    """Writes to all partitions in turn until the context is left. `acknowledged`: (partition, offset) → value."""

    def __init__(self, kafka: KafkaCluster, topic: str, partitions: int) -> None:
        super().__init__(daemon=True)
        servers = {
            "bootstrap.servers": kafka.bootstrap_servers,
            "log_level": 0,
        }  # brokers that are gone are no news
        self._producer = Producer({**servers, "acks": "all", "enable.idempotence": True, "linger.ms": 5})
        self._topic, self._partitions = topic, partitions
        self._stopping = threading.Event()
        self.acknowledged: dict[tuple[int, int], str] = {}
        self.refused: list[str] = []

    def run(self) -> None:
        number = 0
        while not self._stopping.wait(PAUSE_SECONDS):
            partition = number % self._partitions
            text = value_of(partition, number)
            self._producer.produce(self._topic, text.encode(), partition=partition, on_delivery=self._told)
            self._producer.poll(0)
            number += 1

    def _told(self, error: Any, message: Any) -> None:
        if error is not None:
            self.refused.append(str(error))
        else:
            self.acknowledged[message.partition(), message.offset()] = message.value().decode()

    @property
    def ends(self) -> dict[int, int]:
        """The end of each partition, so far."""
        ends = dict.fromkeys(range(self._partitions), 0)
        for partition, offset in list(self.acknowledged):
            ends[partition] = max(ends[partition], offset + 1)
        return ends

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self.join(FLUSH_SECONDS)
        self._producer.flush(FLUSH_SECONDS)


def value_of(partition: int, number: int) -> str:
    """What the record with this number holds."""
    text = f"{partition}:{number}"
    return f"{text}:{zlib.crc32(text.encode())}"
