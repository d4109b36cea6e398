"""Primitives of the generated read and write functions: bounds, varints, tagged fields.

Two rules hold here and in `kclient.generated`. A slice of Python bytes never raises, so the end of each slice is
compared with the end of the data once; all other reads past the end raise struct.error or IndexError. And no memory
is allocated for a count before the remaining bytes could hold that many elements.

Readers raise `MALFORMED`, writers `UNWRITABLE`; `kclient.protocol.registry` turns both into the typed errors.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from struct import error as struct_error
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T")

Buffer: TypeAlias = bytes | bytearray | memoryview
Uuid: TypeAlias = bytes  # 16 bytes, big endian
Add: TypeAlias = Callable[[bytes | memoryview], object]
Reader: TypeAlias = Callable[[Buffer, int, int], tuple[T, int]]
Writer: TypeAlias = Callable[[T, Add], None]
Codec: TypeAlias = tuple[Reader[T], Writer[T]]
Tags: TypeAlias = tuple[tuple[int, bytes], ...]

ZERO_UUID: Final[Uuid] = bytes(16)
BYTES: Final = (bytes, bytearray, memoryview)  # excludes str and list in place of bytes
MAX_STRING_BYTES: Final = 32767
MAX_TAG: Final = 2**31 - 1
MAX_TAGS: Final = (
    1024  # of one struct; Kafka's largest has four. A larger dict would take far more memory than its input
)

new: Final = object.__new__  # the readers set the slots directly; __init__ would take a third longer
unpack_i2: Final = Struct(">h").unpack_from


class Malformed(Exception):
    """The bytes cannot be decoded; the text names the field."""


class Unwritable(Exception):
    """The message cannot be written in this version; the text names the field."""


MALFORMED: Final = (Malformed, struct_error, IndexError, UnicodeDecodeError)
UNWRITABLE: Final = (Unwritable, struct_error, AttributeError, TypeError, UnicodeEncodeError, ValueError)


def read_uvarint(data: Buffer, at: int) -> tuple[int, int]:
    """Return an unsigned varint of at most five bytes and 32 bits, and the offset after it.

    Each byte holds seven bits, the lowest first; its high bit says that another byte follows. The bytes AC 02 are
    0x2C + (0x02 << 7) = 44 + 256 = 300.
    """
    value = 0
    for shift in (0, 7, 14, 21, 28):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value, at
    raise Malformed("a varint longer than 32 bits")


def read_string_length(data: Buffer, at: int) -> tuple[int, int]:
    """Return the length field of a compact string (length + 1) when it has more than one byte; a length is an int16."""
    length, at = read_uvarint(data, at)
    if length > MAX_STRING_BYTES + 1:
        raise Malformed("a string longer than 32767 bytes")
    return length, at


def uvarint(value: int) -> bytes:
    """Return the bytes of an unsigned varint."""
    if value < 0x80:
        return value.to_bytes()
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class _CompactLengths(dict[int, bytes]):
    """Length → its compact form, length + 1 as a varint: cached for lengths below 256, computed for others."""

    def __init__(self, limit: int) -> None:
        super().__init__((length, uvarint(length + 1)) for length in range(256))
        self.limit = limit

    def __missing__(self, length: int) -> bytes:
        if length > self.limit:
            raise Unwritable(f"{length} is above {self.limit}")
        return uvarint(length + 1)


compact_length: Final = _CompactLengths(2**31 - 2)
compact_string_length: Final = _CompactLengths(MAX_STRING_BYTES)


class _ArrayStructs(dict[int, Struct]):
    """Count → the struct of that many integers; not cached for 32 and more, so that a peer cannot fill the cache."""

    def __init__(self, code: str) -> None:
        super().__init__((count, Struct(f">{count}{code}")) for count in range(32))
        self.code = code

    def __missing__(self, count: int) -> Struct:
        return Struct(f">{count}{self.code}")


int8_array: Final = _ArrayStructs("b")
int16_array: Final = _ArrayStructs("h")
uint16_array: Final = _ArrayStructs("H")
int32_array: Final = _ArrayStructs("i")
uint32_array: Final = _ArrayStructs("I")
int64_array: Final = _ArrayStructs("q")
float64_array: Final = _ArrayStructs("d")
bool_array: Final = _ArrayStructs("?")


def read_strings(count: int, data: Buffer, at: int, size: int) -> tuple[list[str], int]:
    """Read the elements of an array of strings, each after its int16 length."""
    strings = [""] * count
    for index in range(count):
        (length,) = unpack_i2(data, at)
        at += 2
        end = at + length
        if not at <= end <= size:
            raise Malformed("a string of the array")
        strings[index] = str(data[at:end], "utf-8")
        at = end
    return strings, at


def read_compact_strings(count: int, data: Buffer, at: int, size: int) -> tuple[list[str], int]:
    """Read the elements of an array of compact strings."""
    strings = [""] * count
    for index in range(count):
        length = data[at]
        at += 1
        if length > 127:
            length, at = read_string_length(data, at - 1)
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("a string of the array")
        strings[index] = str(data[at:end], "utf-8")
        at = end
    return strings, at


def read_tags(count: int, data: Buffer, at: int, size: int) -> tuple[dict[int, bytes], int]:
    """Read the tagged fields after their count: tag → its bytes. `count` is the first byte of the count, already read.

    The bytes are copied: a memoryview for each tag of two bytes would take a hundred times the memory of its input.
    """
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count > MAX_TAGS or count * 2 > size - at:
        raise Malformed("more tagged fields than fit")
    tags: dict[int, bytes] = {}
    last = -1
    for _ in range(count):
        tag, at = read_uvarint(data, at)
        if not last < tag <= MAX_TAG:
            raise Malformed("tags are not in ascending order")
        length, at = read_uvarint(data, at)
        end = at + length
        if end > size:
            raise Malformed(f"tag {tag}")
        tags[tag] = bytes(data[at:end])
        last, at = tag, end
    return tags, at


def read_whole(read: Reader[T], data: Buffer) -> T:
    """Read the value of a tagged field, which must take all of its bytes."""
    value, at = read(data, 0, len(data))
    if at != len(data):
        raise Malformed("a tagged field is longer than its value")
    return value


def left_over(tags: dict[int, bytes]) -> Tags:
    """Return the unknown tags, after the known ones were removed. Pairs need less memory than a dict."""
    return tuple(tags.items())


def written(write: Writer[T], value: T) -> bytes:
    """Return the bytes of a tagged field's value."""
    parts: list[bytes | memoryview] = []
    write(value, parts.append)
    return b"".join(parts)


def write_tags(known: tuple[int, ...], tags: dict[int, bytes], unknown: Tags, add: Add) -> None:
    """Write the count, then the tagged fields that are set and the unknown ones in ascending order.

    `known` are all tags of the schema in this version: an unknown tag must not be one of them.
    """
    if unknown:
        extra = dict(unknown)
        if len(extra) < len(unknown) or not all(0 <= tag <= MAX_TAG and tag not in known for tag in extra):
            raise Unwritable("unknown_tags")
        if not all(isinstance(data, BYTES) for data in extra.values()):
            raise Unwritable("unknown_tags")
        tags = tags | extra
    add(uvarint(len(tags)))
    for tag in sorted(tags):
        add(uvarint(tag) + uvarint(len(tags[tag])))
        add(tags[tag])
