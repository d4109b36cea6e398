"""DeleteRecordsRequest, versions 0–2: its classes, and one read and write pair per layout.

Generated from schemas/DeleteRecordsRequest.json by `python -m codegen`; edits here are lost.
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
pack_i4_i8: Final = struct.Struct(">iq").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_i8: Final = struct.Struct(">iq").unpack_from
unpack_i4_i8_u1: Final = struct.Struct(">iqB").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from


@define(weakref_slot=False)
class DeleteRecordsPartition(Struct):
    """The partitions of this topic, which the asked broker must lead.

    Attributes:
        partition_index: The partition's number within its topic.
        offset: The first offset to keep; -1 for the high watermark, which deletes all.
    """

    partition_index: int = 0
    offset: int = 0


@define(weakref_slot=False)
class DeleteRecordsTopic(Struct):
    """The partitions to shorten, by topic.

    Attributes:
        name: The topic of the partitions to shorten.
        partitions: The partitions of this topic, which the asked broker must lead.
    """

    name: str = ""
    partitions: list[DeleteRecordsPartition] = Factory(list)


@define(weakref_slot=False)
class DeleteRecordsRequest(Message):
    """Moves the start of partitions forward, so that all older records are gone.

    Attributes:
        topics: The partitions to shorten, by topic.
        timeout_ms: Milliseconds to wait until the replicas have followed.
    """

    NAME: ClassVar[str] = "DeleteRecordsRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 21
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_SINCE: ClassVar[int | None] = 2

    topics: list[DeleteRecordsTopic] = Factory(list)
    timeout_ms: int = 0


# DeleteRecordsPartition in versions 0–1
def read_delete_records_partition_v0(data: Buffer, at: int, size: int) -> tuple[DeleteRecordsPartition, int]:
    message = new(DeleteRecordsPartition)
    message.unknown_tags = ()
    message.partition_index, message.offset = unpack_i4_i8(data, at)
    at += 12
    return message, at


def write_delete_records_partition_v0(message: DeleteRecordsPartition, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4_i8(message.partition_index, message.offset))


# DeleteRecordsTopic in versions 0–1
def read_delete_records_topic_v0(data: Buffer, at: int, size: int) -> tuple[DeleteRecordsTopic, int]:
    message = new(DeleteRecordsTopic)
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
    partitions: list[DeleteRecordsPartition] = []
    for _ in range(count):
        partition, at = read_delete_records_partition_v0(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_delete_records_topic_v0(message: DeleteRecordsTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_delete_records_partition_v0(partition, add)


# DeleteRecordsRequest in versions 0–1
def read_v0(data: Buffer, at: int, size: int) -> tuple[DeleteRecordsRequest, int]:
    message = new(DeleteRecordsRequest)
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[DeleteRecordsTopic] = []
    for _ in range(count):
        topic, at = read_delete_records_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    (message.timeout_ms,) = unpack_i4(data, at)
    at += 4
    return message, at


def write_v0(message: DeleteRecordsRequest, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        write_delete_records_topic_v0(topic, add)
    add(pack_i4(message.timeout_ms))


# DeleteRecordsPartition in version 2
def read_delete_records_partition_v2(data: Buffer, at: int, size: int) -> tuple[DeleteRecordsPartition, int]:
    message = new(DeleteRecordsPartition)
    message.unknown_tags = ()
    message.partition_index, message.offset, tags = unpack_i4_i8_u1(data, at)
    at += 13
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_delete_records_partition_v2(message: DeleteRecordsPartition, add: Add) -> None:
    add(pack_i4_i8(message.partition_index, message.offset))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DeleteRecordsTopic in version 2
def read_delete_records_topic_v2(data: Buffer, at: int, size: int) -> tuple[DeleteRecordsTopic, int]:
    message = new(DeleteRecordsTopic)
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
    if not 0 <= count * 13 <= size - at:
        raise Malformed("partitions")
    partitions: list[DeleteRecordsPartition] = []
    for _ in range(count):
        partition, at = read_delete_records_partition_v2(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_delete_records_topic_v2(message: DeleteRecordsTopic, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_delete_records_partition_v2(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DeleteRecordsRequest in version 2
def read_v2(data: Buffer, at: int, size: int) -> tuple[DeleteRecordsRequest, int]:
    message = new(DeleteRecordsRequest)
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("topics")
    topics: list[DeleteRecordsTopic] = []
    for _ in range(count):
        topic, at = read_delete_records_topic_v2(data, at, size)
        topics.append(topic)
    message.topics = topics
    message.timeout_ms, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v2(message: DeleteRecordsRequest, add: Add) -> None:
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_delete_records_topic_v2(topic, add)
    add(pack_i4(message.timeout_ms))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[DeleteRecordsRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v2, write_v2),
}

# what JSON and error messages know of the fields
DeleteRecordsPartition.FIELDS = (
    Field("partition_index", "partitionIndex", "int32", (0, 2)),
    Field("offset", "offset", "int64", (0, 2)),
)
DeleteRecordsTopic.FIELDS = (
    Field("name", "name", "string", (0, 2)),
    Field("partitions", "partitions", "[]DeleteRecordsPartition", (0, 2), struct=DeleteRecordsPartition),
)
DeleteRecordsRequest.FIELDS = (
    Field("topics", "topics", "[]DeleteRecordsTopic", (0, 2), struct=DeleteRecordsTopic),
    Field("timeout_ms", "timeoutMs", "int32", (0, 2)),
)
