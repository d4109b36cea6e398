"""ConsumerGroupDescribeRequest, versions 0–1: its classes, and one read and write pair per layout.

Generated from schemas/ConsumerGroupDescribeRequest.json by `python -m codegen`; edits here are lost.
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
    compact_length,
    compact_string_length,
    left_over,
    new,
    read_compact_strings,
    read_tags,
    read_uvarint,
    write_tags,
)

pack_bool: Final = struct.Struct(">?").pack
unpack_bool_u1: Final = struct.Struct(">?B").unpack_from


@define(weakref_slot=False)
class ConsumerGroupDescribeRequest(Message):
    """Asks a coordinator for the state and members of groups of the consumer protocol.

    Attributes:
        group_ids: Ids of the groups to describe; the asked broker must coordinate them.
        include_authorized_operations: True to be told what the caller may do with each group.
    """

    NAME: ClassVar[str] = "ConsumerGroupDescribeRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 69
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    group_ids: list[str] = Factory(list)
    include_authorized_operations: bool = False


# ConsumerGroupDescribeRequest in versions 0–1
def read_v0(data: Buffer, at: int, size: int) -> tuple[ConsumerGroupDescribeRequest, int]:
    message = new(ConsumerGroupDescribeRequest)
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count <= size - at:
        raise Malformed("group_ids")
    message.group_ids, at = read_compact_strings(count, data, at, size)
    message.include_authorized_operations, tags = unpack_bool_u1(data, at)
    at += 2
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: ConsumerGroupDescribeRequest, add: Add) -> None:
    group_ids = message.group_ids
    add(compact_length[len(group_ids)])
    for group_id in group_ids:
        group_id_bytes = group_id.encode()
        add(compact_string_length[len(group_id_bytes)])
        add(group_id_bytes)
    add(pack_bool(message.include_authorized_operations))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ConsumerGroupDescribeRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
ConsumerGroupDescribeRequest.FIELDS = (
    Field("group_ids", "groupIds", "[]string", (0, 1)),
    Field("include_authorized_operations", "includeAuthorizedOperations", "bool", (0, 1)),
)
