"""OffsetForLeaderEpochRequest, versions 0–4: its classes, and one read and write pair per layout.

Generated from schemas/OffsetForLeaderEpochRequest.json by `python -m codegen`; edits here are lost.
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
    left_over,
    new,
    read_string_length,
    read_tags,
    read_uvarint,
    write_tags,
)

pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
pack_i4x2: Final = struct.Struct(">ii").pack
pack_i4x3: Final = struct.Struct(">iii").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i4x2: Final = struct.Struct(">ii").unpack_from
unpack_i4x3: Final = struct.Struct(">iii").unpack_from
unpack_i4x3_u1: Final = struct.Struct(">iiiB").unpack_from


@define(weakref_slot=False)
class OffsetForLeaderPartition(Struct):
    """The partitions of this topic, each with the epoch it is asked for.

    Attributes:
        partition: The partition's number within its topic.
        current_leader_epoch: The leader epoch the asker knows, so that a stale broker or asker is found out
            (errors 74, 75); -1 skips the check.
        leader_epoch: The epoch whose end is wanted: that of the last record consumed before the position.
    """

    partition: int = 0
    current_leader_epoch: int = -1
    leader_epoch: int = 0


@define(weakref_slot=False)
class OffsetForLeaderTopic(Struct):
    """The topics asked about; only partitions which the asked broker leads.

    Attributes:
        topic: The topic of the partitions asked about.
        partitions: The partitions of this topic, each with the epoch it is asked for.
    """

    topic: str = ""
    partitions: list[OffsetForLeaderPartition] = Factory(list)


@define(weakref_slot=False)
class OffsetForLeaderEpochRequest(Message):
    """Asks leaders where a leader epoch ends in their log; a consumer checks with it whether what it has read
    was truncated (KIP-320).

    Attributes:
        replica_id: Broker id of an asking follower; -1 for a consumer, which then sees committed data only;
            -2 for a debugging tool.
        topics: The topics asked about; only partitions which the asked broker leads.
    """

    NAME: ClassVar[str] = "OffsetForLeaderEpochRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 23
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_SINCE: ClassVar[int | None] = 4

    replica_id: int = -2
    topics: list[OffsetForLeaderTopic] = Factory(list)


# OffsetForLeaderPartition in versions 0–1
def read_offset_for_leader_partition_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetForLeaderPartition, int]:
    message = new(OffsetForLeaderPartition)
    message.current_leader_epoch = -1
    message.unknown_tags = ()
    message.partition, message.leader_epoch = unpack_i4x2(data, at)
    at += 8
    return message, at


def write_offset_for_leader_partition_v0(message: OffsetForLeaderPartition, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4x2(message.partition, message.leader_epoch))


# OffsetForLeaderTopic in versions 0–1
def read_offset_for_leader_topic_v0(data: Buffer, at: int, size: int) -> tuple[OffsetForLeaderTopic, int]:
    message = new(OffsetForLeaderTopic)
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
    if not 0 <= count * 8 <= size - at:
        raise Malformed("partitions")
    partitions: list[OffsetForLeaderPartition] = []
    for _ in range(count):
        partition, at = read_offset_for_leader_partition_v0(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_offset_for_leader_topic_v0(message: OffsetForLeaderTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topic = message.topic.encode()
    add(pack_i2(len(topic)))
    add(topic)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_offset_for_leader_partition_v0(partition, add)


# OffsetForLeaderEpochRequest in versions 0–1
def read_v0(data: Buffer, at: int, size: int) -> tuple[OffsetForLeaderEpochRequest, int]:
    message = new(OffsetForLeaderEpochRequest)
    message.replica_id = -2
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetForLeaderTopic] = []
    for _ in range(count):
        topic, at = read_offset_for_leader_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v0(message: OffsetForLeaderEpochRequest, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        write_offset_for_leader_topic_v0(topic, add)


# OffsetForLeaderPartition in versions 2–3
def read_offset_for_leader_partition_v2(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetForLeaderPartition, int]:
    message = new(OffsetForLeaderPartition)
    message.unknown_tags = ()
    message.partition, message.current_leader_epoch, message.leader_epoch = unpack_i4x3(data, at)
    at += 12
    return message, at


def write_offset_for_leader_partition_v2(message: OffsetForLeaderPartition, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4x3(message.partition, message.current_leader_epoch, message.leader_epoch))


# OffsetForLeaderTopic in versions 2–3
def read_offset_for_leader_topic_v2(data: Buffer, at: int, size: int) -> tuple[OffsetForLeaderTopic, int]:
    message = new(OffsetForLeaderTopic)
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
    if not 0 <= count * 12 <= size - at:
        raise Malformed("partitions")
    partitions: list[OffsetForLeaderPartition] = []
    for _ in range(count):
        partition, at = read_offset_for_leader_partition_v2(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_offset_for_leader_topic_v2(message: OffsetForLeaderTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topic = message.topic.encode()
    add(pack_i2(len(topic)))
    add(topic)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_offset_for_leader_partition_v2(partition, add)


# OffsetForLeaderEpochRequest in version 2
def read_v2(data: Buffer, at: int, size: int) -> tuple[OffsetForLeaderEpochRequest, int]:
    message = new(OffsetForLeaderEpochRequest)
    message.replica_id = -2
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetForLeaderTopic] = []
    for _ in range(count):
        topic, at = read_offset_for_leader_topic_v2(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v2(message: OffsetForLeaderEpochRequest, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        write_offset_for_leader_topic_v2(topic, add)


# OffsetForLeaderEpochRequest in version 3
def read_v3(data: Buffer, at: int, size: int) -> tuple[OffsetForLeaderEpochRequest, int]:
    message = new(OffsetForLeaderEpochRequest)
    message.unknown_tags = ()
    message.replica_id, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetForLeaderTopic] = []
    for _ in range(count):
        topic, at = read_offset_for_leader_topic_v2(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v3(message: OffsetForLeaderEpochRequest, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4x2(message.replica_id, len(topics)))
    for topic in topics:
        write_offset_for_leader_topic_v2(topic, add)


# OffsetForLeaderPartition in version 4
def read_offset_for_leader_partition_v4(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetForLeaderPartition, int]:
    message = new(OffsetForLeaderPartition)
    message.unknown_tags = ()
    message.partition, message.current_leader_epoch, message.leader_epoch, tags = unpack_i4x3_u1(data, at)
    at += 13
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_offset_for_leader_partition_v4(message: OffsetForLeaderPartition, add: Add) -> None:
    add(pack_i4x3(message.partition, message.current_leader_epoch, message.leader_epoch))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetForLeaderTopic in version 4
def read_offset_for_leader_topic_v4(data: Buffer, at: int, size: int) -> tuple[OffsetForLeaderTopic, int]:
    message = new(OffsetForLeaderTopic)
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
    if not 0 <= count * 13 <= size - at:
        raise Malformed("partitions")
    partitions: list[OffsetForLeaderPartition] = []
    for _ in range(count):
        partition, at = read_offset_for_leader_partition_v4(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_offset_for_leader_topic_v4(message: OffsetForLeaderTopic, add: Add) -> None:
    topic = message.topic.encode()
    add(compact_string_length[len(topic)])
    add(topic)
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_offset_for_leader_partition_v4(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetForLeaderEpochRequest in version 4
def read_v4(data: Buffer, at: int, size: int) -> tuple[OffsetForLeaderEpochRequest, int]:
    message = new(OffsetForLeaderEpochRequest)
    message.unknown_tags = ()
    message.replica_id, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetForLeaderTopic] = []
    for _ in range(count):
        topic, at = read_offset_for_leader_topic_v4(data, at, size)
        topics.append(topic)
    message.topics = topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v4(message: OffsetForLeaderEpochRequest, add: Add) -> None:
    add(pack_i4(message.replica_id))
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_offset_for_leader_topic_v4(topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[OffsetForLeaderEpochRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v2, write_v2),
    3: (read_v3, write_v3),
    4: (read_v4, write_v4),
}

# what JSON and error messages know of the fields
OffsetForLeaderPartition.FIELDS = (
    Field("partition", "partition", "int32", (0, 4)),
    Field("current_leader_epoch", "currentLeaderEpoch", "int32", (2, 4), ignorable=True),
    Field("leader_epoch", "leaderEpoch", "int32", (0, 4)),
)
OffsetForLeaderTopic.FIELDS = (
    Field("topic", "topic", "string", (0, 4)),
    Field("partitions", "partitions", "[]OffsetForLeaderPartition", (0, 4), struct=OffsetForLeaderPartition),
)
OffsetForLeaderEpochRequest.FIELDS = (
    Field("replica_id", "replicaId", "int32", (3, 4), ignorable=True),
    Field("topics", "topics", "[]OffsetForLeaderTopic", (0, 4), struct=OffsetForLeaderTopic),
)
