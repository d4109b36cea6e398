"""InitProducerIdRequest, versions 0–6: its classes, and one read and write pair per layout.

Generated from schemas/InitProducerIdRequest.json by `python -m codegen`; edits here are lost.
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
pack_i4: Final = struct.Struct(">i").pack
pack_i4_i8_i2: Final = struct.Struct(">iqh").pack
pack_i4_i8_i2_boolx2: Final = struct.Struct(">iqh??").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_i8_i2_boolx2_u1: Final = struct.Struct(">iqh??B").unpack_from
unpack_i4_i8_i2_u1: Final = struct.Struct(">iqhB").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from


@define(weakref_slot=False)
class InitProducerIdRequest(Message):
    """Gets a producer its id and epoch; with a transactional id it also fences the predecessor and ends its
    transaction.

    Attributes:
        transactional_id: The name under which transactions survive restarts; null for a producer that is only
            idempotent.
        transaction_timeout_ms: Milliseconds after which an open transaction is aborted by the coordinator;
            without a transactional id it means nothing.
        producer_id: The id the producer has and wants a new epoch for; -1 at the first call.
        producer_epoch: The epoch the producer has; a coordinator that knows a newer one fences the caller. -1
            at the first call.
        enable2_pc: True for a producer in a two-phase commit, whose transactions never time out (KIP-939).
        keep_prepared_txn: True to leave a prepared transaction open, so that an outer coordinator can decide
            on it (KIP-939).
    """

    NAME: ClassVar[str] = "InitProducerIdRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 22
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_SINCE: ClassVar[int | None] = 2

    transactional_id: str | None = ""
    transaction_timeout_ms: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    enable2_pc: bool = False
    keep_prepared_txn: bool = False


# InitProducerIdRequest in versions 0–1
def read_v0(data: Buffer, at: int, size: int) -> tuple[InitProducerIdRequest, int]:
    message = new(InitProducerIdRequest)
    message.producer_id = -1
    message.producer_epoch = -1
    message.enable2_pc = False
    message.keep_prepared_txn = False
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    if length == -1:
        message.transactional_id = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("transactional_id")
        message.transactional_id = str(data[at:end], "utf-8")
        at = end
    (message.transaction_timeout_ms,) = unpack_i4(data, at)
    at += 4
    return message, at


def write_v0(message: InitProducerIdRequest, add: Add) -> None:
    if message.producer_id != -1:
        raise Unwritable("producer_id")
    if message.producer_epoch != -1:
        raise Unwritable("producer_epoch")
    if message.enable2_pc:
        raise Unwritable("enable2_pc")
    if message.keep_prepared_txn:
        raise Unwritable("keep_prepared_txn")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    transactional_id = message.transactional_id
    if transactional_id is None:
        add(b"\xff\xff")
    else:
        transactional_id_bytes = transactional_id.encode()
        add(pack_i2(len(transactional_id_bytes)))
        add(transactional_id_bytes)
    add(pack_i4(message.transaction_timeout_ms))


# InitProducerIdRequest in version 2
def read_v2(data: Buffer, at: int, size: int) -> tuple[InitProducerIdRequest, int]:
    message = new(InitProducerIdRequest)
    message.producer_id = -1
    message.producer_epoch = -1
    message.enable2_pc = False
    message.keep_prepared_txn = False
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.transactional_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("transactional_id")
        message.transactional_id = str(data[at:end], "utf-8")
        at = end
    message.transaction_timeout_ms, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v2(message: InitProducerIdRequest, add: Add) -> None:
    if message.producer_id != -1:
        raise Unwritable("producer_id")
    if message.producer_epoch != -1:
        raise Unwritable("producer_epoch")
    if message.enable2_pc:
        raise Unwritable("enable2_pc")
    if message.keep_prepared_txn:
        raise Unwritable("keep_prepared_txn")
    transactional_id = message.transactional_id
    if transactional_id is None:
        add(b"\x00")
    else:
        transactional_id_bytes = transactional_id.encode()
        add(compact_string_length[len(transactional_id_bytes)])
        add(transactional_id_bytes)
    add(pack_i4(message.transaction_timeout_ms))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# InitProducerIdRequest in versions 3–5
def read_v3(data: Buffer, at: int, size: int) -> tuple[InitProducerIdRequest, int]:
    message = new(InitProducerIdRequest)
    message.enable2_pc = False
    message.keep_prepared_txn = False
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.transactional_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("transactional_id")
        message.transactional_id = str(data[at:end], "utf-8")
        at = end
    (
        message.transaction_timeout_ms,
        message.producer_id,
        message.producer_epoch,
        tags,
    ) = unpack_i4_i8_i2_u1(data, at)
    at += 15
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v3(message: InitProducerIdRequest, add: Add) -> None:
    if message.enable2_pc:
        raise Unwritable("enable2_pc")
    if message.keep_prepared_txn:
        raise Unwritable("keep_prepared_txn")
    transactional_id = message.transactional_id
    if transactional_id is None:
        add(b"\x00")
    else:
        transactional_id_bytes = transactional_id.encode()
        add(compact_string_length[len(transactional_id_bytes)])
        add(transactional_id_bytes)
    add(pack_i4_i8_i2(message.transaction_timeout_ms, message.producer_id, message.producer_epoch))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# InitProducerIdRequest in version 6
def read_v6(data: Buffer, at: int, size: int) -> tuple[InitProducerIdRequest, int]:
    message = new(InitProducerIdRequest)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.transactional_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("transactional_id")
        message.transactional_id = str(data[at:end], "utf-8")
        at = end
    (
        message.transaction_timeout_ms,
        message.producer_id,
        message.producer_epoch,
        message.enable2_pc,
        message.keep_prepared_txn,
        tags,
    ) = unpack_i4_i8_i2_boolx2_u1(data, at)
    at += 17
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v6(message: InitProducerIdRequest, add: Add) -> None:
    transactional_id = message.transactional_id
    if transactional_id is None:
        add(b"\x00")
    else:
        transactional_id_bytes = transactional_id.encode()
        add(compact_string_length[len(transactional_id_bytes)])
        add(transactional_id_bytes)
    add(
        pack_i4_i8_i2_boolx2(
            message.transaction_timeout_ms,
            message.producer_id,
            message.producer_epoch,
            message.enable2_pc,
            message.keep_prepared_txn,
        )
    )
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[InitProducerIdRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v2, write_v2),
    3: (read_v3, write_v3),
    4: (read_v3, write_v3),
    5: (read_v3, write_v3),
    6: (read_v6, write_v6),
}

# what JSON and error messages know of the fields
InitProducerIdRequest.FIELDS = (
    Field("transactional_id", "transactionalId", "string", (0, 6), nullable=(0, 6)),
    Field("transaction_timeout_ms", "transactionTimeoutMs", "int32", (0, 6)),
    Field("producer_id", "producerId", "int64", (3, 6)),
    Field("producer_epoch", "producerEpoch", "int16", (3, 6)),
    Field("enable2_pc", "enable2Pc", "bool", (6, 6)),
    Field("keep_prepared_txn", "keepPreparedTxn", "bool", (6, 6)),
)
