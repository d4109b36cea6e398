"""ShareGroupDescribeResponse, versions 0–1: its classes, and one read and write pair per layout.

Generated from schemas/ShareGroupDescribeResponse.json by `python -m codegen`; edits here are lost.
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

pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
pack_i4x2: Final = struct.Struct(">ii").pack
pack_uuid: Final = struct.Struct(">16s").pack
unpack_i2_u1: Final = struct.Struct(">hB").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i4x2_u1: Final = struct.Struct(">iiB").unpack_from
unpack_uuid_u1: Final = struct.Struct(">16sB").unpack_from


@define(weakref_slot=False)
class TopicPartitions(Struct):
    """Some partitions of one topic in an assignment.

    Attributes:
        topic_id: The id of the topic of these partitions.
        topic_name: The name of the topic of these partitions.
        partitions: The partition numbers of this topic.
    """

    topic_id: Uuid = ZERO_UUID
    topic_name: str = ""
    partitions: list[int] = Factory(list)


@define(weakref_slot=False)
class Assignment(Struct):
    """The partitions of one member.

    Attributes:
        topic_partitions: The partitions by topic; empty for none.
    """

    topic_partitions: list[TopicPartitions] = Factory(list)


@define(weakref_slot=False)
class Member(Struct):
    """The members of the group; empty when it is empty.

    Attributes:
        member_id: The member, under the id it has in the group.
        rack_id: The rack of the member; null when not told.
        member_epoch: The epoch the member has reached; equal to the assignment epoch once it has caught up.
        client_id: The client.id of the member's connection.
        client_host: Address the member connected from.
        subscribed_topic_names: The topics the member subscribes to by name.
        assignment: What the member holds now.
    """

    member_id: str = ""
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = Factory(list)
    assignment: Assignment = Factory(Assignment)


@define(weakref_slot=False)
class DescribedGroup(Struct):
    """One entry per asked group.

    Attributes:
        error_code: 0, or why this group cannot be described; 69 when it does not exist or is of another kind.
        error_message: The broker's explanation of ErrorCode, for people; null when there is none.
        group_id: The id of the group that was asked for.
        group_state: The state of the group: Empty, Stable or Dead.
        group_epoch: The group's epoch, which every change of members, subscriptions or topics raises.
        assignment_epoch: The group epoch for which the target assignment was computed; behind GroupEpoch
            while that is under way.
        assignor_name: The broker-side assignor in use.
        members: The members of the group; empty when it is empty.
        authorized_operations: Bit n set if the caller may do operation n of Kafka's access rules on the
            group; -2147483648 when not asked for.
    """

    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: list[Member] = Factory(list)
    authorized_operations: int = -2147483648


@define(weakref_slot=False)
class ShareGroupDescribeResponse(Message):
    """State, epochs, members and assignments of share groups.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Informative: this API never obliges the
            client to stay silent.
        groups: One entry per asked group.
    """

    NAME: ClassVar[str] = "ShareGroupDescribeResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 77
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = Factory(list)


# TopicPartitions in versions 0–1
def read_topic_partitions_v0(data: Buffer, at: int, size: int) -> tuple[TopicPartitions, int]:
    message = new(TopicPartitions)
    message.unknown_tags = ()
    message.topic_id, length = unpack_uuid_u1(data, at)
    at += 17
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("topic_name")
    message.topic_name = str(data[at:end], "utf-8")
    at = end
    count = data[at]
    at += 1
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
    topic_name = message.topic_name.encode()
    add(compact_string_length[len(topic_name)])
    add(topic_name)
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
    if not 0 <= count * 19 <= size - at:
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


# Member in versions 0–1
def read_member_v0(data: Buffer, at: int, size: int) -> tuple[Member, int]:
    message = new(Member)
    message.unknown_tags = ()
    length = data[at]
    at += 1
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
        message.rack_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("rack_id")
        message.rack_id = str(data[at:end], "utf-8")
        at = end
    message.member_epoch, length = unpack_i4_u1(data, at)
    at += 5
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("client_id")
    message.client_id = str(data[at:end], "utf-8")
    at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("client_host")
    message.client_host = str(data[at:end], "utf-8")
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count <= size - at:
        raise Malformed("subscribed_topic_names")
    message.subscribed_topic_names, at = read_compact_strings(count, data, at, size)
    message.assignment, at = read_assignment_v0(data, at, size)
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_member_v0(message: Member, add: Add) -> None:
    member_id = message.member_id.encode()
    add(compact_string_length[len(member_id)])
    add(member_id)
    rack_id = message.rack_id
    if rack_id is None:
        add(b"\x00")
    else:
        rack_id_bytes = rack_id.encode()
        add(compact_string_length[len(rack_id_bytes)])
        add(rack_id_bytes)
    add(pack_i4(message.member_epoch))
    client_id = message.client_id.encode()
    add(compact_string_length[len(client_id)])
    add(client_id)
    client_host = message.client_host.encode()
    add(compact_string_length[len(client_host)])
    add(client_host)
    subscribed_topic_names = message.subscribed_topic_names
    add(compact_length[len(subscribed_topic_names)])
    for subscribed_topic_name in subscribed_topic_names:
        subscribed_topic_name_bytes = subscribed_topic_name.encode()
        add(compact_string_length[len(subscribed_topic_name_bytes)])
        add(subscribed_topic_name_bytes)
    write_assignment_v0(message.assignment, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribedGroup in versions 0–1
def read_described_group_v0(data: Buffer, at: int, size: int) -> tuple[DescribedGroup, int]:
    message = new(DescribedGroup)
    message.unknown_tags = ()
    message.error_code, length = unpack_i2_u1(data, at)
    at += 3
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
        raise Malformed("group_state")
    message.group_state = str(data[at:end], "utf-8")
    at = end
    message.group_epoch, message.assignment_epoch, length = unpack_i4x2_u1(data, at)
    at += 9
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("assignor_name")
    message.assignor_name = str(data[at:end], "utf-8")
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 12 <= size - at:
        raise Malformed("members")
    members: list[Member] = []
    for _ in range(count):
        member, at = read_member_v0(data, at, size)
        members.append(member)
    message.members = members
    message.authorized_operations, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_described_group_v0(message: DescribedGroup, add: Add) -> None:
    add(pack_i2(message.error_code))
    error_message = message.error_message
    if error_message is None:
        add(b"\x00")
    else:
        error_message_bytes = error_message.encode()
        add(compact_string_length[len(error_message_bytes)])
        add(error_message_bytes)
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    group_state = message.group_state.encode()
    add(compact_string_length[len(group_state)])
    add(group_state)
    add(pack_i4x2(message.group_epoch, message.assignment_epoch))
    assignor_name = message.assignor_name.encode()
    add(compact_string_length[len(assignor_name)])
    add(assignor_name)
    members = message.members
    add(compact_length[len(members)])
    for member in members:
        write_member_v0(member, add)
    add(pack_i4(message.authorized_operations))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ShareGroupDescribeResponse in versions 0–1
def read_v0(data: Buffer, at: int, size: int) -> tuple[ShareGroupDescribeResponse, int]:
    message = new(ShareGroupDescribeResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 20 <= size - at:
        raise Malformed("groups")
    groups: list[DescribedGroup] = []
    for _ in range(count):
        group, at = read_described_group_v0(data, at, size)
        groups.append(group)
    message.groups = groups
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: ShareGroupDescribeResponse, add: Add) -> None:
    add(pack_i4(message.throttle_time_ms))
    groups = message.groups
    add(compact_length[len(groups)])
    for group in groups:
        write_described_group_v0(group, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ShareGroupDescribeResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
TopicPartitions.FIELDS = (
    Field("topic_id", "topicId", "uuid", (0, 1)),
    Field("topic_name", "topicName", "string", (0, 1)),
    Field("partitions", "partitions", "[]int32", (0, 1)),
)
Assignment.FIELDS = (
    Field("topic_partitions", "topicPartitions", "[]TopicPartitions", (0, 1), struct=TopicPartitions),
)
Member.FIELDS = (
    Field("member_id", "memberId", "string", (0, 1)),
    Field("rack_id", "rackId", "string", (0, 1), nullable=(0, 1)),
    Field("member_epoch", "memberEpoch", "int32", (0, 1)),
    Field("client_id", "clientId", "string", (0, 1)),
    Field("client_host", "clientHost", "string", (0, 1)),
    Field("subscribed_topic_names", "subscribedTopicNames", "[]string", (0, 1)),
    Field("assignment", "assignment", "Assignment", (0, 1), struct=Assignment),
)
DescribedGroup.FIELDS = (
    Field("error_code", "errorCode", "int16", (0, 1)),
    Field("error_message", "errorMessage", "string", (0, 1), nullable=(0, 1)),
    Field("group_id", "groupId", "string", (0, 1)),
    Field("group_state", "groupState", "string", (0, 1)),
    Field("group_epoch", "groupEpoch", "int32", (0, 1)),
    Field("assignment_epoch", "assignmentEpoch", "int32", (0, 1)),
    Field("assignor_name", "assignorName", "string", (0, 1)),
    Field("members", "members", "[]Member", (0, 1), struct=Member),
    Field("authorized_operations", "authorizedOperations", "int32", (0, 1)),
)
ShareGroupDescribeResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (0, 1)),
    Field("groups", "groups", "[]DescribedGroup", (0, 1), struct=DescribedGroup),
)
