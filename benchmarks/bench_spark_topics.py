"""The topics that the Spark benchmark reads: so many records, keys of 8 bytes, values of text that varies."""

from __future__ import annotations

import json

import attrs
import confluent_kafka

from benchmarks.bench_spark_synthetic import value
from localkafka import KafkaCluster

PARTITIONS = 4
BATCH_BYTES = 1_000_000


@attrs.frozen
class Topic:
    """One topic: its codec, the size of its values, and its share of the records that were asked for."""

    name: str
    codec: str
    value_bytes: int
    share: float = 1.0

    @property
    def kafka_name(self) -> str:
        """What it is called in Kafka."""
        return f"bench-{self.codec}-{self.value_bytes}"

    def offsets(self, offset: int) -> str:
        """The same one in every partition, as Spark wants offsets."""
        return json.dumps({self.kafka_name: {str(number): offset for number in range(PARTITIONS)}})

    def rows(self, records: int) -> int:
        """How many it gets, the same number in every partition."""
        return int(records * self.share) // PARTITIONS * PARTITIONS


TOPICS = (
    Topic("100 B", "none", 100),
    Topic("100 B lz4", "lz4", 100),
    Topic("1 KB", "none", 1_000, share=0.2),
)


def fill(kafka: KafkaCluster, topic: Topic, records: int) -> None:
    """Write them."""
    name = topic.kafka_name
    kafka.create_topic(name, partitions=PARTITIONS, retention_ms=-1)
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "compression.codec": topic.codec,
            "linger.ms": 200,
            "batch.size": BATCH_BYTES,
            "batch.num.messages": 100_000,
            "queue.buffering.max.messages": 2_000_000,
            "queue.buffering.max.kbytes": 1_000_000,
        }
    )
    for number in range(topic.rows(records)):
        while True:
            try:
                producer.produce(
                    name, value(number, topic.value_bytes), b"%08d" % number, number % PARTITIONS
                )
                break
            except BufferError:
                producer.poll(0.1)
        if number % 10_000 == 0:
            producer.poll(0)
    if left := producer.flush(120):
        raise SystemExit(f"{left} records could not be written")
