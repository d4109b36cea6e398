"""FindCoordinatorRequest, versions 0–6: its classes, and one read and write pair per layout.

Generated from schemas/FindCoordinatorRequest.json by `python -m codegen`; edits here are lost.
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

pack_i1: Final = struct.Struct(">b").pack
pack_i2: Final = struct.Struct(">h").pack
unpack_i1: Final = struct.Struct(">b").unpack_from
unpack_i1_u1: Final = struct.Struct(">bB").unpack_from
unpack_i2: Final = struct.Struct(">h").unpack_from


@define(weakref_slot=False)
class FindCoordinatorRequest(Message):
    """Asks which broker coordinates a group (or a transactional id); a consumer sends it to any node before
    it joins, commits or reads committed offsets.

    Attributes:
        key: The group id or transactional id to look up; KeyType says which. Versions below 4 take a single
            key.
        key_type: What the keys name: 0 group, 1 transactional id, 2 share group partition (version 6 on).
            Version 0 knows groups only.
        coordinator_keys: The ids to look up in one go, all of the same KeyType; a share key reads
            groupId:topicId:partition.
    """

    NAME: ClassVar[str] = "FindCoordinatorRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 10
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_SINCE: ClassVar[int | None] = 3

    key: str = ""
    key_type: int = 0
    coordinator_keys: list[str] = Factory(list)


# FindCoordinatorRequest in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[FindCoordinatorRequest, int]:
    message = new(FindCoordinatorRequest)
    message.key_type = 0
    message.coordinator_keys = []
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("key")
    message.key = str(data[at:end], "utf-8")
    at = end
    return message, at


def write_v0(message: FindCoordinatorRequest, add: Add) -> None:
    if message.key_type != 0:
        raise Unwritable("key_type")
    if message.coordinator_keys != []:
        raise Unwritable("coordinator_keys")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    key = message.key.encode()
    add(pack_i2(len(key)))
    add(key)


# FindCoordinatorRequest in versions 1–2
def read_v1(data: Buffer, at: int, size: int) -> tuple[FindCoordinatorRequest, int]:
    message = new(FindCoordinatorRequest)
    message.coordinator_keys = []
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("key")
    message.key = str(data[at:end], "utf-8")
    at = end
    (message.key_type,) = unpack_i1(data, at)
    at += 1
    return message, at


def write_v1(message: FindCoordinatorRequest, add: Add) -> None:
    if message.coordinator_keys != []:
        raise Unwritable("coordinator_keys")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    key = message.key.encode()
    add(pack_i2(len(key)))
    add(key)
    add(pack_i1(message.key_type))


# FindCoordinatorRequest in version 3
def read_v3(data: Buffer, at: int, size: int) -> tuple[FindCoordinatorRequest, int]:
    message = new(FindCoordinatorRequest)
    message.coordinator_keys = []
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("key")
    message.key = str(data[at:end], "utf-8")
    at = end
    message.key_type, tags = unpack_i1_u1(data, at)
    at += 2
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v3(message: FindCoordinatorRequest, add: Add) -> None:
    if message.coordinator_keys != []:
        raise Unwritable("coordinator_keys")
    key = message.key.encode()
    add(compact_string_length[len(key)])
    add(key)
    add(pack_i1(message.key_type))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# FindCoordinatorRequest in versions 4–6
def read_v4(data: Buffer, at: int, size: int) -> tuple[FindCoordinatorRequest, int]:
    message = new(FindCoordinatorRequest)
    message.key = ""
    message.unknown_tags = ()
    message.key_type, count = unpack_i1_u1(data, at)
    at += 2
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count <= size - at:
        raise Malformed("coordinator_keys")
    message.coordinator_keys, at = read_compact_strings(count, data, at, size)
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v4(message: FindCoordinatorRequest, add: Add) -> None:
    if message.key != "":
        raise Unwritable("key")
    add(pack_i1(message.key_type))
    coordinator_keys = message.coordinator_keys
    add(compact_length[len(coordinator_keys)])
    for coordinator_key in coordinator_keys:
        coordinator_key_bytes = coordinator_key.encode()
        add(compact_string_length[len(coordinator_key_bytes)])
        add(coordinator_key_bytes)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[FindCoordinatorRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v1, write_v1),
    3: (read_v3, write_v3),
    4: (read_v4, write_v4),
    5: (read_v4, write_v4),
    6: (read_v4, write_v4),
}

# what JSON and error messages know of the fields
FindCoordinatorRequest.FIELDS = (
    Field("key", "key", "string", (0, 3)),
    Field("key_type", "keyType", "int8", (1, 6)),
    Field("coordinator_keys", "coordinatorKeys", "[]string", (4, 6)),
)
