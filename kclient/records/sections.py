"""An opened batch: its records decompressed once, then decoded as many at a time as are wanted.

`open_batch` checks what the header claims before anything is allocated for it. Sections of format 2 and of
formats 0 and 1 (`legacy`) are read in the same way: `read_into(columns_for(section), count)` until `is_finished`.
"""

from __future__ import annotations

from typing import Protocol

import attrs

from kclient.errors import CorruptBatchError
from kclient.records.batch import BATCH_HEADER_BYTES, Batch
from kclient.records.columns import Columns
from kclient.records.compression import Compression, decompress
from kclient.records.decoder import MIN_RECORD_BYTES, PYTHON_DECODER, Decoder
from kclient.records.headers import ANY_NUMBER
from kclient.records.legacy import open_message
from kclient.types import TimestampType

MAX_DECOMPRESSED_BATCH_BYTES = 128 * 1024 * 1024

# Work without records, in units of one record decoded and dropped: entering a batch costs about as much as twenty, and
# unpacking 2 KiB as much as one.
WORK_A_BATCH = 20
UNPACKED_BYTES_A_UNIT = 2048


class Section(Protocol):
    """The records of one batch, read from front to back."""

    @property
    def batch(self) -> Batch: ...

    @property
    def data(self) -> bytes: ...

    @property
    def position(self) -> int: ...

    @property
    def is_finished(self) -> bool: ...

    @property
    def columns_type(self) -> type[Columns]: ...

    def read_into(self, columns: Columns, count: int) -> None:
        """Append up to `count` records. On CorruptBatchError the columns hold those before the bad one."""
        ...


@attrs.define(eq=False)
class RecordSection:
    """The records of a batch of format 2, at `data[position:end]`."""

    batch: Batch
    data: bytes
    position: int
    end: int
    left: int
    decoder: Decoder
    max_headers: int = ANY_NUMBER
    previous_delta: int = -1

    @property
    def is_finished(self) -> bool:
        return self.left == 0

    @property
    def columns_type(self) -> type[Columns]:
        return self.decoder.columns_type

    def read_into(self, columns: Columns, count: int) -> None:
        batch = self.batch
        count = min(count, self.left)
        before = len(columns)
        try:
            self.position = self.decoder.decode(
                columns,
                self.position,
                count,
                end=self.end,
                base_offset=batch.base_offset,
                base_timestamp=batch.base_timestamp,
                previous_delta=self.previous_delta,
                last_delta=batch.last_offset - batch.base_offset,
                max_headers=self.max_headers,
            )
        finally:
            if columns.timestamp_type is TimestampType.LOG_APPEND_TIME:
                columns.stamp(before, batch.max_timestamp)
        self.left -= count
        if self.left > 0:
            self.previous_delta = columns.offsets[-1] - batch.base_offset
        elif self.position != self.end:
            raise CorruptBatchError(f"{self.end - self.position} bytes follow its {batch.count} records")


def columns_for(section: Section, last: Columns | None = None) -> Columns:
    """Return the columns for records of the section: `last` if they can follow the records in it, else new ones."""
    batch, data = section.batch, section.data
    if (
        last is not None
        and last.data is data  # never that of another compressed batch
        and type(last) is section.columns_type
        and last.timestamp_type is batch.timestamp_type
        and last.leader_epoch == batch.leader_epoch
    ):
        return last
    return section.columns_type(data, batch.timestamp_type, batch.leader_epoch)


def open_batch(
    batch: Batch,
    limit: int = MAX_DECOMPRESSED_BATCH_BYTES,
    *,
    check_crcs: bool = True,
    decoder: Decoder = PYTHON_DECODER,
    max_headers: int = ANY_NUMBER,
    dropped_below: int = 0,
) -> Section:
    """Decompress a batch, to at most `limit` bytes, and make it ready to be read.

    Reading raises TooManyHeadersError for a record of more than `max_headers` headers.

    `check_crcs` is about the messages within a wrapper of formats 0 and 1; the batch's own CRC is checked by
    `batch.check_crc()`. Messages at offsets `dropped_below` this one may be damaged. A control batch opens like any
    other.

    Raise CorruptBatchError, BatchTooLargeError and UnsupportedFormatError.
    """
    if batch.magic < 2:
        return open_message(batch, limit, check_crcs, dropped_below)
    data, start, end = batch.field, batch.start + BATCH_HEADER_BYTES, batch.end
    highest_count = batch.last_offset - batch.base_offset + 1
    if not 0 <= batch.count <= highest_count:
        raise CorruptBatchError(f"it claims {batch.count} records with {highest_count} offsets")
    if batch.compression != Compression.NONE and start < end:
        data = decompress(batch.compression, batch.view(BATCH_HEADER_BYTES), limit)
        start, end = 0, len(data)
    if batch.count == 0 and start < end:
        raise CorruptBatchError(f"it claims no records and has {end - start} bytes of them")
    if batch.count > (end - start) // MIN_RECORD_BYTES:
        raise CorruptBatchError(f"it claims {batch.count} records in {end - start} bytes")
    return RecordSection(batch, data, start, end, batch.count, decoder, max_headers)
