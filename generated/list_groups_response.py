"""ListGroupsResponse, versions 0–5: its classes, and one read and write pair per layout.

Generated from schemas/ListGroupsResponse.json by `python -m codegen`; edits here are lost.
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
pack_i2_i4: Final = struct.Struct(">hi").pack
pack_i4_i2: Final = struct.Struct(">ih").pack
pack_i4_i2_i4: Final = struct.Struct(">ihi").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i2_i4: Final = struct.Struct(">hi").unpack_from
unpack_i4_i2_i4: Final = struct.Struct(">ihi").unpack_from
unpack_i4_i2_u1: Final = struct.Struct(">ihB").unpack_from


@define(weakref_slot=False)
class ListedGroup(Struct):
    """One entry per group of this broker.

    Attributes:
        group_id: The id of a group that this broker coordinates.
        protocol_type: The kind of group, consumer for consumers; empty for a group that only stores offsets.
        group_state: The group's state, for instance Stable, Empty or PreparingRebalance.
        group_type: The protocol of the group, classic, consumer, share or streams, and with it the API that
            describes it.
    """

    group_id: str = ""
    protocol_type: str = ""
    group_state: str = ""
    group_type: str = ""


@define(weakref_slot=False)
class ListGroupsResponse(Message):
    """The groups that the asked broker coordinates and the caller may see.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Since version 2 the answer is immediate and
            the client must stay silent that long; before, the broker had already held the answer back.
        error_code: 0, or why there is no list; 14 while the broker is still reading its groups in.
        groups: One entry per group of this broker.
    """

    NAME: ClassVar[str] = "ListGroupsResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 16
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_SINCE: ClassVar[int | None] = 3

    throttle_time_ms: int = 0
    error_code: int = 0
    groups: list[ListedGroup] = Factory(list)


# ListedGroup in versions 0–2
def read_listed_group_v0(data: Buffer, at: int, size: int) -> tuple[ListedGroup, int]:
    message = new(ListedGroup)
    message.group_state = ""
    message.group_type = ""
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
        raise Malformed("protocol_type")
    message.protocol_type = str(data[at:end], "utf-8")
    at = end
    return message, at


def write_listed_group_v0(message: ListedGroup, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    group_id = message.group_id.encode()
    add(pack_i2(len(group_id)))
    add(group_id)
    protocol_type = message.protocol_type.encode()
    add(pack_i2(len(protocol_type)))
    add(protocol_type)


# ListGroupsResponse in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[ListGroupsResponse, int]:
    message = new(ListGroupsResponse)
    message.throttle_time_ms = 0
    message.unknown_tags = ()
    message.error_code, count = unpack_i2_i4(data, at)
    at += 6
    if not 0 <= count * 4 <= size - at:
        raise Malformed("groups")
    groups: list[ListedGroup] = []
    for _ in range(count):
        group, at = read_listed_group_v0(data, at, size)
        groups.append(group)
    message.groups = groups
    return message, at


def write_v0(message: ListGroupsResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    groups = message.groups
    add(pack_i2_i4(message.error_code, len(groups)))
    for group in groups:
        write_listed_group_v0(group, add)


# ListGroupsResponse in versions 1–2
def read_v1(data: Buffer, at: int, size: int) -> tuple[ListGroupsResponse, int]:
    message = new(ListGroupsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, count = unpack_i4_i2_i4(data, at)
    at += 10
    if not 0 <= count * 4 <= size - at:
        raise Malformed("groups")
    groups: list[ListedGroup] = []
    for _ in range(count):
        group, at = read_listed_group_v0(data, at, size)
        groups.append(group)
    message.groups = groups
    return message, at


def write_v1(message: ListGroupsResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    groups = message.groups
    add(pack_i4_i2_i4(message.throttle_time_ms, message.error_code, len(groups)))
    for group in groups:
        write_listed_group_v0(group, add)


# ListedGroup in version 3
def read_listed_group_v3(data: Buffer, at: int, size: int) -> tuple[ListedGroup, int]:
    message = new(ListedGroup)
    message.group_state = ""
    message.group_type = ""
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
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("protocol_type")
    message.protocol_type = str(data[at:end], "utf-8")
    at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_listed_group_v3(message: ListedGroup, add: Add) -> None:
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    protocol_type = message.protocol_type.encode()
    add(compact_string_length[len(protocol_type)])
    add(protocol_type)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ListGroupsResponse in version 3
def read_v3(data: Buffer, at: int, size: int) -> tuple[ListGroupsResponse, int]:
    message = new(ListGroupsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, count = unpack_i4_i2_u1(data, at)
    at += 7
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("groups")
    groups: list[ListedGroup] = []
    for _ in range(count):
        group, at = read_listed_group_v3(data, at, size)
        groups.append(group)
    message.groups = groups
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v3(message: ListGroupsResponse, add: Add) -> None:
    add(pack_i4_i2(message.throttle_time_ms, message.error_code))
    groups = message.groups
    add(compact_length[len(groups)])
    for group in groups:
        write_listed_group_v3(group, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ListedGroup in version 4
def read_listed_group_v4(data: Buffer, at: int, size: int) -> tuple[ListedGroup, int]:
    message = new(ListedGroup)
    message.group_type = ""
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
        raise Malformed("group_state")
    message.group_state = str(data[at:end], "utf-8")
    at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_listed_group_v4(message: ListedGroup, add: Add) -> None:
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    protocol_type = message.protocol_type.encode()
    add(compact_string_length[len(protocol_type)])
    add(protocol_type)
    group_state = message.group_state.encode()
    add(compact_string_length[len(group_state)])
    add(group_state)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ListGroupsResponse in version 4
def read_v4(data: Buffer, at: int, size: int) -> tuple[ListGroupsResponse, int]:
    message = new(ListGroupsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, count = unpack_i4_i2_u1(data, at)
    at += 7
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 4 <= size - at:
        raise Malformed("groups")
    groups: list[ListedGroup] = []
    for _ in range(count):
        group, at = read_listed_group_v4(data, at, size)
        groups.append(group)
    message.groups = groups
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v4(message: ListGroupsResponse, add: Add) -> None:
    add(pack_i4_i2(message.throttle_time_ms, message.error_code))
    groups = message.groups
    add(compact_length[len(groups)])
    for group in groups:
        write_listed_group_v4(group, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ListedGroup in version 5
def read_listed_group_v5(data: Buffer, at: int, size: int) -> tuple[ListedGroup, int]:
    message = new(ListedGroup)
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
        raise Malformed("group_state")
    message.group_state = str(data[at:end], "utf-8")
    at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("group_type")
    message.group_type = str(data[at:end], "utf-8")
    at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_listed_group_v5(message: ListedGroup, add: Add) -> None:
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    protocol_type = message.protocol_type.encode()
    add(compact_string_length[len(protocol_type)])
    add(protocol_type)
    group_state = message.group_state.encode()
    add(compact_string_length[len(group_state)])
    add(group_state)
    group_type = message.group_type.encode()
    add(compact_string_length[len(group_type)])
    add(group_type)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ListGroupsResponse in version 5
def read_v5(data: Buffer, at: int, size: int) -> tuple[ListGroupsResponse, int]:
    message = new(ListGroupsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, count = unpack_i4_i2_u1(data, at)
    at += 7
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 5 <= size - at:
        raise Malformed("groups")
    groups: list[ListedGroup] = []
    for _ in range(count):
        group, at = read_listed_group_v5(data, at, size)
        groups.append(group)
    message.groups = groups
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v5(message: ListGroupsResponse, add: Add) -> None:
    add(pack_i4_i2(message.throttle_time_ms, message.error_code))
    groups = message.groups
    add(compact_length[len(groups)])
    for group in groups:
        write_listed_group_v5(group, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ListGroupsResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v1, write_v1),
    3: (read_v3, write_v3),
    4: (read_v4, write_v4),
    5: (read_v5, write_v5),
}

# what JSON and error messages know of the fields
ListedGroup.FIELDS = (
    Field("group_id", "groupId", "string", (0, 5)),
    Field("protocol_type", "protocolType", "string", (0, 5)),
    Field("group_state", "groupState", "string", (4, 5), ignorable=True),
    Field("group_type", "groupType", "string", (5, 5), ignorable=True),
)
ListGroupsResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (1, 5), ignorable=True),
    Field("error_code", "errorCode", "int16", (0, 5)),
    Field("groups", "groups", "[]ListedGroup", (0, 5), struct=ListedGroup),
)
