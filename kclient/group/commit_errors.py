"""The errors of a failed commit: one text for each `CommitFailedError.reason`.

evicted         the coordinator no longer knows this member
not_joined      this consumer has not joined the group yet
rebalancing     a rebalance is running; the partitions may go to another member
occupied        a consumer without membership commits to a group that has members
group_gone      the coordinator does not know the group
topic_replaced  a topic was deleted and recreated; offsets of other topics are stored
stale_epoch     the group has moved to another member epoch, which the next heartbeat brings
retriable       a temporary failure; `retry` was not set
closed          the consumer was closed before the coordinator answered
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

import attrs

from kclient.config import Config
from kclient.errors import CommitFailedError
from kclient.types import OffsetAndMetadata, TopicPartition

NEXT_STEP: Final = {
    "evicted": "This member's partitions belong to others now, most often because more than max_poll_interval_ms "
    "passed between two polls{timing}. Poll to join again, and raise max_poll_interval_ms or lower "
    "max_poll_records.",
    "not_joined": "Nothing is assigned yet. Call poll() until it is, then commit what was consumed.",
    "rebalancing": "The partitions may go to another member. Call poll() until the rebalance is over, then commit.",
    "occupied": "The group has members, so a consumer outside of it may not commit. "
    "Use another group_id for manual assignment, or subscribe() instead of assign().",
    "group_gone": "It was deleted, or its offsets have expired. Poll to join it again, then commit.",
    "topic_replaced": "An offset of the old topic means nothing in the new one, "
    "whose records the next polls bring. Commit those.",
    "stale_epoch": "Partitions are moving between members. Call poll(), then commit what is still assigned.",
    "retriable": "The failure is temporary in a healthy cluster. Commit again.",
    "closed": "Whether the offsets are stored is not known; if they are not, their records are read again. "
    "Call commit() before close(), or give close() a longer timeout.",
}


@attrs.frozen
class PollTiming:
    """The time since the last poll of an evicted member, and the limits that apply."""

    since_poll_ms: int
    max_poll_interval_ms: int
    max_poll_records: int

    @classmethod
    def now(cls, config: Config, since_poll: float) -> Self:
        """Return the timing for `since_poll`, the seconds since the last poll."""
        return cls(round(since_poll * 1000), config.max_poll_interval_ms, config.max_poll_records)

    def __str__(self) -> str:
        return (
            f": the last one was {self.since_poll_ms / 1000:.1f} s ago, max_poll_interval_ms is "
            f"{self.max_poll_interval_ms} and max_poll_records {self.max_poll_records}"
        )


def commit_failed(
    reason: str,
    group_id: str,
    why: str,
    uncommitted: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
    timing: PollTiming | None = None,
) -> CommitFailedError:
    """Return the error for the user; `reason` is one of the words above."""
    next_step = NEXT_STEP[reason].format(timing="" if timing is None else timing)
    return CommitFailedError(
        f"Committing offsets of group {group_id} failed: {why.rstrip('.')}. {next_step}",
        reason=reason,
        retriable=reason == "retriable",
        uncommitted=dict(uncommitted or {}),
        **({} if timing is None else attrs.asdict(timing)),
    )
