"""Controls of replication: leaders, followers, replica lag, high watermarks."""

from __future__ import annotations

from collections.abc import Mapping

from kclient.embedded import controller
from kclient.embedded.broker import EmbeddedBroker
from kclient.embedded.control import brokers
from kclient.embedded.log_cleaner import advance_start
from kclient.embedded.loop_thread import control
from kclient.embedded.partition import NO_LEADER, Partition
from kclient.embedded.state import BrokerState, ClusterState
from kclient.errors import ArgumentError, UsageError
from kclient.types import TopicPartition


class LeaderControls:
    """Methods of `EmbeddedCluster`."""

    state: ClusterState
    _brokers: Mapping[int, EmbeddedBroker]

    @control
    def leader_of(self, topic: str, partition: int) -> int:
        """Return the broker that leads a partition. Raise UsageError if it has no leader."""
        return leader(find(self.state, topic, partition))

    @control
    def kill_leader(self, topic: str, partition: int) -> int:
        """Kill the broker that leads a partition, and return its id."""
        node = leader(find(self.state, topic, partition))
        brokers.kill(self._brokers[node])
        return node

    @control
    def move_leader(self, topic: str, partition: int, node: int | None = None) -> None:
        """Make another replica the leader, in a new epoch; without `node` the next one that is in sync."""
        move(self.state, find(self.state, topic, partition), node)

    set_leader = move_leader

    @control
    def set_follower(self, topic: str, partition: int, node: int | None) -> None:
        """Send consumers to this follower (KIP-392), whatever their rack; None: to the leader again."""
        found = find(self.state, topic, partition)
        if node is not None:
            _check_replica(found, node)
        found.read_from = node
        found.changed.notify()

    @control
    def prefer_leaders(self) -> None:
        """Make the first replica of every partition its leader, where that one is up and in sync."""
        for partition in self.state.partitions():
            first = partition.replicas[0]
            eligible = first in partition.isr and _running(self.state.brokers[first])
            if first != partition.leader and eligible:
                controller.set_leader(self.state, partition, first)

    @control
    def lag(self, topic: str, partition: int, node: int, end: int | None = None) -> None:
        """Stop the replication to a follower, its log ending at `end` (default: where it is).

        While it counts as in sync (`replica.lag.time.max.ms`) the high watermark cannot pass it. Made leader, it loses
        the records that it does not have.
        """
        _lag(self.state, find(self.state, topic, partition), node, end)

    @control
    def catch_up(self, topic: str, partition: int) -> None:
        """Bring all followers that are up to the end of the log, and in sync."""
        found = find(self.state, topic, partition)
        replicas = (self.state.brokers[node] for node in found.replicas)
        controller.follow(found, [broker.node_id for broker in replicas if broker.up and not broker.paused])

    @control
    def set_watermarks(
        self, topic: str, partition: int, low: int | None = None, high: int | None = None
    ) -> None:
        """Move the log start offset up to `low`, and hold the followers, so the high watermark, at `high`."""
        found = find(self.state, topic, partition)
        if high is not None:
            _hold_high_watermark(self.state, found, high)
        if low is not None:
            delete_before(self.state, found, low)


def find(state: ClusterState, topic: str, partition: int) -> Partition:
    """Return the partition. Raise ArgumentError if there is none."""
    found = state.partition(TopicPartition(topic, partition))
    if found is None:
        known = ", ".join(f"{one.name} ({len(one.partitions)})" for one in state.topics.values())
        raise ArgumentError(f"There is no partition {topic}-{partition}; there are topics {known or 'none'}.")
    return found


def leader(partition: Partition) -> int:
    """Return the broker that leads a partition. Raise UsageError if it has no leader."""
    if partition.leader == NO_LEADER:
        raise UsageError(f"{partition.tp} has no leader; restart one of the brokers {partition.replicas}.")
    return partition.leader


def move(state: ClusterState, partition: Partition, node: int | None) -> None:
    """Make a replica the leader, in a new epoch; None: the next in-sync one. Raise ArgumentError, UsageError."""
    if node is None:
        node = _other(state, partition)
    _check_replica(partition, node)
    if not _running(brokers.find(state.brokers, node)):
        raise UsageError(f"Broker {node} is down; restart it before it leads {partition.tp}.")
    controller.set_leader(state, partition, node)


def delete_before(state: ClusterState, partition: Partition, offset: int) -> None:
    """Move the log start offset up. Raise ArgumentError for an offset beyond the high watermark."""
    if not 0 <= offset <= partition.high_watermark:
        raise ArgumentError(
            f"{partition.tp} can lose records before {partition.high_watermark} at most, not {offset}."
        )
    advance_start(state, partition, offset)


def _other(state: ClusterState, partition: Partition) -> int:
    for node in partition.replicas:
        if node != partition.leader and node in partition.isr and _running(state.brokers[node]):
            return node
    raise UsageError(f"{partition.tp} has no other in-sync replica that is up; in sync are {partition.isr}.")


def _check_replica(partition: Partition, node: int) -> None:
    if node not in partition.replicas:
        raise ArgumentError(
            f"Broker {node} holds no replica of {partition.tp}; brokers {partition.replicas} do."
        )


def _running(broker: BrokerState) -> bool:
    return broker.up and broker.running


def _lag(state: ClusterState, partition: Partition, node: int, end: int | None) -> None:
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
    max_lag = state.settings.replica_lag_time_max_ms / 1000
    state.clock.call_later(max_lag, lambda: _shrink_isr(partition, node, end))


def _shrink_isr(partition: Partition, node: int, end: int) -> None:
    """Remove a follower from the in-sync replicas if it still lags at `end`."""
    lags = partition.ends.get(node) == end < partition.log.end
    if lags and node in partition.isr and node != partition.leader:
        partition.isr.remove(node)
        partition.changed.notify()


def _hold_high_watermark(state: ClusterState, partition: Partition, offset: int) -> None:
    followers = [node for node in partition.isr if node != partition.leader]
    if not followers:
        raise UsageError(
            f"{partition.tp} has no follower in sync, so its high watermark is its end; give it more replicas."
        )
    for node in followers:
        _lag(state, partition, node, offset)
