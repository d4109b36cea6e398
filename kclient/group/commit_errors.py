"""Why a commit was not stored: who the membership says we are, and the text for each way in which it can fail.

Reasons, the one word in `CommitFailedError.reason`:

    evicted       the group does not count this member in any more
    not_joined    this consumer has not become a member yet
    rebalancing   a join is under way; the partitions may be somebody else's soon
    occupied      a consumer without membership commits to a group that has members
    group_gone    the coordinator does not know the group
    topic_replaced  a topic was deleted and created again since; other topics' offsets are stored
    stale_epoch   the group has moved on to another member epoch, which the next heartbeat brings
    retriable     nothing is wrong for good; `retry` was not asked for
    closed        the consumer was closed before the coordinator answered
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
    "passed between two polls{pace}. Poll again to join anew, and raise max_poll_interval_ms or lower "
    "max_poll_records.",
    "not_joined": "Nothing is assigned yet. Call poll() until it is, then commit what was consumed.",
    "rebalancing": "The partitions may go to another member. Call poll() until the rebalance is over, then commit.",
    "occupied": "The group has members, so a consumer outside of it may not commit. "
    "Use another group_id for manual assignment, or subscribe() instead of assign().",
    "group_gone": "It was deleted, or its offsets have expired. Poll again to join it anew, then commit.",
    "topic_replaced": "An offset of the old topic means nothing in the new one, "
    "whose records the next polls bring. Commit those.",
    "stale_epoch": "Partitions are moving between members. Call poll(), then commit what is still assigned.",
    "retriable": "This passes by itself in a healthy cluster. Commit again.",
    "closed": "Whether the offsets are stored is not known; if they are not, their records are read again. "
    "Call commit() before close(), or give close() a longer timeout.",
}


@attrs.frozen
class PollTiming:
    """How a member that is none any more has polled, and what was allowed."""

    since_poll_ms: int
    max_poll_interval_ms: int
    max_poll_records: int

    @classmethod
    def now(cls, config: Config, since_poll: float) -> Self:
        """With the seconds since the last poll."""
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
    pace: PollTiming | None = None,
) -> CommitFailedError:
    """The error for the user; `reason` is one of the words above."""
    next_step = NEXT_STEP[reason].format(pace="" if pace is None else pace)
    return CommitFailedError(
        f"Committing offsets of group {group_id} failed: {why.rstrip('.')}. {next_step}",
        reason=reason,
        retriable=reason == "retriable",
        uncommitted=dict(uncommitted or {}),
        **({} if pace is None else attrs.asdict(pace)),
    )
