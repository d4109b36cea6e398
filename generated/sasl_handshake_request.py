"""SaslHandshakeRequest, versions 0–1: its classes, and one read and write pair per layout.

Generated from schemas/SaslHandshakeRequest.json by `python -m codegen`; edits here are lost.
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
    Malformed,
    Unwritable,
    new,
)

pack_i2: Final = struct.Struct(">h").pack
unpack_i2: Final = struct.Struct(">h").unpack_from


@define(weakref_slot=False)
class SaslHandshakeRequest(Message):
    """Names the SASL mechanism of the authentication that follows. After version 0 the tokens go without
    Kafka headers.

    Attributes:
        mechanism: The mechanism the client wants, for instance PLAIN or SCRAM-SHA-256.
    """

    NAME: ClassVar[str] = "SaslHandshakeRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 17
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_SINCE: ClassVar[int | None] = None

    mechanism: str = ""


# SaslHandshakeRequest in versions 0–1
def read_v0(data: Buffer, at: int, size: int) -> tuple[SaslHandshakeRequest, int]:
    message = new(SaslHandshakeRequest)
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("mechanism")
    message.mechanism = str(data[at:end], "utf-8")
    at = end
    return message, at


def write_v0(message: SaslHandshakeRequest, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    mechanism = message.mechanism.encode()
    add(pack_i2(len(mechanism)))
    add(mechanism)


# version → its layout's pair
CODECS: dict[int, Codec[SaslHandshakeRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
SaslHandshakeRequest.FIELDS = (Field("mechanism", "mechanism", "string", (0, 1)),)
