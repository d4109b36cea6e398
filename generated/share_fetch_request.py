"""ShareFetchRequest, versions 0–2: its classes, and one read and write pair per layout.

Generated from schemas/ShareFetchRequest.json by `python -m codegen`; edits here are lost.
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
    int32_array,
    left_over,
    new,
    read_string_length,
    read_tags,
    read_uvarint,
    write_tags,
)

pack_i4: Final = struct.Struct(">i").pack
pack_i4x2: Final = struct.Struct(">ii").pack
pack_i4x4: Final = struct.Struct(">iiii").pack
pack_i4x6: Final = struct.Struct(">iiiiii").pack
pack_i4x6_i1_bool: Final = struct.Struct(">iiiiiib?").pack
pack_i8x2: Final = struct.Struct(">qq").pack
pack_uuid: Final = struct.Struct(">16s").pack
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i4x2_u1: Final = struct.Struct(">iiB").unpack_from
unpack_i4x4_u1: Final = struct.Struct(">iiiiB").unpack_from
unpack_i4x6_i1_bool_u1: Final = struct.Struct(">iiiiiib?B").unpack_from
unpack_i4x6_u1: Final = struct.Struct(">iiiiiiB").unpack_from
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
class FetchPartition(Struct):
    """The partitions of this topic, each with its acknowledgements.

    Attributes:
        partition_index: The partition's number within its topic.
        partition_max_bytes: Bytes of records wanted of this partition. Version 0 only.
        acknowledgement_batches: What became of records delivered earlier, in ascending ranges of offsets;
            empty for no news.
    """

    partition_index: int = 0
    partition_max_bytes: int = 0
    acknowledgement_batches: list[AcknowledgementBatch] = Factory(list)


@define(weakref_slot=False)
class FetchTopic(Struct):
    """The partitions to read from or to acknowledge; in a session only those added or with news.

    Attributes:
        topic_id: The id of the topic of these partitions.
        partitions: The partitions of this topic, each with its acknowledgements.
    """

    topic_id: Uuid = ZERO_UUID
    partitions: list[FetchPartition] = Factory(list)


@define(weakref_slot=False)
class ForgottenTopic(Struct):
    """Partitions to drop from the share session.

    Attributes:
        topic_id: Id of the topic to drop partitions of.
        partitions: The partition numbers of this topic that leave the session.
    """

    topic_id: Uuid = ZERO_UUID
    partitions: list[int] = Factory(list)


@define(weakref_slot=False)
class ShareFetchRequest(Message):
    """Acquires records of a share group for one member, and acknowledges earlier ones on the way (KIP-932).

    Attributes:
        group_id: The share group the records are read for.
        member_id: The member that asks, under the id of its heartbeats.
        share_session_epoch: 0 opens a share session with this broker, each further request adds 1, -1 closes
            it.
        max_wait_ms: Milliseconds the broker may wait for MinBytes before it answers with what it has.
        min_bytes: Bytes of records worth an answer before MaxWaitMs are over.
        max_bytes: Bytes of records the answer should not exceed.
        max_records: How many records the answer should not exceed; whole batches may go a little beyond.
        batch_size: How many records one acquired range should hold, so that they can be acknowledged in handy
            portions.
        share_acquire_mode: 0 may go beyond MaxRecords to keep batches whole, 1 keeps strictly to MaxRecords.
        is_renew_ack: True when some acknowledgement renews a lock; then no records are fetched.
        topics: The partitions to read from or to acknowledge; in a session only those added or with news.
        forgotten_topics_data: Partitions to drop from the share session.
    """

    NAME: ClassVar[str] = "ShareFetchRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 78
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    max_records: int = 0
    batch_size: int = 0
    share_acquire_mode: int = 0
    is_renew_ack: bool = False
    topics: list[FetchTopic] = Factory(list)
    forgotten_topics_data: list[ForgottenTopic] = Factory(list)


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


# FetchPartition in version 0
def read_fetch_partition_v0(data: Buffer, at: int, size: int) -> tuple[FetchPartition, int]:
    message = new(FetchPartition)
    message.unknown_tags = ()
    message.partition_index, message.partition_max_bytes, count = unpack_i4x2_u1(data, at)
    at += 9
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


def write_fetch_partition_v0(message: FetchPartition, add: Add) -> None:
    add(pack_i4x2(message.partition_index, message.partition_max_bytes))
    acknowledgement_batches = message.acknowledgement_batches
    add(compact_length[len(acknowledgement_batches)])
    for acknowledgement_batche in acknowledgement_batches:
        write_acknowledgement_batch_v0(acknowledgement_batche, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# FetchTopic in version 0
def read_fetch_topic_v0(data: Buffer, at: int, size: int) -> tuple[FetchTopic, int]:
    message = new(FetchTopic)
    message.unknown_tags = ()
    message.topic_id, count = unpack_uuid_u1(data, at)
    at += 17
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 10 <= size - at:
        raise Malformed("partitions")
    partitions: list[FetchPartition] = []
    for _ in range(count):
        partition, at = read_fetch_partition_v0(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_fetch_topic_v0(message: FetchTopic, add: Add) -> None:
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_fetch_partition_v0(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ForgottenTopic in versions 0–2
def read_forgotten_topic_v0(data: Buffer, at: int, size: int) -> tuple[ForgottenTopic, int]:
    message = new(ForgottenTopic)
    message.unknown_tags = ()
    message.topic_id, count = unpack_uuid_u1(data, at)
    at += 17
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 4 <= size - at:
        raise Malformed("partitions")
    message.partitions = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_forgotten_topic_v0(message: ForgottenTopic, add: Add) -> None:
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
    partitions = message.partitions
    add(compact_length[len(partitions)])
    add(int32_array[len(partitions)].pack(*partitions))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ShareFetchRequest in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[ShareFetchRequest, int]:
    message = new(ShareFetchRequest)
    message.max_records = 0
    message.batch_size = 0
    message.share_acquire_mode = 0
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
    (
        message.share_session_epoch,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        count,
    ) = unpack_i4x4_u1(data, at)
    at += 17
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("topics")
    topics: list[FetchTopic] = []
    for _ in range(count):
        topic, at = read_fetch_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("forgotten_topics_data")
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(count):
        forgotten_topics_data_item, at = read_forgotten_topic_v0(data, at, size)
        forgotten_topics_data.append(forgotten_topics_data_item)
    message.forgotten_topics_data = forgotten_topics_data
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: ShareFetchRequest, add: Add) -> None:
    if message.max_records != 0:
        raise Unwritable("max_records")
    if message.batch_size != 0:
        raise Unwritable("batch_size")
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
    add(pack_i4x4(message.share_session_epoch, message.max_wait_ms, message.min_bytes, message.max_bytes))
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_fetch_topic_v0(topic, add)
    forgotten_topics_data = message.forgotten_topics_data
    add(compact_length[len(forgotten_topics_data)])
    for forgotten_topics_data_item in forgotten_topics_data:
        write_forgotten_topic_v0(forgotten_topics_data_item, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# FetchPartition in versions 1–2
def read_fetch_partition_v1(data: Buffer, at: int, size: int) -> tuple[FetchPartition, int]:
    message = new(FetchPartition)
    message.partition_max_bytes = 0
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


def write_fetch_partition_v1(message: FetchPartition, add: Add) -> None:
    if message.partition_max_bytes != 0:
        raise Unwritable("partition_max_bytes")
    add(pack_i4(message.partition_index))
    acknowledgement_batches = message.acknowledgement_batches
    add(compact_length[len(acknowledgement_batches)])
    for acknowledgement_batche in acknowledgement_batches:
        write_acknowledgement_batch_v0(acknowledgement_batche, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# FetchTopic in versions 1–2
def read_fetch_topic_v1(data: Buffer, at: int, size: int) -> tuple[FetchTopic, int]:
    message = new(FetchTopic)
    message.unknown_tags = ()
    message.topic_id, count = unpack_uuid_u1(data, at)
    at += 17
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 6 <= size - at:
        raise Malformed("partitions")
    partitions: list[FetchPartition] = []
    for _ in range(count):
        partition, at = read_fetch_partition_v1(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_fetch_topic_v1(message: FetchTopic, add: Add) -> None:
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_fetch_partition_v1(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ShareFetchRequest in version 1
def read_v1(data: Buffer, at: int, size: int) -> tuple[ShareFetchRequest, int]:
    message = new(ShareFetchRequest)
    message.share_acquire_mode = 0
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
    (
        message.share_session_epoch,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.max_records,
        message.batch_size,
        count,
    ) = unpack_i4x6_u1(data, at)
    at += 25
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("topics")
    topics: list[FetchTopic] = []
    for _ in range(count):
        topic, at = read_fetch_topic_v1(data, at, size)
        topics.append(topic)
    message.topics = topics
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("forgotten_topics_data")
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(count):
        forgotten_topics_data_item, at = read_forgotten_topic_v0(data, at, size)
        forgotten_topics_data.append(forgotten_topics_data_item)
    message.forgotten_topics_data = forgotten_topics_data
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v1(message: ShareFetchRequest, add: Add) -> None:
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
    add(
        pack_i4x6(
            message.share_session_epoch,
            message.max_wait_ms,
            message.min_bytes,
            message.max_bytes,
            message.max_records,
            message.batch_size,
        )
    )
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_fetch_topic_v1(topic, add)
    forgotten_topics_data = message.forgotten_topics_data
    add(compact_length[len(forgotten_topics_data)])
    for forgotten_topics_data_item in forgotten_topics_data:
        write_forgotten_topic_v0(forgotten_topics_data_item, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ShareFetchRequest in version 2
def read_v2(data: Buffer, at: int, size: int) -> tuple[ShareFetchRequest, int]:
    message = new(ShareFetchRequest)
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
    (
        message.share_session_epoch,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.max_records,
        message.batch_size,
        message.share_acquire_mode,
        message.is_renew_ack,
        count,
    ) = unpack_i4x6_i1_bool_u1(data, at)
    at += 27
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("topics")
    topics: list[FetchTopic] = []
    for _ in range(count):
        topic, at = read_fetch_topic_v1(data, at, size)
        topics.append(topic)
    message.topics = topics
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("forgotten_topics_data")
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(count):
        forgotten_topics_data_item, at = read_forgotten_topic_v0(data, at, size)
        forgotten_topics_data.append(forgotten_topics_data_item)
    message.forgotten_topics_data = forgotten_topics_data
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v2(message: ShareFetchRequest, add: Add) -> None:
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
    add(
        pack_i4x6_i1_bool(
            message.share_session_epoch,
            message.max_wait_ms,
            message.min_bytes,
            message.max_bytes,
            message.max_records,
            message.batch_size,
            message.share_acquire_mode,
            message.is_renew_ack,
        )
    )
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_fetch_topic_v1(topic, add)
    forgotten_topics_data = message.forgotten_topics_data
    add(compact_length[len(forgotten_topics_data)])
    for forgotten_topics_data_item in forgotten_topics_data:
        write_forgotten_topic_v0(forgotten_topics_data_item, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ShareFetchRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v2, write_v2),
}

# what JSON and error messages know of the fields
AcknowledgementBatch.FIELDS = (
    Field("first_offset", "firstOffset", "int64", (0, 2)),
    Field("last_offset", "lastOffset", "int64", (0, 2)),
    Field("acknowledge_types", "acknowledgeTypes", "[]int8", (0, 2)),
)
FetchPartition.FIELDS = (
    Field("partition_index", "partitionIndex", "int32", (0, 2)),
    Field("partition_max_bytes", "partitionMaxBytes", "int32", (0, 0)),
    Field(
        "acknowledgement_batches",
        "acknowledgementBatches",
        "[]AcknowledgementBatch",
        (0, 2),
        struct=AcknowledgementBatch,
    ),
)
FetchTopic.FIELDS = (
    Field("topic_id", "topicId", "uuid", (0, 2)),
    Field("partitions", "partitions", "[]FetchPartition", (0, 2), struct=FetchPartition),
)
ForgottenTopic.FIELDS = (
    Field("topic_id", "topicId", "uuid", (0, 2)),
    Field("partitions", "partitions", "[]int32", (0, 2)),
)
ShareFetchRequest.FIELDS = (
    Field("group_id", "groupId", "string", (0, 2), nullable=(0, 2)),
    Field("member_id", "memberId", "string", (0, 2), nullable=(0, 2)),
    Field("share_session_epoch", "shareSessionEpoch", "int32", (0, 2)),
    Field("max_wait_ms", "maxWaitMs", "int32", (0, 2)),
    Field("min_bytes", "minBytes", "int32", (0, 2)),
    Field("max_bytes", "maxBytes", "int32", (0, 2)),
    Field("max_records", "maxRecords", "int32", (1, 2)),
    Field("batch_size", "batchSize", "int32", (1, 2)),
    Field("share_acquire_mode", "shareAcquireMode", "int8", (2, 2), ignorable=True),
    Field("is_renew_ack", "isRenewAck", "bool", (2, 2)),
    Field("topics", "topics", "[]FetchTopic", (0, 2), struct=FetchTopic),
    Field("forgotten_topics_data", "forgottenTopicsData", "[]ForgottenTopic", (0, 2), struct=ForgottenTopic),
)
