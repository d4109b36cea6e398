"""DescribeTopicPartitionsResponse, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/DescribeTopicPartitionsResponse.json by `python -m codegen`; edits here are lost.
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
    int32_array,
    left_over,
    new,
    read_string_length,
    read_tags,
    read_uvarint,
    write_tags,
)

pack_i2: Final = struct.Struct(">h").pack
pack_i2_i4x3: Final = struct.Struct(">hiii").pack
pack_i4: Final = struct.Struct(">i").pack
pack_uuid_bool: Final = struct.Struct(">16s?").pack
unpack_i1: Final = struct.Struct(">b").unpack_from
unpack_i2_i4x3_u1: Final = struct.Struct(">hiiiB").unpack_from
unpack_i2_u1: Final = struct.Struct(">hB").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_uuid_bool_u1: Final = struct.Struct(">16s?B").unpack_from


@define(weakref_slot=False)
class DescribeTopicPartitionsResponsePartition(Struct):
    """The topic's partitions on this page.

    Attributes:
        error_code: 0, or what is wrong with the partition.
        partition_index: The partition's number within its topic.
        leader_id: Broker id of the leader; -1 when there is none.
        leader_epoch: Counts the elections of the partition; -1 when unknown.
        replica_nodes: Broker ids of all replicas, the preferred leader first.
        isr_nodes: Broker ids of the replicas in sync with the leader.
        eligible_leader_replicas: Broker ids outside the in-sync set that could lead without losing data; null
            when not kept.
        last_known_elr: Broker ids that were last eligible before all were lost; null when not kept.
        offline_replicas: Broker ids of replicas that cannot serve: their broker or their disk is gone.
    """

    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: list[int] = Factory(list)
    isr_nodes: list[int] = Factory(list)
    eligible_leader_replicas: list[int] | None = None
    last_known_elr: list[int] | None = None
    offline_replicas: list[int] = Factory(list)


@define(weakref_slot=False)
class DescribeTopicPartitionsResponseTopic(Struct):
    """The topics of this page, the last perhaps not with all its partitions.

    Attributes:
        error_code: 0, or why the topic cannot be described.
        name: The topic's name; null when it is not known.
        topic_id: The topic's id, which a recreated topic does not share with its predecessor.
        is_internal: True for Kafka's own topics, such as __consumer_offsets.
        partitions: The topic's partitions on this page.
        topic_authorized_operations: Bit n set if the caller may do operation n of Kafka's access rules on the
            topic; -2147483648 when not told.
    """

    error_code: int = 0
    name: str | None = ""
    topic_id: Uuid = ZERO_UUID
    is_internal: bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = Factory(list)
    topic_authorized_operations: int = -2147483648


@define(weakref_slot=False)
class Cursor(Struct):
    """What to send as Cursor for the next page; null on the last one.

    Attributes:
        topic_name: The topic with which the next page begins.
        partition_index: The first partition of that topic on the next page.
    """

    topic_name: str = ""
    partition_index: int = 0


@define(weakref_slot=False)
class DescribeTopicPartitionsResponse(Message):
    """One page of topics with their partitions, in the order of the names.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none.
        topics: The topics of this page, the last perhaps not with all its partitions.
        next_cursor: What to send as Cursor for the next page; null on the last one.
    """

    NAME: ClassVar[str] = "DescribeTopicPartitionsResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 75
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    throttle_time_ms: int = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = Factory(list)
    next_cursor: Cursor | None = None


# DescribeTopicPartitionsResponsePartition in version 0
def read_describe_topic_partitions_response_partition_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[DescribeTopicPartitionsResponsePartition, int]:
    message = new(DescribeTopicPartitionsResponsePartition)
    message.unknown_tags = ()
    (
        message.error_code,
        message.partition_index,
        message.leader_id,
        message.leader_epoch,
        count,
    ) = unpack_i2_i4x3_u1(data, at)
    at += 15
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 4 <= size - at:
        raise Malformed("replica_nodes")
    message.replica_nodes = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 4 <= size - at:
        raise Malformed("isr_nodes")
    message.isr_nodes = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        message.eligible_leader_replicas = None
    else:
        count -= 1
        if not 0 <= count * 4 <= size - at:
            raise Malformed("eligible_leader_replicas")
        message.eligible_leader_replicas = list(int32_array[count].unpack_from(data, at))
        at += 4 * count
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        message.last_known_elr = None
    else:
        count -= 1
        if not 0 <= count * 4 <= size - at:
            raise Malformed("last_known_elr")
        message.last_known_elr = list(int32_array[count].unpack_from(data, at))
        at += 4 * count
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 4 <= size - at:
        raise Malformed("offline_replicas")
    message.offline_replicas = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_describe_topic_partitions_response_partition_v0(
    message: DescribeTopicPartitionsResponsePartition,
    add: Add,
) -> None:
    add(pack_i2_i4x3(message.error_code, message.partition_index, message.leader_id, message.leader_epoch))
    replica_nodes = message.replica_nodes
    add(compact_length[len(replica_nodes)])
    add(int32_array[len(replica_nodes)].pack(*replica_nodes))
    isr_nodes = message.isr_nodes
    add(compact_length[len(isr_nodes)])
    add(int32_array[len(isr_nodes)].pack(*isr_nodes))
    eligible_leader_replicas = message.eligible_leader_replicas
    if eligible_leader_replicas is None:
        add(b"\x00")
    else:
        add(compact_length[len(eligible_leader_replicas)])
        add(int32_array[len(eligible_leader_replicas)].pack(*eligible_leader_replicas))
    last_known_elr = message.last_known_elr
    if last_known_elr is None:
        add(b"\x00")
    else:
        add(compact_length[len(last_known_elr)])
        add(int32_array[len(last_known_elr)].pack(*last_known_elr))
    offline_replicas = message.offline_replicas
    add(compact_length[len(offline_replicas)])
    add(int32_array[len(offline_replicas)].pack(*offline_replicas))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeTopicPartitionsResponseTopic in version 0
def read_describe_topic_partitions_response_topic_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[DescribeTopicPartitionsResponseTopic, int]:
    message = new(DescribeTopicPartitionsResponseTopic)
    message.unknown_tags = ()
    message.error_code, length = unpack_i2_u1(data, at)
    at += 3
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.name = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("name")
        message.name = str(data[at:end], "utf-8")
        at = end
    message.topic_id, message.is_internal, count = unpack_uuid_bool_u1(data, at)
    at += 18
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 20 <= size - at:
        raise Malformed("partitions")
    partitions: list[DescribeTopicPartitionsResponsePartition] = []
    for _ in range(count):
        partition, at = read_describe_topic_partitions_response_partition_v0(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    message.topic_authorized_operations, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_describe_topic_partitions_response_topic_v0(
    message: DescribeTopicPartitionsResponseTopic,
    add: Add,
) -> None:
    add(pack_i2(message.error_code))
    name = message.name
    if name is None:
        add(b"\x00")
    else:
        name_bytes = name.encode()
        add(compact_string_length[len(name_bytes)])
        add(name_bytes)
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid_bool(message.topic_id, message.is_internal))
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_describe_topic_partitions_response_partition_v0(partition, add)
    add(pack_i4(message.topic_authorized_operations))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# Cursor in version 0
def read_cursor_v0(data: Buffer, at: int, size: int) -> tuple[Cursor, int]:
    message = new(Cursor)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("topic_name")
    message.topic_name = str(data[at:end], "utf-8")
    at = end
    message.partition_index, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_cursor_v0(message: Cursor, add: Add) -> None:
    topic_name = message.topic_name.encode()
    add(compact_string_length[len(topic_name)])
    add(topic_name)
    add(pack_i4(message.partition_index))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeTopicPartitionsResponse in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[DescribeTopicPartitionsResponse, int]:
    message = new(DescribeTopicPartitionsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 26 <= size - at:
        raise Malformed("topics")
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    for _ in range(count):
        topic, at = read_describe_topic_partitions_response_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    (present,) = unpack_i1(data, at)
    at += 1
    if present < 0:
        message.next_cursor = None
    else:
        message.next_cursor, at = read_cursor_v0(data, at, size)
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: DescribeTopicPartitionsResponse, add: Add) -> None:
    add(pack_i4(message.throttle_time_ms))
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_describe_topic_partitions_response_topic_v0(topic, add)
    next_cursor = message.next_cursor
    if next_cursor is None:
        add(b"\xff")
    else:
        add(b"\x01")
        write_cursor_v0(next_cursor, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[DescribeTopicPartitionsResponse]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
DescribeTopicPartitionsResponsePartition.FIELDS = (
    Field("error_code", "errorCode", "int16", (0, 0)),
    Field("partition_index", "partitionIndex", "int32", (0, 0)),
    Field("leader_id", "leaderId", "int32", (0, 0)),
    Field("leader_epoch", "leaderEpoch", "int32", (0, 0), ignorable=True),
    Field("replica_nodes", "replicaNodes", "[]int32", (0, 0)),
    Field("isr_nodes", "isrNodes", "[]int32", (0, 0)),
    Field("eligible_leader_replicas", "eligibleLeaderReplicas", "[]int32", (0, 0), nullable=(0, 0)),
    Field("last_known_elr", "lastKnownElr", "[]int32", (0, 0), nullable=(0, 0)),
    Field("offline_replicas", "offlineReplicas", "[]int32", (0, 0), ignorable=True),
)
DescribeTopicPartitionsResponseTopic.FIELDS = (
    Field("error_code", "errorCode", "int16", (0, 0)),
    Field("name", "name", "string", (0, 0), nullable=(0, 0)),
    Field("topic_id", "topicId", "uuid", (0, 0), ignorable=True),
    Field("is_internal", "isInternal", "bool", (0, 0), ignorable=True),
    Field(
        "partitions",
        "partitions",
        "[]DescribeTopicPartitionsResponsePartition",
        (0, 0),
        struct=DescribeTopicPartitionsResponsePartition,
    ),
    Field("topic_authorized_operations", "topicAuthorizedOperations", "int32", (0, 0)),
)
Cursor.FIELDS = (
    Field("topic_name", "topicName", "string", (0, 0)),
    Field("partition_index", "partitionIndex", "int32", (0, 0)),
)
DescribeTopicPartitionsResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (0, 0), ignorable=True),
    Field(
        "topics",
        "topics",
        "[]DescribeTopicPartitionsResponseTopic",
        (0, 0),
        struct=DescribeTopicPartitionsResponseTopic,
    ),
    Field("next_cursor", "nextCursor", "Cursor", (0, 0), nullable=(0, 0), struct=Cursor),
)
