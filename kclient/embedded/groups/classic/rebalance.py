"""The join phase of a rebalance, and the sessions of members.

PreparingRebalance lasts until all members have sent JoinGroup, at most the longest rebalance timeout among them, and
for an empty group at least the initial delay. Then members that have not rejoined are removed, and all parked
JoinGroups are answered in the next generation.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.classic.metadata import (
    ClassicGroupMember,
    ClassicGroupMetadata,
    ClassicGroupState,
    notify_rebalanced,
)
from kclient.embedded.groups.classic.records import group_record
from kclient.embedded.releases import Release
from kclient.generated.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from kclient.generated.sync_group_response import SyncGroupResponse
from kclient.protocol.errors import REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID

# Before 2.8 the only bound on the wait for SyncGroup is the session timeout.
AWAITS_SYNC_SINCE: Final = Release.parse("2.8")
NEW_MEMBER_SECONDS: Final = 300.0  # the session timeout of a member in its first join phase

CAN_BEGIN: Final = (ClassicGroupState.STABLE, ClassicGroupState.COMPLETING, ClassicGroupState.EMPTY)


# --- a rebalance begins


def prepare(group: ClassicGroupMetadata, reason: str) -> None:
    """Begin the join phase; if it is in progress, complete it if possible."""
    if group.state not in CAN_BEGIN:
        try_complete(group)
        return
    group.reason = reason
    first = group.state is ClassicGroupState.EMPTY
    if group.state is ClassicGroupState.COMPLETING:
        clear_assignments(group, REBALANCE_IN_PROGRESS)
    group.stop_waiting_for_sync()
    group.enter(ClassicGroupState.PREPARING)
    if first:
        delay = group.coordinator.broker.state.settings.group_initial_rebalance_delay_ms / 1000
        group.initial_delay = True
        _start_initial_delay(group, delay, max(group.rebalance_timeout - delay, 0.0))
    else:
        _start_join_timer(group)
        try_complete(group)


def clear_assignments(group: ClassicGroupMetadata, code: int) -> None:
    """Clear the assignments; answer parked SyncGroups with the error code."""
    for member in group.members.values():
        member.assignment = b""
        if member.answer_sync(SyncGroupResponse(error_code=code)):
            keep_alive(group, member)


def _start_join_timer(group: ClassicGroupMetadata) -> None:
    group.join_timer = group.coordinator.broker.call_later(group.rebalance_timeout, lambda: _complete(group))


def _start_initial_delay(group: ClassicGroupMetadata, delay: float, remaining: float) -> None:
    """Wait for the initial delay, again as long as new members join."""
    group.new_member_added = False
    group.join_timer = group.coordinator.broker.call_later(delay, lambda: _waited(group, remaining))


def _waited(group: ClassicGroupMetadata, remaining: float) -> None:
    if group.new_member_added and remaining > 0:
        delay = group.coordinator.broker.state.settings.group_initial_rebalance_delay_ms / 1000
        _start_initial_delay(group, min(delay, remaining), max(remaining - delay, 0.0))
    else:
        _complete(group)


# --- a rebalance ends


def try_complete(group: ClassicGroupMetadata) -> None:
    """Complete the join phase if every member has rejoined and no member id is pending."""
    gathering = group.state is ClassicGroupState.PREPARING and not group.initial_delay
    if gathering and not group.pending and len(group.waiting) == len(group.members):
        _complete(group)


def _complete(group: ClassicGroupMetadata) -> None:
    for member in [one for one in group.members.values() if one.joining is None and one.instance_id is None]:
        group.remove(member)
    group.stop_join_phase()
    if not group.members:
        _become_empty(group)
    elif _elect_leader(group):
        _next_generation(group)
    else:
        _start_join_timer(
            group
        )  # only static members are left, none has rejoined: wait until their sessions expire


def _elect_leader(group: ClassicGroupMetadata) -> bool:
    """Keep the leader if it rejoined, else elect the first member that did. Return False if there is none."""
    here = [member.member_id for member in group.waiting]
    if group.leader not in here:
        group.leader = here[0] if here else group.leader
    return bool(here)


def _become_empty(group: ClassicGroupMetadata) -> None:
    """Enter Empty, in the next generation."""
    group.generation += 1
    group.protocol = group.leader = None
    group.subscribed = group.topics_of_members()
    group.enter(ClassicGroupState.EMPTY)
    notify_rebalanced(group)
    with suppress(
        ApiError
    ):  # then a new coordinator loads the old members and removes them when their sessions expire
        group.coordinator.write(group.group_id, [group_record(group, {})])


def _next_generation(group: ClassicGroupMetadata) -> None:
    group.generation += 1
    group.protocol = group.select_protocol()
    group.subscribed = group.topics_of_members()
    group.enter(ClassicGroupState.COMPLETING)
    for member in group.members.values():
        member.answer_join(join_response(group, member))
        member.is_new = False
        group.pending_sync_members[member.member_id] = None
        keep_alive(group, member)
    state = group.coordinator.broker.state
    if state.release >= AWAITS_SYNC_SINCE:
        group.sync_timer = group.coordinator.broker.call_later(
            group.rebalance_timeout, lambda: _sync_overdue(group)
        )


def join_response(group: ClassicGroupMetadata, member: ClassicGroupMember) -> JoinGroupResponse:
    """Return the JoinGroup response to a member; the leader's lists all members."""
    leads = member.member_id == group.leader
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.type_of_protocol,
        protocol_name=group.protocol,
        leader=group.leader or "",
        member_id=member.member_id,
        members=join_response_members(group) if leads else [],
    )


def join_response_members(group: ClassicGroupMetadata) -> list[JoinGroupResponseMember]:
    """Return every member with its metadata, for the leader."""
    return [
        JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            metadata=member.metadata(group.protocol),
        )
        for member in group.members.values()
    ]


def _sync_overdue(group: ClassicGroupMetadata) -> None:
    """Remove members that did not send SyncGroup in time."""
    late = [
        group.members[member_id] for member_id in group.pending_sync_members if member_id in group.members
    ]
    for member in late:
        group.remove(member)
    if late:
        prepare(group, f"{len(late)} members did not send SyncGroup in time")


# --- sessions and leaving members


def keep_alive(group: ClassicGroupMetadata, member: ClassicGroupMember) -> None:
    """Restart the session timer of a member."""
    seconds = NEW_MEMBER_SECONDS if member.is_new else member.session_timeout_ms / 1000
    member.stop_expiry()
    member.expiry = group.coordinator.broker.call_later(seconds, lambda: _expire(group, member))


def _expire(group: ClassicGroupMetadata, member: ClassicGroupMember) -> None:
    """Remove a member, unless its response is parked; a new member is removed in any case."""
    if member.is_new or (member.joining is None and member.syncing is None):
        remove(group, member, f"member {member.member_id} has not been heard of for its session timeout")


def remove(group: ClassicGroupMetadata, member: ClassicGroupMember, reason: str) -> None:
    """Remove a member, and begin a rebalance of the others."""
    member.answer_join(JoinGroupResponse(error_code=UNKNOWN_MEMBER_ID, protocol_name=None))
    member.answer_sync(SyncGroupResponse(error_code=UNKNOWN_MEMBER_ID))
    group.remove(member)
    prepare(group, reason)


def remove_pending(group: ClassicGroupMetadata, member_id: str) -> None:
    """Stop waiting for a pending member id."""
    if group.drop_pending(member_id):
        try_complete(group)
