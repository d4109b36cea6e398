"""DeleteGroups: delete groups without members, and their offsets."""

from __future__ import annotations

from kclient.embedded.api_error import ApiError
from kclient.embedded.request_context import RequestContext
from kclient.generated.delete_groups_request import DeleteGroupsRequest
from kclient.generated.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from kclient.protocol.errors import (
    GROUP_AUTHORIZATION_FAILED,
    GROUP_ID_NOT_FOUND,
    NON_EMPTY_GROUP,
    NONE,
)


async def handle(context: RequestContext, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    """Each group with an error of its own."""
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=_delete(context, group_id))
            for group_id in dict.fromkeys(request.groups_names)
        ]
    )


def error_response(
    context: RequestContext, request: DeleteGroupsRequest, error: ApiError
) -> DeleteGroupsResponse:
    """Return the error code for every group."""
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=error.code)
            for group_id in request.groups_names
        ]
    )


def _delete(context: RequestContext, group_id: str) -> int:
    if not context.allowed("DELETE", f"Group:{group_id}"):
        return GROUP_AUTHORIZATION_FAILED
    try:
        group = context.groups.find(group_id)
        if group is None:
            return GROUP_ID_NOT_FOUND
        if not group.empty:
            return NON_EMPTY_GROUP
        context.groups.forget(group)
    except ApiError as exc:
        return exc.code
    return NONE
