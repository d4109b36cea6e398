"""DescribeTopicPartitionsRequest, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/DescribeTopicPartitionsRequest.json by `python -m codegen`; edits here are lost.
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
    compact_length,
    compact_string_length,
    left_over,
    new,
    read_string_length,
    read_tags,
    read_uvarint,
    write_tags,
)

pack_i4: Final = struct.Struct(">i").pack
unpack_i4_i1: Final = struct.Struct(">ib").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from


@define(weakref_slot=False)
class TopicRequest(Struct):
    """The topics wanted; empty for all.

    Attributes:
        name: The name of the wanted topic.
    """

    name: str = ""


@define(weakref_slot=False)
class Cursor(Struct):
    """Where to go on: NextCursor of the last page; null for the first page.

    Attributes:
        topic_name: The topic to go on with.
        partition_index: The first partition of that topic still wanted.
    """

    topic_name: str = ""
    partition_index: int = 0


@define(weakref_slot=False)
class DescribeTopicPartitionsRequest(Message):
    """Asks for topics and their partitions page by page (KIP-966); Metadata tells the same at one go.

    Attributes:
        topics: The topics wanted; empty for all.
        response_partition_limit: How many partitions one page should hold at most; the broker may set a lower
            limit.
        cursor: Where to go on: NextCursor of the last page; null for the first page.
    """

    NAME: ClassVar[str] = "DescribeTopicPartitionsRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 75
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    topics: list[TopicRequest] = Factory(list)
    response_partition_limit: int = 2000
    cursor: Cursor | None = None


# TopicRequest in version 0
def read_topic_request_v0(data: Buffer, at: int, size: int) -> tuple[TopicRequest, int]:
    message = new(TopicRequest)
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
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_topic_request_v0(message: TopicRequest, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# Cursor in version 0
def read_cursor_v0(data: Buffer, at: int, size: int) -> tuple[Cursor, int]:
    message = new(Cursor)
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
    message.partition_index, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_cursor_v0(message: Cursor, add: Add) -> None:
    topic_name = message.topic_name.encode()
    add(compact_string_length[len(topic_name)])
    add(topic_name)
    add(pack_i4(message.partition_index))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeTopicPartitionsRequest in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[DescribeTopicPartitionsRequest, int]:
    message = new(DescribeTopicPartitionsRequest)
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 2 <= size - at:
        raise Malformed("topics")
    topics: list[TopicRequest] = []
    for _ in range(count):
        topic, at = read_topic_request_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    message.response_partition_limit, present = unpack_i4_i1(data, at)
    at += 5
    if present < 0:
        message.cursor = None
    else:
        message.cursor, at = read_cursor_v0(data, at, size)
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: DescribeTopicPartitionsRequest, add: Add) -> None:
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_topic_request_v0(topic, add)
    add(pack_i4(message.response_partition_limit))
    cursor = message.cursor
    if cursor is None:
        add(b"\xff")
    else:
        add(b"\x01")
        write_cursor_v0(cursor, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[DescribeTopicPartitionsRequest]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
TopicRequest.FIELDS = (Field("name", "name", "string", (0, 0)),)
Cursor.FIELDS = (
    Field("topic_name", "topicName", "string", (0, 0)),
    Field("partition_index", "partitionIndex", "int32", (0, 0)),
)
DescribeTopicPartitionsRequest.FIELDS = (
    Field("topics", "topics", "[]TopicRequest", (0, 0), struct=TopicRequest),
    Field("response_partition_limit", "responsePartitionLimit", "int32", (0, 0)),
    Field("cursor", "cursor", "Cursor", (0, 0), nullable=(0, 0), struct=Cursor),
)
