"""The blobs of the classic protocol, under topic ids as this room keeps partitions."""

from __future__ import annotations

from collections.abc import Iterable

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.consumer.group import ConsumerGroup
from kclient.embedded.groups.consumer.partitions import TopicIdPartition
from kclient.errors import ProtocolDecodeError
from kclient.group.assignors.base import Assignment, Subscription
from kclient.group.subscription_codec import (
    NEWEST_VERSION,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)
from kclient.protocol.errors import UNKNOWN_SERVER_ERROR
from kclient.types import TopicPartition


def read_subscription(blob: bytes) -> Subscription:
    """What a classic member wants and owns. Raises ApiError as brokers do for what cannot be read."""
    try:
        return decode_subscription(blob)
    except ProtocolDecodeError as exc:
        raise ApiError(UNKNOWN_SERVER_ERROR, str(exc)) from exc


def read_assignment(group: ConsumerGroup, blob: bytes) -> tuple[TopicIdPartition, ...]:
    """What a leader gave to a member; nothing where nothing was given yet."""
    if not blob:
        return ()
    try:
        return with_ids(group, decode_assignment(blob).partitions)
    except ProtocolDecodeError as exc:
        raise ApiError(UNKNOWN_SERVER_ERROR, str(exc)) from exc


def has_user_data(blob: bytes) -> bool:
    """Whether an assignor added something of its own, which a consumer group would lose. Raises as above."""
    try:
        return bool(blob) and bool(decode_assignment(blob).user_data)
    except ProtocolDecodeError as exc:
        raise ApiError(UNKNOWN_SERVER_ERROR, str(exc)) from exc


def write_assignment(
    group: ConsumerGroup, partitions: Iterable[TopicIdPartition], subscription: bytes
) -> bytes:
    """An assignment in the version in which the member wrote its subscription."""
    names = {topic.topic_id: topic.name for topic in group.cluster.topics.values()}
    known = [TopicPartition(names[one.topic_id], one.number) for one in partitions if one.topic_id in names]
    version = min(int.from_bytes(subscription[:2], "big"), NEWEST_VERSION)
    return encode_assignment(Assignment(tuple(known)), version)


def with_ids(group: ConsumerGroup, partitions: Iterable[TopicPartition]) -> tuple[TopicIdPartition, ...]:
    """Partitions of topics that exist, under their topics' ids."""
    topics = group.cluster.topics
    known = (tp for tp in partitions if tp.topic in topics)
    return tuple(sorted(TopicIdPartition(topics[tp.topic].topic_id, tp.partition) for tp in known))
