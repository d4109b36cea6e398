"""The codecs of record batches, their output bounded while it is produced, their errors translated once.

A few bytes can unpack to gigabytes (zstd: 32,000 times its input), so output is taken in steps, up to one byte more
than the limit, and written where it stays: a list of parts that is joined at the end would need the memory twice.
Input is fed in pieces, for the libraries copy what they do not use of it. Producers make one gzip member, lz4 or zstd
frame of a batch, and some a few; each costs 20 µs however little it holds, so more than `MAX_FRAMES` are an error.
Libraries are imported when a batch first needs them.
"""

from __future__ import annotations

import enum
import io
import sys
import zlib
from collections.abc import Callable
from typing import Any, Protocol

from kclient.errors import BatchTooLargeError, CorruptBatchError, UnsupportedFormatError
from kclient.records import lz4_frame, snappy

ZSTD_WINDOW_LOG_MAX = 27
MAX_FRAMES = 4096
_PIECE_BYTES = 32 * 1024  # of input
_STEP_BYTES = 1024 * 1024  # of output
_GZIP_WBITS = 31


class Compression(enum.IntEnum):
    """The codecs, numbered as in the attributes of a batch."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class Frame(Protocol):
    """One gzip member, lz4 frame or zstd frame being decompressed.

    `decompress` returns less than `max_length` if it needs more input; else the next call continues without any.
    """

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes | memoryview, max_length: int, /) -> bytes: ...


class GzipMember:
    """One gzip member. zlib must be given the input again that it has not consumed."""

    def __init__(self) -> None:
        self._decompressor = zlib.decompressobj(_GZIP_WBITS)

    @property
    def eof(self) -> bool:
        return self._decompressor.eof

    @property
    def unused_data(self) -> bytes:
        return self._decompressor.unused_data

    def decompress(self, data: bytes | memoryview, max_length: int, /) -> bytes:
        return self._decompressor.decompress(data or self._decompressor.unconsumed_tail, max_length)


def decompress(codec: int, data: bytes | memoryview, limit: int, *, magic: int = 2) -> bytes:
    """The bytes that `data` unpacks to, at most `limit`.

    `magic` is the format of the batch: lz4 of format 0 may have Kafka's old frame-header checksum, and zstd
    came with format 2. Raises BatchTooLargeError above the limit, CorruptBatchError, and
    UnsupportedFormatError for a codec that the format does not have or whose library is missing.
    """
    if codec == Compression.NONE:
        return bytes(data)
    view = memoryview(data)
    try:
        if codec == Compression.GZIP:
            return _decompress_frames(GzipMember, view, limit, zlib.error)
        if codec == Compression.SNAPPY:
            return snappy.decompress(bytes(data), limit)
        if codec == Compression.LZ4:
            whole = lz4_frame.with_right_checksum(bytes(data)) if magic == 0 else data
            return _decompress_frames(lz4_frame.Lz4Frame, memoryview(whole), limit, RuntimeError)
        if codec == Compression.ZSTD and magic == 2:
            return _decompress_zstd(view, limit)
    except ImportError as exc:
        name = Compression(codec).name.lower()
        text = f"it is compressed with {name}, whose library cannot be imported ({exc})"
        raise UnsupportedFormatError(text, codec=codec) from exc
    raise UnsupportedFormatError(
        f"it names codec {codec}, which format {magic} does not have", codec=codec, magic=magic
    )


def compress(codec: int, data: bytes) -> bytes:
    """`data` in the form that every reader knows: snappy in xerial framing, lz4 in independent blocks."""
    if codec == Compression.NONE:
        return data
    if codec == Compression.GZIP:
        gzip = zlib.compressobj(wbits=_GZIP_WBITS)
        return gzip.compress(data) + gzip.flush()
    if codec == Compression.SNAPPY:
        return snappy.compress(data)
    if codec == Compression.LZ4:
        return lz4_frame.compress(data)
    if codec == Compression.ZSTD:
        compressed: bytes = load_zstd().compress(data)
        return compressed
    raise UnsupportedFormatError(f"there is no codec {codec}", codec=codec)


def _decompress_zstd(data: memoryview, limit: int) -> bytes:
    zstd = load_zstd()
    options = {zstd.DecompressionParameter.window_log_max: ZSTD_WINDOW_LOG_MAX}
    return _decompress_frames(lambda: zstd.ZstdDecompressor(options=options), data, limit, zstd.ZstdError)


def load_zstd() -> Any:
    """The standard library's module from Python 3.14 on, its backport before."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


def _decompress_frames(
    new_frame: Callable[[], Frame], data: memoryview, limit: int, library_error: type[Exception]
) -> bytes:
    """Return the output of all frames of `data`, which follow each other; each must be complete."""
    if 0 < len(data) <= _PIECE_BYTES:
        try:
            whole = _whole_frame(new_frame(), data, limit)
        except library_error as exc:
            raise _cannot_be_unpacked(exc) from exc
        if whole is not None:
            return whole
    unpacked = io.BytesIO()
    frame, frames = new_frame(), 1
    pending, rest = data[:_PIECE_BYTES], data[_PIECE_BYTES:]
    while pending:
        if frame.eof:
            if frames == MAX_FRAMES:
                raise CorruptBatchError(f"its compressed records are in more than {MAX_FRAMES} frames")
            frame, frames = new_frame(), frames + 1
        try:
            _unpack(frame, pending, unpacked, limit)
        except library_error as exc:
            raise _cannot_be_unpacked(exc) from exc
        pending = memoryview(frame.unused_data) if frame.eof else data[:0]
        if not pending:
            pending, rest = rest[:_PIECE_BYTES], rest[_PIECE_BYTES:]
    if not frame.eof:
        raise CorruptBatchError("its compressed records are cut off")
    return unpacked.getvalue()


def _whole_frame(frame: Frame, data: memoryview, limit: int) -> bytes | None:
    """Return the output of a frame that is all of `data` and needs one step; None if there is more to it.

    Nearly all batches are such a frame. Without the loops below one of 16 kB costs half.
    """
    part = frame.decompress(data, min(_STEP_BYTES, limit + 1))
    return part if frame.eof and not frame.unused_data and len(part) <= limit else None


def _cannot_be_unpacked(exc: Exception) -> CorruptBatchError:
    return CorruptBatchError(f"its compressed records cannot be unpacked: {exc}")


def _unpack(frame: Frame, data: bytes | memoryview, unpacked: io.BytesIO, limit: int) -> None:
    """Write all that the frame makes of `data`. Raises BatchTooLargeError, and what the library raises."""
    while True:
        step = min(_STEP_BYTES, limit + 1 - unpacked.tell())
        part = frame.decompress(data, step)
        unpacked.write(part)
        if unpacked.tell() > limit:
            raise BatchTooLargeError(f"its records unpack to more than {limit} bytes", limit=limit)
        if frame.eof or len(part) < step:
            return
        data = b""
