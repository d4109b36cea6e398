"""DeleteTopicsResponse, versions 0–6: its classes, and one read and write pair per layout.

Generated from schemas/DeleteTopicsResponse.json by `python -m codegen`; edits here are lost.
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

pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
pack_i4x2: Final = struct.Struct(">ii").pack
pack_uuid_i2: Final = struct.Struct(">16sh").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i2_u1: Final = struct.Struct(">hB").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i4x2: Final = struct.Struct(">ii").unpack_from
unpack_uuid_i2_u1: Final = struct.Struct(">16shB").unpack_from


@define(weakref_slot=False)
class DeletableTopicResult(Struct):
    """One result per asked topic.

    Attributes:
        name: The topic's name; null when it was asked by an id that is unknown or hidden.
        topic_id: The topic's id; zero when it was asked by a name that is unknown.
        error_code: 0, or why the topic is not deleted; 73 when the brokers forbid deletion.
        error_message: The broker's explanation of ErrorCode, for people; null when there is none.
    """

    name: str | None = ""
    topic_id: Uuid = ZERO_UUID
    error_code: int = 0
    error_message: str | None = None


@define(weakref_slot=False)
class DeleteTopicsResponse(Message):
    """Says topic by topic whether it is being deleted.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Since version 2 the answer is immediate and
            the client must stay silent that long; before, the broker had already held the answer back.
        responses: One result per asked topic.
    """

    NAME: ClassVar[str] = "DeleteTopicsResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 20
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_SINCE: ClassVar[int | None] = 4

    throttle_time_ms: int = 0
    responses: list[DeletableTopicResult] = Factory(list)


# DeletableTopicResult in versions 0–3
def read_deletable_topic_result_v0(data: Buffer, at: int, size: int) -> tuple[DeletableTopicResult, int]:
    message = new(DeletableTopicResult)
    message.topic_id = ZERO_UUID
    message.error_message = None
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


def write_deletable_topic_result_v0(message: DeletableTopicResult, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    if message.name is None:
        raise Unwritable("name")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    add(pack_i2(message.error_code))


# DeleteTopicsResponse in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[DeleteTopicsResponse, int]:
    message = new(DeleteTopicsResponse)
    message.throttle_time_ms = 0
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 4 <= size - at:
        raise Malformed("responses")
    responses: list[DeletableTopicResult] = []
    for _ in range(count):
        response, at = read_deletable_topic_result_v0(data, at, size)
        responses.append(response)
    message.responses = responses
    return message, at


def write_v0(message: DeleteTopicsResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    responses = message.responses
    add(pack_i4(len(responses)))
    for response in responses:
        write_deletable_topic_result_v0(response, add)


# DeleteTopicsResponse in versions 1–3
def read_v1(data: Buffer, at: int, size: int) -> tuple[DeleteTopicsResponse, int]:
    message = new(DeleteTopicsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 4 <= size - at:
        raise Malformed("responses")
    responses: list[DeletableTopicResult] = []
    for _ in range(count):
        response, at = read_deletable_topic_result_v0(data, at, size)
        responses.append(response)
    message.responses = responses
    return message, at


def write_v1(message: DeleteTopicsResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    responses = message.responses
    add(pack_i4x2(message.throttle_time_ms, len(responses)))
    for response in responses:
        write_deletable_topic_result_v0(response, add)


# DeletableTopicResult in version 4
def read_deletable_topic_result_v4(data: Buffer, at: int, size: int) -> tuple[DeletableTopicResult, int]:
    message = new(DeletableTopicResult)
    message.topic_id = ZERO_UUID
    message.error_message = None
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
    message.error_code, tags = unpack_i2_u1(data, at)
    at += 3
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_deletable_topic_result_v4(message: DeletableTopicResult, add: Add) -> None:
    if message.name is None:
        raise Unwritable("name")
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    add(pack_i2(message.error_code))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DeleteTopicsResponse in version 4
def read_v4(data: Buffer, at: int, size: int) -> tuple[DeleteTopicsResponse, int]:
    message = new(DeleteTopicsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 4 <= size - at:
        raise Malformed("responses")
    responses: list[DeletableTopicResult] = []
    for _ in range(count):
        response, at = read_deletable_topic_result_v4(data, at, size)
        responses.append(response)
    message.responses = responses
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v4(message: DeleteTopicsResponse, add: Add) -> None:
    add(pack_i4(message.throttle_time_ms))
    responses = message.responses
    add(compact_length[len(responses)])
    for response in responses:
        write_deletable_topic_result_v4(response, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DeletableTopicResult in version 5
def read_deletable_topic_result_v5(data: Buffer, at: int, size: int) -> tuple[DeletableTopicResult, int]:
    message = new(DeletableTopicResult)
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
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_deletable_topic_result_v5(message: DeletableTopicResult, add: Add) -> None:
    if message.name is None:
        raise Unwritable("name")
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
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DeleteTopicsResponse in version 5
def read_v5(data: Buffer, at: int, size: int) -> tuple[DeleteTopicsResponse, int]:
    message = new(DeleteTopicsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 5 <= size - at:
        raise Malformed("responses")
    responses: list[DeletableTopicResult] = []
    for _ in range(count):
        response, at = read_deletable_topic_result_v5(data, at, size)
        responses.append(response)
    message.responses = responses
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v5(message: DeleteTopicsResponse, add: Add) -> None:
    add(pack_i4(message.throttle_time_ms))
    responses = message.responses
    add(compact_length[len(responses)])
    for response in responses:
        write_deletable_topic_result_v5(response, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DeletableTopicResult in version 6
def read_deletable_topic_result_v6(data: Buffer, at: int, size: int) -> tuple[DeletableTopicResult, int]:
    message = new(DeletableTopicResult)
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
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_deletable_topic_result_v6(message: DeletableTopicResult, add: Add) -> None:
    name = message.name
    if name is None:
        add(b"\x00")
    else:
        name_bytes = name.encode()
        add(compact_string_length[len(name_bytes)])
        add(name_bytes)
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
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DeleteTopicsResponse in version 6
def read_v6(data: Buffer, at: int, size: int) -> tuple[DeleteTopicsResponse, int]:
    message = new(DeleteTopicsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 21 <= size - at:
        raise Malformed("responses")
    responses: list[DeletableTopicResult] = []
    for _ in range(count):
        response, at = read_deletable_topic_result_v6(data, at, size)
        responses.append(response)
    message.responses = responses
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v6(message: DeleteTopicsResponse, add: Add) -> None:
    add(pack_i4(message.throttle_time_ms))
    responses = message.responses
    add(compact_length[len(responses)])
    for response in responses:
        write_deletable_topic_result_v6(response, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[DeleteTopicsResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v1, write_v1),
    3: (read_v1, write_v1),
    4: (read_v4, write_v4),
    5: (read_v5, write_v5),
    6: (read_v6, write_v6),
}

# what JSON and error messages know of the fields
DeletableTopicResult.FIELDS = (
    Field("name", "name", "string", (0, 6), nullable=(6, 6)),
    Field("topic_id", "topicId", "uuid", (6, 6), ignorable=True),
    Field("error_code", "errorCode", "int16", (0, 6)),
    Field("error_message", "errorMessage", "string", (5, 6), nullable=(5, 6), ignorable=True),
)
DeleteTopicsResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (1, 6), ignorable=True),
    Field("responses", "responses", "[]DeletableTopicResult", (0, 6), struct=DeletableTopicResult),
)
