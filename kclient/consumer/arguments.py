"""Offsets as the application gives them, to commit and to seek to: the call refuses what no request can carry. Pure.

A request that cannot be written would fail later: for every partition of a node where one was sought to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kclient.consumer.subscription import checked_partitions, is_number
from kclient.errors import ArgumentError
from kclient.types import OffsetAndMetadata, TopicPartition

OFFSET_BITS: Final = 63  # of a signed number, as it goes on the wire
EPOCH_BITS: Final = 31


def checked_offsets(offsets: Any) -> dict[TopicPartition, OffsetAndMetadata]:
    """Offsets to commit: OffsetAndMetadata or int as given. Raises ArgumentError for anything else."""
    if not isinstance(offsets, Mapping):
        raise ArgumentError(
            f"Offsets are a mapping of TopicPartition to an offset or OffsetAndMetadata, not {offsets!r}."
        )
    return {
        tp: checked_offset(tp, at)
        for tp, at in zip(checked_partitions(offsets), offsets.values(), strict=True)
    }


def checked_offset(partition: TopicPartition, at: Any) -> OffsetAndMetadata:
    """One offset: OffsetAndMetadata or int as given. Raises ArgumentError."""
    if isinstance(at, int):
        at = OffsetAndMetadata(at)
    if not isinstance(at, OffsetAndMetadata):
        raise ArgumentError(
            f"The offset for {partition} is {at!r}. Give the offset of the next record to consume, or "
            "OffsetAndMetadata(offset)."
        )
    if not is_number(at.offset, OFFSET_BITS):
        raise ArgumentError(
            f"The offset for {partition} is {at.offset!r}. Offsets are of type int, from 0 on and "
            f"below 2**{OFFSET_BITS}. Give that of the next record to consume."
        )
    if at.leader_epoch is not None and not is_number(at.leader_epoch, EPOCH_BITS):
        raise ArgumentError(
            f"The leader epoch of the offset for {partition} is {at.leader_epoch!r}. Epochs are of type int, from 0 "
            f"on and below 2**{EPOCH_BITS}. Give that of the record, or None where it is not known."
        )
    if not isinstance(at.metadata, str):
        raise ArgumentError(f"The metadata of the offset for {partition} is {at.metadata!r}. Give text.")
    return at
