"""ShareAcknowledgeRequest, versions 0–2: its classes, and one read and write pair per layout.

Generated from schemas/ShareAcknowledgeRequest.json by `python -m codegen`; edits here are lost.
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
    int8_array,
    left_over,
    new,
    read_string_length,
    read_tags,
    read_uvarint,
    write_tags,
)

pack_i4: Final = struct.Struct(">i").pack
pack_i4_bool: Final = struct.Struct(">i?").pack
pack_i8x2: Final = struct.Struct(">qq").pack
pack_uuid: Final = struct.Struct(">16s").pack
unpack_i4_bool_u1: Final = struct.Struct(">i?B").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i8x2_u1: Final = struct.Struct(">qqB").unpack_from
unpack_uuid_u1: Final = struct.Struct(">16sB").unpack_from


@define(weakref_slot=False)
class AcknowledgementBatch(Struct):
    """What became of records delivered earlier, in ascending ranges of offsets; empty for no news.

    Attributes:
        first_offset: The first offset of the range.
        last_offset: The last offset of the range, itself included.
        acknowledge_types: One type for the whole range or one per offset: 0 gap, 1 accept, 2 release, 3
            reject, 4 renew (version 2).
    """

    first_offset: int = 0
    last_offset: int = 0
    acknowledge_types: list[int] = Factory(list)


@define(weakref_slot=False)
class AcknowledgePartition(Struct):
    """The acknowledgements by partition of this topic.

    Attributes:
        partition_index: The partition's number within its topic.
        acknowledgement_batches: What became of records delivered earlier, in ascending ranges of offsets;
            empty for no news.
    """

    partition_index: int = 0
    acknowledgement_batches: list[AcknowledgementBatch] = Factory(list)


@define(weakref_slot=False)
class AcknowledgeTopic(Struct):
    """The acknowledgements by topic.

    Attributes:
        topic_id: The id of the topic of these partitions.
        partitions: The acknowledgements by partition of this topic.
    """

    topic_id: Uuid = ZERO_UUID
    partitions: list[AcknowledgePartition] = Factory(list)


@define(weakref_slot=False)
class ShareAcknowledgeRequest(Message):
    """Acknowledges records of a share group without fetching more.

    Attributes:
        group_id: The share group the records are read for.
        member_id: The member that asks, under the id of its heartbeats.
        share_session_epoch: The epoch of the share session with this broker; -1 closes it.
        is_renew_ack: True when some acknowledgement renews a lock.
        topics: The acknowledgements by topic.
    """

    NAME: ClassVar[str] = "ShareAcknowledgeRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 79
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    is_renew_ack: bool = False
    topics: list[AcknowledgeTopic] = Factory(list)


# AcknowledgementBatch in versions 0–2
def read_acknowledgement_batch_v0(data: Buffer, at: int, size: int) -> tuple[AcknowledgementBatch, int]:
    message = new(AcknowledgementBatch)
    message.unknown_tags = ()
    message.first_offset, message.last_offset, count = unpack_i8x2_u1(data, at)
    at += 17
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count <= size - at:
        raise Malformed("acknowledge_types")
    message.acknowledge_types = list(int8_array[count].unpack_from(data, at))
    at += count
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_acknowledgement_batch_v0(message: AcknowledgementBatch, add: Add) -> None:
    add(pack_i8x2(message.first_offset, message.last_offset))
    acknowledge_types = message.acknowledge_types
    add(compact_length[len(acknowledge_types)])
    add(int8_array[len(acknowledge_types)].pack(*acknowledge_types))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# AcknowledgePartition in versions 0–2
def read_acknowledge_partition_v0(data: Buffer, at: int, size: int) -> tuple[AcknowledgePartition, int]:
    message = new(AcknowledgePartition)
    message.unknown_tags = ()
    message.partition_index, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("acknowledgement_batches")
    acknowledgement_batches: list[AcknowledgementBatch] = []
    for _ in range(count):
        acknowledgement_batche, at = read_acknowledgement_batch_v0(data, at, size)
        acknowledgement_batches.append(acknowledgement_batche)
    message.acknowledgement_batches = acknowledgement_batches
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_acknowledge_partition_v0(message: AcknowledgePartition, add: Add) -> None:
    add(pack_i4(message.partition_index))
    acknowledgement_batches = message.acknowledgement_batches
    add(compact_length[len(acknowledgement_batches)])
    for acknowledgement_batche in acknowledgement_batches:
        write_acknowledgement_batch_v0(acknowledgement_batche, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# AcknowledgeTopic in versions 0–2
def read_acknowledge_topic_v0(data: Buffer, at: int, size: int) -> tuple[AcknowledgeTopic, int]:
    message = new(AcknowledgeTopic)
    message.unknown_tags = ()
    message.topic_id, count = unpack_uuid_u1(data, at)
    at += 17
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 6 <= size - at:
        raise Malformed("partitions")
    partitions: list[AcknowledgePartition] = []
    for _ in range(count):
        partition, at = read_acknowledge_partition_v0(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_acknowledge_topic_v0(message: AcknowledgeTopic, add: Add) -> None:
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_acknowledge_partition_v0(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ShareAcknowledgeRequest in versions 0–1
def read_v0(data: Buffer, at: int, size: int) -> tuple[ShareAcknowledgeRequest, int]:
    message = new(ShareAcknowledgeRequest)
    message.is_renew_ack = False
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.group_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("group_id")
        message.group_id = str(data[at:end], "utf-8")
        at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.member_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("member_id")
        message.member_id = str(data[at:end], "utf-8")
        at = end
    message.share_session_epoch, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("topics")
    topics: list[AcknowledgeTopic] = []
    for _ in range(count):
        topic, at = read_acknowledge_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: ShareAcknowledgeRequest, add: Add) -> None:
    if message.is_renew_ack:
        raise Unwritable("is_renew_ack")
    group_id = message.group_id
    if group_id is None:
        add(b"\x00")
    else:
        group_id_bytes = group_id.encode()
        add(compact_string_length[len(group_id_bytes)])
        add(group_id_bytes)
    member_id = message.member_id
    if member_id is None:
        add(b"\x00")
    else:
        member_id_bytes = member_id.encode()
        add(compact_string_length[len(member_id_bytes)])
        add(member_id_bytes)
    add(pack_i4(message.share_session_epoch))
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_acknowledge_topic_v0(topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ShareAcknowledgeRequest in version 2
def read_v2(data: Buffer, at: int, size: int) -> tuple[ShareAcknowledgeRequest, int]:
    message = new(ShareAcknowledgeRequest)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.group_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("group_id")
        message.group_id = str(data[at:end], "utf-8")
        at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.member_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("member_id")
        message.member_id = str(data[at:end], "utf-8")
        at = end
    message.share_session_epoch, message.is_renew_ack, count = unpack_i4_bool_u1(data, at)
    at += 6
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("topics")
    topics: list[AcknowledgeTopic] = []
    for _ in range(count):
        topic, at = read_acknowledge_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v2(message: ShareAcknowledgeRequest, add: Add) -> None:
    group_id = message.group_id
    if group_id is None:
        add(b"\x00")
    else:
        group_id_bytes = group_id.encode()
        add(compact_string_length[len(group_id_bytes)])
        add(group_id_bytes)
    member_id = message.member_id
    if member_id is None:
        add(b"\x00")
    else:
        member_id_bytes = member_id.encode()
        add(compact_string_length[len(member_id_bytes)])
        add(member_id_bytes)
    add(pack_i4_bool(message.share_session_epoch, message.is_renew_ack))
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_acknowledge_topic_v0(topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ShareAcknowledgeRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v2, write_v2),
}

# what JSON and error messages know of the fields
AcknowledgementBatch.FIELDS = (
    Field("first_offset", "firstOffset", "int64", (0, 2)),
    Field("last_offset", "lastOffset", "int64", (0, 2)),
    Field("acknowledge_types", "acknowledgeTypes", "[]int8", (0, 2)),
)
AcknowledgePartition.FIELDS = (
    Field("partition_index", "partitionIndex", "int32", (0, 2)),
    Field(
        "acknowledgement_batches",
        "acknowledgementBatches",
        "[]AcknowledgementBatch",
        (0, 2),
        struct=AcknowledgementBatch,
    ),
)
AcknowledgeTopic.FIELDS = (
    Field("topic_id", "topicId", "uuid", (0, 2)),
    Field("partitions", "partitions", "[]AcknowledgePartition", (0, 2), struct=AcknowledgePartition),
)
ShareAcknowledgeRequest.FIELDS = (
    Field("group_id", "groupId", "string", (0, 2), nullable=(0, 2)),
    Field("member_id", "memberId", "string", (0, 2), nullable=(0, 2)),
    Field("share_session_epoch", "shareSessionEpoch", "int32", (0, 2)),
    Field("is_renew_ack", "isRenewAck", "bool", (2, 2)),
    Field("topics", "topics", "[]AcknowledgeTopic", (0, 2), struct=AcknowledgeTopic),
)
