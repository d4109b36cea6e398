"""RequestHeader, versions 0–2: its classes, and one read and write pair per layout.

Generated from schemas/RequestHeader.json by `python -m codegen`; edits here are lost.
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
    left_over,
    new,
    read_tags,
    write_tags,
)

pack_i2: Final = struct.Struct(">h").pack
pack_i2x2_i4: Final = struct.Struct(">hhi").pack
unpack_i2x2_i4: Final = struct.Struct(">hhi").unpack_from
unpack_i2x2_i4_i2: Final = struct.Struct(">hhih").unpack_from


@define(weakref_slot=False)
class RequestHeader(Message):
    """Stands in front of every request body. Flexible requests use version 2, the others version 1.

    Attributes:
        request_api_key: The number of the API that is called.
        request_api_version: The version of the request body; the answer comes in the same version.
        correlation_id: A number of the client's choice that the answer repeats; answers come in the order of
            the requests.
        client_id: The client's name for logs and quotas (client.id); null for none. Its length stays an int16
            in every version.
    """

    NAME: ClassVar[str] = "RequestHeader"
    TYPE: ClassVar[str] = "header"
    API_KEY: ClassVar[int | None] = None
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_SINCE: ClassVar[int | None] = 2

    request_api_key: int = 0
    request_api_version: int = 0
    correlation_id: int = 0
    client_id: str | None = ""


# RequestHeader in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[RequestHeader, int]:
    message = new(RequestHeader)
    message.client_id = ""
    message.unknown_tags = ()
    message.request_api_key, message.request_api_version, message.correlation_id = unpack_i2x2_i4(data, at)
    at += 8
    return message, at


def write_v0(message: RequestHeader, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i2x2_i4(message.request_api_key, message.request_api_version, message.correlation_id))


# RequestHeader in version 1
def read_v1(data: Buffer, at: int, size: int) -> tuple[RequestHeader, int]:
    message = new(RequestHeader)
    message.unknown_tags = ()
    (
        message.request_api_key,
        message.request_api_version,
        message.correlation_id,
        length,
    ) = unpack_i2x2_i4_i2(data, at)
    at += 10
    if length == -1:
        message.client_id = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("client_id")
        message.client_id = str(data[at:end], "utf-8")
        at = end
    return message, at


def write_v1(message: RequestHeader, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i2x2_i4(message.request_api_key, message.request_api_version, message.correlation_id))
    client_id = message.client_id
    if client_id is None:
        add(b"\xff\xff")
    else:
        client_id_bytes = client_id.encode()
        add(pack_i2(len(client_id_bytes)))
        add(client_id_bytes)


# RequestHeader in version 2
def read_v2(data: Buffer, at: int, size: int) -> tuple[RequestHeader, int]:
    message = new(RequestHeader)
    message.unknown_tags = ()
    (
        message.request_api_key,
        message.request_api_version,
        message.correlation_id,
        length,
    ) = unpack_i2x2_i4_i2(data, at)
    at += 10
    if length == -1:
        message.client_id = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("client_id")
        message.client_id = str(data[at:end], "utf-8")
        at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v2(message: RequestHeader, add: Add) -> None:
    add(pack_i2x2_i4(message.request_api_key, message.request_api_version, message.correlation_id))
    client_id = message.client_id
    if client_id is None:
        add(b"\xff\xff")
    else:
        client_id_bytes = client_id.encode()
        add(pack_i2(len(client_id_bytes)))
        add(client_id_bytes)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[RequestHeader]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v2, write_v2),
}

# what JSON and error messages know of the fields
RequestHeader.FIELDS = (
    Field("request_api_key", "requestApiKey", "int16", (0, 2)),
    Field("request_api_version", "requestApiVersion", "int16", (0, 2)),
    Field("correlation_id", "correlationId", "int32", (0, 2)),
    Field("client_id", "clientId", "string", (1, 2), nullable=(1, 2), ignorable=True, never_compact=True),
)
