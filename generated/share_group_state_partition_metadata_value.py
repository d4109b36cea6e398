"""ShareGroupStatePartitionMetadataValue, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/ShareGroupStatePartitionMetadataValue.json by `python -m codegen`; edits here are lost.
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
    int32_array,
    left_over,
    new,
    read_string_length,
    read_tags,
    read_uvarint,
    write_tags,
)

pack_uuid: Final = struct.Struct(">16s").pack
unpack_uuid_u1: Final = struct.Struct(">16sB").unpack_from


@define(weakref_slot=False)
class TopicPartitionsInfo(Struct):
    """Some partitions of one topic whose state is in the same phase.

    Attributes:
        topic_id: The id of the topic of these partitions.
        topic_name: The name of the topic of these partitions.
        partitions: The partition numbers of this topic.
    """

    topic_id: Uuid = ZERO_UUID
    topic_name: str = ""
    partitions: list[int] = Factory(list)


@define(weakref_slot=False)
class TopicInfo(Struct):
    """A topic whose state is being deleted as a whole.

    Attributes:
        topic_id: The id of the topic to forget.
        topic_name: The name of the topic to forget.
    """

    topic_id: Uuid = ZERO_UUID
    topic_name: str = ""


@define(weakref_slot=False)
class ShareGroupStatePartitionMetadataValue(Message):
    """How far the share group's delivery state has been set up, partition by partition, with the share
    coordinator.

    Attributes:
        initializing_topics: Partitions whose state is being created; members do not get them yet.
        initialized_topics: Partitions whose state exists, so that members may read them.
        deleting_topics: Topics whose state is being deleted.
    """

    NAME: ClassVar[str] = "ShareGroupStatePartitionMetadataValue"
    TYPE: ClassVar[str] = "coordinator-value"
    API_KEY: ClassVar[int | None] = 15
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    initializing_topics: list[TopicPartitionsInfo] = Factory(list)
    initialized_topics: list[TopicPartitionsInfo] = Factory(list)
    deleting_topics: list[TopicInfo] = Factory(list)


# TopicPartitionsInfo in version 0
def read_topic_partitions_info_v0(data: Buffer, at: int, size: int) -> tuple[TopicPartitionsInfo, int]:
    message = new(TopicPartitionsInfo)
    message.unknown_tags = ()
    message.topic_id, length = unpack_uuid_u1(data, at)
    at += 17
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


def write_topic_partitions_info_v0(message: TopicPartitionsInfo, add: Add) -> None:
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
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


# TopicInfo in version 0
def read_topic_info_v0(data: Buffer, at: int, size: int) -> tuple[TopicInfo, int]:
    message = new(TopicInfo)
    message.unknown_tags = ()
    message.topic_id, length = unpack_uuid_u1(data, at)
    at += 17
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("topic_name")
    message.topic_name = str(data[at:end], "utf-8")
    at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_topic_info_v0(message: TopicInfo, add: Add) -> None:
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
    topic_name = message.topic_name.encode()
    add(compact_string_length[len(topic_name)])
    add(topic_name)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ShareGroupStatePartitionMetadataValue in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[ShareGroupStatePartitionMetadataValue, int]:
    message = new(ShareGroupStatePartitionMetadataValue)
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 19 <= size - at:
        raise Malformed("initializing_topics")
    initializing_topics: list[TopicPartitionsInfo] = []
    for _ in range(count):
        initializing_topic, at = read_topic_partitions_info_v0(data, at, size)
        initializing_topics.append(initializing_topic)
    message.initializing_topics = initializing_topics
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 19 <= size - at:
        raise Malformed("initialized_topics")
    initialized_topics: list[TopicPartitionsInfo] = []
    for _ in range(count):
        initialized_topic, at = read_topic_partitions_info_v0(data, at, size)
        initialized_topics.append(initialized_topic)
    message.initialized_topics = initialized_topics
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("deleting_topics")
    deleting_topics: list[TopicInfo] = []
    for _ in range(count):
        deleting_topic, at = read_topic_info_v0(data, at, size)
        deleting_topics.append(deleting_topic)
    message.deleting_topics = deleting_topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: ShareGroupStatePartitionMetadataValue, add: Add) -> None:
    initializing_topics = message.initializing_topics
    add(compact_length[len(initializing_topics)])
    for initializing_topic in initializing_topics:
        write_topic_partitions_info_v0(initializing_topic, add)
    initialized_topics = message.initialized_topics
    add(compact_length[len(initialized_topics)])
    for initialized_topic in initialized_topics:
        write_topic_partitions_info_v0(initialized_topic, add)
    deleting_topics = message.deleting_topics
    add(compact_length[len(deleting_topics)])
    for deleting_topic in deleting_topics:
        write_topic_info_v0(deleting_topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ShareGroupStatePartitionMetadataValue]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
TopicPartitionsInfo.FIELDS = (
    Field("topic_id", "topicId", "uuid", (0, 0)),
    Field("topic_name", "topicName", "string", (0, 0)),
    Field("partitions", "partitions", "[]int32", (0, 0)),
)
TopicInfo.FIELDS = (
    Field("topic_id", "topicId", "uuid", (0, 0)),
    Field("topic_name", "topicName", "string", (0, 0)),
)
ShareGroupStatePartitionMetadataValue.FIELDS = (
    Field(
        "initializing_topics",
        "initializingTopics",
        "[]TopicPartitionsInfo",
        (0, 0),
        struct=TopicPartitionsInfo,
    ),
    Field(
        "initialized_topics",
        "initializedTopics",
        "[]TopicPartitionsInfo",
        (0, 0),
        struct=TopicPartitionsInfo,
    ),
    Field("deleting_topics", "deletingTopics", "[]TopicInfo", (0, 0), struct=TopicInfo),
)
