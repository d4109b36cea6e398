"""InitProducerIdResponse, versions 0–6: its classes, and one read and write pair per layout.

Generated from schemas/InitProducerIdResponse.json by `python -m codegen`; edits here are lost.
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

pack_i4_i2_i8_i2: Final = struct.Struct(">ihqh").pack
pack_i4_i2_i8_i2_i8_i2: Final = struct.Struct(">ihqhqh").pack
unpack_i4_i2_i8_i2: Final = struct.Struct(">ihqh").unpack_from
unpack_i4_i2_i8_i2_i8_i2_u1: Final = struct.Struct(">ihqhqhB").unpack_from
unpack_i4_i2_i8_i2_u1: Final = struct.Struct(">ihqhB").unpack_from


@define(weakref_slot=False)
class InitProducerIdResponse(Message):
    """The id and epoch the producer puts into its batches from now on.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Since version 1 the answer is immediate and
            the client must stay silent that long; before, the broker had already held the answer back.
        error_code: 0, or why there is no id; 51 means that the predecessor's transaction is still being
            ended: try again.
        producer_id: The producer's id; -1 on error.
        producer_epoch: The producer's epoch, counted up with every initialisation.
        ongoing_txn_producer_id: Producer id of the prepared transaction that was kept; -1 when there is none.
        ongoing_txn_producer_epoch: Producer epoch of the prepared transaction that was kept; -1 when there is
            none.
    """

    NAME: ClassVar[str] = "InitProducerIdResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 22
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_SINCE: ClassVar[int | None] = 2

    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = 0
    ongoing_txn_producer_id: int = -1
    ongoing_txn_producer_epoch: int = -1


# InitProducerIdResponse in versions 0–1
def read_v0(data: Buffer, at: int, size: int) -> tuple[InitProducerIdResponse, int]:
    message = new(InitProducerIdResponse)
    message.ongoing_txn_producer_id = -1
    message.ongoing_txn_producer_epoch = -1
    message.unknown_tags = ()
    (
        message.throttle_time_ms,
        message.error_code,
        message.producer_id,
        message.producer_epoch,
    ) = unpack_i4_i2_i8_i2(data, at)
    at += 16
    return message, at


def write_v0(message: InitProducerIdResponse, add: Add) -> None:
    if message.ongoing_txn_producer_id != -1:
        raise Unwritable("ongoing_txn_producer_id")
    if message.ongoing_txn_producer_epoch != -1:
        raise Unwritable("ongoing_txn_producer_epoch")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(
        pack_i4_i2_i8_i2(
            message.throttle_time_ms,
            message.error_code,
            message.producer_id,
            message.producer_epoch,
        )
    )


# InitProducerIdResponse in versions 2–5
def read_v2(data: Buffer, at: int, size: int) -> tuple[InitProducerIdResponse, int]:
    message = new(InitProducerIdResponse)
    message.ongoing_txn_producer_id = -1
    message.ongoing_txn_producer_epoch = -1
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


def write_v2(message: InitProducerIdResponse, add: Add) -> None:
    if message.ongoing_txn_producer_id != -1:
        raise Unwritable("ongoing_txn_producer_id")
    if message.ongoing_txn_producer_epoch != -1:
        raise Unwritable("ongoing_txn_producer_epoch")
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


# InitProducerIdResponse in version 6
def read_v6(data: Buffer, at: int, size: int) -> tuple[InitProducerIdResponse, int]:
    message = new(InitProducerIdResponse)
    message.unknown_tags = ()
    (
        message.throttle_time_ms,
        message.error_code,
        message.producer_id,
        message.producer_epoch,
        message.ongoing_txn_producer_id,
        message.ongoing_txn_producer_epoch,
        tags,
    ) = unpack_i4_i2_i8_i2_i8_i2_u1(data, at)
    at += 27
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v6(message: InitProducerIdResponse, add: Add) -> None:
    add(
        pack_i4_i2_i8_i2_i8_i2(
            message.throttle_time_ms,
            message.error_code,
            message.producer_id,
            message.producer_epoch,
            message.ongoing_txn_producer_id,
            message.ongoing_txn_producer_epoch,
        )
    )
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[InitProducerIdResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v2, write_v2),
    3: (read_v2, write_v2),
    4: (read_v2, write_v2),
    5: (read_v2, write_v2),
    6: (read_v6, write_v6),
}

# what JSON and error messages know of the fields
InitProducerIdResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (0, 6), ignorable=True),
    Field("error_code", "errorCode", "int16", (0, 6)),
    Field("producer_id", "producerId", "int64", (0, 6)),
    Field("producer_epoch", "producerEpoch", "int16", (0, 6)),
    Field("ongoing_txn_producer_id", "ongoingTxnProducerId", "int64", (6, 6)),
    Field("ongoing_txn_producer_epoch", "ongoingTxnProducerEpoch", "int16", (6, 6)),
)
