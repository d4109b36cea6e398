"""IncrementalAlterConfigsResponse, versions 0–1: its classes, and one read and write pair per layout.

Generated from schemas/IncrementalAlterConfigsResponse.json by `python -m codegen`; edits here are lost.
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

pack_i1: Final = struct.Struct(">b").pack
pack_i1_i2: Final = struct.Struct(">bh").pack
pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
pack_i4x2: Final = struct.Struct(">ii").pack
unpack_i1_i2: Final = struct.Struct(">bh").unpack_from
unpack_i1_u1: Final = struct.Struct(">bB").unpack_from
unpack_i2_u1: Final = struct.Struct(">hB").unpack_from
unpack_i2x2: Final = struct.Struct(">hh").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i4x2: Final = struct.Struct(">ii").unpack_from


@define(weakref_slot=False)
class AlterConfigsResourceResponse(Struct):
    """One result per asked thing.

    Attributes:
        error_code: 0 when all its changes are made; otherwise none of them is.
        error_message: The broker's explanation of ErrorCode, for people; null when there is none.
        resource_type: What kind of thing is configured: 2 topic, 4 broker, 8 broker logger, 16 client
            metrics, 32 group.
        resource_name: The name of the topic or group, or the broker's id as text.
    """

    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""


@define(weakref_slot=False)
class IncrementalAlterConfigsResponse(Message):
    """Says thing by thing whether its configuration was changed.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none.
        responses: One result per asked thing.
    """

    NAME: ClassVar[str] = "IncrementalAlterConfigsResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 44
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_SINCE: ClassVar[int | None] = 1

    throttle_time_ms: int = 0
    responses: list[AlterConfigsResourceResponse] = Factory(list)


# AlterConfigsResourceResponse in version 0
def read_alter_configs_resource_response_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[AlterConfigsResourceResponse, int]:
    message = new(AlterConfigsResourceResponse)
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
    return message, at


def write_alter_configs_resource_response_v0(message: AlterConfigsResourceResponse, add: Add) -> None:
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


# IncrementalAlterConfigsResponse in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[IncrementalAlterConfigsResponse, int]:
    message = new(IncrementalAlterConfigsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 7 <= size - at:
        raise Malformed("responses")
    responses: list[AlterConfigsResourceResponse] = []
    for _ in range(count):
        response, at = read_alter_configs_resource_response_v0(data, at, size)
        responses.append(response)
    message.responses = responses
    return message, at


def write_v0(message: IncrementalAlterConfigsResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    responses = message.responses
    add(pack_i4x2(message.throttle_time_ms, len(responses)))
    for response in responses:
        write_alter_configs_resource_response_v0(response, add)


# AlterConfigsResourceResponse in version 1
def read_alter_configs_resource_response_v1(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[AlterConfigsResourceResponse, int]:
    message = new(AlterConfigsResourceResponse)
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
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_alter_configs_resource_response_v1(message: AlterConfigsResourceResponse, add: Add) -> None:
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
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# IncrementalAlterConfigsResponse in version 1
def read_v1(data: Buffer, at: int, size: int) -> tuple[IncrementalAlterConfigsResponse, int]:
    message = new(IncrementalAlterConfigsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 6 <= size - at:
        raise Malformed("responses")
    responses: list[AlterConfigsResourceResponse] = []
    for _ in range(count):
        response, at = read_alter_configs_resource_response_v1(data, at, size)
        responses.append(response)
    message.responses = responses
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v1(message: IncrementalAlterConfigsResponse, add: Add) -> None:
    add(pack_i4(message.throttle_time_ms))
    responses = message.responses
    add(compact_length[len(responses)])
    for response in responses:
        write_alter_configs_resource_response_v1(response, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[IncrementalAlterConfigsResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
}

# what JSON and error messages know of the fields
AlterConfigsResourceResponse.FIELDS = (
    Field("error_code", "errorCode", "int16", (0, 1)),
    Field("error_message", "errorMessage", "string", (0, 1), nullable=(0, 1)),
    Field("resource_type", "resourceType", "int8", (0, 1)),
    Field("resource_name", "resourceName", "string", (0, 1)),
)
IncrementalAlterConfigsResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (0, 1)),
    Field(
        "responses",
        "responses",
        "[]AlterConfigsResourceResponse",
        (0, 1),
        struct=AlterConfigsResourceResponse,
    ),
)
