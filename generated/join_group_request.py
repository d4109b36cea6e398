"""JoinGroupRequest, versions 0–9: its classes, and one read and write pair per layout.

Generated from schemas/JoinGroupRequest.json by `python -m codegen`; edits here are lost.
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
pack_i4x2: Final = struct.Struct(">ii").pack
pack_i4x2_i2: Final = struct.Struct(">iih").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_i2: Final = struct.Struct(">ih").unpack_from
unpack_i4x2_i2: Final = struct.Struct(">iih").unpack_from
unpack_i4x2_u1: Final = struct.Struct(">iiB").unpack_from


@define(weakref_slot=False)
class JoinGroupRequestProtocol(Struct):
    """The assignors this member can work with, in order of preference; the coordinator picks one that all
    members know.

    Attributes:
        name: The assignor's name as all members know it, for instance range or cooperative-sticky.
        metadata: What the leader needs from this member for that assignor: for consumers a
            ConsumerProtocolSubscription with its int16 version in front.
    """

    name: str = ""
    metadata: bytes = b""


@define(weakref_slot=False)
class JoinGroupRequest(Message):
    """Asks to enter a classic group, or to stay in it, at the start of a rebalance; the coordinator holds the
    answer until the members have gathered.

    Attributes:
        group_id: The group to join; must not be empty.
        session_timeout_ms: Milliseconds without a heartbeat after which the coordinator declares this member
            dead (session.timeout.ms).
        rebalance_timeout_ms: Milliseconds this member may take to rejoin when a rebalance starts
            (max.poll.interval.ms). Version 0 has none, and the session timeout takes its place (-1).
        member_id: The id the coordinator gave this member; empty at the first attempt. Since version 4 that
            is answered with MEMBER_ID_REQUIRED and an id to come back with.
        group_instance_id: The configured name of a static member, which survives restarts without a rebalance
            (KIP-345); null for a dynamic member.
        protocol_type: The kind of group, consumer for consumers; all members of a group must agree on it.
        protocols: The assignors this member can work with, in order of preference; the coordinator picks one
            that all members know.
        reason: Why the member (re)joins, at most 255 characters, for the broker's log; null for no reason
            given.
    """

    NAME: ClassVar[str] = "JoinGroupRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 11
    VERSIONS: ClassVar[tuple[int, int]] = (0, 9)
    FLEXIBLE_SINCE: ClassVar[int | None] = 6

    group_id: str = ""
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str = ""
    protocols: list[JoinGroupRequestProtocol] = Factory(list)
    reason: str | None = None


# JoinGroupRequestProtocol in versions 0–5
def read_join_group_request_protocol_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[JoinGroupRequestProtocol, int]:
    message = new(JoinGroupRequestProtocol)
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("name")
    message.name = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i4(data, at)
    at += 4
    end = at + length
    if not at <= end <= size:
        raise Malformed("metadata")
    message.metadata = bytes(data[at:end])
    at = end
    return message, at


def write_join_group_request_protocol_v0(message: JoinGroupRequestProtocol, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    metadata = message.metadata
    add(pack_i4(len(metadata)))
    if not isinstance(metadata, BYTES):
        raise Unwritable("metadata")
    add(metadata)


# JoinGroupRequest in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[JoinGroupRequest, int]:
    message = new(JoinGroupRequest)
    message.rebalance_timeout_ms = -1
    message.group_instance_id = None
    message.reason = None
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    message.session_timeout_ms, length = unpack_i4_i2(data, at)
    at += 6
    end = at + length
    if not at <= end <= size:
        raise Malformed("member_id")
    message.member_id = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("protocol_type")
    message.protocol_type = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("protocols")
    protocols: list[JoinGroupRequestProtocol] = []
    for _ in range(count):
        protocol, at = read_join_group_request_protocol_v0(data, at, size)
        protocols.append(protocol)
    message.protocols = protocols
    return message, at


def write_v0(message: JoinGroupRequest, add: Add) -> None:
    if message.group_instance_id is not None:
        raise Unwritable("group_instance_id")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    group_id = message.group_id.encode()
    add(pack_i2(len(group_id)))
    add(group_id)
    member_id = message.member_id.encode()
    add(pack_i4_i2(message.session_timeout_ms, len(member_id)))
    add(member_id)
    protocol_type = message.protocol_type.encode()
    add(pack_i2(len(protocol_type)))
    add(protocol_type)
    protocols = message.protocols
    add(pack_i4(len(protocols)))
    for protocol in protocols:
        write_join_group_request_protocol_v0(protocol, add)


# JoinGroupRequest in versions 1–4
def read_v1(data: Buffer, at: int, size: int) -> tuple[JoinGroupRequest, int]:
    message = new(JoinGroupRequest)
    message.group_instance_id = None
    message.reason = None
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    message.session_timeout_ms, message.rebalance_timeout_ms, length = unpack_i4x2_i2(data, at)
    at += 10
    end = at + length
    if not at <= end <= size:
        raise Malformed("member_id")
    message.member_id = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("protocol_type")
    message.protocol_type = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("protocols")
    protocols: list[JoinGroupRequestProtocol] = []
    for _ in range(count):
        protocol, at = read_join_group_request_protocol_v0(data, at, size)
        protocols.append(protocol)
    message.protocols = protocols
    return message, at


def write_v1(message: JoinGroupRequest, add: Add) -> None:
    if message.group_instance_id is not None:
        raise Unwritable("group_instance_id")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    group_id = message.group_id.encode()
    add(pack_i2(len(group_id)))
    add(group_id)
    member_id = message.member_id.encode()
    add(pack_i4x2_i2(message.session_timeout_ms, message.rebalance_timeout_ms, len(member_id)))
    add(member_id)
    protocol_type = message.protocol_type.encode()
    add(pack_i2(len(protocol_type)))
    add(protocol_type)
    protocols = message.protocols
    add(pack_i4(len(protocols)))
    for protocol in protocols:
        write_join_group_request_protocol_v0(protocol, add)


# JoinGroupRequest in version 5
def read_v5(data: Buffer, at: int, size: int) -> tuple[JoinGroupRequest, int]:
    message = new(JoinGroupRequest)
    message.reason = None
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    message.session_timeout_ms, message.rebalance_timeout_ms, length = unpack_i4x2_i2(data, at)
    at += 10
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
        raise Malformed("protocol_type")
    message.protocol_type = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("protocols")
    protocols: list[JoinGroupRequestProtocol] = []
    for _ in range(count):
        protocol, at = read_join_group_request_protocol_v0(data, at, size)
        protocols.append(protocol)
    message.protocols = protocols
    return message, at


def write_v5(message: JoinGroupRequest, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    group_id = message.group_id.encode()
    add(pack_i2(len(group_id)))
    add(group_id)
    member_id = message.member_id.encode()
    add(pack_i4x2_i2(message.session_timeout_ms, message.rebalance_timeout_ms, len(member_id)))
    add(member_id)
    group_instance_id = message.group_instance_id
    if group_instance_id is None:
        add(b"\xff\xff")
    else:
        group_instance_id_bytes = group_instance_id.encode()
        add(pack_i2(len(group_instance_id_bytes)))
        add(group_instance_id_bytes)
    protocol_type = message.protocol_type.encode()
    add(pack_i2(len(protocol_type)))
    add(protocol_type)
    protocols = message.protocols
    add(pack_i4(len(protocols)))
    for protocol in protocols:
        write_join_group_request_protocol_v0(protocol, add)


# JoinGroupRequestProtocol in versions 6–9
def read_join_group_request_protocol_v6(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[JoinGroupRequestProtocol, int]:
    message = new(JoinGroupRequestProtocol)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("name")
    message.name = str(data[at:end], "utf-8")
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


def write_join_group_request_protocol_v6(message: JoinGroupRequestProtocol, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    metadata = message.metadata
    add(compact_length[len(metadata)])
    if not isinstance(metadata, BYTES):
        raise Unwritable("metadata")
    add(metadata)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# JoinGroupRequest in versions 6–7
def read_v6(data: Buffer, at: int, size: int) -> tuple[JoinGroupRequest, int]:
    message = new(JoinGroupRequest)
    message.reason = None
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
    message.session_timeout_ms, message.rebalance_timeout_ms, length = unpack_i4x2_u1(data, at)
    at += 9
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
        raise Malformed("protocol_type")
    message.protocol_type = str(data[at:end], "utf-8")
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("protocols")
    protocols: list[JoinGroupRequestProtocol] = []
    for _ in range(count):
        protocol, at = read_join_group_request_protocol_v6(data, at, size)
        protocols.append(protocol)
    message.protocols = protocols
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v6(message: JoinGroupRequest, add: Add) -> None:
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    add(pack_i4x2(message.session_timeout_ms, message.rebalance_timeout_ms))
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
    protocol_type = message.protocol_type.encode()
    add(compact_string_length[len(protocol_type)])
    add(protocol_type)
    protocols = message.protocols
    add(compact_length[len(protocols)])
    for protocol in protocols:
        write_join_group_request_protocol_v6(protocol, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# JoinGroupRequest in versions 8–9
def read_v8(data: Buffer, at: int, size: int) -> tuple[JoinGroupRequest, int]:
    message = new(JoinGroupRequest)
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
    message.session_timeout_ms, message.rebalance_timeout_ms, length = unpack_i4x2_u1(data, at)
    at += 9
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
        raise Malformed("protocol_type")
    message.protocol_type = str(data[at:end], "utf-8")
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("protocols")
    protocols: list[JoinGroupRequestProtocol] = []
    for _ in range(count):
        protocol, at = read_join_group_request_protocol_v6(data, at, size)
        protocols.append(protocol)
    message.protocols = protocols
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


def write_v8(message: JoinGroupRequest, add: Add) -> None:
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    add(pack_i4x2(message.session_timeout_ms, message.rebalance_timeout_ms))
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
    protocol_type = message.protocol_type.encode()
    add(compact_string_length[len(protocol_type)])
    add(protocol_type)
    protocols = message.protocols
    add(compact_length[len(protocols)])
    for protocol in protocols:
        write_join_group_request_protocol_v6(protocol, add)
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


# version → its layout's pair
CODECS: dict[int, Codec[JoinGroupRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v1, write_v1),
    3: (read_v1, write_v1),
    4: (read_v1, write_v1),
    5: (read_v5, write_v5),
    6: (read_v6, write_v6),
    7: (read_v6, write_v6),
    8: (read_v8, write_v8),
    9: (read_v8, write_v8),
}

# what JSON and error messages know of the fields
JoinGroupRequestProtocol.FIELDS = (
    Field("name", "name", "string", (0, 9)),
    Field("metadata", "metadata", "bytes", (0, 9)),
)
JoinGroupRequest.FIELDS = (
    Field("group_id", "groupId", "string", (0, 9)),
    Field("session_timeout_ms", "sessionTimeoutMs", "int32", (0, 9)),
    Field("rebalance_timeout_ms", "rebalanceTimeoutMs", "int32", (1, 9), ignorable=True),
    Field("member_id", "memberId", "string", (0, 9)),
    Field("group_instance_id", "groupInstanceId", "string", (5, 9), nullable=(5, 9)),
    Field("protocol_type", "protocolType", "string", (0, 9)),
    Field("protocols", "protocols", "[]JoinGroupRequestProtocol", (0, 9), struct=JoinGroupRequestProtocol),
    Field("reason", "reason", "string", (8, 9), nullable=(8, 9), ignorable=True),
)
