"""Message sets of formats 0 and 1: what Kafka before 0.11 stores, and what old Fetch versions are given.

    offset i64 │ size i32 │ CRC-32 u32 │ magic i8 │ attributes i8 │ timestamp i64 (format 1) │ key │ value

A compressed set is one message whose value is the set. It carries the offset of its last message; the offsets inside
are absolute in format 0 and relative to the first in format 1.

Batches of format 2 are converted for old clients. What these formats cannot hold is lost, as with a real broker:
headers, producers, and with them transactions. The response keeps the size that it had before: what does not fit is
cut off, what is missing is filled with the beginning of a message so large that every client takes it for an
incomplete one.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence
from itertools import count

from kclient.embedded.api_error import ApiError
from kclient.embedded.log import StoredBatch, records_of
from kclient.errors import InternalError
from kclient.protocol.errors import UNSUPPORTED_COMPRESSION_TYPE
from kclient.records.batch import BATCH_HEADER_BYTES, LOG_APPEND_TIME_FLAG, Batch
from kclient.records.compression import Compression, compress
from kclient.records.writer import NewRecord
from kclient.types import TimestampType

_SIZED = struct.Struct(">qi")
_CRC = struct.Struct(">I")
_HEAD_0 = struct.Struct(">bb")
_HEAD_1 = struct.Struct(">bbq")
_SIZE = struct.Struct(">i")


def message(
    offset: int, magic: int, attributes: int, timestamp: int, key: bytes | None, value: bytes | None
) -> bytes:
    """One message."""
    head = _HEAD_1.pack(magic, attributes, timestamp) if magic else _HEAD_0.pack(magic, attributes)
    body = b"".join([head, *_sized(key), *_sized(value)])
    return _SIZED.pack(offset, len(body) + _CRC.size) + _CRC.pack(zlib.crc32(body)) + body


def message_set(
    records: Sequence[NewRecord], magic: int, codec: int, *, log_append_time: int | None = None
) -> list[bytes]:
    """Records that have their offsets: a message for each, or one wrapper of all."""
    flag = LOG_APPEND_TIME_FLAG if magic and log_append_time is not None else 0
    times = [one.timestamp if log_append_time is None else log_append_time for one in records]
    offsets = [_offset(one) for one in records]
    if codec == Compression.NONE:
        return [
            message(offset, magic, flag, time, one.key, one.value)
            for offset, time, one in zip(offsets, times, records, strict=True)
        ]
    first = offsets[0] if magic else 0
    inner = [
        message(offset - first, magic, 0, time, one.key, one.value)
        for offset, time, one in zip(offsets, times, records, strict=True)
    ]
    packed = compress(codec, b"".join(inner))
    return [message(offsets[-1], magic, codec | flag, max(times), None, packed)]


def stored_set(
    records: Sequence[NewRecord], magic: int, codec: int, base_offset: int, log_append_time: int | None
) -> list[StoredBatch]:
    """The same as it lies in a log, with offsets from `base_offset` on."""
    placed = [one._replace(offset=offset) for one, offset in zip(records, count(base_offset))]
    messages = message_set(placed, magic, codec, log_append_time=log_append_time)
    if codec == Compression.NONE:
        return [StoredBatch.of(data, offset) for data, offset in zip(messages, count(base_offset))]
    return [StoredBatch.of(messages[0], base_offset)]


def log_append_time_of(header: Batch) -> int | None:
    """The time of all its records, if the broker set it."""
    return header.max_timestamp if header.timestamp_type is TimestampType.LOG_APPEND_TIME else None


def _offset(record: NewRecord) -> int:
    if record.offset is None:
        raise InternalError("a message of an old format is to be written without an offset")
    return record.offset


def _sized(data: bytes | None) -> tuple[bytes, ...]:
    return (_SIZE.pack(-1),) if data is None else (_SIZE.pack(len(data)), data)


def newest_magic(version: int) -> int:
    """The newest format that a client of this Fetch version reads."""
    if version <= 1:
        return 0
    return 1 if version <= 3 else 2


def converted(batches: Iterable[StoredBatch], magic: int, offset: int, size: int) -> bytes:
    """These batches in an older format, in `size` bytes; more if the first whole one needs more.

    Raises ApiError for zstd, which no older format has.
    """
    parts: list[bytes] = []
    left = size
    for stored in batches:
        left -= len(stored.data)
        if left >= 0 and (new := _converted(stored, magic, offset)):
            parts.append(new)
    size = max(size, len(parts[0])) if parts else size
    whole = b"".join(parts)
    missing = size - len(whole)
    return whole + _filler(missing) if missing > 0 else whole[:size]


def _converted(stored: StoredBatch, magic: int, offset: int) -> bytes:
    header = stored.header
    if header.magic <= magic:
        return stored.data
    if header.compression == Compression.ZSTD:
        raise ApiError(UNSUPPORTED_COMPRESSION_TYPE)
    records = [] if header.is_control else records_of(header)
    if not header.compression:
        records = [one for one in records if one.offset is not None and one.offset >= offset]
    if not records:
        return b""
    time = log_append_time_of(header)
    return b"".join(message_set(records, magic, header.compression, log_append_time=time))


def _filler(size: int) -> bytes:
    head = _SIZED.pack(-1, max(size + 1, BATCH_HEADER_BYTES))
    return head.ljust(size, b"\0")[:size]
