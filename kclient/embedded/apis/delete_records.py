"""DeleteRecords: the log start offset moves up, to the high watermark at most."""

from __future__ import annotations

from typing import Final

from kclient.embedded.api_error import ApiError
from kclient.embedded.log_cleaner import advance_start
from kclient.embedded.request_context import RequestContext, check_partition
from kclient.generated.delete_records_request import DeleteRecordsPartition, DeleteRecordsRequest
from kclient.generated.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kclient.protocol.errors import (
    INVALID_TOPIC_EXCEPTION,
    OFFSET_OUT_OF_RANGE,
    POLICY_VIOLATION,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kclient.types import TopicPartition

HIGH_WATERMARK: Final = -1


async def handle(context: RequestContext, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    """One result for each partition."""
    topics = []
    for topic in request.topics:
        rows = []
        for one in topic.partitions:
            try:
                rows.append(_delete(context, topic.name, one))
            except ApiError as exc:
                rows.append(_failed(one, exc.code))
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=rows))
    return DeleteRecordsResponse(topics=topics)


def error_response(
    context: RequestContext, request: DeleteRecordsRequest, error: ApiError
) -> DeleteRecordsResponse:
    """Return the error code for every partition."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name, partitions=[_failed(one, error.code) for one in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _failed(asked: DeleteRecordsPartition, code: int) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=-1, error_code=code
    )


def _delete(
    context: RequestContext, topic: str, asked: DeleteRecordsPartition
) -> DeleteRecordsPartitionResult:
    if not context.allowed("DELETE", f"Topic:{topic}"):
        raise ApiError(TOPIC_AUTHORIZATION_FAILED)
    partition = context.state.partition(TopicPartition(topic, asked.partition_index))
    if partition is None:
        raise ApiError(UNKNOWN_TOPIC_OR_PARTITION)
    if partition.topic.internal:
        raise ApiError(INVALID_TOPIC_EXCEPTION)
    if error := check_partition(context, partition, -1):
        raise ApiError(error)
    if "delete" not in partition.topic.config.get("cleanup.policy", "delete"):
        raise ApiError(POLICY_VIOLATION)
    before = partition.high_watermark if asked.offset == HIGH_WATERMARK else asked.offset
    if not 0 <= before <= partition.high_watermark:
        raise ApiError(OFFSET_OUT_OF_RANGE)
    advance_start(context.state, partition, before)
    return DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=partition.log.start
    )
