"""Find, rebalance and expire groups from tests, whichever broker coordinates them."""

from __future__ import annotations

from kclient.embedded.groups.classic import rebalance as classic
from kclient.embedded.groups.classic.metadata import ClassicGroupMetadata
from kclient.embedded.groups.consumer_protocol import assignment, leave
from kclient.embedded.groups.consumer_protocol.group import ConsumerGroup
from kclient.embedded.groups.consumer_protocol.journal import Journal
from kclient.embedded.groups.coordinator import CoordinatorGroup
from kclient.embedded.groups.loading import groups_of
from kclient.embedded.state import ClusterState
from kclient.errors import ArgumentError


def groups(state: ClusterState) -> dict[str, CoordinatorGroup]:
    """Return all groups of the running brokers, by name."""
    found: dict[str, CoordinatorGroup] = {}
    for broker in state.brokers.values():
        if broker.running:
            found.update(groups_of(broker).groups)
    return found


def find(state: ClusterState, group_id: str) -> CoordinatorGroup | None:
    """Return a group, or None."""
    return groups(state).get(group_id)


def rebalance(group: CoordinatorGroup, reason: str = "the test wants it") -> None:
    """Begin a rebalance of a group; in the consumer protocol, bump its epoch and compute the targets."""
    if isinstance(group, ClassicGroupMetadata):
        classic.prepare(group, reason)
    elif isinstance(group, ConsumerGroup):
        journal = Journal(group)
        assignment.advance(journal, changed=True)
        journal.write()


def expire_member(state: ClusterState, group_id: str, member_id: str) -> None:
    """Expire a member's session. Raise ArgumentError for an unknown member."""
    group = find(state, group_id)
    if not isinstance(group, ClassicGroupMetadata | ConsumerGroup):
        raise ArgumentError(f"There is no group {group_id!r}; there are {', '.join(groups(state))}.")
    if member_id not in group.members:
        raise ArgumentError(
            f"The group {group_id!r} has no member {member_id!r}; it has {', '.join(group.members) or 'none'}."
        )
    if isinstance(group, ConsumerGroup):
        leave.remove(group, [group.members[member_id]])
        return
    classic.remove(group, group.members[member_id], f"member {member_id} was made to expire")
