"""Transactions, since 0.11: committed, aborted, interleaved and open, as both isolation levels see them."""

from __future__ import annotations

import pytest

from kclient import Consumer, TopicPartition
from tests.brokers.conftest import Broker
from tests.kafka.blocking_consumers import read, read_nothing
from tests.kafka.test_transactions import ALL, COMMITTED, OPEN, numbers, produce_transactions

pytestmark = pytest.mark.since("0.11.0")


@pytest.mark.spec("S0-51", "S2-41", "B.12", "D-51", "D-52")
def test_both_isolation_levels(broker: Broker, fresh_name: str) -> None:
    broker.kafka.create_topic(fresh_name)
    open_producer = produce_transactions(broker.kafka, fresh_name)
    tp = TopicPartition(fresh_name, 0)
    keys = {
        "bootstrap_servers": broker.bootstrap_servers,
        "auto_offset_reset": "earliest",
        "fetch_max_wait_ms": 100,
    }
    with Consumer(**keys) as consumer:
        consumer.assign([tp])
        records = read(consumer, len(ALL))
        assert numbers(records) == list(ALL)
        assert consumer.end_offsets([tp]) == {tp: records[-1].offset + 1}
    with Consumer(**keys, isolation_level="read_committed") as consumer:
        consumer.assign([tp])
        assert numbers(read(consumer, len(COMMITTED))) == COMMITTED
        assert consumer.position(tp) == records[OPEN[0]].offset == consumer.end_offsets([tp])[tp]
        assert consumer.current_lag(tp) == 0
        read_nothing(consumer, 0.3)
        open_producer.commit_transaction()
        assert numbers(read(consumer, len(OPEN))) == list(OPEN)
