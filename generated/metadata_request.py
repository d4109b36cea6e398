"""MetadataRequest, versions 0–13: its classes, and one read and write pair per layout.

Generated from schemas/MetadataRequest.json by `python -m codegen`; edits here are lost.
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
    read_string_length,
    read_tags,
    read_uvarint,
    write_tags,
)

pack_bool: Final = struct.Struct(">?").pack
pack_boolx2: Final = struct.Struct(">??").pack
pack_boolx3: Final = struct.Struct(">???").pack
pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
pack_uuid: Final = struct.Struct(">16s").pack
unpack_bool: Final = struct.Struct(">?").unpack_from
unpack_boolx2_u1: Final = struct.Struct(">??B").unpack_from
unpack_boolx3: Final = struct.Struct(">???").unpack_from
unpack_boolx3_u1: Final = struct.Struct(">???B").unpack_from
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_uuid_u1: Final = struct.Struct(">16sB").unpack_from


@define(weakref_slot=False)
class MetadataRequestTopic(Struct):
    """The topics wanted. Null asks for all (from version 1), empty for none; in version 0 empty asks for all.

    Attributes:
        topic_id: The wanted topic's id; zero to ask by name. Asking by id works from version 12 on.
        name: The wanted topic's name; null, from version 12 on, to ask by id.
    """

    topic_id: Uuid = ZERO_UUID
    name: str | None = ""


@define(weakref_slot=False)
class MetadataRequest(Message):
    """Asks any broker for the brokers of the cluster and the partitions and leaders of topics.

    Attributes:
        topics: The topics wanted. Null asks for all (from version 1), empty for none; in version 0 empty asks
            for all.
        allow_auto_topic_creation: True lets the broker create named topics that do not exist
            (allow.auto.create.topics); versions below 4 always do.
        include_cluster_authorized_operations: True to be told what the caller may do with the cluster; moved
            to DescribeCluster after version 10.
        include_topic_authorized_operations: True to be told what the caller may do with each topic.
    """

    NAME: ClassVar[str] = "MetadataRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 3
    VERSIONS: ClassVar[tuple[int, int]] = (0, 13)
    FLEXIBLE_SINCE: ClassVar[int | None] = 9

    topics: list[MetadataRequestTopic] | None = Factory(list)
    allow_auto_topic_creation: bool = True
    include_cluster_authorized_operations: bool = False
    include_topic_authorized_operations: bool = False


# MetadataRequestTopic in versions 0–8
def read_metadata_request_topic_v0(data: Buffer, at: int, size: int) -> tuple[MetadataRequestTopic, int]:
    message = new(MetadataRequestTopic)
    message.topic_id = ZERO_UUID
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("name")
    message.name = str(data[at:end], "utf-8")
    at = end
    return message, at


def write_metadata_request_topic_v0(message: MetadataRequestTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    if message.name is None:
        raise Unwritable("name")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)


# MetadataRequest in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[MetadataRequest, int]:
    message = new(MetadataRequest)
    message.allow_auto_topic_creation = True
    message.include_cluster_authorized_operations = False
    message.include_topic_authorized_operations = False
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 2 <= size - at:
        raise Malformed("topics")
    topics: list[MetadataRequestTopic] = []
    for _ in range(count):
        topic, at = read_metadata_request_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v0(message: MetadataRequest, add: Add) -> None:
    if not message.allow_auto_topic_creation:
        raise Unwritable("allow_auto_topic_creation")
    if message.include_cluster_authorized_operations:
        raise Unwritable("include_cluster_authorized_operations")
    if message.include_topic_authorized_operations:
        raise Unwritable("include_topic_authorized_operations")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    if message.topics is None:
        raise Unwritable("topics")
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        write_metadata_request_topic_v0(topic, add)


# MetadataRequest in versions 1–3
def read_v1(data: Buffer, at: int, size: int) -> tuple[MetadataRequest, int]:
    message = new(MetadataRequest)
    message.allow_auto_topic_creation = True
    message.include_cluster_authorized_operations = False
    message.include_topic_authorized_operations = False
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if count == -1:
        message.topics = None
    else:
        if not 0 <= count * 2 <= size - at:
            raise Malformed("topics")
        topics: list[MetadataRequestTopic] = []
        for _ in range(count):
            topic, at = read_metadata_request_topic_v0(data, at, size)
            topics.append(topic)
        message.topics = topics
    return message, at


def write_v1(message: MetadataRequest, add: Add) -> None:
    if not message.allow_auto_topic_creation:
        raise Unwritable("allow_auto_topic_creation")
    if message.include_cluster_authorized_operations:
        raise Unwritable("include_cluster_authorized_operations")
    if message.include_topic_authorized_operations:
        raise Unwritable("include_topic_authorized_operations")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    if topics is None:
        add(b"\xff\xff\xff\xff")
    else:
        add(pack_i4(len(topics)))
        for topic in topics:
            write_metadata_request_topic_v0(topic, add)


# MetadataRequest in versions 4–7
def read_v4(data: Buffer, at: int, size: int) -> tuple[MetadataRequest, int]:
    message = new(MetadataRequest)
    message.include_cluster_authorized_operations = False
    message.include_topic_authorized_operations = False
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if count == -1:
        message.topics = None
    else:
        if not 0 <= count * 2 <= size - at:
            raise Malformed("topics")
        topics: list[MetadataRequestTopic] = []
        for _ in range(count):
            topic, at = read_metadata_request_topic_v0(data, at, size)
            topics.append(topic)
        message.topics = topics
    (message.allow_auto_topic_creation,) = unpack_bool(data, at)
    at += 1
    return message, at


def write_v4(message: MetadataRequest, add: Add) -> None:
    if message.include_cluster_authorized_operations:
        raise Unwritable("include_cluster_authorized_operations")
    if message.include_topic_authorized_operations:
        raise Unwritable("include_topic_authorized_operations")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    if topics is None:
        add(b"\xff\xff\xff\xff")
    else:
        add(pack_i4(len(topics)))
        for topic in topics:
            write_metadata_request_topic_v0(topic, add)
    add(pack_bool(message.allow_auto_topic_creation))


# MetadataRequest in version 8
def read_v8(data: Buffer, at: int, size: int) -> tuple[MetadataRequest, int]:
    message = new(MetadataRequest)
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if count == -1:
        message.topics = None
    else:
        if not 0 <= count * 2 <= size - at:
            raise Malformed("topics")
        topics: list[MetadataRequestTopic] = []
        for _ in range(count):
            topic, at = read_metadata_request_topic_v0(data, at, size)
            topics.append(topic)
        message.topics = topics
    (
        message.allow_auto_topic_creation,
        message.include_cluster_authorized_operations,
        message.include_topic_authorized_operations,
    ) = unpack_boolx3(data, at)
    at += 3
    return message, at


def write_v8(message: MetadataRequest, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    if topics is None:
        add(b"\xff\xff\xff\xff")
    else:
        add(pack_i4(len(topics)))
        for topic in topics:
            write_metadata_request_topic_v0(topic, add)
    add(
        pack_boolx3(
            message.allow_auto_topic_creation,
            message.include_cluster_authorized_operations,
            message.include_topic_authorized_operations,
        )
    )


# MetadataRequestTopic in version 9
def read_metadata_request_topic_v9(data: Buffer, at: int, size: int) -> tuple[MetadataRequestTopic, int]:
    message = new(MetadataRequestTopic)
    message.topic_id = ZERO_UUID
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("name")
    message.name = str(data[at:end], "utf-8")
    at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_metadata_request_topic_v9(message: MetadataRequestTopic, add: Add) -> None:
    if message.name is None:
        raise Unwritable("name")
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# MetadataRequest in version 9
def read_v9(data: Buffer, at: int, size: int) -> tuple[MetadataRequest, int]:
    message = new(MetadataRequest)
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        message.topics = None
    else:
        count -= 1
        if not 0 <= count * 2 <= size - at:
            raise Malformed("topics")
        topics: list[MetadataRequestTopic] = []
        for _ in range(count):
            topic, at = read_metadata_request_topic_v9(data, at, size)
            topics.append(topic)
        message.topics = topics
    (
        message.allow_auto_topic_creation,
        message.include_cluster_authorized_operations,
        message.include_topic_authorized_operations,
        tags,
    ) = unpack_boolx3_u1(data, at)
    at += 4
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v9(message: MetadataRequest, add: Add) -> None:
    topics = message.topics
    if topics is None:
        add(b"\x00")
    else:
        add(compact_length[len(topics)])
        for topic in topics:
            write_metadata_request_topic_v9(topic, add)
    add(
        pack_boolx3(
            message.allow_auto_topic_creation,
            message.include_cluster_authorized_operations,
            message.include_topic_authorized_operations,
        )
    )
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# MetadataRequestTopic in versions 10–13
def read_metadata_request_topic_v10(data: Buffer, at: int, size: int) -> tuple[MetadataRequestTopic, int]:
    message = new(MetadataRequestTopic)
    message.unknown_tags = ()
    message.topic_id, length = unpack_uuid_u1(data, at)
    at += 17
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
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_metadata_request_topic_v10(message: MetadataRequestTopic, add: Add) -> None:
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
    name = message.name
    if name is None:
        add(b"\x00")
    else:
        name_bytes = name.encode()
        add(compact_string_length[len(name_bytes)])
        add(name_bytes)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# MetadataRequest in version 10
def read_v10(data: Buffer, at: int, size: int) -> tuple[MetadataRequest, int]:
    message = new(MetadataRequest)
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        message.topics = None
    else:
        count -= 1
        if not 0 <= count * 18 <= size - at:
            raise Malformed("topics")
        topics: list[MetadataRequestTopic] = []
        for _ in range(count):
            topic, at = read_metadata_request_topic_v10(data, at, size)
            topics.append(topic)
        message.topics = topics
    (
        message.allow_auto_topic_creation,
        message.include_cluster_authorized_operations,
        message.include_topic_authorized_operations,
        tags,
    ) = unpack_boolx3_u1(data, at)
    at += 4
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v10(message: MetadataRequest, add: Add) -> None:
    topics = message.topics
    if topics is None:
        add(b"\x00")
    else:
        add(compact_length[len(topics)])
        for topic in topics:
            write_metadata_request_topic_v10(topic, add)
    add(
        pack_boolx3(
            message.allow_auto_topic_creation,
            message.include_cluster_authorized_operations,
            message.include_topic_authorized_operations,
        )
    )
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# MetadataRequest in versions 11–13
def read_v11(data: Buffer, at: int, size: int) -> tuple[MetadataRequest, int]:
    message = new(MetadataRequest)
    message.include_cluster_authorized_operations = False
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        message.topics = None
    else:
        count -= 1
        if not 0 <= count * 18 <= size - at:
            raise Malformed("topics")
        topics: list[MetadataRequestTopic] = []
        for _ in range(count):
            topic, at = read_metadata_request_topic_v10(data, at, size)
            topics.append(topic)
        message.topics = topics
    (
        message.allow_auto_topic_creation,
        message.include_topic_authorized_operations,
        tags,
    ) = unpack_boolx2_u1(data, at)
    at += 3
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v11(message: MetadataRequest, add: Add) -> None:
    if message.include_cluster_authorized_operations:
        raise Unwritable("include_cluster_authorized_operations")
    topics = message.topics
    if topics is None:
        add(b"\x00")
    else:
        add(compact_length[len(topics)])
        for topic in topics:
            write_metadata_request_topic_v10(topic, add)
    add(pack_boolx2(message.allow_auto_topic_creation, message.include_topic_authorized_operations))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[MetadataRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v1, write_v1),
    3: (read_v1, write_v1),
    4: (read_v4, write_v4),
    5: (read_v4, write_v4),
    6: (read_v4, write_v4),
    7: (read_v4, write_v4),
    8: (read_v8, write_v8),
    9: (read_v9, write_v9),
    10: (read_v10, write_v10),
    11: (read_v11, write_v11),
    12: (read_v11, write_v11),
    13: (read_v11, write_v11),
}

# what JSON and error messages know of the fields
MetadataRequestTopic.FIELDS = (
    Field("topic_id", "topicId", "uuid", (10, 13), ignorable=True),
    Field("name", "name", "string", (0, 13), nullable=(10, 13)),
)
MetadataRequest.FIELDS = (
    Field(
        "topics",
        "topics",
        "[]MetadataRequestTopic",
        (0, 13),
        nullable=(1, 13),
        struct=MetadataRequestTopic,
    ),
    Field("allow_auto_topic_creation", "allowAutoTopicCreation", "bool", (4, 13)),
    Field("include_cluster_authorized_operations", "includeClusterAuthorizedOperations", "bool", (8, 10)),
    Field("include_topic_authorized_operations", "includeTopicAuthorizedOperations", "bool", (8, 13)),
)
