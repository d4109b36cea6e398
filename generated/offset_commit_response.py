"""OffsetCommitResponse, versions 0–10: its classes, and one read and write pair per layout.

Generated from schemas/OffsetCommitResponse.json by `python -m codegen`; edits here are lost.
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
    compact_string_length,
    left_over,
    new,
    read_string_length,
    read_tags,
    read_uvarint,
    write_tags,
)

pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
pack_i4_i2: Final = struct.Struct(">ih").pack
pack_i4x2: Final = struct.Struct(">ii").pack
pack_uuid: Final = struct.Struct(">16s").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_i2: Final = struct.Struct(">ih").unpack_from
unpack_i4_i2_u1: Final = struct.Struct(">ihB").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i4x2: Final = struct.Struct(">ii").unpack_from
unpack_uuid_u1: Final = struct.Struct(">16sB").unpack_from


@define(weakref_slot=False)
class OffsetCommitResponsePartition(Struct):
    """The result of every committed partition of this topic.

    Attributes:
        partition_index: The partition's number within its topic.
        error_code: 0 when stored; 22, 25 and 27 mean that the group has moved on, and errors of the whole
            group are repeated in every partition.
    """

    partition_index: int = 0
    error_code: int = 0


@define(weakref_slot=False)
class OffsetCommitResponseTopic(Struct):
    """The result of every committed topic.

    Attributes:
        name: The topic of these results, up to version 9.
        topic_id: The topic's id in place of its name, from version 10 on.
        partitions: The result of every committed partition of this topic.
    """

    name: str = ""
    topic_id: Uuid = ZERO_UUID
    partitions: list[OffsetCommitResponsePartition] = Factory(list)


@define(weakref_slot=False)
class OffsetCommitResponse(Message):
    """Says partition by partition whether an offset was stored; there is no error for the request as a whole.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Since version 4 the answer is immediate and
            the client must stay silent that long; before, the broker had already held the answer back.
        topics: The result of every committed topic.
    """

    NAME: ClassVar[str] = "OffsetCommitResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 8
    VERSIONS: ClassVar[tuple[int, int]] = (0, 10)
    FLEXIBLE_SINCE: ClassVar[int | None] = 8

    throttle_time_ms: int = 0
    topics: list[OffsetCommitResponseTopic] = Factory(list)


# OffsetCommitResponsePartition in versions 0–7
def read_offset_commit_response_partition_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetCommitResponsePartition, int]:
    message = new(OffsetCommitResponsePartition)
    message.unknown_tags = ()
    message.partition_index, message.error_code = unpack_i4_i2(data, at)
    at += 6
    return message, at


def write_offset_commit_response_partition_v0(message: OffsetCommitResponsePartition, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4_i2(message.partition_index, message.error_code))


# OffsetCommitResponseTopic in versions 0–7
def read_offset_commit_response_topic_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetCommitResponseTopic, int]:
    message = new(OffsetCommitResponseTopic)
    message.topic_id = ZERO_UUID
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
    partitions: list[OffsetCommitResponsePartition] = []
    for _ in range(count):
        partition, at = read_offset_commit_response_partition_v0(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_offset_commit_response_topic_v0(message: OffsetCommitResponseTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_offset_commit_response_partition_v0(partition, add)


# OffsetCommitResponse in versions 0–2
def read_v0(data: Buffer, at: int, size: int) -> tuple[OffsetCommitResponse, int]:
    message = new(OffsetCommitResponse)
    message.throttle_time_ms = 0
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetCommitResponseTopic] = []
    for _ in range(count):
        topic, at = read_offset_commit_response_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v0(message: OffsetCommitResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        write_offset_commit_response_topic_v0(topic, add)


# OffsetCommitResponse in versions 3–7
def read_v3(data: Buffer, at: int, size: int) -> tuple[OffsetCommitResponse, int]:
    message = new(OffsetCommitResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetCommitResponseTopic] = []
    for _ in range(count):
        topic, at = read_offset_commit_response_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v3(message: OffsetCommitResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4x2(message.throttle_time_ms, len(topics)))
    for topic in topics:
        write_offset_commit_response_topic_v0(topic, add)


# OffsetCommitResponsePartition in versions 8–10
def read_offset_commit_response_partition_v8(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetCommitResponsePartition, int]:
    message = new(OffsetCommitResponsePartition)
    message.unknown_tags = ()
    message.partition_index, message.error_code, tags = unpack_i4_i2_u1(data, at)
    at += 7
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_offset_commit_response_partition_v8(message: OffsetCommitResponsePartition, add: Add) -> None:
    add(pack_i4_i2(message.partition_index, message.error_code))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetCommitResponseTopic in versions 8–9
def read_offset_commit_response_topic_v8(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetCommitResponseTopic, int]:
    message = new(OffsetCommitResponseTopic)
    message.topic_id = ZERO_UUID
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("name")
    message.name = str(data[at:end], "utf-8")
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 7 <= size - at:
        raise Malformed("partitions")
    partitions: list[OffsetCommitResponsePartition] = []
    for _ in range(count):
        partition, at = read_offset_commit_response_partition_v8(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_offset_commit_response_topic_v8(message: OffsetCommitResponseTopic, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_offset_commit_response_partition_v8(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetCommitResponse in versions 8–9
def read_v8(data: Buffer, at: int, size: int) -> tuple[OffsetCommitResponse, int]:
    message = new(OffsetCommitResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetCommitResponseTopic] = []
    for _ in range(count):
        topic, at = read_offset_commit_response_topic_v8(data, at, size)
        topics.append(topic)
    message.topics = topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v8(message: OffsetCommitResponse, add: Add) -> None:
    add(pack_i4(message.throttle_time_ms))
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_offset_commit_response_topic_v8(topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetCommitResponseTopic in version 10
def read_offset_commit_response_topic_v10(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetCommitResponseTopic, int]:
    message = new(OffsetCommitResponseTopic)
    message.name = ""
    message.unknown_tags = ()
    message.topic_id, count = unpack_uuid_u1(data, at)
    at += 17
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 7 <= size - at:
        raise Malformed("partitions")
    partitions: list[OffsetCommitResponsePartition] = []
    for _ in range(count):
        partition, at = read_offset_commit_response_partition_v8(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_offset_commit_response_topic_v10(message: OffsetCommitResponseTopic, add: Add) -> None:
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_offset_commit_response_partition_v8(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetCommitResponse in version 10
def read_v10(data: Buffer, at: int, size: int) -> tuple[OffsetCommitResponse, int]:
    message = new(OffsetCommitResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetCommitResponseTopic] = []
    for _ in range(count):
        topic, at = read_offset_commit_response_topic_v10(data, at, size)
        topics.append(topic)
    message.topics = topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v10(message: OffsetCommitResponse, add: Add) -> None:
    add(pack_i4(message.throttle_time_ms))
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_offset_commit_response_topic_v10(topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[OffsetCommitResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v0, write_v0),
    3: (read_v3, write_v3),
    4: (read_v3, write_v3),
    5: (read_v3, write_v3),
    6: (read_v3, write_v3),
    7: (read_v3, write_v3),
    8: (read_v8, write_v8),
    9: (read_v8, write_v8),
    10: (read_v10, write_v10),
}

# what JSON and error messages know of the fields
OffsetCommitResponsePartition.FIELDS = (
    Field("partition_index", "partitionIndex", "int32", (0, 10)),
    Field("error_code", "errorCode", "int16", (0, 10)),
)
OffsetCommitResponseTopic.FIELDS = (
    Field("name", "name", "string", (0, 9), ignorable=True),
    Field("topic_id", "topicId", "uuid", (10, 10), ignorable=True),
    Field(
        "partitions",
        "partitions",
        "[]OffsetCommitResponsePartition",
        (0, 10),
        struct=OffsetCommitResponsePartition,
    ),
)
OffsetCommitResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (3, 10), ignorable=True),
    Field("topics", "topics", "[]OffsetCommitResponseTopic", (0, 10), struct=OffsetCommitResponseTopic),
)
