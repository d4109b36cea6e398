"""ConsumerGroupRegularExpressionValue, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/ConsumerGroupRegularExpressionValue.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import Factory, define

from kclient.protocol.message import Field, Message
from kclient.protocol.primitives import (
    Add,
    Buffer,
    Codec,
    Malformed,
    compact_length,
    compact_string_length,
    left_over,
    new,
    read_compact_strings,
    read_tags,
    read_uvarint,
    write_tags,
)

pack_i8x2: Final = struct.Struct(">qq").pack
unpack_i8x2_u1: Final = struct.Struct(">qqB").unpack_from


@define(weakref_slot=False)
class ConsumerGroupRegularExpressionValue(Message):
    """To which topics the broker last resolved a pattern of a consumer-protocol group; refreshed from time to
    time.

    Attributes:
        topics: Names of the topics that match and that the member may see.
        version: Version of the cluster's metadata image against which the pattern was resolved.
        timestamp: When the pattern was resolved, in milliseconds since 1970.
    """

    NAME: ClassVar[str] = "ConsumerGroupRegularExpressionValue"
    TYPE: ClassVar[str] = "coordinator-value"
    API_KEY: ClassVar[int | None] = 16
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    topics: list[str] = Factory(list)
    version: int = 0
    timestamp: int = 0


# ConsumerGroupRegularExpressionValue in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[ConsumerGroupRegularExpressionValue, int]:
    message = new(ConsumerGroupRegularExpressionValue)
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count <= size - at:
        raise Malformed("topics")
    message.topics, at = read_compact_strings(count, data, at, size)
    message.version, message.timestamp, tags = unpack_i8x2_u1(data, at)
    at += 17
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: ConsumerGroupRegularExpressionValue, add: Add) -> None:
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        topic_bytes = topic.encode()
        add(compact_string_length[len(topic_bytes)])
        add(topic_bytes)
    add(pack_i8x2(message.version, message.timestamp))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ConsumerGroupRegularExpressionValue]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
ConsumerGroupRegularExpressionValue.FIELDS = (
    Field("topics", "topics", "[]string", (0, 0)),
    Field("version", "version", "int64", (0, 0)),
    Field("timestamp", "timestamp", "int64", (0, 0)),
)
