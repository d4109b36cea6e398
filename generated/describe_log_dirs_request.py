"""DescribeLogDirsRequest, versions 0–5: its classes, and one read and write pair per layout.

Generated from schemas/DescribeLogDirsRequest.json by `python -m codegen`; edits here are lost.
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

pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from


@define(weakref_slot=False)
class DescribableLogDirTopic(Struct):
    """The topics whose replicas are wanted; null for all of the broker.

    Attributes:
        topic: What the topic is called.
        partitions: The numbers of its wanted partitions.
    """

    topic: str = ""
    partitions: list[int] = Factory(list)


@define(weakref_slot=False)
class DescribeLogDirsRequest(Message):
    """Asks one broker for the bytes of its replicas, by directory.

    Attributes:
        topics: The topics whose replicas are wanted; null for all of the broker.
    """

    NAME: ClassVar[str] = "DescribeLogDirsRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 35
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_SINCE: ClassVar[int | None] = 2

    topics: list[DescribableLogDirTopic] | None = Factory(list)


# DescribableLogDirTopic in versions 0–1
def read_describable_log_dir_topic_v0(data: Buffer, at: int, size: int) -> tuple[DescribableLogDirTopic, int]:
    message = new(DescribableLogDirTopic)
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


def write_describable_log_dir_topic_v0(message: DescribableLogDirTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topic = message.topic.encode()
    add(pack_i2(len(topic)))
    add(topic)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    add(int32_array[len(partitions)].pack(*partitions))


# DescribeLogDirsRequest in versions 0–1
def read_v0(data: Buffer, at: int, size: int) -> tuple[DescribeLogDirsRequest, int]:
    message = new(DescribeLogDirsRequest)
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if count == -1:
        message.topics = None
    else:
        if not 0 <= count * 6 <= size - at:
            raise Malformed("topics")
        topics: list[DescribableLogDirTopic] = []
        for _ in range(count):
            topic, at = read_describable_log_dir_topic_v0(data, at, size)
            topics.append(topic)
        message.topics = topics
    return message, at


def write_v0(message: DescribeLogDirsRequest, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    if topics is None:
        add(b"\xff\xff\xff\xff")
    else:
        add(pack_i4(len(topics)))
        for topic in topics:
            write_describable_log_dir_topic_v0(topic, add)


# DescribableLogDirTopic in versions 2–5
def read_describable_log_dir_topic_v2(data: Buffer, at: int, size: int) -> tuple[DescribableLogDirTopic, int]:
    message = new(DescribableLogDirTopic)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("topic")
    message.topic = str(data[at:end], "utf-8")
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


def write_describable_log_dir_topic_v2(message: DescribableLogDirTopic, add: Add) -> None:
    topic = message.topic.encode()
    add(compact_string_length[len(topic)])
    add(topic)
    partitions = message.partitions
    add(compact_length[len(partitions)])
    add(int32_array[len(partitions)].pack(*partitions))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeLogDirsRequest in versions 2–5
def read_v2(data: Buffer, at: int, size: int) -> tuple[DescribeLogDirsRequest, int]:
    message = new(DescribeLogDirsRequest)
    message.unknown_tags = ()
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
        topics: list[DescribableLogDirTopic] = []
        for _ in range(count):
            topic, at = read_describable_log_dir_topic_v2(data, at, size)
            topics.append(topic)
        message.topics = topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v2(message: DescribeLogDirsRequest, add: Add) -> None:
    topics = message.topics
    if topics is None:
        add(b"\x00")
    else:
        add(compact_length[len(topics)])
        for topic in topics:
            write_describable_log_dir_topic_v2(topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[DescribeLogDirsRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v2, write_v2),
    3: (read_v2, write_v2),
    4: (read_v2, write_v2),
    5: (read_v2, write_v2),
}

# what JSON and error messages know of the fields
DescribableLogDirTopic.FIELDS = (
    Field("topic", "topic", "string", (0, 5)),
    Field("partitions", "partitions", "[]int32", (0, 5)),
)
DescribeLogDirsRequest.FIELDS = (
    Field(
        "topics",
        "topics",
        "[]DescribableLogDirTopic",
        (0, 5),
        nullable=(0, 5),
        struct=DescribableLogDirTopic,
    ),
)
