"""ListOffsets: where a log begins and ends, and which record was written when."""

from __future__ import annotations

from typing import Final

from kclient.embedded import offset_lookup
from kclient.embedded.call import Call
from kclient.embedded.checks import usable
from kclient.embedded.refusal import Refused
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
SINCE: Final = {-1: 0, -2: 0, -3: 7, -4: 8, -5: 9, -6: 11}  # what has a meaning of its own → version


async def handle(call: Call, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """One answer for each partition. Spec: S0-51…S0-55, S0-61, S0-62, B.8."""
    seen: dict[TopicPartition, int] = {}
    for topic in request.topics:
        for one in topic.partitions:
            tp = TopicPartition(topic.name, one.partition_index)
            seen[tp] = seen.get(tp, 0) + 1
    topics = []
    for topic in request.topics:
        rows = []
        for one in topic.partitions:
            tp = TopicPartition(topic.name, one.partition_index)
            try:
                if seen[tp] > 1 and call.version >= 1:
                    raise Refused(INVALID_REQUEST)
                rows.append(_partition(call, request, tp, one))
            except Refused as no:
                rows.append(_failed(call, one, no.code))
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=rows))
    return ListOffsetsResponse(topics=topics)


def refuse(call: Call, request: ListOffsetsRequest, refused: Refused) -> ListOffsetsResponse:
    """At every partition."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name, partitions=[_failed(call, one, refused.code) for one in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _failed(call: Call, asked: ListOffsetsPartition, code: int) -> ListOffsetsPartitionResponse:
    if code == OFFSET_NOT_AVAILABLE and call.version < 5:
        code = LEADER_NOT_AVAILABLE
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=code)


def _partition(
    call: Call, request: ListOffsetsRequest, tp: TopicPartition, asked: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    if not call.allowed("DESCRIBE", f"Topic:{tp.topic}"):
        raise Refused(TOPIC_AUTHORIZATION_FAILED)
    partition = call.state.partition(tp)
    if partition is None:
        raise Refused(UNKNOWN_TOPIC_OR_PARTITION)
    if call.version >= 1 and asked.timestamp < 0 and call.version < SINCE.get(asked.timestamp, 2**15):
        raise Refused(UNSUPPORTED_VERSION)
    leader_only = request.replica_id != DEBUGGING_REPLICA
    if error := usable(call, partition, asked.current_leader_epoch, leader_only):
        raise Refused(error)
    isolation = request.isolation_level if request.replica_id == -1 else None
    row = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
    if call.version == 0:
        now = call.state.clock.wall_ms()
        row.old_style_offsets = offset_lookup.old_style(
            partition, asked.timestamp, asked.max_num_offsets, isolation, now
        )
        return row
    found = offset_lookup.look_up(partition, asked.timestamp, isolation)
    if found is not None:
        row.timestamp, row.offset = found.timestamp, found.offset
        row.leader_epoch = found.leader_epoch if call.version >= 4 else -1
    return row
