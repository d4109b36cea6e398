"""ConsumerGroupMemberMetadataValue, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/ConsumerGroupMemberMetadataValue.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import Factory, define

from kclient.protocol.message import Field, Message, Struct
from kclient.protocol.primitives import (
    BYTES,
    Add,
    Buffer,
    Codec,
    Malformed,
    Unwritable,
    compact_length,
    compact_string_length,
    left_over,
    new,
    read_compact_strings,
    read_string_length,
    read_tags,
    read_uvarint,
    read_whole,
    write_tags,
    written,
)

pack_i4: Final = struct.Struct(">i").pack
unpack_i1: Final = struct.Struct(">b").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from


@define(weakref_slot=False)
class ClassicProtocol(Struct):
    """The assignors the classic member named when it joined, in its order of preference.

    Attributes:
        name: The assignor's name, for instance range.
        metadata: Its subscription for that assignor: a ConsumerProtocolSubscription with its version in
            front.
    """

    name: str = ""
    metadata: bytes = b""


@define(weakref_slot=False)
class ClassicMemberMetadata(Struct):
    """Set when the member speaks the classic protocol while the group is being upgraded or downgraded; null
    otherwise.

    Attributes:
        session_timeout_ms: Milliseconds without a heartbeat after which that classic member is dead.
        supported_protocols: The assignors the classic member named when it joined, in its order of
            preference.
    """

    session_timeout_ms: int = 0
    supported_protocols: list[ClassicProtocol] = Factory(list)


@define(weakref_slot=False)
class ConsumerGroupMemberMetadataValue(Message):
    """What a member of a consumer-protocol group has told about itself in its heartbeats.

    Attributes:
        instance_id: The static name of the member; null for a dynamic one.
        rack_id: The rack of the member, for rack-aware assignment; null when not told.
        client_id: The client.id of the member's connection.
        client_host: Address the member connected from.
        subscribed_topic_names: The topics the member subscribes to by name; empty when it uses a pattern
            only.
        subscribed_topic_regex: The RE2J pattern the member subscribes with, resolved by the broker; null or
            empty for none.
        rebalance_timeout_ms: Milliseconds the member may take to give up revoked partitions before it is
            fenced; -1 when not told.
        server_assignor: The broker-side assignor the member asks for, for instance uniform; null to leave the
            choice to the group.
        classic_member_metadata: Set when the member speaks the classic protocol while the group is being
            upgraded or downgraded; null otherwise.
    """

    NAME: ClassVar[str] = "ConsumerGroupMemberMetadataValue"
    TYPE: ClassVar[str] = "coordinator-value"
    API_KEY: ClassVar[int | None] = 5
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    instance_id: str | None = ""
    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = Factory(list)
    subscribed_topic_regex: str | None = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = ""
    classic_member_metadata: ClassicMemberMetadata | None = Factory(ClassicMemberMetadata)


# ClassicProtocol in version 0
def read_classic_protocol_v0(data: Buffer, at: int, size: int) -> tuple[ClassicProtocol, int]:
    message = new(ClassicProtocol)
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
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_uvarint(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("metadata")
    message.metadata = bytes(data[at:end])
    at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_classic_protocol_v0(message: ClassicProtocol, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    metadata = message.metadata
    add(compact_length[len(metadata)])
    if not isinstance(metadata, BYTES):
        raise Unwritable("metadata")
    add(metadata)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ClassicMemberMetadata in version 0
def read_classic_member_metadata_v0(data: Buffer, at: int, size: int) -> tuple[ClassicMemberMetadata, int]:
    message = new(ClassicMemberMetadata)
    message.unknown_tags = ()
    message.session_timeout_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("supported_protocols")
    supported_protocols: list[ClassicProtocol] = []
    for _ in range(count):
        supported_protocol, at = read_classic_protocol_v0(data, at, size)
        supported_protocols.append(supported_protocol)
    message.supported_protocols = supported_protocols
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_classic_member_metadata_v0(message: ClassicMemberMetadata, add: Add) -> None:
    add(pack_i4(message.session_timeout_ms))
    supported_protocols = message.supported_protocols
    add(compact_length[len(supported_protocols)])
    for supported_protocol in supported_protocols:
        write_classic_protocol_v0(supported_protocol, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


def read_classic_member_metadata_tag_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[ClassicMemberMetadata | None, int]:
    value: ClassicMemberMetadata | None
    (present,) = unpack_i1(data, at)
    at += 1
    if present == 0:
        value = None
    else:
        value, at = read_classic_member_metadata_v0(data, at, size)
    return value, at


def write_classic_member_metadata_tag_v0(value: ClassicMemberMetadata | None, add: Add) -> None:
    classic_member_metadata = value
    if classic_member_metadata is None:
        add(b"\x00")
    else:
        add(b"\x01")
        write_classic_member_metadata_v0(classic_member_metadata, add)


# ConsumerGroupMemberMetadataValue in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[ConsumerGroupMemberMetadataValue, int]:
    message = new(ConsumerGroupMemberMetadataValue)
    message.classic_member_metadata = ClassicMemberMetadata()
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
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count <= size - at:
        raise Malformed("subscribed_topic_names")
    message.subscribed_topic_names, at = read_compact_strings(count, data, at, size)
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.subscribed_topic_regex = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("subscribed_topic_regex")
        message.subscribed_topic_regex = str(data[at:end], "utf-8")
        at = end
    message.rebalance_timeout_ms, length = unpack_i4_u1(data, at)
    at += 5
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.server_assignor = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("server_assignor")
        message.server_assignor = str(data[at:end], "utf-8")
        at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        if 0 in found:
            message.classic_member_metadata = read_whole(read_classic_member_metadata_tag_v0, found.pop(0))
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: ConsumerGroupMemberMetadataValue, add: Add) -> None:
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
    subscribed_topic_names = message.subscribed_topic_names
    add(compact_length[len(subscribed_topic_names)])
    for subscribed_topic_name in subscribed_topic_names:
        subscribed_topic_name_bytes = subscribed_topic_name.encode()
        add(compact_string_length[len(subscribed_topic_name_bytes)])
        add(subscribed_topic_name_bytes)
    subscribed_topic_regex = message.subscribed_topic_regex
    if subscribed_topic_regex is None:
        add(b"\x00")
    else:
        subscribed_topic_regex_bytes = subscribed_topic_regex.encode()
        add(compact_string_length[len(subscribed_topic_regex_bytes)])
        add(subscribed_topic_regex_bytes)
    add(pack_i4(message.rebalance_timeout_ms))
    server_assignor = message.server_assignor
    if server_assignor is None:
        add(b"\x00")
    else:
        server_assignor_bytes = server_assignor.encode()
        add(compact_string_length[len(server_assignor_bytes)])
        add(server_assignor_bytes)
    tags: dict[int, bytes] = {}
    if message.classic_member_metadata != ClassicMemberMetadata():
        tags[0] = written(write_classic_member_metadata_tag_v0, message.classic_member_metadata)
    if tags or message.unknown_tags:
        write_tags((0,), tags, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ConsumerGroupMemberMetadataValue]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
ClassicProtocol.FIELDS = (
    Field("name", "name", "string", (0, 0)),
    Field("metadata", "metadata", "bytes", (0, 0)),
)
ClassicMemberMetadata.FIELDS = (
    Field("session_timeout_ms", "sessionTimeoutMs", "int32", (0, 0)),
    Field("supported_protocols", "supportedProtocols", "[]ClassicProtocol", (0, 0), struct=ClassicProtocol),
)
ConsumerGroupMemberMetadataValue.FIELDS = (
    Field("instance_id", "instanceId", "string", (0, 0), nullable=(0, 0)),
    Field("rack_id", "rackId", "string", (0, 0), nullable=(0, 0)),
    Field("client_id", "clientId", "string", (0, 0)),
    Field("client_host", "clientHost", "string", (0, 0)),
    Field("subscribed_topic_names", "subscribedTopicNames", "[]string", (0, 0)),
    Field("subscribed_topic_regex", "subscribedTopicRegex", "string", (0, 0), nullable=(0, 0)),
    Field("rebalance_timeout_ms", "rebalanceTimeoutMs", "int32", (0, 0)),
    Field("server_assignor", "serverAssignor", "string", (0, 0), nullable=(0, 0)),
    Field(
        "classic_member_metadata",
        "classicMemberMetadata",
        "ClassicMemberMetadata",
        (0, 0),
        nullable=(0, 0),
        tagged=(0, 0),
        tag=0,
        struct=ClassicMemberMetadata,
    ),
)
