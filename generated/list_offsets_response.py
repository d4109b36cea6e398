"""ListOffsetsResponse, versions 0–11: its classes, and one read and write pair per layout.

Generated from schemas/ListOffsetsResponse.json by `python -m codegen`; edits here are lost.
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
    int64_array,
    left_over,
    new,
    read_string_length,
    read_tags,
    read_uvarint,
    write_tags,
)

pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
pack_i4_i2_i4: Final = struct.Struct(">ihi").pack
pack_i4_i2_i8x2: Final = struct.Struct(">ihqq").pack
pack_i4_i2_i8x2_i4: Final = struct.Struct(">ihqqi").pack
pack_i4x2: Final = struct.Struct(">ii").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_i2_i4: Final = struct.Struct(">ihi").unpack_from
unpack_i4_i2_i8x2: Final = struct.Struct(">ihqq").unpack_from
unpack_i4_i2_i8x2_i4: Final = struct.Struct(">ihqqi").unpack_from
unpack_i4_i2_i8x2_i4_u1: Final = struct.Struct(">ihqqiB").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i4x2: Final = struct.Struct(">ii").unpack_from


@define(weakref_slot=False)
class ListOffsetsPartitionResponse(Struct):
    """One answer per asked partition of this topic.

    Attributes:
        partition_index: The partition's number within its topic.
        error_code: 0, or why this partition has no answer; nearly all are cured by fresh metadata and another
            try.
        old_style_offsets: Segment start offsets not later than the time, newest first. Version 0 only.
        timestamp: Timestamp of the found record in milliseconds since 1970; -1 when nothing was found or the
            first or last offset was asked for.
        offset: Offset of the first record at or after the time, or the end that was asked for; -1 when no
            record is that new.
        leader_epoch: Leader epoch that goes with the found offset; -1 when the broker cannot tell. A position
            reset to the offset keeps it.
    """

    partition_index: int = 0
    error_code: int = 0
    old_style_offsets: list[int] = Factory(list)
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


@define(weakref_slot=False)
class ListOffsetsTopicResponse(Struct):
    """The answers by topic.

    Attributes:
        name: The topic of these partitions.
        partitions: One answer per asked partition of this topic.
    """

    name: str = ""
    partitions: list[ListOffsetsPartitionResponse] = Factory(list)


@define(weakref_slot=False)
class ListOffsetsResponse(Message):
    """The offset that was found for each partition and time.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Since version 3 the answer is immediate and
            the client must stay silent that long; before, the broker had already held the answer back.
        topics: The answers by topic.
    """

    NAME: ClassVar[str] = "ListOffsetsResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 2
    VERSIONS: ClassVar[tuple[int, int]] = (0, 11)
    FLEXIBLE_SINCE: ClassVar[int | None] = 6

    throttle_time_ms: int = 0
    topics: list[ListOffsetsTopicResponse] = Factory(list)


# ListOffsetsPartitionResponse in version 0
def read_list_offsets_partition_response_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[ListOffsetsPartitionResponse, int]:
    message = new(ListOffsetsPartitionResponse)
    message.timestamp = -1
    message.offset = -1
    message.leader_epoch = -1
    message.unknown_tags = ()
    message.partition_index, message.error_code, count = unpack_i4_i2_i4(data, at)
    at += 10
    if not 0 <= count * 8 <= size - at:
        raise Malformed("old_style_offsets")
    message.old_style_offsets = list(int64_array[count].unpack_from(data, at))
    at += 8 * count
    return message, at


def write_list_offsets_partition_response_v0(message: ListOffsetsPartitionResponse, add: Add) -> None:
    if message.timestamp != -1:
        raise Unwritable("timestamp")
    if message.offset != -1:
        raise Unwritable("offset")
    if message.leader_epoch != -1:
        raise Unwritable("leader_epoch")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    old_style_offsets = message.old_style_offsets
    add(pack_i4_i2_i4(message.partition_index, message.error_code, len(old_style_offsets)))
    add(int64_array[len(old_style_offsets)].pack(*old_style_offsets))


# ListOffsetsTopicResponse in version 0
def read_list_offsets_topic_response_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[ListOffsetsTopicResponse, int]:
    message = new(ListOffsetsTopicResponse)
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
    if not 0 <= count * 10 <= size - at:
        raise Malformed("partitions")
    partitions: list[ListOffsetsPartitionResponse] = []
    for _ in range(count):
        partition, at = read_list_offsets_partition_response_v0(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_list_offsets_topic_response_v0(message: ListOffsetsTopicResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_list_offsets_partition_response_v0(partition, add)


# ListOffsetsResponse in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[ListOffsetsResponse, int]:
    message = new(ListOffsetsResponse)
    message.throttle_time_ms = 0
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[ListOffsetsTopicResponse] = []
    for _ in range(count):
        topic, at = read_list_offsets_topic_response_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v0(message: ListOffsetsResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        write_list_offsets_topic_response_v0(topic, add)


# ListOffsetsPartitionResponse in versions 1–3
def read_list_offsets_partition_response_v1(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[ListOffsetsPartitionResponse, int]:
    message = new(ListOffsetsPartitionResponse)
    message.old_style_offsets = []
    message.leader_epoch = -1
    message.unknown_tags = ()
    (
        message.partition_index,
        message.error_code,
        message.timestamp,
        message.offset,
    ) = unpack_i4_i2_i8x2(data, at)
    at += 22
    return message, at


def write_list_offsets_partition_response_v1(message: ListOffsetsPartitionResponse, add: Add) -> None:
    if message.old_style_offsets != []:
        raise Unwritable("old_style_offsets")
    if message.leader_epoch != -1:
        raise Unwritable("leader_epoch")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4_i2_i8x2(message.partition_index, message.error_code, message.timestamp, message.offset))


# ListOffsetsTopicResponse in versions 1–3
def read_list_offsets_topic_response_v1(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[ListOffsetsTopicResponse, int]:
    message = new(ListOffsetsTopicResponse)
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
    if not 0 <= count * 22 <= size - at:
        raise Malformed("partitions")
    partitions: list[ListOffsetsPartitionResponse] = []
    for _ in range(count):
        partition, at = read_list_offsets_partition_response_v1(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_list_offsets_topic_response_v1(message: ListOffsetsTopicResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_list_offsets_partition_response_v1(partition, add)


# ListOffsetsResponse in version 1
def read_v1(data: Buffer, at: int, size: int) -> tuple[ListOffsetsResponse, int]:
    message = new(ListOffsetsResponse)
    message.throttle_time_ms = 0
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[ListOffsetsTopicResponse] = []
    for _ in range(count):
        topic, at = read_list_offsets_topic_response_v1(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v1(message: ListOffsetsResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        write_list_offsets_topic_response_v1(topic, add)


# ListOffsetsResponse in versions 2–3
def read_v2(data: Buffer, at: int, size: int) -> tuple[ListOffsetsResponse, int]:
    message = new(ListOffsetsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[ListOffsetsTopicResponse] = []
    for _ in range(count):
        topic, at = read_list_offsets_topic_response_v1(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v2(message: ListOffsetsResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4x2(message.throttle_time_ms, len(topics)))
    for topic in topics:
        write_list_offsets_topic_response_v1(topic, add)


# ListOffsetsPartitionResponse in versions 4–5
def read_list_offsets_partition_response_v4(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[ListOffsetsPartitionResponse, int]:
    message = new(ListOffsetsPartitionResponse)
    message.old_style_offsets = []
    message.unknown_tags = ()
    (
        message.partition_index,
        message.error_code,
        message.timestamp,
        message.offset,
        message.leader_epoch,
    ) = unpack_i4_i2_i8x2_i4(data, at)
    at += 26
    return message, at


def write_list_offsets_partition_response_v4(message: ListOffsetsPartitionResponse, add: Add) -> None:
    if message.old_style_offsets != []:
        raise Unwritable("old_style_offsets")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(
        pack_i4_i2_i8x2_i4(
            message.partition_index,
            message.error_code,
            message.timestamp,
            message.offset,
            message.leader_epoch,
        )
    )


# ListOffsetsTopicResponse in versions 4–5
def read_list_offsets_topic_response_v4(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[ListOffsetsTopicResponse, int]:
    message = new(ListOffsetsTopicResponse)
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
    if not 0 <= count * 26 <= size - at:
        raise Malformed("partitions")
    partitions: list[ListOffsetsPartitionResponse] = []
    for _ in range(count):
        partition, at = read_list_offsets_partition_response_v4(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_list_offsets_topic_response_v4(message: ListOffsetsTopicResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_list_offsets_partition_response_v4(partition, add)


# ListOffsetsResponse in versions 4–5
def read_v4(data: Buffer, at: int, size: int) -> tuple[ListOffsetsResponse, int]:
    message = new(ListOffsetsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[ListOffsetsTopicResponse] = []
    for _ in range(count):
        topic, at = read_list_offsets_topic_response_v4(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v4(message: ListOffsetsResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4x2(message.throttle_time_ms, len(topics)))
    for topic in topics:
        write_list_offsets_topic_response_v4(topic, add)


# ListOffsetsPartitionResponse in versions 6–11
def read_list_offsets_partition_response_v6(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[ListOffsetsPartitionResponse, int]:
    message = new(ListOffsetsPartitionResponse)
    message.old_style_offsets = []
    message.unknown_tags = ()
    (
        message.partition_index,
        message.error_code,
        message.timestamp,
        message.offset,
        message.leader_epoch,
        tags,
    ) = unpack_i4_i2_i8x2_i4_u1(data, at)
    at += 27
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_list_offsets_partition_response_v6(message: ListOffsetsPartitionResponse, add: Add) -> None:
    if message.old_style_offsets != []:
        raise Unwritable("old_style_offsets")
    add(
        pack_i4_i2_i8x2_i4(
            message.partition_index,
            message.error_code,
            message.timestamp,
            message.offset,
            message.leader_epoch,
        )
    )
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ListOffsetsTopicResponse in versions 6–11
def read_list_offsets_topic_response_v6(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[ListOffsetsTopicResponse, int]:
    message = new(ListOffsetsTopicResponse)
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
    if not 0 <= count * 27 <= size - at:
        raise Malformed("partitions")
    partitions: list[ListOffsetsPartitionResponse] = []
    for _ in range(count):
        partition, at = read_list_offsets_partition_response_v6(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_list_offsets_topic_response_v6(message: ListOffsetsTopicResponse, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_list_offsets_partition_response_v6(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ListOffsetsResponse in versions 6–11
def read_v6(data: Buffer, at: int, size: int) -> tuple[ListOffsetsResponse, int]:
    message = new(ListOffsetsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("topics")
    topics: list[ListOffsetsTopicResponse] = []
    for _ in range(count):
        topic, at = read_list_offsets_topic_response_v6(data, at, size)
        topics.append(topic)
    message.topics = topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v6(message: ListOffsetsResponse, add: Add) -> None:
    add(pack_i4(message.throttle_time_ms))
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_list_offsets_topic_response_v6(topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ListOffsetsResponse]] = {
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
    10: (read_v6, write_v6),
    11: (read_v6, write_v6),
}

# what JSON and error messages know of the fields
ListOffsetsPartitionResponse.FIELDS = (
    Field("partition_index", "partitionIndex", "int32", (0, 11)),
    Field("error_code", "errorCode", "int16", (0, 11)),
    Field("old_style_offsets", "oldStyleOffsets", "[]int64", (0, 0)),
    Field("timestamp", "timestamp", "int64", (1, 11)),
    Field("offset", "offset", "int64", (1, 11)),
    Field("leader_epoch", "leaderEpoch", "int32", (4, 11)),
)
ListOffsetsTopicResponse.FIELDS = (
    Field("name", "name", "string", (0, 11)),
    Field(
        "partitions",
        "partitions",
        "[]ListOffsetsPartitionResponse",
        (0, 11),
        struct=ListOffsetsPartitionResponse,
    ),
)
ListOffsetsResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (2, 11), ignorable=True),
    Field("topics", "topics", "[]ListOffsetsTopicResponse", (0, 11), struct=ListOffsetsTopicResponse),
)
