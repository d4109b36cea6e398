"""ShareGroupMemberMetadataValue, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/ShareGroupMemberMetadataValue.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

from typing import ClassVar

from attrs import Factory, define

from kclient.protocol.message import Field, Message
from kclient.protocol.primitives import (
    Add,
    Buffer,
    Codec,
    Malformed,
    compact_length,
    compact_string_length,
    left_over,
    new,
    read_compact_strings,
    read_string_length,
    read_tags,
    read_uvarint,
    write_tags,
)


@define(weakref_slot=False)
class ShareGroupMemberMetadataValue(Message):
    """What a member of a share group has told about itself in its heartbeats.

    Attributes:
        rack_id: The rack of the member; null when not told.
        client_id: The client.id of the member's connection.
        client_host: Address the member connected from.
        subscribed_topic_names: The topics the member subscribes to by name.
    """

    NAME: ClassVar[str] = "ShareGroupMemberMetadataValue"
    TYPE: ClassVar[str] = "coordinator-value"
    API_KEY: ClassVar[int | None] = 10
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = Factory(list)


# ShareGroupMemberMetadataValue in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[ShareGroupMemberMetadataValue, int]:
    message = new(ShareGroupMemberMetadataValue)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.rack_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("rack_id")
        message.rack_id = str(data[at:end], "utf-8")
        at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("client_id")
    message.client_id = str(data[at:end], "utf-8")
    at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("client_host")
    message.client_host = str(data[at:end], "utf-8")
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count <= size - at:
        raise Malformed("subscribed_topic_names")
    message.subscribed_topic_names, at = read_compact_strings(count, data, at, size)
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: ShareGroupMemberMetadataValue, add: Add) -> None:
    rack_id = message.rack_id
    if rack_id is None:
        add(b"\x00")
    else:
        rack_id_bytes = rack_id.encode()
        add(compact_string_length[len(rack_id_bytes)])
        add(rack_id_bytes)
    client_id = message.client_id.encode()
    add(compact_string_length[len(client_id)])
    add(client_id)
    client_host = message.client_host.encode()
    add(compact_string_length[len(client_host)])
    add(client_host)
    subscribed_topic_names = message.subscribed_topic_names
    add(compact_length[len(subscribed_topic_names)])
    for subscribed_topic_name in subscribed_topic_names:
        subscribed_topic_name_bytes = subscribed_topic_name.encode()
        add(compact_string_length[len(subscribed_topic_name_bytes)])
        add(subscribed_topic_name_bytes)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ShareGroupMemberMetadataValue]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
ShareGroupMemberMetadataValue.FIELDS = (
    Field("rack_id", "rackId", "string", (0, 0), nullable=(0, 0)),
    Field("client_id", "clientId", "string", (0, 0)),
    Field("client_host", "clientHost", "string", (0, 0)),
    Field("subscribed_topic_names", "subscribedTopicNames", "[]string", (0, 0)),
)
