"""Everything that a test can make happen to a cluster, as methods: `EmbeddedCluster` has them all.

They may be called from any thread, also from the cluster's own loop, where `restart` and `heal`, which take time, give
back a task. The work is done by the modules of `kclient.embedded.control`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from kclient.embedded import controller
from kclient.embedded.control import brokers, groups, leaders, logs
from kclient.embedded.loop_thread import control
from kclient.embedded.partitioner import Value, to_records
from kclient.embedded.state import ClusterState, Partition
from kclient.errors import ArgumentError
from kclient.types import TopicPartition

PLAINTEXT = "PLAINTEXT"


class Controls:
    """See the module. Faults by API are those of `FaultControls`."""

    state: ClusterState
    _turns: dict[str, int]

    # --- topics and their records

    @control
    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Make a topic, with as many replicas as brokers are up (at most 3) unless said otherwise."""
        self._create(name, partitions, replication, config)

    create = create_topic

    def _create(
        self,
        name: str,
        partitions: int,
        replication: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        logs.create(self.state, name, partitions, replication, config or {})

    @control
    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records."""
        controller.delete_topic(self.state, logs.find_topic(self.state, name))

    @control
    def recreate_topic(self, name: str) -> None:
        """Delete a topic and make it again, empty, under another id."""
        logs.recreate(self.state, name)

    @control
    def add_partitions(self, name: str, count: int) -> None:
        """Grow a topic to `count` partitions."""
        logs.add_partitions(self.state, name, count)

    @control
    def produce(
        self,
        topic: str,
        values: Iterable[Value],
        *,
        partition: int | None = None,
        codec: str = "none",
        timestamp_ms: int | None = None,
    ) -> list[tuple[int, int]]:
        """Append records, to a topic that is made if it is missing; gives back partition and offset of each.

        A value is str, bytes, None, a pair of key and value, or a `NewRecord`. Without `partition` a key decides as in
        Java, and records without one take turns. `codec` is none, gzip, snappy, lz4 or zstd; `timestamp_ms` is now
        unless given.
        """
        timestamp = self.state.clock.wall_ms() if timestamp_ms is None else timestamp_ms
        records, found = to_records(values, timestamp), logs.topic_for(self.state, topic)
        turn = self._turns.get(topic, 0)
        self._turns[topic] = turn + len(records)
        return logs.produce(self.state, found, records, partition=partition, codec=codec, turn=turn)

    @control
    def truncate(self, topic: str, partition: int, to: int) -> None:
        """Lose the batches that do not end below an offset, as an unclean election does, in a new leader epoch."""
        logs.truncate(self.state, self._partition(topic, partition), to)

    @control
    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Move the log start offset up to `before`."""
        logs.delete_records(self.state, self._partition(topic, partition), before)

    @control
    def compact(self, topic: str, partition: int) -> None:
        """Clean a log: of each key only the newest record stays; the offsets of all others are gaps."""
        from kclient.embedded.log_cleaner import compact

        compact(self.state, self._partition(topic, partition))

    @control
    def remove_records(self, topic: str, partition: int, offsets: Collection[int]) -> None:
        """Take records out of the middle of a log; their offsets are gaps."""
        from kclient.embedded.log_cleaner import remove

        remove(self.state, self._partition(topic, partition), offsets)

    @control
    def expire(self, topic: str) -> None:
        """Delete the records that the topic's retention no longer keeps, as brokers do every five minutes."""
        logs.expire_all(self.state, topic)

    # --- brokers

    @control
    def kill(self, node: int, failover_ms: int = 0) -> None:
        """End a broker as SIGKILL does, if it runs; after `failover_ms` the others lead what it led."""
        brokers.kill(self.state, node, failover_ms)

    @control
    def shutdown(self, node: int) -> None:
        """End a broker as SIGTERM does: it hands over what it leads, then closes its connections."""
        brokers.shut_down(self.state, node)

    @control
    def restart(self, node: int, port: int | None = None) -> Any:
        """Start a broker again, on its old port or another one (0: any); one that runs is killed first."""
        return brokers.restart(self.state, node, port)

    @control
    def pause(self, node: int) -> None:
        """Let a broker neither do nor say anything until `resume`, as SIGSTOP does; its connections stay.

        After `broker.session.timeout.ms` of the cluster's time the others lead its partitions.
        """
        brokers.pause(self.state, node)

    @control
    def resume(self, node: int) -> None:
        """Let a paused broker go on, and lead again what was taken from it."""
        brokers.resume(self.state, node)

    @control
    def heal(self) -> Any:
        """Start and resume every broker, forget all faults and denials."""
        return brokers.heal(self.state)

    @control
    def advertise(self, node: int, host: str, port: int, listener: str = PLAINTEXT) -> None:
        """Tell clients this address of a broker from now on, wherever it listens."""
        found = brokers.find(self.state, node).listener(listener)
        if found is None:
            raise ArgumentError(f"Broker {node} has no listener {listener!r}.")
        found.advertised = (host, brokers.checked_port(port))

    # --- leaders, replicas and coordinators

    @control
    def leader_of(self, topic: str, partition: int) -> int:
        """The broker that leads a partition. Raises UsageError where none does."""
        return leaders.leader(self._partition(topic, partition))

    @control
    def prepare_groups(self) -> None:
        """Make `__consumer_offsets` now, as where groups have been before; else the first group makes it, and waits.

        It needs up to three brokers that are up, so a test that kills one before its first group wants this.
        """
        leaders.of_group(self.state, "")

    @control
    def coordinator_of(self, group: str) -> int:
        """The broker that coordinates a group."""
        return leaders.leader(leaders.of_group(self.state, group))

    @control
    def committed(self, group: str) -> dict[TopicPartition, int]:
        """The committed offsets of a group, as its coordinator knows them. Raises UsageError while it has none."""
        return groups.committed(self.state, group)

    @control
    def rebalance(self, group: str | None = None) -> None:
        """Begin a rebalance of a group, or of every group that has members."""
        groups.rebalance(self.state, group)

    @control
    def expire_member(self, group: str, member_id: str) -> None:
        """End the session of a member of a group, as if nothing had been heard of it."""
        groups.expire_member(self.state, group, member_id)

    @control
    def kill_leader(self, topic: str, partition: int) -> int:
        """Kill the broker that leads a partition, and give back which it was."""
        node = leaders.leader(self._partition(topic, partition))
        brokers.kill(self.state, node, 0)
        return node

    @control
    def move_leader(self, topic: str, partition: int, node: int | None = None) -> None:
        """Make another replica the leader, in a new epoch; without `node` the next one that is in sync."""
        leaders.move(self.state, self._partition(topic, partition), node)

    set_leader = move_leader

    @control
    def move_coordinator(self, group: str, node: int | None = None) -> None:
        """Let another broker coordinate a group; it reads the group's partition of `__consumer_offsets` first."""
        leaders.move(self.state, leaders.of_group(self.state, group), node)

    set_coordinator = move_coordinator

    @control
    def delay_markers(self, ms: float) -> None:
        """Write the markers of a transaction so much later than its end is answered; until then nobody reads it."""
        self.state.marker_delay = ms / 1000

    @control
    def set_follower(self, topic: str, partition: int, node: int | None) -> None:
        """Send consumers to this follower (KIP-392), whatever their rack; None: to the leader again."""
        leaders.set_follower(self.state, self._partition(topic, partition), node)

    @control
    def prefer_leaders(self) -> None:
        """Give every partition its first replica as leader, where that is up and in sync."""
        leaders.prefer(self.state)

    @control
    def lag(self, topic: str, partition: int, node: int, end: int | None = None) -> None:
        """Let a follower replicate no more, its log ending at `end` (default: where it is).

        While it counts as in sync (`replica.lag.time.max.ms`) the high watermark cannot pass it. Made leader, it loses
        what it does not have.
        """
        leaders.lag(self.state, self._partition(topic, partition), node, end)

    @control
    def catch_up(self, topic: str, partition: int) -> None:
        """Bring all followers that are up in step and in sync."""
        leaders.catch_up(self.state, self._partition(topic, partition))

    @control
    def set_watermarks(
        self, topic: str, partition: int, low: int | None = None, high: int | None = None
    ) -> None:
        """Move the log start offset up to `low`, and hold the followers, so the high watermark, at `high`."""
        found = self._partition(topic, partition)
        if high is not None:
            leaders.set_high_watermark(self.state, found, high)
        if low is not None:
            logs.delete_records(self.state, found, low)

    def _partition(self, topic: str, partition: int) -> Partition:
        return leaders.find(self.state, topic, partition)

    # --- authorization

    @control
    def deny(self, principal: str, operation: str, resource: str) -> None:
        """Refuse from now on, say, ("User:alice", "READ", "Topic:orders"); "*" stands for anything."""
        self.state.acl.deny(principal, operation, resource)

    @control
    def allow(self, principal: str, operation: str, resource: str) -> None:
        """Take a denial back."""
        self.state.acl.allow(principal, operation, resource)
