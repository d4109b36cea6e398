"""A consumer group as records of `__consumer_offsets`; `restore` reads them.

| kind | says of                             | since |
|------|-------------------------------------|-------|
| 3    | the group: its epoch                |       |
| 4    | the topics it reads                 | – 4.0 |
| 5    | a member: what it told              |       |
| 6    | the targets: their epoch            |       |
| 7    | a member: its target                |       |
| 8    | a member: what it owns              |       |
| 16   | a pattern: the topics it stands for | 4.0   |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kclient.embedded.groups.consumer.member import ClassicPart, Epochs, Member
from kclient.embedded.groups.consumer.metadata import replica_racks, topics_read
from kclient.embedded.groups.consumer.partitions import TopicIdPartition, by_topic
from kclient.embedded.groups.records import record
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

if TYPE_CHECKING:
    from kclient.embedded.groups.consumer.group import ConsumerGroup

HASH_SINCE: Final = Release.parse("4.1")
TIMES_AND_EPOCHS_SINCE: Final = Release.parse("4.3")


# --- the group


def group_epoch(group: ConsumerGroup) -> list[NewRecord]:
    """Its epoch, with a hash of its topics; before 4.1 the topics themselves in a record of their own."""
    key = ConsumerGroupMetadataKey(group_id=group.group_id)
    if group.cluster.release >= HASH_SINCE:
        value = ConsumerGroupMetadataValue(epoch=group.epoch, metadata_hash=group.metadata_hash)
        return [_record(group, key, value)]
    return [_topics(group), _record(group, key, ConsumerGroupMetadataValue(epoch=group.epoch))]


def _topics(group: ConsumerGroup) -> NewRecord:
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
        for topic in topics_read(group)
    ]
    key = ConsumerGroupPartitionMetadataKey(group_id=group.group_id)
    return _record(group, key, ConsumerGroupPartitionMetadataValue(topics=rows))


def assignment_epoch(group: ConsumerGroup) -> NewRecord:
    """The epoch of the targets, and from 4.3 on when they were computed."""
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=group.assignment_epoch)
    if group.cluster.release >= TIMES_AND_EPOCHS_SINCE:
        value.assignment_timestamp = group.assigned_at_ms
    return _record(group, ConsumerGroupTargetAssignmentMetadataKey(group_id=group.group_id), value)


def pattern(group: ConsumerGroup, text: str) -> NewRecord:
    """The topics that a pattern stands for; none any more if the group does not know the pattern."""
    key = ConsumerGroupRegularExpressionKey(group_id=group.group_id, regular_expression=text)
    resolved = group.patterns.get(text)
    if resolved is None:
        return _record(group, key, None)
    value = ConsumerGroupRegularExpressionValue(topics=list(resolved.topics), timestamp=resolved.at_ms)
    return _record(group, key, value)


def group_tombstones(group: ConsumerGroup) -> list[NewRecord]:
    """Nothing of it shall remain, nor of what members it still has."""
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


def metadata(group: ConsumerGroup, member: Member) -> NewRecord:
    """What a member told of itself."""
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


def target(group: ConsumerGroup, member_id: str) -> NewRecord:
    """What a member should own."""
    rows = [
        TopicPartition(topic_id=topic_id, partitions=numbers)
        for topic_id, numbers in by_topic(group.targets[member_id]).items()
    ]
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group.group_id, member_id=member_id)
    return _record(group, key, ConsumerGroupTargetAssignmentMemberValue(topic_partitions=rows))


def current(group: ConsumerGroup, member: Member) -> NewRecord:
    """What a member owns and has to give up, and in which epoch it is."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state.value,
        assigned_partitions=_with_epochs(group, member.assigned),
        partitions_pending_revocation=_with_epochs(group, member.revoking),
    )
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group.group_id, member_id=member.member_id)
    return _record(group, key, value)


def member_tombstones(group: ConsumerGroup, member_id: str) -> list[NewRecord]:
    """What it owns, what it should own, and it itself: gone."""
    return [_record(group, key, None) for key in _member_keys(group, member_id)]


def _member_keys(group: ConsumerGroup, member_id: str) -> tuple[Message, Message, Message]:
    return (
        ConsumerGroupCurrentMemberAssignmentKey(group_id=group.group_id, member_id=member_id),
        ConsumerGroupTargetAssignmentMemberKey(group_id=group.group_id, member_id=member_id),
        ConsumerGroupMemberMetadataKey(group_id=group.group_id, member_id=member_id),
    )


def _classic(part: ClassicPart) -> ClassicMemberMetadata:
    rows = [ClassicProtocol(name=name, metadata=data) for name, data in part.protocols]
    return ClassicMemberMetadata(session_timeout_ms=part.session_timeout_ms, supported_protocols=rows)


def _with_epochs(group: ConsumerGroup, partitions: Epochs) -> list[TopicPartitions]:
    known = group.cluster.release >= TIMES_AND_EPOCHS_SINCE
    rows = []
    for topic_id, numbers in by_topic(partitions).items():
        epochs = [partitions[TopicIdPartition(topic_id, number)] for number in numbers] if known else None
        rows.append(TopicPartitions(topic_id=topic_id, partitions=numbers, assignment_epochs=epochs))
    return rows


def _record(group: ConsumerGroup, key: Message, value: Message | None) -> NewRecord:
    return record(key, value, timestamp=group.cluster.clock.wall_ms())
