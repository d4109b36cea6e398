"""What a producer sends, checked as Kafka checks it, and brought into the form in which the topic keeps records.

wire version   exactly one batch of format 2 from Produce v3 on, message sets of old formats before
shape          CRC, size, the numbers in the header, every record
topic          keys where it is compacted, timestamps, the codec it wants
format         0 and 1 before release 0.11 (or where the topic says so), 2 since
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from kclient.embedded import topic_config
from kclient.embedded.appending import stamped, with_max_timestamp
from kclient.embedded.legacy import stored_set
from kclient.embedded.log import Stored, placed
from kclient.embedded.refusal import Refused
from kclient.embedded.releases import Release
from kclient.embedded.state import ClusterState
from kclient.embedded.topics import Partition
from kclient.embedded.unpacked import columns_of, records_of
from kclient.errors import BatchTooLargeError, CorruptBatchError, UnsupportedFormatError
from kclient.protocol.errors import (
    CORRUPT_MESSAGE,
    INVALID_RECORD,
    INVALID_TIMESTAMP,
    MESSAGE_TOO_LARGE,
    RECORD_LIST_TOO_LARGE,
    UNSUPPORTED_COMPRESSION_TYPE,
)
from kclient.records.batch import Batch, read_batches
from kclient.records.columns import Columns
from kclient.records.compression import Compression
from kclient.records.writer import NewRecord, build_batch

UNREADABLE: Final = (CorruptBatchError, BatchTooLargeError, UnsupportedFormatError)
CODECS: Final = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
FORMAT_2_SINCE: Final = Release.parse("0.11.0")
INVALID_RECORD_SINCE: Final = Release.parse("2.4")
FUTURE_CHECKED_SINCE: Final = Release.parse("4.0")


class RecordsRefused(Refused):
    """These records, as (place in the batch, reason), are why the batch is not taken."""

    def __init__(self, code: int, message: str, records: list[tuple[int, str]] | None = None) -> None:
        super().__init__(code, message)
        self.records = records or []


@attrs.frozen(eq=False)
class Admitted:
    """Records that may be appended. `place(offset, leader epoch)` gives them as they will lie in the log.

    `header` is that of a batch of format 2. Time in ms since 1970, −1 where the broker does not set it.
    """

    header: Batch | None
    place: Callable[[int, int], list[Stored]]
    log_append_time_ms: int = -1


def admit(
    state: ClusterState, partition: Partition, records: bytes | memoryview | None, version: int
) -> Admitted:
    """Check what Produce of this version brought for a partition. Raises Refused, RecordsRefused."""
    data = bytes(records or b"")
    try:
        batches = list(read_batches(data))
        for batch in batches:
            _check_size(state, partition, batch)
            batch.check_crc()
    except UNREADABLE as problem:
        raise Refused(CORRUPT_MESSAGE, str(problem)) from problem
    if version >= 3:
        _check_wire(state, batches, data, version)
        return _admit_batch(state, partition, batches[0], data)
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


def _check_wire(state: ClusterState, batches: list[Batch], data: bytes, version: int) -> None:
    if len(batches) != 1 or batches[0].magic != 2 or batches[0].end != len(data):
        text = f"Produce requests with version {version} are only allowed to contain one record batch of format 2"
        raise Refused(_invalid(state), text)
    if batches[0].compression == Compression.ZSTD and version < 7:
        text = f"Produce requests with version {version} are not allowed to use ZStandard compression"
        raise Refused(UNSUPPORTED_COMPRESSION_TYPE, text)


def _admit_batch(state: ClusterState, partition: Partition, header: Batch, data: bytes) -> Admitted:
    _check_header(state, header)
    try:
        columns = columns_of(header)
    except UNREADABLE as problem:
        raise Refused(_invalid(state), str(problem)) from problem
    _check_records(state, partition, columns)
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
    return Admitted(header, lambda offset, epoch: [placed(data, offset, epoch)], -1 if now is None else now)


def _check_header(state: ClusterState, header: Batch) -> None:
    problem = None
    if header.base_offset != 0:
        problem = f"The baseOffset of the record batch should be 0, but it is {header.base_offset}"
    elif header.count <= 0 or header.last_offset + 1 != header.count:
        problem = f"The record count {header.count} does not fit its last offset {header.last_offset}"
    elif header.is_control:
        problem = "Clients are not allowed to write control records"
    elif header.producer_id >= 0 and header.base_sequence < 0:
        problem = f"Invalid sequence number {header.base_sequence} of producer {header.producer_id}"
    if problem is not None:
        raise Refused(_invalid(state), problem)


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


def _admit_messages(state: ClusterState, partition: Partition, batches: list[Batch]) -> Admitted:
    records: list[NewRecord] = []
    codec = int(Compression.NONE)
    for batch in batches:
        try:
            columns = columns_of(batch)
        except UNREADABLE as problem:
            raise Refused(CORRUPT_MESSAGE, str(problem)) from problem
        _check_records(state, partition, columns)
        records += records_of(batch)
        codec = batch.compression or codec
    if not records:
        return Admitted(None, lambda offset, epoch: [])
    now = state.clock.wall_ms() if partition.topic.log_append_time else None
    magic, codec = magic_of(state, partition), _codec(partition, codec)
    if magic < 2:
        return _admitted_set(records, magic, codec, now)
    fresh = [one._replace(offset=None) for one in records]
    data = build_batch(fresh, compression=codec)
    data = data if now is None else stamped(data, now)
    return Admitted(None, lambda offset, epoch: [placed(data, offset, epoch)], -1 if now is None else now)


def _admitted_set(records: list[NewRecord], magic: int, codec: int, now: int | None) -> Admitted:
    time = now if magic else None
    return Admitted(
        None,
        lambda offset, _: stored_set(records, magic, codec, offset, time),
        -1 if time is None else time,
    )


# --- what holds for all formats


def _check_size(state: ClusterState, partition: Partition, batch: Batch) -> None:
    config = partition.topic.config
    limit = topic_config.number("max.message.bytes", config, state.settings)
    if batch.size_in_bytes > limit:
        text = f"The record batch size in the append to {partition.tp} is {batch.size_in_bytes} bytes "
        raise Refused(MESSAGE_TOO_LARGE, text + f"which exceeds the maximum configured value of {limit}.")
    if batch.size_in_bytes > topic_config.number("segment.bytes", config, state.settings):
        raise Refused(RECORD_LIST_TOO_LARGE)


def _check_records(state: ClusterState, partition: Partition, columns: Columns) -> None:
    if partition.topic.compacted and -1 in columns.key_sizes:
        text = f"Compacted topic cannot accept message without key in topic partition {partition.tp}."
        rows = [(index, text) for index, size in enumerate(columns.key_sizes) if size < 0]
        raise RecordsRefused(_invalid(state), "One or more records have been rejected", rows)
    if state.release < FUTURE_CHECKED_SINCE or partition.topic.log_append_time:
        return
    now, config = state.clock.wall_ms(), partition.topic.config
    latest = now + topic_config.number("message.timestamp.after.max.ms", config, state.settings)
    earliest = now - topic_config.number("message.timestamp.before.max.ms", config, state.settings)
    if max(columns.timestamps, default=-1) <= latest and min(columns.timestamps, default=now) >= earliest:
        return
    text = f"Timestamp is out of the range from {earliest} to {latest}."
    rows = [(at, text) for at, time in enumerate(columns.timestamps) if not earliest <= time <= latest]
    raise RecordsRefused(INVALID_TIMESTAMP, "One or more records have been rejected", rows)


def _codec(partition: Partition, sent: int) -> int:
    return CODECS.get(partition.topic.config.get("compression.type", "producer"), sent)


def _invalid(state: ClusterState) -> int:
    return INVALID_RECORD if state.release >= INVALID_RECORD_SINCE else CORRUPT_MESSAGE
