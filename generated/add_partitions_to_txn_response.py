"""AddPartitionsToTxnResponse, versions 0–5: its classes, and one read and write pair per layout.

Generated from schemas/AddPartitionsToTxnResponse.json by `python -m codegen`; edits here are lost.
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
    left_over,
    new,
    read_string_length,
    read_tags,
    read_uvarint,
    write_tags,
)

pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
pack_i4_i2: Final = struct.Struct(">ih").pack
pack_i4x2: Final = struct.Struct(">ii").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_i2: Final = struct.Struct(">ih").unpack_from
unpack_i4_i2_u1: Final = struct.Struct(">ihB").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i4x2: Final = struct.Struct(">ii").unpack_from


@define(weakref_slot=False)
class AddPartitionsToTxnPartitionResult(Struct):
    """The result for one partition.

    Attributes:
        partition_index: The partition's number within its topic.
        partition_error_code: 0 when the partition is in the transaction; 55 when it was left out because
            others failed.
    """

    partition_index: int = 0
    partition_error_code: int = 0


@define(weakref_slot=False)
class AddPartitionsToTxnTopicResult(Struct):
    """The results for one topic.

    Attributes:
        name: The topic of these results.
        results_by_partition: The results by partition of this topic.
    """

    name: str = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = Factory(list)


@define(weakref_slot=False)
class AddPartitionsToTxnResult(Struct):
    """The results by transaction, from version 4 on.

    Attributes:
        transactional_id: The transactional id these results are about.
        topic_results: The results of this transaction, by topic.
    """

    transactional_id: str = ""
    topic_results: list[AddPartitionsToTxnTopicResult] = Factory(list)


@define(weakref_slot=False)
class AddPartitionsToTxnResponse(Message):
    """Says partition by partition whether it belongs to the transaction.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Since version 1 the answer is immediate and
            the client must stay silent that long; before, the broker had already held the answer back.
        error_code: 0, or why the request as a whole failed.
        results_by_transaction: The results by transaction, from version 4 on.
        results_by_topic_v3_and_below: The results of the one transaction of versions 0-3, by topic.
    """

    NAME: ClassVar[str] = "AddPartitionsToTxnResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 24
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_SINCE: ClassVar[int | None] = 3

    throttle_time_ms: int = 0
    error_code: int = 0
    results_by_transaction: list[AddPartitionsToTxnResult] = Factory(list)
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = Factory(list)


# AddPartitionsToTxnPartitionResult in versions 0–2
def read_add_partitions_to_txn_partition_result_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[AddPartitionsToTxnPartitionResult, int]:
    message = new(AddPartitionsToTxnPartitionResult)
    message.unknown_tags = ()
    message.partition_index, message.partition_error_code = unpack_i4_i2(data, at)
    at += 6
    return message, at


def write_add_partitions_to_txn_partition_result_v0(
    message: AddPartitionsToTxnPartitionResult,
    add: Add,
) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4_i2(message.partition_index, message.partition_error_code))


# AddPartitionsToTxnTopicResult in versions 0–2
def read_add_partitions_to_txn_topic_result_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[AddPartitionsToTxnTopicResult, int]:
    message = new(AddPartitionsToTxnTopicResult)
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
    if not 0 <= count * 6 <= size - at:
        raise Malformed("results_by_partition")
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = []
    for _ in range(count):
        results_by_partition_item, at = read_add_partitions_to_txn_partition_result_v0(data, at, size)
        results_by_partition.append(results_by_partition_item)
    message.results_by_partition = results_by_partition
    return message, at


def write_add_partitions_to_txn_topic_result_v0(message: AddPartitionsToTxnTopicResult, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    results_by_partition = message.results_by_partition
    add(pack_i4(len(results_by_partition)))
    for results_by_partition_item in results_by_partition:
        write_add_partitions_to_txn_partition_result_v0(results_by_partition_item, add)


# AddPartitionsToTxnResponse in versions 0–2
def read_v0(data: Buffer, at: int, size: int) -> tuple[AddPartitionsToTxnResponse, int]:
    message = new(AddPartitionsToTxnResponse)
    message.error_code = 0
    message.results_by_transaction = []
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 6 <= size - at:
        raise Malformed("results_by_topic_v3_and_below")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = []
    for _ in range(count):
        results_by_topic_v3_and_below_item, at = read_add_partitions_to_txn_topic_result_v0(data, at, size)
        results_by_topic_v3_and_below.append(results_by_topic_v3_and_below_item)
    message.results_by_topic_v3_and_below = results_by_topic_v3_and_below
    return message, at


def write_v0(message: AddPartitionsToTxnResponse, add: Add) -> None:
    if message.results_by_transaction != []:
        raise Unwritable("results_by_transaction")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    results_by_topic_v3_and_below = message.results_by_topic_v3_and_below
    add(pack_i4x2(message.throttle_time_ms, len(results_by_topic_v3_and_below)))
    for results_by_topic_v3_and_below_item in results_by_topic_v3_and_below:
        write_add_partitions_to_txn_topic_result_v0(results_by_topic_v3_and_below_item, add)


# AddPartitionsToTxnPartitionResult in versions 3–5
def read_add_partitions_to_txn_partition_result_v3(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[AddPartitionsToTxnPartitionResult, int]:
    message = new(AddPartitionsToTxnPartitionResult)
    message.unknown_tags = ()
    message.partition_index, message.partition_error_code, tags = unpack_i4_i2_u1(data, at)
    at += 7
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_add_partitions_to_txn_partition_result_v3(
    message: AddPartitionsToTxnPartitionResult,
    add: Add,
) -> None:
    add(pack_i4_i2(message.partition_index, message.partition_error_code))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# AddPartitionsToTxnTopicResult in versions 3–5
def read_add_partitions_to_txn_topic_result_v3(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[AddPartitionsToTxnTopicResult, int]:
    message = new(AddPartitionsToTxnTopicResult)
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
    if not 0 <= count * 7 <= size - at:
        raise Malformed("results_by_partition")
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = []
    for _ in range(count):
        results_by_partition_item, at = read_add_partitions_to_txn_partition_result_v3(data, at, size)
        results_by_partition.append(results_by_partition_item)
    message.results_by_partition = results_by_partition
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_add_partitions_to_txn_topic_result_v3(message: AddPartitionsToTxnTopicResult, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    results_by_partition = message.results_by_partition
    add(compact_length[len(results_by_partition)])
    for results_by_partition_item in results_by_partition:
        write_add_partitions_to_txn_partition_result_v3(results_by_partition_item, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# AddPartitionsToTxnResponse in version 3
def read_v3(data: Buffer, at: int, size: int) -> tuple[AddPartitionsToTxnResponse, int]:
    message = new(AddPartitionsToTxnResponse)
    message.error_code = 0
    message.results_by_transaction = []
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("results_by_topic_v3_and_below")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = []
    for _ in range(count):
        results_by_topic_v3_and_below_item, at = read_add_partitions_to_txn_topic_result_v3(data, at, size)
        results_by_topic_v3_and_below.append(results_by_topic_v3_and_below_item)
    message.results_by_topic_v3_and_below = results_by_topic_v3_and_below
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v3(message: AddPartitionsToTxnResponse, add: Add) -> None:
    if message.results_by_transaction != []:
        raise Unwritable("results_by_transaction")
    add(pack_i4(message.throttle_time_ms))
    results_by_topic_v3_and_below = message.results_by_topic_v3_and_below
    add(compact_length[len(results_by_topic_v3_and_below)])
    for results_by_topic_v3_and_below_item in results_by_topic_v3_and_below:
        write_add_partitions_to_txn_topic_result_v3(results_by_topic_v3_and_below_item, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# AddPartitionsToTxnResult in versions 4–5
def read_add_partitions_to_txn_result_v4(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[AddPartitionsToTxnResult, int]:
    message = new(AddPartitionsToTxnResult)
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
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("topic_results")
    topic_results: list[AddPartitionsToTxnTopicResult] = []
    for _ in range(count):
        topic_result, at = read_add_partitions_to_txn_topic_result_v3(data, at, size)
        topic_results.append(topic_result)
    message.topic_results = topic_results
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_add_partitions_to_txn_result_v4(message: AddPartitionsToTxnResult, add: Add) -> None:
    transactional_id = message.transactional_id.encode()
    add(compact_string_length[len(transactional_id)])
    add(transactional_id)
    topic_results = message.topic_results
    add(compact_length[len(topic_results)])
    for topic_result in topic_results:
        write_add_partitions_to_txn_topic_result_v3(topic_result, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# AddPartitionsToTxnResponse in versions 4–5
def read_v4(data: Buffer, at: int, size: int) -> tuple[AddPartitionsToTxnResponse, int]:
    message = new(AddPartitionsToTxnResponse)
    message.results_by_topic_v3_and_below = []
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, count = unpack_i4_i2_u1(data, at)
    at += 7
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("results_by_transaction")
    results_by_transaction: list[AddPartitionsToTxnResult] = []
    for _ in range(count):
        results_by_transaction_item, at = read_add_partitions_to_txn_result_v4(data, at, size)
        results_by_transaction.append(results_by_transaction_item)
    message.results_by_transaction = results_by_transaction
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v4(message: AddPartitionsToTxnResponse, add: Add) -> None:
    if message.results_by_topic_v3_and_below != []:
        raise Unwritable("results_by_topic_v3_and_below")
    add(pack_i4_i2(message.throttle_time_ms, message.error_code))
    results_by_transaction = message.results_by_transaction
    add(compact_length[len(results_by_transaction)])
    for results_by_transaction_item in results_by_transaction:
        write_add_partitions_to_txn_result_v4(results_by_transaction_item, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[AddPartitionsToTxnResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v0, write_v0),
    3: (read_v3, write_v3),
    4: (read_v4, write_v4),
    5: (read_v4, write_v4),
}

# what JSON and error messages know of the fields
AddPartitionsToTxnPartitionResult.FIELDS = (
    Field("partition_index", "partitionIndex", "int32", (0, 5)),
    Field("partition_error_code", "partitionErrorCode", "int16", (0, 5)),
)
AddPartitionsToTxnTopicResult.FIELDS = (
    Field("name", "name", "string", (0, 5)),
    Field(
        "results_by_partition",
        "resultsByPartition",
        "[]AddPartitionsToTxnPartitionResult",
        (0, 5),
        struct=AddPartitionsToTxnPartitionResult,
    ),
)
AddPartitionsToTxnResult.FIELDS = (
    Field("transactional_id", "transactionalId", "string", (4, 5)),
    Field(
        "topic_results",
        "topicResults",
        "[]AddPartitionsToTxnTopicResult",
        (4, 5),
        struct=AddPartitionsToTxnTopicResult,
    ),
)
AddPartitionsToTxnResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (0, 5)),
    Field("error_code", "errorCode", "int16", (4, 5), ignorable=True),
    Field(
        "results_by_transaction",
        "resultsByTransaction",
        "[]AddPartitionsToTxnResult",
        (4, 5),
        struct=AddPartitionsToTxnResult,
    ),
    Field(
        "results_by_topic_v3_and_below",
        "resultsByTopicV3AndBelow",
        "[]AddPartitionsToTxnTopicResult",
        (0, 3),
        struct=AddPartitionsToTxnTopicResult,
    ),
)
