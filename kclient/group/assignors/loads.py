"""How many partitions each member has, and who of some members has the fewest.

Members are numbered in the order of their ids, and a set of members is the bits of one integer: bit 5 is member 5. So
the least loaded of the subscribers of a topic is found by a few operations on whole integers, however many they are,
and of two that are equal the first by id comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from kclient.group.assignors.base import utf16_key


@attrs.define
class Loads:
    """`at[n]` is the set of the members that have n partitions; `levels` are the bits of all n that somebody has."""

    number: dict[str, int]
    names: list[str]
    sizes: list[int]
    at: list[int]
    levels: int = 1

    @classmethod
    def of(cls, members: Iterable[str]) -> Loads:
        """Nobody has anything yet."""
        names = sorted(members, key=utf16_key)
        return cls(
            {name: n for n, name in enumerate(names)}, names, [0] * len(names), [(1 << len(names)) - 1]
        )

    def __getitem__(self, member_id: str) -> int:
        return self.sizes[self.number[member_id]]

    def bits(self, members: Iterable[str]) -> int:
        """The set of these members."""
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
        """The member with the fewest partitions in a set, the first by id if there are several."""
        for level in _ascending(self.levels):
            if found := self.at[level] & among:
                return self.names[(found & -found).bit_length() - 1]
        return None

    def unevenness(self, among: int) -> int:
        """The differences between all pairs of members of a set, summed up."""
        sizes = sorted(self.sizes[number] for number in _ascending(among))
        return sum((2 * place + 1 - len(sizes)) * size for place, size in enumerate(sizes))


def _ascending(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
