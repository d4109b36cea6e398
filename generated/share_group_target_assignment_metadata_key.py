"""ShareGroupTargetAssignmentMetadataKey, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/ShareGroupTargetAssignmentMetadataKey.json by `python -m codegen`; edits here are lost.
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
class ShareGroupTargetAssignmentMetadataKey(Message):
    """Key of record type 12 in __consumer_offsets: the epoch of a share group's target assignment.

    Attributes:
        group_id: The group this record belongs to.
    """

    NAME: ClassVar[str] = "ShareGroupTargetAssignmentMetadataKey"
    TYPE: ClassVar[str] = "coordinator-key"
    API_KEY: ClassVar[int | None] = 12
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = None

    group_id: str = ""


# ShareGroupTargetAssignmentMetadataKey in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[ShareGroupTargetAssignmentMetadataKey, int]:
    message = new(ShareGroupTargetAssignmentMetadataKey)
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    return message, at


def write_v0(message: ShareGroupTargetAssignmentMetadataKey, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    group_id = message.group_id.encode()
    add(pack_i2(len(group_id)))
    add(group_id)


# version → its layout's pair
CODECS: dict[int, Codec[ShareGroupTargetAssignmentMetadataKey]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
ShareGroupTargetAssignmentMetadataKey.FIELDS = (Field("group_id", "groupId", "string", (0, 0)),)
