"""Offsets for timestamps and for the special values of ListOffsets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from kclient.embedded.api_error import ApiError
from kclient.embedded.log import Log, StoredBatch, columns_of
from kclient.embedded.partition import Partition
from kclient.protocol.errors import OFFSET_NOT_AVAILABLE

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5  # nothing is ever tiered here
EARLIEST_PENDING_UPLOAD: Final = -6
READ_COMMITTED: Final = 1


class TimestampAndOffset(NamedTuple):
    """An offset, the timestamp of its record (ms since 1970, −1 where none was asked for) and its leader epoch."""

    timestamp: int
    offset: int
    leader_epoch: int


def last_fetchable(partition: Partition, isolation: int | None) -> int:
    """The offset below which a client of this isolation may read; None is a broker."""
    if isolation is None:
        return partition.log.end
    return partition.last_stable_offset if isolation == READ_COMMITTED else partition.high_watermark


def look_up(partition: Partition, timestamp: int, isolation: int | None) -> TimestampAndOffset | None:
    """Return the offset of a timestamp or special value; None if there is none.

    Raise ApiError while a new leader does not know yet what is committed.
    """
    log, limit = partition.log, last_fetchable(partition, isolation)
    if timestamp == LATEST:
        _check_available(partition, isolation)
        return TimestampAndOffset(-1, limit, partition.leader_epoch if log.epochs.entries else -1)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return TimestampAndOffset(-1, log.start, log.epochs.at(log.start))
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return None
    found = newest(log) if timestamp == MAX_TIMESTAMP else first_since(log, timestamp)
    if found is not None and found.offset < limit:
        return found
    _check_available(partition, isolation)
    return None


def _check_available(partition: Partition, isolation: int | None) -> None:
    epochs = partition.log.epochs.entries
    if isolation is not None and epochs and epochs[-1][1] > partition.high_watermark:
        raise ApiError(OFFSET_NOT_AVAILABLE)


def first_since(log: Log, timestamp: int) -> TimestampAndOffset | None:
    """Return the first record at or after the log start with this timestamp or a later one."""
    for stored in log.not_before(timestamp):
        if stored.header.max_timestamp >= timestamp:
            found = _record(stored, lambda offset, time: offset >= log.start and time >= timestamp)
            if found is not None:
                return found
    return None


def newest(log: Log) -> TimestampAndOffset | None:
    """The first record with the highest timestamp of all."""
    stored = log.latest
    if stored is None:
        return None
    highest = stored.header.max_timestamp
    return _record(stored, lambda offset, time: time == highest)


def _record(stored: StoredBatch, fits: Callable[[int, int], bool]) -> TimestampAndOffset | None:
    columns = columns_of(stored.header)
    for offset, time in zip(columns.offsets, columns.timestamps, strict=True):
        if fits(offset, time):
            return TimestampAndOffset(time, offset, stored.leader_epoch)
    return None


def old_style(
    partition: Partition, timestamp: int, count: int, isolation: int | None, now_ms: int
) -> list[int]:
    """Return the offsets of ListOffsets v0: up to `count` first offsets of segments, newest first.

    A log is one segment here, and its time is now.
    """
    log, limit = partition.log, last_fetchable(partition, isolation)
    if timestamp == EARLIEST:
        return [log.start][:count]
    offsets = [limit, log.start] if limit > log.start else [log.start]
    return offsets[:count] if timestamp == LATEST or timestamp >= now_ms else []
