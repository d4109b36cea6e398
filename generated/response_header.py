"""ResponseHeader, versions 0–1: its classes, and one read and write pair per layout.

Generated from schemas/ResponseHeader.json by `python -m codegen`; edits here are lost.
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

pack_i4: Final = struct.Struct(">i").pack
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from


@define(weakref_slot=False)
class ResponseHeader(Message):
    """Stands in front of every response body: version 1 for flexible ones, 0 for the others and always for
    ApiVersions.

    Attributes:
        correlation_id: The number of the request that this answers; any other than the oldest one in flight
            is a protocol violation.
    """

    NAME: ClassVar[str] = "ResponseHeader"
    TYPE: ClassVar[str] = "header"
    API_KEY: ClassVar[int | None] = None
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_SINCE: ClassVar[int | None] = 1

    correlation_id: int = 0


# ResponseHeader in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[ResponseHeader, int]:
    message = new(ResponseHeader)
    message.unknown_tags = ()
    (message.correlation_id,) = unpack_i4(data, at)
    at += 4
    return message, at


def write_v0(message: ResponseHeader, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4(message.correlation_id))


# ResponseHeader in version 1
def read_v1(data: Buffer, at: int, size: int) -> tuple[ResponseHeader, int]:
    message = new(ResponseHeader)
    message.unknown_tags = ()
    message.correlation_id, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v1(message: ResponseHeader, add: Add) -> None:
    add(pack_i4(message.correlation_id))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ResponseHeader]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
}

# what JSON and error messages know of the fields
ResponseHeader.FIELDS = (Field("correlation_id", "correlationId", "int32", (0, 1)),)
