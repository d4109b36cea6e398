"""LeaveGroupRequest, versions 0–5: its classes, and one read and write pair per layout.

Generated from schemas/LeaveGroupRequest.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import Factory, define

from kclient.protocol.message import Field, Message, Struct
from kclient.protocol.primitives import (
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
pack_i4: Final = struct.Struct(">i").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from


@define(weakref_slot=False)
class MemberIdentity(Struct):
    """The members that leave, from version 3 on; a consumer names only itself, an administrator may name
    many.

    Attributes:
        member_id: The leaving member's id; empty when an administrator removes a static member by its
            instance id alone.
        group_instance_id: The static name of the member to remove; null for a dynamic one.
        reason: Why the member leaves, at most 255 characters, for the broker's log; null for no reason given.
    """

    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None


@define(weakref_slot=False)
class LeaveGroupRequest(Message):
    """Takes members out of a classic group at once, so that the others need not wait for a session timeout.

    Attributes:
        group_id: The group to be left.
        member_id: The one member that leaves; versions below 3 take a single one.
        members: The members that leave, from version 3 on; a consumer names only itself, an administrator may
            name many.
    """

    NAME: ClassVar[str] = "LeaveGroupRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 13
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_SINCE: ClassVar[int | None] = 4

    group_id: str = ""
    member_id: str = ""
    members: list[MemberIdentity] = Factory(list)


# LeaveGroupRequest in versions 0–2
def read_v0(data: Buffer, at: int, size: int) -> tuple[LeaveGroupRequest, int]:
    message = new(LeaveGroupRequest)
    message.members = []
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("member_id")
    message.member_id = str(data[at:end], "utf-8")
    at = end
    return message, at


def write_v0(message: LeaveGroupRequest, add: Add) -> None:
    if message.members != []:
        raise Unwritable("members")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    group_id = message.group_id.encode()
    add(pack_i2(len(group_id)))
    add(group_id)
    member_id = message.member_id.encode()
    add(pack_i2(len(member_id)))
    add(member_id)


# MemberIdentity in version 3
def read_member_identity_v3(data: Buffer, at: int, size: int) -> tuple[MemberIdentity, int]:
    message = new(MemberIdentity)
    message.reason = None
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
    return message, at


def write_member_identity_v3(message: MemberIdentity, add: Add) -> None:
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


# LeaveGroupRequest in version 3
def read_v3(data: Buffer, at: int, size: int) -> tuple[LeaveGroupRequest, int]:
    message = new(LeaveGroupRequest)
    message.member_id = ""
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
    if not 0 <= count * 4 <= size - at:
        raise Malformed("members")
    members: list[MemberIdentity] = []
    for _ in range(count):
        member, at = read_member_identity_v3(data, at, size)
        members.append(member)
    message.members = members
    return message, at


def write_v3(message: LeaveGroupRequest, add: Add) -> None:
    if message.member_id != "":
        raise Unwritable("member_id")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    group_id = message.group_id.encode()
    add(pack_i2(len(group_id)))
    add(group_id)
    members = message.members
    add(pack_i4(len(members)))
    for member in members:
        write_member_identity_v3(member, add)


# MemberIdentity in version 4
def read_member_identity_v4(data: Buffer, at: int, size: int) -> tuple[MemberIdentity, int]:
    message = new(MemberIdentity)
    message.reason = None
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
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_member_identity_v4(message: MemberIdentity, add: Add) -> None:
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
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# LeaveGroupRequest in version 4
def read_v4(data: Buffer, at: int, size: int) -> tuple[LeaveGroupRequest, int]:
    message = new(LeaveGroupRequest)
    message.member_id = ""
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
        raise Malformed("members")
    members: list[MemberIdentity] = []
    for _ in range(count):
        member, at = read_member_identity_v4(data, at, size)
        members.append(member)
    message.members = members
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v4(message: LeaveGroupRequest, add: Add) -> None:
    if message.member_id != "":
        raise Unwritable("member_id")
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    members = message.members
    add(compact_length[len(members)])
    for member in members:
        write_member_identity_v4(member, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# MemberIdentity in version 5
def read_member_identity_v5(data: Buffer, at: int, size: int) -> tuple[MemberIdentity, int]:
    message = new(MemberIdentity)
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
    if length == 0:
        message.reason = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("reason")
        message.reason = str(data[at:end], "utf-8")
        at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_member_identity_v5(message: MemberIdentity, add: Add) -> None:
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
    reason = message.reason
    if reason is None:
        add(b"\x00")
    else:
        reason_bytes = reason.encode()
        add(compact_string_length[len(reason_bytes)])
        add(reason_bytes)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# LeaveGroupRequest in version 5
def read_v5(data: Buffer, at: int, size: int) -> tuple[LeaveGroupRequest, int]:
    message = new(LeaveGroupRequest)
    message.member_id = ""
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
    if not 0 <= count * 4 <= size - at:
        raise Malformed("members")
    members: list[MemberIdentity] = []
    for _ in range(count):
        member, at = read_member_identity_v5(data, at, size)
        members.append(member)
    message.members = members
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v5(message: LeaveGroupRequest, add: Add) -> None:
    if message.member_id != "":
        raise Unwritable("member_id")
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    members = message.members
    add(compact_length[len(members)])
    for member in members:
        write_member_identity_v5(member, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[LeaveGroupRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v0, write_v0),
    3: (read_v3, write_v3),
    4: (read_v4, write_v4),
    5: (read_v5, write_v5),
}

# what JSON and error messages know of the fields
MemberIdentity.FIELDS = (
    Field("member_id", "memberId", "string", (3, 5)),
    Field("group_instance_id", "groupInstanceId", "string", (3, 5), nullable=(3, 5)),
    Field("reason", "reason", "string", (5, 5), nullable=(5, 5), ignorable=True),
)
LeaveGroupRequest.FIELDS = (
    Field("group_id", "groupId", "string", (0, 5)),
    Field("member_id", "memberId", "string", (0, 2)),
    Field("members", "members", "[]MemberIdentity", (3, 5), struct=MemberIdentity),
)
