"""A Fetch on the wire: from wanted partitions to the request.

Topics go by id (version 13 and later) only if every topic of the request has one, else by name (version 12 at most).
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from kclient.config import Config
from kclient.fetch.session import SessionStep
from kclient.generated.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from kclient.protocol.primitives import ZERO_UUID
from kclient.types import TopicPartition

LAST_VERSION_BY_NAME = 12


@attrs.frozen
class PartitionFetch:
    """What is fetched of one partition, at `position_version`. None of an epoch or id: unknown.

    `offset_epoch` is that of the data before the offset: a leader whose log differs there says where they part. `turn`
    is its place in the order of service.
    """

    tp: TopicPartition
    offset: int
    leader_epoch: int | None
    topic_id: bytes | None
    position_version: int
    offset_epoch: int | None = None
    turn: int = 0

    def asks_the_same(self, other: PartitionFetch) -> bool:
        """Whether both are the same on the wire, so that a session need not be told."""
        return (
            self.offset == other.offset
            and self.leader_epoch == other.leader_epoch
            and self.topic_id == other.topic_id
            and self.offset_epoch == other.offset_epoch
        )


def build_request(step: SessionStep, max_bytes: int, config: Config) -> FetchRequest:
    """The request of one step of a session. The order of partitions is kept: it is the order of service (KIP-74)."""
    topics: list[FetchTopic] = []
    for one in step.to_send:
        if not topics or topics[-1].topic != one.tp.topic:
            topics.append(topic_entry(one))
        topics[-1].partitions.append(partition_entry(one, config.max_partition_fetch_bytes))
    return FetchRequest(
        max_wait_ms=config.fetch_max_wait_ms,
        min_bytes=config.fetch_min_bytes,
        max_bytes=max_bytes,
        isolation_level=int(config.isolation),
        session_id=step.session_id,
        session_epoch=step.epoch,
        topics=topics,
        forgotten_topics_data=_forgotten(step),
        rack_id=config.client_rack,
    )


def topic_entry(one: PartitionFetch) -> FetchTopic:
    """The topic of a partition, without partitions."""
    return FetchTopic(topic=one.tp.topic, topic_id=one.topic_id or ZERO_UUID)


def partition_entry(one: PartitionFetch, max_bytes: int) -> FetchPartition:
    """What a request says of one partition."""
    return FetchPartition(
        partition=one.tp.partition,
        current_leader_epoch=-1 if one.leader_epoch is None else one.leader_epoch,
        fetch_offset=one.offset,
        last_fetched_epoch=-1 if one.offset_epoch is None else one.offset_epoch,
        partition_max_bytes=max_bytes,
    )


def _forgotten(step: SessionStep) -> list[ForgottenTopic]:
    topics: dict[tuple[str, bytes | None], ForgottenTopic] = {}
    for one in step.forgotten:
        topic = topics.get((one.tp.topic, one.topic_id))
        if topic is None:
            topic = ForgottenTopic(topic=one.tp.topic, topic_id=one.topic_id or ZERO_UUID)
            topics[one.tp.topic, one.topic_id] = topic
        topic.partitions.append(one.tp.partition)
    return list(topics.values())


def max_version(wanted: Sequence[PartitionFetch]) -> int | None:
    """None: the newest both sides have."""
    return None if all(one.topic_id is not None for one in wanted) else LAST_VERSION_BY_NAME
