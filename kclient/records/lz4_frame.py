"""LZ4 frames, and the header checksum that message format 0 got wrong.

A frame begins with magic, descriptor (flags, block size, perhaps a content size) and one byte of checksum: bits
8–15 of xxHash32 of the descriptor. Kafka's producers of format 0 hashed the magic as well (KIP-57), so there
either is right.
"""

from __future__ import annotations

import struct

from kclient.errors import CorruptBatchError

_FRAME_MAGIC = b"\x04\x22\x4d\x18"
_CONTENT_SIZE_FLAG = 0x08
_DICTIONARY_FLAG = 0x01
_MIN_STEP_BYTES = 65536
_MASK = 0xFFFF_FFFF
_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393


class Lz4Frame:
    """One frame. The library allocates all of `max_length` at once, so it is asked in growing steps.

    `decompress_chunk` takes half the time of LZ4FrameDecompressor, which is written in Python on top of it. That counts
    for batches of 16 kB.
    """

    def __init__(self) -> None:
        import lz4.frame

        self._decompress = lz4.frame.decompress_chunk
        self._context = lz4.frame.create_decompression_context()
        self._unread = b""
        self.eof: bool = False
        self.unused_data: bytes = b""

    def decompress(self, data: bytes | memoryview, max_length: int, /) -> bytes:
        rest = self._unread + data
        step = min(max_length, max(_MIN_STEP_BYTES, 4 * len(rest)))
        parts: list[bytes] = []
        produced = 0
        while True:
            part, read, self.eof = self._decompress(self._context, rest, max_length=step)
            parts.append(part)
            produced += len(part)
            rest = rest[read:]
            if self.eof or not rest or produced >= max_length:
                break
            step = min(max_length - produced, 2 * step)
        self.unused_data, self._unread = (rest, b"") if self.eof else (b"", rest)
        return parts[0] if len(parts) == 1 else b"".join(parts)


def compress(data: bytes) -> bytes:
    """One frame of independent blocks of 64 KiB: Java reads no linked ones."""
    from lz4.frame import BLOCKSIZE_MAX64KB
    from lz4.frame import compress as compress_frame

    compressed: bytes = compress_frame(
        data, block_size=BLOCKSIZE_MAX64KB, block_linked=False, store_size=False
    )
    return compressed


def with_right_checksum(frame: bytes) -> bytes:
    """A frame of message format 0 with the checksum that libraries expect; one that is wrong either way is
    refused.
    """
    if len(frame) < 7 or frame[:4] != _FRAME_MAGIC:
        raise CorruptBatchError("its records are not an lz4 frame")
    flags = frame[4]
    end = 6 + (8 if flags & _CONTENT_SIZE_FLAG else 0)
    if flags & _DICTIONARY_FLAG or len(frame) <= end:
        raise CorruptBatchError("the header of its lz4 frame is damaged")
    right = header_checksum(frame[4:end])
    if frame[end] not in (right, header_checksum(frame[:end])):
        raise CorruptBatchError("the checksum of its lz4 frame's header is wrong")
    return b"".join((frame[:end], bytes((right,)), frame[end + 1 :]))


def header_checksum(descriptor: bytes) -> int:
    """Bits 8–15 of xxHash32 (seed 0) of fewer than 16 bytes."""
    value = (_PRIME_5 + len(descriptor)) & _MASK
    whole = len(descriptor) & ~3
    for (word,) in struct.iter_unpack("<I", descriptor[:whole]):
        value = _rotate_left((value + word * _PRIME_3) & _MASK, 17) * _PRIME_4 & _MASK
    for byte in descriptor[whole:]:
        value = _rotate_left((value + byte * _PRIME_5) & _MASK, 11) * _PRIME_1 & _MASK
    value = (value ^ value >> 15) * _PRIME_2 & _MASK
    value = (value ^ value >> 13) * _PRIME_3 & _MASK
    return (value ^ value >> 16) >> 8 & 0xFF


def _rotate_left(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK
