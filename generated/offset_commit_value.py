"""OffsetCommitValue, versions 0–4: its classes, and one read and write pair per layout.

Generated from schemas/OffsetCommitValue.json by `python -m codegen`; edits here are lost.
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
    Malformed,
    Unwritable,
    Uuid,
    compact_string_length,
    left_over,
    new,
    read_string_length,
    read_tags,
    read_whole,
    write_tags,
    written,
)

pack_i8: Final = struct.Struct(">q").pack
pack_i8_i2: Final = struct.Struct(">qh").pack
pack_i8_i4: Final = struct.Struct(">qi").pack
pack_i8_i4_i2: Final = struct.Struct(">qih").pack
pack_i8x2: Final = struct.Struct(">qq").pack
pack_uuid: Final = struct.Struct(">16s").pack
unpack_i8: Final = struct.Struct(">q").unpack_from
unpack_i8_i2: Final = struct.Struct(">qh").unpack_from
unpack_i8_i4_i2: Final = struct.Struct(">qih").unpack_from
unpack_i8_i4_u1: Final = struct.Struct(">qiB").unpack_from
unpack_i8_u1: Final = struct.Struct(">qB").unpack_from
unpack_i8x2: Final = struct.Struct(">qq").unpack_from
unpack_uuid: Final = struct.Struct(">16s").unpack_from


@define(weakref_slot=False)
class OffsetCommitValue(Message):
    """A group's committed offset for the partition in the key; a later record with that key replaces it.

    Attributes:
        offset: The next offset the group wants to read.
        leader_epoch: Leader epoch of the last record consumed before the commit; -1 when unknown.
        metadata: Free text that came with the commit; empty when there is none.
        commit_timestamp: When the commit was made, in milliseconds since 1970; the retention of a simple
            consumer's offsets counts from it.
        expire_timestamp: When the offset expires, in milliseconds since 1970: written only if the commit
            asked for a retention of its own; -1 otherwise.
        topic_id: The topic's id, so that a commit for a deleted namesake can be told; zero when the commit
            came by name.
    """

    NAME: ClassVar[str] = "OffsetCommitValue"
    TYPE: ClassVar[str] = "coordinator-value"
    API_KEY: ClassVar[int | None] = 1
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_SINCE: ClassVar[int | None] = 4

    offset: int = 0
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp: int = 0
    expire_timestamp: int = -1
    topic_id: Uuid = ZERO_UUID


# OffsetCommitValue in versions 0, 2
def read_v0(data: Buffer, at: int, size: int) -> tuple[OffsetCommitValue, int]:
    message = new(OffsetCommitValue)
    message.leader_epoch = -1
    message.expire_timestamp = -1
    message.topic_id = ZERO_UUID
    message.unknown_tags = ()
    message.offset, length = unpack_i8_i2(data, at)
    at += 10
    end = at + length
    if not at <= end <= size:
        raise Malformed("metadata")
    message.metadata = str(data[at:end], "utf-8")
    at = end
    (message.commit_timestamp,) = unpack_i8(data, at)
    at += 8
    return message, at


def write_v0(message: OffsetCommitValue, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    metadata = message.metadata.encode()
    add(pack_i8_i2(message.offset, len(metadata)))
    add(metadata)
    add(pack_i8(message.commit_timestamp))


# OffsetCommitValue in version 1
def read_v1(data: Buffer, at: int, size: int) -> tuple[OffsetCommitValue, int]:
    message = new(OffsetCommitValue)
    message.leader_epoch = -1
    message.topic_id = ZERO_UUID
    message.unknown_tags = ()
    message.offset, length = unpack_i8_i2(data, at)
    at += 10
    end = at + length
    if not at <= end <= size:
        raise Malformed("metadata")
    message.metadata = str(data[at:end], "utf-8")
    at = end
    message.commit_timestamp, message.expire_timestamp = unpack_i8x2(data, at)
    at += 16
    return message, at


def write_v1(message: OffsetCommitValue, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    metadata = message.metadata.encode()
    add(pack_i8_i2(message.offset, len(metadata)))
    add(metadata)
    add(pack_i8x2(message.commit_timestamp, message.expire_timestamp))


# OffsetCommitValue in version 3
def read_v3(data: Buffer, at: int, size: int) -> tuple[OffsetCommitValue, int]:
    message = new(OffsetCommitValue)
    message.expire_timestamp = -1
    message.topic_id = ZERO_UUID
    message.unknown_tags = ()
    message.offset, message.leader_epoch, length = unpack_i8_i4_i2(data, at)
    at += 14
    end = at + length
    if not at <= end <= size:
        raise Malformed("metadata")
    message.metadata = str(data[at:end], "utf-8")
    at = end
    (message.commit_timestamp,) = unpack_i8(data, at)
    at += 8
    return message, at


def write_v3(message: OffsetCommitValue, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    metadata = message.metadata.encode()
    add(pack_i8_i4_i2(message.offset, message.leader_epoch, len(metadata)))
    add(metadata)
    add(pack_i8(message.commit_timestamp))


def read_topic_id_tag_v4(data: Buffer, at: int, size: int) -> tuple[Uuid, int]:
    value: Uuid
    (value,) = unpack_uuid(data, at)
    at += 16
    return value, at


def write_topic_id_tag_v4(value: Uuid, add: Add) -> None:
    if len(value) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(value))


# OffsetCommitValue in version 4
def read_v4(data: Buffer, at: int, size: int) -> tuple[OffsetCommitValue, int]:
    message = new(OffsetCommitValue)
    message.expire_timestamp = -1
    message.topic_id = ZERO_UUID
    message.unknown_tags = ()
    message.offset, message.leader_epoch, length = unpack_i8_i4_u1(data, at)
    at += 13
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("metadata")
    message.metadata = str(data[at:end], "utf-8")
    at = end
    message.commit_timestamp, tags = unpack_i8_u1(data, at)
    at += 9
    if tags:
        found, at = read_tags(tags, data, at, size)
        if 0 in found:
            message.topic_id = read_whole(read_topic_id_tag_v4, found.pop(0))
        message.unknown_tags = left_over(found)
    return message, at


def write_v4(message: OffsetCommitValue, add: Add) -> None:
    add(pack_i8_i4(message.offset, message.leader_epoch))
    metadata = message.metadata.encode()
    add(compact_string_length[len(metadata)])
    add(metadata)
    add(pack_i8(message.commit_timestamp))
    tags: dict[int, bytes] = {}
    if message.topic_id != ZERO_UUID:
        tags[0] = written(write_topic_id_tag_v4, message.topic_id)
    if tags or message.unknown_tags:
        write_tags((0,), tags, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[OffsetCommitValue]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v0, write_v0),
    3: (read_v3, write_v3),
    4: (read_v4, write_v4),
}

# what JSON and error messages know of the fields
OffsetCommitValue.FIELDS = (
    Field("offset", "offset", "int64", (0, 4)),
    Field("leader_epoch", "leaderEpoch", "int32", (3, 4), ignorable=True),
    Field("metadata", "metadata", "string", (0, 4)),
    Field("commit_timestamp", "commitTimestamp", "int64", (0, 4)),
    Field("expire_timestamp", "expireTimestamp", "int64", (1, 1), ignorable=True),
    Field("topic_id", "topicId", "uuid", (4, 4), tagged=(4, 4), tag=0, ignorable=True),
)
