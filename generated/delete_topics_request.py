"""DeleteTopicsRequest, versions 0–6: its classes, and one read and write pair per layout.

Generated from schemas/DeleteTopicsRequest.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import Factory, define

from kclient.protocol.message import Field, Message, Struct
from kclient.protocol.primitives import (
    ZERO_UUID,
    Add,
    Buffer,
    Codec,
    Malformed,
    Unwritable,
    Uuid,
    compact_length,
    compact_string_length,
    left_over,
    new,
    read_compact_strings,
    read_string_length,
    read_strings,
    read_tags,
    read_uvarint,
    write_tags,
)

pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
pack_uuid: Final = struct.Struct(">16s").pack
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_uuid_u1: Final = struct.Struct(">16sB").unpack_from


@define(weakref_slot=False)
class DeleteTopicState(Struct):
    """The topics to delete, by name or by id, from version 6 on.

    Attributes:
        name: The name of the topic to delete; null to delete by id.
        topic_id: The id of the topic to delete; zero to delete by name.
    """

    name: str | None = None
    topic_id: Uuid = ZERO_UUID


@define(weakref_slot=False)
class DeleteTopicsRequest(Message):
    """Deletes topics with all their data.

    Attributes:
        topics: The topics to delete, by name or by id, from version 6 on.
        topic_names: Names of the topics to delete, up to version 5.
        timeout_ms: Milliseconds to wait for the deletion; it goes on when they are over.
    """

    NAME: ClassVar[str] = "DeleteTopicsRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 20
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_SINCE: ClassVar[int | None] = 4

    topics: list[DeleteTopicState] = Factory(list)
    topic_names: list[str] = Factory(list)
    timeout_ms: int = 0


# DeleteTopicsRequest in versions 0–3
def read_v0(data: Buffer, at: int, size: int) -> tuple[DeleteTopicsRequest, int]:
    message = new(DeleteTopicsRequest)
    message.topics = []
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 2 <= size - at:
        raise Malformed("topic_names")
    message.topic_names, at = read_strings(count, data, at, size)
    (message.timeout_ms,) = unpack_i4(data, at)
    at += 4
    return message, at


def write_v0(message: DeleteTopicsRequest, add: Add) -> None:
    if message.topics != []:
        raise Unwritable("topics")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topic_names = message.topic_names
    add(pack_i4(len(topic_names)))
    for topic_name in topic_names:
        topic_name_bytes = topic_name.encode()
        add(pack_i2(len(topic_name_bytes)))
        add(topic_name_bytes)
    add(pack_i4(message.timeout_ms))


# DeleteTopicsRequest in versions 4–5
def read_v4(data: Buffer, at: int, size: int) -> tuple[DeleteTopicsRequest, int]:
    message = new(DeleteTopicsRequest)
    message.topics = []
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count <= size - at:
        raise Malformed("topic_names")
    message.topic_names, at = read_compact_strings(count, data, at, size)
    message.timeout_ms, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v4(message: DeleteTopicsRequest, add: Add) -> None:
    if message.topics != []:
        raise Unwritable("topics")
    topic_names = message.topic_names
    add(compact_length[len(topic_names)])
    for topic_name in topic_names:
        topic_name_bytes = topic_name.encode()
        add(compact_string_length[len(topic_name_bytes)])
        add(topic_name_bytes)
    add(pack_i4(message.timeout_ms))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DeleteTopicState in version 6
def read_delete_topic_state_v6(data: Buffer, at: int, size: int) -> tuple[DeleteTopicState, int]:
    message = new(DeleteTopicState)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.name = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("name")
        message.name = str(data[at:end], "utf-8")
        at = end
    message.topic_id, tags = unpack_uuid_u1(data, at)
    at += 17
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_delete_topic_state_v6(message: DeleteTopicState, add: Add) -> None:
    name = message.name
    if name is None:
        add(b"\x00")
    else:
        name_bytes = name.encode()
        add(compact_string_length[len(name_bytes)])
        add(name_bytes)
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DeleteTopicsRequest in version 6
def read_v6(data: Buffer, at: int, size: int) -> tuple[DeleteTopicsRequest, int]:
    message = new(DeleteTopicsRequest)
    message.topic_names = []
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("topics")
    topics: list[DeleteTopicState] = []
    for _ in range(count):
        topic, at = read_delete_topic_state_v6(data, at, size)
        topics.append(topic)
    message.topics = topics
    message.timeout_ms, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v6(message: DeleteTopicsRequest, add: Add) -> None:
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_delete_topic_state_v6(topic, add)
    add(pack_i4(message.timeout_ms))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[DeleteTopicsRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v0, write_v0),
    3: (read_v0, write_v0),
    4: (read_v4, write_v4),
    5: (read_v4, write_v4),
    6: (read_v6, write_v6),
}

# what JSON and error messages know of the fields
DeleteTopicState.FIELDS = (
    Field("name", "name", "string", (6, 6), nullable=(6, 6)),
    Field("topic_id", "topicId", "uuid", (6, 6)),
)
DeleteTopicsRequest.FIELDS = (
    Field("topics", "topics", "[]DeleteTopicState", (6, 6), struct=DeleteTopicState),
    Field("topic_names", "topicNames", "[]string", (0, 5), ignorable=True),
    Field("timeout_ms", "timeoutMs", "int32", (0, 6)),
)
