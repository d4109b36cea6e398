"""OffsetDeleteRequest, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/OffsetDeleteRequest.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import Factory, define

from kclient.protocol.message import Field, Message, Struct
from kclient.protocol.primitives import (
    Add,
    Buffer,
    Codec,
    Malformed,
    Unwritable,
    new,
)

pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from


@define(weakref_slot=False)
class OffsetDeleteRequestPartition(Struct):
    """The partitions of this topic to forget.

    Attributes:
        partition_index: The partition's number within its topic.
    """

    partition_index: int = 0


@define(weakref_slot=False)
class OffsetDeleteRequestTopic(Struct):
    """The partitions to forget, by topic.

    Attributes:
        name: The topic of the partitions to forget.
        partitions: The partitions of this topic to forget.
    """

    name: str = ""
    partitions: list[OffsetDeleteRequestPartition] = Factory(list)


@define(weakref_slot=False)
class OffsetDeleteRequest(Message):
    """Deletes committed offsets of single partitions (KIP-496); refused for topics to which members
    subscribe.

    Attributes:
        group_id: The group whose offsets are deleted.
        topics: The partitions to forget, by topic.
    """

    NAME: ClassVar[str] = "OffsetDeleteRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 47
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = None

    group_id: str = ""
    topics: list[OffsetDeleteRequestTopic] = Factory(list)


# OffsetDeleteRequestPartition in version 0
def read_offset_delete_request_partition_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetDeleteRequestPartition, int]:
    message = new(OffsetDeleteRequestPartition)
    message.unknown_tags = ()
    (message.partition_index,) = unpack_i4(data, at)
    at += 4
    return message, at


def write_offset_delete_request_partition_v0(message: OffsetDeleteRequestPartition, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4(message.partition_index))


# OffsetDeleteRequestTopic in version 0
def read_offset_delete_request_topic_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetDeleteRequestTopic, int]:
    message = new(OffsetDeleteRequestTopic)
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("name")
    message.name = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 4 <= size - at:
        raise Malformed("partitions")
    partitions: list[OffsetDeleteRequestPartition] = []
    for _ in range(count):
        partition, at = read_offset_delete_request_partition_v0(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_offset_delete_request_topic_v0(message: OffsetDeleteRequestTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_offset_delete_request_partition_v0(partition, add)


# OffsetDeleteRequest in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[OffsetDeleteRequest, int]:
    message = new(OffsetDeleteRequest)
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetDeleteRequestTopic] = []
    for _ in range(count):
        topic, at = read_offset_delete_request_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v0(message: OffsetDeleteRequest, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    group_id = message.group_id.encode()
    add(pack_i2(len(group_id)))
    add(group_id)
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        write_offset_delete_request_topic_v0(topic, add)


# version → its layout's pair
CODECS: dict[int, Codec[OffsetDeleteRequest]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
OffsetDeleteRequestPartition.FIELDS = (Field("partition_index", "partitionIndex", "int32", (0, 0)),)
OffsetDeleteRequestTopic.FIELDS = (
    Field("name", "name", "string", (0, 0)),
    Field(
        "partitions",
        "partitions",
        "[]OffsetDeleteRequestPartition",
        (0, 0),
        struct=OffsetDeleteRequestPartition,
    ),
)
OffsetDeleteRequest.FIELDS = (
    Field("group_id", "groupId", "string", (0, 0)),
    Field("topics", "topics", "[]OffsetDeleteRequestTopic", (0, 0), struct=OffsetDeleteRequestTopic),
)
