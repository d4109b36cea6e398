"""What one consumer has done so far, in numbers. Times are seconds."""

from __future__ import annotations

import attrs


@attrs.define
class Counters:
    """Counted where it happens; `metrics()` hands out a copy.

    The `_total` ones only grow. `last_poll` is the loop's time of the latest poll, for the gap between two polls.

    Spec: B.19.1, S3-07.
    """

    poll_total: int = 0
    poll_records_total: int = 0
    time_between_poll_max_seconds: float = 0.0
    commit_total: int = 0
    commit_failed_total: int = 0
    auto_commit_total: int = 0
    rebalance_total: int = 0
    partitions_assigned_total: int = 0
    partitions_revoked_total: int = 0
    partitions_lost_total: int = 0
    last_poll: float | None = None

    def poll_started(self, now: float) -> None:
        """Note a poll and how long ago the one before began."""
        self.poll_total += 1
        if self.last_poll is not None:
            gap = now - self.last_poll
            self.time_between_poll_max_seconds = max(self.time_between_poll_max_seconds, gap)
        self.last_poll = now

    def as_dict(self) -> dict[str, float]:
        """Name → number."""
        values = attrs.asdict(self)
        del values["last_poll"]
        return values
