"""Controls of topics and their records: created, produced, truncated, compacted, expired."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kclient.embedded import controller
from kclient.embedded.api_error import ApiError
from kclient.embedded.control import leaders
from kclient.embedded.log_cleaner import compact, expire, remove
from kclient.embedded.loop_thread import control
from kclient.embedded.partition import Topic
from kclient.embedded.partitioner import Value, batches, codec_of, spread, to_records
from kclient.embedded.replication import append_all
from kclient.embedded.state import ClusterState
from kclient.errors import ArgumentError, UsageError
from kclient.records.writer import NewRecord


class TopicControls:
    """Methods of `EmbeddedCluster`. `_turns` counts the records of each topic that were produced without a key."""

    state: ClusterState
    _turns: dict[str, int]

    @control
    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic; its default replication is the number of brokers that are up, at most 3."""
        create(self.state, name, partitions, replication, config)

    create = create_topic

    @control
    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records."""
        controller.delete_topic(self.state, find_topic(self.state, name))

    @control
    def recreate_topic(self, name: str) -> None:
        """Delete a topic and create it again, empty, with another id."""
        topic = find_topic(self.state, name)
        replicas = len(topic.partitions[0].replicas)
        controller.delete_topic(self.state, topic)
        controller.create_topic(self.state, name, len(topic.partitions), replicas, topic.config)

    @control
    def add_partitions(self, name: str, count: int) -> None:
        """Grow a topic to `count` partitions."""
        topic = find_topic(self.state, name)
        if count <= len(topic.partitions):
            raise ArgumentError(
                f"{name} has {len(topic.partitions)} partitions; it can only grow, not to {count}."
            )
        controller.add_partitions(self.state, topic, count, len(topic.partitions[0].replicas))

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
        """Append records and return partition and offset of each; a missing topic is created.

        A value is str, bytes, None, a pair of key and value, or a `NewRecord`. Without `partition` the key decides as
        in Java, and records without a key go to the partitions in turn. `codec` is none, gzip, snappy, lz4 or zstd;
        `timestamp_ms` is now unless given.
        """
        timestamp = self.state.clock.wall_ms() if timestamp_ms is None else timestamp_ms
        records, found = to_records(values, timestamp), _topic_for(self.state, topic)
        turn = self._turns.get(topic, 0)
        self._turns[topic] = turn + len(records)
        count = len(found.partitions)
        numbers = spread(records, count, turn) if partition is None else [partition] * len(records)
        return _append(self.state, topic, records, numbers, codec)

    @control
    def truncate(self, topic: str, partition: int, to: int) -> None:
        """Lose the batches that do not end below an offset, as an unclean election does, in a new leader epoch."""
        found = leaders.find(self.state, topic, partition)
        log = found.log
        if not log.start <= to <= log.end:
            raise ArgumentError(f"{found.tp} goes from {log.start} to {log.end}; it cannot be cut at {to}.")
        node = leaders.leader(found)
        found.ends[node] = to
        controller.set_leader(self.state, found, node)

    @control
    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Move the log start offset up to `before`."""
        leaders.delete_before(self.state, leaders.find(self.state, topic, partition), before)

    @control
    def compact(self, topic: str, partition: int) -> None:
        """Compact a log: of each key only the newest record stays; the offsets of all others are gaps."""
        compact(self.state, leaders.find(self.state, topic, partition))

    @control
    def remove_records(self, topic: str, partition: int, offsets: Collection[int]) -> None:
        """Remove records from the middle of a log; their offsets are gaps."""
        remove(self.state, leaders.find(self.state, topic, partition), offsets)

    @control
    def expire(self, topic: str) -> None:
        """Delete the records that the topic's retention no longer keeps, as brokers do every five minutes."""
        for partition in find_topic(self.state, topic).partitions:
            expire(self.state, partition)


def find_topic(state: ClusterState, name: str) -> Topic:
    """Return the topic of this name. Raise ArgumentError if there is none."""
    if name not in state.topics:
        raise ArgumentError(f"There is no topic {name!r}; there are {', '.join(state.topics) or 'none'}.")
    return state.topics[name]


def create(
    state: ClusterState,
    name: str,
    partitions: int,
    replication: int | None = None,
    config: Mapping[str, str] | None = None,
) -> Topic:
    """Create a topic with the checks of CreateTopics. Raise ArgumentError if one fails."""
    replicas = min(3, len(state.alive()) or len(state.brokers)) if replication is None else replication
    try:
        controller.check_name(state, name)
        checked = controller.check_config(state, config or {})
        count = controller.partition_count(state, partitions)
        return controller.create_topic(
            state, name, count, controller.replication_factor(state, replicas), checked
        )
    except ApiError as exc:
        raise ArgumentError(f"Topic {name!r} cannot be made: {exc.message}") from None


def _topic_for(state: ClusterState, name: str) -> Topic:
    """Return the topic; create it if `auto.create.topics.enable` allows. Raise ArgumentError otherwise."""
    settings = state.settings
    if name not in state.topics:
        if not settings.auto_create_topics_enable:
            raise ArgumentError(f"There is no topic {name!r}, and auto.create.topics.enable is False.")
        return create(state, name, settings.num_partitions)
    return state.topics[name]


def _append(
    state: ClusterState, topic: str, records: list[NewRecord], numbers: list[int], codec: str
) -> list[tuple[int, int]]:
    """Append each record to its partition, and return partition and offset of each."""
    next_offset: dict[int, int] = {}
    for number in sorted(set(numbers)):
        into = leaders.find(state, topic, number)
        broker = state.brokers[leaders.leader(into)]
        if not broker.running or broker.paused:
            raise UsageError(
                f"Broker {into.leader}, the leader of {into.tp}, is down or paused; `heal` the cluster."
            )
        next_offset[number] = into.log.end
        mine = (record for record, place in zip(records, numbers, strict=True) if place == number)
        append_all(state, into, batches(mine, codec_of(codec)))
    offsets = []
    for number in numbers:
        offsets.append((number, next_offset[number]))
        next_offset[number] += 1
    return offsets
