"""The records of a batch in the log, for the few who must look inside: cleaners, converters, searches by time."""

from __future__ import annotations

from kclient.records.batch import Batch
from kclient.records.columns import Columns
from kclient.records.sections import columns_for, open_batch
from kclient.records.writer import NewRecord

ALL_RECORDS = 2**31


def columns_of(header: Batch) -> Columns:
    """All records of a batch. Raises CorruptBatchError, BatchTooLargeError, UnsupportedFormatError."""
    section = open_batch(header)
    columns = columns_for(section)
    section.read_into(columns, ALL_RECORDS)
    return columns


def records_of(header: Batch) -> list[NewRecord]:
    """The same one by one, each with its offset."""
    columns = columns_of(header)
    rows = zip(
        columns.raw_keys(),
        columns.raw_values(),
        columns.timestamps,
        columns.headers,
        columns.offsets,
        strict=True,
    )
    return [NewRecord(*row) for row in rows]
