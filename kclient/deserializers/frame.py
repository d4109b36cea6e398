"""The frame of a schema registry's serializers, before the value.

0 | schema id, int32 | value                                       Avro, JSON Schema
0 | schema id, int32 | place of the message in its schema | message    Protobuf: zigzag varints, a count and that
                                                                   many indexes, or a single 0 for the first message

    frame:17:SCHEMA     in an option: values begin with this frame, and the id must be 17 (or 17,18; * is any)
"""

from __future__ import annotations

import re
import struct
from typing import Any, Final

from kclient.deserializers.elements import BadValueError
from kclient.errors import ConfigError

FRAME_SIZE: Final = 5


NO_FRAME: Final = "it does not begin with the registry's frame: a zero and a schema id"


_HEADER: Final = struct.Struct(">bI")


def schema_id_of(data: bytes) -> int | None:
    """Return the id in the frame, None without a frame."""
    if len(data) < FRAME_SIZE or data[0] != 0:
        return None
    schema_id: int = _HEADER.unpack_from(data)[1]
    return schema_id


MAX_NESTING: Final = 32


VARINT_BYTES: Final = 5


def message_indexes(data: bytes, start: int) -> tuple[tuple[int, ...], int]:
    """Return the indexes of the message in its schema, and where its bytes begin. Raises BadValueError."""
    count, at = _zigzag(data, start)
    if not 0 <= count <= MAX_NESTING:
        raise BadValueError("its frame does not name the message of its schema")
    found = []
    for _ in range(count):
        index, at = _zigzag(data, at)
        found.append(index)
    return tuple(found) or (0,), at


def _zigzag(data: bytes, start: int) -> tuple[int, int]:
    number = 0
    for place, byte in enumerate(data[start : start + VARINT_BYTES]):
        number |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), start + place + 1
    raise BadValueError("its frame does not name the message of its schema")


def indexes_of(file: Any, message: str) -> tuple[int, ...] | None:
    """Return the indexes of a message: in its file (a FileDescriptorProto), and in each message around it."""
    prefix = f"{file.package}." if file.package else ""
    if not message.startswith(prefix):
        return None
    found: list[int] = []
    within = file.message_type
    for part in message.removeprefix(prefix).split("."):
        index = next((number for number, each in enumerate(within) if each.name == part), None)
        if index is None:
            return None
        found.append(index)
        within = within[index].nested_type
    return tuple(found)


_OPTION: Final = re.compile(r"frame:(?P<ids>\*|\d+(?:,\d+)*):(?P<schema>.+)", re.DOTALL)


def split_frame(option: str, written: str) -> tuple[frozenset[int] | None, str]:
    """Return the ids that an option expects, and its schema: None for no frame, empty for any id.

    Raises ConfigError.
    """
    if not written.startswith("frame:"):
        return None, written
    match = _OPTION.fullmatch(written)
    if match is None:
        raise ConfigError(
            f"{option} is not frame:IDS:SCHEMA. IDS are the schema ids that may come, such as 17 or 17,18, or *. "
            "SCHEMA is a file or the schema itself."
        )
    return frozenset() if match["ids"] == "*" else frozenset(map(int, match["ids"].split(","))), match[
        "schema"
    ]


def unexpected_id(schema_id: int) -> str:
    """Return the reason of a bad value whose id is not one of the option's."""
    return f"schema id {schema_id} is none of those expected"
