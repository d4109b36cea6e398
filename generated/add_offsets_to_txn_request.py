"""AddOffsetsToTxnRequest, versions 0–4: its classes, and one read and write pair per layout.

Generated from schemas/AddOffsetsToTxnRequest.json by `python -m codegen`; edits here are lost.
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
pack_i8_i2: Final = struct.Struct(">qh").pack
pack_i8_i2x2: Final = struct.Struct(">qhh").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i8_i2_u1: Final = struct.Struct(">qhB").unpack_from
unpack_i8_i2x2: Final = struct.Struct(">qhh").unpack_from


@define(weakref_slot=False)
class AddOffsetsToTxnRequest(Message):
    """Tells the transaction coordinator that the transaction will also commit offsets of a group.

    Attributes:
        transactional_id: The transactional id of the producer.
        producer_id: The producer's id from InitProducerId.
        producer_epoch: The producer's epoch; an older one is fenced off as a zombie.
        group_id: The group whose offsets are committed within the transaction.
    """

    NAME: ClassVar[str] = "AddOffsetsToTxnRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 25
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_SINCE: ClassVar[int | None] = 3

    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    group_id: str = ""


# AddOffsetsToTxnRequest in versions 0–2
def read_v0(data: Buffer, at: int, size: int) -> tuple[AddOffsetsToTxnRequest, int]:
    message = new(AddOffsetsToTxnRequest)
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("transactional_id")
    message.transactional_id = str(data[at:end], "utf-8")
    at = end
    message.producer_id, message.producer_epoch, length = unpack_i8_i2x2(data, at)
    at += 12
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    return message, at


def write_v0(message: AddOffsetsToTxnRequest, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    transactional_id = message.transactional_id.encode()
    add(pack_i2(len(transactional_id)))
    add(transactional_id)
    group_id = message.group_id.encode()
    add(pack_i8_i2x2(message.producer_id, message.producer_epoch, len(group_id)))
    add(group_id)


# AddOffsetsToTxnRequest in versions 3–4
def read_v3(data: Buffer, at: int, size: int) -> tuple[AddOffsetsToTxnRequest, int]:
    message = new(AddOffsetsToTxnRequest)
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
    message.producer_id, message.producer_epoch, length = unpack_i8_i2_u1(data, at)
    at += 11
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v3(message: AddOffsetsToTxnRequest, add: Add) -> None:
    transactional_id = message.transactional_id.encode()
    add(compact_string_length[len(transactional_id)])
    add(transactional_id)
    add(pack_i8_i2(message.producer_id, message.producer_epoch))
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[AddOffsetsToTxnRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v0, write_v0),
    3: (read_v3, write_v3),
    4: (read_v3, write_v3),
}

# what JSON and error messages know of the fields
AddOffsetsToTxnRequest.FIELDS = (
    Field("transactional_id", "transactionalId", "string", (0, 4)),
    Field("producer_id", "producerId", "int64", (0, 4)),
    Field("producer_epoch", "producerEpoch", "int16", (0, 4)),
    Field("group_id", "groupId", "string", (0, 4)),
)
