"""DescribeShareGroupOffsetsRequest, versions 0–1: its classes, and one read and write pair per layout.

Generated from schemas/DescribeShareGroupOffsetsRequest.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

from typing import ClassVar

from attrs import Factory, define

from kclient.protocol.message import Field, Message, Struct
from kclient.protocol.primitives import (
    Add,
    Buffer,
    Codec,
    Malformed,
    compact_length,
    compact_string_length,
    int32_array,
    left_over,
    new,
    read_string_length,
    read_tags,
    read_uvarint,
    write_tags,
)


@define(weakref_slot=False)
class DescribeShareGroupOffsetsRequestTopic(Struct):
    """The partitions wanted of this group; null for all it has.

    Attributes:
        topic_name: The topic of the wanted partitions.
        partitions: The partition numbers wanted of this topic.
    """

    topic_name: str = ""
    partitions: list[int] = Factory(list)


@define(weakref_slot=False)
class DescribeShareGroupOffsetsRequestGroup(Struct):
    """The share groups asked about; the asked broker must coordinate them.

    Attributes:
        group_id: The share group whose start offsets are wanted.
        topics: The partitions wanted of this group; null for all it has.
    """

    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = Factory(list)


@define(weakref_slot=False)
class DescribeShareGroupOffsetsRequest(Message):
    """Asks a coordinator how far share groups have come in their partitions.

    Attributes:
        groups: The share groups asked about; the asked broker must coordinate them.
    """

    NAME: ClassVar[str] = "DescribeShareGroupOffsetsRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 90
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    groups: list[DescribeShareGroupOffsetsRequestGroup] = Factory(list)


# DescribeShareGroupOffsetsRequestTopic in versions 0–1
def read_describe_share_group_offsets_request_topic_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[DescribeShareGroupOffsetsRequestTopic, int]:
    message = new(DescribeShareGroupOffsetsRequestTopic)
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
    count = data[at]
    at += 1
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


def write_describe_share_group_offsets_request_topic_v0(
    message: DescribeShareGroupOffsetsRequestTopic,
    add: Add,
) -> None:
    topic_name = message.topic_name.encode()
    add(compact_string_length[len(topic_name)])
    add(topic_name)
    partitions = message.partitions
    add(compact_length[len(partitions)])
    add(int32_array[len(partitions)].pack(*partitions))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeShareGroupOffsetsRequestGroup in versions 0–1
def read_describe_share_group_offsets_request_group_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[DescribeShareGroupOffsetsRequestGroup, int]:
    message = new(DescribeShareGroupOffsetsRequestGroup)
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
    if count == 0:
        message.topics = None
    else:
        count -= 1
        if not 0 <= count * 3 <= size - at:
            raise Malformed("topics")
        topics: list[DescribeShareGroupOffsetsRequestTopic] = []
        for _ in range(count):
            topic, at = read_describe_share_group_offsets_request_topic_v0(data, at, size)
            topics.append(topic)
        message.topics = topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_describe_share_group_offsets_request_group_v0(
    message: DescribeShareGroupOffsetsRequestGroup,
    add: Add,
) -> None:
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    topics = message.topics
    if topics is None:
        add(b"\x00")
    else:
        add(compact_length[len(topics)])
        for topic in topics:
            write_describe_share_group_offsets_request_topic_v0(topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeShareGroupOffsetsRequest in versions 0–1
def read_v0(data: Buffer, at: int, size: int) -> tuple[DescribeShareGroupOffsetsRequest, int]:
    message = new(DescribeShareGroupOffsetsRequest)
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("groups")
    groups: list[DescribeShareGroupOffsetsRequestGroup] = []
    for _ in range(count):
        group, at = read_describe_share_group_offsets_request_group_v0(data, at, size)
        groups.append(group)
    message.groups = groups
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: DescribeShareGroupOffsetsRequest, add: Add) -> None:
    groups = message.groups
    add(compact_length[len(groups)])
    for group in groups:
        write_describe_share_group_offsets_request_group_v0(group, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[DescribeShareGroupOffsetsRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
DescribeShareGroupOffsetsRequestTopic.FIELDS = (
    Field("topic_name", "topicName", "string", (0, 1)),
    Field("partitions", "partitions", "[]int32", (0, 1)),
)
DescribeShareGroupOffsetsRequestGroup.FIELDS = (
    Field("group_id", "groupId", "string", (0, 1)),
    Field(
        "topics",
        "topics",
        "[]DescribeShareGroupOffsetsRequestTopic",
        (0, 1),
        nullable=(0, 1),
        struct=DescribeShareGroupOffsetsRequestTopic,
    ),
)
DescribeShareGroupOffsetsRequest.FIELDS = (
    Field(
        "groups",
        "groups",
        "[]DescribeShareGroupOffsetsRequestGroup",
        (0, 1),
        struct=DescribeShareGroupOffsetsRequestGroup,
    ),
)
