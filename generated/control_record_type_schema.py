"""ControlRecordTypeSchema, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/ControlRecordTypeSchema.json by `python -m codegen`; edits here are lost.
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
    Unwritable,
    new,
)

pack_i2: Final = struct.Struct(">h").pack
unpack_i2: Final = struct.Struct(">h").unpack_from


@define(weakref_slot=False)
class ControlRecordTypeSchema(Message):
    """Key of a control record, after an int16 version: says what the record controls. Consumers never hand
    such records out.

    Attributes:
        type: 0 the transaction was aborted, 1 it was committed; 2 and above belong to KRaft and are skipped.
    """

    NAME: ClassVar[str] = "ControlRecordTypeSchema"
    TYPE: ClassVar[str] = "data"
    API_KEY: ClassVar[int | None] = None
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = None

    type: int = 0


# ControlRecordTypeSchema in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[ControlRecordTypeSchema, int]:
    message = new(ControlRecordTypeSchema)
    message.unknown_tags = ()
    (message.type,) = unpack_i2(data, at)
    at += 2
    return message, at


def write_v0(message: ControlRecordTypeSchema, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i2(message.type))


# version → its layout's pair
CODECS: dict[int, Codec[ControlRecordTypeSchema]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
ControlRecordTypeSchema.FIELDS = (Field("type", "type", "int16", (0, 0)),)
