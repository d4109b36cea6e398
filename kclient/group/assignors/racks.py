"""Whether racks matter when partitions are shared out, and which member shares a rack with which partition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from kclient.group.assignors.base import Member, Topics
from kclient.types import TopicPartition


def racks_matter(racks: Sequence[frozenset[str]], members: Sequence[Member]) -> bool:
    """Return whether racks matter: a replica is in the rack of a member, and not all partitions have the same racks."""
    everywhere = frozenset[str]().union(*racks)
    member_racks = {member.subscription.rack_id for member in members} - {None}
    return bool(everywhere & member_racks) and any(each != everywhere for each in racks)


@attrs.frozen
class Racks:
    """The racks of members and partitions. Where racks do not matter, no member has one and no partition is far."""

    of_member: dict[str, str]
    topics: Topics

    @classmethod
    def between(cls, topics: Topics, members: Sequence[Member]) -> Racks:
        """Return the racks of these members and partitions, empty if they do not matter."""
        if not racks_matter([racks for partitions in topics.values() for racks in partitions], members):
            return cls({}, topics)
        racks = {member.member_id: member.subscription.rack_id for member in members}
        return cls({member_id: rack for member_id, rack in racks.items() if rack}, topics)

    def __bool__(self) -> bool:
        return bool(self.of_member)

    def of(self, partition: TopicPartition) -> frozenset[str]:
        """Return the racks of a partition's replicas."""
        return self.topics[partition.topic][partition.partition]

    def near(self, member_id: str, partition: TopicPartition) -> bool:
        """Return whether the member is in the rack of a replica."""
        rack = self.of_member.get(member_id)
        return rack is not None and rack in self.of(partition)

    def far(self, member_id: str, partition: TopicPartition) -> bool:
        """Return whether the member has a rack, and no replica is in it."""
        return member_id in self.of_member and not self.near(member_id, partition)

    def hardest_first(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions with few members near them before those with many, otherwise in the given order."""
        if not self:
            return list(partitions)
        crowd: dict[str, int] = {}
        for rack in self.of_member.values():
            crowd[rack] = crowd.get(rack, 0) + 1
        return sorted(
            partitions,
            key=lambda each: sum(crowd.get(rack, 0) for rack in self.of(each)),
        )
