"""LegacyOffsetCommitValue, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/LegacyOffsetCommitValue.json by `python -m codegen`; edits here are lost.
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

pack_i8: Final = struct.Struct(">q").pack
pack_i8_i2: Final = struct.Struct(">qh").pack
unpack_i8: Final = struct.Struct(">q").unpack_from
unpack_i8_i2: Final = struct.Struct(">qh").unpack_from


@define(weakref_slot=False)
class LegacyOffsetCommitValue(Message):
    """A committed offset as Kafka 0.8 wrote it; OffsetCommitValue reads the same bytes as its version 0.

    Attributes:
        offset: The next offset the group wants to read.
        metadata: Free text that came with the commit; empty when there is none.
        commit_timestamp: When the commit was made, in milliseconds since 1970.
    """

    NAME: ClassVar[str] = "LegacyOffsetCommitValue"
    TYPE: ClassVar[str] = "coordinator-value"
    API_KEY: ClassVar[int | None] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = None

    offset: int = 0
    metadata: str = ""
    commit_timestamp: int = 0


# LegacyOffsetCommitValue in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[LegacyOffsetCommitValue, int]:
    message = new(LegacyOffsetCommitValue)
    message.unknown_tags = ()
    message.offset, length = unpack_i8_i2(data, at)
    at += 10
    end = at + length
    if not at <= end <= size:
        raise Malformed("metadata")
    message.metadata = str(data[at:end], "utf-8")
    at = end
    (message.commit_timestamp,) = unpack_i8(data, at)
    at += 8
    return message, at


def write_v0(message: LegacyOffsetCommitValue, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    metadata = message.metadata.encode()
    add(pack_i8_i2(message.offset, len(metadata)))
    add(metadata)
    add(pack_i8(message.commit_timestamp))


# version → its layout's pair
CODECS: dict[int, Codec[LegacyOffsetCommitValue]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
LegacyOffsetCommitValue.FIELDS = (
    Field("offset", "offset", "int64", (0, 0)),
    Field("metadata", "metadata", "string", (0, 0)),
    Field("commit_timestamp", "commitTimestamp", "int64", (0, 0)),
)
