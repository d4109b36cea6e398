"""Records come, and are lost, deleted or compacted away."""

from __future__ import annotations

from collections.abc import Mapping

from kclient.embedded import controller
from kclient.embedded.api_error import ApiError
from kclient.embedded.control import leaders
from kclient.embedded.log_cleaner import advance_start, expire
from kclient.embedded.partitioner import batches, codec_of, spread
from kclient.embedded.replication import append_all
from kclient.embedded.state import ClusterState, Partition, Topic
from kclient.errors import ArgumentError, UsageError
from kclient.records.writer import NewRecord


def create(
    state: ClusterState, name: str, partitions: int, replication: int | None, config: Mapping[str, str]
) -> Topic:
    """Make a topic that a client could make, with at most 3 replicas unless said otherwise. Raises ArgumentError."""
    replicas = min(3, len(state.alive()) or len(state.brokers)) if replication is None else replication
    try:
        controller.check_name(state, name)
        checked = controller.check_config(state, config)
        count = controller.partition_count(state, partitions)
        return controller.create_topic(
            state, name, count, controller.replication_factor(state, replicas), checked
        )
    except ApiError as exc:
        raise ArgumentError(f"Topic {name!r} cannot be made: {exc.message}") from None


def topic_for(state: ClusterState, name: str) -> Topic:
    """The topic, made where brokers make topics by themselves. Raises ArgumentError."""
    settings = state.settings
    if name not in state.topics:
        if not settings.auto_create_topics_enable:
            raise ArgumentError(f"There is no topic {name!r}, and auto.create.topics.enable is False.")
        return create(state, name, settings.num_partitions, None, {})
    return state.topics[name]


def produce(
    state: ClusterState,
    topic: Topic,
    records: list[NewRecord],
    *,
    partition: int | None,
    codec: str,
    turn: int,
) -> list[tuple[int, int]]:
    """Append records and give back partition and offset of each. Raises ArgumentError, UsageError."""
    count = len(topic.partitions)
    places = spread(records, count, turn) if partition is None else [partition] * len(records)
    next_offset: dict[int, int] = {}
    for number in sorted(set(places)):
        into = leaders.find(state, topic.name, number)
        broker = state.brokers[leaders.leader(into)]
        if not broker.running or broker.paused:
            raise UsageError(
                f"Broker {into.leader}, the leader of {into.tp}, is down or paused; `heal` the cluster."
            )
        next_offset[number] = into.log.end
        mine = (record for record, place in zip(records, places, strict=True) if place == number)
        append_all(state, into, batches(mine, codec_of(codec)))
    offsets = []
    for place in places:
        offsets.append((place, next_offset[place]))
        next_offset[place] += 1
    return offsets


def truncate(state: ClusterState, partition: Partition, to: int) -> None:
    """Lose every batch that does not end below `to`, as an unclean election does, in a new epoch.

    Raises ArgumentError for an offset that is not in the log, UsageError without a leader.
    """
    log = partition.log
    if not log.start <= to <= log.end:
        raise ArgumentError(f"{partition.tp} goes from {log.start} to {log.end}; it cannot be cut at {to}.")
    node = leaders.leader(partition)
    partition.ends[node] = to
    controller.set_leader(state, partition, node)


def delete_records(state: ClusterState, partition: Partition, before: int) -> None:
    """Move the log start offset up. Raises ArgumentError for an offset beyond the high watermark."""
    if not 0 <= before <= partition.high_watermark:
        raise ArgumentError(
            f"{partition.tp} can lose records before {partition.high_watermark} at most, not {before}."
        )
    advance_start(state, partition, before)


def recreate(state: ClusterState, name: str) -> None:
    """Delete a topic and make it again, empty, with another id. Raises ArgumentError."""
    topic = find_topic(state, name)
    replicas = len(topic.partitions[0].replicas)
    controller.delete_topic(state, topic)
    controller.create_topic(state, name, len(topic.partitions), replicas, topic.config)


def find_topic(state: ClusterState, name: str) -> Topic:
    """The topic of this name. Raises ArgumentError."""
    if name not in state.topics:
        raise ArgumentError(f"There is no topic {name!r}; there are {', '.join(state.topics) or 'none'}.")
    return state.topics[name]


def add_partitions(state: ClusterState, name: str, count: int) -> None:
    """Grow a topic to `count` partitions. Raises ArgumentError where it has as many."""
    topic = find_topic(state, name)
    if count <= len(topic.partitions):
        raise ArgumentError(
            f"{name} has {len(topic.partitions)} partitions; it can only grow, not to {count}."
        )
    controller.add_partitions(state, topic, count, len(topic.partitions[0].replicas))


def expire_all(state: ClusterState, name: str) -> None:
    """Delete what the topic's retention says, now, as brokers do every five minutes. Raises ArgumentError."""
    for partition in find_topic(state, name).partitions:
        expire(state, partition)
