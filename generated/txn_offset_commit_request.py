"""TxnOffsetCommitRequest, versions 0–6: its classes, and one read and write pair per layout.

Generated from schemas/TxnOffsetCommitRequest.json by `python -m codegen`; edits here are lost.
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
pack_i8_i2_i4: Final = struct.Struct(">qhi").pack
pack_uuid: Final = struct.Struct(">16s").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_i8_i2: Final = struct.Struct(">iqh").unpack_from
unpack_i4_i8_i4_i2: Final = struct.Struct(">iqih").unpack_from
unpack_i4_i8_i4_u1: Final = struct.Struct(">iqiB").unpack_from
unpack_i8_i2_i4: Final = struct.Struct(">qhi").unpack_from
unpack_i8_i2_i4_u1: Final = struct.Struct(">qhiB").unpack_from
unpack_uuid_u1: Final = struct.Struct(">16sB").unpack_from


@define(weakref_slot=False)
class TxnOffsetCommitRequestPartition(Struct):
    """The partitions of this topic that are committed.

    Attributes:
        partition_index: The partition's number within its topic.
        committed_offset: The next offset to read: that of the last processed record plus one.
        committed_leader_epoch: Leader epoch of the last processed record; -1 when unknown.
        committed_metadata: Free text kept with the offset; null or empty when there is none.
    """

    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = ""


@define(weakref_slot=False)
class TxnOffsetCommitRequestTopic(Struct):
    """What to commit within the transaction, by topic.

    Attributes:
        name: The topic of the committed partitions, by name until version 5.
        topic_id: The topic of the committed partitions, by id since version 6.
        partitions: The partitions of this topic that are committed.
    """

    name: str = ""
    topic_id: Uuid = ZERO_UUID
    partitions: list[TxnOffsetCommitRequestPartition] = Factory(list)


@define(weakref_slot=False)
class TxnOffsetCommitRequest(Message):
    """Commits offsets of a group as part of a transaction; they count once the transaction commits.

    Attributes:
        transactional_id: The transactional id of the producer.
        group_id: The group whose offsets are committed.
        producer_id: The producer's id from InitProducerId.
        producer_epoch: The producer's epoch; an older one is fenced off as a zombie.
        generation_id_or_member_epoch: The generation or member epoch of the consumer whose positions these
            are; -1 when it is not told.
        member_id: The member whose positions these are; empty when it is not told.
        group_instance_id: The static name of that member; null if it is dynamic.
        topics: What to commit within the transaction, by topic.
    """

    NAME: ClassVar[str] = "TxnOffsetCommitRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 28
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_SINCE: ClassVar[int | None] = 3

    transactional_id: str = ""
    group_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    topics: list[TxnOffsetCommitRequestTopic] = Factory(list)


# TxnOffsetCommitRequestPartition in versions 0–1
def read_txn_offset_commit_request_partition_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[TxnOffsetCommitRequestPartition, int]:
    message = new(TxnOffsetCommitRequestPartition)
    message.committed_leader_epoch = -1
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


def write_txn_offset_commit_request_partition_v0(message: TxnOffsetCommitRequestPartition, add: Add) -> None:
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


# TxnOffsetCommitRequestTopic in versions 0–1
def read_txn_offset_commit_request_topic_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[TxnOffsetCommitRequestTopic, int]:
    message = new(TxnOffsetCommitRequestTopic)
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
    partitions: list[TxnOffsetCommitRequestPartition] = []
    for _ in range(count):
        partition, at = read_txn_offset_commit_request_partition_v0(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_txn_offset_commit_request_topic_v0(message: TxnOffsetCommitRequestTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_txn_offset_commit_request_partition_v0(partition, add)


# TxnOffsetCommitRequest in versions 0–1
def read_v0(data: Buffer, at: int, size: int) -> tuple[TxnOffsetCommitRequest, int]:
    message = new(TxnOffsetCommitRequest)
    message.generation_id_or_member_epoch = -1
    message.member_id = ""
    message.group_instance_id = None
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("transactional_id")
    message.transactional_id = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    message.producer_id, message.producer_epoch, count = unpack_i8_i2_i4(data, at)
    at += 14
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[TxnOffsetCommitRequestTopic] = []
    for _ in range(count):
        topic, at = read_txn_offset_commit_request_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v0(message: TxnOffsetCommitRequest, add: Add) -> None:
    if message.generation_id_or_member_epoch != -1:
        raise Unwritable("generation_id_or_member_epoch")
    if message.member_id != "":
        raise Unwritable("member_id")
    if message.group_instance_id is not None:
        raise Unwritable("group_instance_id")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    transactional_id = message.transactional_id.encode()
    add(pack_i2(len(transactional_id)))
    add(transactional_id)
    group_id = message.group_id.encode()
    add(pack_i2(len(group_id)))
    add(group_id)
    topics = message.topics
    add(pack_i8_i2_i4(message.producer_id, message.producer_epoch, len(topics)))
    for topic in topics:
        write_txn_offset_commit_request_topic_v0(topic, add)


# TxnOffsetCommitRequestPartition in version 2
def read_txn_offset_commit_request_partition_v2(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[TxnOffsetCommitRequestPartition, int]:
    message = new(TxnOffsetCommitRequestPartition)
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


def write_txn_offset_commit_request_partition_v2(message: TxnOffsetCommitRequestPartition, add: Add) -> None:
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


# TxnOffsetCommitRequestTopic in version 2
def read_txn_offset_commit_request_topic_v2(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[TxnOffsetCommitRequestTopic, int]:
    message = new(TxnOffsetCommitRequestTopic)
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
    partitions: list[TxnOffsetCommitRequestPartition] = []
    for _ in range(count):
        partition, at = read_txn_offset_commit_request_partition_v2(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_txn_offset_commit_request_topic_v2(message: TxnOffsetCommitRequestTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_txn_offset_commit_request_partition_v2(partition, add)


# TxnOffsetCommitRequest in version 2
def read_v2(data: Buffer, at: int, size: int) -> tuple[TxnOffsetCommitRequest, int]:
    message = new(TxnOffsetCommitRequest)
    message.generation_id_or_member_epoch = -1
    message.member_id = ""
    message.group_instance_id = None
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("transactional_id")
    message.transactional_id = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    message.producer_id, message.producer_epoch, count = unpack_i8_i2_i4(data, at)
    at += 14
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[TxnOffsetCommitRequestTopic] = []
    for _ in range(count):
        topic, at = read_txn_offset_commit_request_topic_v2(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v2(message: TxnOffsetCommitRequest, add: Add) -> None:
    if message.generation_id_or_member_epoch != -1:
        raise Unwritable("generation_id_or_member_epoch")
    if message.member_id != "":
        raise Unwritable("member_id")
    if message.group_instance_id is not None:
        raise Unwritable("group_instance_id")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    transactional_id = message.transactional_id.encode()
    add(pack_i2(len(transactional_id)))
    add(transactional_id)
    group_id = message.group_id.encode()
    add(pack_i2(len(group_id)))
    add(group_id)
    topics = message.topics
    add(pack_i8_i2_i4(message.producer_id, message.producer_epoch, len(topics)))
    for topic in topics:
        write_txn_offset_commit_request_topic_v2(topic, add)


# TxnOffsetCommitRequestPartition in versions 3–6
def read_txn_offset_commit_request_partition_v3(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[TxnOffsetCommitRequestPartition, int]:
    message = new(TxnOffsetCommitRequestPartition)
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


def write_txn_offset_commit_request_partition_v3(message: TxnOffsetCommitRequestPartition, add: Add) -> None:
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


# TxnOffsetCommitRequestTopic in versions 3–5
def read_txn_offset_commit_request_topic_v3(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[TxnOffsetCommitRequestTopic, int]:
    message = new(TxnOffsetCommitRequestTopic)
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
    partitions: list[TxnOffsetCommitRequestPartition] = []
    for _ in range(count):
        partition, at = read_txn_offset_commit_request_partition_v3(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_txn_offset_commit_request_topic_v3(message: TxnOffsetCommitRequestTopic, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_txn_offset_commit_request_partition_v3(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# TxnOffsetCommitRequest in versions 3–5
def read_v3(data: Buffer, at: int, size: int) -> tuple[TxnOffsetCommitRequest, int]:
    message = new(TxnOffsetCommitRequest)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("transactional_id")
    message.transactional_id = str(data[at:end], "utf-8")
    at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    (
        message.producer_id,
        message.producer_epoch,
        message.generation_id_or_member_epoch,
        length,
    ) = unpack_i8_i2_i4_u1(data, at)
    at += 15
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
    topics: list[TxnOffsetCommitRequestTopic] = []
    for _ in range(count):
        topic, at = read_txn_offset_commit_request_topic_v3(data, at, size)
        topics.append(topic)
    message.topics = topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v3(message: TxnOffsetCommitRequest, add: Add) -> None:
    transactional_id = message.transactional_id.encode()
    add(compact_string_length[len(transactional_id)])
    add(transactional_id)
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    add(pack_i8_i2_i4(message.producer_id, message.producer_epoch, message.generation_id_or_member_epoch))
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
        write_txn_offset_commit_request_topic_v3(topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# TxnOffsetCommitRequestTopic in version 6
def read_txn_offset_commit_request_topic_v6(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[TxnOffsetCommitRequestTopic, int]:
    message = new(TxnOffsetCommitRequestTopic)
    message.name = ""
    message.unknown_tags = ()
    message.topic_id, count = unpack_uuid_u1(data, at)
    at += 17
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("partitions")
    partitions: list[TxnOffsetCommitRequestPartition] = []
    for _ in range(count):
        partition, at = read_txn_offset_commit_request_partition_v3(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_txn_offset_commit_request_topic_v6(message: TxnOffsetCommitRequestTopic, add: Add) -> None:
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_txn_offset_commit_request_partition_v3(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# TxnOffsetCommitRequest in version 6
def read_v6(data: Buffer, at: int, size: int) -> tuple[TxnOffsetCommitRequest, int]:
    message = new(TxnOffsetCommitRequest)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("transactional_id")
    message.transactional_id = str(data[at:end], "utf-8")
    at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    (
        message.producer_id,
        message.producer_epoch,
        message.generation_id_or_member_epoch,
        length,
    ) = unpack_i8_i2_i4_u1(data, at)
    at += 15
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
    topics: list[TxnOffsetCommitRequestTopic] = []
    for _ in range(count):
        topic, at = read_txn_offset_commit_request_topic_v6(data, at, size)
        topics.append(topic)
    message.topics = topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v6(message: TxnOffsetCommitRequest, add: Add) -> None:
    transactional_id = message.transactional_id.encode()
    add(compact_string_length[len(transactional_id)])
    add(transactional_id)
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    add(pack_i8_i2_i4(message.producer_id, message.producer_epoch, message.generation_id_or_member_epoch))
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
        write_txn_offset_commit_request_topic_v6(topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[TxnOffsetCommitRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v2, write_v2),
    3: (read_v3, write_v3),
    4: (read_v3, write_v3),
    5: (read_v3, write_v3),
    6: (read_v6, write_v6),
}

# what JSON and error messages know of the fields
TxnOffsetCommitRequestPartition.FIELDS = (
    Field("partition_index", "partitionIndex", "int32", (0, 6)),
    Field("committed_offset", "committedOffset", "int64", (0, 6)),
    Field("committed_leader_epoch", "committedLeaderEpoch", "int32", (2, 6), ignorable=True),
    Field("committed_metadata", "committedMetadata", "string", (0, 6), nullable=(0, 6)),
)
TxnOffsetCommitRequestTopic.FIELDS = (
    Field("name", "name", "string", (0, 5), ignorable=True),
    Field("topic_id", "topicId", "uuid", (6, 6), ignorable=True),
    Field(
        "partitions",
        "partitions",
        "[]TxnOffsetCommitRequestPartition",
        (0, 6),
        struct=TxnOffsetCommitRequestPartition,
    ),
)
TxnOffsetCommitRequest.FIELDS = (
    Field("transactional_id", "transactionalId", "string", (0, 6)),
    Field("group_id", "groupId", "string", (0, 6)),
    Field("producer_id", "producerId", "int64", (0, 6)),
    Field("producer_epoch", "producerEpoch", "int16", (0, 6)),
    Field("generation_id_or_member_epoch", "generationIdOrMemberEpoch", "int32", (3, 6)),
    Field("member_id", "memberId", "string", (3, 6)),
    Field("group_instance_id", "groupInstanceId", "string", (3, 6), nullable=(3, 6)),
    Field("topics", "topics", "[]TxnOffsetCommitRequestTopic", (0, 6), struct=TxnOffsetCommitRequestTopic),
)
