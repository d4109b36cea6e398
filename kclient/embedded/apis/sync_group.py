"""SyncGroup: the leader brings the plan, every member gets its part."""

from __future__ import annotations

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.coordinator import NEW_COORDINATOR
from kclient.embedded.request_context import RequestContext
from kclient.generated.sync_group_request import SyncGroupRequest
from kclient.generated.sync_group_response import SyncGroupResponse
from kclient.protocol.errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    GROUP_AUTHORIZATION_FAILED,
    INCONSISTENT_GROUP_PROTOCOL,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)


async def handle(call: RequestContext, request: SyncGroupRequest) -> SyncGroupResponse | None:
    """Answered when the leader's plan is stored."""
    if call.version >= 5 and (request.protocol_type is None or request.protocol_name is None):
        raise ApiError(INCONSISTENT_GROUP_PROTOCOL)
    if not call.allowed("READ", f"Group:{request.group_id}"):
        raise ApiError(GROUP_AUTHORIZATION_FAILED)
    group = call.broker.groups.find(request.group_id)
    if group is None:
        raise ApiError(UNKNOWN_MEMBER_ID)
    return await group.classic_sync(call, request)


def refuse(call: RequestContext, request: SyncGroupRequest, refused: ApiError) -> SyncGroupResponse:
    """Coordinators up to 3.9 send a member that syncs while they load back to JoinGroup."""
    loading = refused.code == COORDINATOR_LOAD_IN_PROGRESS
    old = call.state.release < NEW_COORDINATOR
    return SyncGroupResponse(error_code=REBALANCE_IN_PROGRESS if loading and old else refused.code)
