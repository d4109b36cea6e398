"""What OffsetForLeaderEpoch asks and answers, without asking."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from kclient.generated.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kclient.generated.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse
from kclient.network.errors import broker_error
from kclient.positions.state import EpochEnd, FetchPosition
from kclient.protocol.errors import TOPIC_AUTHORIZATION_FAILED
from kclient.types import TopicPartition


def build_request(asked: Mapping[TopicPartition, FetchPosition]) -> OffsetForLeaderEpochRequest:
    """The epoch of the data is asked about, the epoch of the leader goes along as a check."""
    topics: dict[str, OffsetForLeaderTopic] = {}
    for tp, position in asked.items():
        epoch, leader_epoch = position.offset_epoch, position.leader.epoch
        topics.setdefault(tp.topic, OffsetForLeaderTopic(topic=tp.topic)).partitions.append(
            OffsetForLeaderPartition(
                partition=tp.partition,
                current_leader_epoch=-1 if leader_epoch is None else leader_epoch,
                leader_epoch=-1 if epoch is None else epoch,
            )
        )
    return OffsetForLeaderEpochRequest(replica_id=-1, topics=list(topics.values()))


@attrs.frozen
class EpochEnds:
    """One answer, split: what leaders said, and the codes of those partitions that they refused."""

    found: Mapping[TopicPartition, EpochEnd]
    refused: Mapping[TopicPartition, int]


def split_answer(answer: OffsetForLeaderEpochResponse) -> EpochEnds:
    """Sort the partitions of an answer; those not found are to be asked again. Raises TopicAuthorizationError."""
    found: dict[TopicPartition, EpochEnd] = {}
    refused: dict[TopicPartition, int] = {}
    forbidden: dict[str, None] = {}
    for topic in answer.topics:
        for partition in topic.partitions:
            tp = TopicPartition(topic.topic, partition.partition)
            if partition.error_code == TOPIC_AUTHORIZATION_FAILED:
                forbidden[topic.topic] = None
            elif partition.error_code:
                refused[tp] = partition.error_code
            else:
                found[tp] = EpochEnd(partition.leader_epoch, partition.end_offset)
    if forbidden:
        raise broker_error(
            TOPIC_AUTHORIZATION_FAILED, "Checking positions (OffsetForLeaderEpoch)", topics=forbidden
        )
    return EpochEnds(found, refused)
