"""Every broker is gone: polls stay calm, calls end in time, and close() does not wait for what cannot come."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

import pytest

from kclient import TopicPartition
from kclient.errors import KclientError
from localkafka import KafkaCluster
from tests.kafka.blocking_consumers import FACES, read
from tests.kafka.other_clients import produce_numbers
from tests.realtime import within

CLOSE_SECONDS = 2.0


def close_in_time(consumer: Any) -> None:
    began = time.monotonic()
    consumer.close(timeout=CLOSE_SECONDS)
    assert time.monotonic() - began < CLOSE_SECONDS + 1


@pytest.mark.slow
@pytest.mark.spec("B.18", "D-13", "I-15", "I-23", "I-24", "U-10")
def test_with_every_broker_dead(kafka1: KafkaCluster, fresh_name: str) -> None:
    kafka1.create_topic(fresh_name)
    produce_numbers(kafka1, fresh_name, range(10), 1)
    with ExitStack() as stack:
        consumers = []
        for name, face in FACES.items():
            keys = {"group_id": f"{fresh_name}-{name}", "auto_offset_reset": "earliest"}
            consumer = face(fresh_name, bootstrap_servers=kafka1.bootstrap_servers, **keys)
            consumers.append(stack.enter_context(consumer))
        for consumer in consumers:
            assert len(read(consumer, 10)) == 10
        kafka1.kill(1)
        for consumer in consumers:
            cpu = time.process_time()
            for _ in range(10):
                assert len(consumer.poll(0.1)) == 0
            assert time.process_time() - cpu < 0.5
            with within(1.5), pytest.raises(KclientError):
                consumer.end_offsets([TopicPartition(fresh_name, 0)], timeout=0.5)
            close_in_time(consumer)


@pytest.mark.slow
@pytest.mark.spec("B.4.8", "D-10", "I-06", "I-22", "I-31")
def test_a_broker_that_comes_back_finds_its_member(kafka1: KafkaCluster, fresh_name: str) -> None:
    """Restarted within the session timeout: the member goes on in its generation, at its position."""
    kafka1.create_topic(fresh_name)
    produce_numbers(kafka1, fresh_name, range(10), 1)
    keys = {"group_id": fresh_name, "auto_offset_reset": "earliest", "session_timeout_ms": 60_000}
    with FACES["Consumer"](fresh_name, bootstrap_servers=kafka1.bootstrap_servers, **keys) as consumer:
        assert len(read(consumer, 10)) == 10
        generation = consumer.group_metadata()
        kafka1.restart(1)
        produce_numbers(kafka1, fresh_name, range(10, 20), 1)
        assert [int(record.value) for record in read(consumer, 10)] == list(range(10, 20))
        assert consumer.group_metadata() == generation
        consumer.commit()
        assert consumer.group_metadata() == generation
