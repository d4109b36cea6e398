"""ConsumerGroupHeartbeatRequest, versions 0–1: its classes, and one read and write pair per layout.

Generated from schemas/ConsumerGroupHeartbeatRequest.json by `python -m codegen`; edits here are lost.
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
    read_compact_strings,
    read_string_length,
    read_tags,
    read_uvarint,
    write_tags,
)

pack_i4: Final = struct.Struct(">i").pack
pack_uuid: Final = struct.Struct(">16s").pack
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_uuid_u1: Final = struct.Struct(">16sB").unpack_from


@define(weakref_slot=False)
class TopicPartitions(Struct):
    """The partitions the member holds, by which it confirms what it has given up; null when unchanged, empty
    when joining.

    Attributes:
        topic_id: The id of the topic of these partitions.
        partitions: The partition numbers of this topic that the member holds.
    """

    topic_id: Uuid = ZERO_UUID
    partitions: list[int] = Factory(list)


@define(weakref_slot=False)
class ConsumerGroupHeartbeatRequest(Message):
    """The one request of the consumer protocol (KIP-848): joins, stays, acknowledges an assignment and
    leaves.

    Attributes:
        group_id: The group to be a member of; must not be empty.
        member_id: The id the client chose for itself, kept for its life (version 1); in version 0 empty at
            first, then what the coordinator gave.
        member_epoch: 0 to join, the last epoch heard to stay, -1 to leave, -2 to leave for a while as a
            static member.
        instance_id: The configured name of a static member; null for a dynamic one.
        rack_id: The rack of the member, told when it joins; null when not set or already told.
        rebalance_timeout_ms: Milliseconds the member may take to give up revoked partitions
            (max.poll.interval.ms); -1 when unchanged since it was last told.
        subscribed_topic_names: The topics subscribed to by name; null when unchanged since they were last
            told.
        subscribed_topic_regex: An RE2J pattern that the broker resolves; empty gives it up, null leaves it
            unchanged.
        server_assignor: The broker-side assignor wanted, for instance uniform; null leaves it unchanged or to
            the broker.
        topic_partitions: The partitions the member holds, by which it confirms what it has given up; null
            when unchanged, empty when joining.
    """

    NAME: ClassVar[str] = "ConsumerGroupHeartbeatRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 68
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: list[str] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: list[TopicPartitions] | None = None


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


# ConsumerGroupHeartbeatRequest in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[ConsumerGroupHeartbeatRequest, int]:
    message = new(ConsumerGroupHeartbeatRequest)
    message.subscribed_topic_regex = None
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
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("member_id")
    message.member_id = str(data[at:end], "utf-8")
    at = end
    message.member_epoch, length = unpack_i4_u1(data, at)
    at += 5
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.instance_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("instance_id")
        message.instance_id = str(data[at:end], "utf-8")
        at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.rack_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("rack_id")
        message.rack_id = str(data[at:end], "utf-8")
        at = end
    message.rebalance_timeout_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        message.subscribed_topic_names = None
    else:
        count -= 1
        if not 0 <= count <= size - at:
            raise Malformed("subscribed_topic_names")
        message.subscribed_topic_names, at = read_compact_strings(count, data, at, size)
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.server_assignor = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("server_assignor")
        message.server_assignor = str(data[at:end], "utf-8")
        at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        message.topic_partitions = None
    else:
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


def write_v0(message: ConsumerGroupHeartbeatRequest, add: Add) -> None:
    if message.subscribed_topic_regex is not None:
        raise Unwritable("subscribed_topic_regex")
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    member_id = message.member_id.encode()
    add(compact_string_length[len(member_id)])
    add(member_id)
    add(pack_i4(message.member_epoch))
    instance_id = message.instance_id
    if instance_id is None:
        add(b"\x00")
    else:
        instance_id_bytes = instance_id.encode()
        add(compact_string_length[len(instance_id_bytes)])
        add(instance_id_bytes)
    rack_id = message.rack_id
    if rack_id is None:
        add(b"\x00")
    else:
        rack_id_bytes = rack_id.encode()
        add(compact_string_length[len(rack_id_bytes)])
        add(rack_id_bytes)
    add(pack_i4(message.rebalance_timeout_ms))
    subscribed_topic_names = message.subscribed_topic_names
    if subscribed_topic_names is None:
        add(b"\x00")
    else:
        add(compact_length[len(subscribed_topic_names)])
        for subscribed_topic_name in subscribed_topic_names:
            subscribed_topic_name_bytes = subscribed_topic_name.encode()
            add(compact_string_length[len(subscribed_topic_name_bytes)])
            add(subscribed_topic_name_bytes)
    server_assignor = message.server_assignor
    if server_assignor is None:
        add(b"\x00")
    else:
        server_assignor_bytes = server_assignor.encode()
        add(compact_string_length[len(server_assignor_bytes)])
        add(server_assignor_bytes)
    topic_partitions = message.topic_partitions
    if topic_partitions is None:
        add(b"\x00")
    else:
        add(compact_length[len(topic_partitions)])
        for topic_partition in topic_partitions:
            write_topic_partitions_v0(topic_partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ConsumerGroupHeartbeatRequest in version 1
def read_v1(data: Buffer, at: int, size: int) -> tuple[ConsumerGroupHeartbeatRequest, int]:
    message = new(ConsumerGroupHeartbeatRequest)
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
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("member_id")
    message.member_id = str(data[at:end], "utf-8")
    at = end
    message.member_epoch, length = unpack_i4_u1(data, at)
    at += 5
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.instance_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("instance_id")
        message.instance_id = str(data[at:end], "utf-8")
        at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.rack_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("rack_id")
        message.rack_id = str(data[at:end], "utf-8")
        at = end
    message.rebalance_timeout_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        message.subscribed_topic_names = None
    else:
        count -= 1
        if not 0 <= count <= size - at:
            raise Malformed("subscribed_topic_names")
        message.subscribed_topic_names, at = read_compact_strings(count, data, at, size)
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.subscribed_topic_regex = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("subscribed_topic_regex")
        message.subscribed_topic_regex = str(data[at:end], "utf-8")
        at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.server_assignor = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("server_assignor")
        message.server_assignor = str(data[at:end], "utf-8")
        at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        message.topic_partitions = None
    else:
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


def write_v1(message: ConsumerGroupHeartbeatRequest, add: Add) -> None:
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    member_id = message.member_id.encode()
    add(compact_string_length[len(member_id)])
    add(member_id)
    add(pack_i4(message.member_epoch))
    instance_id = message.instance_id
    if instance_id is None:
        add(b"\x00")
    else:
        instance_id_bytes = instance_id.encode()
        add(compact_string_length[len(instance_id_bytes)])
        add(instance_id_bytes)
    rack_id = message.rack_id
    if rack_id is None:
        add(b"\x00")
    else:
        rack_id_bytes = rack_id.encode()
        add(compact_string_length[len(rack_id_bytes)])
        add(rack_id_bytes)
    add(pack_i4(message.rebalance_timeout_ms))
    subscribed_topic_names = message.subscribed_topic_names
    if subscribed_topic_names is None:
        add(b"\x00")
    else:
        add(compact_length[len(subscribed_topic_names)])
        for subscribed_topic_name in subscribed_topic_names:
            subscribed_topic_name_bytes = subscribed_topic_name.encode()
            add(compact_string_length[len(subscribed_topic_name_bytes)])
            add(subscribed_topic_name_bytes)
    subscribed_topic_regex = message.subscribed_topic_regex
    if subscribed_topic_regex is None:
        add(b"\x00")
    else:
        subscribed_topic_regex_bytes = subscribed_topic_regex.encode()
        add(compact_string_length[len(subscribed_topic_regex_bytes)])
        add(subscribed_topic_regex_bytes)
    server_assignor = message.server_assignor
    if server_assignor is None:
        add(b"\x00")
    else:
        server_assignor_bytes = server_assignor.encode()
        add(compact_string_length[len(server_assignor_bytes)])
        add(server_assignor_bytes)
    topic_partitions = message.topic_partitions
    if topic_partitions is None:
        add(b"\x00")
    else:
        add(compact_length[len(topic_partitions)])
        for topic_partition in topic_partitions:
            write_topic_partitions_v0(topic_partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ConsumerGroupHeartbeatRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
}

# what JSON and error messages know of the fields
TopicPartitions.FIELDS = (
    Field("topic_id", "topicId", "uuid", (0, 1)),
    Field("partitions", "partitions", "[]int32", (0, 1)),
)
ConsumerGroupHeartbeatRequest.FIELDS = (
    Field("group_id", "groupId", "string", (0, 1)),
    Field("member_id", "memberId", "string", (0, 1)),
    Field("member_epoch", "memberEpoch", "int32", (0, 1)),
    Field("instance_id", "instanceId", "string", (0, 1), nullable=(0, 1)),
    Field("rack_id", "rackId", "string", (0, 1), nullable=(0, 1)),
    Field("rebalance_timeout_ms", "rebalanceTimeoutMs", "int32", (0, 1)),
    Field("subscribed_topic_names", "subscribedTopicNames", "[]string", (0, 1), nullable=(0, 1)),
    Field("subscribed_topic_regex", "subscribedTopicRegex", "string", (1, 1), nullable=(1, 1)),
    Field("server_assignor", "serverAssignor", "string", (0, 1), nullable=(0, 1)),
    Field(
        "topic_partitions",
        "topicPartitions",
        "[]TopicPartitions",
        (0, 1),
        nullable=(0, 1),
        struct=TopicPartitions,
    ),
)
