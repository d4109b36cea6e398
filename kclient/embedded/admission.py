"""What a producer sends, checked as Kafka checks it, and brought into the form in which the topic keeps records.

    wire version   exactly one batch of format 2 from Produce v3 on, message sets of old formats before
    shape          CRC, size, the numbers in the header, every record
    topic          keys where it is compacted, timestamps, the codec it wants
    format         0 and 1 before release 0.11 (or where the topic says so), 2 since

Nothing is appended here: what is admitted says how it will lie in the log.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, TypeGuard

import attrs

from kclient.embedded.appending import stamped, with_max_timestamp
from kclient.embedded.legacy import stored_set
from kclient.embedded.log import Stored, placed
from kclient.embedded.record_checks import (
    UNREADABLE,
    WireRefused,
    check_header,
    check_records,
    check_size,
    invalid_record,
    read_columns,
)
from kclient.embedded.refusal import Refused
from kclient.embedded.releases import Release
from kclient.embedded.state import ClusterState
from kclient.embedded.topics import Partition
from kclient.embedded.unpacked import columns_of, records_of
from kclient.errors import CorruptBatchError
from kclient.protocol.errors import (
    CORRUPT_MESSAGE,
    UNSUPPORTED_COMPRESSION_TYPE,
)
from kclient.records.batch import BATCH_HEADER_BYTES, MAGIC_POSITION, TRANSACTIONAL_FLAG, Batch, read_batches
from kclient.records.compression import Compression
from kclient.records.writer import NewRecord, build_batch

CODECS: Final = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
FORMAT_2_SINCE: Final = Release.parse("0.11.0")
FLAGS_AT: Final = 21
PRODUCER_ID_AT: Final = 43
_FLAGS: Final = struct.Struct(">h")
_PRODUCER_ID: Final = struct.Struct(">q")


@attrs.frozen(eq=False)
class Admitted:
    """Records that may be appended. `place(offset, leader epoch)` gives them as they will lie in the log.

    `header` is that of a batch of format 2. Time in ms since 1970, −1 where the broker does not set it.
    """

    header: Batch | None
    place: Callable[[int, int], list[Stored]]
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
    """The batches that Produce of this version brought for a partition. Raises Refused, WireRefused."""
    data = bytes(records or b"")
    try:
        batches = list(read_batches(data))
    except UNREADABLE as exc:
        raise Refused(CORRUPT_MESSAGE) from exc
    if version >= 3 and (len(batches) != 1 or batches[0].magic != 2 or batches[0].end != len(data)):
        raise WireRefused(invalid_record(state))
    if version < 7 and any(batch.compression == Compression.ZSTD for batch in batches):
        raise WireRefused(UNSUPPORTED_COMPRESSION_TYPE)
    return batches


def admit(state: ClusterState, partition: Partition, batches: list[Batch], version: int) -> Admitted:
    """Check them as far as the topic has a say. Raises Refused, RecordsRefused."""
    for batch in batches:
        check_size(state, partition, batch)
        try:
            batch.check_crc()
        except CorruptBatchError as exc:
            raise Refused(CORRUPT_MESSAGE) from exc
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


def _admit_batch(state: ClusterState, partition: Partition, header: Batch) -> Admitted:
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
    return Admitted(header, lambda offset, epoch: [placed(data, offset, epoch)], -1 if now is None else now)


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
        except UNREADABLE as exc:
            raise Refused(CORRUPT_MESSAGE) from exc
        check_records(state, partition, batch, columns)
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


def _codec(partition: Partition, sent: int) -> int:
    return CODECS.get(partition.topic.config.get("compression.type", "producer"), sent)
