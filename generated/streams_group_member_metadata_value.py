"""StreamsGroupMemberMetadataValue, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/StreamsGroupMemberMetadataValue.json by `python -m codegen`; edits here are lost.
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
    compact_length,
    compact_string_length,
    left_over,
    new,
    read_string_length,
    read_tags,
    read_uvarint,
    write_tags,
)

pack_i4x2: Final = struct.Struct(">ii").pack
pack_u2: Final = struct.Struct(">H").pack
unpack_i1: Final = struct.Struct(">b").unpack_from
unpack_i4x2_u1: Final = struct.Struct(">iiB").unpack_from
unpack_u2_u1: Final = struct.Struct(">HB").unpack_from


@define(weakref_slot=False)
class Endpoint(Struct):
    """An address that the application itself listens on.

    Attributes:
        host: Name or address of the instance.
        port: TCP port of the instance.
    """

    host: str = ""
    port: int = 0


@define(weakref_slot=False)
class KeyValue(Struct):
    """One label of a process.

    Attributes:
        key: Name of the label, for instance zone.
        value: Value of the label for this process.
    """

    key: str = ""
    value: str = ""


@define(weakref_slot=False)
class StreamsGroupMemberMetadataValue(Message):
    """What a member of a streams group has told about itself in its heartbeats.

    Attributes:
        instance_id: The static name of the member; null for a dynamic one.
        rack_id: The rack of the member; null when not told.
        client_id: The client.id of the member's connection.
        client_host: Address the member connected from.
        rebalance_timeout_ms: Milliseconds the member may take to give up revoked tasks before it is fenced;
            -1 when not told.
        topology_epoch: Epoch of the topology the member runs; one behind the group's marks a member that has
            yet to be upgraded.
        process_id: Which process the member runs in, so that tasks are balanced over processes.
        user_endpoint: Where other instances can query the member's state stores; null when it offers no such
            endpoint.
        client_tags: Labels of the process, by which standby tasks are spread.
    """

    NAME: ClassVar[str] = "StreamsGroupMemberMetadataValue"
    TYPE: ClassVar[str] = "coordinator-value"
    API_KEY: ClassVar[int | None] = 19
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    instance_id: str | None = ""
    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = Factory(list)


# Endpoint in version 0
def read_endpoint_v0(data: Buffer, at: int, size: int) -> tuple[Endpoint, int]:
    message = new(Endpoint)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("host")
    message.host = str(data[at:end], "utf-8")
    at = end
    message.port, tags = unpack_u2_u1(data, at)
    at += 3
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_endpoint_v0(message: Endpoint, add: Add) -> None:
    host = message.host.encode()
    add(compact_string_length[len(host)])
    add(host)
    add(pack_u2(message.port))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# KeyValue in version 0
def read_key_value_v0(data: Buffer, at: int, size: int) -> tuple[KeyValue, int]:
    message = new(KeyValue)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("key")
    message.key = str(data[at:end], "utf-8")
    at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("value")
    message.value = str(data[at:end], "utf-8")
    at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_key_value_v0(message: KeyValue, add: Add) -> None:
    key = message.key.encode()
    add(compact_string_length[len(key)])
    add(key)
    value_ = message.value.encode()
    add(compact_string_length[len(value_)])
    add(value_)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# StreamsGroupMemberMetadataValue in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[StreamsGroupMemberMetadataValue, int]:
    message = new(StreamsGroupMemberMetadataValue)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.instance_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("instance_id")
        message.instance_id = str(data[at:end], "utf-8")
        at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.rack_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("rack_id")
        message.rack_id = str(data[at:end], "utf-8")
        at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("client_id")
    message.client_id = str(data[at:end], "utf-8")
    at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("client_host")
    message.client_host = str(data[at:end], "utf-8")
    at = end
    message.rebalance_timeout_ms, message.topology_epoch, length = unpack_i4x2_u1(data, at)
    at += 9
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("process_id")
    message.process_id = str(data[at:end], "utf-8")
    at = end
    (present,) = unpack_i1(data, at)
    at += 1
    if present < 0:
        message.user_endpoint = None
    else:
        message.user_endpoint, at = read_endpoint_v0(data, at, size)
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("client_tags")
    client_tags: list[KeyValue] = []
    for _ in range(count):
        client_tag, at = read_key_value_v0(data, at, size)
        client_tags.append(client_tag)
    message.client_tags = client_tags
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: StreamsGroupMemberMetadataValue, add: Add) -> None:
    instance_id = message.instance_id
    if instance_id is None:
        add(b"\x00")
    else:
        instance_id_bytes = instance_id.encode()
        add(compact_string_length[len(instance_id_bytes)])
        add(instance_id_bytes)
    rack_id = message.rack_id
    if rack_id is None:
        add(b"\x00")
    else:
        rack_id_bytes = rack_id.encode()
        add(compact_string_length[len(rack_id_bytes)])
        add(rack_id_bytes)
    client_id = message.client_id.encode()
    add(compact_string_length[len(client_id)])
    add(client_id)
    client_host = message.client_host.encode()
    add(compact_string_length[len(client_host)])
    add(client_host)
    add(pack_i4x2(message.rebalance_timeout_ms, message.topology_epoch))
    process_id = message.process_id.encode()
    add(compact_string_length[len(process_id)])
    add(process_id)
    user_endpoint = message.user_endpoint
    if user_endpoint is None:
        add(b"\xff")
    else:
        add(b"\x01")
        write_endpoint_v0(user_endpoint, add)
    client_tags = message.client_tags
    add(compact_length[len(client_tags)])
    for client_tag in client_tags:
        write_key_value_v0(client_tag, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[StreamsGroupMemberMetadataValue]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
Endpoint.FIELDS = (
    Field("host", "host", "string", (0, 0)),
    Field("port", "port", "uint16", (0, 0)),
)
KeyValue.FIELDS = (
    Field("key", "key", "string", (0, 0)),
    Field("value", "value", "string", (0, 0)),
)
StreamsGroupMemberMetadataValue.FIELDS = (
    Field("instance_id", "instanceId", "string", (0, 0), nullable=(0, 0)),
    Field("rack_id", "rackId", "string", (0, 0), nullable=(0, 0)),
    Field("client_id", "clientId", "string", (0, 0)),
    Field("client_host", "clientHost", "string", (0, 0)),
    Field("rebalance_timeout_ms", "rebalanceTimeoutMs", "int32", (0, 0)),
    Field("topology_epoch", "topologyEpoch", "int32", (0, 0)),
    Field("process_id", "processId", "string", (0, 0)),
    Field("user_endpoint", "userEndpoint", "Endpoint", (0, 0), nullable=(0, 0), struct=Endpoint),
    Field("client_tags", "clientTags", "[]KeyValue", (0, 0), struct=KeyValue),
)
