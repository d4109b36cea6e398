"""ProduceResponse, versions 0–13: its classes, and one read and write pair per layout.

Generated from schemas/ProduceResponse.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import Factory, define

from kclient.protocol.message import Field, Message, Struct
from kclient.protocol.primitives import (
    ZERO_UUID,
    Add,
    Buffer,
    Codec,
    Malformed,
    Unwritable,
    Uuid,
    compact_length,
    compact_string_length,
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
pack_i4_i2_i8: Final = struct.Struct(">ihq").pack
pack_i4_i2_i8x2: Final = struct.Struct(">ihqq").pack
pack_i4_i2_i8x3: Final = struct.Struct(">ihqqq").pack
pack_i4_i2_i8x3_i4: Final = struct.Struct(">ihqqqi").pack
pack_i4x2: Final = struct.Struct(">ii").pack
pack_uuid: Final = struct.Struct(">16s").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_i2: Final = struct.Struct(">ih").unpack_from
unpack_i4_i2_i8: Final = struct.Struct(">ihq").unpack_from
unpack_i4_i2_i8x2: Final = struct.Struct(">ihqq").unpack_from
unpack_i4_i2_i8x3: Final = struct.Struct(">ihqqq").unpack_from
unpack_i4_i2_i8x3_i4: Final = struct.Struct(">ihqqqi").unpack_from
unpack_i4_i2_i8x3_u1: Final = struct.Struct(">ihqqqB").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i4x2_u1: Final = struct.Struct(">iiB").unpack_from
unpack_uuid_u1: Final = struct.Struct(">16sB").unpack_from


@define(weakref_slot=False)
class BatchIndexAndErrorMessage(Struct):
    """The records that got the whole batch refused; empty when it was not their fault.

    Attributes:
        batch_index: The refused record's place in the batch, from 0.
        batch_index_error_message: What is wrong with that record, for people; null when not told.
    """

    batch_index: int = 0
    batch_index_error_message: str | None = None


@define(weakref_slot=False)
class LeaderIdAndEpoch(Struct):
    """Who leads now; sent along with errors 6 and 74, so that no metadata request is needed (KIP-951).

    Attributes:
        leader_id: Broker id of the present leader, its address in NodeEndpoints; -1 when unknown.
        leader_epoch: The present leader's epoch; to be believed only if newer than the one known. -1 when
            unknown.
    """

    leader_id: int = -1
    leader_epoch: int = -1


@define(weakref_slot=False)
class PartitionProduceResponse(Struct):
    """The results by partition of this topic.

    Attributes:
        index: The partition's number within its topic.
        error_code: 0 when the batch is in the log as Acks asked, or why it is not.
        base_offset: Offset of the batch's first record; -1 on error.
        log_append_time_ms: The broker's time stamp in milliseconds since 1970 if the topic uses
            LogAppendTime; -1 if the records keep their own.
        log_start_offset: First offset that still exists in the partition; -1 when not told.
        record_errors: The records that got the whole batch refused; empty when it was not their fault.
        error_message: What is common to the refused records, for people; null when not told.
        current_leader: Who leads now; sent along with errors 6 and 74, so that no metadata request is needed
            (KIP-951).
    """

    index: int = 0
    error_code: int = 0
    base_offset: int = 0
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: list[BatchIndexAndErrorMessage] = Factory(list)
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch | None = None


@define(weakref_slot=False)
class TopicProduceResponse(Struct):
    """One entry per topic, with a result for each of its partitions.

    Attributes:
        name: The topic's name, up to version 12.
        topic_id: The topic's id, from version 13 on.
        partition_responses: The results by partition of this topic.
    """

    name: str = ""
    topic_id: Uuid = ZERO_UUID
    partition_responses: list[PartitionProduceResponse] = Factory(list)


@define(weakref_slot=False)
class NodeEndpoint(Struct):
    """Addresses of the leaders named in CurrentLeader; empty when no partition names one.

    Attributes:
        node_id: Broker id of the node at this address.
        host: Name or address at which the node listens for clients.
        port: TCP port at which the node listens for clients.
        rack: The node's rack; null when it has none.
    """

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


@define(weakref_slot=False)
class ProduceResponse(Message):
    """Says partition by partition where the batch was put, or why not.

    Attributes:
        responses: One entry per topic, with a result for each of its partitions.
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Since version 6 the answer is immediate and
            the client must stay silent that long; before, the broker had already held the answer back.
        node_endpoints: Addresses of the leaders named in CurrentLeader; empty when no partition names one.
    """

    NAME: ClassVar[str] = "ProduceResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 13)
    FLEXIBLE_SINCE: ClassVar[int | None] = 9

    responses: list[TopicProduceResponse] = Factory(list)
    throttle_time_ms: int = 0
    node_endpoints: list[NodeEndpoint] = Factory(list)


# PartitionProduceResponse in versions 0–1
def read_partition_produce_response_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[PartitionProduceResponse, int]:
    message = new(PartitionProduceResponse)
    message.log_append_time_ms = -1
    message.log_start_offset = -1
    message.record_errors = []
    message.error_message = None
    message.current_leader = None
    message.unknown_tags = ()
    message.index, message.error_code, message.base_offset = unpack_i4_i2_i8(data, at)
    at += 14
    return message, at


def write_partition_produce_response_v0(message: PartitionProduceResponse, add: Add) -> None:
    if message.current_leader is not None and message.current_leader != LeaderIdAndEpoch():
        raise Unwritable("current_leader")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4_i2_i8(message.index, message.error_code, message.base_offset))


# TopicProduceResponse in versions 0–1
def read_topic_produce_response_v0(data: Buffer, at: int, size: int) -> tuple[TopicProduceResponse, int]:
    message = new(TopicProduceResponse)
    message.topic_id = ZERO_UUID
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
    if not 0 <= count * 14 <= size - at:
        raise Malformed("partition_responses")
    partition_responses: list[PartitionProduceResponse] = []
    for _ in range(count):
        partition_response, at = read_partition_produce_response_v0(data, at, size)
        partition_responses.append(partition_response)
    message.partition_responses = partition_responses
    return message, at


def write_topic_produce_response_v0(message: TopicProduceResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    partition_responses = message.partition_responses
    add(pack_i4(len(partition_responses)))
    for partition_response in partition_responses:
        write_partition_produce_response_v0(partition_response, add)


# ProduceResponse in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[ProduceResponse, int]:
    message = new(ProduceResponse)
    message.throttle_time_ms = 0
    message.node_endpoints = []
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("responses")
    responses: list[TopicProduceResponse] = []
    for _ in range(count):
        response, at = read_topic_produce_response_v0(data, at, size)
        responses.append(response)
    message.responses = responses
    return message, at


def write_v0(message: ProduceResponse, add: Add) -> None:
    if message.node_endpoints != []:
        raise Unwritable("node_endpoints")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    responses = message.responses
    add(pack_i4(len(responses)))
    for response in responses:
        write_topic_produce_response_v0(response, add)


# ProduceResponse in version 1
def read_v1(data: Buffer, at: int, size: int) -> tuple[ProduceResponse, int]:
    message = new(ProduceResponse)
    message.node_endpoints = []
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("responses")
    responses: list[TopicProduceResponse] = []
    for _ in range(count):
        response, at = read_topic_produce_response_v0(data, at, size)
        responses.append(response)
    message.responses = responses
    (message.throttle_time_ms,) = unpack_i4(data, at)
    at += 4
    return message, at


def write_v1(message: ProduceResponse, add: Add) -> None:
    if message.node_endpoints != []:
        raise Unwritable("node_endpoints")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    responses = message.responses
    add(pack_i4(len(responses)))
    for response in responses:
        write_topic_produce_response_v0(response, add)
    add(pack_i4(message.throttle_time_ms))


# PartitionProduceResponse in versions 2–4
def read_partition_produce_response_v2(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[PartitionProduceResponse, int]:
    message = new(PartitionProduceResponse)
    message.log_start_offset = -1
    message.record_errors = []
    message.error_message = None
    message.current_leader = None
    message.unknown_tags = ()
    (
        message.index,
        message.error_code,
        message.base_offset,
        message.log_append_time_ms,
    ) = unpack_i4_i2_i8x2(data, at)
    at += 22
    return message, at


def write_partition_produce_response_v2(message: PartitionProduceResponse, add: Add) -> None:
    if message.current_leader is not None and message.current_leader != LeaderIdAndEpoch():
        raise Unwritable("current_leader")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4_i2_i8x2(message.index, message.error_code, message.base_offset, message.log_append_time_ms))


# TopicProduceResponse in versions 2–4
def read_topic_produce_response_v2(data: Buffer, at: int, size: int) -> tuple[TopicProduceResponse, int]:
    message = new(TopicProduceResponse)
    message.topic_id = ZERO_UUID
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
    if not 0 <= count * 22 <= size - at:
        raise Malformed("partition_responses")
    partition_responses: list[PartitionProduceResponse] = []
    for _ in range(count):
        partition_response, at = read_partition_produce_response_v2(data, at, size)
        partition_responses.append(partition_response)
    message.partition_responses = partition_responses
    return message, at


def write_topic_produce_response_v2(message: TopicProduceResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    partition_responses = message.partition_responses
    add(pack_i4(len(partition_responses)))
    for partition_response in partition_responses:
        write_partition_produce_response_v2(partition_response, add)


# ProduceResponse in versions 2–4
def read_v2(data: Buffer, at: int, size: int) -> tuple[ProduceResponse, int]:
    message = new(ProduceResponse)
    message.node_endpoints = []
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("responses")
    responses: list[TopicProduceResponse] = []
    for _ in range(count):
        response, at = read_topic_produce_response_v2(data, at, size)
        responses.append(response)
    message.responses = responses
    (message.throttle_time_ms,) = unpack_i4(data, at)
    at += 4
    return message, at


def write_v2(message: ProduceResponse, add: Add) -> None:
    if message.node_endpoints != []:
        raise Unwritable("node_endpoints")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    responses = message.responses
    add(pack_i4(len(responses)))
    for response in responses:
        write_topic_produce_response_v2(response, add)
    add(pack_i4(message.throttle_time_ms))


# PartitionProduceResponse in versions 5–7
def read_partition_produce_response_v5(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[PartitionProduceResponse, int]:
    message = new(PartitionProduceResponse)
    message.record_errors = []
    message.error_message = None
    message.current_leader = None
    message.unknown_tags = ()
    (
        message.index,
        message.error_code,
        message.base_offset,
        message.log_append_time_ms,
        message.log_start_offset,
    ) = unpack_i4_i2_i8x3(data, at)
    at += 30
    return message, at


def write_partition_produce_response_v5(message: PartitionProduceResponse, add: Add) -> None:
    if message.current_leader is not None and message.current_leader != LeaderIdAndEpoch():
        raise Unwritable("current_leader")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(
        pack_i4_i2_i8x3(
            message.index,
            message.error_code,
            message.base_offset,
            message.log_append_time_ms,
            message.log_start_offset,
        )
    )


# TopicProduceResponse in versions 5–7
def read_topic_produce_response_v5(data: Buffer, at: int, size: int) -> tuple[TopicProduceResponse, int]:
    message = new(TopicProduceResponse)
    message.topic_id = ZERO_UUID
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
    if not 0 <= count * 30 <= size - at:
        raise Malformed("partition_responses")
    partition_responses: list[PartitionProduceResponse] = []
    for _ in range(count):
        partition_response, at = read_partition_produce_response_v5(data, at, size)
        partition_responses.append(partition_response)
    message.partition_responses = partition_responses
    return message, at


def write_topic_produce_response_v5(message: TopicProduceResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    partition_responses = message.partition_responses
    add(pack_i4(len(partition_responses)))
    for partition_response in partition_responses:
        write_partition_produce_response_v5(partition_response, add)


# ProduceResponse in versions 5–7
def read_v5(data: Buffer, at: int, size: int) -> tuple[ProduceResponse, int]:
    message = new(ProduceResponse)
    message.node_endpoints = []
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("responses")
    responses: list[TopicProduceResponse] = []
    for _ in range(count):
        response, at = read_topic_produce_response_v5(data, at, size)
        responses.append(response)
    message.responses = responses
    (message.throttle_time_ms,) = unpack_i4(data, at)
    at += 4
    return message, at


def write_v5(message: ProduceResponse, add: Add) -> None:
    if message.node_endpoints != []:
        raise Unwritable("node_endpoints")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    responses = message.responses
    add(pack_i4(len(responses)))
    for response in responses:
        write_topic_produce_response_v5(response, add)
    add(pack_i4(message.throttle_time_ms))


# BatchIndexAndErrorMessage in version 8
def read_batch_index_and_error_message_v8(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[BatchIndexAndErrorMessage, int]:
    message = new(BatchIndexAndErrorMessage)
    message.unknown_tags = ()
    message.batch_index, length = unpack_i4_i2(data, at)
    at += 6
    if length == -1:
        message.batch_index_error_message = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("batch_index_error_message")
        message.batch_index_error_message = str(data[at:end], "utf-8")
        at = end
    return message, at


def write_batch_index_and_error_message_v8(message: BatchIndexAndErrorMessage, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4(message.batch_index))
    batch_index_error_message = message.batch_index_error_message
    if batch_index_error_message is None:
        add(b"\xff\xff")
    else:
        batch_index_error_message_bytes = batch_index_error_message.encode()
        add(pack_i2(len(batch_index_error_message_bytes)))
        add(batch_index_error_message_bytes)


# PartitionProduceResponse in version 8
def read_partition_produce_response_v8(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[PartitionProduceResponse, int]:
    message = new(PartitionProduceResponse)
    message.current_leader = None
    message.unknown_tags = ()
    (
        message.index,
        message.error_code,
        message.base_offset,
        message.log_append_time_ms,
        message.log_start_offset,
        count,
    ) = unpack_i4_i2_i8x3_i4(data, at)
    at += 34
    if not 0 <= count * 6 <= size - at:
        raise Malformed("record_errors")
    record_errors: list[BatchIndexAndErrorMessage] = []
    for _ in range(count):
        record_error, at = read_batch_index_and_error_message_v8(data, at, size)
        record_errors.append(record_error)
    message.record_errors = record_errors
    (length,) = unpack_i2(data, at)
    at += 2
    if length == -1:
        message.error_message = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("error_message")
        message.error_message = str(data[at:end], "utf-8")
        at = end
    return message, at


def write_partition_produce_response_v8(message: PartitionProduceResponse, add: Add) -> None:
    if message.current_leader is not None and message.current_leader != LeaderIdAndEpoch():
        raise Unwritable("current_leader")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    record_errors = message.record_errors
    add(
        pack_i4_i2_i8x3_i4(
            message.index,
            message.error_code,
            message.base_offset,
            message.log_append_time_ms,
            message.log_start_offset,
            len(record_errors),
        )
    )
    for record_error in record_errors:
        write_batch_index_and_error_message_v8(record_error, add)
    error_message = message.error_message
    if error_message is None:
        add(b"\xff\xff")
    else:
        error_message_bytes = error_message.encode()
        add(pack_i2(len(error_message_bytes)))
        add(error_message_bytes)


# TopicProduceResponse in version 8
def read_topic_produce_response_v8(data: Buffer, at: int, size: int) -> tuple[TopicProduceResponse, int]:
    message = new(TopicProduceResponse)
    message.topic_id = ZERO_UUID
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
    if not 0 <= count * 36 <= size - at:
        raise Malformed("partition_responses")
    partition_responses: list[PartitionProduceResponse] = []
    for _ in range(count):
        partition_response, at = read_partition_produce_response_v8(data, at, size)
        partition_responses.append(partition_response)
    message.partition_responses = partition_responses
    return message, at


def write_topic_produce_response_v8(message: TopicProduceResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    partition_responses = message.partition_responses
    add(pack_i4(len(partition_responses)))
    for partition_response in partition_responses:
        write_partition_produce_response_v8(partition_response, add)


# ProduceResponse in version 8
def read_v8(data: Buffer, at: int, size: int) -> tuple[ProduceResponse, int]:
    message = new(ProduceResponse)
    message.node_endpoints = []
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("responses")
    responses: list[TopicProduceResponse] = []
    for _ in range(count):
        response, at = read_topic_produce_response_v8(data, at, size)
        responses.append(response)
    message.responses = responses
    (message.throttle_time_ms,) = unpack_i4(data, at)
    at += 4
    return message, at


def write_v8(message: ProduceResponse, add: Add) -> None:
    if message.node_endpoints != []:
        raise Unwritable("node_endpoints")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    responses = message.responses
    add(pack_i4(len(responses)))
    for response in responses:
        write_topic_produce_response_v8(response, add)
    add(pack_i4(message.throttle_time_ms))


# BatchIndexAndErrorMessage in versions 9–13
def read_batch_index_and_error_message_v9(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[BatchIndexAndErrorMessage, int]:
    message = new(BatchIndexAndErrorMessage)
    message.unknown_tags = ()
    message.batch_index, length = unpack_i4_u1(data, at)
    at += 5
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.batch_index_error_message = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("batch_index_error_message")
        message.batch_index_error_message = str(data[at:end], "utf-8")
        at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_batch_index_and_error_message_v9(message: BatchIndexAndErrorMessage, add: Add) -> None:
    add(pack_i4(message.batch_index))
    batch_index_error_message = message.batch_index_error_message
    if batch_index_error_message is None:
        add(b"\x00")
    else:
        batch_index_error_message_bytes = batch_index_error_message.encode()
        add(compact_string_length[len(batch_index_error_message_bytes)])
        add(batch_index_error_message_bytes)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# PartitionProduceResponse in version 9
def read_partition_produce_response_v9(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[PartitionProduceResponse, int]:
    message = new(PartitionProduceResponse)
    message.current_leader = None
    message.unknown_tags = ()
    (
        message.index,
        message.error_code,
        message.base_offset,
        message.log_append_time_ms,
        message.log_start_offset,
        count,
    ) = unpack_i4_i2_i8x3_u1(data, at)
    at += 31
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 6 <= size - at:
        raise Malformed("record_errors")
    record_errors: list[BatchIndexAndErrorMessage] = []
    for _ in range(count):
        record_error, at = read_batch_index_and_error_message_v9(data, at, size)
        record_errors.append(record_error)
    message.record_errors = record_errors
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.error_message = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("error_message")
        message.error_message = str(data[at:end], "utf-8")
        at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_partition_produce_response_v9(message: PartitionProduceResponse, add: Add) -> None:
    if message.current_leader is not None and message.current_leader != LeaderIdAndEpoch():
        raise Unwritable("current_leader")
    add(
        pack_i4_i2_i8x3(
            message.index,
            message.error_code,
            message.base_offset,
            message.log_append_time_ms,
            message.log_start_offset,
        )
    )
    record_errors = message.record_errors
    add(compact_length[len(record_errors)])
    for record_error in record_errors:
        write_batch_index_and_error_message_v9(record_error, add)
    error_message = message.error_message
    if error_message is None:
        add(b"\x00")
    else:
        error_message_bytes = error_message.encode()
        add(compact_string_length[len(error_message_bytes)])
        add(error_message_bytes)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# TopicProduceResponse in version 9
def read_topic_produce_response_v9(data: Buffer, at: int, size: int) -> tuple[TopicProduceResponse, int]:
    message = new(TopicProduceResponse)
    message.topic_id = ZERO_UUID
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
    if not 0 <= count * 33 <= size - at:
        raise Malformed("partition_responses")
    partition_responses: list[PartitionProduceResponse] = []
    for _ in range(count):
        partition_response, at = read_partition_produce_response_v9(data, at, size)
        partition_responses.append(partition_response)
    message.partition_responses = partition_responses
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_topic_produce_response_v9(message: TopicProduceResponse, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    partition_responses = message.partition_responses
    add(compact_length[len(partition_responses)])
    for partition_response in partition_responses:
        write_partition_produce_response_v9(partition_response, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ProduceResponse in version 9
def read_v9(data: Buffer, at: int, size: int) -> tuple[ProduceResponse, int]:
    message = new(ProduceResponse)
    message.node_endpoints = []
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("responses")
    responses: list[TopicProduceResponse] = []
    for _ in range(count):
        response, at = read_topic_produce_response_v9(data, at, size)
        responses.append(response)
    message.responses = responses
    message.throttle_time_ms, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v9(message: ProduceResponse, add: Add) -> None:
    if message.node_endpoints != []:
        raise Unwritable("node_endpoints")
    responses = message.responses
    add(compact_length[len(responses)])
    for response in responses:
        write_topic_produce_response_v9(response, add)
    add(pack_i4(message.throttle_time_ms))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# LeaderIdAndEpoch in versions 10–13
def read_leader_id_and_epoch_v10(data: Buffer, at: int, size: int) -> tuple[LeaderIdAndEpoch, int]:
    message = new(LeaderIdAndEpoch)
    message.unknown_tags = ()
    message.leader_id, message.leader_epoch, tags = unpack_i4x2_u1(data, at)
    at += 9
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_leader_id_and_epoch_v10(message: LeaderIdAndEpoch, add: Add) -> None:
    add(pack_i4x2(message.leader_id, message.leader_epoch))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# PartitionProduceResponse in versions 10–13
def read_partition_produce_response_v10(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[PartitionProduceResponse, int]:
    message = new(PartitionProduceResponse)
    message.current_leader = None
    message.unknown_tags = ()
    (
        message.index,
        message.error_code,
        message.base_offset,
        message.log_append_time_ms,
        message.log_start_offset,
        count,
    ) = unpack_i4_i2_i8x3_u1(data, at)
    at += 31
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 6 <= size - at:
        raise Malformed("record_errors")
    record_errors: list[BatchIndexAndErrorMessage] = []
    for _ in range(count):
        record_error, at = read_batch_index_and_error_message_v9(data, at, size)
        record_errors.append(record_error)
    message.record_errors = record_errors
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.error_message = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("error_message")
        message.error_message = str(data[at:end], "utf-8")
        at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        if 0 in found:
            message.current_leader = read_whole(read_leader_id_and_epoch_v10, found.pop(0))
        message.unknown_tags = left_over(found)
    return message, at


def write_partition_produce_response_v10(message: PartitionProduceResponse, add: Add) -> None:
    add(
        pack_i4_i2_i8x3(
            message.index,
            message.error_code,
            message.base_offset,
            message.log_append_time_ms,
            message.log_start_offset,
        )
    )
    record_errors = message.record_errors
    add(compact_length[len(record_errors)])
    for record_error in record_errors:
        write_batch_index_and_error_message_v9(record_error, add)
    error_message = message.error_message
    if error_message is None:
        add(b"\x00")
    else:
        error_message_bytes = error_message.encode()
        add(compact_string_length[len(error_message_bytes)])
        add(error_message_bytes)
    tags: dict[int, bytes] = {}
    if message.current_leader is not None and message.current_leader != LeaderIdAndEpoch():
        tags[0] = written(write_leader_id_and_epoch_v10, message.current_leader)
    if tags or message.unknown_tags:
        write_tags((0,), tags, message.unknown_tags, add)
    else:
        add(b"\x00")


# TopicProduceResponse in versions 10–12
def read_topic_produce_response_v10(data: Buffer, at: int, size: int) -> tuple[TopicProduceResponse, int]:
    message = new(TopicProduceResponse)
    message.topic_id = ZERO_UUID
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
    if not 0 <= count * 33 <= size - at:
        raise Malformed("partition_responses")
    partition_responses: list[PartitionProduceResponse] = []
    for _ in range(count):
        partition_response, at = read_partition_produce_response_v10(data, at, size)
        partition_responses.append(partition_response)
    message.partition_responses = partition_responses
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_topic_produce_response_v10(message: TopicProduceResponse, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    partition_responses = message.partition_responses
    add(compact_length[len(partition_responses)])
    for partition_response in partition_responses:
        write_partition_produce_response_v10(partition_response, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# NodeEndpoint in versions 10–13
def read_node_endpoint_v10(data: Buffer, at: int, size: int) -> tuple[NodeEndpoint, int]:
    message = new(NodeEndpoint)
    message.unknown_tags = ()
    message.node_id, length = unpack_i4_u1(data, at)
    at += 5
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("host")
    message.host = str(data[at:end], "utf-8")
    at = end
    message.port, length = unpack_i4_u1(data, at)
    at += 5
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.rack = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("rack")
        message.rack = str(data[at:end], "utf-8")
        at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_node_endpoint_v10(message: NodeEndpoint, add: Add) -> None:
    add(pack_i4(message.node_id))
    host = message.host.encode()
    add(compact_string_length[len(host)])
    add(host)
    add(pack_i4(message.port))
    rack = message.rack
    if rack is None:
        add(b"\x00")
    else:
        rack_bytes = rack.encode()
        add(compact_string_length[len(rack_bytes)])
        add(rack_bytes)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


def read_node_endpoints_tag_v10(data: Buffer, at: int, size: int) -> tuple[list[NodeEndpoint], int]:
    value: list[NodeEndpoint]
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 11 <= size - at:
        raise Malformed("node_endpoints")
    node_endpoints: list[NodeEndpoint] = []
    for _ in range(count):
        node_endpoint, at = read_node_endpoint_v10(data, at, size)
        node_endpoints.append(node_endpoint)
    value = node_endpoints
    return value, at


def write_node_endpoints_tag_v10(value: list[NodeEndpoint], add: Add) -> None:
    node_endpoints = value
    add(compact_length[len(node_endpoints)])
    for node_endpoint in node_endpoints:
        write_node_endpoint_v10(node_endpoint, add)


# ProduceResponse in versions 10–12
def read_v10(data: Buffer, at: int, size: int) -> tuple[ProduceResponse, int]:
    message = new(ProduceResponse)
    message.node_endpoints = []
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("responses")
    responses: list[TopicProduceResponse] = []
    for _ in range(count):
        response, at = read_topic_produce_response_v10(data, at, size)
        responses.append(response)
    message.responses = responses
    message.throttle_time_ms, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        if 0 in found:
            message.node_endpoints = read_whole(read_node_endpoints_tag_v10, found.pop(0))
        message.unknown_tags = left_over(found)
    return message, at


def write_v10(message: ProduceResponse, add: Add) -> None:
    responses = message.responses
    add(compact_length[len(responses)])
    for response in responses:
        write_topic_produce_response_v10(response, add)
    add(pack_i4(message.throttle_time_ms))
    tags: dict[int, bytes] = {}
    if message.node_endpoints != []:
        tags[0] = written(write_node_endpoints_tag_v10, message.node_endpoints)
    if tags or message.unknown_tags:
        write_tags((0,), tags, message.unknown_tags, add)
    else:
        add(b"\x00")


# TopicProduceResponse in version 13
def read_topic_produce_response_v13(data: Buffer, at: int, size: int) -> tuple[TopicProduceResponse, int]:
    message = new(TopicProduceResponse)
    message.name = ""
    message.unknown_tags = ()
    message.topic_id, count = unpack_uuid_u1(data, at)
    at += 17
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 33 <= size - at:
        raise Malformed("partition_responses")
    partition_responses: list[PartitionProduceResponse] = []
    for _ in range(count):
        partition_response, at = read_partition_produce_response_v10(data, at, size)
        partition_responses.append(partition_response)
    message.partition_responses = partition_responses
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_topic_produce_response_v13(message: TopicProduceResponse, add: Add) -> None:
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
    partition_responses = message.partition_responses
    add(compact_length[len(partition_responses)])
    for partition_response in partition_responses:
        write_partition_produce_response_v10(partition_response, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


def read_node_endpoints_tag_v13(data: Buffer, at: int, size: int) -> tuple[list[NodeEndpoint], int]:
    value: list[NodeEndpoint]
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 11 <= size - at:
        raise Malformed("node_endpoints")
    node_endpoints: list[NodeEndpoint] = []
    for _ in range(count):
        node_endpoint, at = read_node_endpoint_v10(data, at, size)
        node_endpoints.append(node_endpoint)
    value = node_endpoints
    return value, at


def write_node_endpoints_tag_v13(value: list[NodeEndpoint], add: Add) -> None:
    node_endpoints = value
    add(compact_length[len(node_endpoints)])
    for node_endpoint in node_endpoints:
        write_node_endpoint_v10(node_endpoint, add)


# ProduceResponse in version 13
def read_v13(data: Buffer, at: int, size: int) -> tuple[ProduceResponse, int]:
    message = new(ProduceResponse)
    message.node_endpoints = []
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("responses")
    responses: list[TopicProduceResponse] = []
    for _ in range(count):
        response, at = read_topic_produce_response_v13(data, at, size)
        responses.append(response)
    message.responses = responses
    message.throttle_time_ms, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        if 0 in found:
            message.node_endpoints = read_whole(read_node_endpoints_tag_v13, found.pop(0))
        message.unknown_tags = left_over(found)
    return message, at


def write_v13(message: ProduceResponse, add: Add) -> None:
    responses = message.responses
    add(compact_length[len(responses)])
    for response in responses:
        write_topic_produce_response_v13(response, add)
    add(pack_i4(message.throttle_time_ms))
    tags: dict[int, bytes] = {}
    if message.node_endpoints != []:
        tags[0] = written(write_node_endpoints_tag_v13, message.node_endpoints)
    if tags or message.unknown_tags:
        write_tags((0,), tags, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ProduceResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v2, write_v2),
    3: (read_v2, write_v2),
    4: (read_v2, write_v2),
    5: (read_v5, write_v5),
    6: (read_v5, write_v5),
    7: (read_v5, write_v5),
    8: (read_v8, write_v8),
    9: (read_v9, write_v9),
    10: (read_v10, write_v10),
    11: (read_v10, write_v10),
    12: (read_v10, write_v10),
    13: (read_v13, write_v13),
}

# what JSON and error messages know of the fields
BatchIndexAndErrorMessage.FIELDS = (
    Field("batch_index", "batchIndex", "int32", (8, 13)),
    Field("batch_index_error_message", "batchIndexErrorMessage", "string", (8, 13), nullable=(8, 13)),
)
LeaderIdAndEpoch.FIELDS = (
    Field("leader_id", "leaderId", "int32", (10, 13)),
    Field("leader_epoch", "leaderEpoch", "int32", (10, 13)),
)
PartitionProduceResponse.FIELDS = (
    Field("index", "index", "int32", (0, 13)),
    Field("error_code", "errorCode", "int16", (0, 13)),
    Field("base_offset", "baseOffset", "int64", (0, 13)),
    Field("log_append_time_ms", "logAppendTimeMs", "int64", (2, 13), ignorable=True),
    Field("log_start_offset", "logStartOffset", "int64", (5, 13), ignorable=True),
    Field(
        "record_errors",
        "recordErrors",
        "[]BatchIndexAndErrorMessage",
        (8, 13),
        struct=BatchIndexAndErrorMessage,
        ignorable=True,
    ),
    Field("error_message", "errorMessage", "string", (8, 13), nullable=(8, 13), ignorable=True),
    Field(
        "current_leader",
        "currentLeader",
        "LeaderIdAndEpoch",
        (10, 13),
        tagged=(10, 13),
        tag=0,
        struct=LeaderIdAndEpoch,
    ),
)
TopicProduceResponse.FIELDS = (
    Field("name", "name", "string", (0, 12), ignorable=True),
    Field("topic_id", "topicId", "uuid", (13, 13), ignorable=True),
    Field(
        "partition_responses",
        "partitionResponses",
        "[]PartitionProduceResponse",
        (0, 13),
        struct=PartitionProduceResponse,
    ),
)
NodeEndpoint.FIELDS = (
    Field("node_id", "nodeId", "int32", (10, 13)),
    Field("host", "host", "string", (10, 13)),
    Field("port", "port", "int32", (10, 13)),
    Field("rack", "rack", "string", (10, 13), nullable=(10, 13)),
)
ProduceResponse.FIELDS = (
    Field("responses", "responses", "[]TopicProduceResponse", (0, 13), struct=TopicProduceResponse),
    Field("throttle_time_ms", "throttleTimeMs", "int32", (1, 13), ignorable=True),
    Field(
        "node_endpoints",
        "nodeEndpoints",
        "[]NodeEndpoint",
        (10, 13),
        tagged=(10, 13),
        tag=0,
        struct=NodeEndpoint,
    ),
)
