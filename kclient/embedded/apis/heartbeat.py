"""Heartbeat: restart the member's session; the response says whether it must rejoin."""

from __future__ import annotations

from kclient.embedded.api_error import ApiError
from kclient.embedded.request_context import RequestContext
from kclient.generated.heartbeat_request import HeartbeatRequest
from kclient.generated.heartbeat_response import HeartbeatResponse
from kclient.protocol.errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    GROUP_AUTHORIZATION_FAILED,
    NONE,
    UNKNOWN_MEMBER_ID,
)


async def handle(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
    """Return the error code for the state of the group."""
    if not context.allowed("READ", f"Group:{request.group_id}"):
        raise ApiError(GROUP_AUTHORIZATION_FAILED)
    group = context.groups.find(request.group_id)
    if group is None:
        raise ApiError(UNKNOWN_MEMBER_ID)
    return HeartbeatResponse(error_code=group.classic_heartbeat(context, request))


def error_response(context: RequestContext, request: HeartbeatRequest, error: ApiError) -> HeartbeatResponse:
    """Return the error code; none while the coordinator is loading."""
    loading = error.code == COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=NONE if loading else error.code)
