"""Skip the records of aborted transactions (isolation_level read_committed).

A Fetch response lists every aborted transaction by producer id and first offset. A transaction is active from the batch
that reaches its first offset until the abort marker of its producer. For example with producer 7 aborted from 10 on:

    batch 8–9     producer 7    returned: before the first offset, of an earlier transaction
    batch 10–12   producer 7    skipped: producer 7 is active from here on
    batch 13      producer 9    returned
    marker 14     abort of 7    producer 7 is not active any more
    batch 15      producer 7    returned, unless the list has a second entry for producer 7

A marker without a listed transaction is legal (it began before the fetch). Commit markers change nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Protocol

from kclient.errors import BatchTooLargeError, CorruptBatchError
from kclient.records.batch import Batch
from kclient.records.headers import MAX_HEADERS_PER_RECORD
from kclient.records.sections import columns_for, open_batch

MAX_CONTROL_BATCH_BYTES = 65_536  # decompressed; a marker takes about 20, and no broker compresses it
_CONTROL_KEY = struct.Struct(">hh")
_ABORT = 0


class AbortedTransaction(Protocol):
    """One entry of a fetched partition's aborted transactions."""

    @property
    def producer_id(self) -> int: ...

    @property
    def first_offset(self) -> int: ...


class AbortedTransactions:
    """The transactions of one response. Call `hides` once for each batch, in the order of the log."""

    def __init__(self, transactions: Iterable[AbortedTransaction] | None) -> None:
        ahead = [(entry.first_offset, entry.producer_id) for entry in transactions or ()]
        self._ahead = sorted(ahead, reverse=True)
        self._active: set[int] = set()

    def hides(self, batch: Batch, limit: int) -> bool:
        """Return whether the batch belongs to an aborted transaction. Apply the marker of a control batch."""
        if batch.producer_id < 0:
            return False
        while self._ahead and self._ahead[-1][0] <= batch.last_offset:
            self._active.add(self._ahead.pop()[1])
        if batch.is_control:
            if control_type(batch, limit) == _ABORT:
                self._active.discard(batch.producer_id)
            return False
        return batch.is_transactional and batch.producer_id in self._active


def control_type(batch: Batch, limit: int) -> int | None:
    """Return the type of a control batch's first record: 0 abort, 1 commit; None if compaction removed it."""
    try:
        section = open_batch(batch, min(limit, MAX_CONTROL_BATCH_BYTES), max_headers=MAX_HEADERS_PER_RECORD)
    except BatchTooLargeError as exc:
        raise CorruptBatchError(f"the records of its marker take more than {exc.limit} bytes") from exc
    if section.is_finished:
        return None
    columns = columns_for(section)
    section.read_into(columns, 1)
    key = columns.raw_keys()[0]
    if key is None or len(key) < _CONTROL_KEY.size:
        raise CorruptBatchError("the key of its marker has no type")
    kind: int = _CONTROL_KEY.unpack_from(key)[1]
    return kind
