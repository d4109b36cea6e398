"""JoinGroup: join a group, or rejoin it with another subscription."""

from __future__ import annotations

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.classic.group import ClassicGroup
from kclient.embedded.groups.classic.records import group_record
from kclient.embedded.groups.coordinator import CONSUMER, NEW_COORDINATOR, CoordinatorGroup, GroupCoordinator
from kclient.embedded.request_context import RequestContext
from kclient.generated.join_group_request import JoinGroupRequest
from kclient.generated.join_group_response import JoinGroupResponse
from kclient.protocol.errors import (
    GROUP_AUTHORIZATION_FAILED,
    GROUP_MAX_SIZE_REACHED,
    INVALID_SESSION_TIMEOUT,
    UNKNOWN_MEMBER_ID,
)


async def handle(context: RequestContext, request: JoinGroupRequest) -> JoinGroupResponse | None:
    """Return the response when the join phase completes."""
    if not context.allowed("READ", f"Group:{request.group_id}"):
        raise ApiError(GROUP_AUTHORIZATION_FAILED)
    coordinator, settings = context.groups, context.state.settings
    found = coordinator.find(request.group_id)
    if not (
        settings.group_min_session_timeout_ms
        <= request.session_timeout_ms
        <= settings.group_max_session_timeout_ms
    ):
        raise ApiError(INVALID_SESSION_TIMEOUT)
    if found is None or (found.kind == CONSUMER and found.empty):
        found = _new(coordinator, found, request)
    response = await found.classic_join(context, request)
    return None if response is None else _named(context, response)


def error_response(context: RequestContext, request: JoinGroupRequest, error: ApiError) -> JoinGroupResponse:
    """Return the error code and the member id of the request, unless it is unauthorized."""
    hidden = error.code in (GROUP_AUTHORIZATION_FAILED, GROUP_MAX_SIZE_REACHED)
    response = JoinGroupResponse(
        error_code=error.code, member_id="" if hidden else request.member_id, protocol_name=None
    )
    return _named(context, response)


def _new(
    coordinator: GroupCoordinator, found: CoordinatorGroup | None, request: JoinGroupRequest
) -> ClassicGroup:
    """For a member without id. An empty group of the other protocol becomes a classic one."""
    if request.member_id:
        raise ApiError(UNKNOWN_MEMBER_ID)
    group = ClassicGroup(coordinator, request.group_id, since_ms=coordinator.broker.state.clock.wall_ms())
    records = []
    if found is not None:
        group.offsets = found.offsets
        records = found.tombstones()
    if coordinator.broker.state.release >= NEW_COORDINATOR:
        records.append(group_record(group, {}))
    if records:
        coordinator.write(request.group_id, records)
    coordinator.groups[request.group_id] = group
    return group


def _named(context: RequestContext, response: JoinGroupResponse) -> JoinGroupResponse:
    """Before version 7 no protocol is an empty name."""
    if context.version < 7 and response.protocol_name is None:
        response.protocol_name = ""
    return response
