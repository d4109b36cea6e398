"""DescribeClusterResponse, versions 0–2: its classes, and one read and write pair per layout.

Generated from schemas/DescribeClusterResponse.json by `python -m codegen`; edits here are lost.
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

pack_bool: Final = struct.Struct(">?").pack
pack_i1: Final = struct.Struct(">b").pack
pack_i4: Final = struct.Struct(">i").pack
pack_i4_i2: Final = struct.Struct(">ih").pack
unpack_bool_u1: Final = struct.Struct(">?B").unpack_from
unpack_i1_u1: Final = struct.Struct(">bB").unpack_from
unpack_i4_i2_u1: Final = struct.Struct(">ihB").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from


@define(weakref_slot=False)
class DescribeClusterBroker(Struct):
    """The nodes of the wanted kind.

    Attributes:
        broker_id: The node's id, broker or controller as asked.
        host: Name or address at which the node listens.
        port: TCP port at which the node listens.
        rack: The node's rack; null when it has none.
        is_fenced: True for a broker that is registered but not in service.
    """

    broker_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    is_fenced: bool = False


@define(weakref_slot=False)
class DescribeClusterResponse(Message):
    """The cluster's id, controller and nodes.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none.
        error_code: 0, or why the cluster cannot be described; 114 when the node does not serve that kind of
            endpoint.
        error_message: The broker's explanation of ErrorCode, for people; null when there is none.
        endpoint_type: Whose addresses these are: 1 brokers, 2 controllers.
        cluster_id: The unchanging id of the cluster.
        controller_id: Id of the node to send administrative requests to; -1 when unknown.
        brokers: The nodes of the wanted kind.
        cluster_authorized_operations: Bit n set if the caller may do operation n of Kafka's access rules on
            the cluster; -2147483648 when not asked for.
    """

    NAME: ClassVar[str] = "DescribeClusterResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 60
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    endpoint_type: int = 1
    cluster_id: str = ""
    controller_id: int = -1
    brokers: list[DescribeClusterBroker] = Factory(list)
    cluster_authorized_operations: int = -2147483648


# DescribeClusterBroker in versions 0–1
def read_describe_cluster_broker_v0(data: Buffer, at: int, size: int) -> tuple[DescribeClusterBroker, int]:
    message = new(DescribeClusterBroker)
    message.is_fenced = False
    message.unknown_tags = ()
    message.broker_id, length = unpack_i4_u1(data, at)
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


def write_describe_cluster_broker_v0(message: DescribeClusterBroker, add: Add) -> None:
    if message.is_fenced:
        raise Unwritable("is_fenced")
    add(pack_i4(message.broker_id))
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


# DescribeClusterResponse in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[DescribeClusterResponse, int]:
    message = new(DescribeClusterResponse)
    message.endpoint_type = 1
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
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("cluster_id")
    message.cluster_id = str(data[at:end], "utf-8")
    at = end
    message.controller_id, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 11 <= size - at:
        raise Malformed("brokers")
    brokers: list[DescribeClusterBroker] = []
    for _ in range(count):
        broker, at = read_describe_cluster_broker_v0(data, at, size)
        brokers.append(broker)
    message.brokers = brokers
    message.cluster_authorized_operations, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: DescribeClusterResponse, add: Add) -> None:
    if message.endpoint_type != 1:
        raise Unwritable("endpoint_type")
    add(pack_i4_i2(message.throttle_time_ms, message.error_code))
    error_message = message.error_message
    if error_message is None:
        add(b"\x00")
    else:
        error_message_bytes = error_message.encode()
        add(compact_string_length[len(error_message_bytes)])
        add(error_message_bytes)
    cluster_id = message.cluster_id.encode()
    add(compact_string_length[len(cluster_id)])
    add(cluster_id)
    add(pack_i4(message.controller_id))
    brokers = message.brokers
    add(compact_length[len(brokers)])
    for broker in brokers:
        write_describe_cluster_broker_v0(broker, add)
    add(pack_i4(message.cluster_authorized_operations))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeClusterResponse in version 1
def read_v1(data: Buffer, at: int, size: int) -> tuple[DescribeClusterResponse, int]:
    message = new(DescribeClusterResponse)
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
    message.endpoint_type, length = unpack_i1_u1(data, at)
    at += 2
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("cluster_id")
    message.cluster_id = str(data[at:end], "utf-8")
    at = end
    message.controller_id, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 11 <= size - at:
        raise Malformed("brokers")
    brokers: list[DescribeClusterBroker] = []
    for _ in range(count):
        broker, at = read_describe_cluster_broker_v0(data, at, size)
        brokers.append(broker)
    message.brokers = brokers
    message.cluster_authorized_operations, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v1(message: DescribeClusterResponse, add: Add) -> None:
    add(pack_i4_i2(message.throttle_time_ms, message.error_code))
    error_message = message.error_message
    if error_message is None:
        add(b"\x00")
    else:
        error_message_bytes = error_message.encode()
        add(compact_string_length[len(error_message_bytes)])
        add(error_message_bytes)
    add(pack_i1(message.endpoint_type))
    cluster_id = message.cluster_id.encode()
    add(compact_string_length[len(cluster_id)])
    add(cluster_id)
    add(pack_i4(message.controller_id))
    brokers = message.brokers
    add(compact_length[len(brokers)])
    for broker in brokers:
        write_describe_cluster_broker_v0(broker, add)
    add(pack_i4(message.cluster_authorized_operations))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeClusterBroker in version 2
def read_describe_cluster_broker_v2(data: Buffer, at: int, size: int) -> tuple[DescribeClusterBroker, int]:
    message = new(DescribeClusterBroker)
    message.unknown_tags = ()
    message.broker_id, length = unpack_i4_u1(data, at)
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
    message.is_fenced, tags = unpack_bool_u1(data, at)
    at += 2
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_describe_cluster_broker_v2(message: DescribeClusterBroker, add: Add) -> None:
    add(pack_i4(message.broker_id))
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
    add(pack_bool(message.is_fenced))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeClusterResponse in version 2
def read_v2(data: Buffer, at: int, size: int) -> tuple[DescribeClusterResponse, int]:
    message = new(DescribeClusterResponse)
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
    message.endpoint_type, length = unpack_i1_u1(data, at)
    at += 2
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("cluster_id")
    message.cluster_id = str(data[at:end], "utf-8")
    at = end
    message.controller_id, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 12 <= size - at:
        raise Malformed("brokers")
    brokers: list[DescribeClusterBroker] = []
    for _ in range(count):
        broker, at = read_describe_cluster_broker_v2(data, at, size)
        brokers.append(broker)
    message.brokers = brokers
    message.cluster_authorized_operations, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v2(message: DescribeClusterResponse, add: Add) -> None:
    add(pack_i4_i2(message.throttle_time_ms, message.error_code))
    error_message = message.error_message
    if error_message is None:
        add(b"\x00")
    else:
        error_message_bytes = error_message.encode()
        add(compact_string_length[len(error_message_bytes)])
        add(error_message_bytes)
    add(pack_i1(message.endpoint_type))
    cluster_id = message.cluster_id.encode()
    add(compact_string_length[len(cluster_id)])
    add(cluster_id)
    add(pack_i4(message.controller_id))
    brokers = message.brokers
    add(compact_length[len(brokers)])
    for broker in brokers:
        write_describe_cluster_broker_v2(broker, add)
    add(pack_i4(message.cluster_authorized_operations))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[DescribeClusterResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v2, write_v2),
}

# what JSON and error messages know of the fields
DescribeClusterBroker.FIELDS = (
    Field("broker_id", "brokerId", "int32", (0, 2)),
    Field("host", "host", "string", (0, 2)),
    Field("port", "port", "int32", (0, 2)),
    Field("rack", "rack", "string", (0, 2), nullable=(0, 2)),
    Field("is_fenced", "isFenced", "bool", (2, 2)),
)
DescribeClusterResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (0, 2)),
    Field("error_code", "errorCode", "int16", (0, 2)),
    Field("error_message", "errorMessage", "string", (0, 2), nullable=(0, 2)),
    Field("endpoint_type", "endpointType", "int8", (1, 2)),
    Field("cluster_id", "clusterId", "string", (0, 2)),
    Field("controller_id", "controllerId", "int32", (0, 2)),
    Field("brokers", "brokers", "[]DescribeClusterBroker", (0, 2), struct=DescribeClusterBroker),
    Field("cluster_authorized_operations", "clusterAuthorizedOperations", "int32", (0, 2)),
)
