"""Changes to a consumer group, each of them together with the record that tells of it.

The state of a group is what its records say: whoever reads them back comes to the same group. So nothing but this
changes a group, and a flow writes all that it changed as one batch.
"""

from __future__ import annotations

from collections.abc import Iterable

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.consumer_protocol import records
from kclient.embedded.groups.consumer_protocol.group import ConsumerGroup, ResolvedRegularExpression
from kclient.embedded.groups.consumer_protocol.member import LEAVING, ConsumerGroupMember, TopicIdPartition
from kclient.records.writer import NewRecord
from kclient.types import TopicPartition


class Journal:
    """What one request, or one timer, does to a group. `write` when done."""

    def __init__(self, group: ConsumerGroup, before: Iterable[NewRecord] = ()) -> None:
        self.group = group
        self._before = group.snapshot()
        self._records: list[NewRecord] = list(before)
        self._moved: dict[str, None] = {}

    def write(self) -> None:
        """Append the records, if there are any, and tell the observers what changed hands.

        Raises ApiError if that fails; then nothing has changed.
        """
        if self._records:
            try:
                self.group.coordinator.write(self.group.group_id, self._records)
            except ApiError:
                self.group.go_back(self._before)
                raise
        for member_id in self._moved:
            tell_observers(self.group, member_id)
            if member_id not in self.group.members:
                self.group.timers.stop(member_id)

    # --- members

    def tell(self, member: ConsumerGroupMember) -> None:
        """A member is new, or told something new of itself."""
        self.group.members[member.member_id] = member
        self._records.append(records.metadata(self.group, member))

    def progress(self, member: ConsumerGroupMember) -> None:
        """A member owns something else, or is in another epoch or state."""
        before = self.group.members[member.member_id]
        self._release(before)
        self.group.members[member.member_id] = member
        for partition in member.holds:
            self.group.holders[partition] = member.member_id
        self._records.append(records.current(self.group, member))
        self._moved[member.member_id] = None

    def drop(self, member: ConsumerGroupMember) -> None:
        """A member is gone, and what it owned is free."""
        group = self.group
        self._release(member)
        del group.members[member.member_id]
        group.targets.pop(member.member_id, None)
        self._records += records.member_tombstones(group, member.member_id)
        self._moved[member.member_id] = None

    # --- the group

    def begin(self, epoch: int, metadata_hash: int) -> None:
        """The group begins in an epoch, with what it had as a classic group."""
        self.group.epoch, self.group.metadata_hash = epoch, metadata_hash
        self._records += records.group_epoch(self.group)

    def bump(self, metadata_hash: int) -> None:
        """Something changed: the next epoch."""
        self.group.epoch += 1
        self.group.metadata_hash = metadata_hash
        self._records += records.group_epoch(self.group)

    def target(self, member_id: str, partitions: tuple[TopicIdPartition, ...]) -> None:
        """A member should own this now."""
        self.group.targets[member_id] = partitions
        self._records.append(records.target(self.group, member_id))

    def assigned(self, now_ms: int) -> None:
        """The targets are those of the group's epoch."""
        self.group.assignment_epoch = self.group.epoch
        self.group.assigned_at_ms = now_ms
        self._records.append(records.assignment_epoch(self.group))

    def resolve(self, pattern: str, resolved: ResolvedRegularExpression) -> None:
        """A pattern stands for these topics."""
        self.group.patterns[pattern] = resolved
        self._records.append(records.pattern(self.group, pattern))

    def forget(self, pattern: str) -> None:
        """Nobody uses a pattern any more."""
        del self.group.patterns[pattern]
        self._records.append(records.pattern(self.group, pattern))

    def _release(self, member: ConsumerGroupMember) -> None:
        for partition in member.holds:
            if self.group.holders.get(partition) == member.member_id:
                del self.group.holders[partition]


def tell_observers(group: ConsumerGroup, member_id: str) -> None:
    """Everything that a member holds; nothing, in epoch −1, when it is gone."""
    member = group.members.get(member_id)
    epoch, holds = (LEAVING, ()) if member is None else (member.epoch, member.holds)
    topics = {topic.topic_id: topic.name for topic in group.cluster.topics.values()}
    owned = [TopicPartition(topics[one.topic_id], one.number) for one in holds if one.topic_id in topics]
    for observer in group.cluster.observers:
        observer.reconciled(group.group_id, member_id, epoch, owned)
