"""SyncGroup: the leader sends the assignments, every member gets its own."""

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
    """Return the member's assignment when the leader has sent all. Raise ApiError."""
    member = _validated_member(group, request)
    act = RESPONSES[group.state].sync
    if not isinstance(act, StateAction):
        raise ApiError(act)
    group.pending_sync_members.pop(member.member_id, None)
    if not group.pending_sync_members:
        group.stop_waiting_for_sync()
    if act is StateAction.GIVE_ASSIGNMENT:
        rebalance.keep_alive(group, member)
        return _sync_response(group, member)
    parked = member.park_sync()
    if group.leader == member.member_id:
        await _store_assignments(
            group, parked, {row.member_id: bytes(row.assignment) for row in request.assignments}
        )
    return await parked


def _validated_member(group: ClassicGroupMetadata, request: SyncGroupRequest) -> ClassicGroupMember:
    member = group.present(request.member_id, request.group_instance_id, request.generation_id)
    fields = (request.protocol_type, group.type_of_protocol), (request.protocol_name, group.protocol)
    if any(said is not None and said != known for said, known in fields):
        raise ApiError(INCONSISTENT_GROUP_PROTOCOL)
    return member


async def _store_assignments(
    group: ClassicGroupMetadata, parked: Parked[SyncGroupResponse], assignments: Mapping[str, bytes]
) -> None:
    """Write the assignments (empty for members that the leader omitted), then enter Stable."""
    full = {member_id: assignments.get(member_id, b"") for member_id in group.members}
    generation = group.generation
    failed: ApiError | None = None
    try:
        await _store(group, parked, group_record(group, full))
    except ApiError as exc:
        failed = exc
    if group.state is not ClassicGroupState.COMPLETING or group.generation != generation:
        return
    if failed is not None:
        rebalance.clear_assignments(group, failed.code)
        rebalance.prepare(group, "the assignments could not be written")
        return
    for member in group.members.values():
        member.assignment = full[member.member_id]
    group.enter(ClassicGroupState.STABLE)
    notify_rebalanced(group)
    for member in group.members.values():
        if member.answer_sync(_sync_response(group, member)):
            rebalance.keep_alive(group, member)


async def _store(group: ClassicGroupMetadata, parked: Parked[SyncGroupResponse], record: NewRecord) -> None:
    """Write the record and wait until it is replicated, or a new rebalance answered the leader. Raise ApiError."""
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


def _sync_response(group: ClassicGroupMetadata, member: ClassicGroupMember) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.type_of_protocol, protocol_name=group.protocol, assignment=member.assignment
    )
