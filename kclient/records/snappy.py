"""Snappy as Kafka carries it: one raw block, or Java's xerial framing of many.

    xerial   82 53 4e 41 50 50 59 00 │ version i32 │ compatible version i32 │ { size i32, raw block }…

The versions are not looked at: other producers write them in other byte orders. A header may come again
between blocks, where streams were put together. A raw block begins with its unpacked size, which is believed
only up to what the format can reach: three bytes copy at most 64. Java's blocks hold 32 KiB, and more than `MAX_BLOCKS`
are refused, for each costs a microsecond however little it holds.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator

from kclient.errors import BatchTooLargeError, CorruptBatchError

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
MAX_BLOCKS = 2**31 // _XERIAL_BLOCK_BYTES
_MAX_RATIO = 22
_SIZE = struct.Struct(">i")


def decompress(data: bytes, limit: int) -> bytes:
    """Unpack raw or xerial data of at most `limit` bytes. Raises BatchTooLargeError and CorruptBatchError."""
    from cramjam import DecompressionError
    from cramjam import snappy as library

    blocks = list(_xerial_blocks(data)) if data.startswith(_XERIAL_MAGIC) else [data]
    total = sum(map(_unpacked_size, blocks))
    if total > limit:
        raise BatchTooLargeError(f"its records unpack to {total} bytes, more than {limit}", limit=limit)
    try:
        if len(blocks) == 1:
            return bytes(library.decompress_raw(blocks[0]))
        unpacked = io.BytesIO()
        for block in blocks:
            unpacked.write(library.decompress_raw(block))
        return unpacked.getvalue()
    except DecompressionError as exc:
        raise CorruptBatchError(f"its compressed records cannot be unpacked: {exc}") from exc


def compress(data: bytes) -> bytes:
    """`data` in xerial framing, in blocks of 32 KiB as Java makes them."""
    from cramjam import snappy as library

    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(library.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_SIZE.pack(len(block)), block)
    return b"".join(parts)


def _xerial_blocks(data: bytes) -> Iterator[bytes]:
    position = blocks = 0
    while position < len(data):
        if data.startswith(_XERIAL_MAGIC, position):
            position += len(_XERIAL_HEADER)
            continue
        start = position + _SIZE.size
        size = _SIZE.unpack_from(data, position)[0] if start <= len(data) else -1
        if not 0 < size <= len(data) - start:
            raise CorruptBatchError(f"a snappy block of {size} bytes with {len(data) - start} bytes left")
        if blocks == MAX_BLOCKS:
            raise CorruptBatchError(f"its compressed records are in more than {MAX_BLOCKS} snappy blocks")
        yield data[start : start + size]
        position, blocks = start + size, blocks + 1
    if position > len(data):
        raise CorruptBatchError("its snappy header is cut off")


def _unpacked_size(block: bytes) -> int:
    size = 0
    for shift, byte in zip(range(0, 35, 7), block, strict=False):
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    else:
        raise CorruptBatchError("a snappy block does not begin with its size")
    if size > _MAX_RATIO * len(block):
        raise CorruptBatchError(f"a snappy block of {len(block)} bytes claims to unpack to {size}")
    return size
