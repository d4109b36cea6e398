"""SaslHandshakeResponse, versions 0–1: its classes, and one read and write pair per layout.

Generated from schemas/SaslHandshakeResponse.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import Factory, define

from kclient.protocol.message import Field, Message
from kclient.protocol.primitives import (
    Add,
    Buffer,
    Codec,
    Malformed,
    Unwritable,
    new,
    read_strings,
)

pack_i2: Final = struct.Struct(">h").pack
pack_i2_i4: Final = struct.Struct(">hi").pack
unpack_i2_i4: Final = struct.Struct(">hi").unpack_from


@define(weakref_slot=False)
class SaslHandshakeResponse(Message):
    """Says whether the mechanism will do.

    Attributes:
        error_code: 0 to go on; UNSUPPORTED_SASL_MECHANISM (33) ends the connection.
        mechanisms: The mechanisms that the broker has enabled, for a useful error message.
    """

    NAME: ClassVar[str] = "SaslHandshakeResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 17
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_SINCE: ClassVar[int | None] = None

    error_code: int = 0
    mechanisms: list[str] = Factory(list)


# SaslHandshakeResponse in versions 0–1
def read_v0(data: Buffer, at: int, size: int) -> tuple[SaslHandshakeResponse, int]:
    message = new(SaslHandshakeResponse)
    message.unknown_tags = ()
    message.error_code, count = unpack_i2_i4(data, at)
    at += 6
    if not 0 <= count * 2 <= size - at:
        raise Malformed("mechanisms")
    message.mechanisms, at = read_strings(count, data, at, size)
    return message, at


def write_v0(message: SaslHandshakeResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    mechanisms = message.mechanisms
    add(pack_i2_i4(message.error_code, len(mechanisms)))
    for mechanism in mechanisms:
        mechanism_bytes = mechanism.encode()
        add(pack_i2(len(mechanism_bytes)))
        add(mechanism_bytes)


# version → its layout's pair
CODECS: dict[int, Codec[SaslHandshakeResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
SaslHandshakeResponse.FIELDS = (
    Field("error_code", "errorCode", "int16", (0, 1)),
    Field("mechanisms", "mechanisms", "[]string", (0, 1)),
)
