"""What a log cleaner leaves behind: of each key the newest record, and batches with gaps, or with no records at all.

A batch keeps its first and last offset, its producer and its sequences, whatever goes. An empty batch stays where it
is the last of its producer or of the log: its sequences and its offset are still needed. A tombstone stays for
`delete.retention.ms` after the cleaner met it first; the batch says until when (delete horizon). Only what is
committed, and of no open transaction, is cleaned.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

import attrs

from kclient.embedded import topic_config
from kclient.embedded.legacy import log_append_time_of, message_set
from kclient.embedded.log import Stored
from kclient.embedded.releases import Release
from kclient.embedded.state import ClusterState
from kclient.embedded.topics import Partition
from kclient.embedded.unpacked import records_of
from kclient.records.aborted import AbortedTransactions
from kclient.records.batch import Batch
from kclient.records.sections import MAX_DECOMPRESSED_BATCH_BYTES
from kclient.records.writer import NewRecord, build_batch
from kclient.types import TimestampType

HORIZON_SINCE: Final = Release.parse("3.1")


@attrs.frozen
class Cleaning:
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
    cleaning = Cleaning(newest, state.clock.wall_ms(), retention, state.release >= HORIZON_SINCE)

    def cleaned(stored: Stored) -> list[Stored]:
        if stored.last_offset >= limit or stored.header.is_control:
            return [stored]
        found = [] if stored.base_offset in hidden else _cleaned(cleaning, stored)
        is_needed = stored.last_offset == partition.log.end - 1 or _last_of_producer(partition, stored)
        return [one for one in found or [emptied(stored)] if one.header.count != 0 or is_needed]

    _rewrite(state, partition, cleaned)


def remove(state: ClusterState, partition: Partition, offsets: Collection[int]) -> None:
    """Take records out of the middle, as a cleaner might; batches stay, even without records."""

    def thinned(stored: Stored) -> list[Stored]:
        if not any(stored.base_offset <= offset <= stored.last_offset for offset in offsets):
            return [stored]
        left = [one for one in records_of(stored.header) if one.offset not in offsets]
        return rewritten(stored, left, stored.header.delete_horizon_ms)

    _rewrite(state, partition, thinned)


def _cleaned(cleaning: Cleaning, stored: Stored) -> list[Stored]:
    horizon = stored.header.delete_horizon_ms
    records = records_of(stored.header)
    left = [one for one in records if cleaning.keeps(one, _effective(cleaning, stored.header, horizon))]
    if horizon is None and cleaning.marks_horizon and any(one.value is None for one in left):
        horizon = cleaning.now_ms + cleaning.retention_ms
    if len(left) == len(records) and horizon == stored.header.delete_horizon_ms:
        return [stored]
    return rewritten(stored, left, horizon)


def _effective(cleaning: Cleaning, header: Batch, horizon: int | None) -> int | None:
    """Until when tombstones stay; cleaners that mark no horizon go by the time of the records."""
    return horizon if cleaning.marks_horizon else header.max_timestamp + cleaning.retention_ms


def rewritten(stored: Stored, records: list[NewRecord], horizon: int | None) -> list[Stored]:
    """The batch with these of its records; of an old format nothing where there are none."""
    header = stored.header
    if header.magic == 2:
        return [_batch(stored, records, horizon)]
    if not records:
        return []
    time = log_append_time_of(header)
    (data,) = message_set(records, header.magic, header.compression, log_append_time=time)
    return [Stored.of(data, stored.base_offset)]


def emptied(stored: Stored) -> Stored:
    """A batch of format 2 without its records; one of an old format as it is."""
    return _batch(stored, [], stored.header.delete_horizon_ms) if stored.header.magic == 2 else stored


def _batch(stored: Stored, records: list[NewRecord], horizon: int | None) -> Stored:
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
    return Stored.of(data, stored.base_offset)


def _last_of_producer(partition: Partition, stored: Stored) -> bool:
    producer = partition.log.producers.known.get(stored.header.producer_id)
    return (
        producer is not None
        and bool(producer.recent)
        and producer.recent[-1].last_offset == stored.last_offset
    )


def _rewrite(state: ClusterState, partition: Partition, change: Callable[[Stored], list[Stored]]) -> None:
    kept: list[Stored] = []
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
