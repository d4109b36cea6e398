"""OffsetForLeaderEpoch: where a leader epoch ended, so that a client finds out whether its records are still there."""

from __future__ import annotations

from kclient.embedded.api_error import ApiError
from kclient.embedded.auth import CLUSTER
from kclient.embedded.request_context import RequestContext, check_partition
from kclient.generated.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
)
from kclient.generated.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from kclient.protocol.errors import TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION
from kclient.types import TopicPartition

CONSUMERS_SINCE = 3  # older versions are for brokers


async def handle(
    context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """One response for each partition."""
    topics = []
    for topic in request.topics:
        rows = []
        for one in topic.partitions:
            try:
                rows.append(_partition(context, topic.topic, one))
            except ApiError as exc:
                rows.append(EpochEndOffset(partition=one.partition, error_code=exc.code))
        topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=rows))
    return OffsetForLeaderEpochResponse(topics=topics)


def error_response(
    context: RequestContext, request: OffsetForLeaderEpochRequest, error: ApiError
) -> OffsetForLeaderEpochResponse:
    """Return the error code for every partition."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    EpochEndOffset(partition=one.partition, error_code=error.code) for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _partition(context: RequestContext, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    if not _allowed(context, topic):
        raise ApiError(TOPIC_AUTHORIZATION_FAILED)
    partition = context.state.partition(TopicPartition(topic, asked.partition))
    if partition is None:
        raise ApiError(UNKNOWN_TOPIC_OR_PARTITION)
    if error := check_partition(context, partition, asked.current_leader_epoch):
        raise ApiError(error)
    epoch, end = partition.log.epochs.end_of(asked.leader_epoch, partition.log.end)
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end)


def _allowed(context: RequestContext, topic: str) -> bool:
    if context.version < CONSUMERS_SINCE:
        return context.allowed("CLUSTER_ACTION", CLUSTER)
    return context.allowed("DESCRIBE", f"Topic:{topic}")
