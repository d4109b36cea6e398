"""ShareGroupHeartbeatRequest, versions 0–1: its classes, and one read and write pair per layout.

Generated from schemas/ShareGroupHeartbeatRequest.json by `python -m codegen`; edits here are lost.
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

pack_i4: Final = struct.Struct(">i").pack
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from


@define(weakref_slot=False)
class ShareGroupHeartbeatRequest(Message):
    """Joins a share group, stays in it and leaves it (KIP-932).

    Attributes:
        group_id: The share group to be a member of; must not be empty.
        member_id: The id the client chose for itself, kept for its life.
        member_epoch: 0 to join, the last epoch heard to stay, -1 to leave.
        rack_id: The rack of the member, told when it joins; null when not set or already told.
        subscribed_topic_names: The topics subscribed to by name; null when unchanged since they were last
            told.
    """

    NAME: ClassVar[str] = "ShareGroupHeartbeatRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 76
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    rack_id: str | None = None
    subscribed_topic_names: list[str] | None = None


# ShareGroupHeartbeatRequest in versions 0–1
def read_v0(data: Buffer, at: int, size: int) -> tuple[ShareGroupHeartbeatRequest, int]:
    message = new(ShareGroupHeartbeatRequest)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("member_id")
    message.member_id = str(data[at:end], "utf-8")
    at = end
    message.member_epoch, length = unpack_i4_u1(data, at)
    at += 5
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
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        message.subscribed_topic_names = None
    else:
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


def write_v0(message: ShareGroupHeartbeatRequest, add: Add) -> None:
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    member_id = message.member_id.encode()
    add(compact_string_length[len(member_id)])
    add(member_id)
    add(pack_i4(message.member_epoch))
    rack_id = message.rack_id
    if rack_id is None:
        add(b"\x00")
    else:
        rack_id_bytes = rack_id.encode()
        add(compact_string_length[len(rack_id_bytes)])
        add(rack_id_bytes)
    subscribed_topic_names = message.subscribed_topic_names
    if subscribed_topic_names is None:
        add(b"\x00")
    else:
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
CODECS: dict[int, Codec[ShareGroupHeartbeatRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
ShareGroupHeartbeatRequest.FIELDS = (
    Field("group_id", "groupId", "string", (0, 1)),
    Field("member_id", "memberId", "string", (0, 1)),
    Field("member_epoch", "memberEpoch", "int32", (0, 1)),
    Field("rack_id", "rackId", "string", (0, 1), nullable=(0, 1)),
    Field("subscribed_topic_names", "subscribedTopicNames", "[]string", (0, 1), nullable=(0, 1)),
)
