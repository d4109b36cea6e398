"""DeleteRecordsResponse, versions 0–2: its classes, and one read and write pair per layout.

Generated from schemas/DeleteRecordsResponse.json by `python -m codegen`; edits here are lost.
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
pack_i4_i8_i2: Final = struct.Struct(">iqh").pack
pack_i4x2: Final = struct.Struct(">ii").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_i8_i2: Final = struct.Struct(">iqh").unpack_from
unpack_i4_i8_i2_u1: Final = struct.Struct(">iqhB").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i4x2: Final = struct.Struct(">ii").unpack_from


@define(weakref_slot=False)
class DeleteRecordsPartitionResult(Struct):
    """The results by partition of this topic.

    Attributes:
        partition_index: The partition's number within its topic.
        low_watermark: The smallest start offset over all replicas of the partition; -1 on error.
        error_code: 0, or why the partition was not shortened.
    """

    partition_index: int = 0
    low_watermark: int = 0
    error_code: int = 0


@define(weakref_slot=False)
class DeleteRecordsTopicResult(Struct):
    """One entry per topic, with a result for each of its partitions.

    Attributes:
        name: The topic of these results.
        partitions: The results by partition of this topic.
    """

    name: str = ""
    partitions: list[DeleteRecordsPartitionResult] = Factory(list)


@define(weakref_slot=False)
class DeleteRecordsResponse(Message):
    """Says where each partition begins now.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Since version 1 the answer is immediate and
            the client must stay silent that long; before, the broker had already held the answer back.
        topics: One entry per topic, with a result for each of its partitions.
    """

    NAME: ClassVar[str] = "DeleteRecordsResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 21
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_SINCE: ClassVar[int | None] = 2

    throttle_time_ms: int = 0
    topics: list[DeleteRecordsTopicResult] = Factory(list)


# DeleteRecordsPartitionResult in versions 0–1
def read_delete_records_partition_result_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[DeleteRecordsPartitionResult, int]:
    message = new(DeleteRecordsPartitionResult)
    message.unknown_tags = ()
    message.partition_index, message.low_watermark, message.error_code = unpack_i4_i8_i2(data, at)
    at += 14
    return message, at


def write_delete_records_partition_result_v0(message: DeleteRecordsPartitionResult, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4_i8_i2(message.partition_index, message.low_watermark, message.error_code))


# DeleteRecordsTopicResult in versions 0–1
def read_delete_records_topic_result_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[DeleteRecordsTopicResult, int]:
    message = new(DeleteRecordsTopicResult)
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
    if not 0 <= count * 14 <= size - at:
        raise Malformed("partitions")
    partitions: list[DeleteRecordsPartitionResult] = []
    for _ in range(count):
        partition, at = read_delete_records_partition_result_v0(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_delete_records_topic_result_v0(message: DeleteRecordsTopicResult, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_delete_records_partition_result_v0(partition, add)


# DeleteRecordsResponse in versions 0–1
def read_v0(data: Buffer, at: int, size: int) -> tuple[DeleteRecordsResponse, int]:
    message = new(DeleteRecordsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[DeleteRecordsTopicResult] = []
    for _ in range(count):
        topic, at = read_delete_records_topic_result_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v0(message: DeleteRecordsResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4x2(message.throttle_time_ms, len(topics)))
    for topic in topics:
        write_delete_records_topic_result_v0(topic, add)


# DeleteRecordsPartitionResult in version 2
def read_delete_records_partition_result_v2(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[DeleteRecordsPartitionResult, int]:
    message = new(DeleteRecordsPartitionResult)
    message.unknown_tags = ()
    message.partition_index, message.low_watermark, message.error_code, tags = unpack_i4_i8_i2_u1(data, at)
    at += 15
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_delete_records_partition_result_v2(message: DeleteRecordsPartitionResult, add: Add) -> None:
    add(pack_i4_i8_i2(message.partition_index, message.low_watermark, message.error_code))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DeleteRecordsTopicResult in version 2
def read_delete_records_topic_result_v2(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[DeleteRecordsTopicResult, int]:
    message = new(DeleteRecordsTopicResult)
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
    if not 0 <= count * 15 <= size - at:
        raise Malformed("partitions")
    partitions: list[DeleteRecordsPartitionResult] = []
    for _ in range(count):
        partition, at = read_delete_records_partition_result_v2(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_delete_records_topic_result_v2(message: DeleteRecordsTopicResult, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_delete_records_partition_result_v2(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DeleteRecordsResponse in version 2
def read_v2(data: Buffer, at: int, size: int) -> tuple[DeleteRecordsResponse, int]:
    message = new(DeleteRecordsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("topics")
    topics: list[DeleteRecordsTopicResult] = []
    for _ in range(count):
        topic, at = read_delete_records_topic_result_v2(data, at, size)
        topics.append(topic)
    message.topics = topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v2(message: DeleteRecordsResponse, add: Add) -> None:
    add(pack_i4(message.throttle_time_ms))
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_delete_records_topic_result_v2(topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[DeleteRecordsResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v2, write_v2),
}

# what JSON and error messages know of the fields
DeleteRecordsPartitionResult.FIELDS = (
    Field("partition_index", "partitionIndex", "int32", (0, 2)),
    Field("low_watermark", "lowWatermark", "int64", (0, 2)),
    Field("error_code", "errorCode", "int16", (0, 2)),
)
DeleteRecordsTopicResult.FIELDS = (
    Field("name", "name", "string", (0, 2)),
    Field(
        "partitions",
        "partitions",
        "[]DeleteRecordsPartitionResult",
        (0, 2),
        struct=DeleteRecordsPartitionResult,
    ),
)
DeleteRecordsResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (0, 2)),
    Field("topics", "topics", "[]DeleteRecordsTopicResult", (0, 2), struct=DeleteRecordsTopicResult),
)
