"""ConsumerProtocolSubscription, versions 0–3: its classes, and one read and write pair per layout.

Generated from schemas/ConsumerProtocolSubscription.json by `python -m codegen`; edits here are lost.
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
    read_strings,
)

pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_i2: Final = struct.Struct(">ih").unpack_from


@define(weakref_slot=False)
class TopicPartition(Struct):
    """What the member still holds from the last generation, for cooperative assignors; empty when it has
    revoked all before joining.

    Attributes:
        topic: The topic of the partitions it holds.
        partitions: The partition numbers of this topic it holds.
    """

    topic: str = ""
    partitions: list[int] = Factory(list)


@define(weakref_slot=False)
class ConsumerProtocolSubscription(Message):
    """What a classic consumer tells the group's leader in JoinGroup: its topics and what it owns. An int16
    version stands in front.

    Attributes:
        topics: The topics the member wants partitions of; a pattern has been resolved by the member itself.
        user_data: Bytes for the assignor alone; the sticky one keeps the previous assignment here. Null for
            none.
        owned_partitions: What the member still holds from the last generation, for cooperative assignors;
            empty when it has revoked all before joining.
        generation_id: The generation in which it came to own them, so that the newest of two claims wins; -1
            when unknown (before version 2).
        rack_id: The member's rack (client.rack), so that the leader can assign it partitions nearby; null
            when not set.
    """

    NAME: ClassVar[str] = "ConsumerProtocolSubscription"
    TYPE: ClassVar[str] = "data"
    API_KEY: ClassVar[int | None] = None
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE_SINCE: ClassVar[int | None] = None

    topics: list[str] = Factory(list)
    user_data: bytes | None = None
    owned_partitions: list[TopicPartition] = Factory(list)
    generation_id: int = -1
    rack_id: str | None = None


# ConsumerProtocolSubscription in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[ConsumerProtocolSubscription, int]:
    message = new(ConsumerProtocolSubscription)
    message.owned_partitions = []
    message.generation_id = -1
    message.rack_id = None
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 2 <= size - at:
        raise Malformed("topics")
    message.topics, at = read_strings(count, data, at, size)
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


def write_v0(message: ConsumerProtocolSubscription, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        topic_bytes = topic.encode()
        add(pack_i2(len(topic_bytes)))
        add(topic_bytes)
    user_data = message.user_data
    if user_data is None:
        add(b"\xff\xff\xff\xff")
    else:
        add(pack_i4(len(user_data)))
        if not isinstance(user_data, BYTES):
            raise Unwritable("user_data")
        add(user_data)


# TopicPartition in versions 1–3
def read_topic_partition_v1(data: Buffer, at: int, size: int) -> tuple[TopicPartition, int]:
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


def write_topic_partition_v1(message: TopicPartition, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topic = message.topic.encode()
    add(pack_i2(len(topic)))
    add(topic)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    add(int32_array[len(partitions)].pack(*partitions))


# ConsumerProtocolSubscription in version 1
def read_v1(data: Buffer, at: int, size: int) -> tuple[ConsumerProtocolSubscription, int]:
    message = new(ConsumerProtocolSubscription)
    message.generation_id = -1
    message.rack_id = None
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 2 <= size - at:
        raise Malformed("topics")
    message.topics, at = read_strings(count, data, at, size)
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
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("owned_partitions")
    owned_partitions: list[TopicPartition] = []
    for _ in range(count):
        owned_partition, at = read_topic_partition_v1(data, at, size)
        owned_partitions.append(owned_partition)
    message.owned_partitions = owned_partitions
    return message, at


def write_v1(message: ConsumerProtocolSubscription, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        topic_bytes = topic.encode()
        add(pack_i2(len(topic_bytes)))
        add(topic_bytes)
    user_data = message.user_data
    if user_data is None:
        add(b"\xff\xff\xff\xff")
    else:
        add(pack_i4(len(user_data)))
        if not isinstance(user_data, BYTES):
            raise Unwritable("user_data")
        add(user_data)
    owned_partitions = message.owned_partitions
    add(pack_i4(len(owned_partitions)))
    for owned_partition in owned_partitions:
        write_topic_partition_v1(owned_partition, add)


# ConsumerProtocolSubscription in version 2
def read_v2(data: Buffer, at: int, size: int) -> tuple[ConsumerProtocolSubscription, int]:
    message = new(ConsumerProtocolSubscription)
    message.rack_id = None
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 2 <= size - at:
        raise Malformed("topics")
    message.topics, at = read_strings(count, data, at, size)
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
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("owned_partitions")
    owned_partitions: list[TopicPartition] = []
    for _ in range(count):
        owned_partition, at = read_topic_partition_v1(data, at, size)
        owned_partitions.append(owned_partition)
    message.owned_partitions = owned_partitions
    (message.generation_id,) = unpack_i4(data, at)
    at += 4
    return message, at


def write_v2(message: ConsumerProtocolSubscription, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        topic_bytes = topic.encode()
        add(pack_i2(len(topic_bytes)))
        add(topic_bytes)
    user_data = message.user_data
    if user_data is None:
        add(b"\xff\xff\xff\xff")
    else:
        add(pack_i4(len(user_data)))
        if not isinstance(user_data, BYTES):
            raise Unwritable("user_data")
        add(user_data)
    owned_partitions = message.owned_partitions
    add(pack_i4(len(owned_partitions)))
    for owned_partition in owned_partitions:
        write_topic_partition_v1(owned_partition, add)
    add(pack_i4(message.generation_id))


# ConsumerProtocolSubscription in version 3
def read_v3(data: Buffer, at: int, size: int) -> tuple[ConsumerProtocolSubscription, int]:
    message = new(ConsumerProtocolSubscription)
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 2 <= size - at:
        raise Malformed("topics")
    message.topics, at = read_strings(count, data, at, size)
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
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("owned_partitions")
    owned_partitions: list[TopicPartition] = []
    for _ in range(count):
        owned_partition, at = read_topic_partition_v1(data, at, size)
        owned_partitions.append(owned_partition)
    message.owned_partitions = owned_partitions
    message.generation_id, length = unpack_i4_i2(data, at)
    at += 6
    if length == -1:
        message.rack_id = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("rack_id")
        message.rack_id = str(data[at:end], "utf-8")
        at = end
    return message, at


def write_v3(message: ConsumerProtocolSubscription, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        topic_bytes = topic.encode()
        add(pack_i2(len(topic_bytes)))
        add(topic_bytes)
    user_data = message.user_data
    if user_data is None:
        add(b"\xff\xff\xff\xff")
    else:
        add(pack_i4(len(user_data)))
        if not isinstance(user_data, BYTES):
            raise Unwritable("user_data")
        add(user_data)
    owned_partitions = message.owned_partitions
    add(pack_i4(len(owned_partitions)))
    for owned_partition in owned_partitions:
        write_topic_partition_v1(owned_partition, add)
    add(pack_i4(message.generation_id))
    rack_id = message.rack_id
    if rack_id is None:
        add(b"\xff\xff")
    else:
        rack_id_bytes = rack_id.encode()
        add(pack_i2(len(rack_id_bytes)))
        add(rack_id_bytes)


# version → its layout's pair
CODECS: dict[int, Codec[ConsumerProtocolSubscription]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v2, write_v2),
    3: (read_v3, write_v3),
}

# what JSON and error messages know of the fields
TopicPartition.FIELDS = (
    Field("topic", "topic", "string", (1, 3)),
    Field("partitions", "partitions", "[]int32", (1, 3)),
)
ConsumerProtocolSubscription.FIELDS = (
    Field("topics", "topics", "[]string", (0, 3)),
    Field("user_data", "userData", "bytes", (0, 3), nullable=(0, 3)),
    Field(
        "owned_partitions",
        "ownedPartitions",
        "[]TopicPartition",
        (1, 3),
        struct=TopicPartition,
        ignorable=True,
    ),
    Field("generation_id", "generationId", "int32", (2, 3), ignorable=True),
    Field("rack_id", "rackId", "string", (3, 3), nullable=(3, 3), ignorable=True),
)
