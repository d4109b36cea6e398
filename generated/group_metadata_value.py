"""GroupMetadataValue, versions 0–4: its classes, and one read and write pair per layout.

Generated from schemas/GroupMetadataValue.json by `python -m codegen`; edits here are lost.
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
pack_i4x2: Final = struct.Struct(">ii").pack
pack_i4x3: Final = struct.Struct(">iii").pack
pack_i8: Final = struct.Struct(">q").pack
pack_i8_i4: Final = struct.Struct(">qi").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_i2: Final = struct.Struct(">ih").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i4x2: Final = struct.Struct(">ii").unpack_from
unpack_i4x2_u1: Final = struct.Struct(">iiB").unpack_from
unpack_i4x3: Final = struct.Struct(">iii").unpack_from
unpack_i8_i4: Final = struct.Struct(">qi").unpack_from
unpack_i8_u1: Final = struct.Struct(">qB").unpack_from


@define(weakref_slot=False)
class MemberMetadata(Struct):
    """One member of a classic group with what it asked for and what it got.

    Attributes:
        member_id: The id the coordinator gave the member.
        group_instance_id: The static name of the member; null for a dynamic one.
        client_id: The client.id of the member's connection.
        client_host: Address the member connected from.
        rebalance_timeout: Milliseconds the member may take to rejoin; -1 in version 0, where the session
            timeout takes its place.
        session_timeout: Milliseconds without a heartbeat after which the member is dead.
        subscription: What the member sent for the chosen assignor: for consumers a
            ConsumerProtocolSubscription with its version in front.
        assignment: What the leader gave the member: for consumers a ConsumerProtocolAssignment with its
            version in front.
    """

    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: int = -1
    session_timeout: int = 0
    subscription: bytes = b""
    assignment: bytes = b""


@define(weakref_slot=False)
class GroupMetadataValue(Message):
    """A classic group as of its last rebalance: generation, members and their assignments. Brokers of 2.3 and
    later write version 3.

    Attributes:
        protocol_type: The kind of group, consumer for consumers; empty for a group that only ever stored
            offsets.
        generation: The number of the last generation, from which the next one counts on.
        protocol: The assignor in use, for instance range; null when the group is empty.
        leader: Member id of the member that computed the assignment; null when the group is empty.
        current_state_timestamp: When the group entered its state, in milliseconds since 1970, from which the
            offsets of an empty group expire; -1 when unknown.
        members: The members of that generation; empty when the group is empty.
    """

    NAME: ClassVar[str] = "GroupMetadataValue"
    TYPE: ClassVar[str] = "coordinator-value"
    API_KEY: ClassVar[int | None] = 2
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_SINCE: ClassVar[int | None] = 4

    protocol_type: str = ""
    generation: int = 0
    protocol: str | None = ""
    leader: str | None = ""
    current_state_timestamp: int = -1
    members: list[MemberMetadata] = Factory(list)


# MemberMetadata in version 0
def read_member_metadata_v0(data: Buffer, at: int, size: int) -> tuple[MemberMetadata, int]:
    message = new(MemberMetadata)
    message.group_instance_id = None
    message.rebalance_timeout = -1
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
    message.session_timeout, length = unpack_i4x2(data, at)
    at += 8
    end = at + length
    if not at <= end <= size:
        raise Malformed("subscription")
    message.subscription = bytes(data[at:end])
    at = end
    (length,) = unpack_i4(data, at)
    at += 4
    end = at + length
    if not at <= end <= size:
        raise Malformed("assignment")
    message.assignment = bytes(data[at:end])
    at = end
    return message, at


def write_member_metadata_v0(message: MemberMetadata, add: Add) -> None:
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
    subscription = message.subscription
    add(pack_i4x2(message.session_timeout, len(subscription)))
    if not isinstance(subscription, BYTES):
        raise Unwritable("subscription")
    add(subscription)
    assignment = message.assignment
    add(pack_i4(len(assignment)))
    if not isinstance(assignment, BYTES):
        raise Unwritable("assignment")
    add(assignment)


# GroupMetadataValue in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[GroupMetadataValue, int]:
    message = new(GroupMetadataValue)
    message.current_state_timestamp = -1
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("protocol_type")
    message.protocol_type = str(data[at:end], "utf-8")
    at = end
    message.generation, length = unpack_i4_i2(data, at)
    at += 6
    if length == -1:
        message.protocol = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("protocol")
        message.protocol = str(data[at:end], "utf-8")
        at = end
    (length,) = unpack_i2(data, at)
    at += 2
    if length == -1:
        message.leader = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("leader")
        message.leader = str(data[at:end], "utf-8")
        at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 18 <= size - at:
        raise Malformed("members")
    members: list[MemberMetadata] = []
    for _ in range(count):
        member, at = read_member_metadata_v0(data, at, size)
        members.append(member)
    message.members = members
    return message, at


def write_v0(message: GroupMetadataValue, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    protocol_type = message.protocol_type.encode()
    add(pack_i2(len(protocol_type)))
    add(protocol_type)
    add(pack_i4(message.generation))
    protocol = message.protocol
    if protocol is None:
        add(b"\xff\xff")
    else:
        protocol_bytes = protocol.encode()
        add(pack_i2(len(protocol_bytes)))
        add(protocol_bytes)
    leader = message.leader
    if leader is None:
        add(b"\xff\xff")
    else:
        leader_bytes = leader.encode()
        add(pack_i2(len(leader_bytes)))
        add(leader_bytes)
    members = message.members
    add(pack_i4(len(members)))
    for member in members:
        write_member_metadata_v0(member, add)


# MemberMetadata in versions 1–2
def read_member_metadata_v1(data: Buffer, at: int, size: int) -> tuple[MemberMetadata, int]:
    message = new(MemberMetadata)
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
    message.rebalance_timeout, message.session_timeout, length = unpack_i4x3(data, at)
    at += 12
    end = at + length
    if not at <= end <= size:
        raise Malformed("subscription")
    message.subscription = bytes(data[at:end])
    at = end
    (length,) = unpack_i4(data, at)
    at += 4
    end = at + length
    if not at <= end <= size:
        raise Malformed("assignment")
    message.assignment = bytes(data[at:end])
    at = end
    return message, at


def write_member_metadata_v1(message: MemberMetadata, add: Add) -> None:
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
    subscription = message.subscription
    add(pack_i4x3(message.rebalance_timeout, message.session_timeout, len(subscription)))
    if not isinstance(subscription, BYTES):
        raise Unwritable("subscription")
    add(subscription)
    assignment = message.assignment
    add(pack_i4(len(assignment)))
    if not isinstance(assignment, BYTES):
        raise Unwritable("assignment")
    add(assignment)


# GroupMetadataValue in version 1
def read_v1(data: Buffer, at: int, size: int) -> tuple[GroupMetadataValue, int]:
    message = new(GroupMetadataValue)
    message.current_state_timestamp = -1
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("protocol_type")
    message.protocol_type = str(data[at:end], "utf-8")
    at = end
    message.generation, length = unpack_i4_i2(data, at)
    at += 6
    if length == -1:
        message.protocol = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("protocol")
        message.protocol = str(data[at:end], "utf-8")
        at = end
    (length,) = unpack_i2(data, at)
    at += 2
    if length == -1:
        message.leader = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("leader")
        message.leader = str(data[at:end], "utf-8")
        at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 22 <= size - at:
        raise Malformed("members")
    members: list[MemberMetadata] = []
    for _ in range(count):
        member, at = read_member_metadata_v1(data, at, size)
        members.append(member)
    message.members = members
    return message, at


def write_v1(message: GroupMetadataValue, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    protocol_type = message.protocol_type.encode()
    add(pack_i2(len(protocol_type)))
    add(protocol_type)
    add(pack_i4(message.generation))
    protocol = message.protocol
    if protocol is None:
        add(b"\xff\xff")
    else:
        protocol_bytes = protocol.encode()
        add(pack_i2(len(protocol_bytes)))
        add(protocol_bytes)
    leader = message.leader
    if leader is None:
        add(b"\xff\xff")
    else:
        leader_bytes = leader.encode()
        add(pack_i2(len(leader_bytes)))
        add(leader_bytes)
    members = message.members
    add(pack_i4(len(members)))
    for member in members:
        write_member_metadata_v1(member, add)


# GroupMetadataValue in version 2
def read_v2(data: Buffer, at: int, size: int) -> tuple[GroupMetadataValue, int]:
    message = new(GroupMetadataValue)
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("protocol_type")
    message.protocol_type = str(data[at:end], "utf-8")
    at = end
    message.generation, length = unpack_i4_i2(data, at)
    at += 6
    if length == -1:
        message.protocol = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("protocol")
        message.protocol = str(data[at:end], "utf-8")
        at = end
    (length,) = unpack_i2(data, at)
    at += 2
    if length == -1:
        message.leader = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("leader")
        message.leader = str(data[at:end], "utf-8")
        at = end
    message.current_state_timestamp, count = unpack_i8_i4(data, at)
    at += 12
    if not 0 <= count * 22 <= size - at:
        raise Malformed("members")
    members: list[MemberMetadata] = []
    for _ in range(count):
        member, at = read_member_metadata_v1(data, at, size)
        members.append(member)
    message.members = members
    return message, at


def write_v2(message: GroupMetadataValue, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    protocol_type = message.protocol_type.encode()
    add(pack_i2(len(protocol_type)))
    add(protocol_type)
    add(pack_i4(message.generation))
    protocol = message.protocol
    if protocol is None:
        add(b"\xff\xff")
    else:
        protocol_bytes = protocol.encode()
        add(pack_i2(len(protocol_bytes)))
        add(protocol_bytes)
    leader = message.leader
    if leader is None:
        add(b"\xff\xff")
    else:
        leader_bytes = leader.encode()
        add(pack_i2(len(leader_bytes)))
        add(leader_bytes)
    members = message.members
    add(pack_i8_i4(message.current_state_timestamp, len(members)))
    for member in members:
        write_member_metadata_v1(member, add)


# MemberMetadata in version 3
def read_member_metadata_v3(data: Buffer, at: int, size: int) -> tuple[MemberMetadata, int]:
    message = new(MemberMetadata)
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
    message.rebalance_timeout, message.session_timeout, length = unpack_i4x3(data, at)
    at += 12
    end = at + length
    if not at <= end <= size:
        raise Malformed("subscription")
    message.subscription = bytes(data[at:end])
    at = end
    (length,) = unpack_i4(data, at)
    at += 4
    end = at + length
    if not at <= end <= size:
        raise Malformed("assignment")
    message.assignment = bytes(data[at:end])
    at = end
    return message, at


def write_member_metadata_v3(message: MemberMetadata, add: Add) -> None:
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
    subscription = message.subscription
    add(pack_i4x3(message.rebalance_timeout, message.session_timeout, len(subscription)))
    if not isinstance(subscription, BYTES):
        raise Unwritable("subscription")
    add(subscription)
    assignment = message.assignment
    add(pack_i4(len(assignment)))
    if not isinstance(assignment, BYTES):
        raise Unwritable("assignment")
    add(assignment)


# GroupMetadataValue in version 3
def read_v3(data: Buffer, at: int, size: int) -> tuple[GroupMetadataValue, int]:
    message = new(GroupMetadataValue)
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("protocol_type")
    message.protocol_type = str(data[at:end], "utf-8")
    at = end
    message.generation, length = unpack_i4_i2(data, at)
    at += 6
    if length == -1:
        message.protocol = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("protocol")
        message.protocol = str(data[at:end], "utf-8")
        at = end
    (length,) = unpack_i2(data, at)
    at += 2
    if length == -1:
        message.leader = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("leader")
        message.leader = str(data[at:end], "utf-8")
        at = end
    message.current_state_timestamp, count = unpack_i8_i4(data, at)
    at += 12
    if not 0 <= count * 24 <= size - at:
        raise Malformed("members")
    members: list[MemberMetadata] = []
    for _ in range(count):
        member, at = read_member_metadata_v3(data, at, size)
        members.append(member)
    message.members = members
    return message, at


def write_v3(message: GroupMetadataValue, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    protocol_type = message.protocol_type.encode()
    add(pack_i2(len(protocol_type)))
    add(protocol_type)
    add(pack_i4(message.generation))
    protocol = message.protocol
    if protocol is None:
        add(b"\xff\xff")
    else:
        protocol_bytes = protocol.encode()
        add(pack_i2(len(protocol_bytes)))
        add(protocol_bytes)
    leader = message.leader
    if leader is None:
        add(b"\xff\xff")
    else:
        leader_bytes = leader.encode()
        add(pack_i2(len(leader_bytes)))
        add(leader_bytes)
    members = message.members
    add(pack_i8_i4(message.current_state_timestamp, len(members)))
    for member in members:
        write_member_metadata_v3(member, add)


# MemberMetadata in version 4
def read_member_metadata_v4(data: Buffer, at: int, size: int) -> tuple[MemberMetadata, int]:
    message = new(MemberMetadata)
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
    message.rebalance_timeout, message.session_timeout, length = unpack_i4x2_u1(data, at)
    at += 9
    if length > 127:
        length, at = read_uvarint(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("subscription")
    message.subscription = bytes(data[at:end])
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


def write_member_metadata_v4(message: MemberMetadata, add: Add) -> None:
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
    add(pack_i4x2(message.rebalance_timeout, message.session_timeout))
    subscription = message.subscription
    add(compact_length[len(subscription)])
    if not isinstance(subscription, BYTES):
        raise Unwritable("subscription")
    add(subscription)
    assignment = message.assignment
    add(compact_length[len(assignment)])
    if not isinstance(assignment, BYTES):
        raise Unwritable("assignment")
    add(assignment)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# GroupMetadataValue in version 4
def read_v4(data: Buffer, at: int, size: int) -> tuple[GroupMetadataValue, int]:
    message = new(GroupMetadataValue)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("protocol_type")
    message.protocol_type = str(data[at:end], "utf-8")
    at = end
    message.generation, length = unpack_i4_u1(data, at)
    at += 5
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.protocol = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("protocol")
        message.protocol = str(data[at:end], "utf-8")
        at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.leader = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("leader")
        message.leader = str(data[at:end], "utf-8")
        at = end
    message.current_state_timestamp, count = unpack_i8_u1(data, at)
    at += 9
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 15 <= size - at:
        raise Malformed("members")
    members: list[MemberMetadata] = []
    for _ in range(count):
        member, at = read_member_metadata_v4(data, at, size)
        members.append(member)
    message.members = members
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v4(message: GroupMetadataValue, add: Add) -> None:
    protocol_type = message.protocol_type.encode()
    add(compact_string_length[len(protocol_type)])
    add(protocol_type)
    add(pack_i4(message.generation))
    protocol = message.protocol
    if protocol is None:
        add(b"\x00")
    else:
        protocol_bytes = protocol.encode()
        add(compact_string_length[len(protocol_bytes)])
        add(protocol_bytes)
    leader = message.leader
    if leader is None:
        add(b"\x00")
    else:
        leader_bytes = leader.encode()
        add(compact_string_length[len(leader_bytes)])
        add(leader_bytes)
    add(pack_i8(message.current_state_timestamp))
    members = message.members
    add(compact_length[len(members)])
    for member in members:
        write_member_metadata_v4(member, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[GroupMetadataValue]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v2, write_v2),
    3: (read_v3, write_v3),
    4: (read_v4, write_v4),
}

# what JSON and error messages know of the fields
MemberMetadata.FIELDS = (
    Field("member_id", "memberId", "string", (0, 4)),
    Field("group_instance_id", "groupInstanceId", "string", (3, 4), nullable=(3, 4), ignorable=True),
    Field("client_id", "clientId", "string", (0, 4)),
    Field("client_host", "clientHost", "string", (0, 4)),
    Field("rebalance_timeout", "rebalanceTimeout", "int32", (1, 4), ignorable=True),
    Field("session_timeout", "sessionTimeout", "int32", (0, 4)),
    Field("subscription", "subscription", "bytes", (0, 4)),
    Field("assignment", "assignment", "bytes", (0, 4)),
)
GroupMetadataValue.FIELDS = (
    Field("protocol_type", "protocolType", "string", (0, 4)),
    Field("generation", "generation", "int32", (0, 4)),
    Field("protocol", "protocol", "string", (0, 4), nullable=(0, 4)),
    Field("leader", "leader", "string", (0, 4), nullable=(0, 4)),
    Field("current_state_timestamp", "currentStateTimestamp", "int64", (2, 4), ignorable=True),
    Field("members", "members", "[]MemberMetadata", (0, 4), struct=MemberMetadata),
)
