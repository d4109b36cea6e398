"""Online migration: a group becomes a consumer group when a member of the consumer protocol joins, and a classic group
when the last of them leaves.

`group.consumer.migration.policy` allows "bidirectional", "upgrade", "downgrade" or "disabled".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.classic import rebalance
from kclient.embedded.groups.classic.group import ClassicGroup
from kclient.embedded.groups.classic.metadata import ClassicGroupMember, ClassicGroupState
from kclient.embedded.groups.classic.records import group_record
from kclient.embedded.groups.consumer_protocol.group import ConsumerGroup, metadata_hash
from kclient.embedded.groups.consumer_protocol.journal import Journal, notify_observers
from kclient.embedded.groups.consumer_protocol.member import (
    ConsumerGroupMember,
    HostedClassicMember,
    TopicIdPartition,
)
from kclient.errors import ProtocolDecodeError
from kclient.group.assignors.base import Assignment, Subscription
from kclient.group.subscription_codec import (
    NEWEST_VERSION,
    PROTOCOL_TYPE,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)
from kclient.protocol.errors import GROUP_ID_NOT_FOUND, NOT_COORDINATOR, UNKNOWN_SERVER_ERROR
from kclient.types import TopicPartition


def read_subscription(blob: bytes) -> Subscription:
    """Decode the subscription of a classic member. Raise ApiError for invalid bytes."""
    try:
        return decode_subscription(blob)
    except ProtocolDecodeError as exc:
        raise ApiError(UNKNOWN_SERVER_ERROR, str(exc)) from exc


def read_assignment(group: ConsumerGroup, blob: bytes) -> tuple[TopicIdPartition, ...]:
    """Decode the assignment of a classic member; empty bytes mean none."""
    if not blob:
        return ()
    try:
        return with_ids(group, decode_assignment(blob).partitions)
    except ProtocolDecodeError as exc:
        raise ApiError(UNKNOWN_SERVER_ERROR, str(exc)) from exc


def has_user_data(blob: bytes) -> bool:
    """Whether the assignment has user data, which a consumer group would lose. Raise ApiError."""
    try:
        return bool(blob) and bool(decode_assignment(blob).user_data)
    except ProtocolDecodeError as exc:
        raise ApiError(UNKNOWN_SERVER_ERROR, str(exc)) from exc


def write_assignment(
    group: ConsumerGroup, partitions: Iterable[TopicIdPartition], subscription: bytes
) -> bytes:
    """Encode an assignment in the version of the member's subscription."""
    names = {topic.topic_id: topic.name for topic in group.cluster.topics.values()}
    known = [TopicPartition(names[one.topic_id], one.number) for one in partitions if one.topic_id in names]
    version = min(int.from_bytes(subscription[:2], "big"), NEWEST_VERSION)
    return encode_assignment(Assignment(tuple(known)), version)


def with_ids(group: ConsumerGroup, partitions: Iterable[TopicPartition]) -> tuple[TopicIdPartition, ...]:
    """Return the partitions of existing topics with their topic ids."""
    topics = group.cluster.topics
    known = (tp for tp in partitions if tp.topic in topics)
    return tuple(sorted(TopicIdPartition(topics[tp.topic].topic_id, tp.partition) for tp in known))


UP: Final = ("bidirectional", "upgrade")
DOWN: Final = ("bidirectional", "downgrade")


# --- up


def upgraded(classic: ClassicGroup) -> Journal:
    """Return the group as a consumer group, all members in the epoch of their generation; nothing is written yet.

    Raise ApiError where that may not be.
    """
    _check_upgrade(classic)
    group = ConsumerGroup(classic.coordinator, classic.group_id, classic.offsets)
    journal = Journal(group, classic.tombstones())
    members = [_hosted(group, classic, member) for member in classic.members.values()]
    for member in members:
        journal.set_metadata(member)
    journal.begin(classic.generation, metadata_hash(group))
    for member in members:
        journal.set_target(member.member_id, tuple(member.assigned))
    journal.set_assignment_epoch(0)
    for member in members:
        journal.set_assignment(member)
    return journal


def _check_upgrade(classic: ClassicGroup) -> None:
    settings = classic.coordinator.broker.state.settings
    why = None
    if settings.group_consumer_migration_policy.lower() not in UP:
        why = "online upgrade is disabled"
    elif classic.type_of_protocol != PROTOCOL_TYPE:
        why = "the group does not use the consumer embedded protocol"
    elif len(classic.members) > settings.group_consumer_max_size:
        why = "the group size exceeds the consumer group maximum size"
    elif any(has_user_data(member.assignment) for member in classic.members.values()):
        why = (
            "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default "
            "assignor before re-attempting the upgrade"
        )
    if why is not None:
        text = f"Cannot upgrade classic group {classic.group_id} to consumer group because {why}."
        raise ApiError(GROUP_ID_NOT_FOUND, text)


def _hosted(group: ConsumerGroup, classic: ClassicGroup, member: ClassicGroupMember) -> ConsumerGroupMember:
    subscription = read_subscription(member.metadata(classic.protocol) or member.protocols[0][1])
    generation = classic.generation
    return ConsumerGroupMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=tuple(sorted(set(subscription.topics))),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=HostedClassicMember(member.session_timeout_ms, tuple(member.protocols)),
        epoch=generation,
        previous_epoch=generation,
        assigned=dict.fromkeys(read_assignment(group, member.assignment), generation),
    )


# --- down


def downgrade_if_all_classic(
    group: ConsumerGroup, leaving: Collection[str] = (), *, rebalance_now: bool = True
) -> bool:
    """Downgrade the group if only classic members are left and the migration policy allows it."""
    settings = group.cluster.settings
    stay = [member for member in group.members.values() if member.member_id not in leaving]
    allowed = (
        settings.group_consumer_migration_policy.lower() in DOWN and len(stay) <= settings.group_max_size
    )
    if not stay or not allowed or any(member.classic is None for member in stay):
        return False
    classic = _classic_group(group, stay)
    plan = {member.member_id: member.assignment for member in classic.members.values()}
    group.coordinator.write(group.group_id, [*group.tombstones(), group_record(classic, plan)])
    group.end(NOT_COORDINATOR)
    for member_id in leaving:
        del group.members[member_id]
        notify_observers(group, member_id)
    group.coordinator.groups[group.group_id] = classic
    for member in classic.members.values():
        rebalance.keep_alive(classic, member)
    if rebalance_now:
        rebalance.prepare(classic, "the last member of the consumer protocol left")
    return True


def _classic_group(group: ConsumerGroup, members: Collection[ConsumerGroupMember]) -> ClassicGroup:
    """Return a stable classic group whose generation is the group epoch."""
    classic = ClassicGroup(group.coordinator, group.group_id, group.offsets)
    classic.type_of_protocol, classic.generation = PROTOCOL_TYPE, group.epoch
    for member in members:
        classic.add(_unhosted(group, member))
    classic.protocol = classic.select_protocol()
    classic.subscribed = classic.topics_of_members()
    classic.state, classic.since_ms = ClassicGroupState.STABLE, group.cluster.clock.wall_ms()
    return classic


def _unhosted(group: ConsumerGroup, member: ConsumerGroupMember) -> ClassicGroupMember:
    protocols = [] if member.classic is None else list(member.classic.protocols)
    return ClassicGroupMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=0 if member.classic is None else member.classic.session_timeout_ms,
        protocols=protocols,
        assignment=write_assignment(group, member.assigned, protocols[0][1]),
    )
