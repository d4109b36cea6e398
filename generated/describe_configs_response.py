"""DescribeConfigsResponse, versions 0–4: its classes, and one read and write pair per layout.

Generated from schemas/DescribeConfigsResponse.json by `python -m codegen`; edits here are lost.
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
    left_over,
    new,
    read_string_length,
    read_tags,
    read_uvarint,
    write_tags,
)

pack_bool_i1_bool: Final = struct.Struct(">?b?").pack
pack_bool_i1_bool_i4: Final = struct.Struct(">?b?i").pack
pack_boolx3: Final = struct.Struct(">???").pack
pack_i1: Final = struct.Struct(">b").pack
pack_i1_i2: Final = struct.Struct(">bh").pack
pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
pack_i4x2: Final = struct.Struct(">ii").pack
unpack_bool_i1_bool_i4: Final = struct.Struct(">?b?i").unpack_from
unpack_bool_i1_bool_u1: Final = struct.Struct(">?b?B").unpack_from
unpack_boolx3: Final = struct.Struct(">???").unpack_from
unpack_i1: Final = struct.Struct(">b").unpack_from
unpack_i1_i2: Final = struct.Struct(">bh").unpack_from
unpack_i1_u1: Final = struct.Struct(">bB").unpack_from
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i2_u1: Final = struct.Struct(">hB").unpack_from
unpack_i2x2: Final = struct.Struct(">hh").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i4x2: Final = struct.Struct(">ii").unpack_from


@define(weakref_slot=False)
class DescribeConfigsSynonym(Struct):
    """The values this one overrides, strongest first; empty when not asked for.

    Attributes:
        name: The key under which that value was set.
        value: The overridden value, as text; null when it is sensitive.
        source: Where the value comes from: 1 topic, 2 broker, 3 cluster default, 4 broker's file, 5 built-in
            default, 6 broker logger, 7 client metrics, 8 group.
    """

    name: str = ""
    value: str | None = ""
    source: int = 0


@define(weakref_slot=False)
class DescribeConfigsResourceResult(Struct):
    """The keys of this thing with their values.

    Attributes:
        name: The name of the configuration key.
        value: The value in force, as text; null when it is sensitive or not set.
        read_only: True when it cannot be changed at run time.
        is_default: True when nobody has set the key. Version 0 only; ConfigSource says more later.
        config_source: Where the value comes from: 1 topic, 2 broker, 3 cluster default, 4 broker's file, 5
            built-in default, 6 broker logger, 7 client metrics, 8 group; -1 unknown.
        is_sensitive: True when the value is a secret and is therefore not told.
        synonyms: The values this one overrides, strongest first; empty when not asked for.
        config_type: 1 boolean, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 password; 0
            unknown.
        documentation: What the key means, in the broker's words; null when not asked for.
    """

    name: str = ""
    value: str | None = ""
    read_only: bool = False
    is_default: bool = False
    config_source: int = -1
    is_sensitive: bool = False
    synonyms: list[DescribeConfigsSynonym] = Factory(list)
    config_type: int = 0
    documentation: str | None = ""


@define(weakref_slot=False)
class DescribeConfigsResult(Struct):
    """One entry per asked thing.

    Attributes:
        error_code: 0, or why this thing's configuration cannot be told.
        error_message: The broker's explanation of ErrorCode, for people; null when there is none.
        resource_type: What kind of thing is configured: 2 topic, 4 broker, 8 broker logger, 16 client
            metrics, 32 group.
        resource_name: The name of the topic or group, or the broker's id as text.
        configs: The keys of this thing with their values.
    """

    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    configs: list[DescribeConfigsResourceResult] = Factory(list)


@define(weakref_slot=False)
class DescribeConfigsResponse(Message):
    """The configuration of each asked thing.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Since version 2 the answer is immediate and
            the client must stay silent that long; before, the broker had already held the answer back.
        results: One entry per asked thing.
    """

    NAME: ClassVar[str] = "DescribeConfigsResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 32
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_SINCE: ClassVar[int | None] = 4

    throttle_time_ms: int = 0
    results: list[DescribeConfigsResult] = Factory(list)


# DescribeConfigsResourceResult in version 0
def read_describe_configs_resource_result_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[DescribeConfigsResourceResult, int]:
    message = new(DescribeConfigsResourceResult)
    message.config_source = -1
    message.synonyms = []
    message.config_type = 0
    message.documentation = ""
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
    message.read_only, message.is_default, message.is_sensitive = unpack_boolx3(data, at)
    at += 3
    return message, at


def write_describe_configs_resource_result_v0(message: DescribeConfigsResourceResult, add: Add) -> None:
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
    add(pack_boolx3(message.read_only, message.is_default, message.is_sensitive))


# DescribeConfigsResult in version 0
def read_describe_configs_result_v0(data: Buffer, at: int, size: int) -> tuple[DescribeConfigsResult, int]:
    message = new(DescribeConfigsResult)
    message.unknown_tags = ()
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
    message.resource_type, length = unpack_i1_i2(data, at)
    at += 3
    end = at + length
    if not at <= end <= size:
        raise Malformed("resource_name")
    message.resource_name = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 7 <= size - at:
        raise Malformed("configs")
    configs: list[DescribeConfigsResourceResult] = []
    for _ in range(count):
        config, at = read_describe_configs_resource_result_v0(data, at, size)
        configs.append(config)
    message.configs = configs
    return message, at


def write_describe_configs_result_v0(message: DescribeConfigsResult, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i2(message.error_code))
    error_message = message.error_message
    if error_message is None:
        add(b"\xff\xff")
    else:
        error_message_bytes = error_message.encode()
        add(pack_i2(len(error_message_bytes)))
        add(error_message_bytes)
    resource_name = message.resource_name.encode()
    add(pack_i1_i2(message.resource_type, len(resource_name)))
    add(resource_name)
    configs = message.configs
    add(pack_i4(len(configs)))
    for config in configs:
        write_describe_configs_resource_result_v0(config, add)


# DescribeConfigsResponse in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[DescribeConfigsResponse, int]:
    message = new(DescribeConfigsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 11 <= size - at:
        raise Malformed("results")
    results: list[DescribeConfigsResult] = []
    for _ in range(count):
        result, at = read_describe_configs_result_v0(data, at, size)
        results.append(result)
    message.results = results
    return message, at


def write_v0(message: DescribeConfigsResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    results = message.results
    add(pack_i4x2(message.throttle_time_ms, len(results)))
    for result in results:
        write_describe_configs_result_v0(result, add)


# DescribeConfigsSynonym in versions 1–3
def read_describe_configs_synonym_v1(data: Buffer, at: int, size: int) -> tuple[DescribeConfigsSynonym, int]:
    message = new(DescribeConfigsSynonym)
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
    (message.source,) = unpack_i1(data, at)
    at += 1
    return message, at


def write_describe_configs_synonym_v1(message: DescribeConfigsSynonym, add: Add) -> None:
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
    add(pack_i1(message.source))


# DescribeConfigsResourceResult in versions 1–2
def read_describe_configs_resource_result_v1(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[DescribeConfigsResourceResult, int]:
    message = new(DescribeConfigsResourceResult)
    message.is_default = False
    message.config_type = 0
    message.documentation = ""
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
    message.read_only, message.config_source, message.is_sensitive, count = unpack_bool_i1_bool_i4(data, at)
    at += 7
    if not 0 <= count * 5 <= size - at:
        raise Malformed("synonyms")
    synonyms: list[DescribeConfigsSynonym] = []
    for _ in range(count):
        synonym, at = read_describe_configs_synonym_v1(data, at, size)
        synonyms.append(synonym)
    message.synonyms = synonyms
    return message, at


def write_describe_configs_resource_result_v1(message: DescribeConfigsResourceResult, add: Add) -> None:
    if message.is_default:
        raise Unwritable("is_default")
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
    synonyms = message.synonyms
    add(pack_bool_i1_bool_i4(message.read_only, message.config_source, message.is_sensitive, len(synonyms)))
    for synonym in synonyms:
        write_describe_configs_synonym_v1(synonym, add)


# DescribeConfigsResult in versions 1–2
def read_describe_configs_result_v1(data: Buffer, at: int, size: int) -> tuple[DescribeConfigsResult, int]:
    message = new(DescribeConfigsResult)
    message.unknown_tags = ()
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
    message.resource_type, length = unpack_i1_i2(data, at)
    at += 3
    end = at + length
    if not at <= end <= size:
        raise Malformed("resource_name")
    message.resource_name = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 11 <= size - at:
        raise Malformed("configs")
    configs: list[DescribeConfigsResourceResult] = []
    for _ in range(count):
        config, at = read_describe_configs_resource_result_v1(data, at, size)
        configs.append(config)
    message.configs = configs
    return message, at


def write_describe_configs_result_v1(message: DescribeConfigsResult, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i2(message.error_code))
    error_message = message.error_message
    if error_message is None:
        add(b"\xff\xff")
    else:
        error_message_bytes = error_message.encode()
        add(pack_i2(len(error_message_bytes)))
        add(error_message_bytes)
    resource_name = message.resource_name.encode()
    add(pack_i1_i2(message.resource_type, len(resource_name)))
    add(resource_name)
    configs = message.configs
    add(pack_i4(len(configs)))
    for config in configs:
        write_describe_configs_resource_result_v1(config, add)


# DescribeConfigsResponse in versions 1–2
def read_v1(data: Buffer, at: int, size: int) -> tuple[DescribeConfigsResponse, int]:
    message = new(DescribeConfigsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 11 <= size - at:
        raise Malformed("results")
    results: list[DescribeConfigsResult] = []
    for _ in range(count):
        result, at = read_describe_configs_result_v1(data, at, size)
        results.append(result)
    message.results = results
    return message, at


def write_v1(message: DescribeConfigsResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    results = message.results
    add(pack_i4x2(message.throttle_time_ms, len(results)))
    for result in results:
        write_describe_configs_result_v1(result, add)


# DescribeConfigsResourceResult in version 3
def read_describe_configs_resource_result_v3(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[DescribeConfigsResourceResult, int]:
    message = new(DescribeConfigsResourceResult)
    message.is_default = False
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
    message.read_only, message.config_source, message.is_sensitive, count = unpack_bool_i1_bool_i4(data, at)
    at += 7
    if not 0 <= count * 5 <= size - at:
        raise Malformed("synonyms")
    synonyms: list[DescribeConfigsSynonym] = []
    for _ in range(count):
        synonym, at = read_describe_configs_synonym_v1(data, at, size)
        synonyms.append(synonym)
    message.synonyms = synonyms
    message.config_type, length = unpack_i1_i2(data, at)
    at += 3
    if length == -1:
        message.documentation = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("documentation")
        message.documentation = str(data[at:end], "utf-8")
        at = end
    return message, at


def write_describe_configs_resource_result_v3(message: DescribeConfigsResourceResult, add: Add) -> None:
    if message.is_default:
        raise Unwritable("is_default")
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
    synonyms = message.synonyms
    add(pack_bool_i1_bool_i4(message.read_only, message.config_source, message.is_sensitive, len(synonyms)))
    for synonym in synonyms:
        write_describe_configs_synonym_v1(synonym, add)
    add(pack_i1(message.config_type))
    documentation = message.documentation
    if documentation is None:
        add(b"\xff\xff")
    else:
        documentation_bytes = documentation.encode()
        add(pack_i2(len(documentation_bytes)))
        add(documentation_bytes)


# DescribeConfigsResult in version 3
def read_describe_configs_result_v3(data: Buffer, at: int, size: int) -> tuple[DescribeConfigsResult, int]:
    message = new(DescribeConfigsResult)
    message.unknown_tags = ()
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
    message.resource_type, length = unpack_i1_i2(data, at)
    at += 3
    end = at + length
    if not at <= end <= size:
        raise Malformed("resource_name")
    message.resource_name = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 14 <= size - at:
        raise Malformed("configs")
    configs: list[DescribeConfigsResourceResult] = []
    for _ in range(count):
        config, at = read_describe_configs_resource_result_v3(data, at, size)
        configs.append(config)
    message.configs = configs
    return message, at


def write_describe_configs_result_v3(message: DescribeConfigsResult, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i2(message.error_code))
    error_message = message.error_message
    if error_message is None:
        add(b"\xff\xff")
    else:
        error_message_bytes = error_message.encode()
        add(pack_i2(len(error_message_bytes)))
        add(error_message_bytes)
    resource_name = message.resource_name.encode()
    add(pack_i1_i2(message.resource_type, len(resource_name)))
    add(resource_name)
    configs = message.configs
    add(pack_i4(len(configs)))
    for config in configs:
        write_describe_configs_resource_result_v3(config, add)


# DescribeConfigsResponse in version 3
def read_v3(data: Buffer, at: int, size: int) -> tuple[DescribeConfigsResponse, int]:
    message = new(DescribeConfigsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 11 <= size - at:
        raise Malformed("results")
    results: list[DescribeConfigsResult] = []
    for _ in range(count):
        result, at = read_describe_configs_result_v3(data, at, size)
        results.append(result)
    message.results = results
    return message, at


def write_v3(message: DescribeConfigsResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    results = message.results
    add(pack_i4x2(message.throttle_time_ms, len(results)))
    for result in results:
        write_describe_configs_result_v3(result, add)


# DescribeConfigsSynonym in version 4
def read_describe_configs_synonym_v4(data: Buffer, at: int, size: int) -> tuple[DescribeConfigsSynonym, int]:
    message = new(DescribeConfigsSynonym)
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
    message.source, tags = unpack_i1_u1(data, at)
    at += 2
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_describe_configs_synonym_v4(message: DescribeConfigsSynonym, add: Add) -> None:
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
    add(pack_i1(message.source))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeConfigsResourceResult in version 4
def read_describe_configs_resource_result_v4(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[DescribeConfigsResourceResult, int]:
    message = new(DescribeConfigsResourceResult)
    message.is_default = False
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
    message.read_only, message.config_source, message.is_sensitive, count = unpack_bool_i1_bool_u1(data, at)
    at += 4
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 4 <= size - at:
        raise Malformed("synonyms")
    synonyms: list[DescribeConfigsSynonym] = []
    for _ in range(count):
        synonym, at = read_describe_configs_synonym_v4(data, at, size)
        synonyms.append(synonym)
    message.synonyms = synonyms
    message.config_type, length = unpack_i1_u1(data, at)
    at += 2
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.documentation = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("documentation")
        message.documentation = str(data[at:end], "utf-8")
        at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_describe_configs_resource_result_v4(message: DescribeConfigsResourceResult, add: Add) -> None:
    if message.is_default:
        raise Unwritable("is_default")
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
    synonyms = message.synonyms
    add(compact_length[len(synonyms)])
    for synonym in synonyms:
        write_describe_configs_synonym_v4(synonym, add)
    add(pack_i1(message.config_type))
    documentation = message.documentation
    if documentation is None:
        add(b"\x00")
    else:
        documentation_bytes = documentation.encode()
        add(compact_string_length[len(documentation_bytes)])
        add(documentation_bytes)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeConfigsResult in version 4
def read_describe_configs_result_v4(data: Buffer, at: int, size: int) -> tuple[DescribeConfigsResult, int]:
    message = new(DescribeConfigsResult)
    message.unknown_tags = ()
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
    message.resource_type, length = unpack_i1_u1(data, at)
    at += 2
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("resource_name")
    message.resource_name = str(data[at:end], "utf-8")
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 9 <= size - at:
        raise Malformed("configs")
    configs: list[DescribeConfigsResourceResult] = []
    for _ in range(count):
        config, at = read_describe_configs_resource_result_v4(data, at, size)
        configs.append(config)
    message.configs = configs
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_describe_configs_result_v4(message: DescribeConfigsResult, add: Add) -> None:
    add(pack_i2(message.error_code))
    error_message = message.error_message
    if error_message is None:
        add(b"\x00")
    else:
        error_message_bytes = error_message.encode()
        add(compact_string_length[len(error_message_bytes)])
        add(error_message_bytes)
    add(pack_i1(message.resource_type))
    resource_name = message.resource_name.encode()
    add(compact_string_length[len(resource_name)])
    add(resource_name)
    configs = message.configs
    add(compact_length[len(configs)])
    for config in configs:
        write_describe_configs_resource_result_v4(config, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeConfigsResponse in version 4
def read_v4(data: Buffer, at: int, size: int) -> tuple[DescribeConfigsResponse, int]:
    message = new(DescribeConfigsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 7 <= size - at:
        raise Malformed("results")
    results: list[DescribeConfigsResult] = []
    for _ in range(count):
        result, at = read_describe_configs_result_v4(data, at, size)
        results.append(result)
    message.results = results
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v4(message: DescribeConfigsResponse, add: Add) -> None:
    add(pack_i4(message.throttle_time_ms))
    results = message.results
    add(compact_length[len(results)])
    for result in results:
        write_describe_configs_result_v4(result, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[DescribeConfigsResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v1, write_v1),
    3: (read_v3, write_v3),
    4: (read_v4, write_v4),
}

# what JSON and error messages know of the fields
DescribeConfigsSynonym.FIELDS = (
    Field("name", "name", "string", (1, 4)),
    Field("value", "value", "string", (1, 4), nullable=(1, 4)),
    Field("source", "source", "int8", (1, 4)),
)
DescribeConfigsResourceResult.FIELDS = (
    Field("name", "name", "string", (0, 4)),
    Field("value", "value", "string", (0, 4), nullable=(0, 4)),
    Field("read_only", "readOnly", "bool", (0, 4)),
    Field("is_default", "isDefault", "bool", (0, 0)),
    Field("config_source", "configSource", "int8", (1, 4), ignorable=True),
    Field("is_sensitive", "isSensitive", "bool", (0, 4)),
    Field(
        "synonyms",
        "synonyms",
        "[]DescribeConfigsSynonym",
        (1, 4),
        struct=DescribeConfigsSynonym,
        ignorable=True,
    ),
    Field("config_type", "configType", "int8", (3, 4), ignorable=True),
    Field("documentation", "documentation", "string", (3, 4), nullable=(3, 4), ignorable=True),
)
DescribeConfigsResult.FIELDS = (
    Field("error_code", "errorCode", "int16", (0, 4)),
    Field("error_message", "errorMessage", "string", (0, 4), nullable=(0, 4)),
    Field("resource_type", "resourceType", "int8", (0, 4)),
    Field("resource_name", "resourceName", "string", (0, 4)),
    Field(
        "configs",
        "configs",
        "[]DescribeConfigsResourceResult",
        (0, 4),
        struct=DescribeConfigsResourceResult,
    ),
)
DescribeConfigsResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (0, 4)),
    Field("results", "results", "[]DescribeConfigsResult", (0, 4), struct=DescribeConfigsResult),
)
