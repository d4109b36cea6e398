"""EndTxnResponse, versions 0–5: its classes, and one read and write pair per layout.

Generated from schemas/EndTxnResponse.json by `python -m codegen`; edits here are lost.
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
pack_i4_i2_i8_i2: Final = struct.Struct(">ihqh").pack
unpack_i4_i2: Final = struct.Struct(">ih").unpack_from
unpack_i4_i2_i8_i2_u1: Final = struct.Struct(">ihqhB").unpack_from
unpack_i4_i2_u1: Final = struct.Struct(">ihB").unpack_from


@define(weakref_slot=False)
class EndTxnResponse(Message):
    """Says that the outcome is decided; the markers may still be on their way.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Since version 1 the answer is immediate and
            the client must stay silent that long; before, the broker had already held the answer back.
        error_code: 0, or why the transaction could not be ended.
        producer_id: The producer id for the next transaction, which may be new (version 5); -1 when not told.
        producer_epoch: The epoch for the next transaction, raised with every one since version 5; -1 when not
            told.
    """

    NAME: ClassVar[str] = "EndTxnResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 26
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_SINCE: ClassVar[int | None] = 3

    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = -1


# EndTxnResponse in versions 0–2
def read_v0(data: Buffer, at: int, size: int) -> tuple[EndTxnResponse, int]:
    message = new(EndTxnResponse)
    message.producer_id = -1
    message.producer_epoch = -1
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code = unpack_i4_i2(data, at)
    at += 6
    return message, at


def write_v0(message: EndTxnResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4_i2(message.throttle_time_ms, message.error_code))


# EndTxnResponse in versions 3–4
def read_v3(data: Buffer, at: int, size: int) -> tuple[EndTxnResponse, int]:
    message = new(EndTxnResponse)
    message.producer_id = -1
    message.producer_epoch = -1
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, tags = unpack_i4_i2_u1(data, at)
    at += 7
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v3(message: EndTxnResponse, add: Add) -> None:
    add(pack_i4_i2(message.throttle_time_ms, message.error_code))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# EndTxnResponse in version 5
def read_v5(data: Buffer, at: int, size: int) -> tuple[EndTxnResponse, int]:
    message = new(EndTxnResponse)
    message.unknown_tags = ()
    (
        message.throttle_time_ms,
        message.error_code,
        message.producer_id,
        message.producer_epoch,
        tags,
    ) = unpack_i4_i2_i8_i2_u1(data, at)
    at += 17
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v5(message: EndTxnResponse, add: Add) -> None:
    add(
        pack_i4_i2_i8_i2(
            message.throttle_time_ms,
            message.error_code,
            message.producer_id,
            message.producer_epoch,
        )
    )
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[EndTxnResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v0, write_v0),
    3: (read_v3, write_v3),
    4: (read_v3, write_v3),
    5: (read_v5, write_v5),
}

# what JSON and error messages know of the fields
EndTxnResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (0, 5)),
    Field("error_code", "errorCode", "int16", (0, 5)),
    Field("producer_id", "producerId", "int64", (5, 5), ignorable=True),
    Field("producer_epoch", "producerEpoch", "int16", (5, 5), ignorable=True),
)
