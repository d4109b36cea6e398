"""Changes to a consumer group, each together with its record.

The state of a group follows from its records: a new coordinator that loads them builds the same group. Therefore only
a journal changes a group, and writes all changes of one request as one batch.
"""

from __future__ import annotations

from collections.abc import Iterable

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.consumer_protocol import records
from kclient.embedded.groups.consumer_protocol.member import LEAVING, ConsumerGroupMember, TopicIdPartition
from kclient.embedded.groups.consumer_protocol.metadata import (
    ConsumerGroupMetadata,
    ResolvedRegularExpression,
)
from kclient.records.writer import NewRecord
from kclient.types import TopicPartition


class Journal:
    """The changes of one request or timer to a group. `write` appends their records."""

    def __init__(self, group: ConsumerGroupMetadata, before: Iterable[NewRecord] = ()) -> None:
        self.group = group
        self._before = group.snapshot()
        self._records: list[NewRecord] = list(before)
        self._moved: dict[str, None] = {}

    def write(self) -> None:
        """Append the records, if any, and notify the observers of changed assignments.

        Raise ApiError if that fails; then nothing has changed.
        """
        if self._records:
            try:
                self.group.coordinator.write(self.group.group_id, self._records)
            except ApiError:
                self.group.restore_snapshot(self._before)
                raise
        for member_id in self._moved:
            notify_observers(self.group, member_id)
            if member_id not in self.group.members:
                self.group.timers.stop(member_id)

    # --- members

    def set_metadata(self, member: ConsumerGroupMember) -> None:
        """Add a member, or change its metadata."""
        self.group.members[member.member_id] = member
        self._records.append(records.metadata(self.group, member))

    def set_assignment(self, member: ConsumerGroupMember) -> None:
        """Change the current assignment, epoch or state of a member."""
        before = self.group.members[member.member_id]
        self._release(before)
        self.group.members[member.member_id] = member
        for partition in member.holds:
            self.group.holders[partition] = member.member_id
        self._records.append(records.current(self.group, member))
        self._moved[member.member_id] = None

    def remove_member(self, member: ConsumerGroupMember) -> None:
        """Remove a member and release its partitions."""
        group = self.group
        self._release(member)
        del group.members[member.member_id]
        group.targets.pop(member.member_id, None)
        self._records += records.member_tombstones(group, member.member_id)
        self._moved[member.member_id] = None

    # --- the group

    def begin(self, epoch: int, metadata_hash: int) -> None:
        """Begin in the epoch that the group had as a classic group."""
        self.group.epoch, self.group.metadata_hash = epoch, metadata_hash
        self._records += records.group_epoch(self.group)

    def bump_epoch(self, metadata_hash: int) -> None:
        """Bump the group epoch."""
        self.group.epoch += 1
        self.group.metadata_hash = metadata_hash
        self._records += records.group_epoch(self.group)

    def set_target(self, member_id: str, partitions: tuple[TopicIdPartition, ...]) -> None:
        """Set the target assignment of a member."""
        self.group.targets[member_id] = partitions
        self._records.append(records.target(self.group, member_id))

    def set_assignment_epoch(self, now_ms: int) -> None:
        """Set the assignment epoch to the group epoch."""
        self.group.assignment_epoch = self.group.epoch
        self.group.assigned_at_ms = now_ms
        self._records.append(records.assignment_epoch(self.group))

    def set_regex(self, pattern: str, resolved: ResolvedRegularExpression) -> None:
        """Set the topics of a regular expression."""
        self.group.patterns[pattern] = resolved
        self._records.append(records.pattern(self.group, pattern))

    def remove_regex(self, pattern: str) -> None:
        """Remove a regular expression that no member uses."""
        del self.group.patterns[pattern]
        self._records.append(records.pattern(self.group, pattern))

    def _release(self, member: ConsumerGroupMember) -> None:
        for partition in member.holds:
            if self.group.holders.get(partition) == member.member_id:
                del self.group.holders[partition]


def notify_observers(group: ConsumerGroupMetadata, member_id: str) -> None:
    """Notify observers of the partitions of a member; of none, in epoch −1, after it has left."""
    member = group.members.get(member_id)
    epoch, holds = (LEAVING, ()) if member is None else (member.epoch, member.holds)
    topics = {topic.topic_id: topic.name for topic in group.cluster.topics.values()}
    owned = [TopicPartition(topics[one.topic_id], one.number) for one in holds if one.topic_id in topics]
    for observer in group.cluster.observers:
        observer.reconciled(group.group_id, member_id, epoch, owned)
