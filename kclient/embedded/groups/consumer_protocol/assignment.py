"""The target assignment of a group, and the next step of one member towards its target.

`advance` bumps the group epoch after a change and computes the targets of that epoch. `reconcile` is a pure function:
first a member revokes what its target lacks; until its heartbeat no longer owns these partitions it stays in its old
epoch. Then it moves to the assignment epoch and gets the partitions that are free. It gets the rest of its target when
the other members have revoked it, so a partition never has two owners.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

import attrs

from kclient.embedded.groups.consumer_protocol.assignors import ASSIGNORS, MemberSubscription
from kclient.embedded.groups.consumer_protocol.journal import Journal
from kclient.embedded.groups.consumer_protocol.member import (
    ConsumerGroupMember,
    MemberState,
    TopicIdPartition,
)
from kclient.embedded.groups.consumer_protocol.metadata import (
    ConsumerGroupMetadata,
    metadata_hash,
    subscribed_topics,
)
from kclient.embedded.releases import Release

INTERVALS_SINCE: Final = Release.parse("4.3")


def advance(journal: Journal, changed: bool) -> None:
    """Bump the epoch after a change of members or topics, and compute the targets unless it is too soon."""
    group = journal.group
    found = metadata_hash(group)
    if changed or found != group.metadata_hash:
        journal.bump_epoch(found)
    if group.epoch > group.assignment_epoch and _due(group):
        _assign(journal)


def _due(group: ConsumerGroupMetadata) -> bool:
    """Whether targets may be computed: from 4.3 on once in an interval (KIP-1263)."""
    cluster = group.cluster
    if cluster.release < INTERVALS_SINCE:
        return True
    interval = cluster.settings.group_consumer_assignment_interval_ms
    return cluster.clock.wall_ms() >= group.assigned_at_ms + interval


def _assign(journal: Journal) -> None:
    group = journal.group
    topics = {topic.topic_id: len(topic.partitions) for topic in subscribed_topics(group)}
    members = [_member_subscription(group, member) for member in group.members.values()]
    found = ASSIGNORS[group.assignor](topics, members)
    for member_id, partitions in found.items():
        if group.targets.get(member_id) != partitions:
            journal.set_target(member_id, partitions)
    journal.set_assignment_epoch(group.cluster.clock.wall_ms())


def _member_subscription(group: ConsumerGroupMetadata, member: ConsumerGroupMember) -> MemberSubscription:
    held = group.targets.get(member.member_id, ())
    return MemberSubscription(member.member_id, topic_ids(group, member), held, member.instance_id)


def topic_ids(group: ConsumerGroupMetadata, member: ConsumerGroupMember) -> tuple[bytes, ...]:
    """Return the ids of the existing topics that a member subscribes to."""
    topics = group.cluster.topics
    return tuple(topics[name].topic_id for name in group.topics_of(member) if name in topics)


def target_of(group: ConsumerGroupMetadata, member: ConsumerGroupMember) -> tuple[TopicIdPartition, ...]:
    """Return the target of a member, without topics that it no longer subscribes to."""
    wanted = topic_ids(group, member)
    return tuple(one for one in group.targets.get(member.member_id, ()) if one.topic_id in wanted)


Owned = Collection[TopicIdPartition] | None
"""What the member says that it owns; None where it did not say."""

Free = Callable[[TopicIdPartition], bool]
"""Whether no other member holds a partition."""


def reconcile(
    member: ConsumerGroupMember, target: Collection[TopicIdPartition], epoch: int, owned: Owned, free: Free
) -> ConsumerGroupMember:
    """Return the member after its heartbeat; `target` is its assignment of `epoch`."""
    match member.state:
        case MemberState.STABLE if member.epoch == epoch and set(member.assigned) <= set(target):
            return member
        case MemberState.UNREVOKED_PARTITIONS if _still_owns(owned, member.revoking):
            return member
        case _:
            return _step(member, target, epoch, owned, free)


def _step(
    member: ConsumerGroupMember, target: Collection[TopicIdPartition], epoch: int, owned: Owned, free: Free
) -> ConsumerGroupMember:
    kept = {one: since for one, since in member.assigned.items() if one in target}
    lost = {one: since for one, since in member.assigned.items() if one not in target}
    if _still_owns(owned, lost):
        return attrs.evolve(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            previous_epoch=member.epoch,
            assigned=kept,
            revoking=lost,
        )
    wanted = [one for one in target if one not in kept]
    given = dict.fromkeys((one for one in wanted if free(one)), epoch)
    return attrs.evolve(
        member,
        state=MemberState.STABLE if len(given) == len(wanted) else MemberState.UNRELEASED_PARTITIONS,
        epoch=epoch,
        previous_epoch=member.epoch,
        assigned=dict(sorted({**kept, **given}.items())),
        revoking={},
    )


def _still_owns(owned: Owned, lost: Collection[TopicIdPartition]) -> bool:
    """Whether it owns any lost partition; a heartbeat without owned partitions means no change."""
    return bool(lost) and (owned is None or any(one in lost for one in owned))
