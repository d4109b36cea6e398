"""ShareFetchResponse, versions 0–2: its classes, and one read and write pair per layout.

Generated from schemas/ShareFetchResponse.json by `python -m codegen`; edits here are lost.
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
    write_tags,
)

pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
pack_i4_i2: Final = struct.Struct(">ih").pack
pack_i4x2: Final = struct.Struct(">ii").pack
pack_i8x2_i2: Final = struct.Struct(">qqh").pack
pack_uuid: Final = struct.Struct(">16s").pack
unpack_i2_u1: Final = struct.Struct(">hB").unpack_from
unpack_i4_i2_u1: Final = struct.Struct(">ihB").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i4x2_u1: Final = struct.Struct(">iiB").unpack_from
unpack_i8x2_i2_u1: Final = struct.Struct(">qqhB").unpack_from
unpack_uuid_u1: Final = struct.Struct(">16sB").unpack_from


@define(weakref_slot=False)
class LeaderIdAndEpoch(Struct):
    """Who leads the partition now; sent along with errors that say it has moved.

    Attributes:
        leader_id: Broker id of the present leader, its address in NodeEndpoints; -1 when unknown.
        leader_epoch: The present leader's epoch; -1 when unknown.
    """

    leader_id: int = 0
    leader_epoch: int = 0


@define(weakref_slot=False)
class AcquiredRecords(Struct):
    """The ranges of offsets that are locked for this member.

    Attributes:
        first_offset: The first offset of the range.
        last_offset: The last offset of the range, itself included.
        delivery_count: How often these records have been delivered, this time included; after a limit they
            are given up.
    """

    first_offset: int = 0
    last_offset: int = 0
    delivery_count: int = 0


@define(weakref_slot=False)
class PartitionData(Struct):
    """What was acquired in each partition of this topic.

    Attributes:
        partition_index: The partition's number within its topic.
        error_code: 0, or why nothing could be acquired in this partition.
        error_message: The broker's explanation of the partition's ErrorCode, for people; null when there is
            none.
        acknowledge_error_code: 0, or why the acknowledgements of the request failed for this partition.
        acknowledge_error_message: The broker's explanation of AcknowledgeErrorCode, for people; null when
            there is none.
        current_leader: Who leads the partition now; sent along with errors that say it has moved.
        records: Record batches as they stand in the log; only offsets within AcquiredRecords are the
            member's. Null for none in version 0, empty later.
        acquired_records: The ranges of offsets that are locked for this member.
    """

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    acknowledge_error_code: int = 0
    acknowledge_error_message: str | None = None
    current_leader: LeaderIdAndEpoch = Factory(LeaderIdAndEpoch)
    records: bytes | memoryview | None = None
    acquired_records: list[AcquiredRecords] = Factory(list)


@define(weakref_slot=False)
class ShareFetchableTopicResponse(Struct):
    """The answers by topic.

    Attributes:
        topic_id: The id of the topic of these partitions.
        partitions: What was acquired in each partition of this topic.
    """

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
class ShareFetchResponse(Message):
    """Records acquired for a share group member, with the ranges it has to acknowledge.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none.
        error_code: 0, or why the fetch as a whole failed; 122, 123 and 133 mean that the share session must
            be opened again.
        error_message: The broker's explanation of ErrorCode, for people; null when there is none.
        acquisition_lock_timeout_ms: Milliseconds the member has to acknowledge before the records are offered
            to others.
        responses: The answers by topic.
        node_endpoints: Addresses of the leaders named in CurrentLeader; empty when no partition names one.
    """

    NAME: ClassVar[str] = "ShareFetchResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 78
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: list[ShareFetchableTopicResponse] = Factory(list)
    node_endpoints: list[NodeEndpoint] = Factory(list)


# LeaderIdAndEpoch in versions 0–2
def read_leader_id_and_epoch_v0(data: Buffer, at: int, size: int) -> tuple[LeaderIdAndEpoch, int]:
    message = new(LeaderIdAndEpoch)
    message.unknown_tags = ()
    message.leader_id, message.leader_epoch, tags = unpack_i4x2_u1(data, at)
    at += 9
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_leader_id_and_epoch_v0(message: LeaderIdAndEpoch, add: Add) -> None:
    add(pack_i4x2(message.leader_id, message.leader_epoch))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# AcquiredRecords in versions 0–2
def read_acquired_records_v0(data: Buffer, at: int, size: int) -> tuple[AcquiredRecords, int]:
    message = new(AcquiredRecords)
    message.unknown_tags = ()
    message.first_offset, message.last_offset, message.delivery_count, tags = unpack_i8x2_i2_u1(data, at)
    at += 19
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_acquired_records_v0(message: AcquiredRecords, add: Add) -> None:
    add(pack_i8x2_i2(message.first_offset, message.last_offset, message.delivery_count))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# PartitionData in version 0
def read_partition_data_v0(data: memoryview, at: int, size: int) -> tuple[PartitionData, int]:
    message = new(PartitionData)
    message.unknown_tags = ()
    message.partition_index, message.error_code, length = unpack_i4_i2_u1(data, at)
    at += 7
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
    message.acknowledge_error_code, length = unpack_i2_u1(data, at)
    at += 3
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.acknowledge_error_message = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("acknowledge_error_message")
        message.acknowledge_error_message = str(data[at:end], "utf-8")
        at = end
    message.current_leader, at = read_leader_id_and_epoch_v0(data, at, size)
    length = data[at]
    at += 1
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
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 19 <= size - at:
        raise Malformed("acquired_records")
    acquired_records: list[AcquiredRecords] = []
    for _ in range(count):
        acquired_record, at = read_acquired_records_v0(data, at, size)
        acquired_records.append(acquired_record)
    message.acquired_records = acquired_records
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_partition_data_v0(message: PartitionData, add: Add) -> None:
    add(pack_i4_i2(message.partition_index, message.error_code))
    error_message = message.error_message
    if error_message is None:
        add(b"\x00")
    else:
        error_message_bytes = error_message.encode()
        add(compact_string_length[len(error_message_bytes)])
        add(error_message_bytes)
    add(pack_i2(message.acknowledge_error_code))
    acknowledge_error_message = message.acknowledge_error_message
    if acknowledge_error_message is None:
        add(b"\x00")
    else:
        acknowledge_error_message_bytes = acknowledge_error_message.encode()
        add(compact_string_length[len(acknowledge_error_message_bytes)])
        add(acknowledge_error_message_bytes)
    write_leader_id_and_epoch_v0(message.current_leader, add)
    records = message.records
    if records is None:
        add(b"\x00")
    else:
        add(compact_length[len(records)])
        if not isinstance(records, BYTES):
            raise Unwritable("records")
        add(records)
    acquired_records = message.acquired_records
    add(compact_length[len(acquired_records)])
    for acquired_record in acquired_records:
        write_acquired_records_v0(acquired_record, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ShareFetchableTopicResponse in version 0
def read_share_fetchable_topic_response_v0(
    data: memoryview,
    at: int,
    size: int,
) -> tuple[ShareFetchableTopicResponse, int]:
    message = new(ShareFetchableTopicResponse)
    message.unknown_tags = ()
    message.topic_id, count = unpack_uuid_u1(data, at)
    at += 17
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 22 <= size - at:
        raise Malformed("partitions")
    partitions: list[PartitionData] = []
    for _ in range(count):
        partition, at = read_partition_data_v0(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_share_fetchable_topic_response_v0(message: ShareFetchableTopicResponse, add: Add) -> None:
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_partition_data_v0(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# NodeEndpoint in versions 0–2
def read_node_endpoint_v0(data: Buffer, at: int, size: int) -> tuple[NodeEndpoint, int]:
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


def write_node_endpoint_v0(message: NodeEndpoint, add: Add) -> None:
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


# ShareFetchResponse in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[ShareFetchResponse, int]:
    data = memoryview(data)
    message = new(ShareFetchResponse)
    message.acquisition_lock_timeout_ms = 0
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, length = unpack_i4_i2_u1(data, at)
    at += 7
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
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("responses")
    responses: list[ShareFetchableTopicResponse] = []
    for _ in range(count):
        response, at = read_share_fetchable_topic_response_v0(data, at, size)
        responses.append(response)
    message.responses = responses
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 11 <= size - at:
        raise Malformed("node_endpoints")
    node_endpoints: list[NodeEndpoint] = []
    for _ in range(count):
        node_endpoint, at = read_node_endpoint_v0(data, at, size)
        node_endpoints.append(node_endpoint)
    message.node_endpoints = node_endpoints
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: ShareFetchResponse, add: Add) -> None:
    if message.acquisition_lock_timeout_ms != 0:
        raise Unwritable("acquisition_lock_timeout_ms")
    add(pack_i4_i2(message.throttle_time_ms, message.error_code))
    error_message = message.error_message
    if error_message is None:
        add(b"\x00")
    else:
        error_message_bytes = error_message.encode()
        add(compact_string_length[len(error_message_bytes)])
        add(error_message_bytes)
    responses = message.responses
    add(compact_length[len(responses)])
    for response in responses:
        write_share_fetchable_topic_response_v0(response, add)
    node_endpoints = message.node_endpoints
    add(compact_length[len(node_endpoints)])
    for node_endpoint in node_endpoints:
        write_node_endpoint_v0(node_endpoint, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# PartitionData in versions 1–2
def read_partition_data_v1(data: memoryview, at: int, size: int) -> tuple[PartitionData, int]:
    message = new(PartitionData)
    message.unknown_tags = ()
    message.partition_index, message.error_code, length = unpack_i4_i2_u1(data, at)
    at += 7
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
    message.acknowledge_error_code, length = unpack_i2_u1(data, at)
    at += 3
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.acknowledge_error_message = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("acknowledge_error_message")
        message.acknowledge_error_message = str(data[at:end], "utf-8")
        at = end
    message.current_leader, at = read_leader_id_and_epoch_v0(data, at, size)
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_uvarint(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("records")
    message.records = data[at:end]
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 19 <= size - at:
        raise Malformed("acquired_records")
    acquired_records: list[AcquiredRecords] = []
    for _ in range(count):
        acquired_record, at = read_acquired_records_v0(data, at, size)
        acquired_records.append(acquired_record)
    message.acquired_records = acquired_records
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_partition_data_v1(message: PartitionData, add: Add) -> None:
    add(pack_i4_i2(message.partition_index, message.error_code))
    error_message = message.error_message
    if error_message is None:
        add(b"\x00")
    else:
        error_message_bytes = error_message.encode()
        add(compact_string_length[len(error_message_bytes)])
        add(error_message_bytes)
    add(pack_i2(message.acknowledge_error_code))
    acknowledge_error_message = message.acknowledge_error_message
    if acknowledge_error_message is None:
        add(b"\x00")
    else:
        acknowledge_error_message_bytes = acknowledge_error_message.encode()
        add(compact_string_length[len(acknowledge_error_message_bytes)])
        add(acknowledge_error_message_bytes)
    write_leader_id_and_epoch_v0(message.current_leader, add)
    if message.records is None:
        raise Unwritable("records")
    records = message.records
    add(compact_length[len(records)])
    if not isinstance(records, BYTES):
        raise Unwritable("records")
    add(records)
    acquired_records = message.acquired_records
    add(compact_length[len(acquired_records)])
    for acquired_record in acquired_records:
        write_acquired_records_v0(acquired_record, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ShareFetchableTopicResponse in versions 1–2
def read_share_fetchable_topic_response_v1(
    data: memoryview,
    at: int,
    size: int,
) -> tuple[ShareFetchableTopicResponse, int]:
    message = new(ShareFetchableTopicResponse)
    message.unknown_tags = ()
    message.topic_id, count = unpack_uuid_u1(data, at)
    at += 17
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 22 <= size - at:
        raise Malformed("partitions")
    partitions: list[PartitionData] = []
    for _ in range(count):
        partition, at = read_partition_data_v1(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_share_fetchable_topic_response_v1(message: ShareFetchableTopicResponse, add: Add) -> None:
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_partition_data_v1(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ShareFetchResponse in versions 1–2
def read_v1(data: Buffer, at: int, size: int) -> tuple[ShareFetchResponse, int]:
    data = memoryview(data)
    message = new(ShareFetchResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, length = unpack_i4_i2_u1(data, at)
    at += 7
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
    message.acquisition_lock_timeout_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("responses")
    responses: list[ShareFetchableTopicResponse] = []
    for _ in range(count):
        response, at = read_share_fetchable_topic_response_v1(data, at, size)
        responses.append(response)
    message.responses = responses
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 11 <= size - at:
        raise Malformed("node_endpoints")
    node_endpoints: list[NodeEndpoint] = []
    for _ in range(count):
        node_endpoint, at = read_node_endpoint_v0(data, at, size)
        node_endpoints.append(node_endpoint)
    message.node_endpoints = node_endpoints
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v1(message: ShareFetchResponse, add: Add) -> None:
    add(pack_i4_i2(message.throttle_time_ms, message.error_code))
    error_message = message.error_message
    if error_message is None:
        add(b"\x00")
    else:
        error_message_bytes = error_message.encode()
        add(compact_string_length[len(error_message_bytes)])
        add(error_message_bytes)
    add(pack_i4(message.acquisition_lock_timeout_ms))
    responses = message.responses
    add(compact_length[len(responses)])
    for response in responses:
        write_share_fetchable_topic_response_v1(response, add)
    node_endpoints = message.node_endpoints
    add(compact_length[len(node_endpoints)])
    for node_endpoint in node_endpoints:
        write_node_endpoint_v0(node_endpoint, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ShareFetchResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v1, write_v1),
}

# what JSON and error messages know of the fields
LeaderIdAndEpoch.FIELDS = (
    Field("leader_id", "leaderId", "int32", (0, 2)),
    Field("leader_epoch", "leaderEpoch", "int32", (0, 2)),
)
AcquiredRecords.FIELDS = (
    Field("first_offset", "firstOffset", "int64", (0, 2)),
    Field("last_offset", "lastOffset", "int64", (0, 2)),
    Field("delivery_count", "deliveryCount", "int16", (0, 2)),
)
PartitionData.FIELDS = (
    Field("partition_index", "partitionIndex", "int32", (0, 2)),
    Field("error_code", "errorCode", "int16", (0, 2)),
    Field("error_message", "errorMessage", "string", (0, 2), nullable=(0, 2)),
    Field("acknowledge_error_code", "acknowledgeErrorCode", "int16", (0, 2)),
    Field("acknowledge_error_message", "acknowledgeErrorMessage", "string", (0, 2), nullable=(0, 2)),
    Field("current_leader", "currentLeader", "LeaderIdAndEpoch", (0, 2), struct=LeaderIdAndEpoch),
    Field("records", "records", "records", (0, 2), nullable=(0, 0)),
    Field("acquired_records", "acquiredRecords", "[]AcquiredRecords", (0, 2), struct=AcquiredRecords),
)
ShareFetchableTopicResponse.FIELDS = (
    Field("topic_id", "topicId", "uuid", (0, 2)),
    Field("partitions", "partitions", "[]PartitionData", (0, 2), struct=PartitionData),
)
NodeEndpoint.FIELDS = (
    Field("node_id", "nodeId", "int32", (0, 2)),
    Field("host", "host", "string", (0, 2)),
    Field("port", "port", "int32", (0, 2)),
    Field("rack", "rack", "string", (0, 2), nullable=(0, 2)),
)
ShareFetchResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (0, 2)),
    Field("error_code", "errorCode", "int16", (0, 2)),
    Field("error_message", "errorMessage", "string", (0, 2), nullable=(0, 2)),
    Field("acquisition_lock_timeout_ms", "acquisitionLockTimeoutMs", "int32", (1, 2)),
    Field(
        "responses",
        "responses",
        "[]ShareFetchableTopicResponse",
        (0, 2),
        struct=ShareFetchableTopicResponse,
    ),
    Field("node_endpoints", "nodeEndpoints", "[]NodeEndpoint", (0, 2), struct=NodeEndpoint),
)
