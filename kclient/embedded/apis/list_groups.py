"""ListGroups: the groups of this broker, filtered by state and type."""

from __future__ import annotations

from kclient.embedded.api_error import ApiError
from kclient.embedded.auth import CLUSTER
from kclient.embedded.groups.coordinator import NEW_COORDINATOR, CoordinatorGroup
from kclient.embedded.request_context import RequestContext
from kclient.generated.list_groups_request import ListGroupsRequest
from kclient.generated.list_groups_response import ListedGroup, ListGroupsResponse
from kclient.protocol.errors import COORDINATOR_LOAD_IN_PROGRESS, NONE


async def handle(context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    """Return the groups that the client may DESCRIBE; all of them if it may DESCRIBE the cluster.

    While the coordinator loads, releases up to 3.9 list what they have next to the error.
    """
    coordinator = context.groups
    if coordinator.loading and context.state.release >= NEW_COORDINATOR:
        raise ApiError(COORDINATOR_LOAD_IN_PROGRESS)
    everything = context.allowed("DESCRIBE", CLUSTER)
    groups = [
        _row(group)
        for group in coordinator.groups.values()
        if _wanted(context, group, request)
        and (everything or context.allowed("DESCRIBE", f"Group:{group.group_id}"))
    ]
    code = COORDINATOR_LOAD_IN_PROGRESS if coordinator.loading else NONE
    return ListGroupsResponse(error_code=code, groups=groups)


def error_response(
    context: RequestContext, request: ListGroupsRequest, error: ApiError
) -> ListGroupsResponse:
    """Return the error code at the top level."""
    return ListGroupsResponse(error_code=error.code)


def _wanted(context: RequestContext, group: CoordinatorGroup, request: ListGroupsRequest) -> bool:
    """An empty filter lets everything through. Case counts for states up to 3.9, else it does not."""
    folded = str.lower if context.state.release >= NEW_COORDINATOR else str
    states = [folded(name) for name in request.states_filter]
    types = [name.lower() for name in request.types_filter]
    return (not states or folded(group.state_name) in states) and (not types or group.kind in types)


def _row(group: CoordinatorGroup) -> ListedGroup:
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=group.state_name,
        group_type=group.kind,
    )
