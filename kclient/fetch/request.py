"""A Fetch on the wire: from wanted partitions to the request, from the answer to its partitions by name.

Topics go by id (version 13 and later) only if every topic of the request has one, else by name (version 12 at most).

Spec: B.10.4, B.10.13, D-47.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from kclient.config import Config
from kclient.fetch.session import SessionStep
from kclient.generated.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kclient.generated.fetch_response import FetchResponse, PartitionData
from kclient.protocol.primitives import ZERO_UUID
from kclient.types import IsolationLevel, TopicPartition

LAST_VERSION_BY_NAME = 12


@attrs.frozen
class PartitionFetch:
    """What is asked of one partition. `era` says what the partition was then; None of an epoch or id: unknown."""

    tp: TopicPartition
    offset: int
    leader_epoch: int | None
    topic_id: bytes | None
    era: int


def build_request(step: SessionStep, max_bytes: int, config: Config) -> FetchRequest:
    """The request of one step of a session. The order of partitions is kept: it is the order of service (KIP-74)."""
    topics: list[FetchTopic] = []
    for one in step.to_send:
        if not topics or topics[-1].topic != one.tp.topic:
            topics.append(FetchTopic(topic=one.tp.topic, topic_id=one.topic_id or ZERO_UUID))
        topics[-1].partitions.append(
            FetchPartition(
                partition=one.tp.partition,
                current_leader_epoch=-1 if one.leader_epoch is None else one.leader_epoch,
                fetch_offset=one.offset,
                partition_max_bytes=config.max_partition_fetch_bytes,
            )
        )
    return FetchRequest(
        max_wait_ms=config.fetch_max_wait_ms,
        min_bytes=config.fetch_min_bytes,
        max_bytes=max_bytes,
        isolation_level=int(IsolationLevel[config.isolation_level.upper()]),
        session_id=step.session_id,
        session_epoch=step.epoch,
        topics=topics,
        rack_id=config.client_rack,
    )


def max_version(wanted: Sequence[PartitionFetch]) -> int | None:
    """None: the newest both sides have. Spec: B.10.13."""
    return None if all(one.topic_id is not None for one in wanted) else LAST_VERSION_BY_NAME


def partitions_of(
    answer: FetchResponse, wanted: Sequence[PartitionFetch]
) -> Iterator[tuple[TopicPartition | None, PartitionData]]:
    """Each answered partition with its name; None where the topic id was not asked for."""
    names = {one.topic_id: one.tp.topic for one in wanted if one.topic_id is not None}
    for topic in answer.responses:
        name = topic.topic or names.get(bytes(topic.topic_id))
        for partition in topic.partitions:
            yield (None if name is None else TopicPartition(name, partition.partition_index)), partition
