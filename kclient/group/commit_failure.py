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
from kclient.errors import CommitFailedError, KclientError
from kclient.group.generation import Identity, MemberState, Standing
from kclient.network.errors import broker_error
from kclient.protocol import errors as codes
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
class Pace:
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
    pace: Pace | None = None,
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


def identity_of(standing: Standing, group_id: str, instance_id: str | None, pace: Pace) -> Identity:
    """Under which name a member commits; only a stable one may. Raises CommitFailedError."""
    if standing.state is MemberState.STABLE:
        generation = standing.generation
        return Identity(generation.generation_id, generation.member_id, instance_id)
    if standing.state is MemberState.UNJOINED and standing.ended:
        why = f"this consumer is not a member any more: {standing.ended}"
        raise commit_failed("evicted", group_id, why, pace=pace)
    if standing.state is MemberState.UNJOINED:
        raise commit_failed("not_joined", group_id, "this consumer is not a member of the group yet")
    raise commit_failed("rebalancing", group_id, "the group is rebalancing")


def judge_refusal(standing: Standing, group_id: str, code: int, sent: Identity, pace: Pace) -> KclientError:
    """What 22, 25, 27 and 82 in an answer to OffsetCommit mean for a member.

    An answer to a commit of an earlier generation changes nothing for the present one.
    """
    why = f"the coordinator answered {codes.error(code).name} ({code})"
    now = standing.generation
    unchanged = (now.generation_id, now.member_id) == (sent.generation_id, sent.member_id)
    if code == codes.REBALANCE_IN_PROGRESS:
        if unchanged:
            standing.request_rejoin("offset commit answered REBALANCE_IN_PROGRESS")
        return commit_failed("rebalancing", group_id, why)
    if not unchanged:
        rebalancing = standing.state not in (MemberState.STABLE, MemberState.UNJOINED)
        if rebalancing:
            return commit_failed("rebalancing", group_id, why)
        return commit_failed("evicted", group_id, why, pace=pace)
    standing.reset(
        f"offset commit answered {codes.error(code).name}", keep_member_id=code == codes.ILLEGAL_GENERATION
    )
    if code == codes.FENCED_INSTANCE_ID:
        return broker_error(code, f"Committing offsets of group {group_id}")
    return commit_failed("evicted", group_id, why, pace=pace)
