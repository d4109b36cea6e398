"""DescribeConfigsRequest, versions 0–4: its classes, and one read and write pair per layout.

Generated from schemas/DescribeConfigsRequest.json by `python -m codegen`; edits here are lost.
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
    read_compact_strings,
    read_string_length,
    read_strings,
    read_tags,
    read_uvarint,
    write_tags,
)

pack_bool: Final = struct.Struct(">?").pack
pack_boolx2: Final = struct.Struct(">??").pack
pack_i1: Final = struct.Struct(">b").pack
pack_i1_i2: Final = struct.Struct(">bh").pack
pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
unpack_bool: Final = struct.Struct(">?").unpack_from
unpack_boolx2: Final = struct.Struct(">??").unpack_from
unpack_boolx2_u1: Final = struct.Struct(">??B").unpack_from
unpack_i1_i2: Final = struct.Struct(">bh").unpack_from
unpack_i1_u1: Final = struct.Struct(">bB").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from


@define(weakref_slot=False)
class DescribeConfigsResource(Struct):
    """The things whose configuration is wanted.

    Attributes:
        resource_type: What kind of thing is configured: 2 topic, 4 broker, 8 broker logger, 16 client
            metrics, 32 group.
        resource_name: The name of the topic or group, or the broker's id as text; empty for the defaults of
            all brokers.
        configuration_keys: The configuration keys wanted; null for all.
    """

    resource_type: int = 0
    resource_name: str = ""
    configuration_keys: list[str] | None = Factory(list)


@define(weakref_slot=False)
class DescribeConfigsRequest(Message):
    """Asks for the configuration of topics, brokers, groups and the like.

    Attributes:
        resources: The things whose configuration is wanted.
        include_synonyms: True to be told also the values that each one overrides.
        include_documentation: True to be told also what each key means.
    """

    NAME: ClassVar[str] = "DescribeConfigsRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 32
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_SINCE: ClassVar[int | None] = 4

    resources: list[DescribeConfigsResource] = Factory(list)
    include_synonyms: bool = False
    include_documentation: bool = False


# DescribeConfigsResource in versions 0–3
def read_describe_configs_resource_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[DescribeConfigsResource, int]:
    message = new(DescribeConfigsResource)
    message.unknown_tags = ()
    message.resource_type, length = unpack_i1_i2(data, at)
    at += 3
    end = at + length
    if not at <= end <= size:
        raise Malformed("resource_name")
    message.resource_name = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if count == -1:
        message.configuration_keys = None
    else:
        if not 0 <= count * 2 <= size - at:
            raise Malformed("configuration_keys")
        message.configuration_keys, at = read_strings(count, data, at, size)
    return message, at


def write_describe_configs_resource_v0(message: DescribeConfigsResource, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    resource_name = message.resource_name.encode()
    add(pack_i1_i2(message.resource_type, len(resource_name)))
    add(resource_name)
    configuration_keys = message.configuration_keys
    if configuration_keys is None:
        add(b"\xff\xff\xff\xff")
    else:
        add(pack_i4(len(configuration_keys)))
        for configuration_key in configuration_keys:
            configuration_key_bytes = configuration_key.encode()
            add(pack_i2(len(configuration_key_bytes)))
            add(configuration_key_bytes)


# DescribeConfigsRequest in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[DescribeConfigsRequest, int]:
    message = new(DescribeConfigsRequest)
    message.include_synonyms = False
    message.include_documentation = False
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 7 <= size - at:
        raise Malformed("resources")
    resources: list[DescribeConfigsResource] = []
    for _ in range(count):
        resource, at = read_describe_configs_resource_v0(data, at, size)
        resources.append(resource)
    message.resources = resources
    return message, at


def write_v0(message: DescribeConfigsRequest, add: Add) -> None:
    if message.include_synonyms:
        raise Unwritable("include_synonyms")
    if message.include_documentation:
        raise Unwritable("include_documentation")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    resources = message.resources
    add(pack_i4(len(resources)))
    for resource in resources:
        write_describe_configs_resource_v0(resource, add)


# DescribeConfigsRequest in versions 1–2
def read_v1(data: Buffer, at: int, size: int) -> tuple[DescribeConfigsRequest, int]:
    message = new(DescribeConfigsRequest)
    message.include_documentation = False
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 7 <= size - at:
        raise Malformed("resources")
    resources: list[DescribeConfigsResource] = []
    for _ in range(count):
        resource, at = read_describe_configs_resource_v0(data, at, size)
        resources.append(resource)
    message.resources = resources
    (message.include_synonyms,) = unpack_bool(data, at)
    at += 1
    return message, at


def write_v1(message: DescribeConfigsRequest, add: Add) -> None:
    if message.include_documentation:
        raise Unwritable("include_documentation")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    resources = message.resources
    add(pack_i4(len(resources)))
    for resource in resources:
        write_describe_configs_resource_v0(resource, add)
    add(pack_bool(message.include_synonyms))


# DescribeConfigsRequest in version 3
def read_v3(data: Buffer, at: int, size: int) -> tuple[DescribeConfigsRequest, int]:
    message = new(DescribeConfigsRequest)
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 7 <= size - at:
        raise Malformed("resources")
    resources: list[DescribeConfigsResource] = []
    for _ in range(count):
        resource, at = read_describe_configs_resource_v0(data, at, size)
        resources.append(resource)
    message.resources = resources
    message.include_synonyms, message.include_documentation = unpack_boolx2(data, at)
    at += 2
    return message, at


def write_v3(message: DescribeConfigsRequest, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    resources = message.resources
    add(pack_i4(len(resources)))
    for resource in resources:
        write_describe_configs_resource_v0(resource, add)
    add(pack_boolx2(message.include_synonyms, message.include_documentation))


# DescribeConfigsResource in version 4
def read_describe_configs_resource_v4(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[DescribeConfigsResource, int]:
    message = new(DescribeConfigsResource)
    message.unknown_tags = ()
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
    if count == 0:
        message.configuration_keys = None
    else:
        count -= 1
        if not 0 <= count <= size - at:
            raise Malformed("configuration_keys")
        message.configuration_keys, at = read_compact_strings(count, data, at, size)
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_describe_configs_resource_v4(message: DescribeConfigsResource, add: Add) -> None:
    add(pack_i1(message.resource_type))
    resource_name = message.resource_name.encode()
    add(compact_string_length[len(resource_name)])
    add(resource_name)
    configuration_keys = message.configuration_keys
    if configuration_keys is None:
        add(b"\x00")
    else:
        add(compact_length[len(configuration_keys)])
        for configuration_key in configuration_keys:
            configuration_key_bytes = configuration_key.encode()
            add(compact_string_length[len(configuration_key_bytes)])
            add(configuration_key_bytes)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DescribeConfigsRequest in version 4
def read_v4(data: Buffer, at: int, size: int) -> tuple[DescribeConfigsRequest, int]:
    message = new(DescribeConfigsRequest)
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 4 <= size - at:
        raise Malformed("resources")
    resources: list[DescribeConfigsResource] = []
    for _ in range(count):
        resource, at = read_describe_configs_resource_v4(data, at, size)
        resources.append(resource)
    message.resources = resources
    message.include_synonyms, message.include_documentation, tags = unpack_boolx2_u1(data, at)
    at += 3
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v4(message: DescribeConfigsRequest, add: Add) -> None:
    resources = message.resources
    add(compact_length[len(resources)])
    for resource in resources:
        write_describe_configs_resource_v4(resource, add)
    add(pack_boolx2(message.include_synonyms, message.include_documentation))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[DescribeConfigsRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v1, write_v1),
    3: (read_v3, write_v3),
    4: (read_v4, write_v4),
}

# what JSON and error messages know of the fields
DescribeConfigsResource.FIELDS = (
    Field("resource_type", "resourceType", "int8", (0, 4)),
    Field("resource_name", "resourceName", "string", (0, 4)),
    Field("configuration_keys", "configurationKeys", "[]string", (0, 4), nullable=(0, 4)),
)
DescribeConfigsRequest.FIELDS = (
    Field("resources", "resources", "[]DescribeConfigsResource", (0, 4), struct=DescribeConfigsResource),
    Field("include_synonyms", "includeSynonyms", "bool", (1, 4)),
    Field("include_documentation", "includeDocumentation", "bool", (3, 4)),
)
