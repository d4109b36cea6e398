"""Members that wait for partitions, in order. Each rack's number is kept, so that a search in vain costs nothing."""

from __future__ import annotations

import itertools

import attrs

from kclient.group.assignors.base import utf16_key
from kclient.group.assignors.racks import Racks
from kclient.types import TopicPartition


@attrs.define
class Waiting:
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
        """Order them by member id."""
        self.members.sort(key=utf16_key)

    def next_near(self, partition: TopicPartition, start: int) -> int | None:
        """The place of the first member near the partition, going round from `start`; None if none is near."""
        if not any(self.in_rack.get(rack) for rack in self.racks.of(partition)):
            return None
        around = itertools.chain(range(start, len(self.members)), range(start))
        return next((at for at in around if self.racks.near(self.members[at], partition)), None)

    def _count(self, member_id: str, by: int) -> None:
        rack = self.racks.of_member.get(member_id)
        if rack is not None:
            self.in_rack[rack] = self.in_rack.get(rack, 0) + by
