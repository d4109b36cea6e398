"""CreateTopicsRequest, versions 0–7: its classes, and one read and write pair per layout.

Generated from schemas/CreateTopicsRequest.json by `python -m codegen`; edits here are lost.
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
pack_i4_i2: Final = struct.Struct(">ih").pack
pack_i4_i2_i4: Final = struct.Struct(">ihi").pack
pack_i4x2: Final = struct.Struct(">ii").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_bool: Final = struct.Struct(">i?").unpack_from
unpack_i4_bool_u1: Final = struct.Struct(">i?B").unpack_from
unpack_i4_i2_i4: Final = struct.Struct(">ihi").unpack_from
unpack_i4_i2_u1: Final = struct.Struct(">ihB").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i4x2: Final = struct.Struct(">ii").unpack_from


@define(weakref_slot=False)
class CreatableReplicaAssignment(Struct):
    """Where to put each partition; empty to leave that to the controller.

    Attributes:
        partition_index: The partition's number within its topic.
        broker_ids: Broker ids of the replicas, the preferred leader first.
    """

    partition_index: int = 0
    broker_ids: list[int] = Factory(list)


@define(weakref_slot=False)
class CreatableTopicConfig(Struct):
    """Configuration in which the topic differs from the cluster's defaults.

    Attributes:
        name: The name of the topic configuration, for instance retention.ms.
        value: The value of the configuration, as text; null is refused.
    """

    name: str = ""
    value: str | None = ""


@define(weakref_slot=False)
class CreatableTopic(Struct):
    """The topics to create, each name once.

    Attributes:
        name: The name of the new topic: letters, digits, dot, dash and underscore, at most 249.
        num_partitions: How many partitions to create; -1 for the broker's default (version 4 on) or when
            Assignments say it.
        replication_factor: How many replicas each partition gets; -1 for the broker's default (version 4 on)
            or when Assignments say it.
        assignments: Where to put each partition; empty to leave that to the controller.
        configs: Configuration in which the topic differs from the cluster's defaults.
    """

    name: str = ""
    num_partitions: int = 0
    replication_factor: int = 0
    assignments: list[CreatableReplicaAssignment] = Factory(list)
    configs: list[CreatableTopicConfig] = Factory(list)


@define(weakref_slot=False)
class CreateTopicsRequest(Message):
    """Creates topics; answered when the controller knows them, which is before all brokers do.

    Attributes:
        topics: The topics to create, each name once.
        timeout_ms: Milliseconds to wait for the topics to be created; the creation goes on when they are
            over.
        validate_only: True to check the request without creating anything.
    """

    NAME: ClassVar[str] = "CreateTopicsRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 19
    VERSIONS: ClassVar[tuple[int, int]] = (0, 7)
    FLEXIBLE_SINCE: ClassVar[int | None] = 5

    topics: list[CreatableTopic] = Factory(list)
    timeout_ms: int = 60000
    validate_only: bool = False


# CreatableReplicaAssignment in versions 0–4
def read_creatable_replica_assignment_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[CreatableReplicaAssignment, int]:
    message = new(CreatableReplicaAssignment)
    message.unknown_tags = ()
    message.partition_index, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 4 <= size - at:
        raise Malformed("broker_ids")
    message.broker_ids = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    return message, at


def write_creatable_replica_assignment_v0(message: CreatableReplicaAssignment, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    broker_ids = message.broker_ids
    add(pack_i4x2(message.partition_index, len(broker_ids)))
    add(int32_array[len(broker_ids)].pack(*broker_ids))


# CreatableTopicConfig in versions 0–4
def read_creatable_topic_config_v0(data: Buffer, at: int, size: int) -> tuple[CreatableTopicConfig, int]:
    message = new(CreatableTopicConfig)
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("name")
    message.name = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    if length == -1:
        message.value = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("value")
        message.value = str(data[at:end], "utf-8")
        at = end
    return message, at


def write_creatable_topic_config_v0(message: CreatableTopicConfig, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    value_ = message.value
    if value_ is None:
        add(b"\xff\xff")
    else:
        value__bytes = value_.encode()
        add(pack_i2(len(value__bytes)))
        add(value__bytes)


# CreatableTopic in versions 0–4
def read_creatable_topic_v0(data: Buffer, at: int, size: int) -> tuple[CreatableTopic, int]:
    message = new(CreatableTopic)
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("name")
    message.name = str(data[at:end], "utf-8")
    at = end
    message.num_partitions, message.replication_factor, count = unpack_i4_i2_i4(data, at)
    at += 10
    if not 0 <= count * 8 <= size - at:
        raise Malformed("assignments")
    assignments: list[CreatableReplicaAssignment] = []
    for _ in range(count):
        assignment, at = read_creatable_replica_assignment_v0(data, at, size)
        assignments.append(assignment)
    message.assignments = assignments
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 4 <= size - at:
        raise Malformed("configs")
    configs: list[CreatableTopicConfig] = []
    for _ in range(count):
        config, at = read_creatable_topic_config_v0(data, at, size)
        configs.append(config)
    message.configs = configs
    return message, at


def write_creatable_topic_v0(message: CreatableTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    assignments = message.assignments
    add(pack_i4_i2_i4(message.num_partitions, message.replication_factor, len(assignments)))
    for assignment in assignments:
        write_creatable_replica_assignment_v0(assignment, add)
    configs = message.configs
    add(pack_i4(len(configs)))
    for config in configs:
        write_creatable_topic_config_v0(config, add)


# CreateTopicsRequest in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[CreateTopicsRequest, int]:
    message = new(CreateTopicsRequest)
    message.validate_only = False
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 16 <= size - at:
        raise Malformed("topics")
    topics: list[CreatableTopic] = []
    for _ in range(count):
        topic, at = read_creatable_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    (message.timeout_ms,) = unpack_i4(data, at)
    at += 4
    return message, at


def write_v0(message: CreateTopicsRequest, add: Add) -> None:
    if message.validate_only:
        raise Unwritable("validate_only")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        write_creatable_topic_v0(topic, add)
    add(pack_i4(message.timeout_ms))


# CreateTopicsRequest in versions 1–4
def read_v1(data: Buffer, at: int, size: int) -> tuple[CreateTopicsRequest, int]:
    message = new(CreateTopicsRequest)
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 16 <= size - at:
        raise Malformed("topics")
    topics: list[CreatableTopic] = []
    for _ in range(count):
        topic, at = read_creatable_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    message.timeout_ms, message.validate_only = unpack_i4_bool(data, at)
    at += 5
    return message, at


def write_v1(message: CreateTopicsRequest, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        write_creatable_topic_v0(topic, add)
    add(pack_i4_bool(message.timeout_ms, message.validate_only))


# CreatableReplicaAssignment in versions 5–7
def read_creatable_replica_assignment_v5(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[CreatableReplicaAssignment, int]:
    message = new(CreatableReplicaAssignment)
    message.unknown_tags = ()
    message.partition_index, count = unpack_i4_u1(data, at)
    at += 5
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


def write_creatable_replica_assignment_v5(message: CreatableReplicaAssignment, add: Add) -> None:
    add(pack_i4(message.partition_index))
    broker_ids = message.broker_ids
    add(compact_length[len(broker_ids)])
    add(int32_array[len(broker_ids)].pack(*broker_ids))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# CreatableTopicConfig in versions 5–7
def read_creatable_topic_config_v5(data: Buffer, at: int, size: int) -> tuple[CreatableTopicConfig, int]:
    message = new(CreatableTopicConfig)
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
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.value = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("value")
        message.value = str(data[at:end], "utf-8")
        at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_creatable_topic_config_v5(message: CreatableTopicConfig, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    value_ = message.value
    if value_ is None:
        add(b"\x00")
    else:
        value__bytes = value_.encode()
        add(compact_string_length[len(value__bytes)])
        add(value__bytes)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# CreatableTopic in versions 5–7
def read_creatable_topic_v5(data: Buffer, at: int, size: int) -> tuple[CreatableTopic, int]:
    message = new(CreatableTopic)
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
    message.num_partitions, message.replication_factor, count = unpack_i4_i2_u1(data, at)
    at += 7
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 6 <= size - at:
        raise Malformed("assignments")
    assignments: list[CreatableReplicaAssignment] = []
    for _ in range(count):
        assignment, at = read_creatable_replica_assignment_v5(data, at, size)
        assignments.append(assignment)
    message.assignments = assignments
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("configs")
    configs: list[CreatableTopicConfig] = []
    for _ in range(count):
        config, at = read_creatable_topic_config_v5(data, at, size)
        configs.append(config)
    message.configs = configs
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_creatable_topic_v5(message: CreatableTopic, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    add(pack_i4_i2(message.num_partitions, message.replication_factor))
    assignments = message.assignments
    add(compact_length[len(assignments)])
    for assignment in assignments:
        write_creatable_replica_assignment_v5(assignment, add)
    configs = message.configs
    add(compact_length[len(configs)])
    for config in configs:
        write_creatable_topic_config_v5(config, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# CreateTopicsRequest in versions 5–7
def read_v5(data: Buffer, at: int, size: int) -> tuple[CreateTopicsRequest, int]:
    message = new(CreateTopicsRequest)
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 10 <= size - at:
        raise Malformed("topics")
    topics: list[CreatableTopic] = []
    for _ in range(count):
        topic, at = read_creatable_topic_v5(data, at, size)
        topics.append(topic)
    message.topics = topics
    message.timeout_ms, message.validate_only, tags = unpack_i4_bool_u1(data, at)
    at += 6
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v5(message: CreateTopicsRequest, add: Add) -> None:
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_creatable_topic_v5(topic, add)
    add(pack_i4_bool(message.timeout_ms, message.validate_only))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[CreateTopicsRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v1, write_v1),
    3: (read_v1, write_v1),
    4: (read_v1, write_v1),
    5: (read_v5, write_v5),
    6: (read_v5, write_v5),
    7: (read_v5, write_v5),
}

# what JSON and error messages know of the fields
CreatableReplicaAssignment.FIELDS = (
    Field("partition_index", "partitionIndex", "int32", (0, 7)),
    Field("broker_ids", "brokerIds", "[]int32", (0, 7)),
)
CreatableTopicConfig.FIELDS = (
    Field("name", "name", "string", (0, 7)),
    Field("value", "value", "string", (0, 7), nullable=(0, 7)),
)
CreatableTopic.FIELDS = (
    Field("name", "name", "string", (0, 7)),
    Field("num_partitions", "numPartitions", "int32", (0, 7)),
    Field("replication_factor", "replicationFactor", "int16", (0, 7)),
    Field(
        "assignments",
        "assignments",
        "[]CreatableReplicaAssignment",
        (0, 7),
        struct=CreatableReplicaAssignment,
    ),
    Field("configs", "configs", "[]CreatableTopicConfig", (0, 7), struct=CreatableTopicConfig),
)
CreateTopicsRequest.FIELDS = (
    Field("topics", "topics", "[]CreatableTopic", (0, 7), struct=CreatableTopic),
    Field("timeout_ms", "timeoutMs", "int32", (0, 7)),
    Field("validate_only", "validateOnly", "bool", (1, 7)),
)
