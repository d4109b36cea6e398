"""Validation of a heartbeat, its form and its member epoch.

`check_form` validates the request alone, the others compare it with the group. The messages are those of brokers.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.consumer_protocol.member import (
    JOINING,
    LEAVING,
    LEAVING_TEMPORARILY,
    ConsumerGroupMember,
    TopicIdPartition,
)
from kclient.embedded.groups.consumer_protocol.metadata import ConsumerGroupMetadata
from kclient.embedded.releases import Release
from kclient.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kclient.protocol.errors import (
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    GROUP_MAX_SIZE_REACHED,
    INVALID_REQUEST,
    UNKNOWN_MEMBER_ID,
    UNRELEASED_INSTANCE_ID,
    UNSUPPORTED_ASSIGNOR,
)

CLIENT_MADE_IDS: Final = 1  # the request version in which the client generates its member id (KIP-1082)
REJOINING_SINCE: Final = Release.parse("4.3")  # a known member may rejoin with epoch 0


def check_form(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Collection[str]) -> None:
    """Raise ApiError for a request that is invalid for every group."""
    epoch = request.member_epoch
    if version >= CLIENT_MADE_IDS or epoch > JOINING or epoch == LEAVING:
        _not_empty(request.member_id, "MemberId")
    _not_empty(request.group_id, "GroupId")
    _not_empty(request.instance_id, "InstanceId")
    _not_empty(request.rack_id, "RackId")
    if epoch == JOINING:
        _check_joining(request)
    elif epoch == LEAVING_TEMPORARILY and request.instance_id is None:
        raise ApiError(INVALID_REQUEST, "InstanceId can't be null.")
    elif epoch < LEAVING_TEMPORARILY:
        raise ApiError(INVALID_REQUEST, "MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise ApiError(
            UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}.",
        )


def _not_empty(text: str | None, field: str) -> None:
    if text == "":
        raise ApiError(INVALID_REQUEST, f"{field} can't be empty.")


def _check_joining(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise ApiError(INVALID_REQUEST, "RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise ApiError(INVALID_REQUEST, "TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        text = "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
        raise ApiError(INVALID_REQUEST, text)


def check_group_size(group: ConsumerGroupMetadata, member_id: str) -> None:
    """Raise ApiError if the group is full."""
    size = group.cluster.settings.group_consumer_max_size
    if len(group.members) >= size and member_id not in group.members:
        text = f"The consumer group has reached its maximum capacity of {size} members."
        raise ApiError(GROUP_MAX_SIZE_REACHED, text)


def known_member(
    group: ConsumerGroupMetadata, member_id: str, instance_id: str | None
) -> ConsumerGroupMember:
    """Return the member. Raise ApiError if it is unknown, or another one has its instance id."""
    if instance_id is None:
        member = group.members.get(member_id)
        if member is None:
            text = f"Member {member_id} is not a member of group {group.group_id}."
            raise ApiError(UNKNOWN_MEMBER_ID, text)
        return member
    member = group.static_member(instance_id)
    if member is None:
        raise ApiError(UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        text = f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}."
        raise ApiError(FENCED_INSTANCE_ID, text)
    return member


def check_released(member: ConsumerGroupMember, joining: str) -> None:
    """Raise ApiError unless the static member with the instance id has left temporarily."""
    if member.epoch != LEAVING_TEMPORARILY:
        text = (
            f"Static member {joining} with instance id {member.instance_id} cannot join the group "
            f"because the instance id is owned by {member.member_id} member."
        )
        raise ApiError(UNRELEASED_INSTANCE_ID, text)


def check_epoch(
    group: ConsumerGroupMetadata,
    member: ConsumerGroupMember,
    epoch: int,
    owned: Collection[TopicIdPartition] | None,
) -> None:
    """Raise ApiError for an epoch that is not the member's.

    The previous epoch is accepted from a member that owns no revoked partition: it has lost the last response.
    """
    if epoch == JOINING and group.cluster.release >= REJOINING_SINCE:
        return
    lost_a_response = (
        epoch == member.previous_epoch and owned is not None and all(one in member.assigned for one in owned)
    )
    if epoch > member.epoch or (epoch < member.epoch and not lost_a_response):
        size = "greater" if epoch > member.epoch else "smaller"
        text = (
            f"The consumer group member has a {size} member epoch ({epoch}) than the one known by the group "
            f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin."
        )
        raise ApiError(FENCED_MEMBER_EPOCH, text)
