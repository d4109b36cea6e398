"""A damaged disk: one byte of a batch is turned over in the broker's own file, and the broker hands it out as it is."""

from __future__ import annotations

from typing import Any

import pytest

from kclient import Consumer, TopicPartition
from kclient.errors import CorruptBatchError
from localkafka import KafkaCluster
from tests.kafka.blocking_consumers import read
from tests.kafka.other_clients import producer

BATCHES, EACH = 3, 5
SECONDS = 20


def damaged_topic(kafka: KafkaCluster, name: str) -> TopicPartition:
    """Three batches of five records, the second of which holds a value that was never written."""
    kafka.create_topic(name)
    source = producer(kafka, linger_ms=500)
    for batch in range(BATCHES):
        for number in range(EACH):
            source.produce(name, value=b"value-%d-%d" % (batch, number), partition=0)
        assert source.flush(SECONDS) == 0
    (segment,) = kafka.segments(kafka.leader_of(name, 0), name, 0)
    with segment.open("r+b") as file:
        at = file.read().index(b"value-1-2")
        file.seek(at)
        file.write(b"VALUE")
    return TopicPartition(name, 0)


def reader(kafka: KafkaCluster, tp: TopicPartition, **settings: Any) -> Consumer:
    keys = {"bootstrap_servers": kafka.bootstrap_servers, "auto_offset_reset": "earliest", **settings}
    consumer = Consumer(**keys)
    consumer.assign([tp])
    return consumer


@pytest.mark.spec("S2-06", "S2-48", "B.10.12", "B.11.7", "D-23")
def test_a_damaged_batch_is_reported_until_the_user_goes_past_it(
    kafka1: KafkaCluster, fresh_name: str
) -> None:
    tp = damaged_topic(kafka1, fresh_name)
    with reader(kafka1, tp) as consumer:
        assert [record.offset for record in read(consumer, EACH)] == list(range(5))
        for _ in range(2):
            with pytest.raises(CorruptBatchError) as caught:
                read(consumer, 1)
            found = caught.value
            assert (found.topic, found.partition, found.base_offset) == (fresh_name, 0, 5)
            assert consumer.position(tp) == 5
        assert found.next_offset == 10
        consumer.seek(tp, 10)
        assert [record.value for record in read(consumer, EACH)] == [b"value-2-%d" % n for n in range(EACH)]
    with reader(kafka1, tp, check_crcs=False) as consumer:
        values = [record.value for record in read(consumer, BATCHES * EACH)]
        assert values[5:10] == [b"value-1-0", b"value-1-1", b"VALUE-1-2", b"value-1-3", b"value-1-4"]
