"""What members with the sticky assignors tell the leader of their past, byte for byte as Java writes it.

    sticky              int32 count; each topic: int16 length, UTF-8, int32 count, int32 partitions; int32 generation
    cooperative-sticky  int32 generation

Old members of `sticky` write no generation. There is no version number: what is left behind the partitions tells.
Nothing here is worth an error, because the data comes from other members and losing it costs stickiness alone: what
cannot be read counts as no partitions of no generation, and bytes behind it are ignored.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

import attrs

from kclient.types import TopicPartition

NO_GENERATION: Final = -1

_INT32 = struct.Struct(">i")
_INT16 = struct.Struct(">h")
_INT32_BYTES: Final = 4


@attrs.frozen
class StickyUserData:
    """The partitions that a member had, in the order of the bytes; `generation` is None where it is not told."""

    partitions: tuple[TopicPartition, ...] = ()
    generation: int | None = NO_GENERATION


def encode_sticky(data: StickyUserData) -> bytes:
    """The user data of `sticky`; topics in the order in which they appear."""
    by_topic: dict[str, list[int]] = {}
    for partition in data.partitions:
        by_topic.setdefault(partition.topic, []).append(partition.partition)
    parts = [_INT32.pack(len(by_topic))]
    for topic, numbers in by_topic.items():
        name = topic.encode()
        parts += [_INT16.pack(len(name)), name, struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)]
    if data.generation is not None:
        parts.append(_INT32.pack(data.generation))
    return b"".join(parts)


def decode_sticky(blob: bytes | memoryview | None) -> StickyUserData:
    """Read what a member with `sticky` sent, with or without a generation."""
    blob = bytes(blob or b"")
    try:
        partitions, at = _read_partitions(blob)
    except (struct.error, UnicodeDecodeError):
        return StickyUserData()
    told = at + _INT32_BYTES <= len(blob)
    return StickyUserData(tuple(partitions), _INT32.unpack_from(blob, at)[0] if told else None)


def encode_cooperative(generation: int) -> bytes:
    """The user data of `cooperative-sticky`."""
    return _INT32.pack(generation)


def decode_cooperative(blob: bytes | memoryview | None) -> int:
    """The generation that a member with `cooperative-sticky` was in last, −1 where it cannot be read."""
    blob = bytes(blob or b"")
    generation: int = _INT32.unpack_from(blob)[0] if len(blob) >= _INT32_BYTES else NO_GENERATION
    return generation


def _read_partitions(blob: bytes) -> tuple[Iterable[TopicPartition], int]:
    """The partitions and where they end. Raises struct.error where bytes are missing."""
    (topics,), at = _INT32.unpack_from(blob), _INT32_BYTES
    found: list[TopicPartition] = []
    for _ in range(_checked(topics, len(blob))):
        (length,) = _INT16.unpack_from(blob, at)
        name, at = _text(blob, at + _INT16.size, length)
        (count,) = _INT32.unpack_from(blob, at)
        numbers = struct.unpack_from(f">{_checked(count, len(blob))}i", blob, at + _INT32_BYTES)
        at += _INT32_BYTES * (1 + count)
        found += [TopicPartition(name, number) for number in numbers]
    return found, at


def _text(blob: bytes, at: int, length: int) -> tuple[str, int]:
    if not 0 <= length <= len(blob) - at:
        raise struct.error("a name is cut off")
    return blob[at : at + length].decode(), at + length


def _checked(count: int, most: int) -> int:
    """A count that may be believed: every entry takes bytes."""
    if not 0 <= count <= most:
        raise struct.error("a count that cannot be")
    return count
