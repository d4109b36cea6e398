"""Online migration: a consumer group becomes a classic group when its last member of the consumer protocol leaves, and
the bytes of classic members in a consumer group. The way up is in `upgrade`.

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
from kclient.embedded.groups.consumer_protocol.journal import notify_observers
from kclient.embedded.groups.consumer_protocol.member import (
    ConsumerGroupMember,
    TopicIdPartition,
)
from kclient.embedded.groups.consumer_protocol.metadata import ConsumerGroupMetadata
from kclient.errors import ProtocolDecodeError
from kclient.group.assignors.base import Assignment, Subscription
from kclient.group.subscription_codec import (
    NEWEST_VERSION,
    PROTOCOL_TYPE,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)
from kclient.protocol.errors import NOT_COORDINATOR, UNKNOWN_SERVER_ERROR
from kclient.types import TopicPartition


def read_subscription(blob: bytes) -> Subscription:
    """Decode the subscription of a classic member. Raise ApiError for invalid bytes."""
    try:
        return decode_subscription(blob)
    except ProtocolDecodeError as exc:
        raise ApiError(UNKNOWN_SERVER_ERROR, str(exc)) from exc


def read_assignment(group: ConsumerGroupMetadata, blob: bytes) -> tuple[TopicIdPartition, ...]:
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
    group: ConsumerGroupMetadata, partitions: Iterable[TopicIdPartition], subscription: bytes
) -> bytes:
    """Encode an assignment in the version of the member's subscription."""
    names = {topic.topic_id: topic.name for topic in group.cluster.topics.values()}
    known = [TopicPartition(names[one.topic_id], one.number) for one in partitions if one.topic_id in names]
    version = min(int.from_bytes(subscription[:2], "big"), NEWEST_VERSION)
    return encode_assignment(Assignment(tuple(known)), version)


def with_ids(
    group: ConsumerGroupMetadata, partitions: Iterable[TopicPartition]
) -> tuple[TopicIdPartition, ...]:
    """Return the partitions of existing topics with their topic ids."""
    topics = group.cluster.topics
    known = (tp for tp in partitions if tp.topic in topics)
    return tuple(sorted(TopicIdPartition(topics[tp.topic].topic_id, tp.partition) for tp in known))


DOWN: Final = ("bidirectional", "downgrade")


# --- down


def downgrade_if_all_classic(
    group: ConsumerGroupMetadata, leaving: Collection[str] = (), *, rebalance_now: bool = True
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


def _classic_group(group: ConsumerGroupMetadata, members: Collection[ConsumerGroupMember]) -> ClassicGroup:
    """Return a stable classic group whose generation is the group epoch."""
    classic = ClassicGroup(group.coordinator, group.group_id, group.offsets)
    classic.type_of_protocol, classic.generation = PROTOCOL_TYPE, group.epoch
    for member in members:
        classic.add(_unhosted(group, member))
    classic.protocol = classic.select_protocol()
    classic.subscribed = classic.topics_of_members()
    classic.state, classic.since_ms = ClassicGroupState.STABLE, group.cluster.clock.wall_ms()
    return classic


def _unhosted(group: ConsumerGroupMetadata, member: ConsumerGroupMember) -> ClassicGroupMember:
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
