"""What has moved between members while a better balance is looked for, so that nothing moves to and fro.

A partition that moves on counts as moved from where it was first. When a partition of a topic is to move from one
member to another, and an earlier one of that topic has moved the other way, that one goes back instead: the result is
as good, and neither has moved.
"""

from __future__ import annotations

import attrs

from kclient.group.assignors.java_order import bucket, string_hash, table_size
from kclient.types import TopicPartition

Way = tuple[str, str, str]
"""Topic, the member that had it first, the member that has it now."""


@attrs.define
class Movements:
    """The way that each moved partition has gone, and for each way the partitions that have gone it."""

    ways: dict[TopicPartition, Way] = attrs.field(factory=dict)
    gone: dict[Way, _Gone] = attrs.field(factory=dict)

    def instead_of(self, partition: TopicPartition, source: str, target: str) -> TopicPartition:
        """What to move from `source` to `target` in place of this partition of `source`, perhaps itself."""
        if partition in self.ways:
            source = self.ways[partition][1]
        back = self.gone.get((partition.topic, target, source))
        return back.first() if back else partition

    def record(self, partition: TopicPartition, source: str, target: str) -> None:
        """A partition has moved."""
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
    """Partitions of one topic that have gone one way; which is first says the order of a HashSet, as in Java."""

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
