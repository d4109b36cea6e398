"""Whether an assignment can be: a group's leader or coordinator may name any topic and any number of partitions.

Metadata says which partitions there are. Whoever assigned them may know more, because topics were made or have grown
since, so partitions that are not known yet are taken over, up to as many as are known and MOST_NEW more. Beyond that
the assignment is refused: each partition takes memory and time, and one message has room for millions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kclient.errors import ProtocolDecodeError
from kclient.network.metadata import MetadataCache, is_legal_topic
from kclient.types import TopicPartition

MOST_NEW: Final = 1_000


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The numbers of each topic, in ascending order, each once."""
    topics: dict[str, set[int]] = {}
    for tp in partitions:
        topics.setdefault(tp.topic, set()).add(tp.partition)
    return {topic: sorted(numbers) for topic, numbers in topics.items()}


def why_impossible(assigned: Mapping[str, Sequence[int]], metadata: MetadataCache) -> str | None:
    """What cannot be about these topics and ascending numbers; None for nothing."""
    known = new = 0
    for topic, numbers in assigned.items():
        if not is_legal_topic(topic) or (numbers and numbers[0] < 0):
            return "it names a topic or a partition that cannot be"
        count = bisect_left(numbers, metadata.partition_count(topic) or 0)
        known += count
        new += len(numbers) - count
    if new > known + MOST_NEW:
        return f"{new:,} of its {known + new:,} partitions do not exist"
    return None


def impossible_assignment(group_id: str, why: str) -> ProtocolDecodeError:
    """The error for an assignment that is refused."""
    return ProtocolDecodeError(
        f"The assignment of group {group_id} is refused: {why}. The member that leads the group, or its coordinator, "
        "is damaged or hostile. Look at the group's members with: kclient lag GROUP",
        field="assigned_partitions",
    )
