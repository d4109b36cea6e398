"""ShareGroupMetadataValue, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/ShareGroupMetadataValue.json by `python -m codegen`; edits here are lost.
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
    left_over,
    new,
    read_tags,
    write_tags,
)

pack_i4_i8: Final = struct.Struct(">iq").pack
unpack_i4_i8_u1: Final = struct.Struct(">iqB").unpack_from


@define(weakref_slot=False)
class ShareGroupMetadataValue(Message):
    """The epoch of a share group; each change of members, subscriptions or topics gives a new one.

    Attributes:
        epoch: The group epoch, towards which the members' epochs move.
        metadata_hash: Hash over the subscribed topics as the group knows them; 0 for no topics.
    """

    NAME: ClassVar[str] = "ShareGroupMetadataValue"
    TYPE: ClassVar[str] = "coordinator-value"
    API_KEY: ClassVar[int | None] = 11
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    epoch: int = 0
    metadata_hash: int = 0


# ShareGroupMetadataValue in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[ShareGroupMetadataValue, int]:
    message = new(ShareGroupMetadataValue)
    message.unknown_tags = ()
    message.epoch, message.metadata_hash, tags = unpack_i4_i8_u1(data, at)
    at += 13
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: ShareGroupMetadataValue, add: Add) -> None:
    add(pack_i4_i8(message.epoch, message.metadata_hash))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ShareGroupMetadataValue]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
ShareGroupMetadataValue.FIELDS = (
    Field("epoch", "epoch", "int32", (0, 0)),
    Field("metadata_hash", "metadataHash", "int64", (0, 0)),
)
