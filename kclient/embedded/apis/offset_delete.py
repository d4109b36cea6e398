"""OffsetDelete (KIP-496): delete single offsets of topics that no member subscribes to."""

from __future__ import annotations

from kclient.embedded.api_error import ApiError
from kclient.embedded.request_context import RequestContext
from kclient.generated.offset_delete_request import OffsetDeleteRequest
from kclient.generated.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kclient.protocol.errors import (
    GROUP_AUTHORIZATION_FAILED,
    GROUP_ID_NOT_FOUND,
    GROUP_SUBSCRIBED_TO_TOPIC,
    NONE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kclient.types import TopicPartition


async def handle(context: RequestContext, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """Every partition with its error; the group's own error comes without them."""
    if not context.allowed("DELETE", f"Group:{request.group_id}"):
        raise ApiError(GROUP_AUTHORIZATION_FAILED)
    asked = [
        TopicPartition(topic.name, row.partition_index)
        for topic in request.topics
        for row in topic.partitions
    ]
    codes = {tp: _problem(context, tp) for tp in asked}
    codes |= _delete(context, request.group_id, [tp for tp in asked if codes[tp] == NONE])
    return OffsetDeleteResponse(topics=_topics(codes))


def error_response(
    context: RequestContext, request: OffsetDeleteRequest, error: ApiError
) -> OffsetDeleteResponse:
    """Return the error code at the top level."""
    return OffsetDeleteResponse(error_code=error.code)


def _problem(context: RequestContext, tp: TopicPartition) -> int:
    if not context.allowed("READ", f"Topic:{tp.topic}"):
        return TOPIC_AUTHORIZATION_FAILED
    return NONE if context.state.partition(tp) is not None else UNKNOWN_TOPIC_OR_PARTITION


def _delete(
    context: RequestContext, group_id: str, partitions: list[TopicPartition]
) -> dict[TopicPartition, int]:
    """Delete the offsets. Raise ApiError for the whole group."""
    group = context.groups.find(group_id, nameless=True)
    if group is None:
        raise ApiError(GROUP_ID_NOT_FOUND)
    group.check_offset_delete()
    subscribed = [tp for tp in partitions if group.subscribes_to(tp.topic)]
    free = [tp for tp in partitions if tp not in subscribed]
    context.groups.delete_offsets(group, free)
    return dict.fromkeys(free, NONE) | dict.fromkeys(subscribed, GROUP_SUBSCRIBED_TO_TOPIC)


def _topics(codes: dict[TopicPartition, int]) -> list[OffsetDeleteResponseTopic]:
    topics: dict[str, OffsetDeleteResponseTopic] = {}
    for tp, code in codes.items():
        row = topics.setdefault(tp.topic, OffsetDeleteResponseTopic(name=tp.topic))
        row.partitions.append(OffsetDeleteResponsePartition(partition_index=tp.partition, error_code=code))
    return list(topics.values())
