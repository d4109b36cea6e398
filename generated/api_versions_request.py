"""ApiVersionsRequest, versions 0–5: its classes, and one read and write pair per layout.

Generated from schemas/ApiVersionsRequest.json by `python -m codegen`; edits here are lost.
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
    compact_string_length,
    left_over,
    new,
    read_string_length,
    read_tags,
    write_tags,
)

pack_i4: Final = struct.Struct(">i").pack
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from


@define(weakref_slot=False)
class ApiVersionsRequest(Message):
    """First request on every connection: asks which versions of which APIs the broker speaks. Too new a
    version is answered in version 0.

    Attributes:
        client_software_name: Name of the client library, for the broker's metrics (KIP-511): letters, digits,
            dots and dashes only, not empty.
        client_software_version: Version of the client library under the same rules; a broker refuses other
            characters with INVALID_REQUEST.
        cluster_id: The cluster that the client takes the broker for a part of (KIP-1242); null when it does
            not know. Given together with NodeId or not at all.
        node_id: The node that the client takes the broker for; any other one answers REBOOTSTRAP_REQUIRED
            (129). -1 when it does not know.
    """

    NAME: ClassVar[str] = "ApiVersionsRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 18
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_SINCE: ClassVar[int | None] = 3

    client_software_name: str = ""
    client_software_version: str = ""
    cluster_id: str | None = None
    node_id: int = -1


# ApiVersionsRequest in versions 0–2
def read_v0(data: Buffer, at: int, size: int) -> tuple[ApiVersionsRequest, int]:
    message = new(ApiVersionsRequest)
    message.client_software_name = ""
    message.client_software_version = ""
    message.cluster_id = None
    message.node_id = -1
    message.unknown_tags = ()
    return message, at


def write_v0(message: ApiVersionsRequest, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")


# ApiVersionsRequest in versions 3–4
def read_v3(data: Buffer, at: int, size: int) -> tuple[ApiVersionsRequest, int]:
    message = new(ApiVersionsRequest)
    message.cluster_id = None
    message.node_id = -1
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


# ApiVersionsRequest in version 5
def read_v5(data: Buffer, at: int, size: int) -> tuple[ApiVersionsRequest, int]:
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
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.cluster_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("cluster_id")
        message.cluster_id = str(data[at:end], "utf-8")
        at = end
    message.node_id, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v5(message: ApiVersionsRequest, add: Add) -> None:
    client_software_name = message.client_software_name.encode()
    add(compact_string_length[len(client_software_name)])
    add(client_software_name)
    client_software_version = message.client_software_version.encode()
    add(compact_string_length[len(client_software_version)])
    add(client_software_version)
    cluster_id = message.cluster_id
    if cluster_id is None:
        add(b"\x00")
    else:
        cluster_id_bytes = cluster_id.encode()
        add(compact_string_length[len(cluster_id_bytes)])
        add(cluster_id_bytes)
    add(pack_i4(message.node_id))
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
    5: (read_v5, write_v5),
}

# what JSON and error messages know of the fields
ApiVersionsRequest.FIELDS = (
    Field("client_software_name", "clientSoftwareName", "string", (3, 5), ignorable=True),
    Field("client_software_version", "clientSoftwareVersion", "string", (3, 5), ignorable=True),
    Field("cluster_id", "clusterId", "string", (5, 5), nullable=(5, 5), ignorable=True),
    Field("node_id", "nodeId", "int32", (5, 5), ignorable=True),
)
