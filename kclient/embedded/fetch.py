"""One partition of a Fetch request: checked, then read up to the offset that this fetcher may see, as bytes of the log.

    fetcher           reads up to
    read_uncommitted  high watermark (a follower's own, where a follower is asked)
    read_committed    last stable offset, with the aborted transactions of the range that is read
    follower          log end

Bytes are copied only to join several batches. They are cut off at the limit, as Kafka does; the client ignores a batch
that is not whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from kclient.embedded import request_context
from kclient.embedded.api_error import ApiError
from kclient.embedded.fetch_sessions import CachedPartition
from kclient.embedded.log import StoredBatch
from kclient.embedded.old_formats import converted, newest_magic
from kclient.embedded.partition import Partition
from kclient.embedded.releases import Release
from kclient.embedded.request_context import RequestContext, check_partition
from kclient.generated.fetch_response import (
    AbortedTransaction,
    EpochEndOffset,
    LeaderIdAndEpoch,
    PartitionData,
)
from kclient.protocol.errors import (
    INCONSISTENT_TOPIC_ID,
    KAFKA_STORAGE_ERROR,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_COMPRESSION_TYPE,
)
from kclient.types import TopicPartition

NO_PREFERRED_REPLICA: Final = -1
RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def preferred_replica(context: RequestContext, partition: Partition, rack: str, offset: int) -> int:
    """Return the follower in the rack with the offset and the highest log end; −1 for the leader.

    No replica has an offset below the log start: the leader answers it, or a consumer would be redirected for ever.
    """
    state, chosen = context.state, partition.read_from
    if offset < partition.log.start:
        return NO_PREFERRED_REPLICA
    if (
        chosen is not None
        and partition.leader == context.broker.node_id != chosen
        and state.brokers[chosen].up
    ):
        return chosen
    if partition.leader != context.broker.node_id or state.settings.replica_selector_class != RACK_AWARE:
        return NO_PREFERRED_REPLICA
    here = [
        node
        for node in partition.replicas
        if rack
        and state.brokers[node].up
        and state.brokers[node].rack == rack
        and partition.end_of(node) >= offset
    ]
    if not here or partition.leader in here:
        return NO_PREFERRED_REPLICA
    return max(here, key=partition.end_of)


ZSTD_FOR_ALL_SINCE: Final = Release.parse("4.0")
INDEX_INTERVAL_BYTES: Final = 4096


@attrs.define
class FetchBudget:
    """The rest of a request's MaxBytes. Before Fetch v3 it limits the first batch too."""

    bytes_left: int
    hard: bool
    first: bool = True

    def spend(self, count: int) -> None:
        """Subtract the bytes of a partition."""
        self.bytes_left = max(0, self.bytes_left - count)
        self.first = self.first and count == 0


def read_records(
    context: RequestContext,
    partition: Partition,
    wanted: CachedPartition,
    row: PartitionData,
    below: int,
    budget: FetchBudget,
) -> None:
    """Read records below an offset into the row, within the budget, with aborted transactions. Raise ApiError."""
    limit = min(wanted.asked.partition_max_bytes, budget.bytes_left)
    batches = partition.log.read(wanted.asked.fetch_offset, below, limit)
    if not batches:
        return
    first = len(batches[0].data)
    if first > limit and not budget.hard:
        if not budget.first:
            return
        batches, limit = batches[:1], first
    _check_codec(context, partition)
    data = _cut(batches, max(0, limit))
    magic = newest_magic(context.version)
    if any(stored.header.magic > magic for stored in batches):
        data = converted(batches, magic, wanted.asked.fetch_offset, len(data))
    row.records = data
    budget.spend(len(data))
    if row.aborted_transactions is not None:
        found = partition.log.producers.aborted_in(
            wanted.asked.fetch_offset, _indexed_end(partition, batches)
        )
        row.aborted_transactions = [
            AbortedTransaction(producer_id=one.producer_id, first_offset=one.first_offset) for one in found
        ]


def _indexed_end(partition: Partition, batches: Sequence[StoredBatch]) -> int:
    """Return the end of the range whose aborted transactions are sent: Kafka's next index entry after the read."""
    size = 0
    for stored in partition.log.from_offset(batches[-1].last_offset + 1):
        if size > INDEX_INTERVAL_BYTES:
            return stored.base_offset
        size += len(stored.data)
    return partition.log.end


def _check_codec(context: RequestContext, partition: Partition) -> None:
    """Raise ApiError for topics with compression.type=zstd and clients older than zstd, as brokers before 4.0 do."""
    zstd = context.version < 10 and partition.topic.config.get("compression.type") == "zstd"
    if zstd and context.state.release < ZSTD_FOR_ALL_SINCE:
        raise ApiError(UNSUPPORTED_COMPRESSION_TYPE)


def _cut(batches: Sequence[StoredBatch], limit: int) -> bytes | memoryview:
    data = batches[0].data if len(batches) == 1 else b"".join([stored.data for stored in batches])
    return data if len(data) <= limit else memoryview(data)[:limit]


FOLLOWERS_SINCE: Final = 11
HINTS_SINCE: Final = 16
READ_COMMITTED: Final = 1
UNREAD: Final = (UNKNOWN_TOPIC_ID, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION)
NULL_FOR_READ_SINCE: Final = Release.parse("3.0")
FOLLOWERS_CHECKED_SINCE: Final = Release.parse("3.0")


