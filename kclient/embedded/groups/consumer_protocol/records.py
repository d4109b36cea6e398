"""A consumer group as records of `__consumer_offsets`, written and read back.

| record type | holds                                                    | since |
|-------------|----------------------------------------------------------|-------|
| 3           | the group: its epoch                                     |       |
| 4           | the subscribed topics with partitions and racks          | – 4.0 |
| 5           | a member: its metadata                                   |       |
| 6           | the epoch of the target assignment                       |       |
| 7           | a member: its target assignment                          |       |
| 8           | a member: its current assignment                         |       |
| 16          | a regular expression: the topics that it resolves to     | 4.0   |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import attrs

from kclient.embedded.groups.consumer_protocol.member import (
    ConsumerGroupMember,
    Epochs,
    HostedClassicMember,
    MemberState,
    TopicIdPartition,
    by_topic,
    from_wire,
)
from kclient.embedded.groups.consumer_protocol.metadata import (
    ConsumerGroupMetadata,
    ResolvedRegularExpression,
    hash_of,
    replica_racks,
    subscribed_topics,
)
from kclient.embedded.groups.records import OffsetsTopicRow, record
from kclient.embedded.releases import Release
from kclient.generated.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from kclient.generated.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from kclient.generated.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from kclient.generated.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
)
from kclient.generated.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kclient.generated.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kclient.generated.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from kclient.generated.consumer_group_partition_metadata_value import (
    ConsumerGroupPartitionMetadataValue,
    PartitionMetadata,
    TopicMetadata,
)
from kclient.generated.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from kclient.generated.consumer_group_regular_expression_value import ConsumerGroupRegularExpressionValue
from kclient.generated.consumer_group_target_assignment_member_key import (
    ConsumerGroupTargetAssignmentMemberKey,
)
from kclient.generated.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from kclient.generated.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)
from kclient.generated.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)
from kclient.protocol.message import Message
from kclient.records.writer import NewRecord

HASH_SINCE: Final = Release.parse("4.1")
TIMES_AND_EPOCHS_SINCE: Final = Release.parse("4.3")


# --- the group


def group_epoch(group: ConsumerGroupMetadata) -> list[NewRecord]:
    """Return the records of the group epoch, with a hash of the topics; before 4.1 the topics in a separate record."""
    key = ConsumerGroupMetadataKey(group_id=group.group_id)
    if group.cluster.release >= HASH_SINCE:
        value = ConsumerGroupMetadataValue(epoch=group.epoch, metadata_hash=group.metadata_hash)
        return [_record(group, key, value)]
    return [_partition_metadata(group), _record(group, key, ConsumerGroupMetadataValue(epoch=group.epoch))]


def _partition_metadata(group: ConsumerGroupMetadata) -> NewRecord:
    rows = [
        TopicMetadata(
            topic_id=topic.topic_id,
            topic_name=topic.name,
            num_partitions=len(topic.partitions),
            partition_metadata=[
                PartitionMetadata(partition=one.number, racks=replica_racks(group, one))
                for one in topic.partitions
            ],
        )
        for topic in subscribed_topics(group)
    ]
    key = ConsumerGroupPartitionMetadataKey(group_id=group.group_id)
    return _record(group, key, ConsumerGroupPartitionMetadataValue(topics=rows))


def assignment_epoch(group: ConsumerGroupMetadata) -> NewRecord:
    """Return the record of the assignment epoch; from 4.3 on with the time of the computation."""
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=group.assignment_epoch)
    if group.cluster.release >= TIMES_AND_EPOCHS_SINCE:
        value.assignment_timestamp = group.assigned_at_ms
    return _record(group, ConsumerGroupTargetAssignmentMetadataKey(group_id=group.group_id), value)


def pattern(group: ConsumerGroupMetadata, text: str) -> NewRecord:
    """Return the record of a resolved regular expression; its tombstone if the group does not use it."""
    key = ConsumerGroupRegularExpressionKey(group_id=group.group_id, regular_expression=text)
    resolved = group.patterns.get(text)
    if resolved is None:
        return _record(group, key, None)
    value = ConsumerGroupRegularExpressionValue(topics=list(resolved.topics), timestamp=resolved.at_ms)
    return _record(group, key, value)


def group_tombstones(group: ConsumerGroupMetadata) -> list[NewRecord]:
    """Return tombstones of the group and all its members."""
    group_id = group.group_id
    members = [_member_keys(group, member_id) for member_id in group.members]
    patterns = [
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=one) for one in group.patterns
    ]
    keys: list[Message] = [
        *(current for current, _, _ in members),
        *(target for _, target, _ in members),
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        *(metadata for _, _, metadata in members),
        ConsumerGroupPartitionMetadataKey(group_id=group_id),
        *patterns,
        ConsumerGroupMetadataKey(group_id=group_id),
    ]
    return [_record(group, key, None) for key in keys]


# --- members


def metadata(group: ConsumerGroupMetadata, member: ConsumerGroupMember) -> NewRecord:
    """Return the metadata record of a member."""
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=None if member.classic is None else _classic(member.classic),
    )
    key = ConsumerGroupMemberMetadataKey(group_id=group.group_id, member_id=member.member_id)
    return _record(group, key, value)


def target(group: ConsumerGroupMetadata, member_id: str) -> NewRecord:
    """Return the target assignment record of a member."""
    rows = [
        TopicPartition(topic_id=topic_id, partitions=numbers)
        for topic_id, numbers in by_topic(group.targets[member_id]).items()
    ]
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group.group_id, member_id=member_id)
    return _record(group, key, ConsumerGroupTargetAssignmentMemberValue(topic_partitions=rows))


def current(group: ConsumerGroupMetadata, member: ConsumerGroupMember) -> NewRecord:
    """Return the current assignment record of a member: owned and revoked partitions, epoch, state."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state.value,
        assigned_partitions=_with_epochs(group, member.assigned),
        partitions_pending_revocation=_with_epochs(group, member.revoking),
    )
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group.group_id, member_id=member.member_id)
    return _record(group, key, value)


