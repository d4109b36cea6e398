"""LZ4 frames, and the header checksum that message format 0 got wrong.

A frame begins with magic, descriptor (flags, block size, perhaps a content size) and one byte of checksum: bits
8–15 of xxHash32 of the descriptor. Kafka's producers of format 0 hashed the magic as well (KIP-57), so there
either is right.
"""

from __future__ import annotations

import struct
from typing import Any

from kclient.errors import CorruptBatchError

_FRAME_MAGIC = b"\x04\x22\x4d\x18"
_CONTENT_SIZE_FLAG = 0x08
_DICTIONARY_FLAG = 0x01
_MIN_STEP_BYTES = 65536
_MASK = 0xFFFF_FFFF
_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393


class Lz4Frame:
    """One frame. The library allocates all of `max_length` at once, so it is asked in growing steps."""

    def __init__(self, decompressor: Any) -> None:
        self._decompressor = decompressor

    @property
    def eof(self) -> bool:
        return bool(self._decompressor.eof)

    @property
    def unused_data(self) -> bytes:
        unused: bytes | None = self._decompressor.unused_data
        return b"" if unused is None else unused

    def decompress(self, data: bytes | memoryview, max_length: int, /) -> bytes:
        step = min(max_length, max(_MIN_STEP_BYTES, 4 * len(data)))
        parts = [self._decompressor.decompress(data, max_length=step)]
        produced = len(parts[0])
        while produced < max_length and not (self._decompressor.eof or self._decompressor.needs_input):
            step = min(max_length - produced, 2 * step)
            part = self._decompressor.decompress(b"", max_length=step)
            parts.append(part)
            produced += len(part)
        return b"".join(parts)


def new_frame() -> Lz4Frame:
    """A decompressor for one frame."""
    from lz4.frame import LZ4FrameDecompressor

    return Lz4Frame(LZ4FrameDecompressor())


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
