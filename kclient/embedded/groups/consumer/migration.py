"""A group changes its protocol while it runs: up when a member of the new one joins, down when the last of them leaves.

`group.consumer.migration.policy` says which way is open: "bidirectional", "upgrade", "downgrade" or "disabled".
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups import rebalance
from kclient.embedded.groups.classic import ClassicGroup
from kclient.embedded.groups.consumer.blobs import (
    has_user_data,
    read_assignment,
    read_subscription,
    write_assignment,
)
from kclient.embedded.groups.consumer.group import ConsumerGroup
from kclient.embedded.groups.consumer.journal import Journal, tell_observers
from kclient.embedded.groups.consumer.member import ClassicPart, Member
from kclient.embedded.groups.consumer.metadata import metadata_hash
from kclient.embedded.groups.member import Member as ClassicMember
from kclient.embedded.groups.states import State
from kclient.embedded.groups.written import group_record
from kclient.group.subscription_codec import PROTOCOL_TYPE
from kclient.protocol.errors import GROUP_ID_NOT_FOUND, NOT_COORDINATOR

UP: Final = ("bidirectional", "upgrade")
DOWN: Final = ("bidirectional", "downgrade")


# --- up


def upgraded(classic: ClassicGroup) -> Journal:
    """The group as a consumer group, all members in the epoch that was their generation; nothing is written yet.

    Raises ApiError where that may not be.
    """
    _check_upgrade(classic)
    group = ConsumerGroup(classic.coordinator, classic.group_id, classic.offsets)
    journal = Journal(group, classic.tombstones())
    members = [_hosted(group, classic, member) for member in classic.members.values()]
    for member in members:
        journal.tell(member)
    journal.begin(classic.generation, metadata_hash(group))
    for member in members:
        journal.target(member.member_id, tuple(member.assigned))
    journal.assigned(0)
    for member in members:
        journal.progress(member)
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


def _hosted(group: ConsumerGroup, classic: ClassicGroup, member: ClassicMember) -> Member:
    subscription = read_subscription(member.metadata(classic.protocol) or member.protocols[0][1])
    generation = classic.generation
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=tuple(sorted(set(subscription.topics))),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicPart(member.session_timeout_ms, tuple(member.protocols)),
        epoch=generation,
        previous_epoch=generation,
        assigned=dict.fromkeys(read_assignment(group, member.assignment), generation),
    )


# --- down


def downgrade_if_all_classic(
    group: ConsumerGroup, leaving: Collection[str] = (), *, rebalance_now: bool = True
) -> bool:
    """Turn the group into a classic one if nobody but classic members is left, and the way is open."""
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
        tell_observers(group, member_id)
    group.coordinator.groups[group.group_id] = classic
    for member in classic.members.values():
        rebalance.keep_alive(classic, member)
    if rebalance_now:
        rebalance.prepare(classic, "the last member of the consumer protocol left")
    return True


def _classic_group(group: ConsumerGroup, members: Collection[Member]) -> ClassicGroup:
    """Stable in the generation that was the group epoch."""
    classic = ClassicGroup(group.coordinator, group.group_id, group.offsets)
    classic.type_of_protocol, classic.generation = PROTOCOL_TYPE, group.epoch
    for member in members:
        classic.add(_unhosted(group, member))
    classic.protocol = classic.select_protocol()
    classic.subscribed = classic.topics_of_members()
    classic.state, classic.since_ms = State.STABLE, group.cluster.clock.wall_ms()
    return classic


def _unhosted(group: ConsumerGroup, member: Member) -> ClassicMember:
    protocols = [] if member.classic is None else list(member.classic.protocols)
    return ClassicMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=0 if member.classic is None else member.classic.session_timeout_ms,
        protocols=protocols,
        assignment=write_assignment(group, member.assigned, protocols[0][1]),
    )
