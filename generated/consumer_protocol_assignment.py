"""ConsumerProtocolAssignment, versions 0–3: its classes, and one read and write pair per layout.

Generated from schemas/ConsumerProtocolAssignment.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import Factory, define

from kclient.protocol.message import Field, Message, Struct
from kclient.protocol.primitives import (
    BYTES,
    Add,
    Buffer,
    Codec,
    Malformed,
    Unwritable,
    int32_array,
    new,
)

pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from


@define(weakref_slot=False)
class TopicPartition(Struct):
    """All the member's partitions, not only new ones; empty for a member that gets none.

    Attributes:
        topic: The topic of the assigned partitions.
        partitions: The partition numbers of this topic that the member is to read.
    """

    topic: str = ""
    partitions: list[int] = Factory(list)


@define(weakref_slot=False)
class ConsumerProtocolAssignment(Message):
    """What the leader of a classic group gives one consumer through SyncGroup. An int16 version stands in
    front.

    Attributes:
        assigned_partitions: All the member's partitions, not only new ones; empty for a member that gets
            none.
        user_data: Bytes from the assignor of the leader to that of the member; null for none.
    """

    NAME: ClassVar[str] = "ConsumerProtocolAssignment"
    TYPE: ClassVar[str] = "data"
    API_KEY: ClassVar[int | None] = None
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE_SINCE: ClassVar[int | None] = None

    assigned_partitions: list[TopicPartition] = Factory(list)
    user_data: bytes | None = None


# TopicPartition in versions 0–3
def read_topic_partition_v0(data: Buffer, at: int, size: int) -> tuple[TopicPartition, int]:
    message = new(TopicPartition)
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("topic")
    message.topic = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 4 <= size - at:
        raise Malformed("partitions")
    message.partitions = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    return message, at


def write_topic_partition_v0(message: TopicPartition, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topic = message.topic.encode()
    add(pack_i2(len(topic)))
    add(topic)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    add(int32_array[len(partitions)].pack(*partitions))


# ConsumerProtocolAssignment in versions 0–3
def read_v0(data: Buffer, at: int, size: int) -> tuple[ConsumerProtocolAssignment, int]:
    message = new(ConsumerProtocolAssignment)
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("assigned_partitions")
    assigned_partitions: list[TopicPartition] = []
    for _ in range(count):
        assigned_partition, at = read_topic_partition_v0(data, at, size)
        assigned_partitions.append(assigned_partition)
    message.assigned_partitions = assigned_partitions
    (length,) = unpack_i4(data, at)
    at += 4
    if length == -1:
        message.user_data = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("user_data")
        message.user_data = bytes(data[at:end])
        at = end
    return message, at


def write_v0(message: ConsumerProtocolAssignment, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    assigned_partitions = message.assigned_partitions
    add(pack_i4(len(assigned_partitions)))
    for assigned_partition in assigned_partitions:
        write_topic_partition_v0(assigned_partition, add)
    user_data = message.user_data
    if user_data is None:
        add(b"\xff\xff\xff\xff")
    else:
        add(pack_i4(len(user_data)))
        if not isinstance(user_data, BYTES):
            raise Unwritable("user_data")
        add(user_data)


# version → its layout's pair
CODECS: dict[int, Codec[ConsumerProtocolAssignment]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v0, write_v0),
    3: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
TopicPartition.FIELDS = (
    Field("topic", "topic", "string", (0, 3)),
    Field("partitions", "partitions", "[]int32", (0, 3)),
)
ConsumerProtocolAssignment.FIELDS = (
    Field("assigned_partitions", "assignedPartitions", "[]TopicPartition", (0, 3), struct=TopicPartition),
    Field("user_data", "userData", "bytes", (0, 3), nullable=(0, 3)),
)
