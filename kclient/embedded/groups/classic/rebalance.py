"""The members of a group are gathered for a new generation, and those that do not come are dropped.

PreparingRebalance lasts until all members have sent JoinGroup, at most the longest rebalance timeout among them; when
an empty group begins, at least the initial delay. Then all parked JoinGroups are answered at once.
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

# Older coordinators wait for SyncGroup as long as the session lasts.
AWAITS_SYNC_SINCE: Final = Release.parse("2.8")
NEW_MEMBER_SECONDS: Final = 300.0  # how long a member that never was in a generation may wait for one

CAN_BEGIN: Final = (ClassicGroupState.STABLE, ClassicGroupState.COMPLETING, ClassicGroupState.EMPTY)


# --- a rebalance begins


def prepare(group: ClassicGroupMetadata, reason: str) -> None:
    """Gather the members; nothing happens if that goes on already."""
    if group.state not in CAN_BEGIN:
        try_complete(group)
        return
    group.reason = reason
    first = group.state is ClassicGroupState.EMPTY
    if group.state is ClassicGroupState.COMPLETING:
        drop_plan(group, REBALANCE_IN_PROGRESS)
    group.stop_planning()
    group.enter(ClassicGroupState.PREPARING)
    if first:
        delay = group.coordinator.broker.state.settings.group_initial_rebalance_delay_ms / 1000
        group.initial = True
        _wait_for_more(group, delay, max(group.rebalance_timeout - delay, 0.0))
    else:
        _gather(group)
        try_complete(group)


def drop_plan(group: ClassicGroupMetadata, code: int) -> None:
    """Nobody owns anything; whoever waits for the plan is told why."""
    for member in group.members.values():
        member.assignment = b""
        if member.answer_sync(SyncGroupResponse(error_code=code)):
            keep_alive(group, member)


def _gather(group: ClassicGroupMetadata) -> None:
    group.gathering = group.coordinator.broker.call_later(group.rebalance_timeout, lambda: _complete(group))


def _wait_for_more(group: ClassicGroupMetadata, delay: float, remaining: float) -> None:
    """The initial delay, begun anew for as long as new members come."""
    group.newcomer = False
    group.gathering = group.coordinator.broker.call_later(delay, lambda: _waited(group, remaining))


def _waited(group: ClassicGroupMetadata, remaining: float) -> None:
    if group.newcomer and remaining > 0:
        delay = group.coordinator.broker.state.settings.group_initial_rebalance_delay_ms / 1000
        _wait_for_more(group, min(delay, remaining), max(remaining - delay, 0.0))
    else:
        _complete(group)


# --- a rebalance ends


def try_complete(group: ClassicGroupMetadata) -> None:
    """End it if everybody is here and no id that was given out is still to come."""
    gathering = group.state is ClassicGroupState.PREPARING and not group.initial
    if gathering and not group.pending and len(group.waiting) == len(group.members):
        _complete(group)


def _complete(group: ClassicGroupMetadata) -> None:
    for member in [one for one in group.members.values() if one.joining is None and one.instance_id is None]:
        group.remove(member)
    group.stop_gathering()
    if not group.members:
        _become_empty(group)
    elif _elect_leader(group):
        _next_generation(group)
    else:
        _gather(group)  # all that are left are static, and away: their sessions decide


def _elect_leader(group: ClassicGroupMetadata) -> bool:
    """The leader stays if it came, else the first one that did leads. False if nobody came."""
    here = [member.member_id for member in group.waiting]
    if group.leader not in here:
        group.leader = here[0] if here else group.leader
    return bool(here)


def _become_empty(group: ClassicGroupMetadata) -> None:
    """The generation goes on counting."""
    group.generation += 1
    group.protocol = group.leader = None
    group.subscribed = group.topics_of_members()
    group.enter(ClassicGroupState.EMPTY)
    notify_rebalanced(group)
    with suppress(ApiError):  # then a new coordinator finds members that do not answer, and drops them
        group.coordinator.write(group.group_id, [group_record(group, {})])


def _next_generation(group: ClassicGroupMetadata) -> None:
    group.generation += 1
    group.protocol = group.select_protocol()
    group.subscribed = group.topics_of_members()
    group.enter(ClassicGroupState.COMPLETING)
    for member in group.members.values():
        member.answer_join(joined(group, member))
        member.is_new = False
        group.unsynced[member.member_id] = None
        keep_alive(group, member)
    state = group.coordinator.broker.state
    if state.release >= AWAITS_SYNC_SINCE:
        group.planning = group.coordinator.broker.call_later(
            group.rebalance_timeout, lambda: _sync_overdue(group)
        )


def joined(group: ClassicGroupMetadata, member: ClassicGroupMember) -> JoinGroupResponse:
    """What a member is told of the generation; the leader is told of everybody."""
    leads = member.member_id == group.leader
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.type_of_protocol,
        protocol_name=group.protocol,
        leader=group.leader or "",
        member_id=member.member_id,
        members=roll(group) if leads else [],
    )


def roll(group: ClassicGroupMetadata) -> list[JoinGroupResponseMember]:
    """Every member with its metadata, for the leader."""
    return [
        JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            metadata=member.metadata(group.protocol),
        )
        for member in group.members.values()
    ]


def _sync_overdue(group: ClassicGroupMetadata) -> None:
    """Members that did not send SyncGroup in time are removed."""
    late = [group.members[member_id] for member_id in group.unsynced if member_id in group.members]
    for member in late:
        group.remove(member)
    if late:
        prepare(group, f"{len(late)} members did not send SyncGroup in time")


# --- members live and go


def keep_alive(group: ClassicGroupMetadata, member: ClassicGroupMember) -> None:
    """Its session begins anew."""
    seconds = NEW_MEMBER_SECONDS if member.is_new else member.session_timeout_ms / 1000
    member.stop_expiry()
    member.expiry = group.coordinator.broker.call_later(seconds, lambda: _expire(group, member))


def _expire(group: ClassicGroupMetadata, member: ClassicGroupMember) -> None:
    """A member whose answer is held back lives, unless it is new and has waited too long."""
    if member.is_new or (member.joining is None and member.syncing is None):
        remove(group, member, f"member {member.member_id} has not been heard of for its session timeout")


def remove(group: ClassicGroupMetadata, member: ClassicGroupMember, reason: str) -> None:
    """Let a member go, and the others rebalance."""
    member.answer_join(JoinGroupResponse(error_code=UNKNOWN_MEMBER_ID, protocol_name=None))
    member.answer_sync(SyncGroupResponse(error_code=UNKNOWN_MEMBER_ID))
    group.remove(member)
    prepare(group, reason)


def remove_pending(group: ClassicGroupMetadata, member_id: str) -> None:
    """An id that was given out is not waited for any more."""
    if group.drop_pending(member_id):
        try_complete(group)
