"""TransactionLogValue, versions 0–1: its classes, and one read and write pair per layout.

Generated from schemas/TransactionLogValue.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import Factory, define

from kclient.protocol.message import Field, Message, Struct
from kclient.protocol.primitives import (
    Add,
    Buffer,
    Codec,
    Malformed,
    Unwritable,
    compact_length,
    compact_string_length,
    int32_array,
    left_over,
    new,
    read_string_length,
    read_tags,
    read_uvarint,
    read_whole,
    write_tags,
    written,
)

pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
pack_i8: Final = struct.Struct(">q").pack
pack_i8_i2_i4_i1: Final = struct.Struct(">qhib").pack
pack_i8x2: Final = struct.Struct(">qq").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i8: Final = struct.Struct(">q").unpack_from
unpack_i8_i2_i4_i1_i4: Final = struct.Struct(">qhibi").unpack_from
unpack_i8_i2_i4_i1_u1: Final = struct.Struct(">qhibB").unpack_from
unpack_i8x2: Final = struct.Struct(">qq").unpack_from
unpack_i8x2_u1: Final = struct.Struct(">qqB").unpack_from


@define(weakref_slot=False)
class PartitionsSchema(Struct):
    """Where the transaction has written, and its markers go; null when it is empty.

    Attributes:
        topic: A topic with records of the transaction; __consumer_offsets when it commits a group's offsets.
        partition_ids: The partitions of that topic.
    """

    topic: str = ""
    partition_ids: list[int] = Factory(list)


@define(weakref_slot=False)
class TransactionLogValue(Message):
    """What the transaction coordinator knows of a transactional id, after an int16 version; a later record
    with the same key replaces it.

    Attributes:
        producer_id: The producer id that stands for the transactional id now.
        previous_producer_id: The producer id before the epochs of that one were used up; -1 when there was
            none.
        next_producer_id: The producer id that takes over when the transaction that is being ended is
            complete; -1 when it stays the same.
        producer_epoch: The newest epoch of the producer id; older ones are fenced.
        transaction_timeout_ms: How long a transaction may stay open before the coordinator aborts it.
        transaction_status: 0 empty, 1 ongoing, 2 prepare commit, 3 prepare abort, 4 complete commit, 5
            complete abort, 6 dead, 7 prepare epoch fence.
        transaction_partitions: Where the transaction has written, and its markers go; null when it is empty.
        transaction_last_update_timestamp_ms: When this state was entered, in milliseconds since 1970; an
            unused id expires counted from it.
        transaction_start_timestamp_ms: When the first partition was added, in milliseconds since 1970; the
            timeout counts from it. -1 before that.
        client_transaction_version: The transaction.version that the producer speaks: from 2 on every
            transaction ends with a new epoch.
        next_producer_epoch: The epoch that takes over when the transaction that is being ended is complete;
            -1 when it stays the same.
    """

    NAME: ClassVar[str] = "TransactionLogValue"
    TYPE: ClassVar[str] = "data"
    API_KEY: ClassVar[int | None] = None
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_SINCE: ClassVar[int | None] = 1

    producer_id: int = 0
    previous_producer_id: int = -1
    next_producer_id: int = -1
    producer_epoch: int = 0
    transaction_timeout_ms: int = 0
    transaction_status: int = 0
    transaction_partitions: list[PartitionsSchema] | None = Factory(list)
    transaction_last_update_timestamp_ms: int = 0
    transaction_start_timestamp_ms: int = 0
    client_transaction_version: int = 0
    next_producer_epoch: int = -1


# PartitionsSchema in version 0
def read_partitions_schema_v0(data: Buffer, at: int, size: int) -> tuple[PartitionsSchema, int]:
    message = new(PartitionsSchema)
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("topic")
    message.topic = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 4 <= size - at:
        raise Malformed("partition_ids")
    message.partition_ids = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    return message, at


def write_partitions_schema_v0(message: PartitionsSchema, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topic = message.topic.encode()
    add(pack_i2(len(topic)))
    add(topic)
    partition_ids = message.partition_ids
    add(pack_i4(len(partition_ids)))
    add(int32_array[len(partition_ids)].pack(*partition_ids))


# TransactionLogValue in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[TransactionLogValue, int]:
    message = new(TransactionLogValue)
    message.previous_producer_id = -1
    message.next_producer_id = -1
    message.client_transaction_version = 0
    message.next_producer_epoch = -1
    message.unknown_tags = ()
    (
        message.producer_id,
        message.producer_epoch,
        message.transaction_timeout_ms,
        message.transaction_status,
        count,
    ) = unpack_i8_i2_i4_i1_i4(data, at)
    at += 19
    if count == -1:
        message.transaction_partitions = None
    else:
        if not 0 <= count * 6 <= size - at:
            raise Malformed("transaction_partitions")
        transaction_partitions: list[PartitionsSchema] = []
        for _ in range(count):
            transaction_partition, at = read_partitions_schema_v0(data, at, size)
            transaction_partitions.append(transaction_partition)
        message.transaction_partitions = transaction_partitions
    (
        message.transaction_last_update_timestamp_ms,
        message.transaction_start_timestamp_ms,
    ) = unpack_i8x2(data, at)
    at += 16
    return message, at


def write_v0(message: TransactionLogValue, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(
        pack_i8_i2_i4_i1(
            message.producer_id,
            message.producer_epoch,
            message.transaction_timeout_ms,
            message.transaction_status,
        )
    )
    transaction_partitions = message.transaction_partitions
    if transaction_partitions is None:
        add(b"\xff\xff\xff\xff")
    else:
        add(pack_i4(len(transaction_partitions)))
        for transaction_partition in transaction_partitions:
            write_partitions_schema_v0(transaction_partition, add)
    add(pack_i8x2(message.transaction_last_update_timestamp_ms, message.transaction_start_timestamp_ms))


# PartitionsSchema in version 1
def read_partitions_schema_v1(data: Buffer, at: int, size: int) -> tuple[PartitionsSchema, int]:
    message = new(PartitionsSchema)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("topic")
    message.topic = str(data[at:end], "utf-8")
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 4 <= size - at:
        raise Malformed("partition_ids")
    message.partition_ids = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_partitions_schema_v1(message: PartitionsSchema, add: Add) -> None:
    topic = message.topic.encode()
    add(compact_string_length[len(topic)])
    add(topic)
    partition_ids = message.partition_ids
    add(compact_length[len(partition_ids)])
    add(int32_array[len(partition_ids)].pack(*partition_ids))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


def read_previous_producer_id_tag_v1(data: Buffer, at: int, size: int) -> tuple[int, int]:
    value: int
    (value,) = unpack_i8(data, at)
    at += 8
    return value, at


def write_previous_producer_id_tag_v1(value: int, add: Add) -> None:
    add(pack_i8(value))


def read_next_producer_id_tag_v1(data: Buffer, at: int, size: int) -> tuple[int, int]:
    value: int
    (value,) = unpack_i8(data, at)
    at += 8
    return value, at


def write_next_producer_id_tag_v1(value: int, add: Add) -> None:
    add(pack_i8(value))


def read_client_transaction_version_tag_v1(data: Buffer, at: int, size: int) -> tuple[int, int]:
    value: int
    (value,) = unpack_i2(data, at)
    at += 2
    return value, at


def write_client_transaction_version_tag_v1(value: int, add: Add) -> None:
    add(pack_i2(value))


def read_next_producer_epoch_tag_v1(data: Buffer, at: int, size: int) -> tuple[int, int]:
    value: int
    (value,) = unpack_i2(data, at)
    at += 2
    return value, at


def write_next_producer_epoch_tag_v1(value: int, add: Add) -> None:
    add(pack_i2(value))


# TransactionLogValue in version 1
def read_v1(data: Buffer, at: int, size: int) -> tuple[TransactionLogValue, int]:
    message = new(TransactionLogValue)
    message.previous_producer_id = -1
    message.next_producer_id = -1
    message.client_transaction_version = 0
    message.next_producer_epoch = -1
    message.unknown_tags = ()
    (
        message.producer_id,
        message.producer_epoch,
        message.transaction_timeout_ms,
        message.transaction_status,
        count,
    ) = unpack_i8_i2_i4_i1_u1(data, at)
    at += 16
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        message.transaction_partitions = None
    else:
        count -= 1
        if not 0 <= count * 3 <= size - at:
            raise Malformed("transaction_partitions")
        transaction_partitions: list[PartitionsSchema] = []
        for _ in range(count):
            transaction_partition, at = read_partitions_schema_v1(data, at, size)
            transaction_partitions.append(transaction_partition)
        message.transaction_partitions = transaction_partitions
    (
        message.transaction_last_update_timestamp_ms,
        message.transaction_start_timestamp_ms,
        tags,
    ) = unpack_i8x2_u1(data, at)
    at += 17
    if tags:
        found, at = read_tags(tags, data, at, size)
        if 0 in found:
            message.previous_producer_id = read_whole(read_previous_producer_id_tag_v1, found.pop(0))
        if 1 in found:
            message.next_producer_id = read_whole(read_next_producer_id_tag_v1, found.pop(1))
        if 2 in found:
            message.client_transaction_version = read_whole(
                read_client_transaction_version_tag_v1,
                found.pop(2),
            )
        if 3 in found:
            message.next_producer_epoch = read_whole(read_next_producer_epoch_tag_v1, found.pop(3))
        message.unknown_tags = left_over(found)
    return message, at


def write_v1(message: TransactionLogValue, add: Add) -> None:
    add(
        pack_i8_i2_i4_i1(
            message.producer_id,
            message.producer_epoch,
            message.transaction_timeout_ms,
            message.transaction_status,
        )
    )
    transaction_partitions = message.transaction_partitions
    if transaction_partitions is None:
        add(b"\x00")
    else:
        add(compact_length[len(transaction_partitions)])
        for transaction_partition in transaction_partitions:
            write_partitions_schema_v1(transaction_partition, add)
    add(pack_i8x2(message.transaction_last_update_timestamp_ms, message.transaction_start_timestamp_ms))
    tags: dict[int, bytes] = {}
    if message.previous_producer_id != -1:
        tags[0] = written(write_previous_producer_id_tag_v1, message.previous_producer_id)
    if message.next_producer_id != -1:
        tags[1] = written(write_next_producer_id_tag_v1, message.next_producer_id)
    if message.client_transaction_version != 0:
        tags[2] = written(write_client_transaction_version_tag_v1, message.client_transaction_version)
    if message.next_producer_epoch != -1:
        tags[3] = written(write_next_producer_epoch_tag_v1, message.next_producer_epoch)
    if tags or message.unknown_tags:
        write_tags((0, 1, 2, 3), tags, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[TransactionLogValue]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
}

# what JSON and error messages know of the fields
PartitionsSchema.FIELDS = (
    Field("topic", "topic", "string", (0, 1)),
    Field("partition_ids", "partitionIds", "[]int32", (0, 1)),
)
TransactionLogValue.FIELDS = (
    Field("producer_id", "producerId", "int64", (0, 1)),
    Field(
        "previous_producer_id",
        "previousProducerId",
        "int64",
        (1, 1),
        tagged=(1, 1),
        tag=0,
        ignorable=True,
    ),
    Field("next_producer_id", "nextProducerId", "int64", (1, 1), tagged=(1, 1), tag=1, ignorable=True),
    Field("producer_epoch", "producerEpoch", "int16", (0, 1)),
    Field("transaction_timeout_ms", "transactionTimeoutMs", "int32", (0, 1)),
    Field("transaction_status", "transactionStatus", "int8", (0, 1)),
    Field(
        "transaction_partitions",
        "transactionPartitions",
        "[]PartitionsSchema",
        (0, 1),
        nullable=(0, 1),
        struct=PartitionsSchema,
    ),
    Field("transaction_last_update_timestamp_ms", "transactionLastUpdateTimestampMs", "int64", (0, 1)),
    Field("transaction_start_timestamp_ms", "transactionStartTimestampMs", "int64", (0, 1)),
    Field(
        "client_transaction_version",
        "clientTransactionVersion",
        "int16",
        (1, 1),
        tagged=(1, 1),
        tag=2,
        ignorable=True,
    ),
    Field("next_producer_epoch", "nextProducerEpoch", "int16", (1, 1), tagged=(1, 1), tag=3, ignorable=True),
)
