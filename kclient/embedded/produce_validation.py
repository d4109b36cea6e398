"""Validation of Produce requests as Kafka does it, and conversion to the format in which the topic stores records.

    wire version   exactly one batch of format 2 from Produce v3 on, message sets of old formats before
    shape          CRC, size, the numbers in the header, every record
    topic          keys where it is compacted, timestamps, the codec that it wants
    format         0 and 1 before release 0.11 (or where the topic is set so), 2 since

Nothing is appended here: the result describes how the records will be stored in the log. The error code for records
that are invalid in themselves came with release 2.4.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, TypeGuard

import attrs

from kclient.embedded import topic_config
from kclient.embedded.api_error import ApiError
from kclient.embedded.log import StoredBatch, columns_of, placed, records_of
from kclient.embedded.old_formats import stored_set
from kclient.embedded.partition import Partition
from kclient.embedded.releases import Release
from kclient.embedded.replication import stamped, with_max_timestamp
from kclient.embedded.state import ClusterState
from kclient.errors import BatchTooLargeError, CorruptBatchError, UnsupportedFormatError
from kclient.protocol.errors import (
    CORRUPT_MESSAGE,
    INVALID_RECORD,
    INVALID_TIMESTAMP,
    MESSAGE_TOO_LARGE,
    RECORD_LIST_TOO_LARGE,
    UNKNOWN_SERVER_ERROR,
    UNSUPPORTED_COMPRESSION_TYPE,
)
from kclient.records.batch import BATCH_HEADER_BYTES, MAGIC_POSITION, TRANSACTIONAL_FLAG, Batch, read_batches
from kclient.records.columns import Columns
from kclient.records.compression import Compression
from kclient.records.sections import columns_for, open_batch
from kclient.records.writer import NewRecord, build_batch
from kclient.types import TimestampType

UNREADABLE: Final = (CorruptBatchError, BatchTooLargeError, UnsupportedFormatError)
INVALID_RECORD_SINCE: Final = Release.parse("2.4")
STRICT_TIMES_SINCE: Final = Release.parse("4.0")


class InvalidRecordFormatError(ApiError):
    """The records have a format that this version of Produce does not allow."""


class InvalidRecordsError(ApiError):
    """The batch was rejected because of these records: (index in the batch, reason)."""

    def __init__(self, code: int, records: list[tuple[int, str]]) -> None:
        super().__init__(code, "One or more records have been rejected")
        self.records = records


def invalid_record(state: ClusterState) -> int:
    """Return the error code of invalid records."""
    return INVALID_RECORD if state.release >= INVALID_RECORD_SINCE else CORRUPT_MESSAGE


def check_size(state: ClusterState, partition: Partition, batch: Batch) -> None:
    """No larger than the topic takes."""
    config = partition.topic.config
    if batch.size_in_bytes > topic_config.number("max.message.bytes", config, state.settings):
        raise ApiError(MESSAGE_TOO_LARGE)
    if batch.size_in_bytes > topic_config.number("segment.bytes", config, state.settings):
        raise ApiError(RECORD_LIST_TOO_LARGE)


def check_records(state: ClusterState, partition: Partition, batch: Batch, columns: Columns) -> None:
    """Keys where the topic is compacted, and timestamps that are not too far away."""
    if partition.topic.compacted and -1 in columns.key_sizes:
        text = f"Compacted topic cannot accept message without key in topic partition {partition.tp}."
        rows = [(index, text) for index, size in enumerate(columns.key_sizes) if size < 0]
        raise InvalidRecordsError(invalid_record(state), rows)
    if partition.topic.log_append_time:
        return
    if state.release < STRICT_TIMES_SINCE and batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
        raise InvalidRecordsError(INVALID_TIMESTAMP, [(0, "Producers do not set LogAppendTime.")])
    earliest, latest = _times(state, partition)
    strange = [at for at, time in enumerate(columns.timestamps) if not earliest <= time <= latest]
    if strange:
        text = f"Timestamp is out of the range from {earliest} to {latest}."
        raise InvalidRecordsError(INVALID_TIMESTAMP, [(at, text) for at in strange])


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
        raise ApiError(invalid_record(state))


def read_columns(state: ClusterState, header: Batch) -> Columns:
    """Decompress the records. Brokers answer UNKNOWN_SERVER_ERROR to data that no codec can decompress."""
    try:
        section = open_batch(header)
    except UNREADABLE as exc:
        raise ApiError(UNKNOWN_SERVER_ERROR if header.compression else invalid_record(state)) from exc
    columns = columns_for(section)
    try:
        section.read_into(columns, header.count)
    except CorruptBatchError as exc:
        raise ApiError(invalid_record(state)) from exc
    return columns


CODECS: Final = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
FORMAT_2_SINCE: Final = Release.parse("0.11.0")
FLAGS_AT: Final = 21
PRODUCER_ID_AT: Final = 43
_FLAGS: Final = struct.Struct(">h")
_PRODUCER_ID: Final = struct.Struct(">q")


@attrs.frozen(eq=False)
class ValidatedRecords:
    """Validated records. `place(offset, leader epoch)` returns them as stored in the log.

    `header` is that of a batch of format 2. Time in ms since 1970, −1 where the broker does not set it.
    """

    header: Batch | None
    place: Callable[[int, int], list[StoredBatch]]
    log_append_time_ms: int = -1


def is_transactional(records: bytes | memoryview | None) -> bool:
    """Whether the first batch, unread, belongs to a transaction."""
    return _is_batch(records) and bool(_FLAGS.unpack_from(records, FLAGS_AT)[0] & TRANSACTIONAL_FLAG)


def is_idempotent(records: bytes | memoryview | None) -> bool:
    """Whether the first batch, unread, is of a producer with an id."""
    return _is_batch(records) and _PRODUCER_ID.unpack_from(records, PRODUCER_ID_AT)[0] >= 0


def _is_batch(records: bytes | memoryview | None) -> TypeGuard[bytes | memoryview]:
    return records is not None and len(records) >= BATCH_HEADER_BYTES and records[MAGIC_POSITION] == 2


def parsed(state: ClusterState, records: bytes | memoryview | None, version: int) -> list[Batch]:
    """Return the batches of a partition in a Produce request. Raise ApiError, InvalidRecordFormatError."""
    data = bytes(records or b"")
    try:
        batches = list(read_batches(data))
    except UNREADABLE as exc:
        raise ApiError(CORRUPT_MESSAGE) from exc
    if version >= 3 and (len(batches) != 1 or batches[0].magic != 2 or batches[0].end != len(data)):
        raise InvalidRecordFormatError(invalid_record(state))
    if version < 7 and any(batch.compression == Compression.ZSTD for batch in batches):
        raise InvalidRecordFormatError(UNSUPPORTED_COMPRESSION_TYPE)
    return batches


def validate(
    state: ClusterState, partition: Partition, batches: list[Batch], version: int
) -> ValidatedRecords:
    """Validate batches against the topic's configuration. Raise ApiError, InvalidRecordsError."""
    for batch in batches:
        check_size(state, partition, batch)
        try:
            batch.check_crc()
        except CorruptBatchError as exc:
            raise ApiError(CORRUPT_MESSAGE) from exc
    if version >= 3:
        return _admit_batch(state, partition, batches[0])
    return _admit_messages(state, partition, batches)


