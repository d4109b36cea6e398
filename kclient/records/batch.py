"""Headers of the record batches in a records field, in order. Nothing is decompressed.

    format 2   base offset i64 │ length i32 │ partition leader epoch i32 │ magic i8 │ CRC-32C u32
               │ attributes i16 │ last offset delta i32 │ base timestamp i64 │ max timestamp i64
               │ producer id i64 │ producer epoch i16 │ base sequence i32 │ record count i32 │ records
    format 0   offset i64 │ size i32 │ CRC-32 u32 │ magic i8 │ attributes i8 │ key │ value
    format 1   the same with a timestamp i64 after the attributes

Formats 0 and 1 have no batches: here an uncompressed message counts as one, and so does the wrapper of compressed ones.
A fetch may end within a batch. This is not an error; the next fetch begins there.

The field is copied once, if it is not `bytes` already: spans of it become keys and values, and no frame stays alive.
"""

from __future__ import annotations

import functools
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import cast

import attrs

from kclient.errors import CorruptBatchError, UnsupportedFormatError
from kclient.types import TimestampType

SIZE_PREFIX_BYTES = 12
MAGIC_POSITION = 16
BATCH_HEADER_BYTES = 61
MIN_MESSAGE_BYTES = 14
INT64_MAX = 2**63 - 1

CODEC_MASK = 0x07  # of the attributes, as the flags below
LOG_APPEND_TIME_FLAG = 0x08
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20
DELETE_HORIZON_FLAG = 0x40

_PREFIX = struct.Struct(">qi")
_HEADER = struct.Struct(">qiibIhiqqqhii")
_MESSAGE_0 = struct.Struct(">qiIbb")
_MESSAGE_1 = struct.Struct(">qiIbbq")

CRC32C_FROM = 21
_CRC32_FROM = 16


@attrs.define(eq=False)
class Batch:
    """The header of one batch. Numbers that its format does not have are −1.

    The batch is `field[start:end]`. `base_offset` of a compressed wrapper of formats 0 and 1, whose header holds
    its last offset only, is that last offset. `base_timestamp` holds the delete horizon where
    `delete_horizon_ms` is not None; record timestamps are deltas from it all the same.
    """

    field: bytes
    start: int
    end: int
    magic: int
    base_offset: int
    last_offset: int
    attributes: int
    crc: int
    base_timestamp: int
    max_timestamp: int
    partition_leader_epoch: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    count: int = -1

    @property
    def size_in_bytes(self) -> int:
        """The whole batch, header included."""
        return self.end - self.start

    @property
    def next_offset(self) -> int:
        """The offset after the batch, also if compaction removed its last records."""
        return self.last_offset + 1

    @property
    def compression(self) -> int:
        """The codec's number: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd; 5 to 7 mean nothing."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        """Whether the producer or the broker set the timestamps; format 0 has none."""
        if self.magic == 0:
            return TimestampType.NO_TIMESTAMP_TYPE
        if self.attributes & LOG_APPEND_TIME_FLAG:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction of `producer_id`."""
        return self.magic == 2 and bool(self.attributes & TRANSACTIONAL_FLAG)

    @property
    def is_control(self) -> bool:
        """Whether the batch contains transaction markers, which are not returned to users."""
        return self.magic == 2 and bool(self.attributes & CONTROL_FLAG)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop the batch's tombstones (ms since 1970), None if it is not set yet (KIP-534)."""
        return self.base_timestamp if self.magic == 2 and self.attributes & DELETE_HORIZON_FLAG else None

    @property
    def leader_epoch(self) -> int | None:
        """The epoch of the leader that appended the batch, None if unknown."""
        return self.partition_leader_epoch if self.partition_leader_epoch >= 0 else None

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; after 2³¹−1 comes 0."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset - self.base_offset) & 0x7FFF_FFFF

    def view(self, start: int = 0) -> memoryview:
        """The batch's bytes from its byte `start` on."""
        return memoryview(self.field)[self.start + start : self.end]

    def check_crc(self) -> None:
        """Raise CorruptBatchError if the stored CRC is not that of the bytes."""
        actual = crc32c(self.view(CRC32C_FROM)) if self.magic == 2 else zlib.crc32(self.view(_CRC32_FROM))
        if actual != self.crc:
            raise CorruptBatchError(f"its stored CRC is {self.crc:#010x}, its bytes give {actual:#010x}")


