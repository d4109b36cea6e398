"""What is wrong with records that a producer sent: their size, the numbers in their header, keys, timestamps.

Every function raises Refused; the code for records that are wrong in themselves came with release 2.4.
"""

from __future__ import annotations

from typing import Final

from kclient.embedded import topic_config
from kclient.embedded.refusal import Refused
from kclient.embedded.releases import Release
from kclient.embedded.state import ClusterState
from kclient.embedded.topics import Partition
from kclient.errors import BatchTooLargeError, CorruptBatchError, UnsupportedFormatError
from kclient.protocol.errors import (
    CORRUPT_MESSAGE,
    INVALID_RECORD,
    INVALID_TIMESTAMP,
    MESSAGE_TOO_LARGE,
    RECORD_LIST_TOO_LARGE,
    UNKNOWN_SERVER_ERROR,
)
from kclient.records.batch import Batch
from kclient.records.columns import Columns
from kclient.records.sections import columns_for, open_batch
from kclient.types import TimestampType

UNREADABLE: Final = (CorruptBatchError, BatchTooLargeError, UnsupportedFormatError)
INVALID_RECORD_SINCE: Final = Release.parse("2.4")
STRICT_TIMES_SINCE: Final = Release.parse("4.0")


class WireRefused(Refused):
    """These bytes are no records that this version of Produce may bring."""


class RecordsRefused(Refused):
    """These records, as (place in the batch, reason), are why the batch is not taken."""

    def __init__(self, code: int, records: list[tuple[int, str]]) -> None:
        super().__init__(code, "One or more records have been rejected")
        self.records = records


def invalid_record(state: ClusterState) -> int:
    """The code for records that are wrong in themselves."""
    return INVALID_RECORD if state.release >= INVALID_RECORD_SINCE else CORRUPT_MESSAGE


def check_size(state: ClusterState, partition: Partition, batch: Batch) -> None:
    """No larger than the topic takes."""
    config = partition.topic.config
    if batch.size_in_bytes > topic_config.number("max.message.bytes", config, state.settings):
        raise Refused(MESSAGE_TOO_LARGE)
    if batch.size_in_bytes > topic_config.number("segment.bytes", config, state.settings):
        raise Refused(RECORD_LIST_TOO_LARGE)


def check_records(state: ClusterState, partition: Partition, batch: Batch, columns: Columns) -> None:
    """Keys where the topic is compacted, and timestamps that are not too far away."""
    if partition.topic.compacted and -1 in columns.key_sizes:
        text = f"Compacted topic cannot accept message without key in topic partition {partition.tp}."
        rows = [(index, text) for index, size in enumerate(columns.key_sizes) if size < 0]
        raise RecordsRefused(invalid_record(state), rows)
    if partition.topic.log_append_time:
        return
    if state.release < STRICT_TIMES_SINCE and batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
        raise RecordsRefused(INVALID_TIMESTAMP, [(0, "Producers do not set LogAppendTime.")])
    earliest, latest = _times(state, partition)
    strange = [at for at, time in enumerate(columns.timestamps) if not earliest <= time <= latest]
    if strange:
        text = f"Timestamp is out of the range from {earliest} to {latest}."
        raise RecordsRefused(INVALID_TIMESTAMP, [(at, text) for at in strange])


def _times(state: ClusterState, partition: Partition) -> tuple[int, int]:
    """The earliest and the latest timestamp that the topic takes."""
    now, config, settings = state.clock.wall_ms(), partition.topic.config, state.settings
    if state.release < STRICT_TIMES_SINCE:
        most = topic_config.number("message.timestamp.difference.max.ms", config, settings)
        return now - most, now + most
    before = topic_config.number("message.timestamp.before.max.ms", config, settings)
    return now - before, now + topic_config.number("message.timestamp.after.max.ms", config, settings)


def check_header(state: ClusterState, header: Batch) -> None:
    """It begins at 0, counts its records, holds no marker, and has sequences if it has a producer."""
    counted = header.count > 0 and header.last_offset + 1 == header.count
    sequenced = header.producer_id < 0 or header.base_sequence >= 0
    if header.base_offset != 0 or not counted or header.is_control or not sequenced:
        raise Refused(invalid_record(state))


def read_columns(state: ClusterState, header: Batch) -> Columns:
    """Its records. What no codec can unpack is an error that real brokers did not think of."""
    try:
        section = open_batch(header)
    except UNREADABLE as exc:
        raise Refused(UNKNOWN_SERVER_ERROR if header.compression else invalid_record(state)) from exc
    columns = columns_for(section)
    try:
        section.read_into(columns, header.count)
    except CorruptBatchError as exc:
        raise Refused(invalid_record(state)) from exc
    return columns
