"""PushTelemetryResponse, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/PushTelemetryResponse.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import define

from kclient.protocol.message import Field, Message
from kclient.protocol.primitives import (
    Add,
    Buffer,
    Codec,
    left_over,
    new,
    read_tags,
    write_tags,
)

pack_i4_i2: Final = struct.Struct(">ih").pack
unpack_i4_i2_u1: Final = struct.Struct(">ihB").unpack_from


@define(weakref_slot=False)
class PushTelemetryResponse(Message):
    """Says whether the broker took the metrics.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Informative: this API never obliges the
            client to stay silent.
        error_code: 0; UNKNOWN_SUBSCRIPTION_ID (117) asks for a new subscription, THROTTLING_QUOTA_EXCEEDED
            (89) for more patience.
    """

    NAME: ClassVar[str] = "PushTelemetryResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 72
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    throttle_time_ms: int = 0
    error_code: int = 0


# PushTelemetryResponse in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[PushTelemetryResponse, int]:
    message = new(PushTelemetryResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, tags = unpack_i4_i2_u1(data, at)
    at += 7
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: PushTelemetryResponse, add: Add) -> None:
    add(pack_i4_i2(message.throttle_time_ms, message.error_code))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[PushTelemetryResponse]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
PushTelemetryResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (0, 0)),
    Field("error_code", "errorCode", "int16", (0, 0)),
)
