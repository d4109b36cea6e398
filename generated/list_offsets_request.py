"""ListOffsetsRequest, versions 0–11: its classes, and one read and write pair per layout.

Generated from schemas/ListOffsetsRequest.json by `python -m codegen`; edits here are lost.
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
pack_i4_i1: Final = struct.Struct(">ib").pack
pack_i4_i1_i4: Final = struct.Struct(">ibi").pack
pack_i4_i8: Final = struct.Struct(">iq").pack
pack_i4_i8_i4: Final = struct.Struct(">iqi").pack
pack_i4x2: Final = struct.Struct(">ii").pack
pack_i4x2_i8: Final = struct.Struct(">iiq").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_i1_i4: Final = struct.Struct(">ibi").unpack_from
unpack_i4_i1_u1: Final = struct.Struct(">ibB").unpack_from
unpack_i4_i8: Final = struct.Struct(">iq").unpack_from
unpack_i4_i8_i4: Final = struct.Struct(">iqi").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i4x2: Final = struct.Struct(">ii").unpack_from
unpack_i4x2_i8: Final = struct.Struct(">iiq").unpack_from
unpack_i4x2_i8_u1: Final = struct.Struct(">iiqB").unpack_from


@define(weakref_slot=False)
class ListOffsetsPartition(Struct):
    """The partitions of this topic, each with the time it is asked for.

    Attributes:
        partition_index: The partition's number within its topic.
        current_leader_epoch: The leader epoch the asker knows, so that a stale broker or asker is found out
            (errors 74, 75); -1 skips the check.
        timestamp: Milliseconds since 1970, or -1 last, -2 first, -3 largest timestamp (v7), -4 first local
            (v8), -5 last tiered (v9), -6 first not yet uploaded (v11).
        max_num_offsets: At most so many segment start offsets in the answer. Version 0 only.
    """

    partition_index: int = 0
    current_leader_epoch: int = -1
    timestamp: int = 0
    max_num_offsets: int = 1


@define(weakref_slot=False)
class ListOffsetsTopic(Struct):
    """The topics asked about; only partitions which the asked broker leads.

    Attributes:
        name: The topic of the partitions asked about.
        partitions: The partitions of this topic, each with the time it is asked for.
    """

    name: str = ""
    partitions: list[ListOffsetsPartition] = Factory(list)


@define(weakref_slot=False)
class ListOffsetsRequest(Message):
    """Asks partition leaders for the offset that belongs to a time, or for the first or last one; how a
    consumer resets positions and measures lag.

    Attributes:
        replica_id: Broker id of an asking follower; -1 for a consumer, which is only shown offsets below the
            high watermark.
        isolation_level: 0 read_uncommitted, 1 read_committed: then the last offset is the last stable offset
            instead of the high watermark.
        topics: The topics asked about; only partitions which the asked broker leads.
        timeout_ms: Milliseconds the broker may take to look a time up in tiered storage; local lookups are
            answered at once.
    """

    NAME: ClassVar[str] = "ListOffsetsRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 2
    VERSIONS: ClassVar[tuple[int, int]] = (0, 11)
    FLEXIBLE_SINCE: ClassVar[int | None] = 6

    replica_id: int = 0
    isolation_level: int = 0
    topics: list[ListOffsetsTopic] = Factory(list)
    timeout_ms: int = 0


# ListOffsetsPartition in version 0
def read_list_offsets_partition_v0(data: Buffer, at: int, size: int) -> tuple[ListOffsetsPartition, int]:
    message = new(ListOffsetsPartition)
    message.current_leader_epoch = -1
    message.unknown_tags = ()
    message.partition_index, message.timestamp, message.max_num_offsets = unpack_i4_i8_i4(data, at)
    at += 16
    return message, at


def write_list_offsets_partition_v0(message: ListOffsetsPartition, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4_i8_i4(message.partition_index, message.timestamp, message.max_num_offsets))


# ListOffsetsTopic in version 0
def read_list_offsets_topic_v0(data: Buffer, at: int, size: int) -> tuple[ListOffsetsTopic, int]:
    message = new(ListOffsetsTopic)
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
    if not 0 <= count * 16 <= size - at:
        raise Malformed("partitions")
    partitions: list[ListOffsetsPartition] = []
    for _ in range(count):
        partition, at = read_list_offsets_partition_v0(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_list_offsets_topic_v0(message: ListOffsetsTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_list_offsets_partition_v0(partition, add)


# ListOffsetsRequest in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[ListOffsetsRequest, int]:
    message = new(ListOffsetsRequest)
    message.isolation_level = 0
    message.timeout_ms = 0
    message.unknown_tags = ()
    message.replica_id, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[ListOffsetsTopic] = []
    for _ in range(count):
        topic, at = read_list_offsets_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v0(message: ListOffsetsRequest, add: Add) -> None:
    if message.isolation_level != 0:
        raise Unwritable("isolation_level")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4x2(message.replica_id, len(topics)))
    for topic in topics:
        write_list_offsets_topic_v0(topic, add)


# ListOffsetsPartition in versions 1–3
def read_list_offsets_partition_v1(data: Buffer, at: int, size: int) -> tuple[ListOffsetsPartition, int]:
    message = new(ListOffsetsPartition)
    message.current_leader_epoch = -1
    message.max_num_offsets = 1
    message.unknown_tags = ()
    message.partition_index, message.timestamp = unpack_i4_i8(data, at)
    at += 12
    return message, at


def write_list_offsets_partition_v1(message: ListOffsetsPartition, add: Add) -> None:
    if message.max_num_offsets != 1:
        raise Unwritable("max_num_offsets")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4_i8(message.partition_index, message.timestamp))


# ListOffsetsTopic in versions 1–3
def read_list_offsets_topic_v1(data: Buffer, at: int, size: int) -> tuple[ListOffsetsTopic, int]:
    message = new(ListOffsetsTopic)
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
    if not 0 <= count * 12 <= size - at:
        raise Malformed("partitions")
    partitions: list[ListOffsetsPartition] = []
    for _ in range(count):
        partition, at = read_list_offsets_partition_v1(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_list_offsets_topic_v1(message: ListOffsetsTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_list_offsets_partition_v1(partition, add)


# ListOffsetsRequest in version 1
def read_v1(data: Buffer, at: int, size: int) -> tuple[ListOffsetsRequest, int]:
    message = new(ListOffsetsRequest)
    message.isolation_level = 0
    message.timeout_ms = 0
    message.unknown_tags = ()
    message.replica_id, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[ListOffsetsTopic] = []
    for _ in range(count):
        topic, at = read_list_offsets_topic_v1(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v1(message: ListOffsetsRequest, add: Add) -> None:
    if message.isolation_level != 0:
        raise Unwritable("isolation_level")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4x2(message.replica_id, len(topics)))
    for topic in topics:
        write_list_offsets_topic_v1(topic, add)


# ListOffsetsRequest in versions 2–3
def read_v2(data: Buffer, at: int, size: int) -> tuple[ListOffsetsRequest, int]:
    message = new(ListOffsetsRequest)
    message.timeout_ms = 0
    message.unknown_tags = ()
    message.replica_id, message.isolation_level, count = unpack_i4_i1_i4(data, at)
    at += 9
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[ListOffsetsTopic] = []
    for _ in range(count):
        topic, at = read_list_offsets_topic_v1(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v2(message: ListOffsetsRequest, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4_i1_i4(message.replica_id, message.isolation_level, len(topics)))
    for topic in topics:
        write_list_offsets_topic_v1(topic, add)


# ListOffsetsPartition in versions 4–5
def read_list_offsets_partition_v4(data: Buffer, at: int, size: int) -> tuple[ListOffsetsPartition, int]:
    message = new(ListOffsetsPartition)
    message.max_num_offsets = 1
    message.unknown_tags = ()
    message.partition_index, message.current_leader_epoch, message.timestamp = unpack_i4x2_i8(data, at)
    at += 16
    return message, at


def write_list_offsets_partition_v4(message: ListOffsetsPartition, add: Add) -> None:
    if message.max_num_offsets != 1:
        raise Unwritable("max_num_offsets")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4x2_i8(message.partition_index, message.current_leader_epoch, message.timestamp))


# ListOffsetsTopic in versions 4–5
def read_list_offsets_topic_v4(data: Buffer, at: int, size: int) -> tuple[ListOffsetsTopic, int]:
    message = new(ListOffsetsTopic)
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
    if not 0 <= count * 16 <= size - at:
        raise Malformed("partitions")
    partitions: list[ListOffsetsPartition] = []
    for _ in range(count):
        partition, at = read_list_offsets_partition_v4(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_list_offsets_topic_v4(message: ListOffsetsTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_list_offsets_partition_v4(partition, add)


# ListOffsetsRequest in versions 4–5
def read_v4(data: Buffer, at: int, size: int) -> tuple[ListOffsetsRequest, int]:
    message = new(ListOffsetsRequest)
    message.timeout_ms = 0
    message.unknown_tags = ()
    message.replica_id, message.isolation_level, count = unpack_i4_i1_i4(data, at)
    at += 9
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[ListOffsetsTopic] = []
    for _ in range(count):
        topic, at = read_list_offsets_topic_v4(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v4(message: ListOffsetsRequest, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4_i1_i4(message.replica_id, message.isolation_level, len(topics)))
    for topic in topics:
        write_list_offsets_topic_v4(topic, add)


# ListOffsetsPartition in versions 6–11
def read_list_offsets_partition_v6(data: Buffer, at: int, size: int) -> tuple[ListOffsetsPartition, int]:
    message = new(ListOffsetsPartition)
    message.max_num_offsets = 1
    message.unknown_tags = ()
    (
        message.partition_index,
        message.current_leader_epoch,
        message.timestamp,
        tags,
    ) = unpack_i4x2_i8_u1(data, at)
    at += 17
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_list_offsets_partition_v6(message: ListOffsetsPartition, add: Add) -> None:
    if message.max_num_offsets != 1:
        raise Unwritable("max_num_offsets")
    add(pack_i4x2_i8(message.partition_index, message.current_leader_epoch, message.timestamp))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ListOffsetsTopic in versions 6–11
def read_list_offsets_topic_v6(data: Buffer, at: int, size: int) -> tuple[ListOffsetsTopic, int]:
    message = new(ListOffsetsTopic)
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
    if not 0 <= count * 17 <= size - at:
        raise Malformed("partitions")
    partitions: list[ListOffsetsPartition] = []
    for _ in range(count):
        partition, at = read_list_offsets_partition_v6(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_list_offsets_topic_v6(message: ListOffsetsTopic, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_list_offsets_partition_v6(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ListOffsetsRequest in versions 6–9
def read_v6(data: Buffer, at: int, size: int) -> tuple[ListOffsetsRequest, int]:
    message = new(ListOffsetsRequest)
    message.timeout_ms = 0
    message.unknown_tags = ()
    message.replica_id, message.isolation_level, count = unpack_i4_i1_u1(data, at)
    at += 6
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("topics")
    topics: list[ListOffsetsTopic] = []
    for _ in range(count):
        topic, at = read_list_offsets_topic_v6(data, at, size)
        topics.append(topic)
    message.topics = topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v6(message: ListOffsetsRequest, add: Add) -> None:
    add(pack_i4_i1(message.replica_id, message.isolation_level))
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_list_offsets_topic_v6(topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ListOffsetsRequest in versions 10–11
def read_v10(data: Buffer, at: int, size: int) -> tuple[ListOffsetsRequest, int]:
    message = new(ListOffsetsRequest)
    message.unknown_tags = ()
    message.replica_id, message.isolation_level, count = unpack_i4_i1_u1(data, at)
    at += 6
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("topics")
    topics: list[ListOffsetsTopic] = []
    for _ in range(count):
        topic, at = read_list_offsets_topic_v6(data, at, size)
        topics.append(topic)
    message.topics = topics
    message.timeout_ms, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v10(message: ListOffsetsRequest, add: Add) -> None:
    add(pack_i4_i1(message.replica_id, message.isolation_level))
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_list_offsets_topic_v6(topic, add)
    add(pack_i4(message.timeout_ms))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ListOffsetsRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v2, write_v2),
    3: (read_v2, write_v2),
    4: (read_v4, write_v4),
    5: (read_v4, write_v4),
    6: (read_v6, write_v6),
    7: (read_v6, write_v6),
    8: (read_v6, write_v6),
    9: (read_v6, write_v6),
    10: (read_v10, write_v10),
    11: (read_v10, write_v10),
}

# what JSON and error messages know of the fields
ListOffsetsPartition.FIELDS = (
    Field("partition_index", "partitionIndex", "int32", (0, 11)),
    Field("current_leader_epoch", "currentLeaderEpoch", "int32", (4, 11), ignorable=True),
    Field("timestamp", "timestamp", "int64", (0, 11)),
    Field("max_num_offsets", "maxNumOffsets", "int32", (0, 0)),
)
ListOffsetsTopic.FIELDS = (
    Field("name", "name", "string", (0, 11)),
    Field("partitions", "partitions", "[]ListOffsetsPartition", (0, 11), struct=ListOffsetsPartition),
)
ListOffsetsRequest.FIELDS = (
    Field("replica_id", "replicaId", "int32", (0, 11)),
    Field("isolation_level", "isolationLevel", "int8", (2, 11)),
    Field("topics", "topics", "[]ListOffsetsTopic", (0, 11), struct=ListOffsetsTopic),
    Field("timeout_ms", "timeoutMs", "int32", (10, 11), ignorable=True),
)
