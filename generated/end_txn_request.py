"""EndTxnRequest, versions 0–5: its classes, and one read and write pair per layout.

Generated from schemas/EndTxnRequest.json by `python -m codegen`; edits here are lost.
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
    compact_string_length,
    left_over,
    new,
    read_string_length,
    read_tags,
    write_tags,
)

pack_i2: Final = struct.Struct(">h").pack
pack_i8_i2_bool: Final = struct.Struct(">qh?").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i8_i2_bool: Final = struct.Struct(">qh?").unpack_from
unpack_i8_i2_bool_u1: Final = struct.Struct(">qh?B").unpack_from


@define(weakref_slot=False)
class EndTxnRequest(Message):
    """Ends a transaction: the coordinator then writes markers into all its partitions.

    Attributes:
        transactional_id: The transactional id of the producer.
        producer_id: The producer's id from InitProducerId.
        producer_epoch: The producer's epoch; an older one is fenced off as a zombie.
        committed: True to commit the transaction, false to abort it.
    """

    NAME: ClassVar[str] = "EndTxnRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 26
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_SINCE: ClassVar[int | None] = 3

    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    committed: bool = False


# EndTxnRequest in versions 0–2
def read_v0(data: Buffer, at: int, size: int) -> tuple[EndTxnRequest, int]:
    message = new(EndTxnRequest)
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("transactional_id")
    message.transactional_id = str(data[at:end], "utf-8")
    at = end
    message.producer_id, message.producer_epoch, message.committed = unpack_i8_i2_bool(data, at)
    at += 11
    return message, at


def write_v0(message: EndTxnRequest, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    transactional_id = message.transactional_id.encode()
    add(pack_i2(len(transactional_id)))
    add(transactional_id)
    add(pack_i8_i2_bool(message.producer_id, message.producer_epoch, message.committed))


# EndTxnRequest in versions 3–5
def read_v3(data: Buffer, at: int, size: int) -> tuple[EndTxnRequest, int]:
    message = new(EndTxnRequest)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("transactional_id")
    message.transactional_id = str(data[at:end], "utf-8")
    at = end
    message.producer_id, message.producer_epoch, message.committed, tags = unpack_i8_i2_bool_u1(data, at)
    at += 12
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v3(message: EndTxnRequest, add: Add) -> None:
    transactional_id = message.transactional_id.encode()
    add(compact_string_length[len(transactional_id)])
    add(transactional_id)
    add(pack_i8_i2_bool(message.producer_id, message.producer_epoch, message.committed))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[EndTxnRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v0, write_v0),
    3: (read_v3, write_v3),
    4: (read_v3, write_v3),
    5: (read_v3, write_v3),
}

# what JSON and error messages know of the fields
EndTxnRequest.FIELDS = (
    Field("transactional_id", "transactionalId", "string", (0, 5)),
    Field("producer_id", "producerId", "int64", (0, 5)),
    Field("producer_epoch", "producerEpoch", "int16", (0, 5)),
    Field("committed", "committed", "bool", (0, 5)),
)
