"""ConsumerGroupCurrentMemberAssignmentValue, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/ConsumerGroupCurrentMemberAssignmentValue.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import Factory, define

from kclient.protocol.message import Field, Message, Struct
from kclient.protocol.primitives import (
    ZERO_UUID,
    Add,
    Buffer,
    Codec,
    Malformed,
    Unwritable,
    Uuid,
    compact_length,
    int32_array,
    left_over,
    new,
    read_tags,
    read_uvarint,
    read_whole,
    write_tags,
    written,
)

pack_i4x2_i1: Final = struct.Struct(">iib").pack
pack_uuid: Final = struct.Struct(">16s").pack
unpack_i4x2_i1_u1: Final = struct.Struct(">iibB").unpack_from
unpack_uuid_u1: Final = struct.Struct(">16sB").unpack_from


@define(weakref_slot=False)
class TopicPartitions(Struct):
    """Some partitions of one topic in a member's assignment.

    Attributes:
        topic_id: The id of the topic of these partitions.
        partitions: The partition numbers of this topic.
        assignment_epochs: In step with Partitions: the member epoch at which each was assigned, so that
            commits since then are accepted (Kafka 4.3); null or empty when not kept.
    """

    topic_id: Uuid = ZERO_UUID
    partitions: list[int] = Factory(list)
    assignment_epochs: list[int] | None = Factory(list)


@define(weakref_slot=False)
class ConsumerGroupCurrentMemberAssignmentValue(Message):
    """How far a member of a consumer-protocol group has come on its way to the target assignment.

    Attributes:
        member_epoch: The epoch the member has reached; it equals the assignment epoch once nothing is left to
            revoke.
        previous_member_epoch: The epoch before, still accepted once in case the answer that raised it got
            lost; -1 for a new member.
        state: 0 stable, 1 has partitions yet to revoke, 2 waits for partitions that others have yet to
            release.
        assigned_partitions: The partitions the member owns and may keep, by topic.
        partitions_pending_revocation: The partitions it has been told to give up and has not yet confirmed,
            by topic.
    """

    NAME: ClassVar[str] = "ConsumerGroupCurrentMemberAssignmentValue"
    TYPE: ClassVar[str] = "coordinator-value"
    API_KEY: ClassVar[int | None] = 8
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    assigned_partitions: list[TopicPartitions] = Factory(list)
    partitions_pending_revocation: list[TopicPartitions] = Factory(list)


def read_topic_partitions_assignment_epochs_tag_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[list[int] | None, int]:
    value: list[int] | None
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        value = None
    else:
        count -= 1
        if not 0 <= count * 4 <= size - at:
            raise Malformed("assignment_epochs")
        value = list(int32_array[count].unpack_from(data, at))
        at += 4 * count
    return value, at


def write_topic_partitions_assignment_epochs_tag_v0(value: list[int] | None, add: Add) -> None:
    assignment_epochs = value
    if assignment_epochs is None:
        add(b"\x00")
    else:
        add(compact_length[len(assignment_epochs)])
        add(int32_array[len(assignment_epochs)].pack(*assignment_epochs))


# TopicPartitions in version 0
def read_topic_partitions_v0(data: Buffer, at: int, size: int) -> tuple[TopicPartitions, int]:
    message = new(TopicPartitions)
    message.assignment_epochs = []
    message.unknown_tags = ()
    message.topic_id, count = unpack_uuid_u1(data, at)
    at += 17
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 4 <= size - at:
        raise Malformed("partitions")
    message.partitions = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        if 0 in found:
            message.assignment_epochs = read_whole(
                read_topic_partitions_assignment_epochs_tag_v0,
                found.pop(0),
            )
        message.unknown_tags = left_over(found)
    return message, at


def write_topic_partitions_v0(message: TopicPartitions, add: Add) -> None:
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
    partitions = message.partitions
    add(compact_length[len(partitions)])
    add(int32_array[len(partitions)].pack(*partitions))
    tags: dict[int, bytes] = {}
    if message.assignment_epochs != []:
        tags[0] = written(write_topic_partitions_assignment_epochs_tag_v0, message.assignment_epochs)
    if tags or message.unknown_tags:
        write_tags((0,), tags, message.unknown_tags, add)
    else:
        add(b"\x00")


# ConsumerGroupCurrentMemberAssignmentValue in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[ConsumerGroupCurrentMemberAssignmentValue, int]:
    message = new(ConsumerGroupCurrentMemberAssignmentValue)
    message.unknown_tags = ()
    message.member_epoch, message.previous_member_epoch, message.state, count = unpack_i4x2_i1_u1(data, at)
    at += 10
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("assigned_partitions")
    assigned_partitions: list[TopicPartitions] = []
    for _ in range(count):
        assigned_partition, at = read_topic_partitions_v0(data, at, size)
        assigned_partitions.append(assigned_partition)
    message.assigned_partitions = assigned_partitions
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("partitions_pending_revocation")
    partitions_pending_revocation: list[TopicPartitions] = []
    for _ in range(count):
        partitions_pending_revocation_item, at = read_topic_partitions_v0(data, at, size)
        partitions_pending_revocation.append(partitions_pending_revocation_item)
    message.partitions_pending_revocation = partitions_pending_revocation
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: ConsumerGroupCurrentMemberAssignmentValue, add: Add) -> None:
    add(pack_i4x2_i1(message.member_epoch, message.previous_member_epoch, message.state))
    assigned_partitions = message.assigned_partitions
    add(compact_length[len(assigned_partitions)])
    for assigned_partition in assigned_partitions:
        write_topic_partitions_v0(assigned_partition, add)
    partitions_pending_revocation = message.partitions_pending_revocation
    add(compact_length[len(partitions_pending_revocation)])
    for partitions_pending_revocation_item in partitions_pending_revocation:
        write_topic_partitions_v0(partitions_pending_revocation_item, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ConsumerGroupCurrentMemberAssignmentValue]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
TopicPartitions.FIELDS = (
    Field("topic_id", "topicId", "uuid", (0, 0)),
    Field("partitions", "partitions", "[]int32", (0, 0)),
    Field("assignment_epochs", "assignmentEpochs", "[]int32", (0, 0), nullable=(0, 0), tagged=(0, 0), tag=0),
)
ConsumerGroupCurrentMemberAssignmentValue.FIELDS = (
    Field("member_epoch", "memberEpoch", "int32", (0, 0)),
    Field("previous_member_epoch", "previousMemberEpoch", "int32", (0, 0)),
    Field("state", "state", "int8", (0, 0)),
    Field("assigned_partitions", "assignedPartitions", "[]TopicPartitions", (0, 0), struct=TopicPartitions),
    Field(
        "partitions_pending_revocation",
        "partitionsPendingRevocation",
        "[]TopicPartitions",
        (0, 0),
        struct=TopicPartitions,
    ),
)
