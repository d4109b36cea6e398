"""Errors of one batch, told with everything a user needs: where it lies, why it cannot be read, how to go
past it.

The functions below the reader see bytes only; they raise with a clause ("its stored CRC is …") as the text. The
reader knows topic, partition and offsets, and makes the sentences here.
"""

from __future__ import annotations

from typing import TypeAlias

from kclient.errors import BatchTooLargeError, CorruptBatchError, TooManyHeadersError, UnsupportedFormatError
from kclient.types import TopicPartition

BatchFault: TypeAlias = CorruptBatchError | BatchTooLargeError | UnsupportedFormatError
"""What the functions of this room raise about the bytes of a batch."""
BATCH_FAULTS = (CorruptBatchError, BatchTooLargeError, UnsupportedFormatError)


def located(fault: BatchFault, partition: TopicPartition, base_offset: int, next_offset: int) -> BatchFault:
    """The same fault with its place. `next_offset` is where to seek to go past the batch."""
    what = f"Cannot read the record batch at offset {base_offset} of {partition}: {fault.text}."
    skip = f"seek to offset {next_offset} to go past it; its records are then lost to this consumer"
    topic, number = partition
    if isinstance(fault, BatchTooLargeError):
        return BatchTooLargeError(
            f"{what} It may be meant to exhaust memory, or the limit is too low for this topic. "
            f"Raise max_decompressed_batch_bytes, or {skip}.",
            topic=topic,
            partition=number,
            base_offset=base_offset,
            next_offset=next_offset,
            limit=fault.limit,
        )
    if isinstance(fault, UnsupportedFormatError):
        return UnsupportedFormatError(
            f"{what} The installation lacks a codec, or the batch is newer than this version of kclient. "
            f"Reinstall or upgrade kclient-kafka, or {skip}.",
            topic=topic,
            partition=number,
            base_offset=base_offset,
            next_offset=next_offset,
            magic=fault.magic,
            codec=fault.codec,
        )
    if isinstance(fault, TooManyHeadersError):
        return TooManyHeadersError(
            f"{what} It may be meant to exhaust time and memory, or the limit is too low for this topic. "
            f"Raise max_headers_per_record, or {skip}.",
            topic=topic,
            partition=number,
            base_offset=base_offset,
            next_offset=next_offset,
            offset=fault.offset,
            count=fault.count,
            limit=fault.limit,
        )
    return CorruptBatchError(
        f"{what} The broker stored it that way, or it was damaged on the way here. Fetch it again, or {skip}.",
        topic=topic,
        partition=number,
        base_offset=base_offset,
        next_offset=next_offset,
    )


def cut_off(
    partition: TopicPartition, fetch_offset: int, fetched_bytes: int, size: int | None
) -> BatchTooLargeError:
    """The fault of a fetch that returned bytes and not one whole batch.

    Brokers cut the first batch too when they speak a Fetch version below 3.
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
