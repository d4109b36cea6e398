"""HeartbeatResponse, versions 0–4: its classes, and one read and write pair per layout.

Generated from schemas/HeartbeatResponse.json by `python -m codegen`; edits here are lost.
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
    Unwritable,
    left_over,
    new,
    read_tags,
    write_tags,
)

pack_i2: Final = struct.Struct(">h").pack
pack_i4_i2: Final = struct.Struct(">ih").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4_i2: Final = struct.Struct(">ih").unpack_from
unpack_i4_i2_u1: Final = struct.Struct(">ihB").unpack_from


@define(weakref_slot=False)
class HeartbeatResponse(Message):
    """Confirms a heartbeat, or says that the member must rejoin or has been thrown out.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Since version 2 the answer is immediate and
            the client must stay silent that long; before, the broker had already held the answer back.
        error_code: 0 all is well; REBALANCE_IN_PROGRESS (27) join again; UNKNOWN_MEMBER_ID (25) or
            ILLEGAL_GENERATION (22) membership lost; FENCED_INSTANCE_ID (82) give up.
    """

    NAME: ClassVar[str] = "HeartbeatResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 12
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_SINCE: ClassVar[int | None] = 4

    throttle_time_ms: int = 0
    error_code: int = 0


# HeartbeatResponse in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[HeartbeatResponse, int]:
    message = new(HeartbeatResponse)
    message.throttle_time_ms = 0
    message.unknown_tags = ()
    (message.error_code,) = unpack_i2(data, at)
    at += 2
    return message, at


def write_v0(message: HeartbeatResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i2(message.error_code))


# HeartbeatResponse in versions 1–3
def read_v1(data: Buffer, at: int, size: int) -> tuple[HeartbeatResponse, int]:
    message = new(HeartbeatResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code = unpack_i4_i2(data, at)
    at += 6
    return message, at


def write_v1(message: HeartbeatResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4_i2(message.throttle_time_ms, message.error_code))


# HeartbeatResponse in version 4
def read_v4(data: Buffer, at: int, size: int) -> tuple[HeartbeatResponse, int]:
    message = new(HeartbeatResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, tags = unpack_i4_i2_u1(data, at)
    at += 7
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v4(message: HeartbeatResponse, add: Add) -> None:
    add(pack_i4_i2(message.throttle_time_ms, message.error_code))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[HeartbeatResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v1, write_v1),
    3: (read_v1, write_v1),
    4: (read_v4, write_v4),
}

# what JSON and error messages know of the fields
HeartbeatResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (1, 4), ignorable=True),
    Field("error_code", "errorCode", "int16", (0, 4)),
)
