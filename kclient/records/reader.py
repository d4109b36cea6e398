"""Read the records of one fetched partition, in pieces.

    records below the position              dropped; a message of format 0 or 1 there may be damaged
    control batch, aborted or empty batch   moves the position, returns no records
    end of a batch                          the position is the offset after the batch, not after its last record:
                                            compaction may have removed the last records
    corrupt batch                           the records before it are returned first, then every call raises its error
                                            until the user seeks
    deserializer fails                      the records before it are returned first, then every call tries again

If anything else escapes (KeyboardInterrupt in a deserializer), `next_offset` becomes −1. The caller compares it with
the position, drops this reader and fetches again: no record is lost or returned twice.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from kclient.errors import DecodeError
from kclient.records.aborted import AbortedTransaction, AbortedTransactions
from kclient.records.batch import Batch, batch_at, first_batch_size
from kclient.records.columns import Columns
from kclient.records.decoder import Decoder, decoder_in_use, reads_small_batches
from kclient.records.deserialize import Deserializers
from kclient.records.errors import BATCH_ERRORS, BatchError, truncated_fetch, with_location
from kclient.records.headers import MAX_HEADERS_PER_RECORD
from kclient.records.legacy import lies_below
from kclient.records.sections import (
    MAX_DECOMPRESSED_BATCH_BYTES,
    UNPACKED_BYTES_A_UNIT,
    WORK_A_BATCH,
    Section,
    columns_for,
    open_batch,
)
from kclient.records.undecodable import Undecodable
from kclient.types import DeserializerFunction, IsolationLevel, TopicPartition

STALE = -1

# A call of `take` ends, full or not, after so much work that gave no records: a caller in an event loop
# regains control within milliseconds. The unit is one record decoded and dropped.
WORK_A_CALL = 4000


@attrs.define(eq=False)
class Chunk:
    """What one `take` returned: records of one partition, and the position and leader epoch after them.

    `undecoded` counts those whose deserializer failed, kept or left out. `unpacked_bytes` is what the batches that this
    take opened were decompressed to.
    """

    partition: TopicPartition
    next_offset: int
    leader_epoch: int | None
    runs: list[Columns] = attrs.field(factory=list)
    undecoded: int = 0
    unpacked_bytes: int = 0
    _count: int | None = attrs.field(default=None, init=False)

    def __len__(self) -> int:
        # Kept: it is asked for seven times before the user has the records, and a chunk may have a hundred runs.
        if self._count is None:
            self._count = sum(map(len, self.runs))
        return self._count

    @property
    def size_bytes(self) -> int:
        """What the records take, uncompressed, as they lie in their batches."""
        return sum(run.size_bytes for run in self.runs)

    def divided(self, most: int) -> Iterator[Chunk]:
        """Divide the chunk into chunks of at most `most` records. Each has the position after it."""
        runs: list[Columns] = []
        count = 0
        for run in self.runs:
            parts = (run,) if len(run) <= most else run.parts(most)
            for part in parts:
                if count + len(part) > most:
                    last = runs[-1]
                    yield Chunk(self.partition, last.offsets[-1] + 1, last.leader_epoch, runs)
                    runs, count = [], 0
                runs.append(part)
                count += len(part)
        yield Chunk(self.partition, self.next_offset, self.leader_epoch, runs)

    def cut_at(self, end_offset: int) -> None:
        """Drop the records at and above `end_offset`, for readers of a range. The position stays as it is."""
        for run in self.runs:
            run.drop(bisect_left(run.offsets, end_offset), len(run))
        self._count = None


class PartitionReader:
    """The records of one partition of a Fetch response, from `fetch_offset` on.

    `next_offset` is the position after what was taken, `leader_epoch` the epoch of the last batch entered
    (None if unknown), `exhausted` is whether nothing is left, not even an error to raise.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        data: bytes | bytearray | memoryview,
        fetch_offset: int,
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        aborted_transactions: Iterable[AbortedTransaction] | None = None,
        check_crcs: bool = True,
        max_decompressed_batch_bytes: int = MAX_DECOMPRESSED_BATCH_BYTES,
        max_headers_per_record: int = MAX_HEADERS_PER_RECORD,
        key_deserializer: DeserializerFunction[Any] | None = None,
        value_deserializer: DeserializerFunction[Any] | None = None,
        undecodable: Undecodable | None = None,
        decoder: Decoder | None = None,
    ) -> None:
        self.partition: Final = TopicPartition(topic, partition)
        self.next_offset: int = fetch_offset
        self.leader_epoch: int | None = None
        self._check_crcs = check_crcs
        self._limit = max_decompressed_batch_bytes
        self._max_headers = max_headers_per_record
        self._deserializers = Deserializers(self.partition, key_deserializer, value_deserializer, undecodable)
        self._decoder = decoder_in_use() if decoder is None else decoder
        self._deserializes = key_deserializer is not None or value_deserializer is not None
        read_committed = isolation_level == IsolationLevel.READ_COMMITTED
        self._aborted = AbortedTransactions(aborted_transactions) if read_committed else None
        self._field = bytes(data)
        self._position = 0  # of the next batch in the field
        self._reads_small_batches = reads_small_batches(self._decoder) and not self._deserializes
        self._batch: Batch | None = None
        self._section: Section | None = None
        self._undelivered: Columns | None = None
        self._error: BatchError | None = None
        self._work_left = 0
        self._undecoded = 0
        self._unpacked = 0
        self._find_next_batch()
        if data and self._batch is None and self._error is None:
            self._error = truncated_fetch(self.partition, fetch_offset, len(data), first_batch_size(data))

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left to take or to raise."""
        return self._batch is None and self._undelivered is None and self._error is None

    @property
    def open_bytes(self) -> int:
        """Bytes of memory of a decompressed batch that is not used up."""
        return 0 if self._section is None else _unpacked_bytes(self._section)

    def take(self, max_records: int, max_unpacked_bytes: int = sys.maxsize) -> Chunk:
        """Return up to `max_records` more records, perhaps fewer or none before the reader is `exhausted`.

        Open no further batch once those opened by this call were decompressed to `max_unpacked_bytes`: 100 MB fit into
        a compressed batch of 3 kB, and many such batches into one fetch. The one that reaches the limit is kept.

        Raise CorruptBatchError, BatchTooLargeError or UnsupportedFormatError about the batch at
        `next_offset`, again at every call; DecodeError where a deserializer failed on the record at
        `next_offset`, which the next call tries again. A call that has records to return or moved
        `next_offset` raises no error.
        """
        runs: list[Columns] = []
        before = self.next_offset
        failure: DecodeError | None = None
        self._undecoded = self._unpacked = 0
        try:
            failure = self._fill(runs, max_records, max_unpacked_bytes)
        except BaseException:
            self.next_offset = STALE
            raise
        if not runs and self.next_offset == before:
            if failure is not None:
                raise failure
            if self._error is not None and self._undelivered is None:
                raise self._error.with_traceback(None)
        return Chunk(
            self.partition, self.next_offset, self.leader_epoch, runs, self._undecoded, self._unpacked
        )

    def _fill(self, runs: list[Columns], wanted: int, max_unpacked_bytes: int) -> DecodeError | None:
        self._work_left = WORK_A_CALL
        while wanted > 0 and self._work_left > 0:
            if self._undelivered is not None:
                delivered, failure = self._deserialize(self._undelivered, runs, wanted)
                if failure is not None:
                    return failure
                wanted -= delivered
            elif self._section is not None:
                wanted -= self._decode(self._section, runs, wanted)
            elif self._batch is not None and self._unpacked < max_unpacked_bytes:
                decoded = self._decode_small_batches(runs, wanted, max_unpacked_bytes - self._unpacked)
                if not decoded:
                    self._enter(self._batch)
                wanted -= decoded
            else:
                break
        return None

    def _enter(self, batch: Batch) -> None:
        self._work_left -= WORK_A_BATCH
        if lies_below(batch, self.next_offset):
            self._leave(batch)
            return
        try:
            if self._check_crcs:
                batch.check_crc()
            self.leader_epoch = batch.leader_epoch
            hidden = self._aborted is not None and self._aborted.hides(batch, self._limit)
            passed = batch.magic == 2 and batch.last_offset < self.next_offset
            if hidden or batch.is_control or passed:
                self._leave(batch)
            else:
                self._section = open_batch(
                    batch,
                    self._limit,
                    check_crcs=self._check_crcs,
                    decoder=self._decoder,
                    max_headers=self._max_headers,
                    dropped_below=self.next_offset,
                )
                self._unpacked += _unpacked_bytes(self._section)
                if not batch.count:  # compaction has removed all records
                    self._leave_if_finished()
        except BATCH_ERRORS as exc:
            self._stop(exc, batch)

    def _decode_small_batches(self, runs: list[Columns], wanted: int, most_unpacked: int) -> int:
        """Decode the next batches together if they are small and plain; return how many records were put into `runs`.

        `small_batches` has the rules. Any other batch is left where it is.
        """
        batch = self._batch
        if not self._reads_small_batches or batch is None or batch.magic < 2:
            return 0
        from kclient.records.small_batches import Wanted, read_small_batches

        most = Wanted(
            records=wanted,
            unpacked_bytes=most_unpacked,
            work=self._work_left,
            check_crcs=self._check_crcs,
            max_batch_bytes=self._limit,
            max_headers=self._max_headers,
            with_transactions=self._aborted is None,
        )
        found = read_small_batches(self._field, batch.start, self.next_offset, most)
        if found is None:
            return 0
        runs.append(found.columns)
        self.leader_epoch = found.columns.leader_epoch
        self.next_offset, self._position = found.next_offset, found.end
        self._unpacked += found.unpacked_bytes
        self._work_left -= found.work
        self._find_next_batch()
        return len(found.columns)

    def _decode(self, section: Section, runs: list[Columns], wanted: int) -> int:
        """Decode up to `wanted` records, drop those below the position, return how many were put into `runs`."""
        columns = columns_for(section, runs[-1] if runs and not self._deserializes else None)
        before, start, size_before = len(columns), section.position, columns.size_bytes
        try:
            section.read_into(columns, wanted)
        except BATCH_ERRORS as exc:
            self._stop(exc, self._batch)
        offsets = columns.offsets
        decoded = len(offsets) - before
        if decoded and offsets[before] < self.next_offset:
            first = bisect_left(offsets, self.next_offset, before)
            self._work_left -= first - before
            columns.drop(before, first)
        added = len(offsets) - before
        # Of the bytes of this batch alone: other batches in the same columns have records of other sizes.
        columns.size_bytes = size_before + (section.position - start) * added // max(decoded, 1)
        if self._deserializes and added:
            self._undelivered = columns
            return 0
        if added:
            self.next_offset = columns.offsets[-1] + 1
            if before == 0:
                runs.append(columns)
        self._leave_if_finished()
        return added

    def _deserialize(
        self, columns: Columns, runs: list[Columns], wanted: int
    ) -> tuple[int, DecodeError | None]:
        wanted = min(wanted, len(columns))
        done = self._deserializers.fill(columns, wanted)
        self._undecoded += done.failed
        self._work_left -= done.failed
        self._undelivered = columns.split(done.count) if done.count < len(columns) else None
        if done.next_offset is not None:
            self.next_offset = done.next_offset
        if done.count:
            runs.append(columns)
        if done.failure is None and self._undelivered is None:
            self._leave_if_finished()
        return done.count, done.failure

    def _leave_if_finished(self) -> None:
        if self._batch is not None and self._section is not None and self._section.is_finished:
            self._leave(self._batch)

    def _leave(self, batch: Batch) -> None:
        self._work_left -= self.open_bytes // UNPACKED_BYTES_A_UNIT
        self._section = None
        self.next_offset = max(self.next_offset, batch.next_offset)
        self._find_next_batch()

    def _find_next_batch(self) -> None:
        try:
            self._batch = batch_at(self._field, self._position)
        except BATCH_ERRORS as exc:
            self._stop(exc, None)
        else:
            self._position = len(self._field) if self._batch is None else self._batch.end

    def _stop(self, error: BatchError, batch: Batch | None) -> None:
        """Keep the error and stop reading: no later batch can be found after a bad length."""
        base_offset = error.base_offset if batch is None else batch.base_offset
        last_offset = base_offset if batch is None else batch.last_offset
        self._error = with_location(
            error, self.partition, base_offset, max(last_offset, self.next_offset) + 1
        )
        self._error.__cause__ = error.__cause__
        self._batch = self._section = None


def _unpacked_bytes(section: Section) -> int:
    return 0 if section.data is section.batch.field else len(section.data)
