"""Batches of format 2, written. Meant for tools, tests and the embedded cluster; the consumer itself writes
none."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kclient.errors import ArgumentError
from kclient.records.batch import (
    BATCH_HEADER_BYTES,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    INT64_MAX,
    LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG,
    crc32c,
)
from kclient.records.compression import Compression, compress
from kclient.records.varint import encode_signed
from kclient.types import TimestampType

_BEFORE_CRC = struct.Struct(">qiib")
_CRC = struct.Struct(">I")
_AFTER_CRC = struct.Struct(">hiqqqhii")
_MARKER_KEY = struct.Struct(">hh")
_MARKER_VALUE = struct.Struct(">hi")
_LENGTH_FROM = 12


class NewRecord(NamedTuple):
    """A record to write. Timestamp in ms since 1970; `offset` None means one above the record before."""

    key: bytes | None = None
    value: bytes | None = None
    timestamp: int = 0
    headers: Sequence[tuple[str, bytes | None]] = ()
    offset: int | None = None


def build_batch(
    records: Iterable[NewRecord],
    *,
    compression: int = Compression.NONE,
    base_offset: int = 0,
    last_offset: int | None = None,
    partition_leader_epoch: int = -1,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    max_timestamp: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
    delete_horizon_ms: int | None = None,
) -> bytes:
    """Return one batch of format 2.

    `last_offset` is the last record's unless given (a compacted batch may end with a gap). `max_timestamp` is
    the highest of the records unless given; with LOG_APPEND_TIME it is the time of them all. With
    `delete_horizon_ms` record timestamps are stored as deltas from the horizon.

    Raise ArgumentError for offsets that do not ascend or do not fit into the batch, and for timestamps that
    Kafka does not have (below −1).
    """
    rows = list(records)
    offsets = _offsets(rows, base_offset)
    last = _last_offset(offsets, base_offset, last_offset)
    timestamps = _timestamps(rows)
    base_timestamp = (timestamps[0] if rows else -1) if delete_horizon_ms is None else delete_horizon_ms
    highest = max(timestamps, default=-1) if max_timestamp is None else max_timestamp
    encoded = [
        _encode_record(row, timestamp_delta=row.timestamp - base_timestamp, offset_delta=offset - base_offset)
        for row, offset in zip(rows, offsets, strict=True)
    ]
    body = compress(compression, b"".join(encoded)) if encoded else b""
    flags = (
        (LOG_APPEND_TIME_FLAG, timestamp_type is TimestampType.LOG_APPEND_TIME),
        (TRANSACTIONAL_FLAG, is_transactional),
        (CONTROL_FLAG, is_control),
        (DELETE_HORIZON_FLAG, delete_horizon_ms is not None),
    )
    attributes = compression | sum(flag for flag, is_set in flags if is_set)
    times, producer = (base_timestamp, highest), (producer_id, producer_epoch, base_sequence)
    covered = _AFTER_CRC.pack(attributes, last - base_offset, *times, *producer, len(rows)) + body
    return _with_prefix(base_offset, partition_leader_epoch, covered)


def _with_prefix(base_offset: int, partition_leader_epoch: int, covered: bytes) -> bytes:
    """Put the fields before the bytes that the CRC covers, which begin with the attributes."""
    length = BATCH_HEADER_BYTES - _LENGTH_FROM + len(covered) - _AFTER_CRC.size
    prefix = _BEFORE_CRC.pack(base_offset, length, partition_leader_epoch, 2)
    return prefix + _CRC.pack(crc32c(covered)) + covered


def build_marker(
    *,
    commit: bool,
    offset: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int = 0,
    timestamp: int = 0,
    partition_leader_epoch: int = -1,
) -> bytes:
    """Return the control batch that ends a transaction."""
    marker = NewRecord(
        _MARKER_KEY.pack(0, 1 if commit else 0), _MARKER_VALUE.pack(0, coordinator_epoch), timestamp
    )
    return build_batch(
        [marker],
        base_offset=offset,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )


def _offsets(records: Sequence[NewRecord], base_offset: int) -> list[int]:
    offsets: list[int] = []
    next_offset = base_offset
    for record in records:
        offset = next_offset if record.offset is None else record.offset
        if offset < next_offset:
            raise ArgumentError(
                f"offset {offset} of a record is below {next_offset}; offsets of a batch ascend from its base"
            )
        offsets.append(offset)
        next_offset = offset + 1
    return offsets


def _timestamps(records: Sequence[NewRecord]) -> list[int]:
    timestamps = [record.timestamp for record in records]
    if timestamps and not -1 <= min(timestamps) <= max(timestamps) <= INT64_MAX:
        raise ArgumentError(f"a record's timestamp is not between -1 and {INT64_MAX}")
    return timestamps


def _last_offset(offsets: Sequence[int], base_offset: int, given: int | None) -> int:
    lowest = offsets[-1] if offsets else base_offset
    last = lowest if given is None else given
    if not lowest <= last < base_offset + 2**31:
        raise ArgumentError(f"last_offset {last} is not between {lowest} and {base_offset + 2**31 - 1}")
    return last


def _encode_record(record: NewRecord, *, timestamp_delta: int, offset_delta: int) -> bytes:
    parts = [
        b"\x00",
        encode_signed(timestamp_delta),
        encode_signed(offset_delta),
        _encode_bytes(record.key),
        _encode_bytes(record.value),
        encode_signed(len(record.headers)),
    ]
    for name, value in record.headers:
        parts += (_encode_bytes(name.encode()), _encode_bytes(value))
    body = b"".join(parts)
    return encode_signed(len(body)) + body


def _encode_bytes(data: bytes | None) -> bytes:
    return b"\x01" if data is None else encode_signed(len(data)) + data
