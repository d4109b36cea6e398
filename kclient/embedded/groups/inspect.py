"""Groups as those who run a cluster see and push them, wherever they are coordinated. For tests; no protocol."""

from __future__ import annotations

from kclient.embedded.broker import Broker
from kclient.embedded.groups import rebalance as flows
from kclient.embedded.groups.group import Group
from kclient.embedded.groups.roster import Roster
from kclient.embedded.state import OFFSETS_TOPIC, ClusterState
from kclient.embedded.topics import NO_LEADER
from kclient.errors import ArgumentError
from kclient.group.offsets_topic import offsets_topic_partition
from kclient.types import OffsetAndMetadata, TopicPartition


def coordinator_of(state: ClusterState, group_id: str) -> Broker | None:
    """The broker that coordinates a group; None where no running one does."""
    number = offsets_topic_partition(group_id, state.settings.offsets_topic_num_partitions)
    partition = state.partition(TopicPartition(OFFSETS_TOPIC, number))
    if partition is None or partition.leader == NO_LEADER:
        return None
    broker = state.brokers[partition.leader]
    return broker if broker.running else None


def groups(state: ClusterState) -> dict[str, Group]:
    """All groups that are in the memory of a running broker, by name."""
    found: dict[str, Group] = {}
    for broker in state.brokers.values():
        if broker.running:
            found.update(broker.groups.groups)
    return found


def find(state: ClusterState, group_id: str) -> Group | None:
    """A group, None where there is none."""
    return groups(state).get(group_id)


def committed(state: ClusterState, group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
    """What the group has committed; nothing for an unknown group."""
    group = find(state, group_id)
    return {} if group is None else {tp: one.plain() for tp, one in sorted(group.offsets.committed.items())}


def rebalance(state: ClusterState, group_id: str, reason: str = "asked for") -> None:
    """Let a classic group gather its members anew. Raises ArgumentError for a group without members."""
    group = _classic(state, group_id)
    if not group.members:
        raise ArgumentError(f"The group {group_id!r} has no members to gather.")
    flows.prepare(group, reason)


def expire_member(state: ClusterState, group_id: str, member_id: str) -> None:
    """End a member's session as if nothing had been heard of it. Raises ArgumentError for an unknown one."""
    group = _classic(state, group_id)
    if member_id not in group.members:
        raise ArgumentError(
            f"The group {group_id!r} has no member {member_id!r}; it has {', '.join(group.members) or 'none'}."
        )
    flows.remove(group, group.members[member_id], f"member {member_id} was made to expire")


def _classic(state: ClusterState, group_id: str) -> Roster:
    group = find(state, group_id)
    if not isinstance(group, Roster):
        raise ArgumentError(f"There is no classic group {group_id!r}; there are {', '.join(groups(state))}.")
    return group
