"""DeleteGroupsRequest, versions 0–3: its classes, and one read and write pair per layout.

Generated from schemas/DeleteGroupsRequest.json by `python -m codegen`; edits here are lost.
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

pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
unpack_i4: Final = struct.Struct(">i").unpack_from


@define(weakref_slot=False)
class DeleteGroupsRequest(Message):
    """Deletes groups without members, with all their committed offsets.

    Attributes:
        groups_names: Ids of the groups to delete; the asked broker must coordinate them.
    """

    NAME: ClassVar[str] = "DeleteGroupsRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 42
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE_SINCE: ClassVar[int | None] = 2

    groups_names: list[str] = Factory(list)


# DeleteGroupsRequest in versions 0–1
def read_v0(data: Buffer, at: int, size: int) -> tuple[DeleteGroupsRequest, int]:
    message = new(DeleteGroupsRequest)
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 2 <= size - at:
        raise Malformed("groups_names")
    message.groups_names, at = read_strings(count, data, at, size)
    return message, at


def write_v0(message: DeleteGroupsRequest, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    groups_names = message.groups_names
    add(pack_i4(len(groups_names)))
    for groups_name in groups_names:
        groups_name_bytes = groups_name.encode()
        add(pack_i2(len(groups_name_bytes)))
        add(groups_name_bytes)


# DeleteGroupsRequest in versions 2–3
def read_v2(data: Buffer, at: int, size: int) -> tuple[DeleteGroupsRequest, int]:
    message = new(DeleteGroupsRequest)
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count <= size - at:
        raise Malformed("groups_names")
    message.groups_names, at = read_compact_strings(count, data, at, size)
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v2(message: DeleteGroupsRequest, add: Add) -> None:
    groups_names = message.groups_names
    add(compact_length[len(groups_names)])
    for groups_name in groups_names:
        groups_name_bytes = groups_name.encode()
        add(compact_string_length[len(groups_name_bytes)])
        add(groups_name_bytes)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[DeleteGroupsRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v2, write_v2),
    3: (read_v2, write_v2),
}

# what JSON and error messages know of the fields
DeleteGroupsRequest.FIELDS = (Field("groups_names", "groupsNames", "[]string", (0, 3)),)
