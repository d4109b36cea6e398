"""The controller: topics are validated, created and deleted; leaders are elected when brokers fail and return.

Plain functions on the state, which also notify the coordinators of new leaders of their topics. The `check_…` functions
raise with the error code and message for the client. Importing the coordinators takes a fifth of a cluster's start, so
they are imported with the first group or transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kclient.embedded import topic_config
from kclient.embedded.api_error import ApiError
from kclient.embedded.partition import NO_LEADER, OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Partition, Topic
from kclient.embedded.releases import Release
from kclient.embedded.state import BrokerState, ClusterState
from kclient.log import get_logger
from kclient.network.metadata import is_legal_topic
from kclient.protocol.errors import (
    INVALID_CONFIG,
    INVALID_PARTITIONS,
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR,
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    TOPIC_ALREADY_EXISTS,
)

logger: Final = get_logger("kclient.embedded")

DEFAULT: Final = -1
KRAFT_SINCE: Final = Release.parse("3.0")
INTERNAL: Final = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)


def check_name(state: ClusterState, name: str) -> None:
    """A legal name that is not taken, nor one that differs from another only in dots and underscores."""
    if name in state.topics:
        raise ApiError(TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    if not is_legal_topic(name):
        raise ApiError(INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: '{name}'")
    folded = name.replace(".", "_")
    for other in state.topics:
        if other.replace(".", "_") == folded:
            raise ApiError(INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")


def check_config(state: ClusterState, config: Mapping[str, str | None]) -> dict[str, str]:
    """Known keys with values that they can have."""
    if state.release < KRAFT_SINCE and None in config.values():
        raise ApiError(INVALID_REQUEST, "Null value not supported for topic configs.")
    if found := topic_config.problems(config, state.release):
        raise ApiError(INVALID_CONFIG, found[0])
    return {name: value for name, value in config.items() if value is not None}


def partition_count(state: ClusterState, asked: int) -> int:
    """How many partitions, the broker's default for −1."""
    if asked == DEFAULT:
        return state.settings.num_partitions
    if asked < 1:
        raise ApiError(INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    return asked


def replication_factor(state: ClusterState, asked: int) -> int:
    """Return the number of replicas, the broker's default for −1; with KRaft, brokers that are down count too."""
    wanted = state.settings.default_replication_factor if asked == DEFAULT else asked
    if wanted < 1:
        raise ApiError(
            INVALID_REPLICATION_FACTOR, "Replication factor was set to an invalid non-positive value."
        )
    usable = len(state.brokers) if state.release >= KRAFT_SINCE else len(state.alive())
    if wanted > usable:
        text = f"Unable to replicate the partition {wanted} time(s): there are only {usable} broker(s)."
        raise ApiError(INVALID_REPLICATION_FACTOR, text)
    return wanted


def check_assignment(state: ClusterState, replicas: Sequence[Sequence[int]]) -> None:
    """For each partition brokers that exist, each once, as many for the one as for the other."""
    for nodes in replicas:
        if not nodes or len(set(nodes)) != len(nodes) or len(nodes) != len(replicas[0]):
            text = f"The manual partition assignment includes {list(nodes)}: empty, repeated, or of another size."
            raise ApiError(INVALID_REPLICA_ASSIGNMENT, text)
        for node in nodes:
            if node not in state.brokers or not state.brokers[node].up:
                text = f"The manual partition assignment includes broker {node}, but no such broker is registered."
                raise ApiError(INVALID_REPLICA_ASSIGNMENT, text)


def create_topic(
    state: ClusterState,
    name: str,
    partitions: int,
    replication: int,
    config: Mapping[str, str] | None = None,
    assignment: Mapping[int, list[int]] | None = None,
) -> Topic:
    """Create a topic on the brokers that are up, replicas round robin unless assigned. The caller has validated it."""
    topic = Topic(name, state.new_id(), config=dict(config or {}), internal=name in INTERNAL)
    state.topics[name] = topic
    add_partitions(state, topic, partitions, replication, assignment)
    for observer in state.observers:
        observer.topic_created(name, partitions)
    return topic


def create_internal_topic(state: ClusterState, name: str) -> Topic | None:
    """Make a coordinators' topic unless it is there; None and a line in the log while too few brokers are up."""
    settings = state.settings
    if name in state.topics:
        return state.topics[name]
    if name == OFFSETS_TOPIC:
        partitions, replication = (
            settings.offsets_topic_num_partitions,
            settings.offsets_topic_replication_factor,
        )
        which = "the offsets topic (configured via 'offsets.topic.replication.factor')"
        config = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(settings.offsets_topic_segment_bytes),
        }
    else:
        partitions = settings.transaction_state_log_num_partitions
        replication = settings.transaction_state_log_replication_factor
        which = "the transactions state topic (configured via 'transaction.state.log.replication.factor')"
        config = {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "segment.bytes": str(settings.transaction_state_log_segment_bytes),
            "min.insync.replicas": str(settings.transaction_state_log_min_isr),
            "unclean.leader.election.enable": "false",
        }
    if (alive := len(state.alive())) < replication:
        logger.error(
            "Number of alive brokers '%d' does not meet the required replication factor '%d' for %s. "
            "This error can be ignored if the cluster is starting up and not all brokers are up yet.",
            alive,
            replication,
            which,
        )
        return None
    return create_topic(state, name, partitions, replication, config)


