"""ConsumerGroupRegularExpressionKey, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/ConsumerGroupRegularExpressionKey.json by `python -m codegen`; edits here are lost.
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
    Malformed,
    Unwritable,
    new,
)

pack_i2: Final = struct.Struct(">h").pack
unpack_i2: Final = struct.Struct(">h").unpack_from


@define(weakref_slot=False)
class ConsumerGroupRegularExpressionKey(Message):
    """Key of record type 16 in __consumer_offsets: the topics that a subscribed pattern matches.

    Attributes:
        group_id: The group this record belongs to.
        regular_expression: The RE2J pattern as members subscribe with it.
    """

    NAME: ClassVar[str] = "ConsumerGroupRegularExpressionKey"
    TYPE: ClassVar[str] = "coordinator-key"
    API_KEY: ClassVar[int | None] = 16
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = None

    group_id: str = ""
    regular_expression: str = ""


# ConsumerGroupRegularExpressionKey in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[ConsumerGroupRegularExpressionKey, int]:
    message = new(ConsumerGroupRegularExpressionKey)
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("group_id")
    message.group_id = str(data[at:end], "utf-8")
    at = end
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("regular_expression")
    message.regular_expression = str(data[at:end], "utf-8")
    at = end
    return message, at


def write_v0(message: ConsumerGroupRegularExpressionKey, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    group_id = message.group_id.encode()
    add(pack_i2(len(group_id)))
    add(group_id)
    regular_expression = message.regular_expression.encode()
    add(pack_i2(len(regular_expression)))
    add(regular_expression)


# version → its layout's pair
CODECS: dict[int, Codec[ConsumerGroupRegularExpressionKey]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
ConsumerGroupRegularExpressionKey.FIELDS = (
    Field("group_id", "groupId", "string", (0, 0)),
    Field("regular_expression", "regularExpression", "string", (0, 0)),
)
