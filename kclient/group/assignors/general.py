"""Assign where subscriptions differ: members keep what they can, and partitions move while that evens out the loads.

    keep      each member keeps its partitions of topics to which it is still subscribed, as far as racks allow
    hand out  every other partition goes to the subscriber with the fewest partitions
    even out  a partition goes from its owner to the least loaded subscriber, while that one has at least two fewer;
              back to an earlier owner if there is one. At first only partitions that were just handed out, so that
              new partitions move rather than old ones

Evening out ends when no move makes the loads more even. If they are not more even than before it, all its moves are
undone.

`MemberLoads`: how many partitions each member has. Members are numbered in the order of their ids, and a set of members
is the bits of one integer: bit 5 is member 5. So a few operations on integers find the least loaded subscriber of a
topic, however many there are; of two that are equal it is the first by id.

`Movements`: the partitions that have moved while loads are evened out, so that no two partitions of a topic change
places. A partition that moves twice counts as moved from its first owner. If a partition of a topic is to move from one
member to another, and another partition of that topic has moved the opposite way, that one moves back instead: the
loads are the same, and neither has moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs

from kclient.errors import InternalError
from kclient.group.assignors.base import Member, Topics, utf16_key
from kclient.group.assignors.java_order import bucket, string_hash, table_size
from kclient.group.assignors.prior_ownership import PriorOwnership
from kclient.group.assignors.racks import Racks
from kclient.types import TopicPartition


@attrs.define
class MemberLoads:
    """The number of partitions of each member, kept so that the least loaded member of a set is found quickly.

    `at[n]` is the set of the members with n partitions; bit n of `levels` is set if that set is not empty. Members a, b
    and c with 2, 0 and 2 partitions: `sizes` is [2, 0, 2], `at` is [0b010, 0, 0b101] and `levels` is 0b101. The least
    loaded member of {a, c} = 0b101: level 0 gives 0b010 & 0b101 = 0, level 2 gives 0b101, whose lowest bit is a.
    """

    number: dict[str, int]
    names: list[str]
    sizes: list[int]
    at: list[int]
    levels: int = 1

    @classmethod
    def of(cls, members: Iterable[str]) -> MemberLoads:
        """Start with no partitions for any member."""
        names = sorted(members, key=utf16_key)
        return cls(
            {name: n for n, name in enumerate(names)}, names, [0] * len(names), [(1 << len(names)) - 1]
        )

    def __getitem__(self, member_id: str) -> int:
        return self.sizes[self.number[member_id]]

    def bits(self, members: Iterable[str]) -> int:
        """Return the set of these members."""
        found = 0
        for member_id in members:
            found |= 1 << self.number[member_id]
        return found

    def change(self, member_id: str, by: int) -> None:
        """Count partitions that a member has gained or lost."""
        number = self.number[member_id]
        bit, before = 1 << number, self.sizes[number]
        after = self.sizes[number] = before + by
        self.at += [0] * (after + 1 - len(self.at))
        self.at[before] &= ~bit
        self.at[after] |= bit
        if not self.at[before]:
            self.levels &= ~(1 << before)
        self.levels |= 1 << after

    def least(self, among: int) -> str | None:
        """Return the member of a set with the fewest partitions, the first by id of several; None if empty."""
        for level in _ascending(self.levels):
            if found := self.at[level] & among:
                # found & -found keeps the lowest set bit alone: 0b10100 & -0b10100 == 0b00100, which is number 2
                return self.names[(found & -found).bit_length() - 1]
        return None

    def unevenness(self, among: int) -> int:
        """Return the sum of the differences between all pairs of members of a set, as Java's getBalanceScore."""
        # In ascending order the size at place p is the larger one of p pairs and the smaller one of the others, so it
        # counts p times with plus and len - 1 - p times with minus: 2p + 1 - len in all. [1, 2, 4]: -2 + 0 + 8 = 6.
        sizes = sorted(self.sizes[number] for number in _ascending(among))
        return sum((2 * place + 1 - len(sizes)) * size for place, size in enumerate(sizes))


