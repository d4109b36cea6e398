"""ConsumerGroupDescribe: groups of the consumer protocol, with what their members own and should own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kclient.embedded.api_error import ApiError
from kclient.embedded.auth import group_operations
from kclient.embedded.groups.consumer_protocol.heartbeat import check_enabled, known_group
from kclient.embedded.groups.consumer_protocol.member import ConsumerGroupMember, TopicIdPartition, by_topic
from kclient.embedded.groups.consumer_protocol.metadata import ConsumerGroupMetadata
from kclient.embedded.request_context import RequestContext
from kclient.generated.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kclient.generated.consumer_group_describe_response import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    TopicPartitions,
)
from kclient.generated.consumer_group_describe_response import Member as DescribedMember
from kclient.protocol.errors import GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED

CLASSIC: Final = 0
CONSUMER: Final = 1
UNKNOWN: Final = -1
MEMBER_TYPES: Final = 1  # the version from which on members have a type
UNSEEN_TOPIC: Final = "The group has described topic(s) that the client is not authorized to describe."


async def handle(
    context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    """Return each group, in the order of the request."""
    check_enabled(context.state.release)
    return ConsumerGroupDescribeResponse(
        groups=[_one(context, request, group_id) for group_id in request.group_ids]
    )


def error_response(
    context: RequestContext, request: ConsumerGroupDescribeRequest, error: ApiError
) -> ConsumerGroupDescribeResponse:
    """Return the error code for every group."""
    return ConsumerGroupDescribeResponse(
        groups=[_failed(group_id, error.code, error.message) for group_id in request.group_ids]
    )


def _one(context: RequestContext, request: ConsumerGroupDescribeRequest, group_id: str) -> DescribedGroup:
    if not context.allowed("DESCRIBE", f"Group:{group_id}"):
        return _failed(group_id, GROUP_AUTHORIZATION_FAILED)
    try:
        group = known_group(context.groups, group_id, "Group")
    except ApiError as exc:
        return _failed(group_id, exc.code, exc.message)
    if not all(context.allowed("DESCRIBE", f"Topic:{name}") for name in _topics_shown(group)):
        return _failed(group_id, TOPIC_AUTHORIZATION_FAILED, UNSEEN_TOPIC)
    row = DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
        members=[_member(context, group, member) for member in group.members.values()],
    )
    if request.include_authorized_operations:
        operations = group_operations(context.state.release)
        row.authorized_operations = context.authorized_operations(operations, f"Group:{group_id}")
    return row


def _failed(group_id: str, code: int, message: str | None = None) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=code, error_message=message)


def _topics_shown(group: ConsumerGroupMetadata) -> list[str]:
    return sorted({name for member in group.members.values() for name in group.topics_of(member)})


def _member(
    context: RequestContext, group: ConsumerGroupMetadata, member: ConsumerGroupMember
) -> DescribedMember:
    kind = CONSUMER if member.classic is None else CLASSIC
    return DescribedMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(group, member.holds),
        target_assignment=_assignment(group, group.targets.get(member.member_id, ())),
        member_type=kind if context.version >= MEMBER_TYPES else UNKNOWN,
    )


def _assignment(group: ConsumerGroupMetadata, partitions: Iterable[TopicIdPartition]) -> Assignment:
    """Topics that are gone are left out: they have no name any more."""
    names = {topic.topic_id: topic.name for topic in group.cluster.topics.values()}
    rows = by_topic(partitions).items()
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=names[topic_id], partitions=numbers)
            for topic_id, numbers in rows
            if topic_id in names
        ]
    )
