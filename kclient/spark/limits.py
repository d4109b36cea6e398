"""How much of what is there a micro-batch takes. Pure: no broker, no clock, no Spark.

minimum       nothing until so much is there, or until the last batch is `max_delay` old
maximum       every partition gives in proportion to its backlog, and none is left out
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import attrs

from kclient.types import TopicPartition

Offsets: TypeAlias = Mapping[TopicPartition, int]


@attrs.frozen
class Limit:
    """What holds for one micro-batch, None for what does not. The delay is in seconds."""

    max_rows: int | None = None
    min_rows: int | None = None
    max_delay: float = 0.0


NO_LIMIT = Limit()


def backlog(start: Offsets, end: Offsets) -> int:
    """How many offsets lie between the two; a partition without a start counts from 0."""
    return sum(max(0, offset - start.get(tp, 0)) for tp, offset in end.items())


def must_wait(start: Offsets, end: Offsets, limit: Limit, since_last_batch: float | None) -> bool:
    """Whether there is too little for a batch yet. The first batch of a run (None) waits for nothing."""
    if limit.min_rows is None or since_last_batch is None or since_last_batch >= limit.max_delay:
        return False
    return backlog(start, end) < limit.min_rows


def prorate(start: Offsets, end: Offsets, max_rows: int | None) -> dict[TopicPartition, int]:
    """Where a batch of about `max_rows` ends: each partition's share is in proportion to its backlog.

    A share is rounded down, but to no less than 1, so that no partition starves; the sum may therefore exceed the
    maximum by as many as there are partitions whose share is below 1.
    """
    total = backlog(start, end)
    if max_rows is None or total <= max_rows:
        return dict(end)
    return {tp: _share(start.get(tp, 0), offset, max_rows, total) for tp, offset in end.items()}


def _share(start: int, end: int, max_rows: int, total: int) -> int:
    size = end - start
    return end if size <= 0 else start + min(size, max(1, max_rows * size // total))
