"""AddPartitionsToTxnRequest, versions 0–5: its classes, and one read and write pair per layout.

Generated from schemas/AddPartitionsToTxnRequest.json by `python -m codegen`; edits here are lost.
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
    write_tags,
)

pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
pack_i8_i2: Final = struct.Struct(">qh").pack
pack_i8_i2_bool: Final = struct.Struct(">qh?").pack
pack_i8_i2_i4: Final = struct.Struct(">qhi").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i8_i2_bool_u1: Final = struct.Struct(">qh?B").unpack_from
unpack_i8_i2_i4: Final = struct.Struct(">qhi").unpack_from
unpack_i8_i2_u1: Final = struct.Struct(">qhB").unpack_from


@define(weakref_slot=False)
class AddPartitionsToTxnTopic(Struct):
    """Some partitions of one topic in a transaction.

    Attributes:
        name: The topic of these partitions.
        partitions: The partition numbers of this topic.
    """

    name: str = ""
    partitions: list[int] = Factory(list)


@define(weakref_slot=False)
class AddPartitionsToTxnTransaction(Struct):
    """The transactions and their partitions, from version 4 on, which only brokers use.

    Attributes:
        transactional_id: The transactional id of the producer.
        producer_id: The producer's id from InitProducerId.
        producer_epoch: The producer's epoch; an older one is fenced off as a zombie.
        verify_only: True to ask only whether the partitions already belong to the transaction.
        topics: The partitions of this transaction, by topic.
    """

    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    verify_only: bool = False
    topics: list[AddPartitionsToTxnTopic] = Factory(list)


@define(weakref_slot=False)
class AddPartitionsToTxnRequest(Message):
    """Tells the transaction coordinator which partitions a transaction is about to write to.

    Attributes:
        transactions: The transactions and their partitions, from version 4 on, which only brokers use.
        v3_and_below_transactional_id: The transactional id of the one producer of versions 0-3.
        v3_and_below_producer_id: The id of the one producer of versions 0-3.
        v3_and_below_producer_epoch: The epoch of the one producer of versions 0-3; an older one is fenced off
            as a zombie.
        v3_and_below_topics: The partitions of the one transaction of versions 0-3, by topic.
    """

    NAME: ClassVar[str] = "AddPartitionsToTxnRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 24
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_SINCE: ClassVar[int | None] = 3

    transactions: list[AddPartitionsToTxnTransaction] = Factory(list)
    v3_and_below_transactional_id: str = ""
    v3_and_below_producer_id: int = 0
    v3_and_below_producer_epoch: int = 0
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = Factory(list)


# AddPartitionsToTxnTopic in versions 0–2
def read_add_partitions_to_txn_topic_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[AddPartitionsToTxnTopic, int]:
    message = new(AddPartitionsToTxnTopic)
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("name")
    message.name = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 4 <= size - at:
        raise Malformed("partitions")
    message.partitions = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    return message, at


def write_add_partitions_to_txn_topic_v0(message: AddPartitionsToTxnTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    add(int32_array[len(partitions)].pack(*partitions))


# AddPartitionsToTxnRequest in versions 0–2
def read_v0(data: Buffer, at: int, size: int) -> tuple[AddPartitionsToTxnRequest, int]:
    message = new(AddPartitionsToTxnRequest)
    message.transactions = []
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("v3_and_below_transactional_id")
    message.v3_and_below_transactional_id = str(data[at:end], "utf-8")
    at = end
    message.v3_and_below_producer_id, message.v3_and_below_producer_epoch, count = unpack_i8_i2_i4(data, at)
    at += 14
    if not 0 <= count * 6 <= size - at:
        raise Malformed("v3_and_below_topics")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = []
    for _ in range(count):
        v3_and_below_topic, at = read_add_partitions_to_txn_topic_v0(data, at, size)
        v3_and_below_topics.append(v3_and_below_topic)
    message.v3_and_below_topics = v3_and_below_topics
    return message, at


def write_v0(message: AddPartitionsToTxnRequest, add: Add) -> None:
    if message.transactions != []:
        raise Unwritable("transactions")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    v3_and_below_transactional_id = message.v3_and_below_transactional_id.encode()
    add(pack_i2(len(v3_and_below_transactional_id)))
    add(v3_and_below_transactional_id)
    v3_and_below_topics = message.v3_and_below_topics
    add(
        pack_i8_i2_i4(
            message.v3_and_below_producer_id,
            message.v3_and_below_producer_epoch,
            len(v3_and_below_topics),
        )
    )
    for v3_and_below_topic in v3_and_below_topics:
        write_add_partitions_to_txn_topic_v0(v3_and_below_topic, add)


# AddPartitionsToTxnTopic in versions 3–5
def read_add_partitions_to_txn_topic_v3(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[AddPartitionsToTxnTopic, int]:
    message = new(AddPartitionsToTxnTopic)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("name")
    message.name = str(data[at:end], "utf-8")
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 4 <= size - at:
        raise Malformed("partitions")
    message.partitions = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_add_partitions_to_txn_topic_v3(message: AddPartitionsToTxnTopic, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    partitions = message.partitions
    add(compact_length[len(partitions)])
    add(int32_array[len(partitions)].pack(*partitions))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# AddPartitionsToTxnRequest in version 3
def read_v3(data: Buffer, at: int, size: int) -> tuple[AddPartitionsToTxnRequest, int]:
    message = new(AddPartitionsToTxnRequest)
    message.transactions = []
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("v3_and_below_transactional_id")
    message.v3_and_below_transactional_id = str(data[at:end], "utf-8")
    at = end
    message.v3_and_below_producer_id, message.v3_and_below_producer_epoch, count = unpack_i8_i2_u1(data, at)
    at += 11
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("v3_and_below_topics")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = []
    for _ in range(count):
        v3_and_below_topic, at = read_add_partitions_to_txn_topic_v3(data, at, size)
        v3_and_below_topics.append(v3_and_below_topic)
    message.v3_and_below_topics = v3_and_below_topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v3(message: AddPartitionsToTxnRequest, add: Add) -> None:
    if message.transactions != []:
        raise Unwritable("transactions")
    v3_and_below_transactional_id = message.v3_and_below_transactional_id.encode()
    add(compact_string_length[len(v3_and_below_transactional_id)])
    add(v3_and_below_transactional_id)
    add(pack_i8_i2(message.v3_and_below_producer_id, message.v3_and_below_producer_epoch))
    v3_and_below_topics = message.v3_and_below_topics
    add(compact_length[len(v3_and_below_topics)])
    for v3_and_below_topic in v3_and_below_topics:
        write_add_partitions_to_txn_topic_v3(v3_and_below_topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# AddPartitionsToTxnTransaction in versions 4–5
def read_add_partitions_to_txn_transaction_v4(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[AddPartitionsToTxnTransaction, int]:
    message = new(AddPartitionsToTxnTransaction)
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
    message.producer_id, message.producer_epoch, message.verify_only, count = unpack_i8_i2_bool_u1(data, at)
    at += 12
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("topics")
    topics: list[AddPartitionsToTxnTopic] = []
    for _ in range(count):
        topic, at = read_add_partitions_to_txn_topic_v3(data, at, size)
        topics.append(topic)
    message.topics = topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_add_partitions_to_txn_transaction_v4(message: AddPartitionsToTxnTransaction, add: Add) -> None:
    transactional_id = message.transactional_id.encode()
    add(compact_string_length[len(transactional_id)])
    add(transactional_id)
    add(pack_i8_i2_bool(message.producer_id, message.producer_epoch, message.verify_only))
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_add_partitions_to_txn_topic_v3(topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# AddPartitionsToTxnRequest in versions 4–5
def read_v4(data: Buffer, at: int, size: int) -> tuple[AddPartitionsToTxnRequest, int]:
    message = new(AddPartitionsToTxnRequest)
    message.v3_and_below_transactional_id = ""
    message.v3_and_below_producer_id = 0
    message.v3_and_below_producer_epoch = 0
    message.v3_and_below_topics = []
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 14 <= size - at:
        raise Malformed("transactions")
    transactions: list[AddPartitionsToTxnTransaction] = []
    for _ in range(count):
        transaction, at = read_add_partitions_to_txn_transaction_v4(data, at, size)
        transactions.append(transaction)
    message.transactions = transactions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v4(message: AddPartitionsToTxnRequest, add: Add) -> None:
    if message.v3_and_below_transactional_id != "":
        raise Unwritable("v3_and_below_transactional_id")
    if message.v3_and_below_producer_id != 0:
        raise Unwritable("v3_and_below_producer_id")
    if message.v3_and_below_producer_epoch != 0:
        raise Unwritable("v3_and_below_producer_epoch")
    if message.v3_and_below_topics != []:
        raise Unwritable("v3_and_below_topics")
    transactions = message.transactions
    add(compact_length[len(transactions)])
    for transaction in transactions:
        write_add_partitions_to_txn_transaction_v4(transaction, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[AddPartitionsToTxnRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v0, write_v0),
    3: (read_v3, write_v3),
    4: (read_v4, write_v4),
    5: (read_v4, write_v4),
}

# what JSON and error messages know of the fields
AddPartitionsToTxnTopic.FIELDS = (
    Field("name", "name", "string", (0, 5)),
    Field("partitions", "partitions", "[]int32", (0, 5)),
)
AddPartitionsToTxnTransaction.FIELDS = (
    Field("transactional_id", "transactionalId", "string", (4, 5)),
    Field("producer_id", "producerId", "int64", (4, 5)),
    Field("producer_epoch", "producerEpoch", "int16", (4, 5)),
    Field("verify_only", "verifyOnly", "bool", (4, 5)),
    Field("topics", "topics", "[]AddPartitionsToTxnTopic", (4, 5), struct=AddPartitionsToTxnTopic),
)
AddPartitionsToTxnRequest.FIELDS = (
    Field(
        "transactions",
        "transactions",
        "[]AddPartitionsToTxnTransaction",
        (4, 5),
        struct=AddPartitionsToTxnTransaction,
    ),
    Field("v3_and_below_transactional_id", "v3AndBelowTransactionalId", "string", (0, 3)),
    Field("v3_and_below_producer_id", "v3AndBelowProducerId", "int64", (0, 3)),
    Field("v3_and_below_producer_epoch", "v3AndBelowProducerEpoch", "int16", (0, 3)),
    Field(
        "v3_and_below_topics",
        "v3AndBelowTopics",
        "[]AddPartitionsToTxnTopic",
        (0, 3),
        struct=AddPartitionsToTxnTopic,
    ),
)
