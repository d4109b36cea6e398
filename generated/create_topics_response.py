"""CreateTopicsResponse, versions 0–7: its classes, and one read and write pair per layout.

Generated from schemas/CreateTopicsResponse.json by `python -m codegen`; edits here are lost.
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
    read_whole,
    write_tags,
    written,
)

pack_bool_i1_bool: Final = struct.Struct(">?b?").pack
pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
pack_i4_i2: Final = struct.Struct(">ih").pack
pack_i4x2: Final = struct.Struct(">ii").pack
pack_uuid_i2: Final = struct.Struct(">16sh").pack
unpack_bool_i1_bool_u1: Final = struct.Struct(">?b?B").unpack_from
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i2_u1: Final = struct.Struct(">hB").unpack_from
unpack_i2x2: Final = struct.Struct(">hh").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_i2_u1: Final = struct.Struct(">ihB").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i4x2: Final = struct.Struct(">ii").unpack_from
unpack_uuid_i2_u1: Final = struct.Struct(">16shB").unpack_from


@define(weakref_slot=False)
class CreatableTopicConfigs(Struct):
    """The configuration the topic ended up with, defaults included; null when not told.

    Attributes:
        name: The name of the topic configuration.
        value: The value of the configuration, as text; null when it is sensitive.
        read_only: True when it cannot be changed at run time.
        config_source: Where the value comes from: 1 topic, 2 broker, 3 cluster default, 4 broker's file, 5
            built-in default; -1 unknown.
        is_sensitive: True when the value is a secret and is therefore not told.
    """

    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False


@define(weakref_slot=False)
class CreatableTopicResult(Struct):
    """One result per asked topic.

    Attributes:
        name: The topic this result is about.
        topic_id: The id of the new topic; zero on error.
        error_code: 0 when created; TOPIC_ALREADY_EXISTS (36) when there was one.
        error_message: The broker's explanation of ErrorCode, for people; null when there is none.
        topic_config_error_code: 0, or why the configuration below is not told, as a rule for lack of
            authorization.
        num_partitions: How many partitions the topic has; -1 when not told.
        replication_factor: How many replicas each partition has; -1 when not told.
        configs: The configuration the topic ended up with, defaults included; null when not told.
    """

    name: str = ""
    topic_id: Uuid = ZERO_UUID
    error_code: int = 0
    error_message: str | None = ""
    topic_config_error_code: int = 0
    num_partitions: int = -1
    replication_factor: int = -1
    configs: list[CreatableTopicConfigs] | None = Factory(list)


@define(weakref_slot=False)
class CreateTopicsResponse(Message):
    """Says topic by topic whether it was created, and how it came out.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Since version 3 the answer is immediate and
            the client must stay silent that long; before, the broker had already held the answer back.
        topics: One result per asked topic.
    """

    NAME: ClassVar[str] = "CreateTopicsResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 19
    VERSIONS: ClassVar[tuple[int, int]] = (0, 7)
    FLEXIBLE_SINCE: ClassVar[int | None] = 5

    throttle_time_ms: int = 0
    topics: list[CreatableTopicResult] = Factory(list)


# CreatableTopicResult in version 0
def read_creatable_topic_result_v0(data: Buffer, at: int, size: int) -> tuple[CreatableTopicResult, int]:
    message = new(CreatableTopicResult)
    message.topic_id = ZERO_UUID
    message.error_message = ""
    message.topic_config_error_code = 0
    message.num_partitions = -1
    message.replication_factor = -1
    message.configs = []
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("name")
    message.name = str(data[at:end], "utf-8")
    at = end
    (message.error_code,) = unpack_i2(data, at)
    at += 2
    return message, at


def write_creatable_topic_result_v0(message: CreatableTopicResult, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    add(pack_i2(message.error_code))


# CreateTopicsResponse in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[CreateTopicsResponse, int]:
    message = new(CreateTopicsResponse)
    message.throttle_time_ms = 0
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 4 <= size - at:
        raise Malformed("topics")
    topics: list[CreatableTopicResult] = []
    for _ in range(count):
        topic, at = read_creatable_topic_result_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v0(message: CreateTopicsResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        write_creatable_topic_result_v0(topic, add)


# CreatableTopicResult in versions 1–4
def read_creatable_topic_result_v1(data: Buffer, at: int, size: int) -> tuple[CreatableTopicResult, int]:
    message = new(CreatableTopicResult)
    message.topic_id = ZERO_UUID
    message.topic_config_error_code = 0
    message.num_partitions = -1
    message.replication_factor = -1
    message.configs = []
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("name")
    message.name = str(data[at:end], "utf-8")
    at = end
    message.error_code, length = unpack_i2x2(data, at)
    at += 4
    if length == -1:
        message.error_message = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("error_message")
        message.error_message = str(data[at:end], "utf-8")
        at = end
    return message, at


def write_creatable_topic_result_v1(message: CreatableTopicResult, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    add(pack_i2(message.error_code))
    error_message = message.error_message
    if error_message is None:
        add(b"\xff\xff")
    else:
        error_message_bytes = error_message.encode()
        add(pack_i2(len(error_message_bytes)))
        add(error_message_bytes)


# CreateTopicsResponse in version 1
def read_v1(data: Buffer, at: int, size: int) -> tuple[CreateTopicsResponse, int]:
    message = new(CreateTopicsResponse)
    message.throttle_time_ms = 0
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[CreatableTopicResult] = []
    for _ in range(count):
        topic, at = read_creatable_topic_result_v1(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v1(message: CreateTopicsResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        write_creatable_topic_result_v1(topic, add)


# CreateTopicsResponse in versions 2–4
def read_v2(data: Buffer, at: int, size: int) -> tuple[CreateTopicsResponse, int]:
    message = new(CreateTopicsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[CreatableTopicResult] = []
    for _ in range(count):
        topic, at = read_creatable_topic_result_v1(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v2(message: CreateTopicsResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4x2(message.throttle_time_ms, len(topics)))
    for topic in topics:
        write_creatable_topic_result_v1(topic, add)


# CreatableTopicConfigs in versions 5–7
def read_creatable_topic_configs_v5(data: Buffer, at: int, size: int) -> tuple[CreatableTopicConfigs, int]:
    message = new(CreatableTopicConfigs)
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
    message.read_only, message.config_source, message.is_sensitive, tags = unpack_bool_i1_bool_u1(data, at)
    at += 4
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_creatable_topic_configs_v5(message: CreatableTopicConfigs, add: Add) -> None:
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
    add(pack_bool_i1_bool(message.read_only, message.config_source, message.is_sensitive))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


def read_creatable_topic_result_topic_config_error_code_tag_v5(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[int, int]:
    value: int
    (value,) = unpack_i2(data, at)
    at += 2
    return value, at


def write_creatable_topic_result_topic_config_error_code_tag_v5(value: int, add: Add) -> None:
    add(pack_i2(value))


# CreatableTopicResult in versions 5–6
def read_creatable_topic_result_v5(data: Buffer, at: int, size: int) -> tuple[CreatableTopicResult, int]:
    message = new(CreatableTopicResult)
    message.topic_id = ZERO_UUID
    message.topic_config_error_code = 0
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
    message.error_code, length = unpack_i2_u1(data, at)
    at += 3
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.error_message = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("error_message")
        message.error_message = str(data[at:end], "utf-8")
        at = end
    message.num_partitions, message.replication_factor, count = unpack_i4_i2_u1(data, at)
    at += 7
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        message.configs = None
    else:
        count -= 1
        if not 0 <= count * 6 <= size - at:
            raise Malformed("configs")
        configs: list[CreatableTopicConfigs] = []
        for _ in range(count):
            config, at = read_creatable_topic_configs_v5(data, at, size)
            configs.append(config)
        message.configs = configs
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        if 0 in found:
            message.topic_config_error_code = read_whole(
                read_creatable_topic_result_topic_config_error_code_tag_v5,
                found.pop(0),
            )
        message.unknown_tags = left_over(found)
    return message, at


def write_creatable_topic_result_v5(message: CreatableTopicResult, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    add(pack_i2(message.error_code))
    error_message = message.error_message
    if error_message is None:
        add(b"\x00")
    else:
        error_message_bytes = error_message.encode()
        add(compact_string_length[len(error_message_bytes)])
        add(error_message_bytes)
    add(pack_i4_i2(message.num_partitions, message.replication_factor))
    configs = message.configs
    if configs is None:
        add(b"\x00")
    else:
        add(compact_length[len(configs)])
        for config in configs:
            write_creatable_topic_configs_v5(config, add)
    tags: dict[int, bytes] = {}
    if message.topic_config_error_code != 0:
        tags[0] = written(
            write_creatable_topic_result_topic_config_error_code_tag_v5,
            message.topic_config_error_code,
        )
    if tags or message.unknown_tags:
        write_tags((0,), tags, message.unknown_tags, add)
    else:
        add(b"\x00")


# CreateTopicsResponse in versions 5–6
def read_v5(data: Buffer, at: int, size: int) -> tuple[CreateTopicsResponse, int]:
    message = new(CreateTopicsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 12 <= size - at:
        raise Malformed("topics")
    topics: list[CreatableTopicResult] = []
    for _ in range(count):
        topic, at = read_creatable_topic_result_v5(data, at, size)
        topics.append(topic)
    message.topics = topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v5(message: CreateTopicsResponse, add: Add) -> None:
    add(pack_i4(message.throttle_time_ms))
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_creatable_topic_result_v5(topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


def read_creatable_topic_result_topic_config_error_code_tag_v7(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[int, int]:
    value: int
    (value,) = unpack_i2(data, at)
    at += 2
    return value, at


def write_creatable_topic_result_topic_config_error_code_tag_v7(value: int, add: Add) -> None:
    add(pack_i2(value))


# CreatableTopicResult in version 7
def read_creatable_topic_result_v7(data: Buffer, at: int, size: int) -> tuple[CreatableTopicResult, int]:
    message = new(CreatableTopicResult)
    message.topic_config_error_code = 0
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
    message.topic_id, message.error_code, length = unpack_uuid_i2_u1(data, at)
    at += 19
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.error_message = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("error_message")
        message.error_message = str(data[at:end], "utf-8")
        at = end
    message.num_partitions, message.replication_factor, count = unpack_i4_i2_u1(data, at)
    at += 7
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        message.configs = None
    else:
        count -= 1
        if not 0 <= count * 6 <= size - at:
            raise Malformed("configs")
        configs: list[CreatableTopicConfigs] = []
        for _ in range(count):
            config, at = read_creatable_topic_configs_v5(data, at, size)
            configs.append(config)
        message.configs = configs
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        if 0 in found:
            message.topic_config_error_code = read_whole(
                read_creatable_topic_result_topic_config_error_code_tag_v7,
                found.pop(0),
            )
        message.unknown_tags = left_over(found)
    return message, at


def write_creatable_topic_result_v7(message: CreatableTopicResult, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid_i2(message.topic_id, message.error_code))
    error_message = message.error_message
    if error_message is None:
        add(b"\x00")
    else:
        error_message_bytes = error_message.encode()
        add(compact_string_length[len(error_message_bytes)])
        add(error_message_bytes)
    add(pack_i4_i2(message.num_partitions, message.replication_factor))
    configs = message.configs
    if configs is None:
        add(b"\x00")
    else:
        add(compact_length[len(configs)])
        for config in configs:
            write_creatable_topic_configs_v5(config, add)
    tags: dict[int, bytes] = {}
    if message.topic_config_error_code != 0:
        tags[0] = written(
            write_creatable_topic_result_topic_config_error_code_tag_v7,
            message.topic_config_error_code,
        )
    if tags or message.unknown_tags:
        write_tags((0,), tags, message.unknown_tags, add)
    else:
        add(b"\x00")


# CreateTopicsResponse in version 7
def read_v7(data: Buffer, at: int, size: int) -> tuple[CreateTopicsResponse, int]:
    message = new(CreateTopicsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 28 <= size - at:
        raise Malformed("topics")
    topics: list[CreatableTopicResult] = []
    for _ in range(count):
        topic, at = read_creatable_topic_result_v7(data, at, size)
        topics.append(topic)
    message.topics = topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v7(message: CreateTopicsResponse, add: Add) -> None:
    add(pack_i4(message.throttle_time_ms))
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_creatable_topic_result_v7(topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[CreateTopicsResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v2, write_v2),
    3: (read_v2, write_v2),
    4: (read_v2, write_v2),
    5: (read_v5, write_v5),
    6: (read_v5, write_v5),
    7: (read_v7, write_v7),
}

# what JSON and error messages know of the fields
CreatableTopicConfigs.FIELDS = (
    Field("name", "name", "string", (5, 7)),
    Field("value", "value", "string", (5, 7), nullable=(5, 7)),
    Field("read_only", "readOnly", "bool", (5, 7)),
    Field("config_source", "configSource", "int8", (5, 7), ignorable=True),
    Field("is_sensitive", "isSensitive", "bool", (5, 7)),
)
CreatableTopicResult.FIELDS = (
    Field("name", "name", "string", (0, 7)),
    Field("topic_id", "topicId", "uuid", (7, 7), ignorable=True),
    Field("error_code", "errorCode", "int16", (0, 7)),
    Field("error_message", "errorMessage", "string", (1, 7), nullable=(1, 7), ignorable=True),
    Field(
        "topic_config_error_code",
        "topicConfigErrorCode",
        "int16",
        (5, 7),
        tagged=(5, 7),
        tag=0,
        ignorable=True,
    ),
    Field("num_partitions", "numPartitions", "int32", (5, 7), ignorable=True),
    Field("replication_factor", "replicationFactor", "int16", (5, 7), ignorable=True),
    Field(
        "configs",
        "configs",
        "[]CreatableTopicConfigs",
        (5, 7),
        nullable=(5, 7),
        struct=CreatableTopicConfigs,
        ignorable=True,
    ),
)
CreateTopicsResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (2, 7), ignorable=True),
    Field("topics", "topics", "[]CreatableTopicResult", (0, 7), struct=CreatableTopicResult),
)
