"""What OffsetForLeaderEpoch asks and answers, without asking.

Spec: B.9, B.15.10, D-40, D-44.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kclient.generated.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kclient.generated.offset_for_leader_epoch_response import EpochEndOffset, OffsetForLeaderEpochResponse
from kclient.network.failures import broker_error
from kclient.positions.state import FetchPosition
from kclient.protocol.errors import TOPIC_AUTHORIZATION_FAILED, error
from kclient.types import TopicPartition

logger = logging.getLogger("kclient.positions")


def build_request(asked: Mapping[TopicPartition, FetchPosition]) -> OffsetForLeaderEpochRequest:
    """The epoch of the data is asked about, the epoch of the leader goes along as a check. Spec: B.9, D-40."""
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


def split_answer(answer: OffsetForLeaderEpochResponse) -> dict[TopicPartition, EpochEndOffset]:
    """The partitions answered without an error; the others are to be asked again. Raises TopicAuthorizationError.

    Spec: B.15.10.
    """
    results: dict[TopicPartition, EpochEndOffset] = {}
    refused: dict[str, None] = {}
    for topic in answer.topics:
        for partition in topic.partitions:
            tp = TopicPartition(topic.topic, partition.partition)
            if partition.error_code == TOPIC_AUTHORIZATION_FAILED:
                refused[topic.topic] = None
            elif partition.error_code:
                logger.debug("OffsetForLeaderEpoch of %s: %s", tp, error(partition.error_code).name)
            else:
                results[tp] = partition
    if refused:
        raise broker_error(
            TOPIC_AUTHORIZATION_FAILED, "Checking positions (OffsetForLeaderEpoch)", topics=refused
        )
    return results
