"""Who leads a partition, who coordinates a group, and how far the replicas are."""

from __future__ import annotations

from kclient.embedded import controller
from kclient.embedded.broker import Broker
from kclient.embedded.control import brokers
from kclient.embedded.state import NO_LEADER, OFFSETS_TOPIC, ClusterState, Partition
from kclient.errors import ArgumentError, UsageError
from kclient.group.offsets_topic import offsets_topic_partition
from kclient.types import TopicPartition


def find(state: ClusterState, topic: str, partition: int) -> Partition:
    """The partition. Raises ArgumentError."""
    found = state.partition(TopicPartition(topic, partition))
    if found is None:
        known = ", ".join(f"{one.name} ({len(one.partitions)})" for one in state.topics.values())
        raise ArgumentError(f"There is no partition {topic}-{partition}; there are topics {known or 'none'}.")
    return found


def of_group(state: ClusterState, group: str) -> Partition:
    """The partition that holds a group; its leader coordinates it. Raises UsageError while it cannot be made."""
    if controller.create_internal_topic(state, OFFSETS_TOPIC) is None:
        raise UsageError(f"Too few brokers are up to make {OFFSETS_TOPIC}.")
    number = offsets_topic_partition(group, state.settings.offsets_topic_num_partitions)
    return find(state, OFFSETS_TOPIC, number)


def leader(partition: Partition) -> int:
    """The broker that leads it. Raises UsageError where none does."""
    if partition.leader == NO_LEADER:
        raise UsageError(f"{partition.tp} has no leader; restart one of the brokers {partition.replicas}.")
    return partition.leader


def move(state: ClusterState, partition: Partition, node: int | None) -> None:
    """Lead it from there, in a new epoch; None for the next in-sync replica. Raises ArgumentError, UsageError."""
    if node is None:
        node = _other(state, partition)
    if node not in partition.replicas:
        raise ArgumentError(
            f"Broker {node} holds no replica of {partition.tp}; brokers {partition.replicas} do."
        )
    if not _able(brokers.find(state, node)):
        raise UsageError(f"Broker {node} is down; restart it before it leads {partition.tp}.")
    controller.set_leader(state, partition, node)


def _other(state: ClusterState, partition: Partition) -> int:
    for node in partition.replicas:
        if node != partition.leader and node in partition.isr and _able(state.brokers[node]):
            return node
    raise UsageError(f"{partition.tp} has no other in-sync replica that is up; in sync are {partition.isr}.")


def _able(broker: Broker) -> bool:
    return broker.up and broker.running


def prefer(state: ClusterState) -> None:
    """Give every partition its first replica as leader, where that one is up and in sync."""
    for partition in state.partitions():
        first = partition.replicas[0]
        if first != partition.leader and first in partition.isr and _able(state.brokers[first]):
            controller.set_leader(state, partition, first)


def set_follower(state: ClusterState, partition: Partition, node: int | None) -> None:
    """The follower that consumers are sent to. Raises ArgumentError for a broker without a replica."""
    if node is not None and node not in partition.replicas:
        raise ArgumentError(
            f"Broker {node} holds no replica of {partition.tp}; brokers {partition.replicas} do."
        )
    partition.read_from = node
    partition.changed.notify()


def lag(state: ClusterState, partition: Partition, node: int, end: int | None) -> None:
    """Let a follower replicate nothing any more, its log ending at `end`; in time it is out of sync.

    Raises ArgumentError for a node that does not follow and for an end that is not in the log.
    """
    end = partition.log.end if end is None else end
    if node not in partition.replicas or node == partition.leader:
        raise ArgumentError(
            f"Broker {node} does not follow {partition.tp}; brokers {partition.replicas} "
            f"hold it and {partition.leader} leads."
        )
    if not partition.log.start <= end <= partition.log.end:
        raise ArgumentError(
            f"{partition.tp} goes from {partition.log.start} to {partition.log.end}, not to {end}."
        )
    partition.ends[node] = end
    partition.changed.notify()
    patience = state.settings.replica_lag_time_max_ms / 1000
    state.clock.call_later(patience, lambda: _out_of_sync(partition, node, end))


def _out_of_sync(partition: Partition, node: int, end: int) -> None:
    if (
        partition.ends.get(node) == end < partition.log.end
        and node in partition.isr
        and node != partition.leader
    ):
        partition.isr.remove(node)
        partition.changed.notify()


def catch_up(state: ClusterState, partition: Partition) -> None:
    """Let every follower that is up be in step with the leader again."""
    brokers = (state.brokers[node] for node in partition.replicas)
    controller.follow(partition, [broker.node_id for broker in brokers if broker.up and not broker.paused])


def set_high_watermark(state: ClusterState, partition: Partition, offset: int) -> None:
    """Hold all followers at an offset: consumers see nothing from there on. Raises ArgumentError, UsageError."""
    followers = [node for node in partition.isr if node != partition.leader]
    if not followers:
        raise UsageError(
            f"{partition.tp} has no follower in sync, so its high watermark is its end; give it more replicas."
        )
    for node in followers:
        lag(state, partition, node, offset)
