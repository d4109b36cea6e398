"""HeartbeatRequest, versions 0–4: its classes, and one read and write pair per layout.

Generated from schemas/HeartbeatRequest.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import define

from kclient.protocol.message import Field, Message
from kclient.protocol.primitives import (
    Add,
    Buffer,
    Codec,
    Malformed,
    Unwritable,
    compact_string_length,
    left_over,
    new,
    read_string_length,
    read_tags,
    write_tags,
)

pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
pack_i4_i2: Final = struct.Struct(">ih").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4_i2: Final = struct.Struct(">ih").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from


@define(weakref_slot=False)
class HeartbeatRequest(Message):
    """Tells the coordinator that a member of a classic group lives; the answer is how a member learns of a
    rebalance.

    Attributes:
        group_id: The group the member is in.
        generation_id: The generation the member believes in; an older one is answered with
            ILLEGAL_GENERATION.
        member_id: The id of the living member as JoinGroup gave it.
        group_instance_id: The member's static name, so that a duplicate process learns it has been fenced;
            null if it is dynamic.
    """

    NAME: ClassVar[str] = "HeartbeatRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 12
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_SINCE: ClassVar[int | None] = 4

    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None


# HeartbeatRequest in versions 0–2
def read_v0(data: Buffer, at: int, size: int) -> tuple[HeartbeatRequest, int]:
    message = new(HeartbeatRequest)
    message.group_instance_id = None
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
    return message, at


def write_v0(message: HeartbeatRequest, add: Add) -> None:
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


# HeartbeatRequest in version 3
def read_v3(data: Buffer, at: int, size: int) -> tuple[HeartbeatRequest, int]:
    message = new(HeartbeatRequest)
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
    return message, at


def write_v3(message: HeartbeatRequest, add: Add) -> None:
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


# HeartbeatRequest in version 4
def read_v4(data: Buffer, at: int, size: int) -> tuple[HeartbeatRequest, int]:
    message = new(HeartbeatRequest)
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
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v4(message: HeartbeatRequest, add: Add) -> None:
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
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[HeartbeatRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v0, write_v0),
    3: (read_v3, write_v3),
    4: (read_v4, write_v4),
}

# what JSON and error messages know of the fields
HeartbeatRequest.FIELDS = (
    Field("group_id", "groupId", "string", (0, 4)),
    Field("generation_id", "generationId", "int32", (0, 4)),
    Field("member_id", "memberId", "string", (0, 4)),
    Field("group_instance_id", "groupInstanceId", "string", (3, 4), nullable=(3, 4)),
)
