"""One partition of a Fetch: checked, then read up to where this fetcher may see, as bytes of the log.

    fetcher           reads up to
    read_uncommitted  high watermark (a follower's own, where a follower is asked)
    read_committed    last stable offset, with the aborted transactions of what is read
    follower          log end

Which bytes these are is up to `filling`.
"""

from __future__ import annotations

from typing import Final

import attrs

from kclient.embedded import leader_hints
from kclient.embedded.call import Call
from kclient.embedded.checks import usable
from kclient.embedded.filling import Budget, fill
from kclient.embedded.preferred import preferred_replica
from kclient.embedded.refusal import Refused
from kclient.embedded.releases import Release
from kclient.embedded.sessions import Wanted
from kclient.embedded.topics import Partition
from kclient.generated.fetch_response import (
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
)
from kclient.types import TopicPartition

FOLLOWERS_SINCE: Final = 11
HINTS_SINCE: Final = 16
READ_COMMITTED: Final = 1
UNREAD: Final = (UNKNOWN_TOPIC_ID, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION)
NULL_FOR_READ_SINCE: Final = Release.parse("3.0")
FOLLOWERS_CHECKED_SINCE: Final = Release.parse("3.0")


@attrs.frozen
class Fetcher:
    """Who asks, as far as it matters for every partition: a broker's id or −1, isolation, rack, may it read here."""

    replica_id: int
    isolation_level: int
    rack_id: str
    allowed: bool = True


def failed(index: int, code: int) -> PartitionData:
    """A row that says no."""
    return PartitionData(partition_index=index, error_code=code, high_watermark=-1, records=b"")


def unread(row: PartitionData) -> bool:
    """Whether it says no before the log was looked at; such rows come last in an answer."""
    return row.error_code in UNREAD


def read(call: Call, fetcher: Fetcher, wanted: Wanted, budget: Budget) -> PartitionData:
    """The row of the answer."""
    row = _looked_at(call, fetcher, wanted, budget)
    if row.error_code != NONE and (call.state.release < NULL_FOR_READ_SINCE or not unread(row)):
        row.aborted_transactions = None
    return row


def _looked_at(call: Call, fetcher: Fetcher, wanted: Wanted, budget: Budget) -> PartitionData:
    index = wanted.asked.partition
    if wanted.topic is None:
        return failed(index, UNKNOWN_TOPIC_ID)
    if not fetcher.allowed or not call.allowed("READ", f"Topic:{wanted.topic}"):
        return failed(index, TOPIC_AUTHORIZATION_FAILED)
    partition = call.state.partition(TopicPartition(wanted.topic, index))
    if partition is None:
        return failed(index, UNKNOWN_TOPIC_OR_PARTITION)
    try:
        if wanted.by_id and partition.topic.topic_id != wanted.topic_id:
            raise Refused(INCONSISTENT_TOPIC_ID)
        return _read(call, fetcher, partition, wanted, budget)
    except Refused as exc:
        return _refused(call, partition, index, exc.code)


def _refused(call: Call, partition: Partition, index: int, code: int) -> PartitionData:
    if code == KAFKA_STORAGE_ERROR and call.version <= 5:
        code = NOT_LEADER_OR_FOLLOWER
    row = failed(index, code)
    if call.version >= HINTS_SINCE and code in leader_hints.HINTED:
        row.current_leader = leader_hints.leader(LeaderIdAndEpoch, partition)
    return row


def _read(
    call: Call, fetcher: Fetcher, partition: Partition, wanted: Wanted, budget: Budget
) -> PartitionData:
    asked, log = wanted.asked, partition.log
    from_follower = fetcher.replica_id >= 0
    leader_only = from_follower or call.version < FOLLOWERS_SINCE
    if error := usable(call, partition, asked.current_leader_epoch, leader_only):
        raise Refused(error)
    if from_follower and call.state.release >= FOLLOWERS_CHECKED_SINCE and not _follows(fetcher, partition):
        raise Refused(NOT_LEADER_OR_FOLLOWER)
    row = _bounds(call, fetcher, partition, asked.partition)
    if call.version >= FOLLOWERS_SINCE and not from_follower:
        row.preferred_read_replica = preferred_replica(call, partition, fetcher.rack_id, asked.fetch_offset)
        if row.preferred_read_replica >= 0:
            return row
    if _diverges(partition, wanted, row):
        return row
    end = partition.end_of(call.broker.node_id)
    if not log.start <= asked.fetch_offset <= end:
        raise Refused(OFFSET_OUT_OF_RANGE)
    below = end if from_follower else row.high_watermark
    if fetcher.isolation_level == READ_COMMITTED and not from_follower:
        below = row.last_stable_offset
    fill(call, partition, wanted, row, below, budget)
    return row


def _follows(fetcher: Fetcher, partition: Partition) -> bool:
    return fetcher.replica_id in partition.replicas and fetcher.replica_id != partition.leader


def _bounds(call: Call, fetcher: Fetcher, partition: Partition, index: int) -> PartitionData:
    high_watermark = partition.high_watermark_of(call.broker.node_id)
    return PartitionData(
        partition_index=index,
        high_watermark=high_watermark,
        last_stable_offset=min(high_watermark, partition.last_stable_offset),
        log_start_offset=partition.log.start,
        aborted_transactions=[] if fetcher.isolation_level == READ_COMMITTED else None,
        records=b"",
    )


def _diverges(partition: Partition, wanted: Wanted, row: PartitionData) -> bool:
    """Whether the fetcher's last record is not of this log."""
    epoch = wanted.asked.last_fetched_epoch
    if epoch < 0:
        return False
    known, end = partition.log.epochs.end_of(epoch, partition.log.end)
    if known < 0:
        raise Refused(OFFSET_OUT_OF_RANGE)
    if known == epoch and end >= wanted.asked.fetch_offset:
        return False
    row.diverging_epoch = EpochEndOffset(epoch=known, end_offset=end)
    return True


def ends_wait(row: PartitionData) -> bool:
    """Whether the answer must not wait for more because of this row."""
    return row.error_code != NONE or row.preferred_read_replica >= 0 or row.diverging_epoch is not None
