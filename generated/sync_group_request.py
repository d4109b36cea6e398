"""SyncGroupRequest, versions 0–5: its classes, and one read and write pair per layout.

Generated from schemas/SyncGroupRequest.json by `python -m codegen`; edits here are lost.
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
pack_i4: Final = struct.Struct(">i").pack
pack_i4_i2: Final = struct.Struct(">ih").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_i2: Final = struct.Struct(">ih").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from


@define(weakref_slot=False)
class SyncGroupRequestAssignment(Struct):
    """The leader's result, one entry for every member; empty from followers, and from a leader told to skip
    the assignment.

    Attributes:
        member_id: The member that gets this assignment.
        assignment: What that member is to do: for consumers a ConsumerProtocolAssignment with its int16
            version in front.
    """

    member_id: str = ""
    assignment: bytes = b""


@define(weakref_slot=False)
class SyncGroupRequest(Message):
    """Second half of a classic rebalance: the leader hands in everybody's assignment, the others ask for
    theirs.

    Attributes:
        group_id: The group in which the generation was just joined.
        generation_id: The generation of the JoinGroup answer; another one is refused with ILLEGAL_GENERATION.
        member_id: The id of the asking member as JoinGroup gave it.
        group_instance_id: The asking member's static name, so that a second process with that name is fenced;
            null if it is dynamic.
        protocol_type: The group kind this member understood from JoinGroup; the coordinator refuses one that
            differs. From version 5 null is refused too.
        protocol_name: The assignor this member understood from JoinGroup; the coordinator refuses one that
            differs. From version 5 null is refused too.
        assignments: The leader's result, one entry for every member; empty from followers, and from a leader
            told to skip the assignment.
    """

    NAME: ClassVar[str] = "SyncGroupRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 14
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_SINCE: ClassVar[int | None] = 4

    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: list[SyncGroupRequestAssignment] = Factory(list)


# SyncGroupRequestAssignment in versions 0–3
def read_sync_group_request_assignment_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[SyncGroupRequestAssignment, int]:
    message = new(SyncGroupRequestAssignment)
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
        raise Malformed("assignment")
    message.assignment = bytes(data[at:end])
    at = end
    return message, at


def write_sync_group_request_assignment_v0(message: SyncGroupRequestAssignment, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    member_id = message.member_id.encode()
    add(pack_i2(len(member_id)))
    add(member_id)
    assignment = message.assignment
    add(pack_i4(len(assignment)))
    if not isinstance(assignment, BYTES):
        raise Unwritable("assignment")
    add(assignment)


# SyncGroupRequest in versions 0–2
def read_v0(data: Buffer, at: int, size: int) -> tuple[SyncGroupRequest, int]:
    message = new(SyncGroupRequest)
    message.group_instance_id = None
    message.protocol_type = None
    message.protocol_name = None
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    message.generation_id, length = unpack_i4_i2(data, at)
    at += 6
    end = at + length
    if not at <= end <= size:
        raise Malformed("member_id")
    message.member_id = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("assignments")
    assignments: list[SyncGroupRequestAssignment] = []
    for _ in range(count):
        assignment, at = read_sync_group_request_assignment_v0(data, at, size)
        assignments.append(assignment)
    message.assignments = assignments
    return message, at


def write_v0(message: SyncGroupRequest, add: Add) -> None:
    if message.group_instance_id is not None:
        raise Unwritable("group_instance_id")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    group_id = message.group_id.encode()
    add(pack_i2(len(group_id)))
    add(group_id)
    member_id = message.member_id.encode()
    add(pack_i4_i2(message.generation_id, len(member_id)))
    add(member_id)
    assignments = message.assignments
    add(pack_i4(len(assignments)))
    for assignment in assignments:
        write_sync_group_request_assignment_v0(assignment, add)


# SyncGroupRequest in version 3
def read_v3(data: Buffer, at: int, size: int) -> tuple[SyncGroupRequest, int]:
    message = new(SyncGroupRequest)
    message.protocol_type = None
    message.protocol_name = None
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    message.generation_id, length = unpack_i4_i2(data, at)
    at += 6
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
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("assignments")
    assignments: list[SyncGroupRequestAssignment] = []
    for _ in range(count):
        assignment, at = read_sync_group_request_assignment_v0(data, at, size)
        assignments.append(assignment)
    message.assignments = assignments
    return message, at


def write_v3(message: SyncGroupRequest, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    group_id = message.group_id.encode()
    add(pack_i2(len(group_id)))
    add(group_id)
    member_id = message.member_id.encode()
    add(pack_i4_i2(message.generation_id, len(member_id)))
    add(member_id)
    group_instance_id = message.group_instance_id
    if group_instance_id is None:
        add(b"\xff\xff")
    else:
        group_instance_id_bytes = group_instance_id.encode()
        add(pack_i2(len(group_instance_id_bytes)))
        add(group_instance_id_bytes)
    assignments = message.assignments
    add(pack_i4(len(assignments)))
    for assignment in assignments:
        write_sync_group_request_assignment_v0(assignment, add)


# SyncGroupRequestAssignment in versions 4–5
def read_sync_group_request_assignment_v4(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[SyncGroupRequestAssignment, int]:
    message = new(SyncGroupRequestAssignment)
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
        length, at = read_uvarint(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("assignment")
    message.assignment = bytes(data[at:end])
    at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_sync_group_request_assignment_v4(message: SyncGroupRequestAssignment, add: Add) -> None:
    member_id = message.member_id.encode()
    add(compact_string_length[len(member_id)])
    add(member_id)
    assignment = message.assignment
    add(compact_length[len(assignment)])
    if not isinstance(assignment, BYTES):
        raise Unwritable("assignment")
    add(assignment)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# SyncGroupRequest in version 4
def read_v4(data: Buffer, at: int, size: int) -> tuple[SyncGroupRequest, int]:
    message = new(SyncGroupRequest)
    message.protocol_type = None
    message.protocol_name = None
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
    message.generation_id, length = unpack_i4_u1(data, at)
    at += 5
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
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("assignments")
    assignments: list[SyncGroupRequestAssignment] = []
    for _ in range(count):
        assignment, at = read_sync_group_request_assignment_v4(data, at, size)
        assignments.append(assignment)
    message.assignments = assignments
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v4(message: SyncGroupRequest, add: Add) -> None:
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    add(pack_i4(message.generation_id))
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
    assignments = message.assignments
    add(compact_length[len(assignments)])
    for assignment in assignments:
        write_sync_group_request_assignment_v4(assignment, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# SyncGroupRequest in version 5
def read_v5(data: Buffer, at: int, size: int) -> tuple[SyncGroupRequest, int]:
    message = new(SyncGroupRequest)
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
    message.generation_id, length = unpack_i4_u1(data, at)
    at += 5
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
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("assignments")
    assignments: list[SyncGroupRequestAssignment] = []
    for _ in range(count):
        assignment, at = read_sync_group_request_assignment_v4(data, at, size)
        assignments.append(assignment)
    message.assignments = assignments
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v5(message: SyncGroupRequest, add: Add) -> None:
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    add(pack_i4(message.generation_id))
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
    assignments = message.assignments
    add(compact_length[len(assignments)])
    for assignment in assignments:
        write_sync_group_request_assignment_v4(assignment, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[SyncGroupRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v0, write_v0),
    3: (read_v3, write_v3),
    4: (read_v4, write_v4),
    5: (read_v5, write_v5),
}

# what JSON and error messages know of the fields
SyncGroupRequestAssignment.FIELDS = (
    Field("member_id", "memberId", "string", (0, 5)),
    Field("assignment", "assignment", "bytes", (0, 5)),
)
SyncGroupRequest.FIELDS = (
    Field("group_id", "groupId", "string", (0, 5)),
    Field("generation_id", "generationId", "int32", (0, 5)),
    Field("member_id", "memberId", "string", (0, 5)),
    Field("group_instance_id", "groupInstanceId", "string", (3, 5), nullable=(3, 5)),
    Field("protocol_type", "protocolType", "string", (5, 5), nullable=(5, 5), ignorable=True),
    Field("protocol_name", "protocolName", "string", (5, 5), nullable=(5, 5), ignorable=True),
    Field(
        "assignments",
        "assignments",
        "[]SyncGroupRequestAssignment",
        (0, 5),
        struct=SyncGroupRequestAssignment,
    ),
)
