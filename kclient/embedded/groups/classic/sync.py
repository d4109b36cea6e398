"""SyncGroup: the leader brings the plan, everybody gets a part of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.classic import rebalance
from kclient.embedded.groups.classic.metadata import (
    RESPONSES,
    ClassicGroupMember,
    ClassicGroupMetadata,
    ClassicGroupState,
    Parked,
    StateAction,
    notify_rebalanced,
)
from kclient.embedded.groups.classic.records import group_record
from kclient.generated.sync_group_request import SyncGroupRequest
from kclient.generated.sync_group_response import SyncGroupResponse
from kclient.protocol.errors import (
    INCONSISTENT_GROUP_PROTOCOL,
)
from kclient.records.writer import NewRecord


async def sync(group: ClassicGroupMetadata, request: SyncGroupRequest) -> SyncGroupResponse | None:
    """Give the member its part, as soon as there is a plan. Raises ApiError."""
    member = _checked(group, request)
    act = RESPONSES[group.state].sync
    if not isinstance(act, StateAction):
        raise ApiError(act)
    group.unsynced.pop(member.member_id, None)
    if not group.unsynced:
        group.stop_planning()
    if act is StateAction.GIVE_ASSIGNMENT:
        rebalance.keep_alive(group, member)
        return _part(group, member)
    parked = member.park_sync()
    if group.leader == member.member_id:
        await _bring(group, parked, {row.member_id: bytes(row.assignment) for row in request.assignments})
    return await parked


def _checked(group: ClassicGroupMetadata, request: SyncGroupRequest) -> ClassicGroupMember:
    member = group.present(request.member_id, request.group_instance_id, request.generation_id)
    told = (request.protocol_type, group.type_of_protocol), (request.protocol_name, group.protocol)
    if any(said is not None and said != known for said, known in told):
        raise ApiError(INCONSISTENT_GROUP_PROTOCOL)
    return member


async def _bring(
    group: ClassicGroupMetadata, parked: Parked[SyncGroupResponse], plan: Mapping[str, bytes]
) -> None:
    """Write the plan, members that the leader forgot with an empty part; then go Stable."""
    full = {member_id: plan.get(member_id, b"") for member_id in group.members}
    generation = group.generation
    failed: ApiError | None = None
    try:
        await _store(group, parked, group_record(group, full))
    except ApiError as exc:
        failed = exc
    if group.state is not ClassicGroupState.COMPLETING or group.generation != generation:
        return
    if failed is not None:
        rebalance.drop_plan(group, failed.code)
        rebalance.prepare(group, "the plan could not be written")
        return
    for member in group.members.values():
        member.assignment = full[member.member_id]
    group.enter(ClassicGroupState.STABLE)
    notify_rebalanced(group)
    for member in group.members.values():
        if member.answer_sync(_part(group, member)):
            rebalance.keep_alive(group, member)


async def _store(group: ClassicGroupMetadata, parked: Parked[SyncGroupResponse], record: NewRecord) -> None:
    """Until it is replicated, or the leader has its answer because the plan was overtaken. Raises ApiError."""
    stored = group.coordinator.write(group.group_id, [record])
    replicated = group.coordinator.replicated(group.group_id, stored)
    storing = asyncio.get_running_loop().create_task(replicated, name=f"store {group.group_id}")
    either: list[asyncio.Future[Any]] = [parked, storing]
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    finally:
        storing.cancel()
    if storing.done():
        storing.result()


def _part(group: ClassicGroupMetadata, member: ClassicGroupMember) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.type_of_protocol, protocol_name=group.protocol, assignment=member.assignment
    )
