"""ConsumerGroupHeartbeat: members of the consumer protocol join, stay and leave with this one request (KIP-848)."""

from __future__ import annotations

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.consumer_protocol.heartbeat import (
    check_enabled,
    heartbeat,
    known_group,
)
from kclient.embedded.groups.consumer_protocol.journal import Journal
from kclient.embedded.groups.consumer_protocol.leave import leave
from kclient.embedded.groups.consumer_protocol.member import JOINING
from kclient.embedded.groups.consumer_protocol.upgrade import group_to_join
from kclient.embedded.groups.consumer_protocol.validation import check_form
from kclient.embedded.request_context import RequestContext
from kclient.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kclient.generated.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kclient.protocol.errors import GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED


async def handle(
    context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    """Check authorization, form and coordinator, then handle the heartbeat in the group."""
    check_enabled(context.state.release)
    if not context.allowed("READ", f"Group:{request.group_id}"):
        raise ApiError(GROUP_AUTHORIZATION_FAILED)
    if not all(context.allowed("DESCRIBE", f"Topic:{name}") for name in request.subscribed_topic_names or ()):
        raise ApiError(TOPIC_AUTHORIZATION_FAILED)
    check_form(request, context.version, context.state.settings.group_consumer_assignors.split(","))
    coordinator = context.groups
    coordinator.check(request.group_id)
    if request.member_epoch < JOINING:
        return leave(known_group(coordinator, request.group_id, "Group"), request)
    if request.member_epoch > JOINING:
        return heartbeat(
            Journal(known_group(coordinator, request.group_id, "Consumer group")), context, request
        )
    entered = group_to_join(coordinator, request.group_id)
    response = heartbeat(entered.journal, context, request)
    entered.keep()
    return response


def error_response(
    context: RequestContext, request: ConsumerGroupHeartbeatRequest, error: ApiError
) -> ConsumerGroupHeartbeatResponse:
    """Return the error code and message at the top level."""
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
