"""SaslAuthenticateResponse, versions 0–2: its classes, and one read and write pair per layout.

Generated from schemas/SaslAuthenticateResponse.json by `python -m codegen`; edits here are lost.
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
pack_i8: Final = struct.Struct(">q").pack
unpack_i2_u1: Final = struct.Struct(">hB").unpack_from
unpack_i2x2: Final = struct.Struct(">hh").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i8: Final = struct.Struct(">q").unpack_from
unpack_i8_u1: Final = struct.Struct(">qB").unpack_from


@define(weakref_slot=False)
class SaslAuthenticateResponse(Message):
    """Carries the broker's token back, or ends the exchange.

    Attributes:
        error_code: 0; SASL_AUTHENTICATION_FAILED (58) is final, and another try with the same credentials is
            useless.
        error_message: Why authentication failed, for people; null when it did not.
        auth_bytes: The broker's token, whose form the mechanism defines.
        session_lifetime_ms: Milliseconds after which the broker closes the connection unless it has
            authenticated anew; 0 for no limit.
    """

    NAME: ClassVar[str] = "SaslAuthenticateResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 36
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_SINCE: ClassVar[int | None] = 2

    error_code: int = 0
    error_message: str | None = ""
    auth_bytes: bytes = field(default=b"", repr=hidden)
    session_lifetime_ms: int = 0


# SaslAuthenticateResponse in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[SaslAuthenticateResponse, int]:
    message = new(SaslAuthenticateResponse)
    message.session_lifetime_ms = 0
    message.unknown_tags = ()
    message.error_code, length = unpack_i2x2(data, at)
    at += 4
    if length == -1:
        message.error_message = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("error_message")
        message.error_message = str(data[at:end], "utf-8")
        at = end
    (length,) = unpack_i4(data, at)
    at += 4
    end = at + length
    if not at <= end <= size:
        raise Malformed("auth_bytes")
    message.auth_bytes = bytes(data[at:end])
    at = end
    return message, at


def write_v0(message: SaslAuthenticateResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i2(message.error_code))
    error_message = message.error_message
    if error_message is None:
        add(b"\xff\xff")
    else:
        error_message_bytes = error_message.encode()
        add(pack_i2(len(error_message_bytes)))
        add(error_message_bytes)
    auth_bytes = message.auth_bytes
    add(pack_i4(len(auth_bytes)))
    if not isinstance(auth_bytes, BYTES):
        raise Unwritable("auth_bytes")
    add(auth_bytes)


# SaslAuthenticateResponse in version 1
def read_v1(data: Buffer, at: int, size: int) -> tuple[SaslAuthenticateResponse, int]:
    message = new(SaslAuthenticateResponse)
    message.unknown_tags = ()
    message.error_code, length = unpack_i2x2(data, at)
    at += 4
    if length == -1:
        message.error_message = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("error_message")
        message.error_message = str(data[at:end], "utf-8")
        at = end
    (length,) = unpack_i4(data, at)
    at += 4
    end = at + length
    if not at <= end <= size:
        raise Malformed("auth_bytes")
    message.auth_bytes = bytes(data[at:end])
    at = end
    (message.session_lifetime_ms,) = unpack_i8(data, at)
    at += 8
    return message, at


def write_v1(message: SaslAuthenticateResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i2(message.error_code))
    error_message = message.error_message
    if error_message is None:
        add(b"\xff\xff")
    else:
        error_message_bytes = error_message.encode()
        add(pack_i2(len(error_message_bytes)))
        add(error_message_bytes)
    auth_bytes = message.auth_bytes
    add(pack_i4(len(auth_bytes)))
    if not isinstance(auth_bytes, BYTES):
        raise Unwritable("auth_bytes")
    add(auth_bytes)
    add(pack_i8(message.session_lifetime_ms))


# SaslAuthenticateResponse in version 2
def read_v2(data: Buffer, at: int, size: int) -> tuple[SaslAuthenticateResponse, int]:
    message = new(SaslAuthenticateResponse)
    message.unknown_tags = ()
    message.error_code, length = unpack_i2_u1(data, at)
    at += 3
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
        length, at = read_uvarint(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("auth_bytes")
    message.auth_bytes = bytes(data[at:end])
    at = end
    message.session_lifetime_ms, tags = unpack_i8_u1(data, at)
    at += 9
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v2(message: SaslAuthenticateResponse, add: Add) -> None:
    add(pack_i2(message.error_code))
    error_message = message.error_message
    if error_message is None:
        add(b"\x00")
    else:
        error_message_bytes = error_message.encode()
        add(compact_string_length[len(error_message_bytes)])
        add(error_message_bytes)
    auth_bytes = message.auth_bytes
    add(compact_length[len(auth_bytes)])
    if not isinstance(auth_bytes, BYTES):
        raise Unwritable("auth_bytes")
    add(auth_bytes)
    add(pack_i8(message.session_lifetime_ms))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[SaslAuthenticateResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v2, write_v2),
}

# what JSON and error messages know of the fields
SaslAuthenticateResponse.FIELDS = (
    Field("error_code", "errorCode", "int16", (0, 2)),
    Field("error_message", "errorMessage", "string", (0, 2), nullable=(0, 2)),
    Field("auth_bytes", "authBytes", "bytes", (0, 2)),
    Field("session_lifetime_ms", "sessionLifetimeMs", "int64", (1, 2), ignorable=True),
)
