"""Groups, as their coordinator has them."""

from __future__ import annotations

from kclient.embedded.control import leaders
from kclient.embedded.state import ClusterState
from kclient.types import TopicPartition


def committed(state: ClusterState, name: str) -> dict[TopicPartition, int]:
    """The committed offsets of a group, none for one that is not there. Raises UsageError without a coordinator."""
    coordinator = state.brokers[leaders.leader(leaders.of_group(state, name))].groups
    group = coordinator.groups.get(name)
    if group is None:
        return {}
    return {tp: commit.offset for tp, commit in group.offsets.committed.items()}
