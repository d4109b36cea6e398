"""What observers are told of classic groups: the ground truth of tests."""

from __future__ import annotations

from kclient.embedded.groups.roster import Roster
from kclient.errors import ProtocolDecodeError
from kclient.group.subscription_codec import PROTOCOL_TYPE, decode_assignment
from kclient.types import TopicPartition


def tell_rebalanced(group: Roster) -> None:
    """A generation begins to own what it owns."""
    observers = group.coordinator.broker.state.observers
    if observers:
        owned = owned_by_members(group)
        for observer in observers:
            observer.rebalanced(group.group_id, group.generation, owned)


def owned_by_members(group: Roster) -> dict[str, list[TopicPartition]]:
    """Member id → partitions, as far as the assignments can be read."""
    return {member.member_id: _owned(group, member.assignment) for member in group.members.values()}


def _owned(group: Roster, assignment: bytes) -> list[TopicPartition]:
    if group.type_of_protocol != PROTOCOL_TYPE or not assignment:
        return []
    try:
        return list(decode_assignment(assignment).partitions)
    except ProtocolDecodeError:
        return []  # a client may write nonsense; then nobody can say what the member reads
