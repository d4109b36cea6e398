"""Whether a topic, or more partitions of it, can be made as a client asks.

Every function raises Refused with the code and words for the client.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kclient.embedded import topic_config
from kclient.embedded.refusal import Refused
from kclient.embedded.releases import Release
from kclient.embedded.state import ClusterState
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

DEFAULT: Final = -1
KRAFT_SINCE: Final = Release.parse("3.0")


def check_name(state: ClusterState, name: str) -> None:
    """A legal name that is not taken, nor one that differs from another only in dots and underscores."""
    if name in state.topics:
        raise Refused(TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    if not is_legal_topic(name):
        raise Refused(INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: '{name}'")
    folded = name.replace(".", "_")
    for other in state.topics:
        if other.replace(".", "_") == folded:
            raise Refused(INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")


def check_config(state: ClusterState, config: Mapping[str, str | None]) -> dict[str, str]:
    """Known keys with values that they can have."""
    if state.release < KRAFT_SINCE and None in config.values():
        raise Refused(INVALID_REQUEST, "Null value not supported for topic configs.")
    if found := topic_config.problems(config, state.release):
        raise Refused(INVALID_CONFIG, found[0])
    return {name: value for name, value in config.items() if value is not None}


def partition_count(state: ClusterState, asked: int) -> int:
    """How many partitions, the broker's default for −1."""
    if asked == DEFAULT:
        return state.settings.num_partitions
    if asked < 1:
        raise Refused(INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    return asked


def replication_factor(state: ClusterState, asked: int) -> int:
    """How many replicas, the broker's default for −1; brokers that are down count where there is no ZooKeeper."""
    wanted = state.settings.default_replication_factor if asked == DEFAULT else asked
    if wanted < 1:
        raise Refused(
            INVALID_REPLICATION_FACTOR, "Replication factor was set to an invalid non-positive value."
        )
    usable = len(state.brokers) if state.release >= KRAFT_SINCE else len(state.alive())
    if wanted > usable:
        text = f"Unable to replicate the partition {wanted} time(s): there are only {usable} broker(s)."
        raise Refused(INVALID_REPLICATION_FACTOR, text)
    return wanted


def check_assignment(state: ClusterState, replicas: Sequence[Sequence[int]]) -> None:
    """For each partition brokers that exist, each once, as many for the one as for the other."""
    for nodes in replicas:
        if not nodes or len(set(nodes)) != len(nodes) or len(nodes) != len(replicas[0]):
            text = f"The manual partition assignment includes {list(nodes)}: empty, repeated, or of another size."
            raise Refused(INVALID_REPLICA_ASSIGNMENT, text)
        for node in nodes:
            if node not in state.brokers or not state.brokers[node].up:
                text = f"The manual partition assignment includes broker {node}, but no such broker is registered."
                raise Refused(INVALID_REPLICA_ASSIGNMENT, text)
