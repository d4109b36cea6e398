"""OffsetForLeaderEpochResponse, versions 0–4: its classes, and one read and write pair per layout.

Generated from schemas/OffsetForLeaderEpochResponse.json by `python -m codegen`; edits here are lost.
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
pack_i2_i4_i8: Final = struct.Struct(">hiq").pack
pack_i2_i4x2_i8: Final = struct.Struct(">hiiq").pack
pack_i4: Final = struct.Struct(">i").pack
pack_i4x2: Final = struct.Struct(">ii").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i2_i4_i8: Final = struct.Struct(">hiq").unpack_from
unpack_i2_i4x2_i8: Final = struct.Struct(">hiiq").unpack_from
unpack_i2_i4x2_i8_u1: Final = struct.Struct(">hiiqB").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i4x2: Final = struct.Struct(">ii").unpack_from


@define(weakref_slot=False)
class EpochEndOffset(Struct):
    """One answer per asked partition of this topic.

    Attributes:
        error_code: 0, or why this partition has no answer; nearly all are cured by fresh metadata and another
            try.
        partition: The partition's number within its topic.
        leader_epoch: The largest epoch in the log not above the one asked for; -1 when the log has none.
            Version 0 does not tell it.
        end_offset: First offset after that epoch, the log end if the epoch is the current one; -1 when the
            log has no such epoch.
    """

    error_code: int = 0
    partition: int = 0
    leader_epoch: int = -1
    end_offset: int = -1


@define(weakref_slot=False)
class OffsetForLeaderTopicResult(Struct):
    """The answers by topic.

    Attributes:
        topic: The topic of these partitions.
        partitions: One answer per asked partition of this topic.
    """

    topic: str = ""
    partitions: list[EpochEndOffset] = Factory(list)


@define(weakref_slot=False)
class OffsetForLeaderEpochResponse(Message):
    """Where the asked epochs end. An end before a consumer's position means that records it has read no
    longer exist.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Informative: this API never obliges the
            client to stay silent.
        topics: The answers by topic.
    """

    NAME: ClassVar[str] = "OffsetForLeaderEpochResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 23
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_SINCE: ClassVar[int | None] = 4

    throttle_time_ms: int = 0
    topics: list[OffsetForLeaderTopicResult] = Factory(list)


# EpochEndOffset in version 0
def read_epoch_end_offset_v0(data: Buffer, at: int, size: int) -> tuple[EpochEndOffset, int]:
    message = new(EpochEndOffset)
    message.leader_epoch = -1
    message.unknown_tags = ()
    message.error_code, message.partition, message.end_offset = unpack_i2_i4_i8(data, at)
    at += 14
    return message, at


def write_epoch_end_offset_v0(message: EpochEndOffset, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i2_i4_i8(message.error_code, message.partition, message.end_offset))


# OffsetForLeaderTopicResult in version 0
def read_offset_for_leader_topic_result_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetForLeaderTopicResult, int]:
    message = new(OffsetForLeaderTopicResult)
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
    if not 0 <= count * 14 <= size - at:
        raise Malformed("partitions")
    partitions: list[EpochEndOffset] = []
    for _ in range(count):
        partition, at = read_epoch_end_offset_v0(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_offset_for_leader_topic_result_v0(message: OffsetForLeaderTopicResult, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topic = message.topic.encode()
    add(pack_i2(len(topic)))
    add(topic)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_epoch_end_offset_v0(partition, add)


# OffsetForLeaderEpochResponse in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[OffsetForLeaderEpochResponse, int]:
    message = new(OffsetForLeaderEpochResponse)
    message.throttle_time_ms = 0
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetForLeaderTopicResult] = []
    for _ in range(count):
        topic, at = read_offset_for_leader_topic_result_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v0(message: OffsetForLeaderEpochResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        write_offset_for_leader_topic_result_v0(topic, add)


# EpochEndOffset in versions 1–3
def read_epoch_end_offset_v1(data: Buffer, at: int, size: int) -> tuple[EpochEndOffset, int]:
    message = new(EpochEndOffset)
    message.unknown_tags = ()
    (
        message.error_code,
        message.partition,
        message.leader_epoch,
        message.end_offset,
    ) = unpack_i2_i4x2_i8(data, at)
    at += 18
    return message, at


def write_epoch_end_offset_v1(message: EpochEndOffset, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i2_i4x2_i8(message.error_code, message.partition, message.leader_epoch, message.end_offset))


# OffsetForLeaderTopicResult in versions 1–3
def read_offset_for_leader_topic_result_v1(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetForLeaderTopicResult, int]:
    message = new(OffsetForLeaderTopicResult)
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
    if not 0 <= count * 18 <= size - at:
        raise Malformed("partitions")
    partitions: list[EpochEndOffset] = []
    for _ in range(count):
        partition, at = read_epoch_end_offset_v1(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_offset_for_leader_topic_result_v1(message: OffsetForLeaderTopicResult, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topic = message.topic.encode()
    add(pack_i2(len(topic)))
    add(topic)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_epoch_end_offset_v1(partition, add)


# OffsetForLeaderEpochResponse in version 1
def read_v1(data: Buffer, at: int, size: int) -> tuple[OffsetForLeaderEpochResponse, int]:
    message = new(OffsetForLeaderEpochResponse)
    message.throttle_time_ms = 0
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetForLeaderTopicResult] = []
    for _ in range(count):
        topic, at = read_offset_for_leader_topic_result_v1(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v1(message: OffsetForLeaderEpochResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        write_offset_for_leader_topic_result_v1(topic, add)


# OffsetForLeaderEpochResponse in versions 2–3
def read_v2(data: Buffer, at: int, size: int) -> tuple[OffsetForLeaderEpochResponse, int]:
    message = new(OffsetForLeaderEpochResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetForLeaderTopicResult] = []
    for _ in range(count):
        topic, at = read_offset_for_leader_topic_result_v1(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v2(message: OffsetForLeaderEpochResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4x2(message.throttle_time_ms, len(topics)))
    for topic in topics:
        write_offset_for_leader_topic_result_v1(topic, add)


# EpochEndOffset in version 4
def read_epoch_end_offset_v4(data: Buffer, at: int, size: int) -> tuple[EpochEndOffset, int]:
    message = new(EpochEndOffset)
    message.unknown_tags = ()
    (
        message.error_code,
        message.partition,
        message.leader_epoch,
        message.end_offset,
        tags,
    ) = unpack_i2_i4x2_i8_u1(data, at)
    at += 19
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_epoch_end_offset_v4(message: EpochEndOffset, add: Add) -> None:
    add(pack_i2_i4x2_i8(message.error_code, message.partition, message.leader_epoch, message.end_offset))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetForLeaderTopicResult in version 4
def read_offset_for_leader_topic_result_v4(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetForLeaderTopicResult, int]:
    message = new(OffsetForLeaderTopicResult)
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
    if not 0 <= count * 19 <= size - at:
        raise Malformed("partitions")
    partitions: list[EpochEndOffset] = []
    for _ in range(count):
        partition, at = read_epoch_end_offset_v4(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_offset_for_leader_topic_result_v4(message: OffsetForLeaderTopicResult, add: Add) -> None:
    topic = message.topic.encode()
    add(compact_string_length[len(topic)])
    add(topic)
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_epoch_end_offset_v4(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetForLeaderEpochResponse in version 4
def read_v4(data: Buffer, at: int, size: int) -> tuple[OffsetForLeaderEpochResponse, int]:
    message = new(OffsetForLeaderEpochResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetForLeaderTopicResult] = []
    for _ in range(count):
        topic, at = read_offset_for_leader_topic_result_v4(data, at, size)
        topics.append(topic)
    message.topics = topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v4(message: OffsetForLeaderEpochResponse, add: Add) -> None:
    add(pack_i4(message.throttle_time_ms))
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_offset_for_leader_topic_result_v4(topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[OffsetForLeaderEpochResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v2, write_v2),
    3: (read_v2, write_v2),
    4: (read_v4, write_v4),
}

# what JSON and error messages know of the fields
EpochEndOffset.FIELDS = (
    Field("error_code", "errorCode", "int16", (0, 4)),
    Field("partition", "partition", "int32", (0, 4)),
    Field("leader_epoch", "leaderEpoch", "int32", (1, 4), ignorable=True),
    Field("end_offset", "endOffset", "int64", (0, 4)),
)
OffsetForLeaderTopicResult.FIELDS = (
    Field("topic", "topic", "string", (0, 4)),
    Field("partitions", "partitions", "[]EpochEndOffset", (0, 4), struct=EpochEndOffset),
)
OffsetForLeaderEpochResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (2, 4), ignorable=True),
    Field("topics", "topics", "[]OffsetForLeaderTopicResult", (0, 4), struct=OffsetForLeaderTopicResult),
)
