"""SaslAuthenticateRequest, versions 0–2: its classes, and one read and write pair per layout.

Generated from schemas/SaslAuthenticateRequest.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import define, field

from kclient.protocol.message import Field, Message, hidden
from kclient.protocol.primitives import (
    BYTES,
    Add,
    Buffer,
    Codec,
    Malformed,
    Unwritable,
    compact_length,
    left_over,
    new,
    read_tags,
    read_uvarint,
    write_tags,
)

pack_i4: Final = struct.Struct(">i").pack
unpack_i4: Final = struct.Struct(">i").unpack_from


@define(weakref_slot=False)
class SaslAuthenticateRequest(Message):
    """Carries one token of the SASL exchange; sent until the mechanism is done.

    Attributes:
        auth_bytes: The client's token, whose form the mechanism defines. Never to be logged.
    """

    NAME: ClassVar[str] = "SaslAuthenticateRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 36
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_SINCE: ClassVar[int | None] = 2

    auth_bytes: bytes = field(default=b"", repr=hidden)


# SaslAuthenticateRequest in versions 0–1
def read_v0(data: Buffer, at: int, size: int) -> tuple[SaslAuthenticateRequest, int]:
    message = new(SaslAuthenticateRequest)
    message.unknown_tags = ()
    (length,) = unpack_i4(data, at)
    at += 4
    end = at + length
    if not at <= end <= size:
        raise Malformed("auth_bytes")
    message.auth_bytes = bytes(data[at:end])
    at = end
    return message, at


def write_v0(message: SaslAuthenticateRequest, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    auth_bytes = message.auth_bytes
    add(pack_i4(len(auth_bytes)))
    if not isinstance(auth_bytes, BYTES):
        raise Unwritable("auth_bytes")
    add(auth_bytes)


# SaslAuthenticateRequest in version 2
def read_v2(data: Buffer, at: int, size: int) -> tuple[SaslAuthenticateRequest, int]:
    message = new(SaslAuthenticateRequest)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_uvarint(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("auth_bytes")
    message.auth_bytes = bytes(data[at:end])
    at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v2(message: SaslAuthenticateRequest, add: Add) -> None:
    auth_bytes = message.auth_bytes
    add(compact_length[len(auth_bytes)])
    if not isinstance(auth_bytes, BYTES):
        raise Unwritable("auth_bytes")
    add(auth_bytes)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[SaslAuthenticateRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v2, write_v2),
}

# what JSON and error messages know of the fields
SaslAuthenticateRequest.FIELDS = (Field("auth_bytes", "authBytes", "bytes", (0, 2)),)
