"""Where the fetching of one partition stands, for who asks why nothing comes. Read by `consumer.explain()` alone."""

from __future__ import annotations

import attrs

from kclient.types import TopicPartition


@attrs.frozen
class Standing:
    """Whom the partition is asked of, and what keeps it from being asked. Times are seconds of the loop.

    `asked_at`: a Fetch with it is in flight since then. `retry_at`: it is left alone until then, because of `trouble`
    (text, or the wire's error code). `drains_first`: another partition of the same node that polls must drain first.
    `no_room`: the buffer is full.
    """

    node_id: int | None
    is_preferred: bool = False
    asked_at: float | None = None
    retry_at: float | None = None
    trouble: str | int = ""
    drains_first: TopicPartition | None = None
    no_room: bool = False
