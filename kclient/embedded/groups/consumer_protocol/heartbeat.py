"""ConsumerGroupHeartbeat: a member joins or stays, sends its changes and owned partitions, and gets its assignment."""

from __future__ import annotations

import base64
from collections.abc import Collection
from typing import Any, Final

import attrs

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.classic.group import ClassicGroup
from kclient.embedded.groups.consumer_protocol import regex
from kclient.embedded.groups.consumer_protocol.assignment import advance, reconcile, target_of
from kclient.embedded.groups.consumer_protocol.group import BEGIN_AT_ONE, ConsumerGroup
from kclient.embedded.groups.consumer_protocol.journal import Journal
from kclient.embedded.groups.consumer_protocol.leave import restart_session_timer, update_rebalance_timer
from kclient.embedded.groups.consumer_protocol.member import (
    JOINING,
    ConsumerGroupMember,
    TopicIdPartition,
    by_topic,
    from_wire,
)
from kclient.embedded.groups.consumer_protocol.migration import upgraded
from kclient.embedded.groups.consumer_protocol.validation import (
    check_epoch,
    check_released,
    check_room,
    known_member,
)
from kclient.embedded.groups.coordinator import GroupCoordinator
from kclient.embedded.groups.group import CoordinatorGroup
from kclient.embedded.releases import Release
from kclient.embedded.request_context import RequestContext
from kclient.embedded.state import ClusterState
from kclient.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kclient.generated.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kclient.protocol.errors import GROUP_ID_NOT_FOUND, REBALANCE_IN_PROGRESS, UNSUPPORTED_VERSION

Request = ConsumerGroupHeartbeatRequest
Owned = Collection[TopicIdPartition] | None
ENABLED_SINCE: Final = Release.parse("4.0")  # brokers of 3.7 to 3.9 list the APIs, but serve them to nobody


@attrs.frozen
class GroupToJoin:
    """A group that a member may join. It is the coordinator's only when the member was taken: `keep`."""

    journal: Journal
    instead_of: CoordinatorGroup | None

    def keep(self) -> None:
        """The group is the coordinator's. Who waits for the one it replaces is told to begin anew."""
        group = self.journal.group
        group.coordinator.groups[group.group_id] = group
        for member in group.members.values():
            if member.classic is not None:
                restart_session_timer(group, member)
        if self.instead_of is not None:
            self.instead_of.end(REBALANCE_IN_PROGRESS)


def check_enabled(release: Release) -> None:
    """Raise ApiError where the consumer protocol is not switched on."""
    if release < ENABLED_SINCE:
        raise ApiError(UNSUPPORTED_VERSION)


def known_group(coordinator: GroupCoordinator, group_id: str, called: str) -> ConsumerGroup:
    """A consumer group that there is. Raises ApiError. `called` begins the message as brokers do."""
    group = coordinator.find(group_id)
    if group is None:
        raise ApiError(GROUP_ID_NOT_FOUND, f"{called} {group_id} not found.")
    if not isinstance(group, ConsumerGroup):
        raise ApiError(GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    return group


def group_to_join(coordinator: GroupCoordinator, group_id: str) -> GroupToJoin:
    """The group, a new one, or the one that a classic group turns into. Raises ApiError where it may not."""
    group = coordinator.find(group_id)
    if isinstance(group, ConsumerGroup):
        return GroupToJoin(Journal(group), None)
    if not isinstance(group, ClassicGroup):
        return GroupToJoin(Journal(ConsumerGroup(coordinator, group_id)), None)
    if group.empty:
        fresh = ConsumerGroup(coordinator, group_id, group.offsets)
        return GroupToJoin(Journal(fresh, group.tombstones()), group)
    return GroupToJoin(upgraded(group), group)


def heartbeat(journal: Journal, context: RequestContext, request: Request) -> ConsumerGroupHeartbeatResponse:
    """Everything is checked before anything changes. Raises ApiError."""
    group = journal.group
    check_room(group, request.member_id)
    member_id = request.member_id or new_member_id(context.state)
    owned = None if request.topic_partitions is None else from_wire(request.topic_partitions)
    found = _find(group, request, member_id, owned)
    if request.subscribed_topic_regex:
        regex.compiled(request.subscribed_topic_regex)
    before = take_place(journal, found, member_id, anew=request.member_epoch == JOINING)
    told = _told(before, context, request)
    if before.member_id not in group.members or told.told != before.told:
        journal.tell(told)
        regex.forget_unused(journal)
    advance(journal, _subscription_changed(group, before, told))
    after = settle(journal, told, owned)
    journal.write()
    restart_session_timer(group, after)
    regex.resolve_later(group, context)
    return _answer(group, request, before, after)


def settle(journal: Journal, member: ConsumerGroupMember, owned: Owned) -> ConsumerGroupMember:
    """Bring a member one step nearer to its target."""
    group = journal.group

    def free(partition: TopicIdPartition) -> bool:
        return group.holders.get(partition, member.member_id) == member.member_id

    after = reconcile(member, target_of(group, member), group.assignment_epoch, owned, free)
    if after.progress != member.progress:
        journal.progress(after)
        update_rebalance_timer(group, after)
    return after


# --- who it is


def new_member_id(state: ClusterState) -> str:
    """A random uuid, base64url, without padding."""
    return base64.urlsafe_b64encode(state.new_id()).decode().rstrip("=")


def _find(group: ConsumerGroup, request: Request, member_id: str, owned: Owned) -> ConsumerGroupMember | None:
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


def take_place(
    journal: Journal, found: ConsumerGroupMember | None, member_id: str, *, anew: bool
) -> ConsumerGroupMember:
    """A static member that comes anew, under its old id or another, gets what the one who left had."""
    if found is None:
        return ConsumerGroupMember(member_id)
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


def _told(member: ConsumerGroupMember, context: RequestContext, request: Request) -> ConsumerGroupMember:
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
        member, client_id=context.client_id, client_host=context.client_host, classic=None, **changes
    )


def _subscription_changed(
    group: ConsumerGroup, before: ConsumerGroupMember, told: ConsumerGroupMember
) -> bool:
    """Whether the group needs a new epoch for it; a pattern that is not resolved yet brings one when it is."""
    if before.epoch == JOINING and group.cluster.release < BEGIN_AT_ONE and not before.assigned:
        return True
    if set(told.topics) != set(before.topics):
        return True
    return told.regex != before.regex and (not told.regex or told.regex in group.patterns)


# --- what it learns


def _answer(
    group: ConsumerGroup, request: Request, before: ConsumerGroupMember, after: ConsumerGroupMember
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
