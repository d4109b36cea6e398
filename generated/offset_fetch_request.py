"""OffsetFetchRequest, versions 0–10: its classes, and one read and write pair per layout.

Generated from schemas/OffsetFetchRequest.json by `python -m codegen`; edits here are lost.
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
    int32_array,
    left_over,
    new,
    read_string_length,
    read_tags,
    read_uvarint,
    write_tags,
)

pack_bool: Final = struct.Struct(">?").pack
pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
pack_uuid: Final = struct.Struct(">16s").pack
unpack_bool_u1: Final = struct.Struct(">?B").unpack_from
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_uuid_u1: Final = struct.Struct(">16sB").unpack_from


@define(weakref_slot=False)
class OffsetFetchRequestTopic(Struct):
    """The partitions wanted of that group; null (version 2 on) for all the group has committed.

    Attributes:
        name: The topic of the wanted partitions.
        partition_indexes: The partition numbers wanted of this topic.
    """

    name: str = ""
    partition_indexes: list[int] = Factory(list)


@define(weakref_slot=False)
class OffsetFetchRequestTopics(Struct):
    """The partitions wanted of this group; null for all it has committed.

    Attributes:
        name: The topic of the wanted partitions, in versions 8 and 9.
        topic_id: The topic's id in place of its name, from version 10 on.
        partition_indexes: The partition numbers wanted of this topic of the group.
    """

    name: str = ""
    topic_id: Uuid = ZERO_UUID
    partition_indexes: list[int] = Factory(list)


@define(weakref_slot=False)
class OffsetFetchRequestGroup(Struct):
    """The groups whose offsets are wanted, from version 8 on; a consumer asks for its own only.

    Attributes:
        group_id: The group whose committed offsets this entry asks for.
        member_id: The asking member, checked together with its epoch in the consumer protocol; null for
            classic members and tools.
        member_epoch: The asking member's epoch in the consumer protocol; an outdated one gets
            STALE_MEMBER_EPOCH. -1 for classic members and tools.
        topics: The partitions wanted of this group; null for all it has committed.
    """

    group_id: str = ""
    member_id: str | None = None
    member_epoch: int = -1
    topics: list[OffsetFetchRequestTopics] | None = Factory(list)


@define(weakref_slot=False)
class OffsetFetchRequest(Message):
    """Reads committed offsets from the group's coordinator; a consumer starts every partition it is assigned
    from the answer.

    Attributes:
        group_id: The group whose offsets are wanted; versions below 8 take a single one.
        topics: The partitions wanted of that group; null (version 2 on) for all the group has committed.
        groups: The groups whose offsets are wanted, from version 8 on; a consumer asks for its own only.
        require_stable: True to get UNSTABLE_OFFSET_COMMIT for partitions with an unfinished transactional
            commit rather than a value that may still change.
    """

    NAME: ClassVar[str] = "OffsetFetchRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 9
    VERSIONS: ClassVar[tuple[int, int]] = (0, 10)
    FLEXIBLE_SINCE: ClassVar[int | None] = 6

    group_id: str = ""
    topics: list[OffsetFetchRequestTopic] | None = Factory(list)
    groups: list[OffsetFetchRequestGroup] = Factory(list)
    require_stable: bool = False


# OffsetFetchRequestTopic in versions 0–5
def read_offset_fetch_request_topic_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetFetchRequestTopic, int]:
    message = new(OffsetFetchRequestTopic)
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("name")
    message.name = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 4 <= size - at:
        raise Malformed("partition_indexes")
    message.partition_indexes = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    return message, at


def write_offset_fetch_request_topic_v0(message: OffsetFetchRequestTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    partition_indexes = message.partition_indexes
    add(pack_i4(len(partition_indexes)))
    add(int32_array[len(partition_indexes)].pack(*partition_indexes))


# OffsetFetchRequest in versions 0–1
def read_v0(data: Buffer, at: int, size: int) -> tuple[OffsetFetchRequest, int]:
    message = new(OffsetFetchRequest)
    message.groups = []
    message.require_stable = False
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[OffsetFetchRequestTopic] = []
    for _ in range(count):
        topic, at = read_offset_fetch_request_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v0(message: OffsetFetchRequest, add: Add) -> None:
    if message.groups != []:
        raise Unwritable("groups")
    if message.require_stable:
        raise Unwritable("require_stable")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    group_id = message.group_id.encode()
    add(pack_i2(len(group_id)))
    add(group_id)
    if message.topics is None:
        raise Unwritable("topics")
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        write_offset_fetch_request_topic_v0(topic, add)


# OffsetFetchRequest in versions 2–5
def read_v2(data: Buffer, at: int, size: int) -> tuple[OffsetFetchRequest, int]:
    message = new(OffsetFetchRequest)
    message.groups = []
    message.require_stable = False
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if count == -1:
        message.topics = None
    else:
        if not 0 <= count * 6 <= size - at:
            raise Malformed("topics")
        topics: list[OffsetFetchRequestTopic] = []
        for _ in range(count):
            topic, at = read_offset_fetch_request_topic_v0(data, at, size)
            topics.append(topic)
        message.topics = topics
    return message, at


def write_v2(message: OffsetFetchRequest, add: Add) -> None:
    if message.groups != []:
        raise Unwritable("groups")
    if message.require_stable:
        raise Unwritable("require_stable")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    group_id = message.group_id.encode()
    add(pack_i2(len(group_id)))
    add(group_id)
    topics = message.topics
    if topics is None:
        add(b"\xff\xff\xff\xff")
    else:
        add(pack_i4(len(topics)))
        for topic in topics:
            write_offset_fetch_request_topic_v0(topic, add)


# OffsetFetchRequestTopic in versions 6–7
def read_offset_fetch_request_topic_v6(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetFetchRequestTopic, int]:
    message = new(OffsetFetchRequestTopic)
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
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 4 <= size - at:
        raise Malformed("partition_indexes")
    message.partition_indexes = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_offset_fetch_request_topic_v6(message: OffsetFetchRequestTopic, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    partition_indexes = message.partition_indexes
    add(compact_length[len(partition_indexes)])
    add(int32_array[len(partition_indexes)].pack(*partition_indexes))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetFetchRequest in version 6
def read_v6(data: Buffer, at: int, size: int) -> tuple[OffsetFetchRequest, int]:
    message = new(OffsetFetchRequest)
    message.groups = []
    message.require_stable = False
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
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        message.topics = None
    else:
        count -= 1
        if not 0 <= count * 3 <= size - at:
            raise Malformed("topics")
        topics: list[OffsetFetchRequestTopic] = []
        for _ in range(count):
            topic, at = read_offset_fetch_request_topic_v6(data, at, size)
            topics.append(topic)
        message.topics = topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v6(message: OffsetFetchRequest, add: Add) -> None:
    if message.groups != []:
        raise Unwritable("groups")
    if message.require_stable:
        raise Unwritable("require_stable")
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    topics = message.topics
    if topics is None:
        add(b"\x00")
    else:
        add(compact_length[len(topics)])
        for topic in topics:
            write_offset_fetch_request_topic_v6(topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetFetchRequest in version 7
def read_v7(data: Buffer, at: int, size: int) -> tuple[OffsetFetchRequest, int]:
    message = new(OffsetFetchRequest)
    message.groups = []
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
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        message.topics = None
    else:
        count -= 1
        if not 0 <= count * 3 <= size - at:
            raise Malformed("topics")
        topics: list[OffsetFetchRequestTopic] = []
        for _ in range(count):
            topic, at = read_offset_fetch_request_topic_v6(data, at, size)
            topics.append(topic)
        message.topics = topics
    message.require_stable, tags = unpack_bool_u1(data, at)
    at += 2
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v7(message: OffsetFetchRequest, add: Add) -> None:
    if message.groups != []:
        raise Unwritable("groups")
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    topics = message.topics
    if topics is None:
        add(b"\x00")
    else:
        add(compact_length[len(topics)])
        for topic in topics:
            write_offset_fetch_request_topic_v6(topic, add)
    add(pack_bool(message.require_stable))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetFetchRequestTopics in versions 8–9
def read_offset_fetch_request_topics_v8(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetFetchRequestTopics, int]:
    message = new(OffsetFetchRequestTopics)
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
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 4 <= size - at:
        raise Malformed("partition_indexes")
    message.partition_indexes = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_offset_fetch_request_topics_v8(message: OffsetFetchRequestTopics, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    partition_indexes = message.partition_indexes
    add(compact_length[len(partition_indexes)])
    add(int32_array[len(partition_indexes)].pack(*partition_indexes))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetFetchRequestGroup in version 8
def read_offset_fetch_request_group_v8(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetFetchRequestGroup, int]:
    message = new(OffsetFetchRequestGroup)
    message.member_id = None
    message.member_epoch = -1
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
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        message.topics = None
    else:
        count -= 1
        if not 0 <= count * 3 <= size - at:
            raise Malformed("topics")
        topics: list[OffsetFetchRequestTopics] = []
        for _ in range(count):
            topic, at = read_offset_fetch_request_topics_v8(data, at, size)
            topics.append(topic)
        message.topics = topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_offset_fetch_request_group_v8(message: OffsetFetchRequestGroup, add: Add) -> None:
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    topics = message.topics
    if topics is None:
        add(b"\x00")
    else:
        add(compact_length[len(topics)])
        for topic in topics:
            write_offset_fetch_request_topics_v8(topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetFetchRequest in version 8
def read_v8(data: Buffer, at: int, size: int) -> tuple[OffsetFetchRequest, int]:
    message = new(OffsetFetchRequest)
    message.group_id = ""
    message.topics = []
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("groups")
    groups: list[OffsetFetchRequestGroup] = []
    for _ in range(count):
        group, at = read_offset_fetch_request_group_v8(data, at, size)
        groups.append(group)
    message.groups = groups
    message.require_stable, tags = unpack_bool_u1(data, at)
    at += 2
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v8(message: OffsetFetchRequest, add: Add) -> None:
    if message.group_id != "":
        raise Unwritable("group_id")
    if message.topics != []:
        raise Unwritable("topics")
    groups = message.groups
    add(compact_length[len(groups)])
    for group in groups:
        write_offset_fetch_request_group_v8(group, add)
    add(pack_bool(message.require_stable))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetFetchRequestGroup in version 9
def read_offset_fetch_request_group_v9(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetFetchRequestGroup, int]:
    message = new(OffsetFetchRequestGroup)
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
    if length == 0:
        message.member_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("member_id")
        message.member_id = str(data[at:end], "utf-8")
        at = end
    message.member_epoch, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        message.topics = None
    else:
        count -= 1
        if not 0 <= count * 3 <= size - at:
            raise Malformed("topics")
        topics: list[OffsetFetchRequestTopics] = []
        for _ in range(count):
            topic, at = read_offset_fetch_request_topics_v8(data, at, size)
            topics.append(topic)
        message.topics = topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_offset_fetch_request_group_v9(message: OffsetFetchRequestGroup, add: Add) -> None:
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    member_id = message.member_id
    if member_id is None:
        add(b"\x00")
    else:
        member_id_bytes = member_id.encode()
        add(compact_string_length[len(member_id_bytes)])
        add(member_id_bytes)
    add(pack_i4(message.member_epoch))
    topics = message.topics
    if topics is None:
        add(b"\x00")
    else:
        add(compact_length[len(topics)])
        for topic in topics:
            write_offset_fetch_request_topics_v8(topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetFetchRequest in version 9
def read_v9(data: Buffer, at: int, size: int) -> tuple[OffsetFetchRequest, int]:
    message = new(OffsetFetchRequest)
    message.group_id = ""
    message.topics = []
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 8 <= size - at:
        raise Malformed("groups")
    groups: list[OffsetFetchRequestGroup] = []
    for _ in range(count):
        group, at = read_offset_fetch_request_group_v9(data, at, size)
        groups.append(group)
    message.groups = groups
    message.require_stable, tags = unpack_bool_u1(data, at)
    at += 2
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v9(message: OffsetFetchRequest, add: Add) -> None:
    if message.group_id != "":
        raise Unwritable("group_id")
    if message.topics != []:
        raise Unwritable("topics")
    groups = message.groups
    add(compact_length[len(groups)])
    for group in groups:
        write_offset_fetch_request_group_v9(group, add)
    add(pack_bool(message.require_stable))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetFetchRequestTopics in version 10
def read_offset_fetch_request_topics_v10(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetFetchRequestTopics, int]:
    message = new(OffsetFetchRequestTopics)
    message.name = ""
    message.unknown_tags = ()
    message.topic_id, count = unpack_uuid_u1(data, at)
    at += 17
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 4 <= size - at:
        raise Malformed("partition_indexes")
    message.partition_indexes = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_offset_fetch_request_topics_v10(message: OffsetFetchRequestTopics, add: Add) -> None:
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
    partition_indexes = message.partition_indexes
    add(compact_length[len(partition_indexes)])
    add(int32_array[len(partition_indexes)].pack(*partition_indexes))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetFetchRequestGroup in version 10
def read_offset_fetch_request_group_v10(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[OffsetFetchRequestGroup, int]:
    message = new(OffsetFetchRequestGroup)
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
    if length == 0:
        message.member_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("member_id")
        message.member_id = str(data[at:end], "utf-8")
        at = end
    message.member_epoch, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        message.topics = None
    else:
        count -= 1
        if not 0 <= count * 18 <= size - at:
            raise Malformed("topics")
        topics: list[OffsetFetchRequestTopics] = []
        for _ in range(count):
            topic, at = read_offset_fetch_request_topics_v10(data, at, size)
            topics.append(topic)
        message.topics = topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_offset_fetch_request_group_v10(message: OffsetFetchRequestGroup, add: Add) -> None:
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    member_id = message.member_id
    if member_id is None:
        add(b"\x00")
    else:
        member_id_bytes = member_id.encode()
        add(compact_string_length[len(member_id_bytes)])
        add(member_id_bytes)
    add(pack_i4(message.member_epoch))
    topics = message.topics
    if topics is None:
        add(b"\x00")
    else:
        add(compact_length[len(topics)])
        for topic in topics:
            write_offset_fetch_request_topics_v10(topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# OffsetFetchRequest in version 10
def read_v10(data: Buffer, at: int, size: int) -> tuple[OffsetFetchRequest, int]:
    message = new(OffsetFetchRequest)
    message.group_id = ""
    message.topics = []
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 8 <= size - at:
        raise Malformed("groups")
    groups: list[OffsetFetchRequestGroup] = []
    for _ in range(count):
        group, at = read_offset_fetch_request_group_v10(data, at, size)
        groups.append(group)
    message.groups = groups
    message.require_stable, tags = unpack_bool_u1(data, at)
    at += 2
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v10(message: OffsetFetchRequest, add: Add) -> None:
    if message.group_id != "":
        raise Unwritable("group_id")
    if message.topics != []:
        raise Unwritable("topics")
    groups = message.groups
    add(compact_length[len(groups)])
    for group in groups:
        write_offset_fetch_request_group_v10(group, add)
    add(pack_bool(message.require_stable))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[OffsetFetchRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v2, write_v2),
    3: (read_v2, write_v2),
    4: (read_v2, write_v2),
    5: (read_v2, write_v2),
    6: (read_v6, write_v6),
    7: (read_v7, write_v7),
    8: (read_v8, write_v8),
    9: (read_v9, write_v9),
    10: (read_v10, write_v10),
}

# what JSON and error messages know of the fields
OffsetFetchRequestTopic.FIELDS = (
    Field("name", "name", "string", (0, 7)),
    Field("partition_indexes", "partitionIndexes", "[]int32", (0, 7)),
)
OffsetFetchRequestTopics.FIELDS = (
    Field("name", "name", "string", (8, 9), ignorable=True),
    Field("topic_id", "topicId", "uuid", (10, 10), ignorable=True),
    Field("partition_indexes", "partitionIndexes", "[]int32", (8, 10)),
)
OffsetFetchRequestGroup.FIELDS = (
    Field("group_id", "groupId", "string", (8, 10)),
    Field("member_id", "memberId", "string", (9, 10), nullable=(9, 10), ignorable=True),
    Field("member_epoch", "memberEpoch", "int32", (9, 10), ignorable=True),
    Field(
        "topics",
        "topics",
        "[]OffsetFetchRequestTopics",
        (8, 10),
        nullable=(8, 10),
        struct=OffsetFetchRequestTopics,
    ),
)
OffsetFetchRequest.FIELDS = (
    Field("group_id", "groupId", "string", (0, 7)),
    Field(
        "topics",
        "topics",
        "[]OffsetFetchRequestTopic",
        (0, 7),
        nullable=(2, 7),
        struct=OffsetFetchRequestTopic,
    ),
    Field("groups", "groups", "[]OffsetFetchRequestGroup", (8, 10), struct=OffsetFetchRequestGroup),
    Field("require_stable", "requireStable", "bool", (7, 10)),
)
