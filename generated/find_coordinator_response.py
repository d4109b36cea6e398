"""FindCoordinatorResponse, versions 0–6: its classes, and one read and write pair per layout.

Generated from schemas/FindCoordinatorResponse.json by `python -m codegen`; edits here are lost.
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
pack_i2_i4_i2: Final = struct.Struct(">hih").pack
pack_i4: Final = struct.Struct(">i").pack
pack_i4_i2: Final = struct.Struct(">ih").pack
unpack_i2_i4_i2: Final = struct.Struct(">hih").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_i2: Final = struct.Struct(">ih").unpack_from
unpack_i4_i2_u1: Final = struct.Struct(">ihB").unpack_from
unpack_i4_i2x2: Final = struct.Struct(">ihh").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from


@define(weakref_slot=False)
class Coordinator(Struct):
    """One answer per asked key, from version 4 on; a key that is missing here is a protocol violation.

    Attributes:
        key: The group id, transactional id or share key that this entry answers.
        node_id: Broker id of this key's coordinator; -1 when ErrorCode is set.
        host: Name or address at which this key's coordinator listens; empty when ErrorCode is set.
        port: TCP port of this key's coordinator; -1 when ErrorCode is set.
        error_code: 0, or why this key has no coordinator now; the other keys of the answer may still be fine.
        error_message: The broker's explanation of this key's ErrorCode, for people; null when there is none.
    """

    key: str = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    error_code: int = 0
    error_message: str | None = ""


@define(weakref_slot=False)
class FindCoordinatorResponse(Message):
    """Names the broker that coordinates each asked key. Errors 14, 15 and 16 mean ask again after a backoff.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Since version 2 the answer is immediate and
            the client must stay silent that long; before, the broker had already held the answer back.
        error_code: 0, or why the one key of versions 0-3 has no coordinator; 15 while the offsets topic is
            still being created.
        error_message: The broker's explanation of ErrorCode, for people; null when there is none.
        node_id: Broker id of the coordinator, -1 on error. Clients keep a separate connection to it so that
            long fetches do not delay heartbeats.
        host: Name or address at which the coordinator listens, on the listener the question came in by; empty
            on error.
        port: TCP port of the coordinator on that listener; -1 on error.
        coordinators: One answer per asked key, from version 4 on; a key that is missing here is a protocol
            violation.
    """

    NAME: ClassVar[str] = "FindCoordinatorResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 10
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_SINCE: ClassVar[int | None] = 3

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    coordinators: list[Coordinator] = Factory(list)


# FindCoordinatorResponse in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[FindCoordinatorResponse, int]:
    message = new(FindCoordinatorResponse)
    message.throttle_time_ms = 0
    message.error_message = ""
    message.coordinators = []
    message.unknown_tags = ()
    message.error_code, message.node_id, length = unpack_i2_i4_i2(data, at)
    at += 8
    end = at + length
    if not at <= end <= size:
        raise Malformed("host")
    message.host = str(data[at:end], "utf-8")
    at = end
    (message.port,) = unpack_i4(data, at)
    at += 4
    return message, at


def write_v0(message: FindCoordinatorResponse, add: Add) -> None:
    if message.coordinators != []:
        raise Unwritable("coordinators")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    host = message.host.encode()
    add(pack_i2_i4_i2(message.error_code, message.node_id, len(host)))
    add(host)
    add(pack_i4(message.port))


# FindCoordinatorResponse in versions 1–2
def read_v1(data: Buffer, at: int, size: int) -> tuple[FindCoordinatorResponse, int]:
    message = new(FindCoordinatorResponse)
    message.coordinators = []
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, length = unpack_i4_i2x2(data, at)
    at += 8
    if length == -1:
        message.error_message = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("error_message")
        message.error_message = str(data[at:end], "utf-8")
        at = end
    message.node_id, length = unpack_i4_i2(data, at)
    at += 6
    end = at + length
    if not at <= end <= size:
        raise Malformed("host")
    message.host = str(data[at:end], "utf-8")
    at = end
    (message.port,) = unpack_i4(data, at)
    at += 4
    return message, at


def write_v1(message: FindCoordinatorResponse, add: Add) -> None:
    if message.coordinators != []:
        raise Unwritable("coordinators")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4_i2(message.throttle_time_ms, message.error_code))
    error_message = message.error_message
    if error_message is None:
        add(b"\xff\xff")
    else:
        error_message_bytes = error_message.encode()
        add(pack_i2(len(error_message_bytes)))
        add(error_message_bytes)
    host = message.host.encode()
    add(pack_i4_i2(message.node_id, len(host)))
    add(host)
    add(pack_i4(message.port))


# FindCoordinatorResponse in version 3
def read_v3(data: Buffer, at: int, size: int) -> tuple[FindCoordinatorResponse, int]:
    message = new(FindCoordinatorResponse)
    message.coordinators = []
    message.unknown_tags = ()
    message.throttle_time_ms, message.error_code, length = unpack_i4_i2_u1(data, at)
    at += 7
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
    message.node_id, length = unpack_i4_u1(data, at)
    at += 5
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("host")
    message.host = str(data[at:end], "utf-8")
    at = end
    message.port, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v3(message: FindCoordinatorResponse, add: Add) -> None:
    if message.coordinators != []:
        raise Unwritable("coordinators")
    add(pack_i4_i2(message.throttle_time_ms, message.error_code))
    error_message = message.error_message
    if error_message is None:
        add(b"\x00")
    else:
        error_message_bytes = error_message.encode()
        add(compact_string_length[len(error_message_bytes)])
        add(error_message_bytes)
    add(pack_i4(message.node_id))
    host = message.host.encode()
    add(compact_string_length[len(host)])
    add(host)
    add(pack_i4(message.port))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# Coordinator in versions 4–6
def read_coordinator_v4(data: Buffer, at: int, size: int) -> tuple[Coordinator, int]:
    message = new(Coordinator)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("key")
    message.key = str(data[at:end], "utf-8")
    at = end
    message.node_id, length = unpack_i4_u1(data, at)
    at += 5
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("host")
    message.host = str(data[at:end], "utf-8")
    at = end
    message.port, message.error_code, length = unpack_i4_i2_u1(data, at)
    at += 7
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


def write_coordinator_v4(message: Coordinator, add: Add) -> None:
    key = message.key.encode()
    add(compact_string_length[len(key)])
    add(key)
    add(pack_i4(message.node_id))
    host = message.host.encode()
    add(compact_string_length[len(host)])
    add(host)
    add(pack_i4_i2(message.port, message.error_code))
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


# FindCoordinatorResponse in versions 4–6
def read_v4(data: Buffer, at: int, size: int) -> tuple[FindCoordinatorResponse, int]:
    message = new(FindCoordinatorResponse)
    message.error_code = 0
    message.error_message = ""
    message.node_id = 0
    message.host = ""
    message.port = 0
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 14 <= size - at:
        raise Malformed("coordinators")
    coordinators: list[Coordinator] = []
    for _ in range(count):
        coordinator, at = read_coordinator_v4(data, at, size)
        coordinators.append(coordinator)
    message.coordinators = coordinators
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v4(message: FindCoordinatorResponse, add: Add) -> None:
    if message.error_code != 0:
        raise Unwritable("error_code")
    if message.node_id != 0:
        raise Unwritable("node_id")
    if message.host != "":
        raise Unwritable("host")
    if message.port != 0:
        raise Unwritable("port")
    add(pack_i4(message.throttle_time_ms))
    coordinators = message.coordinators
    add(compact_length[len(coordinators)])
    for coordinator in coordinators:
        write_coordinator_v4(coordinator, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[FindCoordinatorResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v1, write_v1),
    3: (read_v3, write_v3),
    4: (read_v4, write_v4),
    5: (read_v4, write_v4),
    6: (read_v4, write_v4),
}

# what JSON and error messages know of the fields
Coordinator.FIELDS = (
    Field("key", "key", "string", (4, 6)),
    Field("node_id", "nodeId", "int32", (4, 6)),
    Field("host", "host", "string", (4, 6)),
    Field("port", "port", "int32", (4, 6)),
    Field("error_code", "errorCode", "int16", (4, 6)),
    Field("error_message", "errorMessage", "string", (4, 6), nullable=(4, 6), ignorable=True),
)
FindCoordinatorResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (1, 6), ignorable=True),
    Field("error_code", "errorCode", "int16", (0, 3)),
    Field("error_message", "errorMessage", "string", (1, 3), nullable=(1, 3), ignorable=True),
    Field("node_id", "nodeId", "int32", (0, 3)),
    Field("host", "host", "string", (0, 3)),
    Field("port", "port", "int32", (0, 3)),
    Field("coordinators", "coordinators", "[]Coordinator", (4, 6), struct=Coordinator),
)
