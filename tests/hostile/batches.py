"""Batches of a hostile producer, small on the wire and large once they are decompressed."""

from __future__ import annotations

import struct
from functools import cache
from typing import Final

from kclient.records.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG, crc32c
from kclient.records.compression import ZSTD_WINDOW_LOG_MAX, Compression, compress, load_zstd
from kclient.records.varint import encode_signed

MIB: Final = 1024 * 1024
_HEADER_FROM_ATTRIBUTES: Final = struct.Struct(">hiqqqhii")
_BEFORE_CRC: Final = struct.Struct(">qiib")
_TIME: Final = 1_700_000_000_000


def batch(
    records: bytes,
    count: int,
    base_offset: int = 0,
    codec: Compression = Compression.NONE,
    *,
    flags: int = 0,
    producer_id: int = -1,
) -> bytes:
    """A batch of format 2 around compressed records."""
    head = codec | flags, count - 1, _TIME, _TIME, producer_id, -1, -1, count
    body = _HEADER_FROM_ATTRIBUTES.pack(*head) + records
    length = 4 + 1 + 4 + len(body)
    return _BEFORE_CRC.pack(base_offset, length, 0, 2) + struct.pack(">I", crc32c(body)) + body


def record(value: bytes = b"", headers: bytes = b"\0", delta: int = 0) -> bytes:
    """One record without a key; `headers` begin with their count."""
    body = b"\0\0" + encode_signed(delta) + b"\x01" + encode_signed(len(value)) + value + headers
    return encode_signed(len(body)) + body


@cache
def with_headers(count: int, records: int = 1) -> bytes:
    """Records of `count` empty headers each."""
    headers = encode_signed(count) + bytes(2 * count)
    packed = b"".join(record(headers=headers, delta=delta) for delta in range(records))
    return batch(compress(Compression.ZSTD, packed), records, codec=Compression.ZSTD)


@cache
def _large_value(size: int) -> bytes:
    """With the widest window that readers must take: unpacking needs as much memory again for it."""
    zstd = load_zstd()
    compressor = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: ZSTD_WINDOW_LOG_MAX})
    packed: bytes = compressor.compress(record(bytes(size))) + compressor.flush()
    return packed


def large_values(count: int, size: int) -> bytes:
    """Batches of one record, a few kB each, with values of `size` zeros."""
    packed = _large_value(size)
    return b"".join(batch(packed, 1, offset, Compression.ZSTD) for offset in range(count))


def minimal_records(count: int, codec: Compression = Compression.ZSTD) -> bytes:
    """One batch of records without key, value and headers: 7 to 10 bytes each before compression."""
    return batch(compress(codec, b"".join(map(_minimal, range(count)))), count, codec=codec)


def _minimal(delta: int) -> bytes:
    body = b"\0\0" + encode_signed(delta) + b"\x01\x01\0"
    return encode_signed(len(body)) + body


def compressed_marker(size: int) -> bytes:
    """A control batch whose marker has a value of `size` zeros."""
    packed = compress(Compression.ZSTD, record(bytes(size)))
    flags = CONTROL_FLAG | TRANSACTIONAL_FLAG
    return batch(packed, 1, codec=Compression.ZSTD, flags=flags, producer_id=7)


def tiny_frames(codec: Compression, size: int) -> bytes:
    """A batch of about `size` bytes that consist of frames of nothing, and one of a record after them."""
    nothing, last = compress(codec, b""), compress(codec, record())
    if codec == Compression.SNAPPY:  # one header, and blocks
        header, nothing = nothing, struct.pack(">ib", 1, 0)
        return batch(header + nothing * (size // len(nothing)) + last, 1, codec=codec)
    return batch(nothing * (size // len(nothing)) + last, 1, codec=codec)
