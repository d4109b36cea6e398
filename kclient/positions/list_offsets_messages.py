"""What ListOffsets asks and answers, without asking: requests are built, answers are split partition by partition.

no error and an offset       found
no error and offset −1       there is none (a search by time beyond the last record)
43, format too old           counts as none
29, not authorized           the whole answer fails, naming every such topic
any other code, or missing   to be asked again
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from kclient.errors import VersionError
from kclient.generated.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kclient.generated.list_offsets_response import ListOffsetsPartitionResponse, ListOffsetsResponse
from kclient.network.errors import broker_error
from kclient.protocol.errors import TOPIC_AUTHORIZATION_FAILED, UNSUPPORTED_FOR_MESSAGE_FORMAT
from kclient.types import IsolationLevel, OffsetAndTimestamp, TopicPartition

ISOLATION_SINCE: Final = 2
TIMES_SINCE: Final = 1
WHAT_IS_MISSING: Final = {
    ISOLATION_SINCE: "isolation_level read_committed needs Kafka 0.11, the first with transactions; "
    "read_uncommitted reads the same from older brokers. ",
    TIMES_SINCE: "A search by time needs Kafka 0.10.1. ",
}


@attrs.frozen
class ListedOffsets:
    """One answer, split: found offsets, partitions without such an offset, and those to be asked again.

    `refused` holds the codes of those to be asked again that the answer names.
    """

    found: Mapping[TopicPartition, OffsetAndTimestamp]
    missing: Sequence[TopicPartition]
    retry: Sequence[TopicPartition]
    refused: Mapping[TopicPartition, int]


def min_version(timestamps: Iterable[int], isolation_level: IsolationLevel) -> int:
    """The oldest version that can ask this: 2 knows isolation, 1 searches by time, 0 only begin and end."""
    if isolation_level is IsolationLevel.READ_COMMITTED:
        return ISOLATION_SINCE
    return TIMES_SINCE if any(timestamp >= 0 for timestamp in timestamps) else 0


def too_old(refusal: VersionError, version: int) -> VersionError:
    """The same refusal, saying what cannot be had and what can be done without it."""
    return VersionError(
        WHAT_IS_MISSING.get(version, "") + refusal.text,
        api=refusal.api,
        host=refusal.host,
        port=refusal.port,
        node_id=refusal.node_id,
    )


def build_request(
    wanted: Mapping[TopicPartition, int],
    epochs: Mapping[TopicPartition, int | None],
    isolation_level: IsolationLevel,
    timeout_ms: int,
) -> ListOffsetsRequest:
    """A question about partitions of one leader: partition → timestamp, with the leader epochs of this moment."""
    topics: dict[str, ListOffsetsTopic] = {}
    for tp, timestamp in wanted.items():
        topic = topics.setdefault(tp.topic, ListOffsetsTopic(name=tp.topic))
        epoch = epochs[tp]
        topic.partitions.append(
            ListOffsetsPartition(
                partition_index=tp.partition,
                current_leader_epoch=-1 if epoch is None else epoch,
                timestamp=timestamp,
            )
        )
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=int(isolation_level),
        topics=list(topics.values()),
        timeout_ms=timeout_ms,
    )


def split_answer(answer: ListOffsetsResponse, wanted: Iterable[TopicPartition]) -> ListedOffsets:
    """Sort the partitions of an answer. Raises TopicAuthorizationError with every refused topic."""
    found: dict[TopicPartition, OffsetAndTimestamp] = {}
    missing: dict[TopicPartition, None] = {}
    refused: dict[TopicPartition, int] = {}
    forbidden: dict[str, None] = {}
    for tp, partition in _partitions(answer):
        if partition.error_code == TOPIC_AUTHORIZATION_FAILED:
            forbidden[tp.topic] = None
        elif partition.error_code == UNSUPPORTED_FOR_MESSAGE_FORMAT:
            missing[tp] = None
        elif partition.error_code:
            refused[tp] = partition.error_code
        elif (offset := _offset(partition)) < 0:
            missing[tp] = None
        else:
            epoch = partition.leader_epoch if partition.leader_epoch >= 0 else None
            found[tp] = OffsetAndTimestamp(offset, partition.timestamp, epoch)
    if forbidden:
        raise broker_error(TOPIC_AUTHORIZATION_FAILED, "Looking up offsets (ListOffsets)", topics=forbidden)
    wanted = dict.fromkeys(wanted)
    return ListedOffsets(
        {tp: offset for tp, offset in found.items() if tp in wanted},
        [tp for tp in wanted if tp in missing],
        [tp for tp in wanted if tp not in found and tp not in missing],
        {tp: code for tp, code in refused.items() if tp in wanted},
    )


def _partitions(
    answer: ListOffsetsResponse,
) -> Iterator[tuple[TopicPartition, ListOffsetsPartitionResponse]]:
    for topic in answer.topics:
        for partition in topic.partitions:
            yield TopicPartition(topic.name, partition.partition_index), partition


def _offset(partition: ListOffsetsPartitionResponse) -> int:
    """Version 0 answers with a list, of which one offset was asked for."""
    return partition.old_style_offsets[0] if partition.old_style_offsets else partition.offset
