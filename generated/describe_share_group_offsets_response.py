"""DescribeShareGroupOffsetsResponse, versions 0–1: its classes, and one read and write pair per layout.

Generated from schemas/DescribeShareGroupOffsetsResponse.json by `python -m codegen`; edits here are lost.
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
pack_i4_i8_i4_i2: Final = struct.Struct(">iqih").pack
pack_i4_i8_i4_i8_i2: Final = struct.Struct(">iqiqh").pack
pack_uuid: Final = struct.Struct(">16s").pack
unpack_i2_u1: Final = struct.Struct(">hB").unpack_from
unpack_i4_i8_i4_i2_u1: Final = struct.Struct(">iqihB").unpack_from
unpack_i4_i8_i4_i8_i2_u1: Final = struct.Struct(">iqiqhB").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_uuid_u1: Final = struct.Struct(">16sB").unpack_from


@define(weakref_slot=False)
class DescribeShareGroupOffsetsResponsePartition(Struct):
    """One answer per asked partition of this topic.

    Attributes:
        partition_index: The partition's number within its topic.
        start_offset: First offset the group has not finished with; -1 when it has not started on the
            partition.
        leader_epoch: Leader epoch of the partition as the group's stored state has it.
        lag: Records of the partition that the group has yet to finish; -1 when unknown.
        error_code: 0, or why this partition's offset cannot be told.
        error_message: The broker's explanation of the partition's ErrorCode, for people; null when there is
            none.
    """

    partition_index: int = 0
    start_offset: int = 0
    leader_epoch: int = 0
    lag: int = -1
    error_code: int = 0
    error_message: str | None = None


@define(weakref_slot=False)
class DescribeShareGroupOffsetsResponseTopic(Struct):
    """The group's offsets by topic.

    Attributes:
        topic_name: The name of the topic of these partitions.
        topic_id: The id of the topic of these partitions.
        partitions: One answer per asked partition of this topic.
    """

    topic_name: str = ""
    topic_id: Uuid = ZERO_UUID
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = Factory(list)


@define(weakref_slot=False)
class DescribeShareGroupOffsetsResponseGroup(Struct):
    """One entry per asked group.

    Attributes:
        group_id: The share group this entry is about.
        topics: The group's offsets by topic.
        error_code: 0, or why nothing of this group can be told.
        error_message: The broker's explanation of the group's ErrorCode, for people; null when there is none.
    """

    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsResponseTopic] = Factory(list)
    error_code: int = 0
    error_message: str | None = None


@define(weakref_slot=False)
class DescribeShareGroupOffsetsResponse(Message):
    """The share-partition start offsets of the asked groups.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none.
        groups: One entry per asked group.
    """

    NAME: ClassVar[str] = "DescribeShareGroupOffsetsResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 90
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    throttle_time_ms: int = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup] = Factory(list)


# DescribeShareGroupOffsetsResponsePartition in version 0
def read_describe_share_group_offsets_response_partition_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[DescribeShareGroupOffsetsResponsePartition, int]:
    message = new(DescribeShareGroupOffsetsResponsePartition)
    message.lag = -1
    message.unknown_tags = ()
    (
        message.partition_index,
        message.start_offset,
        message.leader_epoch,
        message.error_code,
        length,
    ) = unpack_i4_i8_i4_i2_u1(data, at)
    at += 19
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.error_message = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("error_message")
        message.error_message = str(data[at:end], "utf-8")
        at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_describe_share_group_offsets_response_partition_v0(
    message: DescribeShareGroupOffsetsResponsePartition,
    add: Add,
) -> None:
    add(
        pack_i4_i8_i4_i2(
            message.partition_index,
            message.start_offset,
            message.leader_epoch,
            message.error_code,
        )
    )
    error_message = message.error_message
    if error_message is None:
        add(b"\x00")
    else:
        error_message_bytes = error_message.encode()
        add(compact_string_length[len(error_message_bytes)])
        add(error_message_bytes)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeShareGroupOffsetsResponseTopic in version 0
def read_describe_share_group_offsets_response_topic_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[DescribeShareGroupOffsetsResponseTopic, int]:
    message = new(DescribeShareGroupOffsetsResponseTopic)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("topic_name")
    message.topic_name = str(data[at:end], "utf-8")
    at = end
    message.topic_id, count = unpack_uuid_u1(data, at)
    at += 17
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 20 <= size - at:
        raise Malformed("partitions")
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = []
    for _ in range(count):
        partition, at = read_describe_share_group_offsets_response_partition_v0(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_describe_share_group_offsets_response_topic_v0(
    message: DescribeShareGroupOffsetsResponseTopic,
    add: Add,
) -> None:
    topic_name = message.topic_name.encode()
    add(compact_string_length[len(topic_name)])
    add(topic_name)
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_describe_share_group_offsets_response_partition_v0(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeShareGroupOffsetsResponseGroup in version 0
def read_describe_share_group_offsets_response_group_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[DescribeShareGroupOffsetsResponseGroup, int]:
    message = new(DescribeShareGroupOffsetsResponseGroup)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 19 <= size - at:
        raise Malformed("topics")
    topics: list[DescribeShareGroupOffsetsResponseTopic] = []
    for _ in range(count):
        topic, at = read_describe_share_group_offsets_response_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    message.error_code, length = unpack_i2_u1(data, at)
    at += 3
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.error_message = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("error_message")
        message.error_message = str(data[at:end], "utf-8")
        at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_describe_share_group_offsets_response_group_v0(
    message: DescribeShareGroupOffsetsResponseGroup,
    add: Add,
) -> None:
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_describe_share_group_offsets_response_topic_v0(topic, add)
    add(pack_i2(message.error_code))
    error_message = message.error_message
    if error_message is None:
        add(b"\x00")
    else:
        error_message_bytes = error_message.encode()
        add(compact_string_length[len(error_message_bytes)])
        add(error_message_bytes)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeShareGroupOffsetsResponse in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[DescribeShareGroupOffsetsResponse, int]:
    message = new(DescribeShareGroupOffsetsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 6 <= size - at:
        raise Malformed("groups")
    groups: list[DescribeShareGroupOffsetsResponseGroup] = []
    for _ in range(count):
        group, at = read_describe_share_group_offsets_response_group_v0(data, at, size)
        groups.append(group)
    message.groups = groups
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: DescribeShareGroupOffsetsResponse, add: Add) -> None:
    add(pack_i4(message.throttle_time_ms))
    groups = message.groups
    add(compact_length[len(groups)])
    for group in groups:
        write_describe_share_group_offsets_response_group_v0(group, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeShareGroupOffsetsResponsePartition in version 1
def read_describe_share_group_offsets_response_partition_v1(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[DescribeShareGroupOffsetsResponsePartition, int]:
    message = new(DescribeShareGroupOffsetsResponsePartition)
    message.unknown_tags = ()
    (
        message.partition_index,
        message.start_offset,
        message.leader_epoch,
        message.lag,
        message.error_code,
        length,
    ) = unpack_i4_i8_i4_i8_i2_u1(data, at)
    at += 27
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.error_message = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("error_message")
        message.error_message = str(data[at:end], "utf-8")
        at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_describe_share_group_offsets_response_partition_v1(
    message: DescribeShareGroupOffsetsResponsePartition,
    add: Add,
) -> None:
    add(
        pack_i4_i8_i4_i8_i2(
            message.partition_index,
            message.start_offset,
            message.leader_epoch,
            message.lag,
            message.error_code,
        )
    )
    error_message = message.error_message
    if error_message is None:
        add(b"\x00")
    else:
        error_message_bytes = error_message.encode()
        add(compact_string_length[len(error_message_bytes)])
        add(error_message_bytes)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeShareGroupOffsetsResponseTopic in version 1
def read_describe_share_group_offsets_response_topic_v1(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[DescribeShareGroupOffsetsResponseTopic, int]:
    message = new(DescribeShareGroupOffsetsResponseTopic)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("topic_name")
    message.topic_name = str(data[at:end], "utf-8")
    at = end
    message.topic_id, count = unpack_uuid_u1(data, at)
    at += 17
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 28 <= size - at:
        raise Malformed("partitions")
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = []
    for _ in range(count):
        partition, at = read_describe_share_group_offsets_response_partition_v1(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_describe_share_group_offsets_response_topic_v1(
    message: DescribeShareGroupOffsetsResponseTopic,
    add: Add,
) -> None:
    topic_name = message.topic_name.encode()
    add(compact_string_length[len(topic_name)])
    add(topic_name)
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_describe_share_group_offsets_response_partition_v1(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeShareGroupOffsetsResponseGroup in version 1
def read_describe_share_group_offsets_response_group_v1(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[DescribeShareGroupOffsetsResponseGroup, int]:
    message = new(DescribeShareGroupOffsetsResponseGroup)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 19 <= size - at:
        raise Malformed("topics")
    topics: list[DescribeShareGroupOffsetsResponseTopic] = []
    for _ in range(count):
        topic, at = read_describe_share_group_offsets_response_topic_v1(data, at, size)
        topics.append(topic)
    message.topics = topics
    message.error_code, length = unpack_i2_u1(data, at)
    at += 3
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.error_message = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("error_message")
        message.error_message = str(data[at:end], "utf-8")
        at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_describe_share_group_offsets_response_group_v1(
    message: DescribeShareGroupOffsetsResponseGroup,
    add: Add,
) -> None:
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_describe_share_group_offsets_response_topic_v1(topic, add)
    add(pack_i2(message.error_code))
    error_message = message.error_message
    if error_message is None:
        add(b"\x00")
    else:
        error_message_bytes = error_message.encode()
        add(compact_string_length[len(error_message_bytes)])
        add(error_message_bytes)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeShareGroupOffsetsResponse in version 1
def read_v1(data: Buffer, at: int, size: int) -> tuple[DescribeShareGroupOffsetsResponse, int]:
    message = new(DescribeShareGroupOffsetsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 6 <= size - at:
        raise Malformed("groups")
    groups: list[DescribeShareGroupOffsetsResponseGroup] = []
    for _ in range(count):
        group, at = read_describe_share_group_offsets_response_group_v1(data, at, size)
        groups.append(group)
    message.groups = groups
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v1(message: DescribeShareGroupOffsetsResponse, add: Add) -> None:
    add(pack_i4(message.throttle_time_ms))
    groups = message.groups
    add(compact_length[len(groups)])
    for group in groups:
        write_describe_share_group_offsets_response_group_v1(group, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[DescribeShareGroupOffsetsResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
}

# what JSON and error messages know of the fields
DescribeShareGroupOffsetsResponsePartition.FIELDS = (
    Field("partition_index", "partitionIndex", "int32", (0, 1)),
    Field("start_offset", "startOffset", "int64", (0, 1)),
    Field("leader_epoch", "leaderEpoch", "int32", (0, 1)),
    Field("lag", "lag", "int64", (1, 1), ignorable=True),
    Field("error_code", "errorCode", "int16", (0, 1)),
    Field("error_message", "errorMessage", "string", (0, 1), nullable=(0, 1)),
)
DescribeShareGroupOffsetsResponseTopic.FIELDS = (
    Field("topic_name", "topicName", "string", (0, 1)),
    Field("topic_id", "topicId", "uuid", (0, 1)),
    Field(
        "partitions",
        "partitions",
        "[]DescribeShareGroupOffsetsResponsePartition",
        (0, 1),
        struct=DescribeShareGroupOffsetsResponsePartition,
    ),
)
DescribeShareGroupOffsetsResponseGroup.FIELDS = (
    Field("group_id", "groupId", "string", (0, 1)),
    Field(
        "topics",
        "topics",
        "[]DescribeShareGroupOffsetsResponseTopic",
        (0, 1),
        struct=DescribeShareGroupOffsetsResponseTopic,
    ),
    Field("error_code", "errorCode", "int16", (0, 1)),
    Field("error_message", "errorMessage", "string", (0, 1), nullable=(0, 1)),
)
DescribeShareGroupOffsetsResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (0, 1)),
    Field(
        "groups",
        "groups",
        "[]DescribeShareGroupOffsetsResponseGroup",
        (0, 1),
        struct=DescribeShareGroupOffsetsResponseGroup,
    ),
)
