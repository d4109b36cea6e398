"""ConsumerGroupMetadataKey, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/ConsumerGroupMetadataKey.json by `python -m codegen`; edits here are lost.
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
class ConsumerGroupMetadataKey(Message):
    """Key of record type 3 in __consumer_offsets: the epoch of a group of the consumer protocol (KIP-848).

    Attributes:
        group_id: The group this record belongs to.
    """

    NAME: ClassVar[str] = "ConsumerGroupMetadataKey"
    TYPE: ClassVar[str] = "coordinator-key"
    API_KEY: ClassVar[int | None] = 3
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = None

    group_id: str = ""


# ConsumerGroupMetadataKey in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[ConsumerGroupMetadataKey, int]:
    message = new(ConsumerGroupMetadataKey)
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    return message, at


def write_v0(message: ConsumerGroupMetadataKey, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    group_id = message.group_id.encode()
    add(pack_i2(len(group_id)))
    add(group_id)


# version → its layout's pair
CODECS: dict[int, Codec[ConsumerGroupMetadataKey]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
ConsumerGroupMetadataKey.FIELDS = (Field("group_id", "groupId", "string", (0, 0)),)
