"""OffsetFetchResponse, versions 0–10: its classes, and one read and write pair per layout.

Generated from schemas/OffsetFetchResponse.json by `python -m codegen`; edits here are lost.
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
    read_string_length,
    read_tags,
    read_uvarint,
    write_tags,
)

pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
pack_i4_i8: Final = struct.Struct(">iq").pack
pack_i4_i8_i4: Final = struct.Struct(">iqi").pack
pack_i4x2: Final = struct.Struct(">ii").pack
pack_uuid: Final = struct.Struct(">16s").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i2_u1: Final = struct.Struct(">hB").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_i8_i2: Final = struct.Struct(">iqh").unpack_from
unpack_i4_i8_i4_i2: Final = struct.Struct(">iqih").unpack_from
unpack_i4_i8_i4_u1: Final = struct.Struct(">iqiB").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i4x2: Final = struct.Struct(">ii").unpack_from
unpack_uuid_u1: Final = struct.Struct(">16sB").unpack_from


@define(weakref_slot=False)
class OffsetFetchResponsePartition(Struct):
    """One committed offset per partition of this topic.

    Attributes:
        partition_index: The partition's number within its topic.
        committed_offset: The next offset the group wants to read; -1 when it has committed none, so that the
            reset policy decides.
        committed_leader_epoch: Leader epoch of the last record consumed before the commit, by which
            truncation is detected; -1 when unknown.
        metadata: The free text stored with the commit; empty when there is none, null possible.
        error_code: 0, or why this partition's offset cannot be told; 88 means ask again once its transaction
            has ended.
    """

    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0


@define(weakref_slot=False)
class OffsetFetchResponseTopic(Struct):
    """The offsets of the one group of versions 0-7.

    Attributes:
        name: The topic of these partitions.
        partitions: One committed offset per partition of this topic.
    """

    name: str = ""
    partitions: list[OffsetFetchResponsePartition] = Factory(list)


@define(weakref_slot=False)
class OffsetFetchResponsePartitions(Struct):
    """One committed offset per partition of this topic.

    Attributes:
        partition_index: The partition's number within its topic.
        committed_offset: The next offset the group wants to read; -1 when it has committed none, so that the
            reset policy decides.
        committed_leader_epoch: Leader epoch of the last record consumed before the commit, by which
            truncation is detected; -1 when unknown.
        metadata: The free text stored with the commit; empty when there is none, null possible.
        error_code: 0, or why this partition's offset cannot be told; 88 means ask again once its transaction
            has ended.
    """

    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0


@define(weakref_slot=False)
class OffsetFetchResponseTopics(Struct):
    """This group's offsets by topic; empty when all were asked for and the group has none.

    Attributes:
        name: The topic of these partitions, in versions 8 and 9.
        topic_id: The topic's id in place of its name, from version 10 on.
        partitions: One committed offset per partition of this topic.
    """

    name: str = ""
    topic_id: Uuid = ZERO_UUID
    partitions: list[OffsetFetchResponsePartitions] = Factory(list)


@define(weakref_slot=False)
class OffsetFetchResponseGroup(Struct):
    """The asked groups with their offsets, from version 8 on.

    Attributes:
        group_id: The group these offsets belong to.
        topics: This group's offsets by topic; empty when all were asked for and the group has none.
        error_code: 0, or why this group's offsets cannot be told; 14, 15 and 16 mean find the coordinator or
            try again.
    """

    group_id: str = ""
    topics: list[OffsetFetchResponseTopics] = Factory(list)
    error_code: int = 0


@define(weakref_slot=False)
class OffsetFetchResponse(Message):
    """The committed offsets of the asked groups. A partition without a commit has offset -1 and no error.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Since version 4 the answer is immediate and
            the client must stay silent that long; before, the broker had already held the answer back.
        topics: The offsets of the one group of versions 0-7.
        error_code: 0, or why the group's offsets cannot be told at all; versions 0 and 1 repeat it in every
            partition instead.
        groups: The asked groups with their offsets, from version 8 on.
    """

    NAME: ClassVar[str] = "OffsetFetchResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 9
    VERSIONS: ClassVar[tuple[int, int]] = (0, 10)
    FLEXIBLE_SINCE: ClassVar[int | None] = 6

    throttle_time_ms: int = 0
    topics: list[OffsetFetchResponseTopic] = Factory(list)
    error_code: int = 0
    groups: list[OffsetFetchResponseGroup] = Factory(list)


# OffsetFetchResponsePartition in versions 0–4
def read_offset_fetch_response_partition_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetFetchResponsePartition, int]:
    message = new(OffsetFetchResponsePartition)
    message.committed_leader_epoch = -1
    message.unknown_tags = ()
    message.partition_index, message.committed_offset, length = unpack_i4_i8_i2(data, at)
    at += 14
    if length == -1:
        message.metadata = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("metadata")
        message.metadata = str(data[at:end], "utf-8")
        at = end
    (message.error_code,) = unpack_i2(data, at)
    at += 2
    return message, at


def write_offset_fetch_response_partition_v0(message: OffsetFetchResponsePartition, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4_i8(message.partition_index, message.committed_offset))
    metadata = message.metadata
    if metadata is None:
        add(b"\xff\xff")
    else:
        metadata_bytes = metadata.encode()
        add(pack_i2(len(metadata_bytes)))
        add(metadata_bytes)
    add(pack_i2(message.error_code))


# OffsetFetchResponseTopic in versions 0–4
def read_offset_fetch_response_topic_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetFetchResponseTopic, int]:
    message = new(OffsetFetchResponseTopic)
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
    partitions: list[OffsetFetchResponsePartition] = []
    for _ in range(count):
        partition, at = read_offset_fetch_response_partition_v0(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_offset_fetch_response_topic_v0(message: OffsetFetchResponseTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_offset_fetch_response_partition_v0(partition, add)


# OffsetFetchResponse in versions 0–1
def read_v0(data: Buffer, at: int, size: int) -> tuple[OffsetFetchResponse, int]:
    message = new(OffsetFetchResponse)
    message.throttle_time_ms = 0
    message.error_code = 0
    message.groups = []
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetFetchResponseTopic] = []
    for _ in range(count):
        topic, at = read_offset_fetch_response_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v0(message: OffsetFetchResponse, add: Add) -> None:
    if message.groups != []:
        raise Unwritable("groups")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        write_offset_fetch_response_topic_v0(topic, add)


# OffsetFetchResponse in version 2
def read_v2(data: Buffer, at: int, size: int) -> tuple[OffsetFetchResponse, int]:
    message = new(OffsetFetchResponse)
    message.throttle_time_ms = 0
    message.groups = []
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetFetchResponseTopic] = []
    for _ in range(count):
        topic, at = read_offset_fetch_response_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    (message.error_code,) = unpack_i2(data, at)
    at += 2
    return message, at


def write_v2(message: OffsetFetchResponse, add: Add) -> None:
    if message.groups != []:
        raise Unwritable("groups")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        write_offset_fetch_response_topic_v0(topic, add)
    add(pack_i2(message.error_code))


# OffsetFetchResponse in versions 3–4
def read_v3(data: Buffer, at: int, size: int) -> tuple[OffsetFetchResponse, int]:
    message = new(OffsetFetchResponse)
    message.groups = []
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetFetchResponseTopic] = []
    for _ in range(count):
        topic, at = read_offset_fetch_response_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    (message.error_code,) = unpack_i2(data, at)
    at += 2
    return message, at


def write_v3(message: OffsetFetchResponse, add: Add) -> None:
    if message.groups != []:
        raise Unwritable("groups")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4x2(message.throttle_time_ms, len(topics)))
    for topic in topics:
        write_offset_fetch_response_topic_v0(topic, add)
    add(pack_i2(message.error_code))


# OffsetFetchResponsePartition in version 5
def read_offset_fetch_response_partition_v5(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetFetchResponsePartition, int]:
    message = new(OffsetFetchResponsePartition)
    message.unknown_tags = ()
    (
        message.partition_index,
        message.committed_offset,
        message.committed_leader_epoch,
        length,
    ) = unpack_i4_i8_i4_i2(data, at)
    at += 18
    if length == -1:
        message.metadata = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("metadata")
        message.metadata = str(data[at:end], "utf-8")
        at = end
    (message.error_code,) = unpack_i2(data, at)
    at += 2
    return message, at


def write_offset_fetch_response_partition_v5(message: OffsetFetchResponsePartition, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4_i8_i4(message.partition_index, message.committed_offset, message.committed_leader_epoch))
    metadata = message.metadata
    if metadata is None:
        add(b"\xff\xff")
    else:
        metadata_bytes = metadata.encode()
        add(pack_i2(len(metadata_bytes)))
        add(metadata_bytes)
    add(pack_i2(message.error_code))


# OffsetFetchResponseTopic in version 5
def read_offset_fetch_response_topic_v5(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetFetchResponseTopic, int]:
    message = new(OffsetFetchResponseTopic)
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
    if not 0 <= count * 20 <= size - at:
        raise Malformed("partitions")
    partitions: list[OffsetFetchResponsePartition] = []
    for _ in range(count):
        partition, at = read_offset_fetch_response_partition_v5(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_offset_fetch_response_topic_v5(message: OffsetFetchResponseTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_offset_fetch_response_partition_v5(partition, add)


# OffsetFetchResponse in version 5
def read_v5(data: Buffer, at: int, size: int) -> tuple[OffsetFetchResponse, int]:
    message = new(OffsetFetchResponse)
    message.groups = []
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetFetchResponseTopic] = []
    for _ in range(count):
        topic, at = read_offset_fetch_response_topic_v5(data, at, size)
        topics.append(topic)
    message.topics = topics
    (message.error_code,) = unpack_i2(data, at)
    at += 2
    return message, at


def write_v5(message: OffsetFetchResponse, add: Add) -> None:
    if message.groups != []:
        raise Unwritable("groups")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4x2(message.throttle_time_ms, len(topics)))
    for topic in topics:
        write_offset_fetch_response_topic_v5(topic, add)
    add(pack_i2(message.error_code))


# OffsetFetchResponsePartition in versions 6–7
def read_offset_fetch_response_partition_v6(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetFetchResponsePartition, int]:
    message = new(OffsetFetchResponsePartition)
    message.unknown_tags = ()
    (
        message.partition_index,
        message.committed_offset,
        message.committed_leader_epoch,
        length,
    ) = unpack_i4_i8_i4_u1(data, at)
    at += 17
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.metadata = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("metadata")
        message.metadata = str(data[at:end], "utf-8")
        at = end
    message.error_code, tags = unpack_i2_u1(data, at)
    at += 3
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_offset_fetch_response_partition_v6(message: OffsetFetchResponsePartition, add: Add) -> None:
    add(pack_i4_i8_i4(message.partition_index, message.committed_offset, message.committed_leader_epoch))
    metadata = message.metadata
    if metadata is None:
        add(b"\x00")
    else:
        metadata_bytes = metadata.encode()
        add(compact_string_length[len(metadata_bytes)])
        add(metadata_bytes)
    add(pack_i2(message.error_code))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetFetchResponseTopic in versions 6–7
def read_offset_fetch_response_topic_v6(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetFetchResponseTopic, int]:
    message = new(OffsetFetchResponseTopic)
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
    if not 0 <= count * 20 <= size - at:
        raise Malformed("partitions")
    partitions: list[OffsetFetchResponsePartition] = []
    for _ in range(count):
        partition, at = read_offset_fetch_response_partition_v6(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_offset_fetch_response_topic_v6(message: OffsetFetchResponseTopic, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_offset_fetch_response_partition_v6(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetFetchResponse in versions 6–7
def read_v6(data: Buffer, at: int, size: int) -> tuple[OffsetFetchResponse, int]:
    message = new(OffsetFetchResponse)
    message.groups = []
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetFetchResponseTopic] = []
    for _ in range(count):
        topic, at = read_offset_fetch_response_topic_v6(data, at, size)
        topics.append(topic)
    message.topics = topics
    message.error_code, tags = unpack_i2_u1(data, at)
    at += 3
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v6(message: OffsetFetchResponse, add: Add) -> None:
    if message.groups != []:
        raise Unwritable("groups")
    add(pack_i4(message.throttle_time_ms))
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_offset_fetch_response_topic_v6(topic, add)
    add(pack_i2(message.error_code))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetFetchResponsePartitions in versions 8–10
def read_offset_fetch_response_partitions_v8(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetFetchResponsePartitions, int]:
    message = new(OffsetFetchResponsePartitions)
    message.unknown_tags = ()
    (
        message.partition_index,
        message.committed_offset,
        message.committed_leader_epoch,
        length,
    ) = unpack_i4_i8_i4_u1(data, at)
    at += 17
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.metadata = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("metadata")
        message.metadata = str(data[at:end], "utf-8")
        at = end
    message.error_code, tags = unpack_i2_u1(data, at)
    at += 3
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_offset_fetch_response_partitions_v8(message: OffsetFetchResponsePartitions, add: Add) -> None:
    add(pack_i4_i8_i4(message.partition_index, message.committed_offset, message.committed_leader_epoch))
    metadata = message.metadata
    if metadata is None:
        add(b"\x00")
    else:
        metadata_bytes = metadata.encode()
        add(compact_string_length[len(metadata_bytes)])
        add(metadata_bytes)
    add(pack_i2(message.error_code))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetFetchResponseTopics in versions 8–9
def read_offset_fetch_response_topics_v8(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetFetchResponseTopics, int]:
    message = new(OffsetFetchResponseTopics)
    message.topic_id = ZERO_UUID
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
    if not 0 <= count * 20 <= size - at:
        raise Malformed("partitions")
    partitions: list[OffsetFetchResponsePartitions] = []
    for _ in range(count):
        partition, at = read_offset_fetch_response_partitions_v8(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_offset_fetch_response_topics_v8(message: OffsetFetchResponseTopics, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_offset_fetch_response_partitions_v8(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetFetchResponseGroup in versions 8–9
def read_offset_fetch_response_group_v8(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetFetchResponseGroup, int]:
    message = new(OffsetFetchResponseGroup)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetFetchResponseTopics] = []
    for _ in range(count):
        topic, at = read_offset_fetch_response_topics_v8(data, at, size)
        topics.append(topic)
    message.topics = topics
    message.error_code, tags = unpack_i2_u1(data, at)
    at += 3
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_offset_fetch_response_group_v8(message: OffsetFetchResponseGroup, add: Add) -> None:
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_offset_fetch_response_topics_v8(topic, add)
    add(pack_i2(message.error_code))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetFetchResponse in versions 8–9
def read_v8(data: Buffer, at: int, size: int) -> tuple[OffsetFetchResponse, int]:
    message = new(OffsetFetchResponse)
    message.topics = []
    message.error_code = 0
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 5 <= size - at:
        raise Malformed("groups")
    groups: list[OffsetFetchResponseGroup] = []
    for _ in range(count):
        group, at = read_offset_fetch_response_group_v8(data, at, size)
        groups.append(group)
    message.groups = groups
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v8(message: OffsetFetchResponse, add: Add) -> None:
    if message.topics != []:
        raise Unwritable("topics")
    add(pack_i4(message.throttle_time_ms))
    groups = message.groups
    add(compact_length[len(groups)])
    for group in groups:
        write_offset_fetch_response_group_v8(group, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetFetchResponseTopics in version 10
def read_offset_fetch_response_topics_v10(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetFetchResponseTopics, int]:
    message = new(OffsetFetchResponseTopics)
    message.name = ""
    message.unknown_tags = ()
    message.topic_id, count = unpack_uuid_u1(data, at)
    at += 17
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 20 <= size - at:
        raise Malformed("partitions")
    partitions: list[OffsetFetchResponsePartitions] = []
    for _ in range(count):
        partition, at = read_offset_fetch_response_partitions_v8(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_offset_fetch_response_topics_v10(message: OffsetFetchResponseTopics, add: Add) -> None:
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_offset_fetch_response_partitions_v8(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetFetchResponseGroup in version 10
def read_offset_fetch_response_group_v10(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetFetchResponseGroup, int]:
    message = new(OffsetFetchResponseGroup)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetFetchResponseTopics] = []
    for _ in range(count):
        topic, at = read_offset_fetch_response_topics_v10(data, at, size)
        topics.append(topic)
    message.topics = topics
    message.error_code, tags = unpack_i2_u1(data, at)
    at += 3
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_offset_fetch_response_group_v10(message: OffsetFetchResponseGroup, add: Add) -> None:
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_offset_fetch_response_topics_v10(topic, add)
    add(pack_i2(message.error_code))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetFetchResponse in version 10
def read_v10(data: Buffer, at: int, size: int) -> tuple[OffsetFetchResponse, int]:
    message = new(OffsetFetchResponse)
    message.topics = []
    message.error_code = 0
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 5 <= size - at:
        raise Malformed("groups")
    groups: list[OffsetFetchResponseGroup] = []
    for _ in range(count):
        group, at = read_offset_fetch_response_group_v10(data, at, size)
        groups.append(group)
    message.groups = groups
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v10(message: OffsetFetchResponse, add: Add) -> None:
    if message.topics != []:
        raise Unwritable("topics")
    add(pack_i4(message.throttle_time_ms))
    groups = message.groups
    add(compact_length[len(groups)])
    for group in groups:
        write_offset_fetch_response_group_v10(group, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[OffsetFetchResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v2, write_v2),
    3: (read_v3, write_v3),
    4: (read_v3, write_v3),
    5: (read_v5, write_v5),
    6: (read_v6, write_v6),
    7: (read_v6, write_v6),
    8: (read_v8, write_v8),
    9: (read_v8, write_v8),
    10: (read_v10, write_v10),
}

# what JSON and error messages know of the fields
OffsetFetchResponsePartition.FIELDS = (
    Field("partition_index", "partitionIndex", "int32", (0, 7)),
    Field("committed_offset", "committedOffset", "int64", (0, 7)),
    Field("committed_leader_epoch", "committedLeaderEpoch", "int32", (5, 7), ignorable=True),
    Field("metadata", "metadata", "string", (0, 7), nullable=(0, 7)),
    Field("error_code", "errorCode", "int16", (0, 7)),
)
OffsetFetchResponseTopic.FIELDS = (
    Field("name", "name", "string", (0, 7)),
    Field(
        "partitions",
        "partitions",
        "[]OffsetFetchResponsePartition",
        (0, 7),
        struct=OffsetFetchResponsePartition,
    ),
)
OffsetFetchResponsePartitions.FIELDS = (
    Field("partition_index", "partitionIndex", "int32", (8, 10)),
    Field("committed_offset", "committedOffset", "int64", (8, 10)),
    Field("committed_leader_epoch", "committedLeaderEpoch", "int32", (8, 10), ignorable=True),
    Field("metadata", "metadata", "string", (8, 10), nullable=(8, 10)),
    Field("error_code", "errorCode", "int16", (8, 10)),
)
OffsetFetchResponseTopics.FIELDS = (
    Field("name", "name", "string", (8, 9), ignorable=True),
    Field("topic_id", "topicId", "uuid", (10, 10), ignorable=True),
    Field(
        "partitions",
        "partitions",
        "[]OffsetFetchResponsePartitions",
        (8, 10),
        struct=OffsetFetchResponsePartitions,
    ),
)
OffsetFetchResponseGroup.FIELDS = (
    Field("group_id", "groupId", "string", (8, 10)),
    Field("topics", "topics", "[]OffsetFetchResponseTopics", (8, 10), struct=OffsetFetchResponseTopics),
    Field("error_code", "errorCode", "int16", (8, 10)),
)
OffsetFetchResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (3, 10), ignorable=True),
    Field("topics", "topics", "[]OffsetFetchResponseTopic", (0, 7), struct=OffsetFetchResponseTopic),
    Field("error_code", "errorCode", "int16", (2, 7), ignorable=True),
    Field("groups", "groups", "[]OffsetFetchResponseGroup", (8, 10), struct=OffsetFetchResponseGroup),
)
