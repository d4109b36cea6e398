"""The records of `__transaction_state` as real brokers write them, read by the embedded cluster's code, and the same
transactions in both."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import Producer

from kclient import Consumer, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.embedded.log import Log
from kclient.embedded.transactions.records import read_log, to_record
from kclient.embedded.transactions.transaction import TransactionMetadata, TransactionState
from kclient.group.offsets_topic import offsets_topic_partition
from kclient.records.writer import NewRecord, build_batch
from localkafka import KafkaCluster
from tests.kafka.other_clients import SECONDS

TOPIC = "__transaction_state"
PATIENCE = 20.0


def transact(servers: str, topic: str, name: str) -> Producer:
    """A commit, an abort, and a transaction that stays open."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": name, "log_level": 0})
    producer.init_transactions(SECONDS)
    for end in (producer.commit_transaction, producer.abort_transaction, None):
        producer.begin_transaction()
        producer.produce(topic, value=b"x", partition=0)
        assert producer.flush(SECONDS) == 0
        if end is not None:
            end(SECONDS)
    return producer


def written(servers: str, name: str, states: int) -> list[NewRecord]:
    """The records of one transactional id, once there are so many."""
    with Consumer(
        bootstrap_servers=servers, auto_offset_reset="earliest", exclude_internal_topics=False
    ) as consumer:
        partitions = len(consumer.partitions_for(TOPIC))
        consumer.assign([TopicPartition(TOPIC, offsets_topic_partition(name, partitions))])
        found: list[NewRecord] = []
        deadline = time.monotonic() + PATIENCE
        while len(found) < states:
            assert time.monotonic() < deadline, found
            found += [
                NewRecord(record.key, record.value, record.timestamp)
                for record in consumer.poll(1.0)
                if record.key is not None and record.key[4:].decode() == name
            ]
        return found


def read_one(record: NewRecord) -> TransactionMetadata:
    log = Log()
    log.append(build_batch([record]), 0)
    (transaction,) = read_log(log).values()
    return transaction


def plain(transaction: TransactionMetadata, first_id: int) -> dict[str, Any]:
    """What does not depend on the clock, or on where a broker counts ids from."""
    return {
        "state": transaction.state,
        "producer_id": transaction.producer_id - first_id,
        "epoch": transaction.epoch,
        "previous_id": transaction.previous_id - first_id if transaction.previous_id >= 0 else None,
        "next_id": transaction.next_id,
        "timeout_ms": transaction.timeout_ms,
        "partitions": transaction.partitions,
        "started": transaction.started_ms >= 0,
        "version": transaction.version,
    }


@pytest.mark.parametrize(("cluster", "release", "layout"), [("kafka1", "4.3", 1), ("kafka28", "2.8", 0)])
def test_the_same_states_in_the_same_records(
    request: pytest.FixtureRequest, cluster: str, release: str, layout: int, fresh_name: str
) -> None:
    kafka: KafkaCluster = request.getfixturevalue(cluster)
    kafka.create_topic(fresh_name)
    rows: list[list[dict[str, Any]]] = []
    with EmbeddedCluster(release=release, topics={fresh_name: 1}) as embedded:
        for servers in (kafka.bootstrap_servers, embedded.bootstrap_servers):
            producer = transact(servers, fresh_name, fresh_name)
            records = written(servers, fresh_name, states=8)
            transactions = [read_one(record) for record in records]
            rows.append([plain(transaction, transactions[0].producer_id) for transaction in transactions])
            for record, transaction in zip(records, transactions, strict=True):
                assert to_record(transaction, layout)[:2] == record[:2]  # byte for byte
            producer.abort_transaction(SECONDS)
    real, ours = rows
    assert [row["state"] for row in real] == [
        *(
            TransactionState.EMPTY,
            TransactionState.ONGOING,
            TransactionState.PREPARE_COMMIT,
            TransactionState.COMPLETE_COMMIT,
        ),
        *(
            TransactionState.ONGOING,
            TransactionState.PREPARE_ABORT,
            TransactionState.COMPLETE_ABORT,
            TransactionState.ONGOING,
        ),
    ]
    assert ours == real
