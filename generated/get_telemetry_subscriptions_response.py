"""GetTelemetrySubscriptionsResponse, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/GetTelemetrySubscriptionsResponse.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import Factory, define

from kclient.protocol.message import Field, Message
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
    int8_array,
    left_over,
    new,
    read_compact_strings,
    read_tags,
    read_uvarint,
    write_tags,
)

pack_i4_i2_uuid_i4: Final = struct.Struct(">ih16si").pack
pack_i4x2_bool: Final = struct.Struct(">ii?").pack
unpack_i4_i2_uuid_i4_u1: Final = struct.Struct(">ih16siB").unpack_from
unpack_i4x2_bool_u1: Final = struct.Struct(">ii?B").unpack_from


@define(weakref_slot=False)
class GetTelemetrySubscriptionsResponse(Message):
    """Which metrics to push, in what form and how often.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Informative: this API never obliges the
            client to stay silent.
        error_code: 0, or why there is no subscription.
        client_instance_id: The id of this client instance, new at the first call, to be sent from now on.
        subscription_id: Which subscription the metrics answer to; a push under another one is refused, and
            asks for a new subscription.
        accepted_compression_types: Codecs for the pushed metrics in the broker's order of preference: 0 none,
            1 gzip, 2 snappy, 3 lz4, 4 zstd.
        push_interval_ms: Milliseconds between two pushes.
        telemetry_max_bytes: Largest push the broker takes, in bytes.
        delta_temporality: True for counters since the last push, false for counters since the start.
        requested_metrics: Prefixes of the metric names wanted; none for no metrics, one empty prefix for all.
    """

    NAME: ClassVar[str] = "GetTelemetrySubscriptionsResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 71
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    throttle_time_ms: int = 0
    error_code: int = 0
    client_instance_id: Uuid = ZERO_UUID
    subscription_id: int = 0
    accepted_compression_types: list[int] = Factory(list)
    push_interval_ms: int = 0
    telemetry_max_bytes: int = 0
    delta_temporality: bool = False
    requested_metrics: list[str] = Factory(list)


# GetTelemetrySubscriptionsResponse in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[GetTelemetrySubscriptionsResponse, int]:
    message = new(GetTelemetrySubscriptionsResponse)
    message.unknown_tags = ()
    (
        message.throttle_time_ms,
        message.error_code,
        message.client_instance_id,
        message.subscription_id,
        count,
    ) = unpack_i4_i2_uuid_i4_u1(data, at)
    at += 27
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count <= size - at:
        raise Malformed("accepted_compression_types")
    message.accepted_compression_types = list(int8_array[count].unpack_from(data, at))
    at += count
    (
        message.push_interval_ms,
        message.telemetry_max_bytes,
        message.delta_temporality,
        count,
    ) = unpack_i4x2_bool_u1(data, at)
    at += 10
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count <= size - at:
        raise Malformed("requested_metrics")
    message.requested_metrics, at = read_compact_strings(count, data, at, size)
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: GetTelemetrySubscriptionsResponse, add: Add) -> None:
    if len(message.client_instance_id) != 16:
        raise Unwritable("client_instance_id")
    add(
        pack_i4_i2_uuid_i4(
            message.throttle_time_ms,
            message.error_code,
            message.client_instance_id,
            message.subscription_id,
        )
    )
    accepted_compression_types = message.accepted_compression_types
    add(compact_length[len(accepted_compression_types)])
    add(int8_array[len(accepted_compression_types)].pack(*accepted_compression_types))
    add(pack_i4x2_bool(message.push_interval_ms, message.telemetry_max_bytes, message.delta_temporality))
    requested_metrics = message.requested_metrics
    add(compact_length[len(requested_metrics)])
    for requested_metric in requested_metrics:
        requested_metric_bytes = requested_metric.encode()
        add(compact_string_length[len(requested_metric_bytes)])
        add(requested_metric_bytes)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[GetTelemetrySubscriptionsResponse]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
GetTelemetrySubscriptionsResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (0, 0)),
    Field("error_code", "errorCode", "int16", (0, 0)),
    Field("client_instance_id", "clientInstanceId", "uuid", (0, 0)),
    Field("subscription_id", "subscriptionId", "int32", (0, 0)),
    Field("accepted_compression_types", "acceptedCompressionTypes", "[]int8", (0, 0)),
    Field("push_interval_ms", "pushIntervalMs", "int32", (0, 0)),
    Field("telemetry_max_bytes", "telemetryMaxBytes", "int32", (0, 0)),
    Field("delta_temporality", "deltaTemporality", "bool", (0, 0)),
    Field("requested_metrics", "requestedMetrics", "[]string", (0, 0)),
)
