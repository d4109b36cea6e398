"""DescribeGroupsResponse, versions 0–6: its classes, and one read and write pair per layout.

Generated from schemas/DescribeGroupsResponse.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import Factory, define

from kclient.protocol.message import Field, Message, Struct
from kclient.protocol.primitives import (
    BYTES,
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
pack_i4x2: Final = struct.Struct(">ii").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i2_u1: Final = struct.Struct(">hB").unpack_from
unpack_i2x2: Final = struct.Struct(">hh").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i4x2: Final = struct.Struct(">ii").unpack_from


@define(weakref_slot=False)
class DescribedGroupMember(Struct):
    """The members; their bytes are filled only while the group is Stable.

    Attributes:
        member_id: The id the coordinator gave the member.
        group_instance_id: The static name of the member; null for a dynamic one.
        client_id: The client.id of the member's connection.
        client_host: Address the member connected from, with a slash in front.
        member_metadata: For consumers the member's ConsumerProtocolSubscription with its int16 version in
            front; empty unless Stable.
        member_assignment: For consumers the member's ConsumerProtocolAssignment with its int16 version in
            front; empty unless Stable.
    """

    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


@define(weakref_slot=False)
class DescribedGroup(Struct):
    """One entry per asked group.

    Attributes:
        error_code: 0, or why this group cannot be described.
        error_message: The broker's explanation of ErrorCode, for people; null when there is none.
        group_id: The id of the group that was asked for.
        group_state: Empty, PreparingRebalance, CompletingRebalance, Stable or Dead; an empty text on error.
        protocol_type: The kind of group, consumer for consumers; tells how to read the bytes of the members.
        protocol_data: The assignor in use, for instance range; empty while there is no generation.
        members: The members; their bytes are filled only while the group is Stable.
        authorized_operations: Bit n set if the caller may do operation n of Kafka's access rules on the
            group; -2147483648 when not asked for.
    """

    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedGroupMember] = Factory(list)
    authorized_operations: int = -2147483648


@define(weakref_slot=False)
class DescribeGroupsResponse(Message):
    """State, members and assignments of classic groups. A group that does not exist is Dead, from version 6
    with error 69.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Since version 2 the answer is immediate and
            the client must stay silent that long; before, the broker had already held the answer back.
        groups: One entry per asked group.
    """

    NAME: ClassVar[str] = "DescribeGroupsResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 15
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_SINCE: ClassVar[int | None] = 5

    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = Factory(list)


# DescribedGroupMember in versions 0–3
def read_described_group_member_v0(data: Buffer, at: int, size: int) -> tuple[DescribedGroupMember, int]:
    message = new(DescribedGroupMember)
    message.group_instance_id = None
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("member_id")
    message.member_id = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("client_id")
    message.client_id = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("client_host")
    message.client_host = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i4(data, at)
    at += 4
    end = at + length
    if not at <= end <= size:
        raise Malformed("member_metadata")
    message.member_metadata = bytes(data[at:end])
    at = end
    (length,) = unpack_i4(data, at)
    at += 4
    end = at + length
    if not at <= end <= size:
        raise Malformed("member_assignment")
    message.member_assignment = bytes(data[at:end])
    at = end
    return message, at


def write_described_group_member_v0(message: DescribedGroupMember, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    member_id = message.member_id.encode()
    add(pack_i2(len(member_id)))
    add(member_id)
    client_id = message.client_id.encode()
    add(pack_i2(len(client_id)))
    add(client_id)
    client_host = message.client_host.encode()
    add(pack_i2(len(client_host)))
    add(client_host)
    member_metadata = message.member_metadata
    add(pack_i4(len(member_metadata)))
    if not isinstance(member_metadata, BYTES):
        raise Unwritable("member_metadata")
    add(member_metadata)
    member_assignment = message.member_assignment
    add(pack_i4(len(member_assignment)))
    if not isinstance(member_assignment, BYTES):
        raise Unwritable("member_assignment")
    add(member_assignment)


# DescribedGroup in versions 0–2
def read_described_group_v0(data: Buffer, at: int, size: int) -> tuple[DescribedGroup, int]:
    message = new(DescribedGroup)
    message.error_message = None
    message.authorized_operations = -2147483648
    message.unknown_tags = ()
    message.error_code, length = unpack_i2x2(data, at)
    at += 4
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_state")
    message.group_state = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("protocol_type")
    message.protocol_type = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("protocol_data")
    message.protocol_data = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 14 <= size - at:
        raise Malformed("members")
    members: list[DescribedGroupMember] = []
    for _ in range(count):
        member, at = read_described_group_member_v0(data, at, size)
        members.append(member)
    message.members = members
    return message, at


def write_described_group_v0(message: DescribedGroup, add: Add) -> None:
    if message.error_message is not None:
        raise Unwritable("error_message")
    if message.authorized_operations != -2147483648:
        raise Unwritable("authorized_operations")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    group_id = message.group_id.encode()
    add(pack_i2x2(message.error_code, len(group_id)))
    add(group_id)
    group_state = message.group_state.encode()
    add(pack_i2(len(group_state)))
    add(group_state)
    protocol_type = message.protocol_type.encode()
    add(pack_i2(len(protocol_type)))
    add(protocol_type)
    protocol_data = message.protocol_data.encode()
    add(pack_i2(len(protocol_data)))
    add(protocol_data)
    members = message.members
    add(pack_i4(len(members)))
    for member in members:
        write_described_group_member_v0(member, add)


# DescribeGroupsResponse in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[DescribeGroupsResponse, int]:
    message = new(DescribeGroupsResponse)
    message.throttle_time_ms = 0
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 14 <= size - at:
        raise Malformed("groups")
    groups: list[DescribedGroup] = []
    for _ in range(count):
        group, at = read_described_group_v0(data, at, size)
        groups.append(group)
    message.groups = groups
    return message, at


def write_v0(message: DescribeGroupsResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    groups = message.groups
    add(pack_i4(len(groups)))
    for group in groups:
        write_described_group_v0(group, add)


# DescribeGroupsResponse in versions 1–2
def read_v1(data: Buffer, at: int, size: int) -> tuple[DescribeGroupsResponse, int]:
    message = new(DescribeGroupsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 14 <= size - at:
        raise Malformed("groups")
    groups: list[DescribedGroup] = []
    for _ in range(count):
        group, at = read_described_group_v0(data, at, size)
        groups.append(group)
    message.groups = groups
    return message, at


def write_v1(message: DescribeGroupsResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    groups = message.groups
    add(pack_i4x2(message.throttle_time_ms, len(groups)))
    for group in groups:
        write_described_group_v0(group, add)


# DescribedGroup in version 3
def read_described_group_v3(data: Buffer, at: int, size: int) -> tuple[DescribedGroup, int]:
    message = new(DescribedGroup)
    message.error_message = None
    message.unknown_tags = ()
    message.error_code, length = unpack_i2x2(data, at)
    at += 4
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_state")
    message.group_state = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("protocol_type")
    message.protocol_type = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("protocol_data")
    message.protocol_data = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 14 <= size - at:
        raise Malformed("members")
    members: list[DescribedGroupMember] = []
    for _ in range(count):
        member, at = read_described_group_member_v0(data, at, size)
        members.append(member)
    message.members = members
    (message.authorized_operations,) = unpack_i4(data, at)
    at += 4
    return message, at


def write_described_group_v3(message: DescribedGroup, add: Add) -> None:
    if message.error_message is not None:
        raise Unwritable("error_message")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    group_id = message.group_id.encode()
    add(pack_i2x2(message.error_code, len(group_id)))
    add(group_id)
    group_state = message.group_state.encode()
    add(pack_i2(len(group_state)))
    add(group_state)
    protocol_type = message.protocol_type.encode()
    add(pack_i2(len(protocol_type)))
    add(protocol_type)
    protocol_data = message.protocol_data.encode()
    add(pack_i2(len(protocol_data)))
    add(protocol_data)
    members = message.members
    add(pack_i4(len(members)))
    for member in members:
        write_described_group_member_v0(member, add)
    add(pack_i4(message.authorized_operations))


# DescribeGroupsResponse in version 3
def read_v3(data: Buffer, at: int, size: int) -> tuple[DescribeGroupsResponse, int]:
    message = new(DescribeGroupsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 18 <= size - at:
        raise Malformed("groups")
    groups: list[DescribedGroup] = []
    for _ in range(count):
        group, at = read_described_group_v3(data, at, size)
        groups.append(group)
    message.groups = groups
    return message, at


def write_v3(message: DescribeGroupsResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    groups = message.groups
    add(pack_i4x2(message.throttle_time_ms, len(groups)))
    for group in groups:
        write_described_group_v3(group, add)


# DescribedGroupMember in version 4
def read_described_group_member_v4(data: Buffer, at: int, size: int) -> tuple[DescribedGroupMember, int]:
    message = new(DescribedGroupMember)
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
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
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("client_id")
    message.client_id = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("client_host")
    message.client_host = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i4(data, at)
    at += 4
    end = at + length
    if not at <= end <= size:
        raise Malformed("member_metadata")
    message.member_metadata = bytes(data[at:end])
    at = end
    (length,) = unpack_i4(data, at)
    at += 4
    end = at + length
    if not at <= end <= size:
        raise Malformed("member_assignment")
    message.member_assignment = bytes(data[at:end])
    at = end
    return message, at


def write_described_group_member_v4(message: DescribedGroupMember, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    member_id = message.member_id.encode()
    add(pack_i2(len(member_id)))
    add(member_id)
    group_instance_id = message.group_instance_id
    if group_instance_id is None:
        add(b"\xff\xff")
    else:
        group_instance_id_bytes = group_instance_id.encode()
        add(pack_i2(len(group_instance_id_bytes)))
        add(group_instance_id_bytes)
    client_id = message.client_id.encode()
    add(pack_i2(len(client_id)))
    add(client_id)
    client_host = message.client_host.encode()
    add(pack_i2(len(client_host)))
    add(client_host)
    member_metadata = message.member_metadata
    add(pack_i4(len(member_metadata)))
    if not isinstance(member_metadata, BYTES):
        raise Unwritable("member_metadata")
    add(member_metadata)
    member_assignment = message.member_assignment
    add(pack_i4(len(member_assignment)))
    if not isinstance(member_assignment, BYTES):
        raise Unwritable("member_assignment")
    add(member_assignment)


# DescribedGroup in version 4
def read_described_group_v4(data: Buffer, at: int, size: int) -> tuple[DescribedGroup, int]:
    message = new(DescribedGroup)
    message.error_message = None
    message.unknown_tags = ()
    message.error_code, length = unpack_i2x2(data, at)
    at += 4
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_state")
    message.group_state = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("protocol_type")
    message.protocol_type = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("protocol_data")
    message.protocol_data = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 16 <= size - at:
        raise Malformed("members")
    members: list[DescribedGroupMember] = []
    for _ in range(count):
        member, at = read_described_group_member_v4(data, at, size)
        members.append(member)
    message.members = members
    (message.authorized_operations,) = unpack_i4(data, at)
    at += 4
    return message, at


def write_described_group_v4(message: DescribedGroup, add: Add) -> None:
    if message.error_message is not None:
        raise Unwritable("error_message")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    group_id = message.group_id.encode()
    add(pack_i2x2(message.error_code, len(group_id)))
    add(group_id)
    group_state = message.group_state.encode()
    add(pack_i2(len(group_state)))
    add(group_state)
    protocol_type = message.protocol_type.encode()
    add(pack_i2(len(protocol_type)))
    add(protocol_type)
    protocol_data = message.protocol_data.encode()
    add(pack_i2(len(protocol_data)))
    add(protocol_data)
    members = message.members
    add(pack_i4(len(members)))
    for member in members:
        write_described_group_member_v4(member, add)
    add(pack_i4(message.authorized_operations))


# DescribeGroupsResponse in version 4
def read_v4(data: Buffer, at: int, size: int) -> tuple[DescribeGroupsResponse, int]:
    message = new(DescribeGroupsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 18 <= size - at:
        raise Malformed("groups")
    groups: list[DescribedGroup] = []
    for _ in range(count):
        group, at = read_described_group_v4(data, at, size)
        groups.append(group)
    message.groups = groups
    return message, at


def write_v4(message: DescribeGroupsResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    groups = message.groups
    add(pack_i4x2(message.throttle_time_ms, len(groups)))
    for group in groups:
        write_described_group_v4(group, add)


# DescribedGroupMember in versions 5–6
def read_described_group_member_v5(data: Buffer, at: int, size: int) -> tuple[DescribedGroupMember, int]:
    message = new(DescribedGroupMember)
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
        message.group_instance_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("group_instance_id")
        message.group_instance_id = str(data[at:end], "utf-8")
        at = end
    length = data[at]
    at += 1
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
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_uvarint(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("member_metadata")
    message.member_metadata = bytes(data[at:end])
    at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_uvarint(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("member_assignment")
    message.member_assignment = bytes(data[at:end])
    at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_described_group_member_v5(message: DescribedGroupMember, add: Add) -> None:
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
    client_id = message.client_id.encode()
    add(compact_string_length[len(client_id)])
    add(client_id)
    client_host = message.client_host.encode()
    add(compact_string_length[len(client_host)])
    add(client_host)
    member_metadata = message.member_metadata
    add(compact_length[len(member_metadata)])
    if not isinstance(member_metadata, BYTES):
        raise Unwritable("member_metadata")
    add(member_metadata)
    member_assignment = message.member_assignment
    add(compact_length[len(member_assignment)])
    if not isinstance(member_assignment, BYTES):
        raise Unwritable("member_assignment")
    add(member_assignment)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribedGroup in version 5
def read_described_group_v5(data: Buffer, at: int, size: int) -> tuple[DescribedGroup, int]:
    message = new(DescribedGroup)
    message.error_message = None
    message.unknown_tags = ()
    message.error_code, length = unpack_i2_u1(data, at)
    at += 3
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
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("protocol_type")
    message.protocol_type = str(data[at:end], "utf-8")
    at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("protocol_data")
    message.protocol_data = str(data[at:end], "utf-8")
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 7 <= size - at:
        raise Malformed("members")
    members: list[DescribedGroupMember] = []
    for _ in range(count):
        member, at = read_described_group_member_v5(data, at, size)
        members.append(member)
    message.members = members
    message.authorized_operations, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_described_group_v5(message: DescribedGroup, add: Add) -> None:
    if message.error_message is not None:
        raise Unwritable("error_message")
    add(pack_i2(message.error_code))
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    group_state = message.group_state.encode()
    add(compact_string_length[len(group_state)])
    add(group_state)
    protocol_type = message.protocol_type.encode()
    add(compact_string_length[len(protocol_type)])
    add(protocol_type)
    protocol_data = message.protocol_data.encode()
    add(compact_string_length[len(protocol_data)])
    add(protocol_data)
    members = message.members
    add(compact_length[len(members)])
    for member in members:
        write_described_group_member_v5(member, add)
    add(pack_i4(message.authorized_operations))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeGroupsResponse in version 5
def read_v5(data: Buffer, at: int, size: int) -> tuple[DescribeGroupsResponse, int]:
    message = new(DescribeGroupsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 12 <= size - at:
        raise Malformed("groups")
    groups: list[DescribedGroup] = []
    for _ in range(count):
        group, at = read_described_group_v5(data, at, size)
        groups.append(group)
    message.groups = groups
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v5(message: DescribeGroupsResponse, add: Add) -> None:
    add(pack_i4(message.throttle_time_ms))
    groups = message.groups
    add(compact_length[len(groups)])
    for group in groups:
        write_described_group_v5(group, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribedGroup in version 6
def read_described_group_v6(data: Buffer, at: int, size: int) -> tuple[DescribedGroup, int]:
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
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("protocol_type")
    message.protocol_type = str(data[at:end], "utf-8")
    at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("protocol_data")
    message.protocol_data = str(data[at:end], "utf-8")
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 7 <= size - at:
        raise Malformed("members")
    members: list[DescribedGroupMember] = []
    for _ in range(count):
        member, at = read_described_group_member_v5(data, at, size)
        members.append(member)
    message.members = members
    message.authorized_operations, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_described_group_v6(message: DescribedGroup, add: Add) -> None:
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
    protocol_type = message.protocol_type.encode()
    add(compact_string_length[len(protocol_type)])
    add(protocol_type)
    protocol_data = message.protocol_data.encode()
    add(compact_string_length[len(protocol_data)])
    add(protocol_data)
    members = message.members
    add(compact_length[len(members)])
    for member in members:
        write_described_group_member_v5(member, add)
    add(pack_i4(message.authorized_operations))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeGroupsResponse in version 6
def read_v6(data: Buffer, at: int, size: int) -> tuple[DescribeGroupsResponse, int]:
    message = new(DescribeGroupsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 13 <= size - at:
        raise Malformed("groups")
    groups: list[DescribedGroup] = []
    for _ in range(count):
        group, at = read_described_group_v6(data, at, size)
        groups.append(group)
    message.groups = groups
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v6(message: DescribeGroupsResponse, add: Add) -> None:
    add(pack_i4(message.throttle_time_ms))
    groups = message.groups
    add(compact_length[len(groups)])
    for group in groups:
        write_described_group_v6(group, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[DescribeGroupsResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v1, write_v1),
    3: (read_v3, write_v3),
    4: (read_v4, write_v4),
    5: (read_v5, write_v5),
    6: (read_v6, write_v6),
}

# what JSON and error messages know of the fields
DescribedGroupMember.FIELDS = (
    Field("member_id", "memberId", "string", (0, 6)),
    Field("group_instance_id", "groupInstanceId", "string", (4, 6), nullable=(4, 6), ignorable=True),
    Field("client_id", "clientId", "string", (0, 6)),
    Field("client_host", "clientHost", "string", (0, 6)),
    Field("member_metadata", "memberMetadata", "bytes", (0, 6)),
    Field("member_assignment", "memberAssignment", "bytes", (0, 6)),
)
DescribedGroup.FIELDS = (
    Field("error_code", "errorCode", "int16", (0, 6)),
    Field("error_message", "errorMessage", "string", (6, 6), nullable=(6, 6)),
    Field("group_id", "groupId", "string", (0, 6)),
    Field("group_state", "groupState", "string", (0, 6)),
    Field("protocol_type", "protocolType", "string", (0, 6)),
    Field("protocol_data", "protocolData", "string", (0, 6)),
    Field("members", "members", "[]DescribedGroupMember", (0, 6), struct=DescribedGroupMember),
    Field("authorized_operations", "authorizedOperations", "int32", (3, 6)),
)
DescribeGroupsResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (1, 6), ignorable=True),
    Field("groups", "groups", "[]DescribedGroup", (0, 6), struct=DescribedGroup),
)
