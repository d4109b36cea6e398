"""The log cleaner: compaction, and retention, which moves the log start offset.

Compaction keeps the newest record of each key, and leaves batches with gaps or without records. A batch keeps its first
and last offset, its producer and its sequences. An empty batch stays if it is the last of its producer or of the log:
its sequences and its offset are still needed. A tombstone stays for `delete.retention.ms` after the cleaner met it
first; the batch records until when (delete horizon). Only committed records outside of open transactions are cleaned.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

import attrs

from kclient.embedded import topic_config
from kclient.embedded.log import StoredBatch, records_of
from kclient.embedded.old_formats import log_append_time_of, message_set
from kclient.embedded.partition import Partition
from kclient.embedded.releases import Release
from kclient.embedded.state import ClusterState
from kclient.records.aborted import AbortedTransactions
from kclient.records.batch import Batch
from kclient.records.sections import MAX_DECOMPRESSED_BATCH_BYTES
from kclient.records.writer import NewRecord, build_batch
from kclient.types import TimestampType

HORIZON_SINCE: Final = Release.parse("3.1")


@attrs.frozen
class CleanerRun:
    """One run over a partition: where the newest record of each key is, and what time it is."""

    newest: dict[bytes, int]
    now_ms: int
    retention_ms: int
    marks_horizon: bool

    def keeps(self, record: NewRecord, horizon: int | None) -> bool:
        """Whether a record stays."""
        if record.key is None or self.newest.get(record.key) != record.offset:
            return False
        return record.value is not None or horizon is None or self.now_ms < horizon


def compact(state: ClusterState, partition: Partition) -> None:
    """Clean the log as far as it may be cleaned."""
    limit = min(partition.high_watermark, partition.last_stable_offset)
    aborted = AbortedTransactions(partition.log.producers.aborted)
    hidden = {
        stored.base_offset
        for stored in partition.log.batches
        if stored.last_offset < limit and aborted.hides(stored.header, MAX_DECOMPRESSED_BATCH_BYTES)
    }
    cleanable = [
        stored
        for stored in partition.log.batches
        if stored.last_offset < limit and not stored.header.is_control
    ]
    newest: dict[bytes, int] = {}
    for stored in cleanable:
        if stored.base_offset not in hidden:
            newest |= {one.key: one.offset or 0 for one in records_of(stored.header) if one.key is not None}
    config = partition.topic.config
    retention = topic_config.number("delete.retention.ms", config, state.settings)
    cleaning = CleanerRun(newest, state.clock.wall_ms(), retention, state.release >= HORIZON_SINCE)

    def cleaned(stored: StoredBatch) -> list[StoredBatch]:
        if stored.last_offset >= limit or stored.header.is_control:
            return [stored]
        found = [] if stored.base_offset in hidden else _cleaned(cleaning, stored)
        is_needed = stored.last_offset == partition.log.end - 1 or _last_of_producer(partition, stored)
        return [one for one in found or [emptied(stored)] if one.header.count != 0 or is_needed]

    _rewrite(state, partition, cleaned)


def remove(state: ClusterState, partition: Partition, offsets: Collection[int]) -> None:
    """Remove records from the middle of a log; batches stay, even without records."""

    def thinned(stored: StoredBatch) -> list[StoredBatch]:
        if not any(stored.base_offset <= offset <= stored.last_offset for offset in offsets):
            return [stored]
        left = [one for one in records_of(stored.header) if one.offset not in offsets]
        return rewritten(stored, left, stored.header.delete_horizon_ms)

    _rewrite(state, partition, thinned)


def _cleaned(cleaning: CleanerRun, stored: StoredBatch) -> list[StoredBatch]:
    horizon = stored.header.delete_horizon_ms
    records = records_of(stored.header)
    left = [one for one in records if cleaning.keeps(one, _effective(cleaning, stored.header, horizon))]
    if horizon is None and cleaning.marks_horizon and any(one.value is None for one in left):
        horizon = cleaning.now_ms + cleaning.retention_ms
    if len(left) == len(records) and horizon == stored.header.delete_horizon_ms:
        return [stored]
    return rewritten(stored, left, horizon)


def _effective(cleaning: CleanerRun, header: Batch, horizon: int | None) -> int | None:
    """Until when tombstones stay; cleaners that mark no horizon go by the time of the records."""
    return horizon if cleaning.marks_horizon else header.max_timestamp + cleaning.retention_ms


def rewritten(stored: StoredBatch, records: list[NewRecord], horizon: int | None) -> list[StoredBatch]:
    """The batch with these of its records; of an old format nothing where there are none."""
    header = stored.header
    if header.magic == 2:
        return [_batch(stored, records, horizon)]
    if not records:
        return []
    time = log_append_time_of(header)
    (data,) = message_set(records, header.magic, header.compression, log_append_time=time)
    return [StoredBatch.of(data, stored.base_offset)]


def emptied(stored: StoredBatch) -> StoredBatch:
    """A batch of format 2 without its records; one of an old format as it is."""
    return _batch(stored, [], stored.header.delete_horizon_ms) if stored.header.magic == 2 else stored


def _batch(stored: StoredBatch, records: list[NewRecord], horizon: int | None) -> StoredBatch:
    header = stored.header
    is_stamped = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    data = build_batch(
        records,
        compression=header.compression,
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        partition_leader_epoch=header.partition_leader_epoch,
        timestamp_type=header.timestamp_type,
        max_timestamp=header.max_timestamp if is_stamped or not records else None,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
        is_control=header.is_control,
        delete_horizon_ms=horizon,
    )
    return StoredBatch.of(data, stored.base_offset)


def _last_of_producer(partition: Partition, stored: StoredBatch) -> bool:
    producer = partition.log.producers.known.get(stored.header.producer_id)
    return (
        producer is not None
        and bool(producer.recent)
        and producer.recent[-1].last_offset == stored.last_offset
    )


def _rewrite(
    state: ClusterState, partition: Partition, change: Callable[[StoredBatch], list[StoredBatch]]
) -> None:
    kept: list[StoredBatch] = []
    removed: list[int] = []
    for before in partition.log.batches:
        after = change(before)
        if after != [before]:
            left = {one.offset for stored in after for one in records_of(stored.header)}
            removed += [
                one.offset
                for one in records_of(before.header)
                if one.offset is not None and one.offset not in left
            ]
        kept += after
    partition.log.replace(kept)
    partition.changed.notify()
    for observer in state.observers:
        observer.compacted(partition, removed)


FIRST_SECONDS: Final = 30.0
NEXT_SECONDS: Final = 300.0
UNLIMITED: Final = -1


def advance_start(state: ClusterState, partition: Partition, before: int) -> None:
    """Move the log start offset up to `before`, if it is lower."""
    if before <= partition.log.start:
        return
    partition.log.advance_start(before)
    partition.changed.notify()
    for observer in state.observers:
        observer.log_start_moved(partition, partition.log.start)


def watch(state: ClusterState) -> None:
    """Check the retention, first after half a minute, then every five minutes."""
    state.clock.call_later(FIRST_SECONDS, lambda: _round(state))


def _round(state: ClusterState) -> None:
    for partition in state.partitions():
        expire(state, partition)
    state.clock.call_later(NEXT_SECONDS, lambda: _round(state))


def expire(state: ClusterState, partition: Partition) -> None:
    """Delete what is older, or more, than the topic keeps: whole batches, below the high watermark."""
    config, log = partition.topic.config, partition.log
    if not log.batches:
        return
    if "delete" not in topic_config.value("cleanup.policy", config, state.settings):
        return
    retention_ms = topic_config.number("retention.ms", config, state.settings)
    retention_bytes = topic_config.number("retention.bytes", config, state.settings)
    oldest = state.clock.wall_ms() - retention_ms if retention_ms != UNLIMITED else None
    size = sum(len(stored.data) for stored in log.batches)
    before, high_watermark = log.start, partition.high_watermark
    for stored in log.batches:
        too_old = oldest is not None and stored.header.max_timestamp < oldest
        too_much = retention_bytes != UNLIMITED and size - len(stored.data) >= retention_bytes
        if stored.last_offset >= high_watermark or not (too_old or too_much):
            break
        size -= len(stored.data)
        before = stored.last_offset + 1
    advance_start(state, partition, before)
