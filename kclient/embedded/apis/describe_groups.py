"""DescribeGroups: state and members of classic groups."""

from __future__ import annotations

from typing import Final

from kclient.embedded.api_error import ApiError
from kclient.embedded.auth import group_operations
from kclient.embedded.groups.classic.group import ClassicGroup
from kclient.embedded.groups.classic.metadata import ClassicGroupMember, ClassicGroupState
from kclient.embedded.groups.coordinator import CoordinatorGroup
from kclient.embedded.request_context import RequestContext
from kclient.generated.describe_groups_request import DescribeGroupsRequest
from kclient.generated.describe_groups_response import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from kclient.protocol.errors import GROUP_AUTHORIZATION_FAILED, GROUP_ID_NOT_FOUND

SAYS_NOT_FOUND: Final = 6  # the first version in which an unknown group is an error


async def handle(context: RequestContext, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    """Each group with an error of its own."""
    return DescribeGroupsResponse(
        groups=[_describe(context, request, group_id) for group_id in request.groups]
    )


def error_response(
    context: RequestContext, request: DescribeGroupsRequest, error: ApiError
) -> DescribeGroupsResponse:
    """Return the error code for every group."""
    return DescribeGroupsResponse(
        groups=[DescribedGroup(group_id=group_id, error_code=error.code) for group_id in request.groups]
    )


def _describe(context: RequestContext, request: DescribeGroupsRequest, group_id: str) -> DescribedGroup:
    if not context.allowed("DESCRIBE", f"Group:{group_id}"):
        return DescribedGroup(group_id=group_id, error_code=GROUP_AUTHORIZATION_FAILED)
    try:
        group = context.groups.find(group_id)
    except ApiError as exc:
        return DescribedGroup(group_id=group_id, error_code=exc.code)
    row = _row(group) if isinstance(group, ClassicGroup) else _unknown(context, group_id, group)
    if request.include_authorized_operations and context.version >= 3:
        operations = group_operations(context.state.release)
        row.authorized_operations = context.authorized_operations(operations, f"Group:{group_id}")
    return row


def _unknown(context: RequestContext, group_id: str, group: CoordinatorGroup | None) -> DescribedGroup:
    """A group of the other protocol is unknown to those who ask for classic ones."""
    row = DescribedGroup(group_id=group_id, group_state=ClassicGroupState.DEAD.value)
    if context.version >= SAYS_NOT_FOUND:
        row.error_code = GROUP_ID_NOT_FOUND
        kind = "not found" if group is None else "not a classic group"
        row.error_message = f"Group {group_id} {kind if group is None else 'is ' + kind}."
    return row


def _row(group: ClassicGroup) -> DescribedGroup:
    """Only a stable group shows its protocol, and what members said and got."""
    stable = group.state is ClassicGroupState.STABLE
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if stable else "",
        members=[_member(member, group.protocol, stable) for member in group.members.values()],
    )


def _member(member: ClassicGroupMember, protocol: str | None, stable: bool) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata(protocol) if stable else b"",
        member_assignment=member.assignment if stable else b"",
    )
