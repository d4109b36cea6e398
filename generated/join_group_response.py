"""JoinGroupResponse, versions 0–9: its classes, and one read and write pair per layout.

Generated from schemas/JoinGroupResponse.json by `python -m codegen`; edits here are lost.
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

pack_bool: Final = struct.Struct(">?").pack
pack_i2: Final = struct.Struct(">h").pack
pack_i2_i4_i2: Final = struct.Struct(">hih").pack
pack_i4: Final = struct.Struct(">i").pack
pack_i4_i2_i4: Final = struct.Struct(">ihi").pack
pack_i4_i2_i4_i2: Final = struct.Struct(">ihih").pack
unpack_bool_u1: Final = struct.Struct(">?B").unpack_from
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i2_i4_i2: Final = struct.Struct(">hih").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_i2_i4_i2: Final = struct.Struct(">ihih").unpack_from
unpack_i4_i2_i4_u1: Final = struct.Struct(">ihiB").unpack_from


@define(weakref_slot=False)
class JoinGroupResponseMember(Struct):
    """All members with their subscriptions for the leader; empty for everybody else.

    Attributes:
        member_id: The coordinator's id for that member, by which the leader addresses its assignment.
        group_instance_id: That member's static name, which keeps its place in the assignors' order over
            restarts; null if it is dynamic.
        metadata: What that member sent for the chosen assignor: for consumers a ConsumerProtocolSubscription
            with its int16 version in front.
    """

    member_id: str = ""
    group_instance_id: str | None = None
    metadata: bytes = b""


@define(weakref_slot=False)
class JoinGroupResponse(Message):
    """Starts a generation of the group: everybody learns the generation and the leader, and the leader also
    who takes part.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Since version 3 the answer is immediate and
            the client must stay silent that long; before, the broker had already held the answer back.
        error_code: 0 when the member is in; MEMBER_ID_REQUIRED (79) means join again at once with the
            MemberId of this answer.
        generation_id: Number of the generation that begins; it goes into every SyncGroup, Heartbeat and
            commit until the next join. -1 on error.
        protocol_type: The group's kind, to be compared with the one asked for; null on error.
        protocol_name: The assignor the coordinator chose by the members' votes; null (before version 7 empty)
            on error.
        leader: Member id of the leader. Whoever finds its own id here computes the assignment for all.
        skip_assignment: True when a static leader came back to an unchanged group: it sends SyncGroup without
            assignments but keeps watching the metadata (KIP-814).
        member_id: The id of this member; with MEMBER_ID_REQUIRED the one to join with next.
        members: All members with their subscriptions for the leader; empty for everybody else.
    """

    NAME: ClassVar[str] = "JoinGroupResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 11
    VERSIONS: ClassVar[tuple[int, int]] = (0, 9)
    FLEXIBLE_SINCE: ClassVar[int | None] = 6

    throttle_time_ms: int = 0
    error_code: int = 0
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = ""
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: list[JoinGroupResponseMember] = Factory(list)


# JoinGroupResponseMember in versions 0–4
def read_join_group_response_member_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[JoinGroupResponseMember, int]:
    message = new(JoinGroupResponseMember)
    message.group_instance_id = None
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("member_id")
    message.member_id = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i4(data, at)
    at += 4
    end = at + length
    if not at <= end <= size:
        raise Malformed("metadata")
    message.metadata = bytes(data[at:end])
    at = end
    return message, at


def write_join_group_response_member_v0(message: JoinGroupResponseMember, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    member_id = message.member_id.encode()
    add(pack_i2(len(member_id)))
    add(member_id)
    metadata = message.metadata
    add(pack_i4(len(metadata)))
    if not isinstance(metadata, BYTES):
        raise Unwritable("metadata")
    add(metadata)


# JoinGroupResponse in versions 0–1
def read_v0(data: Buffer, at: int, size: int) -> tuple[JoinGroupResponse, int]:
    message = new(JoinGroupResponse)
    message.throttle_time_ms = 0
    message.protocol_type = None
    message.skip_assignment = False
    message.unknown_tags = ()
    message.error_code, message.generation_id, length = unpack_i2_i4_i2(data, at)
    at += 8
    end = at + length
    if not at <= end <= size:
        raise Malformed("protocol_name")
    message.protocol_name = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("leader")
    message.leader = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("member_id")
    message.member_id = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("members")
    members: list[JoinGroupResponseMember] = []
    for _ in range(count):
        member, at = read_join_group_response_member_v0(data, at, size)
        members.append(member)
    message.members = members
    return message, at


def write_v0(message: JoinGroupResponse, add: Add) -> None:
    if message.skip_assignment:
        raise Unwritable("skip_assignment")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    if message.protocol_name is None:
        raise Unwritable("protocol_name")
    protocol_name = message.protocol_name.encode()
    add(pack_i2_i4_i2(message.error_code, message.generation_id, len(protocol_name)))
    add(protocol_name)
    leader = message.leader.encode()
    add(pack_i2(len(leader)))
    add(leader)
    member_id = message.member_id.encode()
    add(pack_i2(len(member_id)))
    add(member_id)
    members = message.members
    add(pack_i4(len(members)))
    for member in members:
        write_join_group_response_member_v0(member, add)


# JoinGroupResponse in versions 2–4
def read_v2(data: Buffer, at: int, size: int) -> tuple[JoinGroupResponse, int]:
    message = new(JoinGroupResponse)
    message.protocol_type = None
    message.skip_assignment = False
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, message.generation_id, length = unpack_i4_i2_i4_i2(data, at)
    at += 12
    end = at + length
    if not at <= end <= size:
        raise Malformed("protocol_name")
    message.protocol_name = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("leader")
    message.leader = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("member_id")
    message.member_id = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("members")
    members: list[JoinGroupResponseMember] = []
    for _ in range(count):
        member, at = read_join_group_response_member_v0(data, at, size)
        members.append(member)
    message.members = members
    return message, at


def write_v2(message: JoinGroupResponse, add: Add) -> None:
    if message.skip_assignment:
        raise Unwritable("skip_assignment")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    if message.protocol_name is None:
        raise Unwritable("protocol_name")
    protocol_name = message.protocol_name.encode()
    add(
        pack_i4_i2_i4_i2(
            message.throttle_time_ms,
            message.error_code,
            message.generation_id,
            len(protocol_name),
        )
    )
    add(protocol_name)
    leader = message.leader.encode()
    add(pack_i2(len(leader)))
    add(leader)
    member_id = message.member_id.encode()
    add(pack_i2(len(member_id)))
    add(member_id)
    members = message.members
    add(pack_i4(len(members)))
    for member in members:
        write_join_group_response_member_v0(member, add)


# JoinGroupResponseMember in version 5
def read_join_group_response_member_v5(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[JoinGroupResponseMember, int]:
    message = new(JoinGroupResponseMember)
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
    (length,) = unpack_i4(data, at)
    at += 4
    end = at + length
    if not at <= end <= size:
        raise Malformed("metadata")
    message.metadata = bytes(data[at:end])
    at = end
    return message, at


def write_join_group_response_member_v5(message: JoinGroupResponseMember, add: Add) -> None:
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
    metadata = message.metadata
    add(pack_i4(len(metadata)))
    if not isinstance(metadata, BYTES):
        raise Unwritable("metadata")
    add(metadata)


# JoinGroupResponse in version 5
def read_v5(data: Buffer, at: int, size: int) -> tuple[JoinGroupResponse, int]:
    message = new(JoinGroupResponse)
    message.protocol_type = None
    message.skip_assignment = False
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, message.generation_id, length = unpack_i4_i2_i4_i2(data, at)
    at += 12
    end = at + length
    if not at <= end <= size:
        raise Malformed("protocol_name")
    message.protocol_name = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("leader")
    message.leader = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("member_id")
    message.member_id = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 8 <= size - at:
        raise Malformed("members")
    members: list[JoinGroupResponseMember] = []
    for _ in range(count):
        member, at = read_join_group_response_member_v5(data, at, size)
        members.append(member)
    message.members = members
    return message, at


def write_v5(message: JoinGroupResponse, add: Add) -> None:
    if message.skip_assignment:
        raise Unwritable("skip_assignment")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    if message.protocol_name is None:
        raise Unwritable("protocol_name")
    protocol_name = message.protocol_name.encode()
    add(
        pack_i4_i2_i4_i2(
            message.throttle_time_ms,
            message.error_code,
            message.generation_id,
            len(protocol_name),
        )
    )
    add(protocol_name)
    leader = message.leader.encode()
    add(pack_i2(len(leader)))
    add(leader)
    member_id = message.member_id.encode()
    add(pack_i2(len(member_id)))
    add(member_id)
    members = message.members
    add(pack_i4(len(members)))
    for member in members:
        write_join_group_response_member_v5(member, add)


# JoinGroupResponseMember in versions 6–9
def read_join_group_response_member_v6(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[JoinGroupResponseMember, int]:
    message = new(JoinGroupResponseMember)
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
        length, at = read_uvarint(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("metadata")
    message.metadata = bytes(data[at:end])
    at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_join_group_response_member_v6(message: JoinGroupResponseMember, add: Add) -> None:
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
    metadata = message.metadata
    add(compact_length[len(metadata)])
    if not isinstance(metadata, BYTES):
        raise Unwritable("metadata")
    add(metadata)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# JoinGroupResponse in version 6
def read_v6(data: Buffer, at: int, size: int) -> tuple[JoinGroupResponse, int]:
    message = new(JoinGroupResponse)
    message.protocol_type = None
    message.skip_assignment = False
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, message.generation_id, length = unpack_i4_i2_i4_u1(data, at)
    at += 11
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("protocol_name")
    message.protocol_name = str(data[at:end], "utf-8")
    at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("leader")
    message.leader = str(data[at:end], "utf-8")
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
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 4 <= size - at:
        raise Malformed("members")
    members: list[JoinGroupResponseMember] = []
    for _ in range(count):
        member, at = read_join_group_response_member_v6(data, at, size)
        members.append(member)
    message.members = members
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v6(message: JoinGroupResponse, add: Add) -> None:
    if message.skip_assignment:
        raise Unwritable("skip_assignment")
    if message.protocol_name is None:
        raise Unwritable("protocol_name")
    add(pack_i4_i2_i4(message.throttle_time_ms, message.error_code, message.generation_id))
    protocol_name = message.protocol_name.encode()
    add(compact_string_length[len(protocol_name)])
    add(protocol_name)
    leader = message.leader.encode()
    add(compact_string_length[len(leader)])
    add(leader)
    member_id = message.member_id.encode()
    add(compact_string_length[len(member_id)])
    add(member_id)
    members = message.members
    add(compact_length[len(members)])
    for member in members:
        write_join_group_response_member_v6(member, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# JoinGroupResponse in versions 7–8
def read_v7(data: Buffer, at: int, size: int) -> tuple[JoinGroupResponse, int]:
    message = new(JoinGroupResponse)
    message.skip_assignment = False
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, message.generation_id, length = unpack_i4_i2_i4_u1(data, at)
    at += 11
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.protocol_type = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("protocol_type")
        message.protocol_type = str(data[at:end], "utf-8")
        at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.protocol_name = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("protocol_name")
        message.protocol_name = str(data[at:end], "utf-8")
        at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("leader")
    message.leader = str(data[at:end], "utf-8")
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
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 4 <= size - at:
        raise Malformed("members")
    members: list[JoinGroupResponseMember] = []
    for _ in range(count):
        member, at = read_join_group_response_member_v6(data, at, size)
        members.append(member)
    message.members = members
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v7(message: JoinGroupResponse, add: Add) -> None:
    if message.skip_assignment:
        raise Unwritable("skip_assignment")
    add(pack_i4_i2_i4(message.throttle_time_ms, message.error_code, message.generation_id))
    protocol_type = message.protocol_type
    if protocol_type is None:
        add(b"\x00")
    else:
        protocol_type_bytes = protocol_type.encode()
        add(compact_string_length[len(protocol_type_bytes)])
        add(protocol_type_bytes)
    protocol_name = message.protocol_name
    if protocol_name is None:
        add(b"\x00")
    else:
        protocol_name_bytes = protocol_name.encode()
        add(compact_string_length[len(protocol_name_bytes)])
        add(protocol_name_bytes)
    leader = message.leader.encode()
    add(compact_string_length[len(leader)])
    add(leader)
    member_id = message.member_id.encode()
    add(compact_string_length[len(member_id)])
    add(member_id)
    members = message.members
    add(compact_length[len(members)])
    for member in members:
        write_join_group_response_member_v6(member, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# JoinGroupResponse in version 9
def read_v9(data: Buffer, at: int, size: int) -> tuple[JoinGroupResponse, int]:
    message = new(JoinGroupResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, message.generation_id, length = unpack_i4_i2_i4_u1(data, at)
    at += 11
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.protocol_type = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("protocol_type")
        message.protocol_type = str(data[at:end], "utf-8")
        at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.protocol_name = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("protocol_name")
        message.protocol_name = str(data[at:end], "utf-8")
        at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("leader")
    message.leader = str(data[at:end], "utf-8")
    at = end
    message.skip_assignment, length = unpack_bool_u1(data, at)
    at += 2
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("member_id")
    message.member_id = str(data[at:end], "utf-8")
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 4 <= size - at:
        raise Malformed("members")
    members: list[JoinGroupResponseMember] = []
    for _ in range(count):
        member, at = read_join_group_response_member_v6(data, at, size)
        members.append(member)
    message.members = members
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v9(message: JoinGroupResponse, add: Add) -> None:
    add(pack_i4_i2_i4(message.throttle_time_ms, message.error_code, message.generation_id))
    protocol_type = message.protocol_type
    if protocol_type is None:
        add(b"\x00")
    else:
        protocol_type_bytes = protocol_type.encode()
        add(compact_string_length[len(protocol_type_bytes)])
        add(protocol_type_bytes)
    protocol_name = message.protocol_name
    if protocol_name is None:
        add(b"\x00")
    else:
        protocol_name_bytes = protocol_name.encode()
        add(compact_string_length[len(protocol_name_bytes)])
        add(protocol_name_bytes)
    leader = message.leader.encode()
    add(compact_string_length[len(leader)])
    add(leader)
    add(pack_bool(message.skip_assignment))
    member_id = message.member_id.encode()
    add(compact_string_length[len(member_id)])
    add(member_id)
    members = message.members
    add(compact_length[len(members)])
    for member in members:
        write_join_group_response_member_v6(member, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[JoinGroupResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v2, write_v2),
    3: (read_v2, write_v2),
    4: (read_v2, write_v2),
    5: (read_v5, write_v5),
    6: (read_v6, write_v6),
    7: (read_v7, write_v7),
    8: (read_v7, write_v7),
    9: (read_v9, write_v9),
}

# what JSON and error messages know of the fields
JoinGroupResponseMember.FIELDS = (
    Field("member_id", "memberId", "string", (0, 9)),
    Field("group_instance_id", "groupInstanceId", "string", (5, 9), nullable=(5, 9), ignorable=True),
    Field("metadata", "metadata", "bytes", (0, 9)),
)
JoinGroupResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (2, 9), ignorable=True),
    Field("error_code", "errorCode", "int16", (0, 9)),
    Field("generation_id", "generationId", "int32", (0, 9)),
    Field("protocol_type", "protocolType", "string", (7, 9), nullable=(7, 9), ignorable=True),
    Field("protocol_name", "protocolName", "string", (0, 9), nullable=(7, 9)),
    Field("leader", "leader", "string", (0, 9)),
    Field("skip_assignment", "skipAssignment", "bool", (9, 9)),
    Field("member_id", "memberId", "string", (0, 9)),
    Field("members", "members", "[]JoinGroupResponseMember", (0, 9), struct=JoinGroupResponseMember),
)