def add_partitions(
    state: ClusterState,
    topic: Topic,
    count: int,
    replication: int,
    assignment: Mapping[int, list[int]] | None = None,
) -> None:
    """Grow a topic to `count` partitions. Brokers that are down get replicas only where there are too few others.

    While all of them are down every replica is in sync: the first broker that is back leads.
    """
    for number in range(len(topic.partitions), count):
        replicas = list(assignment[number]) if assignment else _spread(state, number, replication)
        up = [node for node in replicas if state.brokers[node].up]
        lagging = {node: 0 for node in replicas if node not in up}
        partition = Partition(topic, number, replicas, isr=up or list(replicas), ends=lagging)
        topic.partitions.append(partition)
        elect(state, partition)


def _spread(state: ClusterState, number: int, replication: int) -> list[int]:
    up = [broker.node_id for broker in state.alive()]
    down = [broker.node_id for broker in state.brokers.values() if not broker.up]
    first = number % max(1, len(up))
    return [*up[first:], *up[:first], *down][:replication]


def delete_topic(state: ClusterState, topic: Topic) -> None:
    """Delete a topic with its records, and wake fetches that wait on its partitions."""
    from kclient.embedded.groups.loading import groups_of

    del state.topics[topic.name]
    for partition in topic.partitions:
        before, partition.leader = partition.leader, NO_LEADER
        partition.changed.notify()
        if before != NO_LEADER:
            _leader_changed(state.brokers[before], partition)
    for broker in state.brokers.values():
        if broker.running:
            groups_of(broker).topic_deleted(topic.name)
    for observer in state.observers:
        observer.topic_deleted(topic.name, topic.topic_id)


def _leader_changed(broker: BrokerState, partition: Partition) -> None:
    """Load or unload a coordinator's partition that a broker begins or ceases to lead."""
    if not broker.running:
        return
    if partition.topic.name == OFFSETS_TOPIC:
        from kclient.embedded.groups.loading import groups_of

        groups_of(broker).leader_changed(partition)
    elif partition.topic.name == TRANSACTIONS_TOPIC:
        from kclient.embedded.transactions.coordinator import transactions_of

        transactions_of(broker).leader_changed(partition)


def elect(state: ClusterState, partition: Partition) -> None:
    """Give a partition the first in-sync replica that is up as leader, or none."""
    alive = [node for node in partition.replicas if state.brokers[node].up and node not in partition.offline]
    in_sync = [node for node in alive if node in partition.isr]
    if not in_sync and alive and unclean(state, partition.topic):
        in_sync = alive[:1]
    set_leader(state, partition, in_sync[0] if in_sync else NO_LEADER)


def set_leader(state: ClusterState, partition: Partition, node: int) -> None:
    """Move the leadership, in a new epoch, and notify the brokers. The ISR shrinks to those that are up."""
    before, end = partition.leader, partition.log.end
    if node != NO_LEADER:
        up = [replica for replica in partition.isr if state.brokers[replica].up and replica != node]
        partition.isr = [node, *up]
    partition.lead(node)
    for observer in state.observers:
        if partition.log.end < end:
            observer.truncated(partition, partition.log.end)
        observer.leader_changed(partition)
    for broker in state.brokers.values():
        if broker.node_id in (before, node):
            _leader_changed(broker, partition)


def unclean(state: ClusterState, topic: Topic) -> bool:
    """Whether a replica that is not in sync may become leader and lose records."""
    given = topic.config.get("unclean.leader.election.enable")
    return state.settings.unclean_leader_election_enable if given is None else given == "true"


def broker_went(state: ClusterState, node: int) -> None:
    """Take a broker out of service: it loses its leaderships, and leaves every ISR that has other replicas."""
    broker = state.brokers[node]
    broker.up = False
    if broker.expiry is not None:
        broker.expiry.cancel()
    for partition in state.partitions():
        if node in partition.replicas:
            partition.ends.setdefault(node, partition.log.end)
        if partition.leader == node:
            elect(state, partition)
        elif node in partition.isr and len(partition.isr) > 1:
            partition.isr.remove(node)
            partition.changed.notify()


def broker_came(state: ClusterState, node: int) -> None:
    """Bring a broker back: it catches up at once, and leads partitions without a leader."""
    state.brokers[node].up = True
    for partition in state.partitions():
        if node not in partition.replicas:
            continue
        back = [node]
        if partition.leader == NO_LEADER:
            elect(state, partition)
            back = [replica for replica in partition.replicas if state.brokers[replica].up]
        if partition.leader != NO_LEADER:
            follow(partition, [replica for replica in back if replica != partition.leader])


def follow(partition: Partition, nodes: Iterable[int]) -> None:
    """Bring these replicas up to the leader's log end, and into the ISR."""
    for node in nodes:
        partition.ends.pop(node, None)
        if node not in partition.isr:
            partition.isr.append(node)
        partition.changed.notify()
