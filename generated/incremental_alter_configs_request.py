"""IncrementalAlterConfigsRequest, versions 0–1: its classes, and one read and write pair per layout.

Generated from schemas/IncrementalAlterConfigsRequest.json by `python -m codegen`; edits here are lost.
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

pack_bool: Final = struct.Struct(">?").pack
pack_i1: Final = struct.Struct(">b").pack
pack_i1_i2: Final = struct.Struct(">bh").pack
pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
unpack_bool: Final = struct.Struct(">?").unpack_from
unpack_bool_u1: Final = struct.Struct(">?B").unpack_from
unpack_i1_i2: Final = struct.Struct(">bh").unpack_from
unpack_i1_u1: Final = struct.Struct(">bB").unpack_from
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from


@define(weakref_slot=False)
class AlterableConfig(Struct):
    """The keys to change, each once.

    Attributes:
        name: The name of the configuration key.
        config_operation: 0 set the value, 1 back to the default, 2 append to the list, 3 take out of the
            list.
        value: The value for the operation, as text; null when it needs none.
    """

    name: str = ""
    config_operation: int = 0
    value: str | None = ""


@define(weakref_slot=False)
class AlterConfigsResource(Struct):
    """The things whose configuration is changed.

    Attributes:
        resource_type: What kind of thing is configured: 2 topic, 4 broker, 8 broker logger, 16 client
            metrics, 32 group.
        resource_name: The name of the topic or group, or the broker's id as text; empty for the defaults of
            all brokers.
        configs: The keys to change, each once.
    """

    resource_type: int = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = Factory(list)


@define(weakref_slot=False)
class IncrementalAlterConfigsRequest(Message):
    """Changes single configuration keys and leaves all others as they are.

    Attributes:
        resources: The things whose configuration is changed.
        validate_only: True to check the request without changing anything.
    """

    NAME: ClassVar[str] = "IncrementalAlterConfigsRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 44
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_SINCE: ClassVar[int | None] = 1

    resources: list[AlterConfigsResource] = Factory(list)
    validate_only: bool = False


# AlterableConfig in version 0
def read_alterable_config_v0(data: Buffer, at: int, size: int) -> tuple[AlterableConfig, int]:
    message = new(AlterableConfig)
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("name")
    message.name = str(data[at:end], "utf-8")
    at = end
    message.config_operation, length = unpack_i1_i2(data, at)
    at += 3
    if length == -1:
        message.value = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("value")
        message.value = str(data[at:end], "utf-8")
        at = end
    return message, at


def write_alterable_config_v0(message: AlterableConfig, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    add(pack_i1(message.config_operation))
    value_ = message.value
    if value_ is None:
        add(b"\xff\xff")
    else:
        value__bytes = value_.encode()
        add(pack_i2(len(value__bytes)))
        add(value__bytes)


# AlterConfigsResource in version 0
def read_alter_configs_resource_v0(data: Buffer, at: int, size: int) -> tuple[AlterConfigsResource, int]:
    message = new(AlterConfigsResource)
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
    if not 0 <= count * 5 <= size - at:
        raise Malformed("configs")
    configs: list[AlterableConfig] = []
    for _ in range(count):
        config, at = read_alterable_config_v0(data, at, size)
        configs.append(config)
    message.configs = configs
    return message, at


def write_alter_configs_resource_v0(message: AlterConfigsResource, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    resource_name = message.resource_name.encode()
    add(pack_i1_i2(message.resource_type, len(resource_name)))
    add(resource_name)
    configs = message.configs
    add(pack_i4(len(configs)))
    for config in configs:
        write_alterable_config_v0(config, add)


# IncrementalAlterConfigsRequest in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[IncrementalAlterConfigsRequest, int]:
    message = new(IncrementalAlterConfigsRequest)
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 7 <= size - at:
        raise Malformed("resources")
    resources: list[AlterConfigsResource] = []
    for _ in range(count):
        resource, at = read_alter_configs_resource_v0(data, at, size)
        resources.append(resource)
    message.resources = resources
    (message.validate_only,) = unpack_bool(data, at)
    at += 1
    return message, at


def write_v0(message: IncrementalAlterConfigsRequest, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    resources = message.resources
    add(pack_i4(len(resources)))
    for resource in resources:
        write_alter_configs_resource_v0(resource, add)
    add(pack_bool(message.validate_only))


# AlterableConfig in version 1
def read_alterable_config_v1(data: Buffer, at: int, size: int) -> tuple[AlterableConfig, int]:
    message = new(AlterableConfig)
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
    message.config_operation, length = unpack_i1_u1(data, at)
    at += 2
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


def write_alterable_config_v1(message: AlterableConfig, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    add(pack_i1(message.config_operation))
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


# AlterConfigsResource in version 1
def read_alter_configs_resource_v1(data: Buffer, at: int, size: int) -> tuple[AlterConfigsResource, int]:
    message = new(AlterConfigsResource)
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
    count -= 1
    if not 0 <= count * 4 <= size - at:
        raise Malformed("configs")
    configs: list[AlterableConfig] = []
    for _ in range(count):
        config, at = read_alterable_config_v1(data, at, size)
        configs.append(config)
    message.configs = configs
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_alter_configs_resource_v1(message: AlterConfigsResource, add: Add) -> None:
    add(pack_i1(message.resource_type))
    resource_name = message.resource_name.encode()
    add(compact_string_length[len(resource_name)])
    add(resource_name)
    configs = message.configs
    add(compact_length[len(configs)])
    for config in configs:
        write_alterable_config_v1(config, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# IncrementalAlterConfigsRequest in version 1
def read_v1(data: Buffer, at: int, size: int) -> tuple[IncrementalAlterConfigsRequest, int]:
    message = new(IncrementalAlterConfigsRequest)
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 4 <= size - at:
        raise Malformed("resources")
    resources: list[AlterConfigsResource] = []
    for _ in range(count):
        resource, at = read_alter_configs_resource_v1(data, at, size)
        resources.append(resource)
    message.resources = resources
    message.validate_only, tags = unpack_bool_u1(data, at)
    at += 2
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v1(message: IncrementalAlterConfigsRequest, add: Add) -> None:
    resources = message.resources
    add(compact_length[len(resources)])
    for resource in resources:
        write_alter_configs_resource_v1(resource, add)
    add(pack_bool(message.validate_only))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[IncrementalAlterConfigsRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
}

# what JSON and error messages know of the fields
AlterableConfig.FIELDS = (
    Field("name", "name", "string", (0, 1)),
    Field("config_operation", "configOperation", "int8", (0, 1)),
    Field("value", "value", "string", (0, 1), nullable=(0, 1)),
)
AlterConfigsResource.FIELDS = (
    Field("resource_type", "resourceType", "int8", (0, 1)),
    Field("resource_name", "resourceName", "string", (0, 1)),
    Field("configs", "configs", "[]AlterableConfig", (0, 1), struct=AlterableConfig),
)
IncrementalAlterConfigsRequest.FIELDS = (
    Field("resources", "resources", "[]AlterConfigsResource", (0, 1), struct=AlterConfigsResource),
    Field("validate_only", "validateOnly", "bool", (0, 1)),
)
