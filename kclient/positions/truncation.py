"""What the user is told of a log that was cut below what was consumed."""

from __future__ import annotations

from collections.abc import Mapping

from kclient.errors import LogTruncatedError
from kclient.positions.state import EpochEnd
from kclient.text import format_names, format_partitions
from kclient.types import OffsetAndMetadata, TopicPartition


def log_truncated(
    positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, EpochEnd]
) -> LogTruncatedError:
    """One error for all truncations of one answer; `divergent` is None where the leader knows nothing of the epoch."""
    divergent = {
        tp: OffsetAndMetadata(end.end_offset, end.epoch) if end.is_known else None for tp, end in ends.items()
    }
    places = [
        f"{tp} at {positions[tp]}, which agrees up to {end.offset}" if end else f"{tp} at {positions[tp]}"
        for tp, end in divergent.items()
    ]
    one = next(iter(ends)) if len(ends) == 1 else None
    return LogTruncatedError(
        f"The log of {format_partitions(ends)} was cut below what was consumed ({format_names(places)}). An "
        "unclean leader election lost records that were read before. Seek to where to go on (`divergent` "
        "says where the logs part), or set on_out_of_range to 'earliest' or 'latest'.",
        partition=one,
        position=None if one is None else positions[one],
        partitions=tuple(ends),
        positions=dict(positions),
        divergent=divergent,
    )
