"""Server-side assignors: pure functions from topics and member subscriptions to a target assignment for each member.

    assign({topic_id: 6}, [MemberSubscription("a", topics=(topic_id,))]) → {"a": (TopicIdPartition(topic_id, 0), …)}

Every partition of a subscribed topic goes to exactly one of its subscribers.

`range`    each topic separately: ranges of consecutive partitions, one range for each subscriber in order.
`uniform`  balanced and sticky: members keep partitions that they had and still subscribe to. A partition without owner
           goes to the subscriber with the fewest. Then partitions move one at a time from a member that has at least
           two more than another subscriber of the topic, until there is no such pair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import attrs

from kclient.embedded.groups.consumer_protocol.member import TopicIdPartition
from kclient.group.assignors.base import utf16_key

Targets = dict[str, tuple[TopicIdPartition, ...]]
"""Member id → its partitions, ascending; a member without any has an empty tuple."""


@attrs.frozen
class MemberSubscription:
    """A member: the ids of its subscribed topics, and its previous target."""

    member_id: str
    topics: tuple[bytes, ...]
    held: tuple[TopicIdPartition, ...] = ()
    instance_id: str | None = None


def in_order(members: Sequence[MemberSubscription]) -> list[MemberSubscription]:
    """Sort static members by instance id, then the others by member id."""
    return sorted(
        members, key=lambda one: (one.instance_id is None, utf16_key(one.instance_id or one.member_id))
    )


def subscribers(
    topics: Mapping[bytes, int], members: Sequence[MemberSubscription]
) -> dict[bytes, list[MemberSubscription]]:
    """Return topic id → subscribers in order, for existing topics that have any."""
    found: dict[bytes, list[MemberSubscription]] = {topic_id: [] for topic_id in sorted(topics)}
    for member in in_order(members):
        for topic_id in dict.fromkeys(member.topics):
            if topic_id in found:
                found[topic_id].append(member)
    return {topic_id: subscribers_of for topic_id, subscribers_of in found.items() if subscribers_of}


def assign_ranges(topics: Mapping[bytes, int], members: Sequence[MemberSubscription]) -> Targets:
    """Assign ranges in order; each of the first `count % members` members gets one more."""
    given: dict[str, list[TopicIdPartition]] = {member.member_id: [] for member in members}
    for topic_id, subscribers_of in subscribers(topics, members).items():
        share, extra = divmod(topics[topic_id], len(subscribers_of))
        begin = 0
        for place, member in enumerate(subscribers_of):
            end = begin + share + (place < extra)
            given[member.member_id] += [TopicIdPartition(topic_id, number) for number in range(begin, end)]
            begin = end
    return {member_id: tuple(sorted(partitions)) for member_id, partitions in given.items()}


def assign_uniformly(topics: Mapping[bytes, int], members: Sequence[MemberSubscription]) -> Targets:
    """See the module docstring."""
    subscribers_of = {
        topic_id: [member.member_id for member in found]
        for topic_id, found in subscribers(topics, members).items()
    }
    partitions = [
        TopicIdPartition(topic_id, number)
        for topic_id in sorted(subscribers_of, key=lambda topic_id: (len(subscribers_of[topic_id]), topic_id))
        for number in range(topics[topic_id])
    ]
    owners = _kept(members, topics)
    loads = dict.fromkeys((member.member_id for member in members), 0)
    for owner in owners.values():
        loads[owner] += 1
    for partition in partitions:
        if partition not in owners:
            owners[partition] = owner = min(subscribers_of[partition.topic_id], key=loads.__getitem__)
            loads[owner] += 1
    while _level(partitions, subscribers_of, owners, loads):
        pass  # every move makes the sum of the squares of the loads smaller, so the loop ends
    found: dict[str, list[TopicIdPartition]] = {member_id: [] for member_id in loads}
    for partition in sorted(owners):
        found[owners[partition]].append(partition)
    return {member_id: tuple(given) for member_id, given in found.items()}


def _kept(members: Sequence[MemberSubscription], topics: Mapping[bytes, int]) -> dict[TopicIdPartition, str]:
    """Return partitions that keep their owner; if two members claim one, the first in order keeps it."""
    owners: dict[TopicIdPartition, str] = {}
    for member in in_order(members):
        for partition in member.held:
            if partition.topic_id in member.topics and partition.number < topics.get(partition.topic_id, 0):
                owners.setdefault(partition, member.member_id)
    return owners


def _level(
    partitions: Sequence[TopicIdPartition],
    subscribers_of: Mapping[bytes, Sequence[str]],
    owners: dict[TopicIdPartition, str],
    loads: dict[str, int],
) -> bool:
    """Go through all partitions once, from the last to the first. Return False if none moved."""
    moved = False
    for partition in reversed(partitions):
        owner = owners[partition]
        least = min(subscribers_of[partition.topic_id], key=loads.__getitem__)
        if loads[owner] >= loads[least] + 2:
            owners[partition] = least
            loads[owner] -= 1
            loads[least] += 1
            moved = True
    return moved


Assign = Callable[[Mapping[bytes, int], Sequence[MemberSubscription]], Targets]

ASSIGNORS: Final[Mapping[str, Assign]] = {"uniform": assign_uniformly, "range": assign_ranges}
