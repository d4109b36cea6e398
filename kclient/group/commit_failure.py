"""Why a commit was not stored: who the membership says we are, and the text for each way in which it can fail.

Reasons, the one word in `CommitFailedError.reason`:

    evicted       the group does not count this member in any more
    not_joined    this consumer has not become a member yet
    rebalancing   a join is under way; the partitions may be somebody else's soon
    occupied      a consumer without membership commits to a group that has members
    group_gone    the coordinator does not know the group
    retriable     nothing is wrong for good; `retry` was not asked for
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kclient.errors import CommitFailedError, KclientError
from kclient.group.generation import Identity, MemberState, Standing
from kclient.network.failures import broker_error
from kclient.protocol import errors as codes
from kclient.types import OffsetAndMetadata, TopicPartition

NEXT_STEP: Final = {
    "evicted": "This member's partitions belong to others now, most often because more than max_poll_interval_ms "
    "passed between two polls. Poll again to join anew, and raise max_poll_interval_ms or lower max_poll_records.",
    "not_joined": "Nothing is assigned yet. Call poll() until it is, then commit what was consumed.",
    "rebalancing": "The partitions may go to another member. Call poll() until the rebalance is over, then commit.",
    "occupied": "The group has members, so a consumer outside of it may not commit. "
    "Use another group_id for manual assignment, or subscribe() instead of assign().",
    "group_gone": "It was deleted, or its offsets have expired. Poll again to join it anew, then commit.",
    "retriable": "This passes by itself in a healthy cluster. Commit again.",
}


def commit_failed(
    reason: str,
    group_id: str,
    why: str,
    uncommitted: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
) -> CommitFailedError:
    """The error for the user; `reason` is one of the words above. Spec: users 1.3, U-12, D-01."""
    return CommitFailedError(
        f"Committing offsets of group {group_id} failed: {why.rstrip('.')}. {NEXT_STEP[reason]}",
        reason=reason,
        retriable=reason == "retriable",
        uncommitted=dict(uncommitted or {}),
    )


def identity_of(standing: Standing, group_id: str, instance_id: str | None) -> Identity:
    """Under which name a member commits; only a stable one may. Raises CommitFailedError. Spec: B.14.3."""
    if standing.state is MemberState.STABLE:
        generation = standing.generation
        return Identity(generation.generation_id, generation.member_id, instance_id)
    if standing.state is MemberState.UNJOINED and standing.ended:
        raise commit_failed("evicted", group_id, f"this consumer is not a member any more: {standing.ended}")
    if standing.state is MemberState.UNJOINED:
        raise commit_failed("not_joined", group_id, "this consumer is not a member of the group yet")
    raise commit_failed("rebalancing", group_id, "the group is rebalancing")


def judge_refusal(standing: Standing, group_id: str, code: int, sent: Identity) -> KclientError:
    """What 22, 25, 27 and 82 in an answer to OffsetCommit mean for a member. Spec: B.15.8, B.13.9.

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
        return commit_failed("rebalancing" if rebalancing else "evicted", group_id, why)
    standing.reset(
        f"offset commit answered {codes.error(code).name}", keep_member_id=code == codes.ILLEGAL_GENERATION
    )
    if code == codes.FENCED_INSTANCE_ID:
        return broker_error(code, f"Committing offsets of group {group_id}")
    return commit_failed("evicted", group_id, why)
