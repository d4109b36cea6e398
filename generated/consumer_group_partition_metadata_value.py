"""ConsumerGroupPartitionMetadataValue, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/ConsumerGroupPartitionMetadataValue.json by `python -m codegen`; edits here are lost.
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
    read_compact_strings,
    read_string_length,
    read_tags,
    read_uvarint,
    write_tags,
)

pack_i4: Final = struct.Struct(">i").pack
pack_uuid: Final = struct.Struct(">16s").pack
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_uuid_u1: Final = struct.Struct(">16sB").unpack_from


@define(weakref_slot=False)
class PartitionMetadata(Struct):
    """The racks of the partitions; empty when the brokers have none.

    Attributes:
        partition: The partition's number within its topic.
        racks: Racks that hold a replica of the partition.
    """

    partition: int = 0
    racks: list[str] = Factory(list)


@define(weakref_slot=False)
class TopicMetadata(Struct):
    """Every topic that a member subscribes to.

    Attributes:
        topic_id: The id of the topic that was seen.
        topic_name: The name of the topic that was seen.
        num_partitions: How many partitions the topic had; more of them means a new group epoch.
        partition_metadata: The racks of the partitions; empty when the brokers have none.
    """

    topic_id: Uuid = ZERO_UUID
    topic_name: str = ""
    num_partitions: int = 0
    partition_metadata: list[PartitionMetadata] = Factory(list)


@define(weakref_slot=False)
class ConsumerGroupPartitionMetadataValue(Message):
    """The subscribed topics as a consumer-protocol group last saw them, up to Kafka 4.0.

    Attributes:
        topics: Every topic that a member subscribes to.
    """

    NAME: ClassVar[str] = "ConsumerGroupPartitionMetadataValue"
    TYPE: ClassVar[str] = "coordinator-value"
    API_KEY: ClassVar[int | None] = 4
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    topics: list[TopicMetadata] = Factory(list)


# PartitionMetadata in version 0
def read_partition_metadata_v0(data: Buffer, at: int, size: int) -> tuple[PartitionMetadata, int]:
    message = new(PartitionMetadata)
    message.unknown_tags = ()
    message.partition, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count <= size - at:
        raise Malformed("racks")
    message.racks, at = read_compact_strings(count, data, at, size)
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_partition_metadata_v0(message: PartitionMetadata, add: Add) -> None:
    add(pack_i4(message.partition))
    racks = message.racks
    add(compact_length[len(racks)])
    for rack in racks:
        rack_bytes = rack.encode()
        add(compact_string_length[len(rack_bytes)])
        add(rack_bytes)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# TopicMetadata in version 0
def read_topic_metadata_v0(data: Buffer, at: int, size: int) -> tuple[TopicMetadata, int]:
    message = new(TopicMetadata)
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
    message.num_partitions, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 6 <= size - at:
        raise Malformed("partition_metadata")
    partition_metadata: list[PartitionMetadata] = []
    for _ in range(count):
        partition_metadata_item, at = read_partition_metadata_v0(data, at, size)
        partition_metadata.append(partition_metadata_item)
    message.partition_metadata = partition_metadata
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_topic_metadata_v0(message: TopicMetadata, add: Add) -> None:
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
    topic_name = message.topic_name.encode()
    add(compact_string_length[len(topic_name)])
    add(topic_name)
    add(pack_i4(message.num_partitions))
    partition_metadata = message.partition_metadata
    add(compact_length[len(partition_metadata)])
    for partition_metadata_item in partition_metadata:
        write_partition_metadata_v0(partition_metadata_item, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ConsumerGroupPartitionMetadataValue in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[ConsumerGroupPartitionMetadataValue, int]:
    message = new(ConsumerGroupPartitionMetadataValue)
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 23 <= size - at:
        raise Malformed("topics")
    topics: list[TopicMetadata] = []
    for _ in range(count):
        topic, at = read_topic_metadata_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: ConsumerGroupPartitionMetadataValue, add: Add) -> None:
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_topic_metadata_v0(topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ConsumerGroupPartitionMetadataValue]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
PartitionMetadata.FIELDS = (
    Field("partition", "partition", "int32", (0, 0)),
    Field("racks", "racks", "[]string", (0, 0)),
)
TopicMetadata.FIELDS = (
    Field("topic_id", "topicId", "uuid", (0, 0)),
    Field("topic_name", "topicName", "string", (0, 0)),
    Field("num_partitions", "numPartitions", "int32", (0, 0)),
    Field("partition_metadata", "partitionMetadata", "[]PartitionMetadata", (0, 0), struct=PartitionMetadata),
)
ConsumerGroupPartitionMetadataValue.FIELDS = (
    Field("topics", "topics", "[]TopicMetadata", (0, 0), struct=TopicMetadata),
)
