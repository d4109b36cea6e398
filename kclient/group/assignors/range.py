"""`range`: each topic separately, cut into runs of neighbouring partitions, one run for each subscriber in order.

Topics with the same subscribers and partition counts are co-partitioned: partition 7 of each goes to the same member.

With racks, partitions first go to members in the rack of a replica, as far as each member's quota allows; the others
are assigned in order as without racks. Topics stay co-partitioned where a member is in a rack of the partition in all.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import attrs

from kclient.group.assignors.base import (
    Assignment,
    Assignor,
    Member,
    Topics,
    as_assignments,
    partition_key,
    subscribers,
)
from kclient.group.assignors.racks import racks_matter
from kclient.types import TopicPartition


class RangeAssignor(Assignor):
    """The assignor that brokers and other clients know as `range`."""

    name = "range"

    def assign(self, topics: Topics, members: Sequence[Member]) -> Mapping[str, Assignment]:
        """Cut every topic into runs."""
        given: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
        cuts = [
            _Cut.of(topic, topics[topic], wanting) for topic, wanting in subscribers(topics, members).items()
        ]
        by_rack = any(cut.needs_racks for cut in cuts)
        if by_rack:
            _match_racks(cuts, given)
        for cut in cuts:
            cut.fill(given, lambda member, number: True)
        if by_rack:
            for partitions in given.values():
                partitions.sort(key=partition_key)
        return as_assignments(given)


@attrs.define
class _Cut:
    """One topic while it is being cut. `share` is what each member gets, `extra` how many may still get one more."""

    topic: str
    racks: Sequence[frozenset[str]]
    members: list[Member]
    share: int
    extra: int
    left: dict[int, None]
    taken: dict[str, int]
    needs_racks: bool

    @classmethod
    def of(cls, topic: str, racks: Sequence[frozenset[str]], members: list[Member]) -> _Cut:
        share, extra = divmod(len(racks), len(members))
        taken = {member.member_id: 0 for member in members}
        return cls(
            topic,
            racks,
            members,
            share,
            extra,
            dict.fromkeys(range(len(racks))),
            taken,
            racks_matter(racks, members),
        )

    def quota(self, member: Member) -> int:
        """Return how many more partitions this member may get."""
        return max(0, self.share + (1 if self.extra else 0) - self.taken[member.member_id])

    def shares_rack(self, member: Member, number: int) -> bool:
        """Return whether a replica of the partition is in the member's rack, or the member has no rack."""
        rack = member.subscription.rack_id
        return rack is None or rack in self.racks[number]

    def give(self, member: Member, numbers: Sequence[int], given: dict[str, list[TopicPartition]]) -> None:
        """Give partitions to a member and count them."""
        given[member.member_id] += [TopicPartition(self.topic, number) for number in numbers]
        for number in numbers:
            del self.left[number]
        self.taken[member.member_id] += len(numbers)
        if numbers and self.taken[member.member_id] > self.share:
            self.extra -= 1

    def fill(self, given: dict[str, list[TopicPartition]], may: Callable[[Member, int], bool]) -> None:
        """Give each member in turn as many of the partitions that it may have as its quota allows."""
        for member in self.members:
            possible = (number for number in self.left if may(member, number))
            self.give(member, list(itertools.islice(possible, self.quota(member))), given)


def _match_racks(cuts: Sequence[_Cut], given: dict[str, list[TopicPartition]]) -> None:
    """Assign within racks: co-partitioned topics together, each other topic alone."""
    alike: dict[tuple[tuple[str, ...], int], list[_Cut]] = {}
    for cut in cuts:
        alike.setdefault((tuple(cut.taken), len(cut.racks)), []).append(cut)
    for together in alike.values():
        if len(together) > 1:
            _match_racks_together(together, given)
        elif together[0].needs_racks:
            together[0].fill(given, together[0].shares_rack)


def _match_racks_together(cuts: Sequence[_Cut], given: dict[str, list[TopicPartition]]) -> None:
    """Give each partition of all topics to the first member that is in a rack of it in all topics.

    The cuts have the same members and sizes, so a member's quota is the same in all of them.
    """
    first = cuts[0]
    waiting = [(member, member.subscription.rack_id) for member in first.members]
    for number in range(len(first.racks)):
        shared = first.racks[number].intersection(*(cut.racks[number] for cut in cuts))
        for place, (member, rack) in enumerate(waiting):
            if (rack is None or rack in shared) and first.quota(member):
                for cut in cuts:
                    cut.give(member, [number], given)
                if not first.quota(member):
                    del waiting[place]
                break
