"""SyncGroupResponse, versions 0–5: its classes, and one read and write pair per layout.

Generated from schemas/SyncGroupResponse.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import define

from kclient.protocol.message import Field, Message
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

pack_i2_i4: Final = struct.Struct(">hi").pack
pack_i4_i2: Final = struct.Struct(">ih").pack
pack_i4_i2_i4: Final = struct.Struct(">ihi").pack
unpack_i2_i4: Final = struct.Struct(">hi").unpack_from
unpack_i4_i2_i4: Final = struct.Struct(">ihi").unpack_from
unpack_i4_i2_u1: Final = struct.Struct(">ihB").unpack_from


@define(weakref_slot=False)
class SyncGroupResponse(Message):
    """Hands the member its share of the group's partitions; with it the rebalance is over for this member.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Since version 2 the answer is immediate and
            the client must stay silent that long; before, the broker had already held the answer back.
        error_code: 0 with an assignment; REBALANCE_IN_PROGRESS (27) means that the group has moved on and the
            member must join again.
        protocol_type: The group's kind; a member that expected another one must not use the assignment. Null
            before version 5 and on error.
        protocol_name: The assignor that produced the assignment; must equal the one of JoinGroup. Null before
            version 5 and on error.
        assignment: This member's part: for consumers a ConsumerProtocolAssignment with its int16 version in
            front; empty bytes on error.
    """

    NAME: ClassVar[str] = "SyncGroupResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 14
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_SINCE: ClassVar[int | None] = 4

    throttle_time_ms: int = 0
    error_code: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


# SyncGroupResponse in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[SyncGroupResponse, int]:
    message = new(SyncGroupResponse)
    message.throttle_time_ms = 0
    message.protocol_type = None
    message.protocol_name = None
    message.unknown_tags = ()
    message.error_code, length = unpack_i2_i4(data, at)
    at += 6
    end = at + length
    if not at <= end <= size:
        raise Malformed("assignment")
    message.assignment = bytes(data[at:end])
    at = end
    return message, at


def write_v0(message: SyncGroupResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    assignment = message.assignment
    add(pack_i2_i4(message.error_code, len(assignment)))
    if not isinstance(assignment, BYTES):
        raise Unwritable("assignment")
    add(assignment)


# SyncGroupResponse in versions 1–3
def read_v1(data: Buffer, at: int, size: int) -> tuple[SyncGroupResponse, int]:
    message = new(SyncGroupResponse)
    message.protocol_type = None
    message.protocol_name = None
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, length = unpack_i4_i2_i4(data, at)
    at += 10
    end = at + length
    if not at <= end <= size:
        raise Malformed("assignment")
    message.assignment = bytes(data[at:end])
    at = end
    return message, at


def write_v1(message: SyncGroupResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    assignment = message.assignment
    add(pack_i4_i2_i4(message.throttle_time_ms, message.error_code, len(assignment)))
    if not isinstance(assignment, BYTES):
        raise Unwritable("assignment")
    add(assignment)


# SyncGroupResponse in version 4
def read_v4(data: Buffer, at: int, size: int) -> tuple[SyncGroupResponse, int]:
    message = new(SyncGroupResponse)
    message.protocol_type = None
    message.protocol_name = None
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, length = unpack_i4_i2_u1(data, at)
    at += 7
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


def write_v4(message: SyncGroupResponse, add: Add) -> None:
    add(pack_i4_i2(message.throttle_time_ms, message.error_code))
    assignment = message.assignment
    add(compact_length[len(assignment)])
    if not isinstance(assignment, BYTES):
        raise Unwritable("assignment")
    add(assignment)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# SyncGroupResponse in version 5
def read_v5(data: Buffer, at: int, size: int) -> tuple[SyncGroupResponse, int]:
    message = new(SyncGroupResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, length = unpack_i4_i2_u1(data, at)
    at += 7
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


def write_v5(message: SyncGroupResponse, add: Add) -> None:
    add(pack_i4_i2(message.throttle_time_ms, message.error_code))
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
    assignment = message.assignment
    add(compact_length[len(assignment)])
    if not isinstance(assignment, BYTES):
        raise Unwritable("assignment")
    add(assignment)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[SyncGroupResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v1, write_v1),
    3: (read_v1, write_v1),
    4: (read_v4, write_v4),
    5: (read_v5, write_v5),
}

# what JSON and error messages know of the fields
SyncGroupResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (1, 5), ignorable=True),
    Field("error_code", "errorCode", "int16", (0, 5)),
    Field("protocol_type", "protocolType", "string", (5, 5), nullable=(5, 5), ignorable=True),
    Field("protocol_name", "protocolName", "string", (5, 5), nullable=(5, 5), ignorable=True),
    Field("assignment", "assignment", "bytes", (0, 5)),
)
