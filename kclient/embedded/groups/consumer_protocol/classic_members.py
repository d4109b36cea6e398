"""Members of the classic protocol in a consumer group: how a group moves to the new protocol while it runs.

They send JoinGroup, SyncGroup and Heartbeat as in a classic group. Their generation is their member epoch. The group
has no leader: the coordinator assigns. A heartbeat is answered REBALANCE_IN_PROGRESS whenever a member must revoke
partitions or may get more.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import attrs

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.consumer_protocol import leave
from kclient.embedded.groups.consumer_protocol.assignment import advance, target_of
from kclient.embedded.groups.consumer_protocol.heartbeat import new_member_id, settle, take_place
from kclient.embedded.groups.consumer_protocol.journal import Journal
from kclient.embedded.groups.consumer_protocol.leave import expire_member, restart_session_timer
from kclient.embedded.groups.consumer_protocol.member import (
    ConsumerGroupMember,
    HostedClassicMember,
    MemberState,
    MemberTimerKind,
)
from kclient.embedded.groups.consumer_protocol.metadata import ConsumerGroupMetadata
from kclient.embedded.groups.consumer_protocol.migration import (
    downgrade_if_all_classic,
    read_subscription,
    with_ids,
    write_assignment,
)
from kclient.embedded.groups.consumer_protocol.validation import check_group_size, known_member
from kclient.embedded.received_request import ReceivedRequest
from kclient.generated.heartbeat_request import HeartbeatRequest
from kclient.generated.join_group_request import JoinGroupRequest
from kclient.generated.join_group_response import JoinGroupResponse
from kclient.generated.leave_group_request import MemberIdentity
from kclient.generated.sync_group_request import SyncGroupRequest
from kclient.generated.sync_group_response import SyncGroupResponse
from kclient.group.subscription_codec import PROTOCOL_TYPE
from kclient.protocol.errors import (
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    MEMBER_ID_REQUIRED,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)

TWO_STEPS_SINCE: Final = 4  # the JoinGroup version in which a dynamic member first gets its id (KIP-394)


# --- JoinGroup


def join(
    group: ConsumerGroupMetadata, received: ReceivedRequest, request: JoinGroupRequest
) -> JoinGroupResponse:
    """Return the response at once: there is no join phase. Raise ApiError."""
    check_group_size(group, request.member_id)
    part = HostedClassicMember(
        request.session_timeout_ms, tuple((row.name, bytes(row.metadata)) for row in request.protocols)
    )
    if not _supported(group, request.member_id, request.protocol_type, part):
        raise ApiError(INCONSISTENT_GROUP_PROTOCOL)
    member_id = request.member_id or new_member_id(group.cluster)
    if received.version >= TWO_STEPS_SINCE and request.group_instance_id is None and not request.member_id:
        return JoinGroupResponse(error_code=MEMBER_ID_REQUIRED, member_id=member_id, protocol_name=None)
    found = _find(group, request)
    after = _enter(group, received, request, found, member_id, part)
    if found is not None and found.classic is None:
        downgrade_if_all_classic(group, rebalance_now=False)
    return JoinGroupResponse(
        generation_id=after.epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=part.protocols[0][0],
        member_id=member_id,
    )


def _enter(
    group: ConsumerGroupMetadata,
    received: ReceivedRequest,
    request: JoinGroupRequest,
    found: ConsumerGroupMember | None,
    member_id: str,
    part: HostedClassicMember,
) -> ConsumerGroupMember:
    """Update the member as a heartbeat does; its subscription contains its owned partitions."""
    subscription = read_subscription(part.protocols[0][1])
    journal = Journal(group)
    before = take_place(journal, found, member_id, rejoins=not request.member_id)
    updated = attrs.evolve(
        before,
        instance_id=request.group_instance_id,
        rack_id=subscription.rack_id,
        client_id=received.client_id,
        client_host=received.client_host,
        topics=tuple(sorted(set(subscription.topics))),
        regex="",
        rebalance_timeout_ms=_rebalance_timeout(request),
        assignor=None,
        classic=part,
    )
    if member_id not in group.members or updated.metadata_fields != before.metadata_fields:
        journal.set_metadata(updated)
    advance(journal, updated.topics != before.topics)
    after = settle(journal, updated, with_ids(group, subscription.owned_partitions))
    journal.write()
    _joined(group, after)
    return after


def _supported(
    group: ConsumerGroupMetadata, member_id: str, protocol_type: str, part: HostedClassicMember
) -> bool:
    """Whether every other classic member supports one of its protocols."""
    others = [
        dict(other.classic.protocols)
        for other in group.members.values()
        if other.classic is not None and other.member_id != member_id
    ]
    common = any(all(name in other for other in others) for name, _ in part.protocols)
    return protocol_type == PROTOCOL_TYPE and common


def _find(group: ConsumerGroupMetadata, request: JoinGroupRequest) -> ConsumerGroupMember | None:
    """Return the member, or the static one that it replaces; None for a new one. Raise ApiError."""
    if request.group_instance_id is None:
        return group.members.get(request.member_id)
    if request.member_id:
        return known_member(group, request.member_id, request.group_instance_id)
    return group.static_member(request.group_instance_id)


def _rebalance_timeout(request: JoinGroupRequest) -> int:
    return request.session_timeout_ms if request.rebalance_timeout_ms < 0 else request.rebalance_timeout_ms


def _joined(group: ConsumerGroupMetadata, member: ConsumerGroupMember) -> None:
    restart_session_timer(group, member)
    group.timers.stop(member.member_id, MemberTimerKind.JOIN)
    late = partial(expire_member, group, member.member_id)
    group.timers.start(member.member_id, MemberTimerKind.SYNC, member.rebalance_timeout_ms, late)


# --- SyncGroup


def sync(group: ConsumerGroupMetadata, request: SyncGroupRequest) -> SyncGroupResponse:
    """Return the coordinator's assignment; the request's assignments are ignored. Raise ApiError."""
    member, part = _classic(group, request.member_id, request.group_instance_id)
    name, subscription = part.protocols[0]
    if request.protocol_type not in (None, PROTOCOL_TYPE) or request.protocol_name not in (None, name):
        raise ApiError(INCONSISTENT_GROUP_PROTOCOL)
    _check_generation(member, request.generation_id)
    if group.epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        _start_join_timer(group, member)
        raise ApiError(REBALANCE_IN_PROGRESS)
    group.timers.stop(member.member_id, MemberTimerKind.SYNC)
    restart_session_timer(group, member)
    return SyncGroupResponse(
        protocol_type=PROTOCOL_TYPE,
        protocol_name=name,
        assignment=write_assignment(group, member.assigned, subscription),
    )


# --- Heartbeat and LeaveGroup


def heartbeat(group: ConsumerGroupMetadata, request: HeartbeatRequest) -> int:
    """Return the error code of the response. Raise ApiError for an unknown member."""
    member, _ = _classic(group, request.member_id, request.group_instance_id)
    _check_generation(member, request.generation_id)
    restart_session_timer(group, member)
    if not _must_rejoin(group, member):
        return NONE
    _start_join_timer(group, member)
    return REBALANCE_IN_PROGRESS


def _must_rejoin(group: ConsumerGroupMetadata, member: ConsumerGroupMember) -> bool:
    """Whether its epoch is old, it must revoke partitions, or it may get all that it waits for."""
    if member.epoch < group.epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    missing = [one for one in target_of(group, member) if one not in member.assigned]
    waits = member.state is MemberState.UNRELEASED_PARTITIONS
    return waits and not any(one in group.holders for one in missing)


def leave_group(group: ConsumerGroupMetadata, who: MemberIdentity) -> int:
    """Remove a member of either protocol, found by its id or its instance id; return the error code."""
    member_id = who.member_id
    if not member_id and who.group_instance_id is not None:
        holder = group.static_member(who.group_instance_id)
        member_id = "" if holder is None else holder.member_id
    try:
        member = known_member(group, member_id, who.group_instance_id)
    except ApiError as exc:
        return exc.code
    leave.remove(group, [member])
    return NONE


def _classic(
    group: ConsumerGroupMetadata, member_id: str, instance_id: str | None
) -> tuple[ConsumerGroupMember, HostedClassicMember]:
    member = known_member(group, member_id, instance_id)
    if member.classic is None:
        raise ApiError(UNKNOWN_MEMBER_ID)
    return member, member.classic


def _check_generation(member: ConsumerGroupMember, generation: int) -> None:
    if generation != member.epoch:
        raise ApiError(ILLEGAL_GENERATION)


def _start_join_timer(group: ConsumerGroupMetadata, member: ConsumerGroupMember) -> None:
    """Start the rebalance timeout, within which the member must send JoinGroup."""
    if not group.timers.running(member.member_id, MemberTimerKind.JOIN):
        late = partial(expire_member, group, member.member_id)
        group.timers.start(member.member_id, MemberTimerKind.JOIN, member.rebalance_timeout_ms, late)
