"""ConsumerGroupMetadataValue, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/ConsumerGroupMetadataValue.json by `python -m codegen`; edits here are lost.
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
    read_whole,
    write_tags,
    written,
)

pack_i4: Final = struct.Struct(">i").pack
pack_i8: Final = struct.Struct(">q").pack
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i8: Final = struct.Struct(">q").unpack_from


@define(weakref_slot=False)
class ConsumerGroupMetadataValue(Message):
    """The epoch of a consumer-protocol group; each change of members, subscriptions or topics gives a new
    one.

    Attributes:
        epoch: The group epoch, towards which the members' epochs move.
        metadata_hash: Hash over the subscribed topics as the group knows them, so that a change is noticed; 0
            before Kafka 4.1 and for no topics.
    """

    NAME: ClassVar[str] = "ConsumerGroupMetadataValue"
    TYPE: ClassVar[str] = "coordinator-value"
    API_KEY: ClassVar[int | None] = 3
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    epoch: int = 0
    metadata_hash: int = 0


def read_metadata_hash_tag_v0(data: Buffer, at: int, size: int) -> tuple[int, int]:
    value: int
    (value,) = unpack_i8(data, at)
    at += 8
    return value, at


def write_metadata_hash_tag_v0(value: int, add: Add) -> None:
    add(pack_i8(value))


# ConsumerGroupMetadataValue in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[ConsumerGroupMetadataValue, int]:
    message = new(ConsumerGroupMetadataValue)
    message.metadata_hash = 0
    message.unknown_tags = ()
    message.epoch, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        if 0 in found:
            message.metadata_hash = read_whole(read_metadata_hash_tag_v0, found.pop(0))
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: ConsumerGroupMetadataValue, add: Add) -> None:
    add(pack_i4(message.epoch))
    tags: dict[int, bytes] = {}
    if message.metadata_hash != 0:
        tags[0] = written(write_metadata_hash_tag_v0, message.metadata_hash)
    if tags or message.unknown_tags:
        write_tags((0,), tags, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ConsumerGroupMetadataValue]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
ConsumerGroupMetadataValue.FIELDS = (
    Field("epoch", "epoch", "int32", (0, 0)),
    Field("metadata_hash", "metadataHash", "int64", (0, 0), tagged=(0, 0), tag=0),
)