def magic_of(state: ClusterState, partition: Partition) -> int:
    """The format in which a topic keeps records."""
    wanted = partition.topic.config.get("message.format.version")
    if state.release >= Release.parse("4.0") or wanted is None:
        return 2 if state.release >= FORMAT_2_SINCE else 1
    if wanted.startswith(("0.8", "0.9")):
        return 0
    return 1 if wanted.startswith("0.10") else 2


# --- one batch of format 2


def _admit_batch(state: ClusterState, partition: Partition, header: Batch) -> ValidatedRecords:
    check_header(state, header)
    data, columns = header.field, read_columns(state, header)
    check_records(state, partition, header, columns)
    now = state.clock.wall_ms() if partition.topic.log_append_time else None
    magic, codec = magic_of(state, partition), _codec(partition, header.compression)
    if magic < 2:
        return _admitted_set(records_of(header), magic, codec, now)
    if codec != header.compression:
        data = _recompressed(header, codec)
    highest = max(columns.timestamps, default=-1)
    if now is not None:
        data = stamped(data, now)
    elif header.max_timestamp != highest or header.attributes & 0x08:
        data = with_max_timestamp(data, highest)
    return ValidatedRecords(
        header, lambda offset, epoch: [placed(data, offset, epoch)], -1 if now is None else now
    )


def _recompressed(header: Batch, codec: int) -> bytes:
    return build_batch(
        records_of(header),
        compression=codec,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
    )


# --- messages of formats 0 and 1


def _admit_messages(state: ClusterState, partition: Partition, batches: list[Batch]) -> ValidatedRecords:
    records: list[NewRecord] = []
    codec = int(Compression.NONE)
    for batch in batches:
        try:
            columns = columns_of(batch)
        except UNREADABLE as exc:
            raise ApiError(CORRUPT_MESSAGE) from exc
        check_records(state, partition, batch, columns)
        records += records_of(batch)
        codec = batch.compression or codec
    if not records:
        return ValidatedRecords(None, lambda offset, epoch: [])
    now = state.clock.wall_ms() if partition.topic.log_append_time else None
    magic, codec = magic_of(state, partition), _codec(partition, codec)
    if magic < 2:
        return _admitted_set(records, magic, codec, now)
    fresh = [one._replace(offset=None) for one in records]
    data = build_batch(fresh, compression=codec)
    data = data if now is None else stamped(data, now)
    return ValidatedRecords(
        None, lambda offset, epoch: [placed(data, offset, epoch)], -1 if now is None else now
    )


def _admitted_set(records: list[NewRecord], magic: int, codec: int, now: int | None) -> ValidatedRecords:
    time = now if magic else None
    return ValidatedRecords(
        None,
        lambda offset, _: stored_set(records, magic, codec, offset, time),
        -1 if time is None else time,
    )


def _codec(partition: Partition, sent: int) -> int:
    return CODECS.get(partition.topic.config.get("compression.type", "producer"), sent)
