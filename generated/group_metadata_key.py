"""GroupMetadataKey, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/GroupMetadataKey.json by `python -m codegen`; edits here are lost.
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
    new,
)

pack_i2: Final = struct.Struct(">h").pack
unpack_i2: Final = struct.Struct(">h").unpack_from


@define(weakref_slot=False)
class GroupMetadataKey(Message):
    """Key of record type 2 in __consumer_offsets: the state of a classic group. A null value behind it means
    that the group is gone.

    Attributes:
        group: The classic group this record belongs to.
    """

    NAME: ClassVar[str] = "GroupMetadataKey"
    TYPE: ClassVar[str] = "coordinator-key"
    API_KEY: ClassVar[int | None] = 2
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = None

    group: str = ""


# GroupMetadataKey in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[GroupMetadataKey, int]:
    message = new(GroupMetadataKey)
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("group")
    message.group = str(data[at:end], "utf-8")
    at = end
    return message, at


def write_v0(message: GroupMetadataKey, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    group = message.group.encode()
    add(pack_i2(len(group)))
    add(group)


# version → its layout's pair
CODECS: dict[int, Codec[GroupMetadataKey]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
GroupMetadataKey.FIELDS = (Field("group", "group", "string", (0, 0)),)
