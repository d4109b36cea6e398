"""How records get into a broker of any release: by confluent-kafka, or as bytes in a Produce of our choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from confluent_kafka import Producer

from kclient.embedded.old_formats import message_set
from kclient.generated.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kclient.protocol.errors import NONE
from kclient.records.writer import NewRecord, build_batch
from tests.brokers.conftest import Broker
from tests.conformance.raw_client import RawClient

SECONDS = 30
PRODUCE_OF_MAGIC = {0: 1, 1: 2, 2: 3}


def producer(broker: Broker, **settings: str | int) -> Producer:
    """confluent-kafka's producer; `linger_ms=5` stands for `linger.ms`."""
    dotted = {key.replace("_", "."): value for key, value in settings.items()}
    return Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5, "log_level": 2, **dotted})


def produce(
    broker: Broker, topic: str, rows: Sequence[NewRecord], partitions: int = 1, **settings: str | int
) -> None:
    """Write rows to the partitions in turn, through the other client."""
    source = producer(broker, **settings)
    for number, row in enumerate(rows):
        source.produce(
            topic,
            key=row.key,
            value=row.value,
            timestamp=row.timestamp,
            headers=list(row.headers) or None,
            partition=number % partitions,
        )
    assert source.flush(SECONDS) == 0


def numbered(count: int, timestamp: int, step: int = 0, size: int = 1) -> list[NewRecord]:
    """Rows whose values begin with their number, `step` milliseconds apart."""
    return [
        NewRecord(b"key-%d" % number, b"%d" % number + b" " * (size - 1), timestamp + step * number)
        for number in range(count)
    ]


def append(broker: Broker, topic: str, rows: Sequence[NewRecord], *, magic: int, codec: int = 0) -> int:
    """One batch, or in the old formats one message set, written by ourselves into partition 0: its first offset."""
    if magic == 2:
        data = build_batch(rows, compression=codec)
    else:
        placed = [row._replace(offset=number) for number, row in enumerate(rows)]
        data = b"".join(message_set(placed, magic, codec))
    return append_bytes(broker, topic, data, PRODUCE_OF_MAGIC[magic])


def append_bytes(broker: Broker, topic: str, data: bytes, version: int) -> int:
    """These bytes in a Produce of this version: the offset that the first of them got."""
    rows = [PartitionProduceData(index=0, records=data)]
    request: Any = ProduceRequest(
        acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=rows)]
    )
    host, port = broker.kafka.address(1)
    with RawClient(host, port) as raw_client:
        [row] = raw_client.ask(request, version).responses[0].partition_responses
    assert row.error_code == NONE, row
    return int(row.base_offset)
