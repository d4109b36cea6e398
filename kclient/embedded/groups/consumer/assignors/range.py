"""`range`: every topic by itself, cut into runs of neighbouring partitions, one run for each subscriber in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kclient.embedded.groups.consumer.assignors.base import Targets, Wanting, subscribers
from kclient.embedded.groups.consumer.partitions import TopicIdPartition


def assign_ranges(topics: Mapping[bytes, int], members: Sequence[Wanting]) -> Targets:
    """The first partitions to the first member, one more to each of the first `count % members`."""
    given: dict[str, list[TopicIdPartition]] = {member.member_id: [] for member in members}
    for topic_id, wanting in subscribers(topics, members).items():
        share, extra = divmod(topics[topic_id], len(wanting))
        begin = 0
        for place, member in enumerate(wanting):
            end = begin + share + (place < extra)
            given[member.member_id] += [TopicIdPartition(topic_id, number) for number in range(begin, end)]
            begin = end
    return {member_id: tuple(sorted(partitions)) for member_id, partitions in given.items()}
