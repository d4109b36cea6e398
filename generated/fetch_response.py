"""FetchResponse, versions 0–18: its classes, and one read and write pair per layout.

Generated from schemas/FetchResponse.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import Factory, define

from kclient.protocol.message import Field, Message, Struct
from kclient.protocol.primitives import (
    BYTES,
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
pack_i4_i2_i4: Final = struct.Struct(">ihi").pack
pack_i4_i2_i4x2: Final = struct.Struct(">ihii").pack
pack_i4_i2_i8: Final = struct.Struct(">ihq").pack
pack_i4_i2_i8x2: Final = struct.Struct(">ihqq").pack
pack_i4_i2_i8x3: Final = struct.Struct(">ihqqq").pack
pack_i4_i8: Final = struct.Struct(">iq").pack
pack_i4x2: Final = struct.Struct(">ii").pack
pack_i8_i4: Final = struct.Struct(">qi").pack
pack_i8x2: Final = struct.Struct(">qq").pack
pack_uuid: Final = struct.Struct(">16s").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_i2_i4_u1: Final = struct.Struct(">ihiB").unpack_from
unpack_i4_i2_i4x2: Final = struct.Struct(">ihii").unpack_from
unpack_i4_i2_i8_i4: Final = struct.Struct(">ihqi").unpack_from
unpack_i4_i2_i8x2_i4: Final = struct.Struct(">ihqqi").unpack_from
unpack_i4_i2_i8x3_i4: Final = struct.Struct(">ihqqqi").unpack_from
unpack_i4_i2_i8x3_u1: Final = struct.Struct(">ihqqqB").unpack_from
unpack_i4_i8_u1: Final = struct.Struct(">iqB").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i4x2: Final = struct.Struct(">ii").unpack_from
unpack_i4x2_u1: Final = struct.Struct(">iiB").unpack_from
unpack_i8_i4_u1: Final = struct.Struct(">qiB").unpack_from
unpack_i8x2: Final = struct.Struct(">qq").unpack_from
unpack_i8x2_u1: Final = struct.Struct(">qqB").unpack_from
unpack_uuid_u1: Final = struct.Struct(">16sB").unpack_from


@define(weakref_slot=False)
class EpochEndOffset(Struct):
    """Where the fetcher's log leaves the leader's; present only if LastFetchedEpoch was sent and does not
    fit.

    Attributes:
        epoch: The largest leader epoch in common, not above the one that was sent; -1 when the logs agree.
        end_offset: First offset after that common epoch in the leader's log, to which the fetcher must go
            back; -1 when the logs agree.
    """

    epoch: int = -1
    end_offset: int = -1


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
class SnapshotId(Struct):
    """The snapshot a lagging controller has to fetch first; never sent to consumers.

    Attributes:
        end_offset: First offset that the snapshot does not cover; -1 when there is no snapshot.
        epoch: Leader epoch of the last record in the snapshot; -1 when there is no snapshot.
    """

    end_offset: int = -1
    epoch: int = -1


@define(weakref_slot=False)
class AbortedTransaction(Struct):
    """Aborted transactions that touch the returned batches, to be skipped under read_committed; null under
    read_uncommitted.

    Attributes:
        producer_id: The producer whose transactional batches are to be skipped until its abort marker.
        first_offset: Where the aborted transaction begins; batches of the producer before it are unaffected.
    """

    producer_id: int = 0
    first_offset: int = 0


@define(weakref_slot=False)
class PartitionData(Struct):
    """What was found in each partition of this topic.

    Attributes:
        partition_index: The partition's number within its topic.
        error_code: 0, or why this partition gave nothing: OFFSET_OUT_OF_RANGE (1) asks for a reset, most
            others for fresh metadata.
        high_watermark: First offset not yet on all in-sync replicas: the end of what consumers may read, and
            of lag; -1 on error.
        last_stable_offset: First offset of the oldest transaction still open, else the high watermark: the
            end under read_committed; -1 when not told.
        log_start_offset: First offset that still exists; it moves up as retention or DeleteRecords removes
            data. -1 when not told.
        diverging_epoch: Where the fetcher's log leaves the leader's; present only if LastFetchedEpoch was
            sent and does not fit.
        current_leader: Who leads now; sent along with errors 6 and 74, so that no metadata request is needed
            (KIP-951).
        snapshot_id: The snapshot a lagging controller has to fetch first; never sent to consumers.
        aborted_transactions: Aborted transactions that touch the returned batches, to be skipped under
            read_committed; null under read_uncommitted.
        preferred_read_replica: A replica closer to the consumer's rack that it should fetch from for a while;
            -1 to stay with this broker.
        records: Record batches as they stand in the log, the last perhaps cut off; null or empty when there
            is nothing.
    """

    partition_index: int = 0
    error_code: int = 0
    high_watermark: int = 0
    last_stable_offset: int = -1
    log_start_offset: int = -1
    diverging_epoch: EpochEndOffset | None = None
    current_leader: LeaderIdAndEpoch | None = None
    snapshot_id: SnapshotId | None = None
    aborted_transactions: list[AbortedTransaction] | None = Factory(list)
    preferred_read_replica: int = -1
    records: bytes | memoryview | None = None


@define(weakref_slot=False)
class FetchableTopicResponse(Struct):
    """The fetched partitions by topic; in a session only those that have records, an error or news.

    Attributes:
        topic: The topic's name, up to version 12.
        topic_id: The topic's id, from version 13 on, as it was asked.
        partitions: What was found in each partition of this topic.
    """

    topic: str = ""
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = Factory(list)


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
class FetchResponse(Message):
    """Record batches by partition, with what the broker knows about each log.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Since version 8 the answer is immediate and
            the client must stay silent that long; before, the broker had already held the answer back.
        error_code: 0, or why the fetch as a whole failed: 70, 71 and 106 mean that the fetch session must be
            opened again.
        session_id: The fetch session the broker keeps from now on; 0 when it keeps none.
        responses: The fetched partitions by topic; in a session only those that have records, an error or
            news.
        node_endpoints: Addresses of the leaders named in CurrentLeader; empty when no partition names one.
    """

    NAME: ClassVar[str] = "FetchResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 1
    VERSIONS: ClassVar[tuple[int, int]] = (0, 18)
    FLEXIBLE_SINCE: ClassVar[int | None] = 12

    throttle_time_ms: int = 0
    error_code: int = 0
    session_id: int = 0
    responses: list[FetchableTopicResponse] = Factory(list)
    node_endpoints: list[NodeEndpoint] = Factory(list)


# PartitionData in versions 0–3
def read_partition_data_v0(data: memoryview, at: int, size: int) -> tuple[PartitionData, int]:
    message = new(PartitionData)
    message.last_stable_offset = -1
    message.log_start_offset = -1
    message.diverging_epoch = None
    message.current_leader = None
    message.snapshot_id = None
    message.aborted_transactions = []
    message.preferred_read_replica = -1
    message.unknown_tags = ()
    message.partition_index, message.error_code, message.high_watermark, length = unpack_i4_i2_i8_i4(data, at)
    at += 18
    if length == -1:
        message.records = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("records")
        message.records = data[at:end]
        at = end
    return message, at


def write_partition_data_v0(message: PartitionData, add: Add) -> None:
    if message.diverging_epoch is not None and message.diverging_epoch != EpochEndOffset():
        raise Unwritable("diverging_epoch")
    if message.current_leader is not None and message.current_leader != LeaderIdAndEpoch():
        raise Unwritable("current_leader")
    if message.snapshot_id is not None and message.snapshot_id != SnapshotId():
        raise Unwritable("snapshot_id")
    if message.preferred_read_replica != -1:
        raise Unwritable("preferred_read_replica")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4_i2_i8(message.partition_index, message.error_code, message.high_watermark))
    records = message.records
    if records is None:
        add(b"\xff\xff\xff\xff")
    else:
        add(pack_i4(len(records)))
        if not isinstance(records, BYTES):
            raise Unwritable("records")
        add(records)


# FetchableTopicResponse in versions 0–3
def read_fetchable_topic_response_v0(
    data: memoryview,
    at: int,
    size: int,
) -> tuple[FetchableTopicResponse, int]:
    message = new(FetchableTopicResponse)
    message.topic_id = ZERO_UUID
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
    if not 0 <= count * 18 <= size - at:
        raise Malformed("partitions")
    partitions: list[PartitionData] = []
    for _ in range(count):
        partition, at = read_partition_data_v0(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_fetchable_topic_response_v0(message: FetchableTopicResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topic = message.topic.encode()
    add(pack_i2(len(topic)))
    add(topic)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_partition_data_v0(partition, add)


# FetchResponse in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[FetchResponse, int]:
    data = memoryview(data)
    message = new(FetchResponse)
    message.throttle_time_ms = 0
    message.error_code = 0
    message.session_id = 0
    message.node_endpoints = []
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("responses")
    responses: list[FetchableTopicResponse] = []
    for _ in range(count):
        response, at = read_fetchable_topic_response_v0(data, at, size)
        responses.append(response)
    message.responses = responses
    return message, at


def write_v0(message: FetchResponse, add: Add) -> None:
    if message.session_id != 0:
        raise Unwritable("session_id")
    if message.node_endpoints != []:
        raise Unwritable("node_endpoints")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    responses = message.responses
    add(pack_i4(len(responses)))
    for response in responses:
        write_fetchable_topic_response_v0(response, add)


# FetchResponse in versions 1–3
def read_v1(data: Buffer, at: int, size: int) -> tuple[FetchResponse, int]:
    data = memoryview(data)
    message = new(FetchResponse)
    message.error_code = 0
    message.session_id = 0
    message.node_endpoints = []
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 6 <= size - at:
        raise Malformed("responses")
    responses: list[FetchableTopicResponse] = []
    for _ in range(count):
        response, at = read_fetchable_topic_response_v0(data, at, size)
        responses.append(response)
    message.responses = responses
    return message, at


def write_v1(message: FetchResponse, add: Add) -> None:
    if message.session_id != 0:
        raise Unwritable("session_id")
    if message.node_endpoints != []:
        raise Unwritable("node_endpoints")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    responses = message.responses
    add(pack_i4x2(message.throttle_time_ms, len(responses)))
    for response in responses:
        write_fetchable_topic_response_v0(response, add)


# AbortedTransaction in versions 4–11
def read_aborted_transaction_v4(data: Buffer, at: int, size: int) -> tuple[AbortedTransaction, int]:
    message = new(AbortedTransaction)
    message.unknown_tags = ()
    message.producer_id, message.first_offset = unpack_i8x2(data, at)
    at += 16
    return message, at


def write_aborted_transaction_v4(message: AbortedTransaction, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i8x2(message.producer_id, message.first_offset))


# PartitionData in version 4
def read_partition_data_v4(data: memoryview, at: int, size: int) -> tuple[PartitionData, int]:
    message = new(PartitionData)
    message.log_start_offset = -1
    message.diverging_epoch = None
    message.current_leader = None
    message.snapshot_id = None
    message.preferred_read_replica = -1
    message.unknown_tags = ()
    (
        message.partition_index,
        message.error_code,
        message.high_watermark,
        message.last_stable_offset,
        count,
    ) = unpack_i4_i2_i8x2_i4(data, at)
    at += 26
    if count == -1:
        message.aborted_transactions = None
    else:
        if not 0 <= count * 16 <= size - at:
            raise Malformed("aborted_transactions")
        aborted_transactions: list[AbortedTransaction] = []
        for _ in range(count):
            aborted_transaction, at = read_aborted_transaction_v4(data, at, size)
            aborted_transactions.append(aborted_transaction)
        message.aborted_transactions = aborted_transactions
    (length,) = unpack_i4(data, at)
    at += 4
    if length == -1:
        message.records = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("records")
        message.records = data[at:end]
        at = end
    return message, at


def write_partition_data_v4(message: PartitionData, add: Add) -> None:
    if message.diverging_epoch is not None and message.diverging_epoch != EpochEndOffset():
        raise Unwritable("diverging_epoch")
    if message.current_leader is not None and message.current_leader != LeaderIdAndEpoch():
        raise Unwritable("current_leader")
    if message.snapshot_id is not None and message.snapshot_id != SnapshotId():
        raise Unwritable("snapshot_id")
    if message.preferred_read_replica != -1:
        raise Unwritable("preferred_read_replica")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(
        pack_i4_i2_i8x2(
            message.partition_index,
            message.error_code,
            message.high_watermark,
            message.last_stable_offset,
        )
    )
    aborted_transactions = message.aborted_transactions
    if aborted_transactions is None:
        add(b"\xff\xff\xff\xff")
    else:
        add(pack_i4(len(aborted_transactions)))
        for aborted_transaction in aborted_transactions:
            write_aborted_transaction_v4(aborted_transaction, add)
    records = message.records
    if records is None:
        add(b"\xff\xff\xff\xff")
    else:
        add(pack_i4(len(records)))
        if not isinstance(records, BYTES):
            raise Unwritable("records")
        add(records)


# FetchableTopicResponse in version 4
def read_fetchable_topic_response_v4(
    data: memoryview,
    at: int,
    size: int,
) -> tuple[FetchableTopicResponse, int]:
    message = new(FetchableTopicResponse)
    message.topic_id = ZERO_UUID
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
    if not 0 <= count * 30 <= size - at:
        raise Malformed("partitions")
    partitions: list[PartitionData] = []
    for _ in range(count):
        partition, at = read_partition_data_v4(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_fetchable_topic_response_v4(message: FetchableTopicResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topic = message.topic.encode()
    add(pack_i2(len(topic)))
    add(topic)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_partition_data_v4(partition, add)


# FetchResponse in version 4
def read_v4(data: Buffer, at: int, size: int) -> tuple[FetchResponse, int]:
    data = memoryview(data)
    message = new(FetchResponse)
    message.error_code = 0
    message.session_id = 0
    message.node_endpoints = []
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 6 <= size - at:
        raise Malformed("responses")
    responses: list[FetchableTopicResponse] = []
    for _ in range(count):
        response, at = read_fetchable_topic_response_v4(data, at, size)
        responses.append(response)
    message.responses = responses
    return message, at


def write_v4(message: FetchResponse, add: Add) -> None:
    if message.session_id != 0:
        raise Unwritable("session_id")
    if message.node_endpoints != []:
        raise Unwritable("node_endpoints")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    responses = message.responses
    add(pack_i4x2(message.throttle_time_ms, len(responses)))
    for response in responses:
        write_fetchable_topic_response_v4(response, add)


# PartitionData in versions 5–10
def read_partition_data_v5(data: memoryview, at: int, size: int) -> tuple[PartitionData, int]:
    message = new(PartitionData)
    message.diverging_epoch = None
    message.current_leader = None
    message.snapshot_id = None
    message.preferred_read_replica = -1
    message.unknown_tags = ()
    (
        message.partition_index,
        message.error_code,
        message.high_watermark,
        message.last_stable_offset,
        message.log_start_offset,
        count,
    ) = unpack_i4_i2_i8x3_i4(data, at)
    at += 34
    if count == -1:
        message.aborted_transactions = None
    else:
        if not 0 <= count * 16 <= size - at:
            raise Malformed("aborted_transactions")
        aborted_transactions: list[AbortedTransaction] = []
        for _ in range(count):
            aborted_transaction, at = read_aborted_transaction_v4(data, at, size)
            aborted_transactions.append(aborted_transaction)
        message.aborted_transactions = aborted_transactions
    (length,) = unpack_i4(data, at)
    at += 4
    if length == -1:
        message.records = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("records")
        message.records = data[at:end]
        at = end
    return message, at


def write_partition_data_v5(message: PartitionData, add: Add) -> None:
    if message.diverging_epoch is not None and message.diverging_epoch != EpochEndOffset():
        raise Unwritable("diverging_epoch")
    if message.current_leader is not None and message.current_leader != LeaderIdAndEpoch():
        raise Unwritable("current_leader")
    if message.snapshot_id is not None and message.snapshot_id != SnapshotId():
        raise Unwritable("snapshot_id")
    if message.preferred_read_replica != -1:
        raise Unwritable("preferred_read_replica")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(
        pack_i4_i2_i8x3(
            message.partition_index,
            message.error_code,
            message.high_watermark,
            message.last_stable_offset,
            message.log_start_offset,
        )
    )
    aborted_transactions = message.aborted_transactions
    if aborted_transactions is None:
        add(b"\xff\xff\xff\xff")
    else:
        add(pack_i4(len(aborted_transactions)))
        for aborted_transaction in aborted_transactions:
            write_aborted_transaction_v4(aborted_transaction, add)
    records = message.records
    if records is None:
        add(b"\xff\xff\xff\xff")
    else:
        add(pack_i4(len(records)))
        if not isinstance(records, BYTES):
            raise Unwritable("records")
        add(records)


# FetchableTopicResponse in versions 5–10
def read_fetchable_topic_response_v5(
    data: memoryview,
    at: int,
    size: int,
) -> tuple[FetchableTopicResponse, int]:
    message = new(FetchableTopicResponse)
    message.topic_id = ZERO_UUID
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
    if not 0 <= count * 38 <= size - at:
        raise Malformed("partitions")
    partitions: list[PartitionData] = []
    for _ in range(count):
        partition, at = read_partition_data_v5(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_fetchable_topic_response_v5(message: FetchableTopicResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topic = message.topic.encode()
    add(pack_i2(len(topic)))
    add(topic)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_partition_data_v5(partition, add)


# FetchResponse in versions 5–6
def read_v5(data: Buffer, at: int, size: int) -> tuple[FetchResponse, int]:
    data = memoryview(data)
    message = new(FetchResponse)
    message.error_code = 0
    message.session_id = 0
    message.node_endpoints = []
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 6 <= size - at:
        raise Malformed("responses")
    responses: list[FetchableTopicResponse] = []
    for _ in range(count):
        response, at = read_fetchable_topic_response_v5(data, at, size)
        responses.append(response)
    message.responses = responses
    return message, at


def write_v5(message: FetchResponse, add: Add) -> None:
    if message.session_id != 0:
        raise Unwritable("session_id")
    if message.node_endpoints != []:
        raise Unwritable("node_endpoints")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    responses = message.responses
    add(pack_i4x2(message.throttle_time_ms, len(responses)))
    for response in responses:
        write_fetchable_topic_response_v5(response, add)


# FetchResponse in versions 7–10
def read_v7(data: Buffer, at: int, size: int) -> tuple[FetchResponse, int]:
    data = memoryview(data)
    message = new(FetchResponse)
    message.node_endpoints = []
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, message.session_id, count = unpack_i4_i2_i4x2(data, at)
    at += 14
    if not 0 <= count * 6 <= size - at:
        raise Malformed("responses")
    responses: list[FetchableTopicResponse] = []
    for _ in range(count):
        response, at = read_fetchable_topic_response_v5(data, at, size)
        responses.append(response)
    message.responses = responses
    return message, at


def write_v7(message: FetchResponse, add: Add) -> None:
    if message.node_endpoints != []:
        raise Unwritable("node_endpoints")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    responses = message.responses
    add(pack_i4_i2_i4x2(message.throttle_time_ms, message.error_code, message.session_id, len(responses)))
    for response in responses:
        write_fetchable_topic_response_v5(response, add)


# PartitionData in version 11
def read_partition_data_v11(data: memoryview, at: int, size: int) -> tuple[PartitionData, int]:
    message = new(PartitionData)
    message.diverging_epoch = None
    message.current_leader = None
    message.snapshot_id = None
    message.unknown_tags = ()
    (
        message.partition_index,
        message.error_code,
        message.high_watermark,
        message.last_stable_offset,
        message.log_start_offset,
        count,
    ) = unpack_i4_i2_i8x3_i4(data, at)
    at += 34
    if count == -1:
        message.aborted_transactions = None
    else:
        if not 0 <= count * 16 <= size - at:
            raise Malformed("aborted_transactions")
        aborted_transactions: list[AbortedTransaction] = []
        for _ in range(count):
            aborted_transaction, at = read_aborted_transaction_v4(data, at, size)
            aborted_transactions.append(aborted_transaction)
        message.aborted_transactions = aborted_transactions
    message.preferred_read_replica, length = unpack_i4x2(data, at)
    at += 8
    if length == -1:
        message.records = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("records")
        message.records = data[at:end]
        at = end
    return message, at


def write_partition_data_v11(message: PartitionData, add: Add) -> None:
    if message.diverging_epoch is not None and message.diverging_epoch != EpochEndOffset():
        raise Unwritable("diverging_epoch")
    if message.current_leader is not None and message.current_leader != LeaderIdAndEpoch():
        raise Unwritable("current_leader")
    if message.snapshot_id is not None and message.snapshot_id != SnapshotId():
        raise Unwritable("snapshot_id")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(
        pack_i4_i2_i8x3(
            message.partition_index,
            message.error_code,
            message.high_watermark,
            message.last_stable_offset,
            message.log_start_offset,
        )
    )
    aborted_transactions = message.aborted_transactions
    if aborted_transactions is None:
        add(b"\xff\xff\xff\xff")
    else:
        add(pack_i4(len(aborted_transactions)))
        for aborted_transaction in aborted_transactions:
            write_aborted_transaction_v4(aborted_transaction, add)
    add(pack_i4(message.preferred_read_replica))
    records = message.records
    if records is None:
        add(b"\xff\xff\xff\xff")
    else:
        add(pack_i4(len(records)))
        if not isinstance(records, BYTES):
            raise Unwritable("records")
        add(records)


# FetchableTopicResponse in version 11
def read_fetchable_topic_response_v11(
    data: memoryview,
    at: int,
    size: int,
) -> tuple[FetchableTopicResponse, int]:
    message = new(FetchableTopicResponse)
    message.topic_id = ZERO_UUID
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
    if not 0 <= count * 42 <= size - at:
        raise Malformed("partitions")
    partitions: list[PartitionData] = []
    for _ in range(count):
        partition, at = read_partition_data_v11(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_fetchable_topic_response_v11(message: FetchableTopicResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topic = message.topic.encode()
    add(pack_i2(len(topic)))
    add(topic)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_partition_data_v11(partition, add)


# FetchResponse in version 11
def read_v11(data: Buffer, at: int, size: int) -> tuple[FetchResponse, int]:
    data = memoryview(data)
    message = new(FetchResponse)
    message.node_endpoints = []
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, message.session_id, count = unpack_i4_i2_i4x2(data, at)
    at += 14
    if not 0 <= count * 6 <= size - at:
        raise Malformed("responses")
    responses: list[FetchableTopicResponse] = []
    for _ in range(count):
        response, at = read_fetchable_topic_response_v11(data, at, size)
        responses.append(response)
    message.responses = responses
    return message, at


def write_v11(message: FetchResponse, add: Add) -> None:
    if message.node_endpoints != []:
        raise Unwritable("node_endpoints")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    responses = message.responses
    add(pack_i4_i2_i4x2(message.throttle_time_ms, message.error_code, message.session_id, len(responses)))
    for response in responses:
        write_fetchable_topic_response_v11(response, add)


# AbortedTransaction in versions 12–18
def read_aborted_transaction_v12(data: Buffer, at: int, size: int) -> tuple[AbortedTransaction, int]:
    message = new(AbortedTransaction)
    message.unknown_tags = ()
    message.producer_id, message.first_offset, tags = unpack_i8x2_u1(data, at)
    at += 17
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_aborted_transaction_v12(message: AbortedTransaction, add: Add) -> None:
    add(pack_i8x2(message.producer_id, message.first_offset))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# EpochEndOffset in versions 12–18
def read_epoch_end_offset_v12(data: Buffer, at: int, size: int) -> tuple[EpochEndOffset, int]:
    message = new(EpochEndOffset)
    message.unknown_tags = ()
    message.epoch, message.end_offset, tags = unpack_i4_i8_u1(data, at)
    at += 13
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_epoch_end_offset_v12(message: EpochEndOffset, add: Add) -> None:
    add(pack_i4_i8(message.epoch, message.end_offset))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# LeaderIdAndEpoch in versions 12–18
def read_leader_id_and_epoch_v12(data: Buffer, at: int, size: int) -> tuple[LeaderIdAndEpoch, int]:
    message = new(LeaderIdAndEpoch)
    message.unknown_tags = ()
    message.leader_id, message.leader_epoch, tags = unpack_i4x2_u1(data, at)
    at += 9
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_leader_id_and_epoch_v12(message: LeaderIdAndEpoch, add: Add) -> None:
    add(pack_i4x2(message.leader_id, message.leader_epoch))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# SnapshotId in versions 12–18
def read_snapshot_id_v12(data: Buffer, at: int, size: int) -> tuple[SnapshotId, int]:
    message = new(SnapshotId)
    message.unknown_tags = ()
    message.end_offset, message.epoch, tags = unpack_i8_i4_u1(data, at)
    at += 13
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_snapshot_id_v12(message: SnapshotId, add: Add) -> None:
    add(pack_i8_i4(message.end_offset, message.epoch))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# PartitionData in versions 12–18
def read_partition_data_v12(data: memoryview, at: int, size: int) -> tuple[PartitionData, int]:
    message = new(PartitionData)
    message.diverging_epoch = None
    message.current_leader = None
    message.snapshot_id = None
    message.unknown_tags = ()
    (
        message.partition_index,
        message.error_code,
        message.high_watermark,
        message.last_stable_offset,
        message.log_start_offset,
        count,
    ) = unpack_i4_i2_i8x3_u1(data, at)
    at += 31
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        message.aborted_transactions = None
    else:
        count -= 1
        if not 0 <= count * 17 <= size - at:
            raise Malformed("aborted_transactions")
        aborted_transactions: list[AbortedTransaction] = []
        for _ in range(count):
            aborted_transaction, at = read_aborted_transaction_v12(data, at, size)
            aborted_transactions.append(aborted_transaction)
        message.aborted_transactions = aborted_transactions
    message.preferred_read_replica, length = unpack_i4_u1(data, at)
    at += 5
    if length > 127:
        length, at = read_uvarint(data, at - 1)
    if length == 0:
        message.records = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("records")
        message.records = data[at:end]
        at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        if 0 in found:
            message.diverging_epoch = read_whole(read_epoch_end_offset_v12, found.pop(0))
        if 1 in found:
            message.current_leader = read_whole(read_leader_id_and_epoch_v12, found.pop(1))
        if 2 in found:
            message.snapshot_id = read_whole(read_snapshot_id_v12, found.pop(2))
        message.unknown_tags = left_over(found)
    return message, at


def write_partition_data_v12(message: PartitionData, add: Add) -> None:
    add(
        pack_i4_i2_i8x3(
            message.partition_index,
            message.error_code,
            message.high_watermark,
            message.last_stable_offset,
            message.log_start_offset,
        )
    )
    aborted_transactions = message.aborted_transactions
    if aborted_transactions is None:
        add(b"\x00")
    else:
        add(compact_length[len(aborted_transactions)])
        for aborted_transaction in aborted_transactions:
            write_aborted_transaction_v12(aborted_transaction, add)
    add(pack_i4(message.preferred_read_replica))
    records = message.records
    if records is None:
        add(b"\x00")
    else:
        add(compact_length[len(records)])
        if not isinstance(records, BYTES):
            raise Unwritable("records")
        add(records)
    tags: dict[int, bytes] = {}
    if message.diverging_epoch is not None and message.diverging_epoch != EpochEndOffset():
        tags[0] = written(write_epoch_end_offset_v12, message.diverging_epoch)
    if message.current_leader is not None and message.current_leader != LeaderIdAndEpoch():
        tags[1] = written(write_leader_id_and_epoch_v12, message.current_leader)
    if message.snapshot_id is not None and message.snapshot_id != SnapshotId():
        tags[2] = written(write_snapshot_id_v12, message.snapshot_id)
    if tags or message.unknown_tags:
        write_tags((0, 1, 2), tags, message.unknown_tags, add)
    else:
        add(b"\x00")


# FetchableTopicResponse in version 12
def read_fetchable_topic_response_v12(
    data: memoryview,
    at: int,
    size: int,
) -> tuple[FetchableTopicResponse, int]:
    message = new(FetchableTopicResponse)
    message.topic_id = ZERO_UUID
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
    if not 0 <= count * 37 <= size - at:
        raise Malformed("partitions")
    partitions: list[PartitionData] = []
    for _ in range(count):
        partition, at = read_partition_data_v12(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_fetchable_topic_response_v12(message: FetchableTopicResponse, add: Add) -> None:
    topic = message.topic.encode()
    add(compact_string_length[len(topic)])
    add(topic)
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_partition_data_v12(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# FetchResponse in version 12
def read_v12(data: Buffer, at: int, size: int) -> tuple[FetchResponse, int]:
    data = memoryview(data)
    message = new(FetchResponse)
    message.node_endpoints = []
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, message.session_id, count = unpack_i4_i2_i4_u1(data, at)
    at += 11
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("responses")
    responses: list[FetchableTopicResponse] = []
    for _ in range(count):
        response, at = read_fetchable_topic_response_v12(data, at, size)
        responses.append(response)
    message.responses = responses
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v12(message: FetchResponse, add: Add) -> None:
    if message.node_endpoints != []:
        raise Unwritable("node_endpoints")
    add(pack_i4_i2_i4(message.throttle_time_ms, message.error_code, message.session_id))
    responses = message.responses
    add(compact_length[len(responses)])
    for response in responses:
        write_fetchable_topic_response_v12(response, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# FetchableTopicResponse in versions 13–18
def read_fetchable_topic_response_v13(
    data: memoryview,
    at: int,
    size: int,
) -> tuple[FetchableTopicResponse, int]:
    message = new(FetchableTopicResponse)
    message.topic = ""
    message.unknown_tags = ()
    message.topic_id, count = unpack_uuid_u1(data, at)
    at += 17
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 37 <= size - at:
        raise Malformed("partitions")
    partitions: list[PartitionData] = []
    for _ in range(count):
        partition, at = read_partition_data_v12(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_fetchable_topic_response_v13(message: FetchableTopicResponse, add: Add) -> None:
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_partition_data_v12(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# FetchResponse in versions 13–15
def read_v13(data: Buffer, at: int, size: int) -> tuple[FetchResponse, int]:
    data = memoryview(data)
    message = new(FetchResponse)
    message.node_endpoints = []
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, message.session_id, count = unpack_i4_i2_i4_u1(data, at)
    at += 11
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("responses")
    responses: list[FetchableTopicResponse] = []
    for _ in range(count):
        response, at = read_fetchable_topic_response_v13(data, at, size)
        responses.append(response)
    message.responses = responses
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v13(message: FetchResponse, add: Add) -> None:
    if message.node_endpoints != []:
        raise Unwritable("node_endpoints")
    add(pack_i4_i2_i4(message.throttle_time_ms, message.error_code, message.session_id))
    responses = message.responses
    add(compact_length[len(responses)])
    for response in responses:
        write_fetchable_topic_response_v13(response, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# NodeEndpoint in versions 16–18
def read_node_endpoint_v16(data: Buffer, at: int, size: int) -> tuple[NodeEndpoint, int]:
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


def write_node_endpoint_v16(message: NodeEndpoint, add: Add) -> None:
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


def read_node_endpoints_tag_v16(data: Buffer, at: int, size: int) -> tuple[list[NodeEndpoint], int]:
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
        node_endpoint, at = read_node_endpoint_v16(data, at, size)
        node_endpoints.append(node_endpoint)
    value = node_endpoints
    return value, at


def write_node_endpoints_tag_v16(value: list[NodeEndpoint], add: Add) -> None:
    node_endpoints = value
    add(compact_length[len(node_endpoints)])
    for node_endpoint in node_endpoints:
        write_node_endpoint_v16(node_endpoint, add)


# FetchResponse in versions 16–18
def read_v16(data: Buffer, at: int, size: int) -> tuple[FetchResponse, int]:
    data = memoryview(data)
    message = new(FetchResponse)
    message.node_endpoints = []
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, message.session_id, count = unpack_i4_i2_i4_u1(data, at)
    at += 11
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("responses")
    responses: list[FetchableTopicResponse] = []
    for _ in range(count):
        response, at = read_fetchable_topic_response_v13(data, at, size)
        responses.append(response)
    message.responses = responses
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        if 0 in found:
            message.node_endpoints = read_whole(read_node_endpoints_tag_v16, found.pop(0))
        message.unknown_tags = left_over(found)
    return message, at


def write_v16(message: FetchResponse, add: Add) -> None:
    add(pack_i4_i2_i4(message.throttle_time_ms, message.error_code, message.session_id))
    responses = message.responses
    add(compact_length[len(responses)])
    for response in responses:
        write_fetchable_topic_response_v13(response, add)
    tags: dict[int, bytes] = {}
    if message.node_endpoints != []:
        tags[0] = written(write_node_endpoints_tag_v16, message.node_endpoints)
    if tags or message.unknown_tags:
        write_tags((0,), tags, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[FetchResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v1, write_v1),
    3: (read_v1, write_v1),
    4: (read_v4, write_v4),
    5: (read_v5, write_v5),
    6: (read_v5, write_v5),
    7: (read_v7, write_v7),
    8: (read_v7, write_v7),
    9: (read_v7, write_v7),
    10: (read_v7, write_v7),
    11: (read_v11, write_v11),
    12: (read_v12, write_v12),
    13: (read_v13, write_v13),
    14: (read_v13, write_v13),
    15: (read_v13, write_v13),
    16: (read_v16, write_v16),
    17: (read_v16, write_v16),
    18: (read_v16, write_v16),
}

# what JSON and error messages know of the fields
EpochEndOffset.FIELDS = (
    Field("epoch", "epoch", "int32", (12, 18)),
    Field("end_offset", "endOffset", "int64", (12, 18)),
)
LeaderIdAndEpoch.FIELDS = (
    Field("leader_id", "leaderId", "int32", (12, 18)),
    Field("leader_epoch", "leaderEpoch", "int32", (12, 18)),
)
SnapshotId.FIELDS = (
    Field("end_offset", "endOffset", "int64", (12, 18)),
    Field("epoch", "epoch", "int32", (12, 18)),
)
AbortedTransaction.FIELDS = (
    Field("producer_id", "producerId", "int64", (4, 18)),
    Field("first_offset", "firstOffset", "int64", (4, 18)),
)
PartitionData.FIELDS = (
    Field("partition_index", "partitionIndex", "int32", (0, 18)),
    Field("error_code", "errorCode", "int16", (0, 18)),
    Field("high_watermark", "highWatermark", "int64", (0, 18)),
    Field("last_stable_offset", "lastStableOffset", "int64", (4, 18), ignorable=True),
    Field("log_start_offset", "logStartOffset", "int64", (5, 18), ignorable=True),
    Field(
        "diverging_epoch",
        "divergingEpoch",
        "EpochEndOffset",
        (12, 18),
        tagged=(12, 18),
        tag=0,
        struct=EpochEndOffset,
    ),
    Field(
        "current_leader",
        "currentLeader",
        "LeaderIdAndEpoch",
        (12, 18),
        tagged=(12, 18),
        tag=1,
        struct=LeaderIdAndEpoch,
    ),
    Field("snapshot_id", "snapshotId", "SnapshotId", (12, 18), tagged=(12, 18), tag=2, struct=SnapshotId),
    Field(
        "aborted_transactions",
        "abortedTransactions",
        "[]AbortedTransaction",
        (4, 18),
        nullable=(4, 18),
        struct=AbortedTransaction,
        ignorable=True,
    ),
    Field("preferred_read_replica", "preferredReadReplica", "int32", (11, 18)),
    Field("records", "records", "records", (0, 18), nullable=(0, 18)),
)
FetchableTopicResponse.FIELDS = (
    Field("topic", "topic", "string", (0, 12), ignorable=True),
    Field("topic_id", "topicId", "uuid", (13, 18), ignorable=True),
    Field("partitions", "partitions", "[]PartitionData", (0, 18), struct=PartitionData),
)
NodeEndpoint.FIELDS = (
    Field("node_id", "nodeId", "int32", (16, 18)),
    Field("host", "host", "string", (16, 18)),
    Field("port", "port", "int32", (16, 18)),
    Field("rack", "rack", "string", (16, 18), nullable=(16, 18)),
)
FetchResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (1, 18), ignorable=True),
    Field("error_code", "errorCode", "int16", (7, 18), ignorable=True),
    Field("session_id", "sessionId", "int32", (7, 18)),
    Field("responses", "responses", "[]FetchableTopicResponse", (0, 18), struct=FetchableTopicResponse),
    Field(
        "node_endpoints",
        "nodeEndpoints",
        "[]NodeEndpoint",
        (16, 18),
        tagged=(16, 18),
        tag=0,
        struct=NodeEndpoint,
    ),
)