def member_tombstones(group: ConsumerGroupMetadata, member_id: str) -> list[NewRecord]:
    """Return the tombstones of a member's three records."""
    return [_record(group, key, None) for key in _member_keys(group, member_id)]


def _member_keys(group: ConsumerGroupMetadata, member_id: str) -> tuple[Message, Message, Message]:
    return (
        ConsumerGroupCurrentMemberAssignmentKey(group_id=group.group_id, member_id=member_id),
        ConsumerGroupTargetAssignmentMemberKey(group_id=group.group_id, member_id=member_id),
        ConsumerGroupMemberMetadataKey(group_id=group.group_id, member_id=member_id),
    )


def _classic(part: HostedClassicMember) -> ClassicMemberMetadata:
    rows = [ClassicProtocol(name=name, metadata=data) for name, data in part.protocols]
    return ClassicMemberMetadata(session_timeout_ms=part.session_timeout_ms, supported_protocols=rows)


def _with_epochs(group: ConsumerGroupMetadata, partitions: Epochs) -> list[TopicPartitions]:
    known = group.cluster.release >= TIMES_AND_EPOCHS_SINCE
    rows = []
    for topic_id, numbers in by_topic(partitions).items():
        epochs = [partitions[TopicIdPartition(topic_id, number)] for number in numbers] if known else None
        rows.append(TopicPartitions(topic_id=topic_id, partitions=numbers, assignment_epochs=epochs))
    return rows


def _record(group: ConsumerGroupMetadata, key: Message, value: Message | None) -> NewRecord:
    return record(key, value, timestamp=group.cluster.clock.wall_ms())


def read_rows(group: ConsumerGroupMetadata, rows: Iterable[OffsetsTopicRow]) -> None:
    """Load a group from these records, in any order; its timers do not run yet."""
    for row in rows:
        if row.kind in _READERS:
            _READERS[row.kind](group, row.key, row.value)


def _read_group(group: ConsumerGroupMetadata, key: Any, value: Any) -> None:
    group.epoch = value.epoch
    # Before 4.1 the topics are in a separate record.
    group.metadata_hash = value.metadata_hash or group.metadata_hash


def _read_topics(group: ConsumerGroupMetadata, key: Any, value: Any) -> None:
    topics = sorted(value.topics, key=lambda topic: topic.topic_name)
    group.metadata_hash = hash_of(
        (
            topic.topic_name,
            topic.topic_id,
            topic.num_partitions,
            [one.racks for one in topic.partition_metadata],
        )
        for topic in topics
    )


def _read_target_epoch(group: ConsumerGroupMetadata, key: Any, value: Any) -> None:
    group.assignment_epoch, group.assigned_at_ms = value.assignment_epoch, value.assignment_timestamp


def _read_member(group: ConsumerGroupMetadata, key: Any, value: Any) -> None:
    updated = value.classic_member_metadata
    classic = updated and HostedClassicMember(
        updated.session_timeout_ms,
        tuple((one.name, bytes(one.metadata)) for one in updated.supported_protocols),
    )
    group.members[key.member_id] = attrs.evolve(
        group.members.get(key.member_id) or ConsumerGroupMember(key.member_id),
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topics=tuple(value.subscribed_topic_names),
        regex=value.subscribed_topic_regex or "",
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        assignor=value.server_assignor,
        classic=classic,
    )


def _read_target(group: ConsumerGroupMetadata, key: Any, value: Any) -> None:
    group.targets[key.member_id] = from_wire(value.topic_partitions)


def _read_current(group: ConsumerGroupMetadata, key: Any, value: Any) -> None:
    member = group.members[key.member_id] = attrs.evolve(
        group.members.get(key.member_id) or ConsumerGroupMember(key.member_id),
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state),
        assigned=_read_epochs(value.assigned_partitions, value.member_epoch),
        revoking=_read_epochs(value.partitions_pending_revocation, value.member_epoch),
    )
    group.holders.update(dict.fromkeys(member.holds, member.member_id))


def _read_regex(group: ConsumerGroupMetadata, key: Any, value: Any) -> None:
    group.patterns[key.regular_expression] = ResolvedRegularExpression(tuple(value.topics), value.timestamp)


def _read_epochs(topics: Any, member_epoch: int) -> Epochs:
    """Return partition → epoch of the assignment. Records before 4.3 lack it: use the member epoch."""
    found: dict[TopicIdPartition, int] = {}
    for topic in topics:
        since = topic.assignment_epochs or [max(0, member_epoch)] * len(topic.partitions)
        for number, epoch in zip(topic.partitions, since, strict=True):
            found[TopicIdPartition(topic.topic_id, number)] = epoch
    return dict(sorted(found.items()))


_READERS: Final[Mapping[int, Callable[[ConsumerGroupMetadata, Any, Any], None]]] = {
    3: _read_group,
    4: _read_topics,
    5: _read_member,
    6: _read_target_epoch,
    7: _read_target,
    8: _read_current,
    16: _read_regex,
}
