"""What assignors are told of members, and the order in which they see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from kclient.embedded.groups.consumer.partitions import TopicIdPartition
from kclient.group.assignors.base import utf16_key

Targets = dict[str, tuple[TopicIdPartition, ...]]
"""Member id → its partitions, ascending; a member without any has an empty tuple."""


@attrs.frozen
class Wanting:
    """A member: the ids of the topics that it wants, and what its target was so far."""

    member_id: str
    topics: tuple[bytes, ...]
    held: tuple[TopicIdPartition, ...] = ()
    instance_id: str | None = None


def in_order(members: Sequence[Wanting]) -> list[Wanting]:
    """Static members by instance id, then the others by member id."""
    return sorted(
        members, key=lambda one: (one.instance_id is None, utf16_key(one.instance_id or one.member_id))
    )


def subscribers(topics: Mapping[bytes, int], members: Sequence[Wanting]) -> dict[bytes, list[Wanting]]:
    """Topic id → who wants it, in order; only topics that exist and are wanted."""
    found: dict[bytes, list[Wanting]] = {topic_id: [] for topic_id in sorted(topics)}
    for member in in_order(members):
        for topic_id in dict.fromkeys(member.topics):
            if topic_id in found:
                found[topic_id].append(member)
    return {topic_id: wanting for topic_id, wanting in found.items() if wanting}