@attrs.frozen
class FetchParams:
    """Parameters of a fetch: replica id (−1: a consumer), isolation level, rack, whether it is authorized."""

    replica_id: int
    isolation_level: int
    rack_id: str
    allowed: bool = True


def failed(index: int, code: int) -> PartitionData:
    """Return a row with an error code."""
    return PartitionData(partition_index=index, error_code=code, high_watermark=-1, records=b"")


def unread(row: PartitionData) -> bool:
    """Whether it has an error from before the read; such rows are last in a response."""
    return row.error_code in UNREAD


def read(
    context: RequestContext, fetcher: FetchParams, wanted: CachedPartition, budget: FetchBudget
) -> PartitionData:
    """Return the row of one partition."""
    row = _read_checked(context, fetcher, wanted, budget)
    if row.error_code != NONE and (context.state.release < NULL_FOR_READ_SINCE or not unread(row)):
        row.aborted_transactions = None
    return row


def _read_checked(
    context: RequestContext, fetcher: FetchParams, wanted: CachedPartition, budget: FetchBudget
) -> PartitionData:
    index = wanted.asked.partition
    if wanted.topic is None:
        return failed(index, UNKNOWN_TOPIC_ID)
    if not fetcher.allowed or not context.allowed("READ", f"Topic:{wanted.topic}"):
        return failed(index, TOPIC_AUTHORIZATION_FAILED)
    partition = context.state.partition(TopicPartition(wanted.topic, index))
    if partition is None:
        return failed(index, UNKNOWN_TOPIC_OR_PARTITION)
    try:
        if wanted.by_id and partition.topic.topic_id != wanted.topic_id:
            raise ApiError(INCONSISTENT_TOPIC_ID)
        return _read(context, fetcher, partition, wanted, budget)
    except ApiError as exc:
        return _error_row(context, partition, index, exc.code)


def _error_row(context: RequestContext, partition: Partition, index: int, code: int) -> PartitionData:
    if code == KAFKA_STORAGE_ERROR and context.version <= 5:
        code = NOT_LEADER_OR_FOLLOWER
    row = failed(index, code)
    if context.version >= HINTS_SINCE and code in request_context.HINTED:
        row.current_leader = request_context.leader(LeaderIdAndEpoch, partition)
    return row


def _read(
    context: RequestContext,
    fetcher: FetchParams,
    partition: Partition,
    wanted: CachedPartition,
    budget: FetchBudget,
) -> PartitionData:
    asked, log = wanted.asked, partition.log
    from_follower = fetcher.replica_id >= 0
    leader_only = from_follower or context.version < FOLLOWERS_SINCE
    if error := check_partition(context, partition, asked.current_leader_epoch, leader_only):
        raise ApiError(error)
    if (
        from_follower
        and context.state.release >= FOLLOWERS_CHECKED_SINCE
        and not _follows(fetcher, partition)
    ):
        raise ApiError(NOT_LEADER_OR_FOLLOWER)
    row = _bounds(context, fetcher, partition, asked.partition)
    if context.version >= FOLLOWERS_SINCE and not from_follower:
        row.preferred_read_replica = preferred_replica(
            context, partition, fetcher.rack_id, asked.fetch_offset
        )
        if row.preferred_read_replica >= 0:
            return row
    if _diverges(partition, wanted, row):
        return row
    end = partition.end_of(context.broker.node_id)
    if not log.start <= asked.fetch_offset <= end:
        raise ApiError(OFFSET_OUT_OF_RANGE)
    below = end if from_follower else row.high_watermark
    if fetcher.isolation_level == READ_COMMITTED and not from_follower:
        below = row.last_stable_offset
    read_records(context, partition, wanted, row, below, budget)
    return row


def _follows(fetcher: FetchParams, partition: Partition) -> bool:
    return fetcher.replica_id in partition.replicas and fetcher.replica_id != partition.leader


def _bounds(context: RequestContext, fetcher: FetchParams, partition: Partition, index: int) -> PartitionData:
    high_watermark = partition.high_watermark_of(context.broker.node_id)
    return PartitionData(
        partition_index=index,
        high_watermark=high_watermark,
        last_stable_offset=min(high_watermark, partition.last_stable_offset),
        log_start_offset=partition.log.start,
        aborted_transactions=[] if fetcher.isolation_level == READ_COMMITTED else None,
        records=b"",
    )


def _diverges(partition: Partition, wanted: CachedPartition, row: PartitionData) -> bool:
    """Whether the fetcher's log diverges from this one (KIP-595)."""
    epoch = wanted.asked.last_fetched_epoch
    if epoch < 0:
        return False
    known, end = partition.log.epochs.end_of(epoch, partition.log.end)
    if known < 0:
        raise ApiError(OFFSET_OUT_OF_RANGE)
    if known == epoch and end >= wanted.asked.fetch_offset:
        return False
    row.diverging_epoch = EpochEndOffset(epoch=known, end_offset=end)
    return True


def ends_wait(row: PartitionData) -> bool:
    """Whether this row ends the wait for more records."""
    return row.error_code != NONE or row.preferred_read_replica >= 0 or row.diverging_epoch is not None
