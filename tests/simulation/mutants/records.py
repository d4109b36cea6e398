"""Bugs of reading records, M-44 to M-51."""

from __future__ import annotations

from typing import Any

from kclient.errors import CorruptBatchError
from kclient.records import aborted, columns, legacy
from kclient.records.aborted import AbortedTransactions, control_type
from kclient.records.batch import Batch
from kclient.records.columns import Columns
from kclient.types import TimestampType
from tests.simulation.mutants.reading_scripts import old_format
from tests.simulation.mutants.table import Patch, mutant

ABORT = 0


@mutant("M-44", "I-05", seed=61)
def aborted_as_they_come(patch: Patch) -> None:
    """Take the aborted transactions for sorted."""

    def init(self: AbortedTransactions, transactions: Any) -> None:
        before(self, transactions)
        self._ahead = [(one.first_offset, one.producer_id) for one in transactions or ()][::-1]

    before = patch.put(AbortedTransactions, "__init__", init)


@mutant("M-45", "I-22", "I-02", seed=61)
def marker_without_transaction(patch: Patch) -> None:
    """Call an abort marker corrupt if its transaction is not in the response."""

    def hides(self: AbortedTransactions, batch: Batch, limit: int) -> Any:
        known = batch.producer_id in self._active | {
            one for first, one in self._ahead if first <= batch.last_offset
        }
        if batch.is_control and not known and control_type(batch, limit) == ABORT:
            raise CorruptBatchError("it ends a transaction that never began")
        return before(self, batch, limit)

    before = patch.put(AbortedTransactions, "hides", hides)


@mutant("M-46", "I-05", "I-04", seed=61)
def commit_is_abort(patch: Patch) -> None:
    """Take the marker of a commit for that of an abort."""
    patch.put(aborted, "_ABORT", 1)


@mutant("M-47", "I-05", seed=64)
def ignore_broker_time(patch: Patch) -> None:
    """Take the producer's time where the broker set it."""
    patch.put(Batch, "timestamp_type", property(lambda self: TimestampType.CREATE_TIME))


@mutant("M-48", "I-05", seed=47)
def null_header_is_empty(patch: Patch) -> None:
    """Take a header without a value for one with an empty value."""

    def read_headers(data: bytes, position: int) -> Any:
        return tuple((name, value or b"") for name, value in before(data, position))

    before = patch.put(columns, "read_headers", read_headers)


@mutant("M-49", "I-05", seed=47)
def null_is_empty(patch: Patch) -> None:
    """Take a null value for an empty one."""

    def raw_values(self: Columns) -> list[bytes | None]:
        return [value or b"" for value in before(self)]

    before = patch.put(Columns, "raw_values", raw_values)


@mutant("M-51", "I-05", look=old_format)
def inner_offsets_are_absolute(patch: Patch) -> None:
    """Take the offsets within a message set of format 1 for absolute."""
    patch.put(legacy, "_base_offset", lambda batch, last_inner_offset: 0)
