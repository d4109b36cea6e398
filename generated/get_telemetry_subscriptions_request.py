"""GetTelemetrySubscriptionsRequest, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/GetTelemetrySubscriptionsRequest.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import define

from kclient.protocol.message import Field, Message
from kclient.protocol.primitives import (
    ZERO_UUID,
    Add,
    Buffer,
    Codec,
    Unwritable,
    Uuid,
    left_over,
    new,
    read_tags,
    write_tags,
)

pack_uuid: Final = struct.Struct(">16s").pack
unpack_uuid_u1: Final = struct.Struct(">16sB").unpack_from


@define(weakref_slot=False)
class GetTelemetrySubscriptionsRequest(Message):
    """Asks which client metrics the cluster wants pushed, and how often (KIP-714).

    Attributes:
        client_instance_id: The id the broker gave this client instance; zero at the first call.
    """

    NAME: ClassVar[str] = "GetTelemetrySubscriptionsRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 71
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    client_instance_id: Uuid = ZERO_UUID


# GetTelemetrySubscriptionsRequest in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[GetTelemetrySubscriptionsRequest, int]:
    message = new(GetTelemetrySubscriptionsRequest)
    message.unknown_tags = ()
    message.client_instance_id, tags = unpack_uuid_u1(data, at)
    at += 17
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: GetTelemetrySubscriptionsRequest, add: Add) -> None:
    if len(message.client_instance_id) != 16:
        raise Unwritable("client_instance_id")
    add(pack_uuid(message.client_instance_id))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[GetTelemetrySubscriptionsRequest]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
GetTelemetrySubscriptionsRequest.FIELDS = (Field("client_instance_id", "clientInstanceId", "uuid", (0, 0)),)
