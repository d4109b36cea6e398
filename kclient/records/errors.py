"""Errors of one batch with all that a user needs: its place, why it cannot be read, how to continue after it.

The functions that the reader calls see bytes only, and raise errors whose text is a clause ("its stored CRC is …"). The
reader knows topic, partition and offsets; the functions here make the whole sentence from both.
"""

from __future__ import annotations

from typing import TypeAlias

from kclient.errors import BatchTooLargeError, CorruptBatchError, TooManyHeadersError, UnsupportedFormatError
from kclient.types import TopicPartition

BatchError: TypeAlias = CorruptBatchError | BatchTooLargeError | UnsupportedFormatError
"""What the functions of this package raise about the bytes of a batch."""
BATCH_ERRORS = (CorruptBatchError, BatchTooLargeError, UnsupportedFormatError)


def with_location(
    error: BatchError, partition: TopicPartition, base_offset: int, next_offset: int
) -> BatchError:
    """Return the same error with its place. A seek to `next_offset` continues after the batch."""
    what = f"Cannot read the record batch at offset {base_offset} of {partition}: {error.text}."
    skip = f"seek to offset {next_offset} to go past it; its records are then lost to this consumer"
    topic, number = partition
    if isinstance(error, BatchTooLargeError):
        return BatchTooLargeError(
            f"{what} It may be meant to exhaust memory, or the limit is too low for this topic. "
            f"Raise max_decompressed_batch_bytes, or {skip}.",
            topic=topic,
            partition=number,
            base_offset=base_offset,
            next_offset=next_offset,
            limit=error.limit,
        )
    if isinstance(error, UnsupportedFormatError):
        return UnsupportedFormatError(
            f"{what} The installation lacks a codec, or the batch is newer than this version of kclient. "
            f"Reinstall or upgrade kclient-kafka, or {skip}.",
            topic=topic,
            partition=number,
            base_offset=base_offset,
            next_offset=next_offset,
            magic=error.magic,
            codec=error.codec,
        )
    if isinstance(error, TooManyHeadersError):
        return TooManyHeadersError(
            f"{what} It may be meant to exhaust time and memory, or the limit is too low for this topic. "
            f"Raise max_headers_per_record, or {skip}.",
            topic=topic,
            partition=number,
            base_offset=base_offset,
            next_offset=next_offset,
            offset=error.offset,
            count=error.count,
            limit=error.limit,
        )
    return CorruptBatchError(
        f"{what} The broker stored it that way, or it was damaged on the way here. Fetch it again, or {skip}.",
        topic=topic,
        partition=number,
        base_offset=base_offset,
        next_offset=next_offset,
    )


def truncated_fetch(
    partition: TopicPartition, fetch_offset: int, fetched_bytes: int, size: int | None
) -> BatchTooLargeError:
    """Return the error of a fetch that returned bytes but not one whole batch.

    From Fetch version 3 on, a broker returns the first batch whole even if it exceeds the limit (KIP-74). With older
    versions it cuts the first batch too.
    """
    batch = "the batch there" if size is None else f"the batch of {size} bytes there"
    return BatchTooLargeError(
        f"Cannot read {partition} at offset {fetch_offset}: the broker returned {fetched_bytes} bytes, "
        f"and {batch} is larger. The limit of a fetch is too low for this partition. "
        f"Raise max_partition_fetch_bytes and fetch_max_bytes, or seek past the batch.",
        topic=partition.topic,
        partition=partition.partition,
        base_offset=fetch_offset,
        next_offset=fetch_offset + 1,
        limit=fetched_bytes,
    )
