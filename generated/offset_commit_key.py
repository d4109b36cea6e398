"""OffsetCommitKey, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/OffsetCommitKey.json by `python -m codegen`; edits here are lost.
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
pack_i4: Final = struct.Struct(">i").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from


@define(weakref_slot=False)
class OffsetCommitKey(Message):
    """Key of record type 1 in __consumer_offsets: one partition's committed offset. A null value behind it
    means deleted or expired.

    Attributes:
        group: The group that committed.
        topic: The topic of the committed partition.
        partition: The committed partition's number within its topic.
    """

    NAME: ClassVar[str] = "OffsetCommitKey"
    TYPE: ClassVar[str] = "coordinator-key"
    API_KEY: ClassVar[int | None] = 1
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = None

    group: str = ""
    topic: str = ""
    partition: int = 0


# OffsetCommitKey in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[OffsetCommitKey, int]:
    message = new(OffsetCommitKey)
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("group")
    message.group = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("topic")
    message.topic = str(data[at:end], "utf-8")
    at = end
    (message.partition,) = unpack_i4(data, at)
    at += 4
    return message, at


def write_v0(message: OffsetCommitKey, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    group = message.group.encode()
    add(pack_i2(len(group)))
    add(group)
    topic = message.topic.encode()
    add(pack_i2(len(topic)))
    add(topic)
    add(pack_i4(message.partition))


# version → its layout's pair
CODECS: dict[int, Codec[OffsetCommitKey]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
OffsetCommitKey.FIELDS = (
    Field("group", "group", "string", (0, 0)),
    Field("topic", "topic", "string", (0, 0)),
    Field("partition", "partition", "int32", (0, 0)),
)
