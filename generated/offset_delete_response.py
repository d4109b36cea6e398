"""OffsetDeleteResponse, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/OffsetDeleteResponse.json by `python -m codegen`; edits here are lost.
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
pack_i2_i4x2: Final = struct.Struct(">hii").pack
pack_i4: Final = struct.Struct(">i").pack
pack_i4_i2: Final = struct.Struct(">ih").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i2_i4x2: Final = struct.Struct(">hii").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_i2: Final = struct.Struct(">ih").unpack_from


@define(weakref_slot=False)
class OffsetDeleteResponsePartition(Struct):
    """The results by partition of this topic.

    Attributes:
        partition_index: The partition's number within its topic.
        error_code: 0 when deleted; GROUP_SUBSCRIBED_TO_TOPIC (86) while a member subscribes to the topic.
    """

    partition_index: int = 0
    error_code: int = 0


@define(weakref_slot=False)
class OffsetDeleteResponseTopic(Struct):
    """One entry per topic, with a result for each of its partitions.

    Attributes:
        name: The topic of these results.
        partitions: The results by partition of this topic.
    """

    name: str = ""
    partitions: list[OffsetDeleteResponsePartition] = Factory(list)


@define(weakref_slot=False)
class OffsetDeleteResponse(Message):
    """Says partition by partition whether the offset is gone.

    Attributes:
        error_code: 0, or why nothing was deleted: 69 no such group, 68 a group of another kind that has
            members.
        throttle_time_ms: Milliseconds of quota debt, 0 for none. The answer is immediate; the client must
            stay silent that long.
        topics: One entry per topic, with a result for each of its partitions.
    """

    NAME: ClassVar[str] = "OffsetDeleteResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 47
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = None

    error_code: int = 0
    throttle_time_ms: int = 0
    topics: list[OffsetDeleteResponseTopic] = Factory(list)


# OffsetDeleteResponsePartition in version 0
def read_offset_delete_response_partition_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetDeleteResponsePartition, int]:
    message = new(OffsetDeleteResponsePartition)
    message.unknown_tags = ()
    message.partition_index, message.error_code = unpack_i4_i2(data, at)
    at += 6
    return message, at


def write_offset_delete_response_partition_v0(message: OffsetDeleteResponsePartition, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4_i2(message.partition_index, message.error_code))


# OffsetDeleteResponseTopic in version 0
def read_offset_delete_response_topic_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetDeleteResponseTopic, int]:
    message = new(OffsetDeleteResponseTopic)
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
    if not 0 <= count * 6 <= size - at:
        raise Malformed("partitions")
    partitions: list[OffsetDeleteResponsePartition] = []
    for _ in range(count):
        partition, at = read_offset_delete_response_partition_v0(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_offset_delete_response_topic_v0(message: OffsetDeleteResponseTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_offset_delete_response_partition_v0(partition, add)


# OffsetDeleteResponse in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[OffsetDeleteResponse, int]:
    message = new(OffsetDeleteResponse)
    message.unknown_tags = ()
    message.error_code, message.throttle_time_ms, count = unpack_i2_i4x2(data, at)
    at += 10
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetDeleteResponseTopic] = []
    for _ in range(count):
        topic, at = read_offset_delete_response_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v0(message: OffsetDeleteResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i2_i4x2(message.error_code, message.throttle_time_ms, len(topics)))
    for topic in topics:
        write_offset_delete_response_topic_v0(topic, add)


# version → its layout's pair
CODECS: dict[int, Codec[OffsetDeleteResponse]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
OffsetDeleteResponsePartition.FIELDS = (
    Field("partition_index", "partitionIndex", "int32", (0, 0)),
    Field("error_code", "errorCode", "int16", (0, 0)),
)
OffsetDeleteResponseTopic.FIELDS = (
    Field("name", "name", "string", (0, 0)),
    Field(
        "partitions",
        "partitions",
        "[]OffsetDeleteResponsePartition",
        (0, 0),
        struct=OffsetDeleteResponsePartition,
    ),
)
OffsetDeleteResponse.FIELDS = (
    Field("error_code", "errorCode", "int16", (0, 0)),
    Field("throttle_time_ms", "throttleTimeMs", "int32", (0, 0), ignorable=True),
    Field("topics", "topics", "[]OffsetDeleteResponseTopic", (0, 0), struct=OffsetDeleteResponseTopic),
)
