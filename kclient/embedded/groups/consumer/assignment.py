"""The group's part of a rebalance: its next epoch when something changed, and targets for that epoch."""

from __future__ import annotations

from typing import Final

from kclient.embedded.groups.consumer.assignors import ASSIGNORS, Wanting
from kclient.embedded.groups.consumer.group import ConsumerGroup
from kclient.embedded.groups.consumer.journal import Journal
from kclient.embedded.groups.consumer.member import Member
from kclient.embedded.groups.consumer.metadata import metadata_hash, topics_read
from kclient.embedded.groups.consumer.partitions import TopicIdPartition
from kclient.embedded.releases import Release

INTERVALS_SINCE: Final = Release.parse("4.3")


def advance(journal: Journal, changed: bool) -> None:
    """Bump the epoch if a member changed or the topics did, and bring the targets up to it, unless it is too soon."""
    group = journal.group
    found = metadata_hash(group)
    if changed or found != group.metadata_hash:
        journal.bump(found)
    if group.epoch > group.assignment_epoch and _due(group):
        _assign(journal)


def _due(group: ConsumerGroup) -> bool:
    """From 4.3 on the changes of an interval are assigned together (KIP-1263)."""
    cluster = group.cluster
    if cluster.release < INTERVALS_SINCE:
        return True
    interval = cluster.settings.group_consumer_assignment_interval_ms
    return cluster.clock.wall_ms() >= group.assigned_at_ms + interval


def _assign(journal: Journal) -> None:
    group = journal.group
    topics = {topic.topic_id: len(topic.partitions) for topic in topics_read(group)}
    members = [_wanting(group, member) for member in group.members.values()]
    found = ASSIGNORS[group.assignor](topics, members)
    for member_id, partitions in found.items():
        if group.targets.get(member_id) != partitions:
            journal.target(member_id, partitions)
    journal.assigned(group.cluster.clock.wall_ms())


def _wanting(group: ConsumerGroup, member: Member) -> Wanting:
    held = group.targets.get(member.member_id, ())
    return Wanting(member.member_id, topic_ids(group, member), held, member.instance_id)


def topic_ids(group: ConsumerGroup, member: Member) -> tuple[bytes, ...]:
    """The topics that a member wants and that exist."""
    topics = group.cluster.topics
    return tuple(topics[name].topic_id for name in group.topics_of(member) if name in topics)


def target_of(group: ConsumerGroup, member: Member) -> tuple[TopicIdPartition, ...]:
    """What a member should own: its target, without topics that it has ceased to want since."""
    wanted = topic_ids(group, member)
    return tuple(one for one in group.targets.get(member.member_id, ()) if one.topic_id in wanted)
