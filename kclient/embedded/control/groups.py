"""Groups, as their coordinator has them. The rooms of groups are imported when the first one is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kclient.embedded.control import leaders
from kclient.embedded.state import OFFSETS_TOPIC, ClusterState
from kclient.errors import ArgumentError
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.embedded.groups.group import Group

REASON = "the test wants it"


def committed(state: ClusterState, name: str) -> dict[TopicPartition, int]:
    """The committed offsets of a group, none for one that is not there. Raises UsageError without a coordinator."""
    group = _coordinated(state, name)
    if group is None:
        return {}
    return {tp: commit.offset for tp, commit in group.offsets.committed.items()}


def rebalance(state: ClusterState, name: str | None) -> None:
    """Let the members of a group, or of all groups, join again, or in the consumer protocol be assigned anew.

    Raises ArgumentError for a group without members, UsageError without a coordinator.
    """
    if name is None:
        for group in _all(state):
            _rebalance(group)
        return
    found = _coordinated(state, name)
    if found is None or found.empty:
        known = ", ".join(group.group_id for group in _all(state)) or "none"
        raise ArgumentError(f"Group {name!r} has no members; groups with members are {known}.")
    _rebalance(found)


def _rebalance(group: Group) -> None:
    from kclient.embedded.groups.consumer import assignment
    from kclient.embedded.groups.consumer.group import ConsumerGroup
    from kclient.embedded.groups.consumer.journal import Journal
    from kclient.embedded.groups.rebalance import prepare
    from kclient.embedded.groups.roster import Roster

    if isinstance(group, Roster):
        prepare(group, REASON)
    elif isinstance(group, ConsumerGroup):
        journal = Journal(group)
        assignment.advance(journal, changed=True)
        journal.write()


def _coordinated(state: ClusterState, name: str) -> Group | None:
    return state.brokers[leaders.leader(leaders.of_group(state, name))].groups.groups.get(name)


def _all(state: ClusterState) -> list[Group]:
    """Those with members, of all coordinators."""
    if OFFSETS_TOPIC not in state.topics:
        return []
    groups = [group for broker in state.brokers.values() for group in broker.groups.groups.values()]
    return [group for group in groups if not group.empty]
