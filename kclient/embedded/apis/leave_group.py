"""LeaveGroup: one member leaves, or from version 3 on several are removed."""

from __future__ import annotations

from kclient.embedded.api_error import ApiError
from kclient.embedded.request_context import RequestContext
from kclient.generated.leave_group_request import LeaveGroupRequest, MemberIdentity
from kclient.generated.leave_group_response import LeaveGroupResponse, MemberResponse
from kclient.protocol.errors import GROUP_AUTHORIZATION_FAILED, NONE, UNKNOWN_MEMBER_ID


async def handle(context: RequestContext, request: LeaveGroupRequest) -> LeaveGroupResponse:
    """A result for each member; before version 3 the only one's is the whole response."""
    if not context.allowed("READ", f"Group:{request.group_id}"):
        raise ApiError(GROUP_AUTHORIZATION_FAILED)
    group = context.groups.find(request.group_id)
    whom = request.members if context.version >= 3 else [MemberIdentity(member_id=request.member_id)]
    codes = [UNKNOWN_MEMBER_ID if group is None else group.classic_leave(context, who) for who in whom]
    if context.version < 3:
        return LeaveGroupResponse(error_code=codes[0])
    rows = [
        MemberResponse(member_id=who.member_id, group_instance_id=who.group_instance_id, error_code=code)
        for who, code in zip(whom, codes, strict=True)
    ]
    return LeaveGroupResponse(error_code=NONE, members=rows)


def error_response(
    context: RequestContext, request: LeaveGroupRequest, error: ApiError
) -> LeaveGroupResponse:
    """Return the error code at the top level, without members."""
    return LeaveGroupResponse(error_code=error.code)
