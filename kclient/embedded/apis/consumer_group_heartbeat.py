"""ConsumerGroupHeartbeat: the one request by which members of the consumer protocol join, stay and leave (KIP-848)."""

from __future__ import annotations

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.consumer_protocol.heartbeat import (
    check_enabled,
    group_to_join,
    heartbeat,
    known_group,
)
from kclient.embedded.groups.consumer_protocol.journal import Journal
from kclient.embedded.groups.consumer_protocol.leave import leave
from kclient.embedded.groups.consumer_protocol.member import JOINING
from kclient.embedded.groups.consumer_protocol.validation import check_form
from kclient.embedded.request_context import RequestContext
from kclient.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kclient.generated.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kclient.protocol.errors import GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED


async def handle(
    call: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    """Rights, then form, then the coordinator, then the group."""
    check_enabled(call.state.release)
    if not call.allowed("READ", f"Group:{request.group_id}"):
        raise ApiError(GROUP_AUTHORIZATION_FAILED)
    if not all(call.allowed("DESCRIBE", f"Topic:{name}") for name in request.subscribed_topic_names or ()):
        raise ApiError(TOPIC_AUTHORIZATION_FAILED)
    check_form(request, call.version, call.state.settings.group_consumer_assignors.split(","))
    coordinator = call.broker.groups
    coordinator.check(request.group_id)
    if request.member_epoch < JOINING:
        return leave(known_group(coordinator, request.group_id, "Group"), request)
    if request.member_epoch > JOINING:
        return heartbeat(Journal(known_group(coordinator, request.group_id, "Consumer group")), call, request)
    entered = group_to_join(coordinator, request.group_id)
    answer = heartbeat(entered.journal, call, request)
    entered.keep()
    return answer


def refuse(
    call: RequestContext, request: ConsumerGroupHeartbeatRequest, refused: ApiError
) -> ConsumerGroupHeartbeatResponse:
    """At the top, with the reason in words."""
    return ConsumerGroupHeartbeatResponse(error_code=refused.code, error_message=refused.message)
