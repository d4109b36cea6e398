"""ConsumerGroupHeartbeatResponse, versions 0–1: its classes, and one read and write pair per layout.

Generated from schemas/ConsumerGroupHeartbeatResponse.json by `python -m codegen`; edits here are lost.
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

pack_i4_i2: Final = struct.Struct(">ih").pack
pack_i4x2: Final = struct.Struct(">ii").pack
pack_uuid: Final = struct.Struct(">16s").pack
unpack_i4_i2_u1: Final = struct.Struct(">ihB").unpack_from
unpack_i4x2_i1: Final = struct.Struct(">iib").unpack_from
unpack_uuid_u1: Final = struct.Struct(">16sB").unpack_from


@define(weakref_slot=False)
class TopicPartitions(Struct):
    """Some partitions of one topic in the assignment.

    Attributes:
        topic_id: The id of the topic of these partitions; its name comes from Metadata.
        partitions: The partition numbers of this topic.
    """

    topic_id: Uuid = ZERO_UUID
    partitions: list[int] = Factory(list)


@define(weakref_slot=False)
class Assignment(Struct):
    """The partitions the member is to move to; null when nothing has changed, which is not the same as an
    empty one.

    Attributes:
        topic_partitions: All the member's partitions by topic, not only new ones.
    """

    topic_partitions: list[TopicPartitions] = Factory(list)


@define(weakref_slot=False)
class ConsumerGroupHeartbeatResponse(Message):
    """Tells a member of the consumer protocol its epoch and, when it has changed, the partitions it is to
    hold.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Informative: this API never obliges the
            client to stay silent.
        error_code: 0; 110 fenced or 25 unknown: drop everything and join again; 14, 15 and 16: try again;
            most others are final.
        error_message: The broker's explanation of ErrorCode, for people; null when there is none.
        member_id: The member's id: in version 0 the one the coordinator made for it. Null on error.
        member_epoch: The epoch to send from now on; a negative one confirms the leave.
        heartbeat_interval_ms: Milliseconds until the next heartbeat is due; set by the broker, not by the
            client's configuration.
        assignment: The partitions the member is to move to; null when nothing has changed, which is not the
            same as an empty one.
    """

    NAME: ClassVar[str] = "ConsumerGroupHeartbeatResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 68
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None


# TopicPartitions in versions 0–1
def read_topic_partitions_v0(data: Buffer, at: int, size: int) -> tuple[TopicPartitions, int]:
    message = new(TopicPartitions)
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


def write_topic_partitions_v0(message: TopicPartitions, add: Add) -> None:
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


# Assignment in versions 0–1
def read_assignment_v0(data: Buffer, at: int, size: int) -> tuple[Assignment, int]:
    message = new(Assignment)
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("topic_partitions")
    topic_partitions: list[TopicPartitions] = []
    for _ in range(count):
        topic_partition, at = read_topic_partitions_v0(data, at, size)
        topic_partitions.append(topic_partition)
    message.topic_partitions = topic_partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_assignment_v0(message: Assignment, add: Add) -> None:
    topic_partitions = message.topic_partitions
    add(compact_length[len(topic_partitions)])
    for topic_partition in topic_partitions:
        write_topic_partitions_v0(topic_partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ConsumerGroupHeartbeatResponse in versions 0–1
def read_v0(data: Buffer, at: int, size: int) -> tuple[ConsumerGroupHeartbeatResponse, int]:
    message = new(ConsumerGroupHeartbeatResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, length = unpack_i4_i2_u1(data, at)
    at += 7
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.error_message = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("error_message")
        message.error_message = str(data[at:end], "utf-8")
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
    message.member_epoch, message.heartbeat_interval_ms, present = unpack_i4x2_i1(data, at)
    at += 9
    if present < 0:
        message.assignment = None
    else:
        message.assignment, at = read_assignment_v0(data, at, size)
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: ConsumerGroupHeartbeatResponse, add: Add) -> None:
    add(pack_i4_i2(message.throttle_time_ms, message.error_code))
    error_message = message.error_message
    if error_message is None:
        add(b"\x00")
    else:
        error_message_bytes = error_message.encode()
        add(compact_string_length[len(error_message_bytes)])
        add(error_message_bytes)
    member_id = message.member_id
    if member_id is None:
        add(b"\x00")
    else:
        member_id_bytes = member_id.encode()
        add(compact_string_length[len(member_id_bytes)])
        add(member_id_bytes)
    add(pack_i4x2(message.member_epoch, message.heartbeat_interval_ms))
    assignment = message.assignment
    if assignment is None:
        add(b"\xff")
    else:
        add(b"\x01")
        write_assignment_v0(assignment, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ConsumerGroupHeartbeatResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
TopicPartitions.FIELDS = (
    Field("topic_id", "topicId", "uuid", (0, 1)),
    Field("partitions", "partitions", "[]int32", (0, 1)),
)
Assignment.FIELDS = (
    Field("topic_partitions", "topicPartitions", "[]TopicPartitions", (0, 1), struct=TopicPartitions),
)
ConsumerGroupHeartbeatResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (0, 1)),
    Field("error_code", "errorCode", "int16", (0, 1)),
    Field("error_message", "errorMessage", "string", (0, 1), nullable=(0, 1)),
    Field("member_id", "memberId", "string", (0, 1), nullable=(0, 1)),
    Field("member_epoch", "memberEpoch", "int32", (0, 1)),
    Field("heartbeat_interval_ms", "heartbeatIntervalMs", "int32", (0, 1)),
    Field("assignment", "assignment", "Assignment", (0, 1), nullable=(0, 1), struct=Assignment),
)