def _ascending(bits: int) -> Iterator[int]:
    """Yield the numbers of the set bits, lowest first: 0b10100 gives 2 and 4."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


MoveRoute = tuple[str, str, str]
"""Topic, the member that had it first, the member that has it now."""


@attrs.define
class Movements:
    """The source and target of each moved partition, and the moved partitions of each source and target."""

    ways: dict[TopicPartition, MoveRoute] = attrs.field(factory=dict)
    gone: dict[MoveRoute, _Gone] = attrs.field(factory=dict)

    def instead_of(self, partition: TopicPartition, source: str, target: str) -> TopicPartition:
        """Return the partition to move from `source` to `target` instead of this one; mostly this one."""
        if partition in self.ways:
            source = self.ways[partition][1]
        back = self.gone.get((partition.topic, target, source))
        return back.first() if back else partition

    def record(self, partition: TopicPartition, source: str, target: str) -> None:
        """Note that a partition has moved."""
        if partition in self.ways:
            way = self.ways.pop(partition)
            self.gone[way].remove(partition)
            if not self.gone[way].partitions:
                del self.gone[way]
            source = way[1]
        if source != target:
            way = self.ways[partition] = (partition.topic, source, target)
            self.gone.setdefault(way, _Gone(string_hash(partition.topic))).add(partition)


@attrs.define
class _Gone:
    """Partitions of one topic with the same source and target; the first is that of a Java HashSet."""

    topic_hash: int
    partitions: dict[TopicPartition, None] = attrs.field(factory=dict)
    most: int = 0

    def __bool__(self) -> bool:
        return bool(self.partitions)

    def add(self, partition: TopicPartition) -> None:
        self.partitions[partition] = None
        self.most = max(self.most, len(self.partitions))

    def remove(self, partition: TopicPartition) -> None:
        del self.partitions[partition]

    def first(self) -> TopicPartition:
        table = table_size(self.most)
        return min(self.partitions, key=lambda each: bucket(self._hash(each), table))

    def _hash(self, partition: TopicPartition) -> int:
        return (31 * (31 + partition.partition) + self.topic_hash) & 0xFFFF_FFFF


def share_by_subscription(
    topics: Topics, members: Sequence[Member], past: PriorOwnership, racks: Racks
) -> dict[str, list[TopicPartition]]:
    """Return the partitions of every member."""
    table = _Table.of(topics, members, past)
    gave_up = table.keep(racks)
    initial = not any(table.loads.sizes)
    fresh = [each for each in table.partitions if each not in table.owner]
    table.hand_out(fresh, racks)
    before = {member_id: list(partitions) for member_id, partitions in table.given.items()}
    uneven = table.unevenness()
    if not gave_up:
        table.even_out(fresh)
    if table.even_out(table.partitions) and not initial and table.unevenness() >= uneven:
        return before
    return {member_id: list(partitions) for member_id, partitions in table.given.items()}


@attrs.define
class _Table:
    """The owners so far. `wanting` is the set of subscribers of a topic, `partitions` are all partitions to assign."""

    past: PriorOwnership
    loads: MemberLoads
    wanting: dict[str, int]
    partitions: list[TopicPartition]
    given: dict[str, dict[TopicPartition, None]]
    owner: dict[TopicPartition, str] = attrs.field(factory=dict)
    movements: Movements = attrs.field(factory=Movements)

    @classmethod
    def of(cls, topics: Topics, members: Sequence[Member], past: PriorOwnership) -> _Table:
        """Return a table in which no member has a partition. Partitions of topics with few subscribers come first."""
        loads = MemberLoads.of(past.owned)
        wanting = dict.fromkeys(topics, 0)
        for member in members:
            bit = loads.bits([member.member_id])
            for topic in member.subscription.topics:
                if topic in wanting:
                    wanting[topic] |= bit
        order = sorted(topics, key=lambda topic: (wanting[topic].bit_count(), utf16_key(topic)))
        partitions = [
            TopicPartition(topic, number) for topic in order for number in range(len(topics[topic]))
        ]
        return cls(past, loads, wanting, partitions, {member_id: {} for member_id in past.owned})

    def keep(self, racks: Racks) -> bool:
        """Let members keep their partitions. Return whether one had to give up a partition."""
        gave_up = False
        for member_id, owned in self.past.owned.items():
            for partition in owned:
                if self.may_have(member_id, partition) and not racks.far(member_id, partition):
                    self._give(partition, member_id)
                else:
                    gave_up = True
        return gave_up

    def may_have(self, member_id: str, partition: TopicPartition) -> bool:
        return bool(self.wanting[partition.topic] & self.loads.bits([member_id]))

    def hand_out(self, partitions: Iterable[TopicPartition], racks: Racks) -> None:
        """Give each to its least loaded subscriber; where racks matter, first to subscribers that are not far."""
        left = list(partitions)
        if racks:
            members_in = self._members_in(racks)
            left = [each for each in left if not self._hand_out_near(each, racks, members_in)]
        for partition in left:
            member_id = self.loads.least(self.wanting[partition.topic])
            if member_id is not None:
                self._give(partition, member_id)

    def _members_in(self, racks: Racks) -> dict[str | None, int]:
        """Return the set of the members of each rack, and of those without a rack."""
        found: dict[str | None, int] = {}
        for member_id in self.loads.names:
            rack = racks.of_member.get(member_id)
            found[rack] = found.get(rack, 0) | self.loads.bits([member_id])
        return found

    def _hand_out_near(
        self, partition: TopicPartition, racks: Racks, members_in: dict[str | None, int]
    ) -> bool:
        near = members_in.get(None, 0)
        for rack in racks.of(partition):
            near |= members_in.get(rack, 0)
        member_id = self.loads.least(self.wanting[partition.topic] & near)
        if member_id is None:
            return False
        self._give(partition, member_id)
        return True

    def even_out(self, partitions: Sequence[TopicPartition]) -> bool:
        """Move partitions while that makes the loads more even. Return whether any has moved."""
        movable = [each for each in partitions if self.wanting[each.topic].bit_count() > 1]
        for passes in range(len(movable) + 1):
            moves = 0
            for partition in movable:
                moves += self._move_with_gain(partition)
            if not moves:
                return passes > 0
        return True

    def _move_with_gain(self, partition: TopicPartition) -> bool:
        """Move this partition, or another of its topic in its place, if it makes the loads more even."""
        source = self.owner[partition]
        enough = self.loads[source] - 2
        earlier = self.past.earlier.get(partition)
        if earlier is not None and self.may_have(earlier, partition) and self.loads[earlier] <= enough:
            target: str | None = earlier
        else:
            target = self.loads.least(self.wanting[partition.topic])
        if target is None:
            raise InternalError(f"no member subscribes to {partition}, yet {source} has it")
        if self.loads[target] > enough:
            return False
        moving = self.movements.instead_of(partition, source, target)
        self._take(moving)
        self.movements.record(moving, source, target)
        self._give(moving, target)
        return True

    def _give(self, partition: TopicPartition, member_id: str) -> None:
        self.given[member_id][partition] = None
        self.owner[partition] = member_id
        self.loads.change(member_id, 1)

    def _take(self, partition: TopicPartition) -> None:
        member_id = self.owner[partition]
        del self.given[member_id][partition]
        self.loads.change(member_id, -1)

    def unevenness(self) -> int:
        """Return how far apart the loads are of the members whose number of partitions can change."""
        shared = 0
        for members in self.wanting.values():
            if members.bit_count() > 1:
                shared |= members
        return self.loads.unevenness(shared)
