"""OffsetCommitRequest, versions 0–10: its classes, and one read and write pair per layout.

Generated from schemas/OffsetCommitRequest.json by `python -m codegen`; edits here are lost.
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
pack_i4_i2: Final = struct.Struct(">ih").pack
pack_i4_i8: Final = struct.Struct(">iq").pack
pack_i4_i8_i4: Final = struct.Struct(">iqi").pack
pack_i4_i8x2: Final = struct.Struct(">iqq").pack
pack_i8_i4: Final = struct.Struct(">qi").pack
pack_uuid: Final = struct.Struct(">16s").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_i2: Final = struct.Struct(">ih").unpack_from
unpack_i4_i8_i2: Final = struct.Struct(">iqh").unpack_from
unpack_i4_i8_i4_i2: Final = struct.Struct(">iqih").unpack_from
unpack_i4_i8_i4_u1: Final = struct.Struct(">iqiB").unpack_from
unpack_i4_i8x2_i2: Final = struct.Struct(">iqqh").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i8_i4: Final = struct.Struct(">qi").unpack_from
unpack_uuid_u1: Final = struct.Struct(">16sB").unpack_from


@define(weakref_slot=False)
class OffsetCommitRequestPartition(Struct):
    """The partitions of this topic that are committed.

    Attributes:
        partition_index: The partition's number within its topic.
        committed_offset: The next offset to read: that of the last processed record plus one.
        committed_leader_epoch: Leader epoch of the last processed record, not of the current leader; -1 when
            unknown, and then truncation goes unnoticed.
        commit_timestamp: When the commit was made, in milliseconds since 1970; -1 lets the broker use its own
            clock. Version 1 only.
        committed_metadata: Free text kept with the offset, at most 4096 bytes by default at the broker; empty
            when there is none.
    """

    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    commit_timestamp: int = -1
    committed_metadata: str | None = ""


@define(weakref_slot=False)
class OffsetCommitRequestTopic(Struct):
    """What to commit, by topic; other partitions of the group keep their offsets.

    Attributes:
        name: The topic of the committed partitions, up to version 9.
        topic_id: The topic's id in place of its name, from version 10 on.
        partitions: The partitions of this topic that are committed.
    """

    name: str = ""
    topic_id: Uuid = ZERO_UUID
    partitions: list[OffsetCommitRequestPartition] = Factory(list)


@define(weakref_slot=False)
class OffsetCommitRequest(Message):
    """Stores the positions of a group with its coordinator, from where a later OffsetFetch reads them back.

    Attributes:
        group_id: The group whose offsets are stored.
        generation_id_or_member_epoch: The committing member's generation (classic) or epoch (consumer
            protocol, version 9 on); -1 for a consumer with manual assignment.
        member_id: The committing member; empty for a consumer with manual assignment, which is accepted only
            while the group has no members.
        group_instance_id: The committing member's static name, so that a fenced duplicate cannot commit; null
            if it is dynamic.
        retention_time_ms: Milliseconds to keep the offsets; -1 for the broker's own retention. Gone since
            version 5, where expiry starts when the group becomes empty.
        topics: What to commit, by topic; other partitions of the group keep their offsets.
    """

    NAME: ClassVar[str] = "OffsetCommitRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 8
    VERSIONS: ClassVar[tuple[int, int]] = (0, 10)
    FLEXIBLE_SINCE: ClassVar[int | None] = 8

    group_id: str = ""
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    retention_time_ms: int = -1
    topics: list[OffsetCommitRequestTopic] = Factory(list)


# OffsetCommitRequestPartition in versions 0, 2–5
def read_offset_commit_request_partition_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetCommitRequestPartition, int]:
    message = new(OffsetCommitRequestPartition)
    message.committed_leader_epoch = -1
    message.commit_timestamp = -1
    message.unknown_tags = ()
    message.partition_index, message.committed_offset, length = unpack_i4_i8_i2(data, at)
    at += 14
    if length == -1:
        message.committed_metadata = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("committed_metadata")
        message.committed_metadata = str(data[at:end], "utf-8")
        at = end
    return message, at


def write_offset_commit_request_partition_v0(message: OffsetCommitRequestPartition, add: Add) -> None:
    if message.commit_timestamp != -1:
        raise Unwritable("commit_timestamp")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4_i8(message.partition_index, message.committed_offset))
    committed_metadata = message.committed_metadata
    if committed_metadata is None:
        add(b"\xff\xff")
    else:
        committed_metadata_bytes = committed_metadata.encode()
        add(pack_i2(len(committed_metadata_bytes)))
        add(committed_metadata_bytes)


# OffsetCommitRequestTopic in versions 0, 2–5
def read_offset_commit_request_topic_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetCommitRequestTopic, int]:
    message = new(OffsetCommitRequestTopic)
    message.topic_id = ZERO_UUID
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
    partitions: list[OffsetCommitRequestPartition] = []
    for _ in range(count):
        partition, at = read_offset_commit_request_partition_v0(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_offset_commit_request_topic_v0(message: OffsetCommitRequestTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_offset_commit_request_partition_v0(partition, add)


# OffsetCommitRequest in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[OffsetCommitRequest, int]:
    message = new(OffsetCommitRequest)
    message.generation_id_or_member_epoch = -1
    message.member_id = ""
    message.group_instance_id = None
    message.retention_time_ms = -1
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetCommitRequestTopic] = []
    for _ in range(count):
        topic, at = read_offset_commit_request_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v0(message: OffsetCommitRequest, add: Add) -> None:
    if message.group_instance_id is not None:
        raise Unwritable("group_instance_id")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    group_id = message.group_id.encode()
    add(pack_i2(len(group_id)))
    add(group_id)
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        write_offset_commit_request_topic_v0(topic, add)


# OffsetCommitRequestPartition in version 1
def read_offset_commit_request_partition_v1(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetCommitRequestPartition, int]:
    message = new(OffsetCommitRequestPartition)
    message.committed_leader_epoch = -1
    message.unknown_tags = ()
    (
        message.partition_index,
        message.committed_offset,
        message.commit_timestamp,
        length,
    ) = unpack_i4_i8x2_i2(data, at)
    at += 22
    if length == -1:
        message.committed_metadata = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("committed_metadata")
        message.committed_metadata = str(data[at:end], "utf-8")
        at = end
    return message, at


def write_offset_commit_request_partition_v1(message: OffsetCommitRequestPartition, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4_i8x2(message.partition_index, message.committed_offset, message.commit_timestamp))
    committed_metadata = message.committed_metadata
    if committed_metadata is None:
        add(b"\xff\xff")
    else:
        committed_metadata_bytes = committed_metadata.encode()
        add(pack_i2(len(committed_metadata_bytes)))
        add(committed_metadata_bytes)


# OffsetCommitRequestTopic in version 1
def read_offset_commit_request_topic_v1(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetCommitRequestTopic, int]:
    message = new(OffsetCommitRequestTopic)
    message.topic_id = ZERO_UUID
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
    partitions: list[OffsetCommitRequestPartition] = []
    for _ in range(count):
        partition, at = read_offset_commit_request_partition_v1(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_offset_commit_request_topic_v1(message: OffsetCommitRequestTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_offset_commit_request_partition_v1(partition, add)


# OffsetCommitRequest in version 1
def read_v1(data: Buffer, at: int, size: int) -> tuple[OffsetCommitRequest, int]:
    message = new(OffsetCommitRequest)
    message.group_instance_id = None
    message.retention_time_ms = -1
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    message.generation_id_or_member_epoch, length = unpack_i4_i2(data, at)
    at += 6
    end = at + length
    if not at <= end <= size:
        raise Malformed("member_id")
    message.member_id = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetCommitRequestTopic] = []
    for _ in range(count):
        topic, at = read_offset_commit_request_topic_v1(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v1(message: OffsetCommitRequest, add: Add) -> None:
    if message.group_instance_id is not None:
        raise Unwritable("group_instance_id")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    group_id = message.group_id.encode()
    add(pack_i2(len(group_id)))
    add(group_id)
    member_id = message.member_id.encode()
    add(pack_i4_i2(message.generation_id_or_member_epoch, len(member_id)))
    add(member_id)
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        write_offset_commit_request_topic_v1(topic, add)


# OffsetCommitRequest in versions 2–4
def read_v2(data: Buffer, at: int, size: int) -> tuple[OffsetCommitRequest, int]:
    message = new(OffsetCommitRequest)
    message.group_instance_id = None
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    message.generation_id_or_member_epoch, length = unpack_i4_i2(data, at)
    at += 6
    end = at + length
    if not at <= end <= size:
        raise Malformed("member_id")
    message.member_id = str(data[at:end], "utf-8")
    at = end
    message.retention_time_ms, count = unpack_i8_i4(data, at)
    at += 12
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetCommitRequestTopic] = []
    for _ in range(count):
        topic, at = read_offset_commit_request_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v2(message: OffsetCommitRequest, add: Add) -> None:
    if message.group_instance_id is not None:
        raise Unwritable("group_instance_id")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    group_id = message.group_id.encode()
    add(pack_i2(len(group_id)))
    add(group_id)
    member_id = message.member_id.encode()
    add(pack_i4_i2(message.generation_id_or_member_epoch, len(member_id)))
    add(member_id)
    topics = message.topics
    add(pack_i8_i4(message.retention_time_ms, len(topics)))
    for topic in topics:
        write_offset_commit_request_topic_v0(topic, add)


# OffsetCommitRequest in version 5
def read_v5(data: Buffer, at: int, size: int) -> tuple[OffsetCommitRequest, int]:
    message = new(OffsetCommitRequest)
    message.group_instance_id = None
    message.retention_time_ms = -1
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    message.generation_id_or_member_epoch, length = unpack_i4_i2(data, at)
    at += 6
    end = at + length
    if not at <= end <= size:
        raise Malformed("member_id")
    message.member_id = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetCommitRequestTopic] = []
    for _ in range(count):
        topic, at = read_offset_commit_request_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v5(message: OffsetCommitRequest, add: Add) -> None:
    if message.group_instance_id is not None:
        raise Unwritable("group_instance_id")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    group_id = message.group_id.encode()
    add(pack_i2(len(group_id)))
    add(group_id)
    member_id = message.member_id.encode()
    add(pack_i4_i2(message.generation_id_or_member_epoch, len(member_id)))
    add(member_id)
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        write_offset_commit_request_topic_v0(topic, add)


# OffsetCommitRequestPartition in versions 6–7
def read_offset_commit_request_partition_v6(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetCommitRequestPartition, int]:
    message = new(OffsetCommitRequestPartition)
    message.commit_timestamp = -1
    message.unknown_tags = ()
    (
        message.partition_index,
        message.committed_offset,
        message.committed_leader_epoch,
        length,
    ) = unpack_i4_i8_i4_i2(data, at)
    at += 18
    if length == -1:
        message.committed_metadata = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("committed_metadata")
        message.committed_metadata = str(data[at:end], "utf-8")
        at = end
    return message, at


def write_offset_commit_request_partition_v6(message: OffsetCommitRequestPartition, add: Add) -> None:
    if message.commit_timestamp != -1:
        raise Unwritable("commit_timestamp")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4_i8_i4(message.partition_index, message.committed_offset, message.committed_leader_epoch))
    committed_metadata = message.committed_metadata
    if committed_metadata is None:
        add(b"\xff\xff")
    else:
        committed_metadata_bytes = committed_metadata.encode()
        add(pack_i2(len(committed_metadata_bytes)))
        add(committed_metadata_bytes)


# OffsetCommitRequestTopic in versions 6–7
def read_offset_commit_request_topic_v6(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetCommitRequestTopic, int]:
    message = new(OffsetCommitRequestTopic)
    message.topic_id = ZERO_UUID
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
    if not 0 <= count * 18 <= size - at:
        raise Malformed("partitions")
    partitions: list[OffsetCommitRequestPartition] = []
    for _ in range(count):
        partition, at = read_offset_commit_request_partition_v6(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_offset_commit_request_topic_v6(message: OffsetCommitRequestTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_offset_commit_request_partition_v6(partition, add)


# OffsetCommitRequest in version 6
def read_v6(data: Buffer, at: int, size: int) -> tuple[OffsetCommitRequest, int]:
    message = new(OffsetCommitRequest)
    message.group_instance_id = None
    message.retention_time_ms = -1
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    message.generation_id_or_member_epoch, length = unpack_i4_i2(data, at)
    at += 6
    end = at + length
    if not at <= end <= size:
        raise Malformed("member_id")
    message.member_id = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetCommitRequestTopic] = []
    for _ in range(count):
        topic, at = read_offset_commit_request_topic_v6(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v6(message: OffsetCommitRequest, add: Add) -> None:
    if message.group_instance_id is not None:
        raise Unwritable("group_instance_id")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    group_id = message.group_id.encode()
    add(pack_i2(len(group_id)))
    add(group_id)
    member_id = message.member_id.encode()
    add(pack_i4_i2(message.generation_id_or_member_epoch, len(member_id)))
    add(member_id)
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        write_offset_commit_request_topic_v6(topic, add)


# OffsetCommitRequest in version 7
def read_v7(data: Buffer, at: int, size: int) -> tuple[OffsetCommitRequest, int]:
    message = new(OffsetCommitRequest)
    message.retention_time_ms = -1
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    message.generation_id_or_member_epoch, length = unpack_i4_i2(data, at)
    at += 6
    end = at + length
    if not at <= end <= size:
        raise Malformed("member_id")
    message.member_id = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    if length == -1:
        message.group_instance_id = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("group_instance_id")
        message.group_instance_id = str(data[at:end], "utf-8")
        at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetCommitRequestTopic] = []
    for _ in range(count):
        topic, at = read_offset_commit_request_topic_v6(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v7(message: OffsetCommitRequest, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    group_id = message.group_id.encode()
    add(pack_i2(len(group_id)))
    add(group_id)
    member_id = message.member_id.encode()
    add(pack_i4_i2(message.generation_id_or_member_epoch, len(member_id)))
    add(member_id)
    group_instance_id = message.group_instance_id
    if group_instance_id is None:
        add(b"\xff\xff")
    else:
        group_instance_id_bytes = group_instance_id.encode()
        add(pack_i2(len(group_instance_id_bytes)))
        add(group_instance_id_bytes)
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        write_offset_commit_request_topic_v6(topic, add)


# OffsetCommitRequestPartition in versions 8–10
def read_offset_commit_request_partition_v8(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetCommitRequestPartition, int]:
    message = new(OffsetCommitRequestPartition)
    message.commit_timestamp = -1
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
        message.committed_metadata = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("committed_metadata")
        message.committed_metadata = str(data[at:end], "utf-8")
        at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_offset_commit_request_partition_v8(message: OffsetCommitRequestPartition, add: Add) -> None:
    if message.commit_timestamp != -1:
        raise Unwritable("commit_timestamp")
    add(pack_i4_i8_i4(message.partition_index, message.committed_offset, message.committed_leader_epoch))
    committed_metadata = message.committed_metadata
    if committed_metadata is None:
        add(b"\x00")
    else:
        committed_metadata_bytes = committed_metadata.encode()
        add(compact_string_length[len(committed_metadata_bytes)])
        add(committed_metadata_bytes)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetCommitRequestTopic in versions 8–9
def read_offset_commit_request_topic_v8(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetCommitRequestTopic, int]:
    message = new(OffsetCommitRequestTopic)
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
    if not 0 <= count * 18 <= size - at:
        raise Malformed("partitions")
    partitions: list[OffsetCommitRequestPartition] = []
    for _ in range(count):
        partition, at = read_offset_commit_request_partition_v8(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_offset_commit_request_topic_v8(message: OffsetCommitRequestTopic, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_offset_commit_request_partition_v8(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetCommitRequest in versions 8–9
def read_v8(data: Buffer, at: int, size: int) -> tuple[OffsetCommitRequest, int]:
    message = new(OffsetCommitRequest)
    message.retention_time_ms = -1
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
    message.generation_id_or_member_epoch, length = unpack_i4_u1(data, at)
    at += 5
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("member_id")
    message.member_id = str(data[at:end], "utf-8")
    at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.group_instance_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("group_instance_id")
        message.group_instance_id = str(data[at:end], "utf-8")
        at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetCommitRequestTopic] = []
    for _ in range(count):
        topic, at = read_offset_commit_request_topic_v8(data, at, size)
        topics.append(topic)
    message.topics = topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v8(message: OffsetCommitRequest, add: Add) -> None:
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    add(pack_i4(message.generation_id_or_member_epoch))
    member_id = message.member_id.encode()
    add(compact_string_length[len(member_id)])
    add(member_id)
    group_instance_id = message.group_instance_id
    if group_instance_id is None:
        add(b"\x00")
    else:
        group_instance_id_bytes = group_instance_id.encode()
        add(compact_string_length[len(group_instance_id_bytes)])
        add(group_instance_id_bytes)
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_offset_commit_request_topic_v8(topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetCommitRequestTopic in version 10
def read_offset_commit_request_topic_v10(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetCommitRequestTopic, int]:
    message = new(OffsetCommitRequestTopic)
    message.name = ""
    message.unknown_tags = ()
    message.topic_id, count = unpack_uuid_u1(data, at)
    at += 17
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("partitions")
    partitions: list[OffsetCommitRequestPartition] = []
    for _ in range(count):
        partition, at = read_offset_commit_request_partition_v8(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_offset_commit_request_topic_v10(message: OffsetCommitRequestTopic, add: Add) -> None:
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_offset_commit_request_partition_v8(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetCommitRequest in version 10
def read_v10(data: Buffer, at: int, size: int) -> tuple[OffsetCommitRequest, int]:
    message = new(OffsetCommitRequest)
    message.retention_time_ms = -1
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
    message.generation_id_or_member_epoch, length = unpack_i4_u1(data, at)
    at += 5
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("member_id")
    message.member_id = str(data[at:end], "utf-8")
    at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.group_instance_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("group_instance_id")
        message.group_instance_id = str(data[at:end], "utf-8")
        at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetCommitRequestTopic] = []
    for _ in range(count):
        topic, at = read_offset_commit_request_topic_v10(data, at, size)
        topics.append(topic)
    message.topics = topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v10(message: OffsetCommitRequest, add: Add) -> None:
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    add(pack_i4(message.generation_id_or_member_epoch))
    member_id = message.member_id.encode()
    add(compact_string_length[len(member_id)])
    add(member_id)
    group_instance_id = message.group_instance_id
    if group_instance_id is None:
        add(b"\x00")
    else:
        group_instance_id_bytes = group_instance_id.encode()
        add(compact_string_length[len(group_instance_id_bytes)])
        add(group_instance_id_bytes)
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_offset_commit_request_topic_v10(topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[OffsetCommitRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v2, write_v2),
    3: (read_v2, write_v2),
    4: (read_v2, write_v2),
    5: (read_v5, write_v5),
    6: (read_v6, write_v6),
    7: (read_v7, write_v7),
    8: (read_v8, write_v8),
    9: (read_v8, write_v8),
    10: (read_v10, write_v10),
}

# what JSON and error messages know of the fields
OffsetCommitRequestPartition.FIELDS = (
    Field("partition_index", "partitionIndex", "int32", (0, 10)),
    Field("committed_offset", "committedOffset", "int64", (0, 10)),
    Field("committed_leader_epoch", "committedLeaderEpoch", "int32", (6, 10), ignorable=True),
    Field("commit_timestamp", "commitTimestamp", "int64", (1, 1)),
    Field("committed_metadata", "committedMetadata", "string", (0, 10), nullable=(0, 10)),
)
OffsetCommitRequestTopic.FIELDS = (
    Field("name", "name", "string", (0, 9), ignorable=True),
    Field("topic_id", "topicId", "uuid", (10, 10), ignorable=True),
    Field(
        "partitions",
        "partitions",
        "[]OffsetCommitRequestPartition",
        (0, 10),
        struct=OffsetCommitRequestPartition,
    ),
)
OffsetCommitRequest.FIELDS = (
    Field("group_id", "groupId", "string", (0, 10)),
    Field("generation_id_or_member_epoch", "generationIdOrMemberEpoch", "int32", (1, 10), ignorable=True),
    Field("member_id", "memberId", "string", (1, 10), ignorable=True),
    Field("group_instance_id", "groupInstanceId", "string", (7, 10), nullable=(7, 10)),
    Field("retention_time_ms", "retentionTimeMs", "int64", (2, 4), ignorable=True),
    Field("topics", "topics", "[]OffsetCommitRequestTopic", (0, 10), struct=OffsetCommitRequestTopic),
)
