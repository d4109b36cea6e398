"""AddOffsetsToTxnResponse, versions 0–4: its classes, and one read and write pair per layout.

Generated from schemas/AddOffsetsToTxnResponse.json by `python -m codegen`; edits here are lost.
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
    left_over,
    new,
    read_tags,
    write_tags,
)

pack_i4_i2: Final = struct.Struct(">ih").pack
unpack_i4_i2: Final = struct.Struct(">ih").unpack_from
unpack_i4_i2_u1: Final = struct.Struct(">ihB").unpack_from


@define(weakref_slot=False)
class AddOffsetsToTxnResponse(Message):
    """Says whether the group's offsets may go into the transaction.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Since version 1 the answer is immediate and
            the client must stay silent that long; before, the broker had already held the answer back.
        error_code: 0 to go on with TxnOffsetCommit; 51 means that the last transaction is still being ended:
            try again.
    """

    NAME: ClassVar[str] = "AddOffsetsToTxnResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 25
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_SINCE: ClassVar[int | None] = 3

    throttle_time_ms: int = 0
    error_code: int = 0


# AddOffsetsToTxnResponse in versions 0–2
def read_v0(data: Buffer, at: int, size: int) -> tuple[AddOffsetsToTxnResponse, int]:
    message = new(AddOffsetsToTxnResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code = unpack_i4_i2(data, at)
    at += 6
    return message, at


def write_v0(message: AddOffsetsToTxnResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4_i2(message.throttle_time_ms, message.error_code))


# AddOffsetsToTxnResponse in versions 3–4
def read_v3(data: Buffer, at: int, size: int) -> tuple[AddOffsetsToTxnResponse, int]:
    message = new(AddOffsetsToTxnResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, tags = unpack_i4_i2_u1(data, at)
    at += 7
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v3(message: AddOffsetsToTxnResponse, add: Add) -> None:
    add(pack_i4_i2(message.throttle_time_ms, message.error_code))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[AddOffsetsToTxnResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v0, write_v0),
    3: (read_v3, write_v3),
    4: (read_v3, write_v3),
}

# what JSON and error messages know of the fields
AddOffsetsToTxnResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (0, 4)),
    Field("error_code", "errorCode", "int16", (0, 4)),
)
