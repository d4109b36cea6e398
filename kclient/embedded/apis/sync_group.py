"""SyncGroup: the leader sends the assignments, every member gets its own."""

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


async def handle(context: RequestContext, request: SyncGroupRequest) -> SyncGroupResponse | None:
    """Return the assignment when the leader's assignments are stored."""
    if context.version >= 5 and (request.protocol_type is None or request.protocol_name is None):
        raise ApiError(INCONSISTENT_GROUP_PROTOCOL)
    if not context.allowed("READ", f"Group:{request.group_id}"):
        raise ApiError(GROUP_AUTHORIZATION_FAILED)
    group = context.groups.find(request.group_id)
    if group is None:
        raise ApiError(UNKNOWN_MEMBER_ID)
    return await group.classic_sync(context, request)


def error_response(context: RequestContext, request: SyncGroupRequest, error: ApiError) -> SyncGroupResponse:
    """Coordinators up to 3.9 send a member that syncs while they load back to JoinGroup."""
    loading = error.code == COORDINATOR_LOAD_IN_PROGRESS
    old = context.state.release < NEW_COORDINATOR
    return SyncGroupResponse(error_code=REBALANCE_IN_PROGRESS if loading and old else error.code)
