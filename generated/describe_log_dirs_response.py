"""DescribeLogDirsResponse, versions 0–5: its classes, and one read and write pair per layout.

Generated from schemas/DescribeLogDirsResponse.json by `python -m codegen`; edits here are lost.
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
pack_i2x2: Final = struct.Struct(">hh").pack
pack_i4: Final = struct.Struct(">i").pack
pack_i4_i2: Final = struct.Struct(">ih").pack
pack_i4_i8x2_bool: Final = struct.Struct(">iqq?").pack
pack_i4x2: Final = struct.Struct(">ii").pack
pack_i8x2: Final = struct.Struct(">qq").pack
pack_i8x2_bool: Final = struct.Struct(">qq?").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i2_u1: Final = struct.Struct(">hB").unpack_from
unpack_i2x2: Final = struct.Struct(">hh").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_i2_u1: Final = struct.Struct(">ihB").unpack_from
unpack_i4_i8x2_bool: Final = struct.Struct(">iqq?").unpack_from
unpack_i4_i8x2_bool_u1: Final = struct.Struct(">iqq?B").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i4x2: Final = struct.Struct(">ii").unpack_from
unpack_i8x2_bool_u1: Final = struct.Struct(">qq?B").unpack_from
unpack_i8x2_u1: Final = struct.Struct(">qqB").unpack_from


@define(weakref_slot=False)
class DescribeLogDirsPartition(Struct):
    """Its replicas in this directory.

    Attributes:
        partition_index: The number of the partition.
        partition_size: The bytes of all segments of the log.
        offset_lag: How many offsets the replica is behind: the high watermark, or for a future replica the
            log end of the current one.
        is_future_key: True for a copy that is being made to move the replica here from another directory.
    """

    partition_index: int = 0
    partition_size: int = 0
    offset_lag: int = 0
    is_future_key: bool = False


@define(weakref_slot=False)
class DescribeLogDirsTopic(Struct):
    """The wanted topics that have replicas there.

    Attributes:
        name: What the topic is called.
        partitions: Its replicas in this directory.
    """

    name: str = ""
    partitions: list[DescribeLogDirsPartition] = Factory(list)


@define(weakref_slot=False)
class DescribeLogDirsResult(Struct):
    """Each directory in which the broker keeps logs.

    Attributes:
        error_code: 56 if the directory's disk has failed, or 0.
        log_dir: The absolute path on the broker's machine.
        topics: The wanted topics that have replicas there.
        total_bytes: The size of the disk in bytes, -1 if it is not known.
        usable_bytes: How much of the disk is free, -1 if it is not known.
        is_cordoned: True if no new replicas are placed in this directory.
    """

    error_code: int = 0
    log_dir: str = ""
    topics: list[DescribeLogDirsTopic] = Factory(list)
    total_bytes: int = -1
    usable_bytes: int = -1
    is_cordoned: bool = False


@define(weakref_slot=False)
class DescribeLogDirsResponse(Message):
    """Says how large the replicas of a broker are.

    Attributes:
        throttle_time_ms: How long the client is held back because of a quota, in ms.
        error_code: The error of the whole request, or 0.
        results: Each directory in which the broker keeps logs.
    """

    NAME: ClassVar[str] = "DescribeLogDirsResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 35
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_SINCE: ClassVar[int | None] = 2

    throttle_time_ms: int = 0
    error_code: int = 0
    results: list[DescribeLogDirsResult] = Factory(list)


# DescribeLogDirsPartition in versions 0–1
def read_describe_log_dirs_partition_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[DescribeLogDirsPartition, int]:
    message = new(DescribeLogDirsPartition)
    message.unknown_tags = ()
    (
        message.partition_index,
        message.partition_size,
        message.offset_lag,
        message.is_future_key,
    ) = unpack_i4_i8x2_bool(data, at)
    at += 21
    return message, at


def write_describe_log_dirs_partition_v0(message: DescribeLogDirsPartition, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(
        pack_i4_i8x2_bool(
            message.partition_index,
            message.partition_size,
            message.offset_lag,
            message.is_future_key,
        )
    )


# DescribeLogDirsTopic in versions 0–1
def read_describe_log_dirs_topic_v0(data: Buffer, at: int, size: int) -> tuple[DescribeLogDirsTopic, int]:
    message = new(DescribeLogDirsTopic)
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
    if not 0 <= count * 21 <= size - at:
        raise Malformed("partitions")
    partitions: list[DescribeLogDirsPartition] = []
    for _ in range(count):
        partition, at = read_describe_log_dirs_partition_v0(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_describe_log_dirs_topic_v0(message: DescribeLogDirsTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_describe_log_dirs_partition_v0(partition, add)


# DescribeLogDirsResult in versions 0–1
def read_describe_log_dirs_result_v0(data: Buffer, at: int, size: int) -> tuple[DescribeLogDirsResult, int]:
    message = new(DescribeLogDirsResult)
    message.total_bytes = -1
    message.usable_bytes = -1
    message.is_cordoned = False
    message.unknown_tags = ()
    message.error_code, length = unpack_i2x2(data, at)
    at += 4
    end = at + length
    if not at <= end <= size:
        raise Malformed("log_dir")
    message.log_dir = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[DescribeLogDirsTopic] = []
    for _ in range(count):
        topic, at = read_describe_log_dirs_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_describe_log_dirs_result_v0(message: DescribeLogDirsResult, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    log_dir = message.log_dir.encode()
    add(pack_i2x2(message.error_code, len(log_dir)))
    add(log_dir)
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        write_describe_log_dirs_topic_v0(topic, add)


# DescribeLogDirsResponse in versions 0–1
def read_v0(data: Buffer, at: int, size: int) -> tuple[DescribeLogDirsResponse, int]:
    message = new(DescribeLogDirsResponse)
    message.error_code = 0
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 8 <= size - at:
        raise Malformed("results")
    results: list[DescribeLogDirsResult] = []
    for _ in range(count):
        result, at = read_describe_log_dirs_result_v0(data, at, size)
        results.append(result)
    message.results = results
    return message, at


def write_v0(message: DescribeLogDirsResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    results = message.results
    add(pack_i4x2(message.throttle_time_ms, len(results)))
    for result in results:
        write_describe_log_dirs_result_v0(result, add)


# DescribeLogDirsPartition in versions 2–5
def read_describe_log_dirs_partition_v2(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[DescribeLogDirsPartition, int]:
    message = new(DescribeLogDirsPartition)
    message.unknown_tags = ()
    (
        message.partition_index,
        message.partition_size,
        message.offset_lag,
        message.is_future_key,
        tags,
    ) = unpack_i4_i8x2_bool_u1(data, at)
    at += 22
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_describe_log_dirs_partition_v2(message: DescribeLogDirsPartition, add: Add) -> None:
    add(
        pack_i4_i8x2_bool(
            message.partition_index,
            message.partition_size,
            message.offset_lag,
            message.is_future_key,
        )
    )
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeLogDirsTopic in versions 2–5
def read_describe_log_dirs_topic_v2(data: Buffer, at: int, size: int) -> tuple[DescribeLogDirsTopic, int]:
    message = new(DescribeLogDirsTopic)
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
    if not 0 <= count * 22 <= size - at:
        raise Malformed("partitions")
    partitions: list[DescribeLogDirsPartition] = []
    for _ in range(count):
        partition, at = read_describe_log_dirs_partition_v2(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_describe_log_dirs_topic_v2(message: DescribeLogDirsTopic, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_describe_log_dirs_partition_v2(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeLogDirsResult in versions 2–3
def read_describe_log_dirs_result_v2(data: Buffer, at: int, size: int) -> tuple[DescribeLogDirsResult, int]:
    message = new(DescribeLogDirsResult)
    message.total_bytes = -1
    message.usable_bytes = -1
    message.is_cordoned = False
    message.unknown_tags = ()
    message.error_code, length = unpack_i2_u1(data, at)
    at += 3
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("log_dir")
    message.log_dir = str(data[at:end], "utf-8")
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("topics")
    topics: list[DescribeLogDirsTopic] = []
    for _ in range(count):
        topic, at = read_describe_log_dirs_topic_v2(data, at, size)
        topics.append(topic)
    message.topics = topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_describe_log_dirs_result_v2(message: DescribeLogDirsResult, add: Add) -> None:
    add(pack_i2(message.error_code))
    log_dir = message.log_dir.encode()
    add(compact_string_length[len(log_dir)])
    add(log_dir)
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_describe_log_dirs_topic_v2(topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeLogDirsResponse in version 2
def read_v2(data: Buffer, at: int, size: int) -> tuple[DescribeLogDirsResponse, int]:
    message = new(DescribeLogDirsResponse)
    message.error_code = 0
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 5 <= size - at:
        raise Malformed("results")
    results: list[DescribeLogDirsResult] = []
    for _ in range(count):
        result, at = read_describe_log_dirs_result_v2(data, at, size)
        results.append(result)
    message.results = results
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v2(message: DescribeLogDirsResponse, add: Add) -> None:
    add(pack_i4(message.throttle_time_ms))
    results = message.results
    add(compact_length[len(results)])
    for result in results:
        write_describe_log_dirs_result_v2(result, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeLogDirsResponse in version 3
def read_v3(data: Buffer, at: int, size: int) -> tuple[DescribeLogDirsResponse, int]:
    message = new(DescribeLogDirsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, count = unpack_i4_i2_u1(data, at)
    at += 7
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 5 <= size - at:
        raise Malformed("results")
    results: list[DescribeLogDirsResult] = []
    for _ in range(count):
        result, at = read_describe_log_dirs_result_v2(data, at, size)
        results.append(result)
    message.results = results
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v3(message: DescribeLogDirsResponse, add: Add) -> None:
    add(pack_i4_i2(message.throttle_time_ms, message.error_code))
    results = message.results
    add(compact_length[len(results)])
    for result in results:
        write_describe_log_dirs_result_v2(result, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeLogDirsResult in version 4
def read_describe_log_dirs_result_v4(data: Buffer, at: int, size: int) -> tuple[DescribeLogDirsResult, int]:
    message = new(DescribeLogDirsResult)
    message.is_cordoned = False
    message.unknown_tags = ()
    message.error_code, length = unpack_i2_u1(data, at)
    at += 3
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("log_dir")
    message.log_dir = str(data[at:end], "utf-8")
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("topics")
    topics: list[DescribeLogDirsTopic] = []
    for _ in range(count):
        topic, at = read_describe_log_dirs_topic_v2(data, at, size)
        topics.append(topic)
    message.topics = topics
    message.total_bytes, message.usable_bytes, tags = unpack_i8x2_u1(data, at)
    at += 17
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_describe_log_dirs_result_v4(message: DescribeLogDirsResult, add: Add) -> None:
    add(pack_i2(message.error_code))
    log_dir = message.log_dir.encode()
    add(compact_string_length[len(log_dir)])
    add(log_dir)
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_describe_log_dirs_topic_v2(topic, add)
    add(pack_i8x2(message.total_bytes, message.usable_bytes))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeLogDirsResponse in version 4
def read_v4(data: Buffer, at: int, size: int) -> tuple[DescribeLogDirsResponse, int]:
    message = new(DescribeLogDirsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, count = unpack_i4_i2_u1(data, at)
    at += 7
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 21 <= size - at:
        raise Malformed("results")
    results: list[DescribeLogDirsResult] = []
    for _ in range(count):
        result, at = read_describe_log_dirs_result_v4(data, at, size)
        results.append(result)
    message.results = results
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v4(message: DescribeLogDirsResponse, add: Add) -> None:
    add(pack_i4_i2(message.throttle_time_ms, message.error_code))
    results = message.results
    add(compact_length[len(results)])
    for result in results:
        write_describe_log_dirs_result_v4(result, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeLogDirsResult in version 5
def read_describe_log_dirs_result_v5(data: Buffer, at: int, size: int) -> tuple[DescribeLogDirsResult, int]:
    message = new(DescribeLogDirsResult)
    message.unknown_tags = ()
    message.error_code, length = unpack_i2_u1(data, at)
    at += 3
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("log_dir")
    message.log_dir = str(data[at:end], "utf-8")
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("topics")
    topics: list[DescribeLogDirsTopic] = []
    for _ in range(count):
        topic, at = read_describe_log_dirs_topic_v2(data, at, size)
        topics.append(topic)
    message.topics = topics
    message.total_bytes, message.usable_bytes, message.is_cordoned, tags = unpack_i8x2_bool_u1(data, at)
    at += 18
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_describe_log_dirs_result_v5(message: DescribeLogDirsResult, add: Add) -> None:
    add(pack_i2(message.error_code))
    log_dir = message.log_dir.encode()
    add(compact_string_length[len(log_dir)])
    add(log_dir)
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_describe_log_dirs_topic_v2(topic, add)
    add(pack_i8x2_bool(message.total_bytes, message.usable_bytes, message.is_cordoned))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeLogDirsResponse in version 5
def read_v5(data: Buffer, at: int, size: int) -> tuple[DescribeLogDirsResponse, int]:
    message = new(DescribeLogDirsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, count = unpack_i4_i2_u1(data, at)
    at += 7
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 22 <= size - at:
        raise Malformed("results")
    results: list[DescribeLogDirsResult] = []
    for _ in range(count):
        result, at = read_describe_log_dirs_result_v5(data, at, size)
        results.append(result)
    message.results = results
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v5(message: DescribeLogDirsResponse, add: Add) -> None:
    add(pack_i4_i2(message.throttle_time_ms, message.error_code))
    results = message.results
    add(compact_length[len(results)])
    for result in results:
        write_describe_log_dirs_result_v5(result, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[DescribeLogDirsResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v2, write_v2),
    3: (read_v3, write_v3),
    4: (read_v4, write_v4),
    5: (read_v5, write_v5),
}

# what JSON and error messages know of the fields
DescribeLogDirsPartition.FIELDS = (
    Field("partition_index", "partitionIndex", "int32", (0, 5)),
    Field("partition_size", "partitionSize", "int64", (0, 5)),
    Field("offset_lag", "offsetLag", "int64", (0, 5)),
    Field("is_future_key", "isFutureKey", "bool", (0, 5)),
)
DescribeLogDirsTopic.FIELDS = (
    Field("name", "name", "string", (0, 5)),
    Field("partitions", "partitions", "[]DescribeLogDirsPartition", (0, 5), struct=DescribeLogDirsPartition),
)
DescribeLogDirsResult.FIELDS = (
    Field("error_code", "errorCode", "int16", (0, 5)),
    Field("log_dir", "logDir", "string", (0, 5)),
    Field("topics", "topics", "[]DescribeLogDirsTopic", (0, 5), struct=DescribeLogDirsTopic),
    Field("total_bytes", "totalBytes", "int64", (4, 5), ignorable=True),
    Field("usable_bytes", "usableBytes", "int64", (4, 5), ignorable=True),
    Field("is_cordoned", "isCordoned", "bool", (5, 5), ignorable=True),
)
DescribeLogDirsResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (0, 5)),
    Field("error_code", "errorCode", "int16", (3, 5), ignorable=True),
    Field("results", "results", "[]DescribeLogDirsResult", (0, 5), struct=DescribeLogDirsResult),
)
