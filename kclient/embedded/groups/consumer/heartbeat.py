"""A heartbeat: a member joins or stays, says what changed and what it owns, and learns what it may own."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import attrs

from kclient.embedded.groups.consumer import patterns, regex, sessions
from kclient.embedded.groups.consumer.assignment import advance, target_of
from kclient.embedded.groups.consumer.group import BEGIN_AT_ONE, ConsumerGroup
from kclient.embedded.groups.consumer.ids import new_member_id
from kclient.embedded.groups.consumer.journal import Journal
from kclient.embedded.groups.consumer.member import JOINING, Member
from kclient.embedded.groups.consumer.partitions import TopicIdPartition, by_topic, from_wire
from kclient.embedded.groups.consumer.reconcile import reconcile
from kclient.embedded.groups.consumer.validation import (
    check_epoch,
    check_released,
    check_room,
    known_member,
)
from kclient.embedded.request_context import RequestContext
from kclient.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kclient.generated.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

Request = ConsumerGroupHeartbeatRequest
Owned = Collection[TopicIdPartition] | None


def heartbeat(journal: Journal, call: RequestContext, request: Request) -> ConsumerGroupHeartbeatResponse:
    """Everything is checked before anything changes. Raises ApiError."""
    group = journal.group
    check_room(group, request.member_id)
    member_id = request.member_id or new_member_id(call.state)
    owned = None if request.topic_partitions is None else from_wire(request.topic_partitions)
    found = _find(group, request, member_id, owned)
    if request.subscribed_topic_regex:
        regex.compiled(request.subscribed_topic_regex)
    before = take_place(journal, found, member_id, anew=request.member_epoch == JOINING)
    told = _told(before, call, request)
    if before.member_id not in group.members or told.told != before.told:
        journal.tell(told)
        patterns.forget_unused(journal)
    advance(journal, _subscription_changed(group, before, told))
    after = settle(journal, told, owned)
    journal.write()
    sessions.heard(group, after)
    patterns.resolve_later(group, call)
    return _answer(group, request, before, after)


def settle(journal: Journal, member: Member, owned: Owned) -> Member:
    """Bring a member one step nearer to its target."""
    group = journal.group

    def free(partition: TopicIdPartition) -> bool:
        return group.holders.get(partition, member.member_id) == member.member_id

    after = reconcile(member, target_of(group, member), group.assignment_epoch, owned, free)
    if after.progress != member.progress:
        journal.progress(after)
        sessions.moved(group, after)
    return after


# --- who it is


def _find(group: ConsumerGroup, request: Request, member_id: str, owned: Owned) -> Member | None:
    """The member, or the static one whose place it takes; None for a new one. Raises ApiError."""
    if request.member_epoch != JOINING:
        member = known_member(group, member_id, request.instance_id)
        check_epoch(group, member, request.member_epoch, owned)
        return member
    if request.instance_id is not None:
        found = group.static_member(request.instance_id)
        if found is not None and found.classic is None:
            check_released(found, member_id)
        return found
    found = group.members.get(member_id)
    if found is not None:
        check_epoch(group, found, request.member_epoch, owned)
    return found


def take_place(journal: Journal, found: Member | None, member_id: str, *, anew: bool) -> Member:
    """A static member that comes anew, under its old id or another, gets what the one who left had."""
    if found is None:
        return Member(member_id)
    if found.member_id == member_id and not (anew and found.instance_id is not None):
        return found
    target = journal.group.targets.get(found.member_id)
    heir = attrs.evolve(found, member_id=member_id, epoch=JOINING, previous_epoch=JOINING)
    journal.drop(found)
    journal.tell(heir)
    if target is not None:
        journal.target(member_id, target)
    journal.progress(heir)
    return heir


# --- what it says


def _told(member: Member, call: RequestContext, request: Request) -> Member:
    """The member with what this heartbeat says of it; what it does not say stays as it was."""
    said: dict[str, Any] = {
        "instance_id": request.instance_id,
        "rack_id": request.rack_id,
        "assignor": request.server_assignor,
        "regex": request.subscribed_topic_regex,
    }
    if request.rebalance_timeout_ms != -1:
        said["rebalance_timeout_ms"] = request.rebalance_timeout_ms
    if request.subscribed_topic_names is not None:
        said["topics"] = tuple(sorted(set(request.subscribed_topic_names)))
    changes = {name: value for name, value in said.items() if value is not None}
    return attrs.evolve(
        member, client_id=call.client_id, client_host=call.client_host, classic=None, **changes
    )


def _subscription_changed(group: ConsumerGroup, before: Member, told: Member) -> bool:
    """Whether the group needs a new epoch for it; a pattern that is not resolved yet brings one when it is."""
    if before.epoch == JOINING and group.cluster.release < BEGIN_AT_ONE and not before.assigned:
        return True
    if set(told.topics) != set(before.topics):
        return True
    return told.regex != before.regex and (not told.regex or told.regex in group.patterns)


# --- what it learns


def _answer(
    group: ConsumerGroup, request: Request, before: Member, after: Member
) -> ConsumerGroupHeartbeatResponse:
    """The assignment is told to a member that said everything, and when it changed; else it is null."""
    said_all = request.member_epoch == JOINING or (
        request.rebalance_timeout_ms != -1
        and request.topic_partitions is not None
        and not (request.subscribed_topic_names is None and request.subscribed_topic_regex is None)
    )
    assignment = None
    if said_all or before.assigned.keys() != after.assigned.keys():
        rows = by_topic(after.assigned).items()
        assignment = Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=numbers) for topic_id, numbers in rows
            ]
        )
    return ConsumerGroupHeartbeatResponse(
        member_id=after.member_id,
        member_epoch=after.epoch,
        heartbeat_interval_ms=group.cluster.settings.group_consumer_heartbeat_interval_ms,
        assignment=assignment,
    )
