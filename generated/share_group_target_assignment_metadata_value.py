"""ShareGroupTargetAssignmentMetadataValue, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/ShareGroupTargetAssignmentMetadataValue.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import define

from kclient.protocol.message import Field, Message
from kclient.protocol.primitives import (
    Add,
    Buffer,
    Codec,
    left_over,
    new,
    read_tags,
    read_whole,
    write_tags,
    written,
)

pack_i4: Final = struct.Struct(">i").pack
pack_i8: Final = struct.Struct(">q").pack
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i8: Final = struct.Struct(">q").unpack_from


@define(weakref_slot=False)
class ShareGroupTargetAssignmentMetadataValue(Message):
    """For which group epoch the share group's target assignment was computed.

    Attributes:
        assignment_epoch: The group epoch the target assignment belongs to.
        assignment_timestamp: When it was computed, in milliseconds since 1970; 0 before Kafka 4.3.
    """

    NAME: ClassVar[str] = "ShareGroupTargetAssignmentMetadataValue"
    TYPE: ClassVar[str] = "coordinator-value"
    API_KEY: ClassVar[int | None] = 12
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    assignment_epoch: int = 0
    assignment_timestamp: int = 0


def read_assignment_timestamp_tag_v0(data: Buffer, at: int, size: int) -> tuple[int, int]:
    value: int
    (value,) = unpack_i8(data, at)
    at += 8
    return value, at


def write_assignment_timestamp_tag_v0(value: int, add: Add) -> None:
    add(pack_i8(value))


# ShareGroupTargetAssignmentMetadataValue in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[ShareGroupTargetAssignmentMetadataValue, int]:
    message = new(ShareGroupTargetAssignmentMetadataValue)
    message.assignment_timestamp = 0
    message.unknown_tags = ()
    message.assignment_epoch, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        if 0 in found:
            message.assignment_timestamp = read_whole(read_assignment_timestamp_tag_v0, found.pop(0))
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: ShareGroupTargetAssignmentMetadataValue, add: Add) -> None:
    add(pack_i4(message.assignment_epoch))
    tags: dict[int, bytes] = {}
    if message.assignment_timestamp != 0:
        tags[0] = written(write_assignment_timestamp_tag_v0, message.assignment_timestamp)
    if tags or message.unknown_tags:
        write_tags((0,), tags, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ShareGroupTargetAssignmentMetadataValue]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
ShareGroupTargetAssignmentMetadataValue.FIELDS = (
    Field("assignment_epoch", "assignmentEpoch", "int32", (0, 0)),
    Field(
        "assignment_timestamp",
        "assignmentTimestamp",
        "int64",
        (0, 0),
        tagged=(0, 0),
        tag=0,
        ignorable=True,
    ),
)
