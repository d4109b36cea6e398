"""Groups, as their coordinators have them. The rooms of groups are imported when the first one is asked for."""

from __future__ import annotations

from kclient.embedded.control import leaders
from kclient.embedded.state import ClusterState
from kclient.errors import ArgumentError, UsageError
from kclient.types import TopicPartition


def committed(state: ClusterState, name: str) -> dict[TopicPartition, int]:
    """The committed offsets of a group, none for one that is not there. Raises UsageError without a coordinator."""
    broker = state.brokers[leaders.leader(leaders.of_group(state, name))]
    if not broker.running:
        raise UsageError(
            f"Broker {broker.node_id}, the coordinator of {name!r}, is down; `heal` the cluster."
        )
    group = broker.groups.groups.get(name)
    if group is None:
        return {}
    return {tp: commit.offset for tp, commit in group.offsets.committed.items()}


def rebalance(state: ClusterState, name: str | None) -> None:
    """Let the members of a group, or of all groups, join or be assigned anew.

    Raises ArgumentError for a group without members.
    """
    from kclient.embedded.groups import inspect

    with_members = {group_id: group for group_id, group in inspect.groups(state).items() if not group.empty}
    if name is None:
        for group in with_members.values():
            inspect.rebalance(group)
    elif name in with_members:
        inspect.rebalance(with_members[name])
    else:
        known = ", ".join(with_members) or "none"
        raise ArgumentError(f"Group {name!r} has no members; groups with members are {known}.")


def expire_member(state: ClusterState, name: str, member_id: str) -> None:
    """End the session of a member of a group. Raises ArgumentError for an unknown one."""
    from kclient.embedded.groups import inspect

    inspect.expire_member(state, name, member_id)
