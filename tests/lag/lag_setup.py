"""What the tests of lag bring about: commits without members, transactions, a topic deleted while its offsets stay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Producer

from kclient import Consumer, OffsetAndMetadata, TopicPartition, group
from kclient.embedded import EmbeddedCluster
from kclient.lag.report import GroupLag

SECONDS = 20


def commit(servers: str, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Store offsets without being a member."""
    with Consumer(bootstrap_servers=servers, group_id=group_id, enable_auto_commit=False) as consumer:
        consumer.commit({tp: OffsetAndMetadata(offset) for tp, offset in offsets.items()})


def transaction(servers: str, tp: TopicPartition, count: int, name: str) -> Producer:
    """A producer whose transaction is open, its records stored."""
    settings = {"bootstrap.servers": servers, "transactional.id": name, "linger.ms": 0, "log_level": 0}
    producer = Producer(settings)
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    for _ in range(count):
        producer.produce(tp.topic, value=b"x", partition=tp.partition)
    assert producer.flush(SECONDS) == 0
    return producer


def delete_but_keep_offsets(cluster: EmbeddedCluster, topic: str, *groups: str) -> None:
    """Delete a topic while the coordinator cannot write that its offsets are gone, for lack of replicas in sync.

    The cluster has three brokers and min.insync.replicas 2.
    """
    for group_id in groups:
        cluster.move_coordinator(group_id, 1)
    cluster.kill(2)
    cluster.kill(3)
    cluster.delete_topic(topic)
    cluster.heal()


def measured(cluster: EmbeddedCluster, group_id: str, **more: Any) -> GroupLag:
    """The group's lag, by the blocking call."""
    return group.lag(group_id, bootstrap_servers=cluster.bootstrap_servers, **more)


def rows(report: GroupLag) -> dict[tuple[str, int], tuple[int | None, int | None, int | None]]:
    """Topic and partition → committed offset, end and lag."""
    return {
        tuple(one.partition): (None if one.committed is None else one.committed.offset, one.end, one.lag)
        for one in report.partitions
    }
