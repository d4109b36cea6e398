"""CreatePartitionsRequest, versions 0–3: its classes, and one read and write pair per layout.

Generated from schemas/CreatePartitionsRequest.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import Factory, define

from kclient.protocol.message import Field, Message, Struct
from kclient.protocol.primitives import (
    Add,
    Buffer,
    Codec,
    Malformed,
    Unwritable,
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

pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
pack_i4_bool: Final = struct.Struct(">i?").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_bool: Final = struct.Struct(">i?").unpack_from
unpack_i4_bool_u1: Final = struct.Struct(">i?B").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i4x2: Final = struct.Struct(">ii").unpack_from


@define(weakref_slot=False)
class CreatePartitionsAssignment(Struct):
    """Where to put each new partition; null to leave that to the controller.

    Attributes:
        broker_ids: Broker ids of the new partition's replicas, the preferred leader first.
    """

    broker_ids: list[int] = Factory(list)


@define(weakref_slot=False)
class CreatePartitionsTopic(Struct):
    """The topics that are to grow.

    Attributes:
        name: The name of the topic that is to grow.
        count: How many partitions the topic is to have in all, not how many are added.
        assignments: Where to put each new partition; null to leave that to the controller.
    """

    name: str = ""
    count: int = 0
    assignments: list[CreatePartitionsAssignment] | None = Factory(list)


@define(weakref_slot=False)
class CreatePartitionsRequest(Message):
    """Adds partitions to topics; their number can never go down.

    Attributes:
        topics: The topics that are to grow.
        timeout_ms: Milliseconds to wait for the partitions; the creation goes on when they are over.
        validate_only: True to check the request without creating anything.
    """

    NAME: ClassVar[str] = "CreatePartitionsRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 37
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE_SINCE: ClassVar[int | None] = 2

    topics: list[CreatePartitionsTopic] = Factory(list)
    timeout_ms: int = 0
    validate_only: bool = False


# CreatePartitionsAssignment in versions 0–1
def read_create_partitions_assignment_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[CreatePartitionsAssignment, int]:
    message = new(CreatePartitionsAssignment)
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 4 <= size - at:
        raise Malformed("broker_ids")
    message.broker_ids = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    return message, at


def write_create_partitions_assignment_v0(message: CreatePartitionsAssignment, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    broker_ids = message.broker_ids
    add(pack_i4(len(broker_ids)))
    add(int32_array[len(broker_ids)].pack(*broker_ids))


# CreatePartitionsTopic in versions 0–1
def read_create_partitions_topic_v0(data: Buffer, at: int, size: int) -> tuple[CreatePartitionsTopic, int]:
    message = new(CreatePartitionsTopic)
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("name")
    message.name = str(data[at:end], "utf-8")
    at = end
    message.count, count = unpack_i4x2(data, at)
    at += 8
    if count == -1:
        message.assignments = None
    else:
        if not 0 <= count * 4 <= size - at:
            raise Malformed("assignments")
        assignments: list[CreatePartitionsAssignment] = []
        for _ in range(count):
            assignment, at = read_create_partitions_assignment_v0(data, at, size)
            assignments.append(assignment)
        message.assignments = assignments
    return message, at


def write_create_partitions_topic_v0(message: CreatePartitionsTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    add(pack_i4(message.count))
    assignments = message.assignments
    if assignments is None:
        add(b"\xff\xff\xff\xff")
    else:
        add(pack_i4(len(assignments)))
        for assignment in assignments:
            write_create_partitions_assignment_v0(assignment, add)


# CreatePartitionsRequest in versions 0–1
def read_v0(data: Buffer, at: int, size: int) -> tuple[CreatePartitionsRequest, int]:
    message = new(CreatePartitionsRequest)
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 10 <= size - at:
        raise Malformed("topics")
    topics: list[CreatePartitionsTopic] = []
    for _ in range(count):
        topic, at = read_create_partitions_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    message.timeout_ms, message.validate_only = unpack_i4_bool(data, at)
    at += 5
    return message, at


def write_v0(message: CreatePartitionsRequest, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        write_create_partitions_topic_v0(topic, add)
    add(pack_i4_bool(message.timeout_ms, message.validate_only))


# CreatePartitionsAssignment in versions 2–3
def read_create_partitions_assignment_v2(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[CreatePartitionsAssignment, int]:
    message = new(CreatePartitionsAssignment)
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 4 <= size - at:
        raise Malformed("broker_ids")
    message.broker_ids = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_create_partitions_assignment_v2(message: CreatePartitionsAssignment, add: Add) -> None:
    broker_ids = message.broker_ids
    add(compact_length[len(broker_ids)])
    add(int32_array[len(broker_ids)].pack(*broker_ids))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# CreatePartitionsTopic in versions 2–3
def read_create_partitions_topic_v2(data: Buffer, at: int, size: int) -> tuple[CreatePartitionsTopic, int]:
    message = new(CreatePartitionsTopic)
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
    message.count, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        message.assignments = None
    else:
        count -= 1
        if not 0 <= count * 2 <= size - at:
            raise Malformed("assignments")
        assignments: list[CreatePartitionsAssignment] = []
        for _ in range(count):
            assignment, at = read_create_partitions_assignment_v2(data, at, size)
            assignments.append(assignment)
        message.assignments = assignments
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_create_partitions_topic_v2(message: CreatePartitionsTopic, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    add(pack_i4(message.count))
    assignments = message.assignments
    if assignments is None:
        add(b"\x00")
    else:
        add(compact_length[len(assignments)])
        for assignment in assignments:
            write_create_partitions_assignment_v2(assignment, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# CreatePartitionsRequest in versions 2–3
def read_v2(data: Buffer, at: int, size: int) -> tuple[CreatePartitionsRequest, int]:
    message = new(CreatePartitionsRequest)
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 7 <= size - at:
        raise Malformed("topics")
    topics: list[CreatePartitionsTopic] = []
    for _ in range(count):
        topic, at = read_create_partitions_topic_v2(data, at, size)
        topics.append(topic)
    message.topics = topics
    message.timeout_ms, message.validate_only, tags = unpack_i4_bool_u1(data, at)
    at += 6
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v2(message: CreatePartitionsRequest, add: Add) -> None:
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_create_partitions_topic_v2(topic, add)
    add(pack_i4_bool(message.timeout_ms, message.validate_only))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[CreatePartitionsRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v2, write_v2),
    3: (read_v2, write_v2),
}

# what JSON and error messages know of the fields
CreatePartitionsAssignment.FIELDS = (Field("broker_ids", "brokerIds", "[]int32", (0, 3)),)
CreatePartitionsTopic.FIELDS = (
    Field("name", "name", "string", (0, 3)),
    Field("count", "count", "int32", (0, 3)),
    Field(
        "assignments",
        "assignments",
        "[]CreatePartitionsAssignment",
        (0, 3),
        nullable=(0, 3),
        struct=CreatePartitionsAssignment,
    ),
)
CreatePartitionsRequest.FIELDS = (
    Field("topics", "topics", "[]CreatePartitionsTopic", (0, 3), struct=CreatePartitionsTopic),
    Field("timeout_ms", "timeoutMs", "int32", (0, 3)),
    Field("validate_only", "validateOnly", "bool", (0, 3)),
)
