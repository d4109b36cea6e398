"""DescribeGroupsRequest, versions 0–6: its classes, and one read and write pair per layout.

Generated from schemas/DescribeGroupsRequest.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import Factory, define

from kclient.protocol.message import Field, Message
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
    read_compact_strings,
    read_strings,
    read_tags,
    read_uvarint,
    write_tags,
)

pack_bool: Final = struct.Struct(">?").pack
pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
unpack_bool: Final = struct.Struct(">?").unpack_from
unpack_bool_u1: Final = struct.Struct(">?B").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from


@define(weakref_slot=False)
class DescribeGroupsRequest(Message):
    """Asks a coordinator for the state and members of classic groups.

    Attributes:
        groups: Ids of the groups to describe; the asked broker must coordinate them.
        include_authorized_operations: True to be told what the caller may do with each group.
    """

    NAME: ClassVar[str] = "DescribeGroupsRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 15
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_SINCE: ClassVar[int | None] = 5

    groups: list[str] = Factory(list)
    include_authorized_operations: bool = False


# DescribeGroupsRequest in versions 0–2
def read_v0(data: Buffer, at: int, size: int) -> tuple[DescribeGroupsRequest, int]:
    message = new(DescribeGroupsRequest)
    message.include_authorized_operations = False
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 2 <= size - at:
        raise Malformed("groups")
    message.groups, at = read_strings(count, data, at, size)
    return message, at


def write_v0(message: DescribeGroupsRequest, add: Add) -> None:
    if message.include_authorized_operations:
        raise Unwritable("include_authorized_operations")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    groups = message.groups
    add(pack_i4(len(groups)))
    for group in groups:
        group_bytes = group.encode()
        add(pack_i2(len(group_bytes)))
        add(group_bytes)


# DescribeGroupsRequest in versions 3–4
def read_v3(data: Buffer, at: int, size: int) -> tuple[DescribeGroupsRequest, int]:
    message = new(DescribeGroupsRequest)
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 2 <= size - at:
        raise Malformed("groups")
    message.groups, at = read_strings(count, data, at, size)
    (message.include_authorized_operations,) = unpack_bool(data, at)
    at += 1
    return message, at


def write_v3(message: DescribeGroupsRequest, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    groups = message.groups
    add(pack_i4(len(groups)))
    for group in groups:
        group_bytes = group.encode()
        add(pack_i2(len(group_bytes)))
        add(group_bytes)
    add(pack_bool(message.include_authorized_operations))


# DescribeGroupsRequest in versions 5–6
def read_v5(data: Buffer, at: int, size: int) -> tuple[DescribeGroupsRequest, int]:
    message = new(DescribeGroupsRequest)
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count <= size - at:
        raise Malformed("groups")
    message.groups, at = read_compact_strings(count, data, at, size)
    message.include_authorized_operations, tags = unpack_bool_u1(data, at)
    at += 2
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v5(message: DescribeGroupsRequest, add: Add) -> None:
    groups = message.groups
    add(compact_length[len(groups)])
    for group in groups:
        group_bytes = group.encode()
        add(compact_string_length[len(group_bytes)])
        add(group_bytes)
    add(pack_bool(message.include_authorized_operations))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[DescribeGroupsRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v0, write_v0),
    3: (read_v3, write_v3),
    4: (read_v3, write_v3),
    5: (read_v5, write_v5),
    6: (read_v5, write_v5),
}

# what JSON and error messages know of the fields
DescribeGroupsRequest.FIELDS = (
    Field("groups", "groups", "[]string", (0, 6)),
    Field("include_authorized_operations", "includeAuthorizedOperations", "bool", (3, 6)),
)
