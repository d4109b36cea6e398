"""ShareGroupCurrentMemberAssignmentValue, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/ShareGroupCurrentMemberAssignmentValue.json by `python -m codegen`; edits here are lost.
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
    write_tags,
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
    """

    topic_id: Uuid = ZERO_UUID
    partitions: list[int] = Factory(list)


@define(weakref_slot=False)
class ShareGroupCurrentMemberAssignmentValue(Message):
    """The assignment a share group member has now; it needs no revocation step.

    Attributes:
        member_epoch: The epoch the member has reached on its way to the group's.
        previous_member_epoch: The epoch before, still accepted once in case the answer that raised it got
            lost.
        state: 0 stable; a share group member is never in any other state.
        assigned_partitions: The partitions the member reads from, by topic.
    """

    NAME: ClassVar[str] = "ShareGroupCurrentMemberAssignmentValue"
    TYPE: ClassVar[str] = "coordinator-value"
    API_KEY: ClassVar[int | None] = 14
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    assigned_partitions: list[TopicPartitions] = Factory(list)


# TopicPartitions in version 0
def read_topic_partitions_v0(data: Buffer, at: int, size: int) -> tuple[TopicPartitions, int]:
    message = new(TopicPartitions)
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
        message.unknown_tags = left_over(found)
    return message, at


def write_topic_partitions_v0(message: TopicPartitions, add: Add) -> None:
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
    partitions = message.partitions
    add(compact_length[len(partitions)])
    add(int32_array[len(partitions)].pack(*partitions))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ShareGroupCurrentMemberAssignmentValue in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[ShareGroupCurrentMemberAssignmentValue, int]:
    message = new(ShareGroupCurrentMemberAssignmentValue)
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
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: ShareGroupCurrentMemberAssignmentValue, add: Add) -> None:
    add(pack_i4x2_i1(message.member_epoch, message.previous_member_epoch, message.state))
    assigned_partitions = message.assigned_partitions
    add(compact_length[len(assigned_partitions)])
    for assigned_partition in assigned_partitions:
        write_topic_partitions_v0(assigned_partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ShareGroupCurrentMemberAssignmentValue]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
TopicPartitions.FIELDS = (
    Field("topic_id", "topicId", "uuid", (0, 0)),
    Field("partitions", "partitions", "[]int32", (0, 0)),
)
ShareGroupCurrentMemberAssignmentValue.FIELDS = (
    Field("member_epoch", "memberEpoch", "int32", (0, 0)),
    Field("previous_member_epoch", "previousMemberEpoch", "int32", (0, 0)),
    Field("state", "state", "int8", (0, 0)),
    Field("assigned_partitions", "assignedPartitions", "[]TopicPartitions", (0, 0), struct=TopicPartitions),
)
