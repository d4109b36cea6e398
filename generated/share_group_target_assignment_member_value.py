"""ShareGroupTargetAssignmentMemberValue, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/ShareGroupTargetAssignmentMemberValue.json by `python -m codegen`; edits here are lost.
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

pack_uuid: Final = struct.Struct(">16s").pack
unpack_uuid_u1: Final = struct.Struct(">16sB").unpack_from


@define(weakref_slot=False)
class TopicPartition(Struct):
    """The partitions the member shall have in the end, by topic; empty for none.

    Attributes:
        topic_id: The id of the topic of these partitions.
        partitions: The partition numbers of this topic the member shall have.
    """

    topic_id: Uuid = ZERO_UUID
    partitions: list[int] = Factory(list)


@define(weakref_slot=False)
class ShareGroupTargetAssignmentMemberValue(Message):
    """What the assignor wants a share group member to read from; partitions may be given to several members.

    Attributes:
        topic_partitions: The partitions the member shall have in the end, by topic; empty for none.
    """

    NAME: ClassVar[str] = "ShareGroupTargetAssignmentMemberValue"
    TYPE: ClassVar[str] = "coordinator-value"
    API_KEY: ClassVar[int | None] = 13
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    topic_partitions: list[TopicPartition] = Factory(list)


# TopicPartition in version 0
def read_topic_partition_v0(data: Buffer, at: int, size: int) -> tuple[TopicPartition, int]:
    message = new(TopicPartition)
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


def write_topic_partition_v0(message: TopicPartition, add: Add) -> None:
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


# ShareGroupTargetAssignmentMemberValue in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[ShareGroupTargetAssignmentMemberValue, int]:
    message = new(ShareGroupTargetAssignmentMemberValue)
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("topic_partitions")
    topic_partitions: list[TopicPartition] = []
    for _ in range(count):
        topic_partition, at = read_topic_partition_v0(data, at, size)
        topic_partitions.append(topic_partition)
    message.topic_partitions = topic_partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: ShareGroupTargetAssignmentMemberValue, add: Add) -> None:
    topic_partitions = message.topic_partitions
    add(compact_length[len(topic_partitions)])
    for topic_partition in topic_partitions:
        write_topic_partition_v0(topic_partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ShareGroupTargetAssignmentMemberValue]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
TopicPartition.FIELDS = (
    Field("topic_id", "topicId", "uuid", (0, 0)),
    Field("partitions", "partitions", "[]int32", (0, 0)),
)
ShareGroupTargetAssignmentMemberValue.FIELDS = (
    Field("topic_partitions", "topicPartitions", "[]TopicPartition", (0, 0), struct=TopicPartition),
)
