"""The group that a heartbeat with epoch 0 joins: an existing one, a new one, or a classic group that is upgraded."""

from __future__ import annotations

from typing import Final

import attrs

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.classic.group import ClassicGroup
from kclient.embedded.groups.classic.metadata import ClassicGroupMember
from kclient.embedded.groups.consumer_protocol.group import ConsumerGroup
from kclient.embedded.groups.consumer_protocol.journal import Journal
from kclient.embedded.groups.consumer_protocol.leave import restart_session_timer
from kclient.embedded.groups.consumer_protocol.member import ConsumerGroupMember, HostedClassicMember
from kclient.embedded.groups.consumer_protocol.metadata import metadata_hash
from kclient.embedded.groups.consumer_protocol.migration import (
    has_user_data,
    read_assignment,
    read_subscription,
)
from kclient.embedded.groups.coordinator import CoordinatorGroup, GroupCoordinator
from kclient.group.subscription_codec import PROTOCOL_TYPE
from kclient.protocol.errors import GROUP_ID_NOT_FOUND, REBALANCE_IN_PROGRESS

UP: Final = ("bidirectional", "upgrade")


@attrs.frozen
class GroupToJoin:
    """A group that a member may join; `keep` adds it to the coordinator after the member has joined."""

    journal: Journal
    instead_of: CoordinatorGroup | None

    def keep(self) -> None:
        """Add the group to the coordinator. Parked requests to the group that it replaces get REBALANCE_IN_PROGRESS."""
        group = self.journal.group
        group.coordinator.groups[group.group_id] = group
        for member in group.members.values():
            if member.classic is not None:
                restart_session_timer(group, member)
        if self.instead_of is not None:
            self.instead_of.end(REBALANCE_IN_PROGRESS)


def group_to_join(coordinator: GroupCoordinator, group_id: str) -> GroupToJoin:
    """Return the group, a new one, or the upgraded classic group. Raise ApiError if that is not allowed."""
    group = coordinator.find(group_id)
    if isinstance(group, ConsumerGroup):
        return GroupToJoin(Journal(group), None)
    if not isinstance(group, ClassicGroup):
        return GroupToJoin(Journal(ConsumerGroup(coordinator, group_id)), None)
    if group.empty:
        fresh = ConsumerGroup(coordinator, group_id, group.offsets)
        return GroupToJoin(Journal(fresh, group.tombstones()), group)
    return GroupToJoin(upgraded(group), group)


def upgraded(classic: ClassicGroup) -> Journal:
    """Return the group as a consumer group, all members in the epoch of their generation; nothing is written yet.

    Raise ApiError where that may not be.
    """
    _check_upgrade(classic)
    group = ConsumerGroup(classic.coordinator, classic.group_id, classic.offsets)
    journal = Journal(group, classic.tombstones())
    members = [_hosted(group, classic, member) for member in classic.members.values()]
    for member in members:
        journal.set_metadata(member)
    journal.begin(classic.generation, metadata_hash(group))
    for member in members:
        journal.set_target(member.member_id, tuple(member.assigned))
    journal.set_assignment_epoch(0)
    for member in members:
        journal.set_assignment(member)
    return journal


def _check_upgrade(classic: ClassicGroup) -> None:
    settings = classic.coordinator.broker.state.settings
    why = None
    if settings.group_consumer_migration_policy.lower() not in UP:
        why = "online upgrade is disabled"
    elif classic.type_of_protocol != PROTOCOL_TYPE:
        why = "the group does not use the consumer embedded protocol"
    elif len(classic.members) > settings.group_consumer_max_size:
        why = "the group size exceeds the consumer group maximum size"
    elif any(has_user_data(member.assignment) for member in classic.members.values()):
        why = (
            "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default "
            "assignor before re-attempting the upgrade"
        )
    if why is not None:
        text = f"Cannot upgrade classic group {classic.group_id} to consumer group because {why}."
        raise ApiError(GROUP_ID_NOT_FOUND, text)


def _hosted(group: ConsumerGroup, classic: ClassicGroup, member: ClassicGroupMember) -> ConsumerGroupMember:
    subscription = read_subscription(member.metadata(classic.protocol) or member.protocols[0][1])
    generation = classic.generation
    return ConsumerGroupMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=tuple(sorted(set(subscription.topics))),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=HostedClassicMember(member.session_timeout_ms, tuple(member.protocols)),
        epoch=generation,
        previous_epoch=generation,
        assigned=dict.fromkeys(read_assignment(group, member.assignment), generation),
    )
