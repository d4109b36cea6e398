"""DeleteGroupsResponse, versions 0–3: its classes, and one read and write pair per layout.

Generated from schemas/DeleteGroupsResponse.json by `python -m codegen`; edits here are lost.
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

pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
pack_i4x2: Final = struct.Struct(">ii").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i2_u1: Final = struct.Struct(">hB").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i4x2: Final = struct.Struct(">ii").unpack_from


@define(weakref_slot=False)
class DeletableGroupResult(Struct):
    """One result per asked group.

    Attributes:
        group_id: The group this result is about.
        error_code: 0 when deleted; NON_EMPTY_GROUP (68) while it has members, GROUP_ID_NOT_FOUND (69) when
            there is none, GROUP_DELETION_FAILED (134) for what ErrorMessage says.
        error_message: Why the group was not deleted, in words; null when there is nothing to say beyond the
            code.
    """

    group_id: str = ""
    error_code: int = 0
    error_message: str | None = None


@define(weakref_slot=False)
class DeleteGroupsResponse(Message):
    """Says group by group whether it was deleted.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Since version 1 the answer is immediate and
            the client must stay silent that long; before, the broker had already held the answer back.
        results: One result per asked group.
    """

    NAME: ClassVar[str] = "DeleteGroupsResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 42
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE_SINCE: ClassVar[int | None] = 2

    throttle_time_ms: int = 0
    results: list[DeletableGroupResult] = Factory(list)


# DeletableGroupResult in versions 0–1
def read_deletable_group_result_v0(data: Buffer, at: int, size: int) -> tuple[DeletableGroupResult, int]:
    message = new(DeletableGroupResult)
    message.error_message = None
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    (message.error_code,) = unpack_i2(data, at)
    at += 2
    return message, at


def write_deletable_group_result_v0(message: DeletableGroupResult, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    group_id = message.group_id.encode()
    add(pack_i2(len(group_id)))
    add(group_id)
    add(pack_i2(message.error_code))


# DeleteGroupsResponse in versions 0–1
def read_v0(data: Buffer, at: int, size: int) -> tuple[DeleteGroupsResponse, int]:
    message = new(DeleteGroupsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 4 <= size - at:
        raise Malformed("results")
    results: list[DeletableGroupResult] = []
    for _ in range(count):
        result, at = read_deletable_group_result_v0(data, at, size)
        results.append(result)
    message.results = results
    return message, at


def write_v0(message: DeleteGroupsResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    results = message.results
    add(pack_i4x2(message.throttle_time_ms, len(results)))
    for result in results:
        write_deletable_group_result_v0(result, add)


# DeletableGroupResult in version 2
def read_deletable_group_result_v2(data: Buffer, at: int, size: int) -> tuple[DeletableGroupResult, int]:
    message = new(DeletableGroupResult)
    message.error_message = None
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
    message.error_code, tags = unpack_i2_u1(data, at)
    at += 3
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_deletable_group_result_v2(message: DeletableGroupResult, add: Add) -> None:
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
    add(pack_i2(message.error_code))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DeleteGroupsResponse in version 2
def read_v2(data: Buffer, at: int, size: int) -> tuple[DeleteGroupsResponse, int]:
    message = new(DeleteGroupsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 4 <= size - at:
        raise Malformed("results")
    results: list[DeletableGroupResult] = []
    for _ in range(count):
        result, at = read_deletable_group_result_v2(data, at, size)
        results.append(result)
    message.results = results
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v2(message: DeleteGroupsResponse, add: Add) -> None:
    add(pack_i4(message.throttle_time_ms))
    results = message.results
    add(compact_length[len(results)])
    for result in results:
        write_deletable_group_result_v2(result, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# DeletableGroupResult in version 3
def read_deletable_group_result_v3(data: Buffer, at: int, size: int) -> tuple[DeletableGroupResult, int]:
    message = new(DeletableGroupResult)
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


def write_deletable_group_result_v3(message: DeletableGroupResult, add: Add) -> None:
    group_id = message.group_id.encode()
    add(compact_string_length[len(group_id)])
    add(group_id)
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


# DeleteGroupsResponse in version 3
def read_v3(data: Buffer, at: int, size: int) -> tuple[DeleteGroupsResponse, int]:
    message = new(DeleteGroupsResponse)
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 5 <= size - at:
        raise Malformed("results")
    results: list[DeletableGroupResult] = []
    for _ in range(count):
        result, at = read_deletable_group_result_v3(data, at, size)
        results.append(result)
    message.results = results
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v3(message: DeleteGroupsResponse, add: Add) -> None:
    add(pack_i4(message.throttle_time_ms))
    results = message.results
    add(compact_length[len(results)])
    for result in results:
        write_deletable_group_result_v3(result, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[DeleteGroupsResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v2, write_v2),
    3: (read_v3, write_v3),
}

# what JSON and error messages know of the fields
DeletableGroupResult.FIELDS = (
    Field("group_id", "groupId", "string", (0, 3)),
    Field("error_code", "errorCode", "int16", (0, 3)),
    Field("error_message", "errorMessage", "string", (3, 3), nullable=(3, 3), ignorable=True),
)
DeleteGroupsResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (0, 3)),
    Field("results", "results", "[]DeletableGroupResult", (0, 3), struct=DeletableGroupResult),
)
