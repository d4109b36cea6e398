"""LeaveGroupResponse, versions 0–5: its classes, and one read and write pair per layout.

Generated from schemas/LeaveGroupResponse.json by `python -m codegen`; edits here are lost.
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
pack_i4_i2: Final = struct.Struct(">ih").pack
pack_i4_i2_i4: Final = struct.Struct(">ihi").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i2_u1: Final = struct.Struct(">hB").unpack_from
unpack_i4_i2: Final = struct.Struct(">ih").unpack_from
unpack_i4_i2_i4: Final = struct.Struct(">ihi").unpack_from
unpack_i4_i2_u1: Final = struct.Struct(">ihB").unpack_from


@define(weakref_slot=False)
class MemberResponse(Struct):
    """The result for each named member, from version 3 on.

    Attributes:
        member_id: The member id this result is about, as it was asked; empty if only the instance id was
            given.
        group_instance_id: The static name this result is about, as it was asked; null if none was given.
        error_code: 0 when the member is out; UNKNOWN_MEMBER_ID (25) when it was not in the group.
    """

    member_id: str = ""
    group_instance_id: str | None = ""
    error_code: int = 0


@define(weakref_slot=False)
class LeaveGroupResponse(Message):
    """Confirms who has left the group; a consumer on its way out only logs errors.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Since version 2 the answer is immediate and
            the client must stay silent that long; before, the broker had already held the answer back.
        error_code: 0, or why the request as a whole failed; below version 3 also the result for the one
            member.
        members: The result for each named member, from version 3 on.
    """

    NAME: ClassVar[str] = "LeaveGroupResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 13
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_SINCE: ClassVar[int | None] = 4

    throttle_time_ms: int = 0
    error_code: int = 0
    members: list[MemberResponse] = Factory(list)


# LeaveGroupResponse in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[LeaveGroupResponse, int]:
    message = new(LeaveGroupResponse)
    message.throttle_time_ms = 0
    message.members = []
    message.unknown_tags = ()
    (message.error_code,) = unpack_i2(data, at)
    at += 2
    return message, at


def write_v0(message: LeaveGroupResponse, add: Add) -> None:
    if message.members != []:
        raise Unwritable("members")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i2(message.error_code))


# LeaveGroupResponse in versions 1–2
def read_v1(data: Buffer, at: int, size: int) -> tuple[LeaveGroupResponse, int]:
    message = new(LeaveGroupResponse)
    message.members = []
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code = unpack_i4_i2(data, at)
    at += 6
    return message, at


def write_v1(message: LeaveGroupResponse, add: Add) -> None:
    if message.members != []:
        raise Unwritable("members")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4_i2(message.throttle_time_ms, message.error_code))


# MemberResponse in version 3
def read_member_response_v3(data: Buffer, at: int, size: int) -> tuple[MemberResponse, int]:
    message = new(MemberResponse)
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
    (message.error_code,) = unpack_i2(data, at)
    at += 2
    return message, at


def write_member_response_v3(message: MemberResponse, add: Add) -> None:
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
    add(pack_i2(message.error_code))


# LeaveGroupResponse in version 3
def read_v3(data: Buffer, at: int, size: int) -> tuple[LeaveGroupResponse, int]:
    message = new(LeaveGroupResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, count = unpack_i4_i2_i4(data, at)
    at += 10
    if not 0 <= count * 6 <= size - at:
        raise Malformed("members")
    members: list[MemberResponse] = []
    for _ in range(count):
        member, at = read_member_response_v3(data, at, size)
        members.append(member)
    message.members = members
    return message, at


def write_v3(message: LeaveGroupResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    members = message.members
    add(pack_i4_i2_i4(message.throttle_time_ms, message.error_code, len(members)))
    for member in members:
        write_member_response_v3(member, add)


# MemberResponse in versions 4–5
def read_member_response_v4(data: Buffer, at: int, size: int) -> tuple[MemberResponse, int]:
    message = new(MemberResponse)
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
    message.error_code, tags = unpack_i2_u1(data, at)
    at += 3
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_member_response_v4(message: MemberResponse, add: Add) -> None:
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
    add(pack_i2(message.error_code))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# LeaveGroupResponse in versions 4–5
def read_v4(data: Buffer, at: int, size: int) -> tuple[LeaveGroupResponse, int]:
    message = new(LeaveGroupResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, count = unpack_i4_i2_u1(data, at)
    at += 7
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 5 <= size - at:
        raise Malformed("members")
    members: list[MemberResponse] = []
    for _ in range(count):
        member, at = read_member_response_v4(data, at, size)
        members.append(member)
    message.members = members
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v4(message: LeaveGroupResponse, add: Add) -> None:
    add(pack_i4_i2(message.throttle_time_ms, message.error_code))
    members = message.members
    add(compact_length[len(members)])
    for member in members:
        write_member_response_v4(member, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[LeaveGroupResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v1, write_v1),
    3: (read_v3, write_v3),
    4: (read_v4, write_v4),
    5: (read_v4, write_v4),
}

# what JSON and error messages know of the fields
MemberResponse.FIELDS = (
    Field("member_id", "memberId", "string", (3, 5)),
    Field("group_instance_id", "groupInstanceId", "string", (3, 5), nullable=(3, 5)),
    Field("error_code", "errorCode", "int16", (3, 5)),
)
LeaveGroupResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (1, 5), ignorable=True),
    Field("error_code", "errorCode", "int16", (0, 5)),
    Field("members", "members", "[]MemberResponse", (3, 5), struct=MemberResponse),
)