def read_batches(data: bytes | bytearray | memoryview) -> Iterator[Batch]:
    """Return the batches of a records field, in order. An incomplete last batch is left out without an error.

    Raise CorruptBatchError and UnsupportedFormatError, with `base_offset` set. Both end the iteration: no later
    batch can be found.
    """
    return batch_headers(bytes(data))


def batch_headers(field: bytes | memoryview) -> Iterator[Batch]:
    """Return the same as `read_batches` without copying the field, for callers that only read headers."""
    batch = batch_at(field, 0)
    while batch is not None:
        yield batch
        batch = batch_at(field, batch.end)


def batch_at(field: bytes | memoryview, position: int) -> Batch | None:
    """Return the batch that begins at the position, None if it is incomplete. Raise what `read_batches` raises."""
    size = len(field)
    if size - position < SIZE_PREFIX_BYTES:
        return None
    base_offset, length = _PREFIX.unpack_from(field, position)
    if length < MIN_MESSAGE_BYTES:
        raise CorruptBatchError(f"no batch is as short as {length} bytes", base_offset=base_offset)
    if size - position <= MAGIC_POSITION:
        return None
    magic = field[position + MAGIC_POSITION]
    if magic > 2:
        raise UnsupportedFormatError(f"its format (magic) is {magic}", base_offset=base_offset, magic=magic)
    end = position + SIZE_PREFIX_BYTES + length
    if end > size:
        return None
    return _read_batch(field, position, end) if magic == 2 else _read_message(field, position, end)


def first_batch_size(data: bytes | bytearray | memoryview) -> int | None:
    """Return the size of the first batch of `data` according to its header, None if `data` is too short."""
    if len(data) < SIZE_PREFIX_BYTES:
        return None
    length: int = _PREFIX.unpack_from(data)[1]
    return SIZE_PREFIX_BYTES + length


def _read_batch(field: bytes | memoryview, start: int, end: int) -> Batch:
    if end - start < BATCH_HEADER_BYTES:
        raise CorruptBatchError(
            f"it has {end - start} bytes, its header alone has {BATCH_HEADER_BYTES}",
            base_offset=_PREFIX.unpack_from(field, start)[0],
        )
    (
        base_offset,
        _,
        partition_leader_epoch,
        magic,
        crc,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    ) = _HEADER.unpack_from(field, start)
    last_offset = base_offset + last_offset_delta
    if base_offset < 0 or last_offset_delta < 0 or last_offset >= INT64_MAX:
        raise CorruptBatchError(
            f"its last offset is {base_offset} + {last_offset_delta}", base_offset=base_offset
        )
    return Batch(
        cast("bytes", field),
        start,
        end,
        magic,
        base_offset,
        last_offset,
        attributes,
        crc,
        base_timestamp,
        max_timestamp,
        partition_leader_epoch,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )


def _read_message(field: bytes | memoryview, start: int, end: int) -> Batch:
    offset, _, crc, magic, attributes = _MESSAGE_0.unpack_from(field, start)
    timestamp = -1
    if magic == 1:
        if end - start < _MESSAGE_1.size:
            raise CorruptBatchError(f"its {end - start} bytes hold no message", base_offset=offset)
        timestamp = _MESSAGE_1.unpack_from(field, start)[-1]
    if not 0 <= offset < INT64_MAX:
        raise CorruptBatchError(f"its offset is {offset}", base_offset=offset)
    return Batch(
        cast("bytes", field), start, end, magic, offset, offset, attributes, crc, timestamp, timestamp
    )


def crc32c(data: bytes | memoryview) -> int:
    """Return the CRC of format 2, CRC-32C (Castagnoli); zlib has another polynomial."""
    return _crc32c()(data)


@functools.cache
def _crc32c() -> Callable[[bytes | memoryview], int]:
    from crc32c import crc32c  # importing it costs 45 ms

    return crc32c
