"""Assign where all subscriptions are equal: members get the same number of partitions, or one more, and keep their own.

keep       each member keeps its partitions up to its share; as many members as the division has remainder may keep
           one more
deal near  where racks matter: other partitions go to members in the rack of a replica
deal       the rest in turn, first to members below the smaller share, then one each to members that have it

`MemberQueue` holds the members that wait for partitions, in order. It counts the members of each rack, so that a rack
without a waiting member is not searched.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import attrs

from kclient.errors import InternalError
from kclient.group.assignors.base import Topics, utf16_key
from kclient.group.assignors.prior_ownership import PriorOwnership
from kclient.group.assignors.racks import Racks
from kclient.types import TopicPartition


@attrs.define
class MemberQueue:
    """`in_rack` counts the members that wait in each rack."""

    racks: Racks
    members: list[str] = attrs.field(factory=list)
    in_rack: dict[str, int] = attrs.field(factory=dict)

    def __len__(self) -> int:
        return len(self.members)

    def __getitem__(self, at: int) -> str:
        return self.members[at]

    def add(self, member_id: str) -> None:
        self.members.append(member_id)
        self._count(member_id, 1)

    def pop(self, at: int) -> str:
        member_id = self.members.pop(at)
        self._count(member_id, -1)
        return member_id

    def clear(self) -> None:
        self.members.clear()
        self.in_rack.clear()

    def sort(self) -> None:
        """Sort the members by member id."""
        self.members.sort(key=utf16_key)

    def next_near(self, partition: TopicPartition, start: int) -> int | None:
        """Return the index of the first member in a rack of the partition, from `start` on and around, or None."""
        if not any(self.in_rack.get(rack) for rack in self.racks.of(partition)):
            return None
        around = itertools.chain(range(start, len(self.members)), range(start))
        return next((at for at in around if self.racks.near(self.members[at], partition)), None)

    def _count(self, member_id: str, by: int) -> None:
        rack = self.racks.of_member.get(member_id)
        if rack is not None:
            self.in_rack[rack] = self.in_rack.get(rack, 0) + by


def share_evenly(topics: Topics, past: PriorOwnership, racks: Racks) -> dict[str, list[TopicPartition]]:
    """Return the partitions of every member. `past.owned` names the members, `topics` is in the order of names."""
    shares = _Shares.of(topics, past, racks)
    unassigned = racks.hardest_first(shares.keep(topics, past, racks))
    if racks:
        unassigned = shares.deal_near(unassigned)
    shares.deal(unassigned)
    return shares.given


@attrs.define
class _Shares:
    """`small` and `large` are the two shares; `large_left` members may still get the large one.

    `below` are the members with less than the small share, `at_small` those that have it and may get one more.
    """

    small: int
    large: int
    large_left: int
    given: dict[str, list[TopicPartition]]
    below: MemberQueue
    at_small: MemberQueue

    @classmethod
    def of(cls, topics: Topics, past: PriorOwnership, racks: Racks) -> _Shares:
        small, over = divmod(sum(map(len, topics.values())), len(past.owned))
        given: dict[str, list[TopicPartition]] = {member_id: [] for member_id in past.owned}
        return cls(small, small + (1 if over else 0), over, given, MemberQueue(racks), MemberQueue(racks))

    def keep(self, topics: Topics, past: PriorOwnership, racks: Racks) -> list[TopicPartition]:
        """Let members keep what they own, and return the other partitions in order."""
        place = {topic: at for at, topic in enumerate(topics)}
        for member_id, owned in past.undisputed().items():
            own = [each for each in owned if not racks.far(member_id, each)]
            own.sort(key=lambda each: (each.partition, place[each.topic]))
            self.given[member_id] += own[: self._share_of(member_id, len(own))]
        self.below.sort()
        self.at_small.sort()
        kept = {each for partitions in self.given.values() for each in partitions}
        everything = (
            TopicPartition(topic, number) for topic in topics for number in range(len(topics[topic]))
        )
        return [each for each in everything if each not in kept]

    def _share_of(self, member_id: str, own: int) -> int:
        """Return how many of its partitions a member may keep."""
        if own < self.small:
            self.below.add(member_id)
            return own
        if own >= self.large and self.large_left:
            self._one_has_large()
            return self.large
        if self.large_left:
            self.at_small.add(member_id)
        return self.small

    def _one_has_large(self) -> None:
        self.large_left -= 1
        if not self.large_left:
            self.at_small.clear()

    def deal_near(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Deal to near members below the small share in turn, else to the first near one at it. Return the rest."""
        far, turn = list[TopicPartition](), 0
        for partition in partitions:
            if (at := self.below.next_near(partition, turn)) is not None:
                member_id = self.below[at]
                self.given[member_id].append(partition)
                if len(self.given[member_id]) < self.small:
                    turn = (at + 1) % len(self.below)
                    continue
                self.below.pop(at)
                turn = at % len(self.below) if self.below else 0
                if self.small < self.large and self.large_left:
                    self.at_small.add(member_id)
            elif (at := self.at_small.next_near(partition, 0)) is not None:
                self.given[self.at_small.pop(at)].append(partition)
                self._one_has_large()
            else:
                far.append(partition)
        return far

    def deal(self, partitions: Sequence[TopicPartition]) -> None:
        """Deal in turn to members below the small share, and when there are none, one each to those that have it."""
        turn = 0
        for partition in partitions:
            if self.below:
                turn %= len(self.below)
                member_id = self.below[turn]
                self.given[member_id].append(partition)
                if len(self.given[member_id]) < self.small:
                    turn += 1
                else:
                    self.at_small.add(self.below.pop(turn))
            elif self.at_small:
                self.given[self.at_small.pop(0)].append(partition)
            else:
                raise InternalError(f"no member is left for {partition}; the shares were counted wrong")
