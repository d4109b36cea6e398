"""An opened batch: its records decompressed once, then decoded as many at a time as are wanted.

`open_batch` checks what the header claims before anything is allocated for it. Sections of format 2 and of
formats 0 and 1 (`legacy`) are read alike: `read_into(new_columns(), count)` until `is_finished`.
"""

from __future__ import annotations

from typing import Protocol

import attrs

from kclient.errors import CorruptBatchError
from kclient.records.batch import BATCH_HEADER_BYTES, INT64_MAX, INT64_MIN, Batch
from kclient.records.columns import Columns
from kclient.records.compression import decompress
from kclient.records.decoder import MIN_RECORD_BYTES, decode_records
from kclient.records.legacy import open_message
from kclient.types import TimestampType

MAX_DECOMPRESSED_BATCH_BYTES = 128 * 1024 * 1024


class Section(Protocol):
    """The records of one batch, read from front to back."""

    @property
    def is_finished(self) -> bool: ...

    def new_columns(self) -> Columns:
        """Empty columns for records of this batch."""
        ...

    def read_into(self, columns: Columns, count: int) -> None:
        """Append up to `count` records. On CorruptBatchError the columns hold those before the bad one."""
        ...


@attrs.define(eq=False)
class RecordSection:
    """The records of a batch of format 2."""

    batch: Batch
    data: bytes
    left: int
    position: int = 0
    previous_delta: int = -1

    @property
    def is_finished(self) -> bool:
        return self.left == 0

    def new_columns(self) -> Columns:
        return Columns(self.data, self.batch.timestamp_type, self.batch.leader_epoch)

    def read_into(self, columns: Columns, count: int) -> None:
        batch = self.batch
        count = min(count, self.left)
        try:
            self.position = decode_records(
                columns,
                self.position,
                count,
                base_offset=batch.base_offset,
                base_timestamp=batch.base_timestamp,
                previous_delta=self.previous_delta,
                last_delta=batch.last_offset - batch.base_offset,
            )
        finally:
            self._finish_timestamps(columns)
        self.left -= count
        if self.left > 0:
            self.previous_delta = columns.offsets[-1] - batch.base_offset
        elif self.position != len(self.data):
            raise CorruptBatchError(
                f"{len(self.data) - self.position} bytes follow its {batch.count} records"
            )

    def _finish_timestamps(self, columns: Columns) -> None:
        timestamps = columns.timestamps
        if columns.timestamp_type is TimestampType.LOG_APPEND_TIME:
            timestamps[:] = [self.batch.max_timestamp] * len(timestamps)
        elif timestamps and not INT64_MIN <= min(timestamps) <= max(timestamps) <= INT64_MAX:
            bad = next(i for i, timestamp in enumerate(timestamps) if not INT64_MIN <= timestamp <= INT64_MAX)
            columns.keep(0, bad)
            raise CorruptBatchError("a record's timestamp does not fit in 64 bits")


def open_batch(
    batch: Batch, limit: int = MAX_DECOMPRESSED_BATCH_BYTES, *, check_crcs: bool = True
) -> Section:
    """Decompress a batch, to at most `limit` bytes, and make it ready to be read.

    `check_crcs` is about the messages within a wrapper of formats 0 and 1; the batch's own CRC is checked by
    `batch.check_crc()`. A control batch opens like any other.

    Raises CorruptBatchError, BatchTooLargeError and UnsupportedFormatError.

    Spec: B.10.12, B.11, H-12, H-14, H-15.
    """
    if batch.magic < 2:
        return open_message(batch, limit, check_crcs)
    packed = batch.data[BATCH_HEADER_BYTES:]
    if batch.count == 0:
        if packed:
            raise CorruptBatchError(f"it claims no records, {len(packed)} bytes follow its header")
        return RecordSection(batch, b"", 0)
    highest_count = batch.last_offset - batch.base_offset + 1
    if not 0 <= batch.count <= highest_count:
        raise CorruptBatchError(f"it claims {batch.count} records with {highest_count} offsets")
    data = decompress(batch.compression, packed, limit)
    if batch.count > len(data) // MIN_RECORD_BYTES:
        raise CorruptBatchError(f"it claims {batch.count} records in {len(data)} bytes")
    return RecordSection(batch, data, batch.count)
