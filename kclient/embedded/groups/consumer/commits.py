"""Which commits and offset fetches a consumer group lets through: those of members in an epoch that fits.

A commit in an older epoch is taken, from Kafka 4.3 on, for partitions that the member has had since that epoch
(KIP-1251): it comes from a member that has not heard of its new epoch yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.consumer.member import Member
from kclient.embedded.groups.consumer.partitions import TopicIdPartition
from kclient.embedded.groups.group import Committer
from kclient.embedded.releases import Release
from kclient.protocol.errors import (
    ILLEGAL_GENERATION,
    STALE_MEMBER_EPOCH,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_SERVER_ERROR,
    UNSUPPORTED_VERSION,
)
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.embedded.groups.consumer.group import ConsumerGroup

NO_EPOCH: Final = -1
FIRST_VERSION: Final = 9  # of OffsetCommit for members of this protocol
ASSIGNMENT_EPOCHS: Final = Release.parse("4.3")


def check_commit(group: ConsumerGroup, committer: Committer, partitions: Sequence[TopicPartition]) -> None:
    """Raise ApiError unless the committer is a member in a fitting epoch, or no member and the group is empty."""
    if committer.generation < 0 and group.empty:
        return
    if committer.transactional and _anonymous(committer):
        return
    member = _member(group, committer.member_id)
    if member.classic is None and not committer.transactional and committer.api_version < FIRST_VERSION:
        raise ApiError(UNSUPPORTED_VERSION)
    if committer.generation == member.epoch:
        return
    if committer.generation > member.epoch or not _had_since(group, member, committer.generation, partitions):
        raise ApiError(_other_epoch(member))


def check_fetch(group: ConsumerGroup, member_id: str | None, member_epoch: int) -> None:
    """Raise ApiError unless it is a member in its current epoch, or nobody in particular."""
    if member_id is None:
        if member_epoch >= 0:
            raise ApiError(UNKNOWN_SERVER_ERROR)  # as brokers do, which stumble over it
        return
    member = _member(group, member_id)
    if member_epoch != member.epoch:
        raise ApiError(_other_epoch(member))


def _other_epoch(member: Member) -> int:
    return STALE_MEMBER_EPOCH if member.classic is None else ILLEGAL_GENERATION


def _anonymous(committer: Committer) -> bool:
    return committer.generation == NO_EPOCH and not committer.member_id and committer.instance_id is None


def _member(group: ConsumerGroup, member_id: str) -> Member:
    member = group.members.get(member_id)
    if member is None:
        raise ApiError(UNKNOWN_MEMBER_ID)
    return member


def _had_since(
    group: ConsumerGroup, member: Member, epoch: int, partitions: Sequence[TopicPartition]
) -> bool:
    """Whether the member has had all of these since this epoch or longer."""
    if group.cluster.release < ASSIGNMENT_EPOCHS:
        return False
    since = {**member.assigned, **member.revoking}
    for tp in partitions:
        topic = group.cluster.topics.get(tp.topic)
        if topic is None or since.get(TopicIdPartition(topic.topic_id, tp.partition), epoch + 1) > epoch:
            return False
    return True
