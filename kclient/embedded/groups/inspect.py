"""Groups as those who run a cluster see and push them, wherever they are coordinated. For tests; no protocol."""

from __future__ import annotations

from kclient.embedded.groups import rebalance as classic
from kclient.embedded.groups.consumer import assignment, leave
from kclient.embedded.groups.consumer.group import ConsumerGroup
from kclient.embedded.groups.consumer.journal import Journal
from kclient.embedded.groups.group import Group
from kclient.embedded.groups.roster import Roster
from kclient.embedded.state import ClusterState
from kclient.errors import ArgumentError


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


def rebalance(group: Group, reason: str = "the test wants it") -> None:
    """Let the members of a group join anew, or in the consumer protocol be assigned anew, in the next epoch."""
    if isinstance(group, Roster):
        classic.prepare(group, reason)
    elif isinstance(group, ConsumerGroup):
        journal = Journal(group)
        assignment.advance(journal, changed=True)
        journal.write()


def expire_member(state: ClusterState, group_id: str, member_id: str) -> None:
    """End a member's session as if nothing had been heard of it. Raises ArgumentError for an unknown one."""
    group = find(state, group_id)
    if not isinstance(group, Roster | ConsumerGroup):
        raise ArgumentError(f"There is no group {group_id!r}; there are {', '.join(groups(state))}.")
    if member_id not in group.members:
        raise ArgumentError(
            f"The group {group_id!r} has no member {member_id!r}; it has {', '.join(group.members) or 'none'}."
        )
    if isinstance(group, ConsumerGroup):
        leave.remove(group, [group.members[member_id]])
        return
    classic.remove(group, group.members[member_id], f"member {member_id} was made to expire")
