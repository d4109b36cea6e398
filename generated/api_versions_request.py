"""ApiVersionsRequest, versions 0–4: its classes, and one read and write pair per layout.

Generated from schemas/ApiVersionsRequest.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

from typing import ClassVar

from attrs import define

from kclient.protocol.message import Field, Message
from kclient.protocol.primitives import (
    Add,
    Buffer,
    Codec,
    Malformed,
    Unwritable,
    compact_string_length,
    left_over,
    new,
    read_string_length,
    read_tags,
    write_tags,
)


@define(weakref_slot=False)
class ApiVersionsRequest(Message):
    """First request on every connection: asks which versions of which APIs the broker speaks. Too new a
    version is answered in version 0.

    Attributes:
        client_software_name: Name of the client library, for the broker's metrics (KIP-511): letters, digits,
            dots and dashes only, not empty.
        client_software_version: Version of the client library under the same rules; a broker refuses other
            characters with INVALID_REQUEST.
    """

    NAME: ClassVar[str] = "ApiVersionsRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 18
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_SINCE: ClassVar[int | None] = 3

    client_software_name: str = ""
    client_software_version: str = ""


# ApiVersionsRequest in versions 0–2
def read_v0(data: Buffer, at: int, size: int) -> tuple[ApiVersionsRequest, int]:
    message = new(ApiVersionsRequest)
    message.client_software_name = ""
    message.client_software_version = ""
    message.unknown_tags = ()
    return message, at


def write_v0(message: ApiVersionsRequest, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")


# ApiVersionsRequest in versions 3–4
def read_v3(data: Buffer, at: int, size: int) -> tuple[ApiVersionsRequest, int]:
    message = new(ApiVersionsRequest)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("client_software_name")
    message.client_software_name = str(data[at:end], "utf-8")
    at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("client_software_version")
    message.client_software_version = str(data[at:end], "utf-8")
    at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v3(message: ApiVersionsRequest, add: Add) -> None:
    client_software_name = message.client_software_name.encode()
    add(compact_string_length[len(client_software_name)])
    add(client_software_name)
    client_software_version = message.client_software_version.encode()
    add(compact_string_length[len(client_software_version)])
    add(client_software_version)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ApiVersionsRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v0, write_v0),
    3: (read_v3, write_v3),
    4: (read_v3, write_v3),
}

# what JSON and error messages know of the fields
ApiVersionsRequest.FIELDS = (
    Field("client_software_name", "clientSoftwareName", "string", (3, 4), ignorable=True),
    Field("client_software_version", "clientSoftwareVersion", "string", (3, 4), ignorable=True),
)
