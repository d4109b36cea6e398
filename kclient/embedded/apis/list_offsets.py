"""ListOffsets: where a log begins and ends, and which record was written when."""

from __future__ import annotations

from collections import Counter
from typing import Final

from kclient.embedded import offset_lookup
from kclient.embedded.api_error import ApiError
from kclient.embedded.releases import Release, versions_of
from kclient.embedded.request_context import RequestContext, check_partition
from kclient.generated.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest
from kclient.generated.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kclient.protocol.errors import (
    INVALID_REQUEST,
    LEADER_NOT_AVAILABLE,
    OFFSET_NOT_AVAILABLE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
)
from kclient.types import TopicPartition

DEBUGGING_REPLICA: Final = -2
LIST_OFFSETS: Final = 2
WORDS_CHECKED_SINCE: Final = Release.parse("4.0")
REPEATED_ONCE_SINCE: Final = Release.parse("3.0")
SINCE: Final = {-1: 0, -2: 0, -3: 7, -4: 8, -5: 9, -6: 11}  # what has a meaning of its own → version


async def handle(context: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """One response for each partition."""
    counted = Counter(
        TopicPartition(topic.name, one.partition_index)
        for topic in request.topics
        for one in topic.partitions
    )
    topics = []
    for topic in request.topics:
        rows: dict[int, list[ListOffsetsPartitionResponse]] = {}
        for one in topic.partitions:
            tp = TopicPartition(topic.name, one.partition_index)
            repeated = counted[tp] > 1 and context.version >= 1
            try:
                row = (
                    _failed(context, one, INVALID_REQUEST)
                    if repeated
                    else _partition(context, request, tp, one)
                )
            except ApiError as exc:
                row = _failed(context, one, exc.code)
            rows.setdefault(one.partition_index, []).append(row)
        partitions = [
            row
            for same in rows.values()
            for row in (same if context.state.release < REPEATED_ONCE_SINCE else same[:1])
        ]
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
    return ListOffsetsResponse(topics=topics)


def error_response(
    context: RequestContext, request: ListOffsetsRequest, error: ApiError
) -> ListOffsetsResponse:
    """Return the error code for every partition."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name, partitions=[_failed(context, one, error.code) for one in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _failed(context: RequestContext, asked: ListOffsetsPartition, code: int) -> ListOffsetsPartitionResponse:
    if code == OFFSET_NOT_AVAILABLE and context.version < 5:
        code = LEADER_NOT_AVAILABLE
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=code)


def _partition(
    context: RequestContext, request: ListOffsetsRequest, tp: TopicPartition, asked: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    if not context.allowed("DESCRIBE", f"Topic:{tp.topic}"):
        raise ApiError(TOPIC_AUTHORIZATION_FAILED)
    partition = context.state.partition(tp)
    if partition is None:
        raise ApiError(UNKNOWN_TOPIC_OR_PARTITION)
    is_known = asked.timestamp >= 0 or context.version >= SINCE.get(asked.timestamp, 2**15)
    if context.state.release >= WORDS_CHECKED_SINCE and not is_known:
        raise ApiError(UNSUPPORTED_VERSION)
    leader_only = request.replica_id != DEBUGGING_REPLICA
    if error := check_partition(context, partition, asked.current_leader_epoch, leader_only):
        raise ApiError(error)
    isolation = request.isolation_level if request.replica_id == -1 else None
    row = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
    if context.version == 0:
        now = context.state.clock.wall_ms()
        row.old_style_offsets = offset_lookup.old_style(
            partition, asked.timestamp, asked.max_num_offsets, isolation, now
        )
        return row
    found = offset_lookup.look_up(partition, _meant(context, asked.timestamp), isolation)
    if found is not None:
        row.timestamp, row.offset = found.timestamp, found.offset
        row.leader_epoch = found.leader_epoch if context.version >= 4 else -1
    return row


def _meant(context: RequestContext, timestamp: int) -> int:
    """A word for an offset, in releases that have it; else a time before all records."""
    newest = versions_of(context.state.release)[LIST_OFFSETS][1]
    return timestamp if timestamp >= 0 or newest >= SINCE.get(timestamp, 2**15) else 0
