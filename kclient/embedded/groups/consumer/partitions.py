"""Partitions under the id of their topic, as the consumer protocol names them: a recreated topic is another one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol


class TopicIdPartition(NamedTuple):
    """One partition."""

    topic_id: bytes
    number: int


class WireTopic(Protocol):
    """A topic with partitions in any message of the protocol."""

    topic_id: bytes
    partitions: list[int]


def by_topic(partitions: Iterable[TopicIdPartition]) -> dict[bytes, list[int]]:
    """Topic id → partition numbers, all ascending."""
    found: dict[bytes, list[int]] = {}
    for topic_id, number in sorted(partitions):
        found.setdefault(topic_id, []).append(number)
    return found


def from_wire(topics: Iterable[WireTopic]) -> tuple[TopicIdPartition, ...]:
    """The partitions of a message, ascending."""
    return tuple(
        sorted(TopicIdPartition(topic.topic_id, number) for topic in topics for number in topic.partitions)
    )
