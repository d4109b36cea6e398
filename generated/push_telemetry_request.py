"""PushTelemetryRequest, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/PushTelemetryRequest.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import define

from kclient.protocol.message import Field, Message
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
    left_over,
    new,
    read_tags,
    read_uvarint,
    write_tags,
)

pack_uuid_i4_bool_i1: Final = struct.Struct(">16si?b").pack
unpack_uuid_i4_bool_i1_u1: Final = struct.Struct(">16si?bB").unpack_from


@define(weakref_slot=False)
class PushTelemetryRequest(Message):
    """Hands the broker the metrics it subscribed to (KIP-714).

    Attributes:
        client_instance_id: The id of this client instance from GetTelemetrySubscriptions.
        subscription_id: The subscription that these metrics answer.
        terminating: True for the last push of a client that is closing, which may come before its time.
        compression_type: How Metrics is compressed: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
        metrics: Metrics in OpenTelemetry's protobuf form, version 1, compressed as said.
    """

    NAME: ClassVar[str] = "PushTelemetryRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 72
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    client_instance_id: Uuid = ZERO_UUID
    subscription_id: int = 0
    terminating: bool = False
    compression_type: int = 0
    metrics: bytes = b""


# PushTelemetryRequest in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[PushTelemetryRequest, int]:
    message = new(PushTelemetryRequest)
    message.unknown_tags = ()
    (
        message.client_instance_id,
        message.subscription_id,
        message.terminating,
        message.compression_type,
        length,
    ) = unpack_uuid_i4_bool_i1_u1(data, at)
    at += 23
    if length > 127:
        length, at = read_uvarint(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("metrics")
    message.metrics = bytes(data[at:end])
    at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: PushTelemetryRequest, add: Add) -> None:
    if len(message.client_instance_id) != 16:
        raise Unwritable("client_instance_id")
    add(
        pack_uuid_i4_bool_i1(
            message.client_instance_id,
            message.subscription_id,
            message.terminating,
            message.compression_type,
        )
    )
    metrics = message.metrics
    add(compact_length[len(metrics)])
    if not isinstance(metrics, BYTES):
        raise Unwritable("metrics")
    add(metrics)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[PushTelemetryRequest]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
PushTelemetryRequest.FIELDS = (
    Field("client_instance_id", "clientInstanceId", "uuid", (0, 0)),
    Field("subscription_id", "subscriptionId", "int32", (0, 0)),
    Field("terminating", "terminating", "bool", (0, 0)),
    Field("compression_type", "compressionType", "int8", (0, 0)),
    Field("metrics", "metrics", "bytes", (0, 0)),
)
