"""`uniform`: everybody as many partitions as possible alike, and as few moves as that allows.

Members keep what they had and still want. What nobody had goes to whoever has least. Then partitions move, one by
one, from members who have at least two more than another who wants them, until there is no such pair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kclient.embedded.groups.consumer.assignors.base import Targets, Wanting, in_order, subscribers
from kclient.embedded.groups.consumer.partitions import TopicIdPartition


def assign_uniformly(topics: Mapping[bytes, int], members: Sequence[Wanting]) -> Targets:
    """See the module."""
    wanting = {
        topic_id: [member.member_id for member in found]
        for topic_id, found in subscribers(topics, members).items()
    }
    partitions = [
        TopicIdPartition(topic_id, number)
        for topic_id in sorted(wanting, key=lambda topic_id: (len(wanting[topic_id]), topic_id))
        for number in range(topics[topic_id])
    ]
    owners = _kept(members, topics)
    loads = dict.fromkeys((member.member_id for member in members), 0)
    for owner in owners.values():
        loads[owner] += 1
    for partition in partitions:
        if partition not in owners:
            owners[partition] = owner = min(wanting[partition.topic_id], key=loads.__getitem__)
            loads[owner] += 1
    while _level(partitions, wanting, owners, loads):
        pass  # every move makes the sum of the squares of the loads smaller, so this ends
    found: dict[str, list[TopicIdPartition]] = {member_id: [] for member_id in loads}
    for partition in sorted(owners):
        found[owners[partition]].append(partition)
    return {member_id: tuple(given) for member_id, given in found.items()}


def _kept(members: Sequence[Wanting], topics: Mapping[bytes, int]) -> dict[TopicIdPartition, str]:
    """What each had, still wants and still exists. Of two who claim a partition the first one in order keeps it."""
    owners: dict[TopicIdPartition, str] = {}
    for member in in_order(members):
        for partition in member.held:
            if partition.topic_id in member.topics and partition.number < topics.get(partition.topic_id, 0):
                owners.setdefault(partition, member.member_id)
    return owners


def _level(
    partitions: Sequence[TopicIdPartition],
    wanting: Mapping[bytes, Sequence[str]],
    owners: dict[TopicIdPartition, str],
    loads: dict[str, int],
) -> bool:
    """Go through all partitions once, the last ones first. False if none had to move."""
    moved = False
    for partition in reversed(partitions):
        owner = owners[partition]
        least = min(wanting[partition.topic_id], key=loads.__getitem__)
        if loads[owner] >= loads[least] + 2:
            owners[partition] = least
            loads[owner] -= 1
            loads[least] += 1
            moved = True
    return moved
