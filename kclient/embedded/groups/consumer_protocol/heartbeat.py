"""ConsumerGroupHeartbeat: a member joins or stays, sends its changes and owned partitions, and gets its assignment."""

from __future__ import annotations

import base64
from collections.abc import Collection
from typing import Any, Final

import attrs

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.consumer_protocol import regex
from kclient.embedded.groups.consumer_protocol.assignment import advance, reconcile, target_of
from kclient.embedded.groups.consumer_protocol.journal import Journal
from kclient.embedded.groups.consumer_protocol.leave import restart_session_timer, update_rebalance_timer
from kclient.embedded.groups.consumer_protocol.member import (
    JOINING,
    ConsumerGroupMember,
    TopicIdPartition,
    by_topic,
    from_wire,
)
from kclient.embedded.groups.consumer_protocol.metadata import BEGIN_AT_ONE, ConsumerGroupMetadata
from kclient.embedded.groups.consumer_protocol.validation import (
    check_epoch,
    check_group_size,
    check_released,
    known_member,
)
from kclient.embedded.groups.coordinator import GroupCoordinator
from kclient.embedded.received_request import ReceivedRequest
from kclient.embedded.releases import Release
from kclient.embedded.state import ClusterState
from kclient.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kclient.generated.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kclient.protocol.errors import GROUP_ID_NOT_FOUND, UNSUPPORTED_VERSION

Request = ConsumerGroupHeartbeatRequest
Owned = Collection[TopicIdPartition] | None
ENABLED_SINCE: Final = Release.parse(
    "4.0"
)  # brokers of 3.7 to 3.9 advertise the APIs, but reject every request


def check_enabled(release: Release) -> None:
    """Raise ApiError if the release does not have the consumer protocol enabled."""
    if release < ENABLED_SINCE:
        raise ApiError(UNSUPPORTED_VERSION)


def known_group(coordinator: GroupCoordinator, group_id: str, called: str) -> ConsumerGroupMetadata:
    """Return an existing consumer group. Raise ApiError with a message that begins with `called`."""
    group = coordinator.find(group_id)
    if group is None:
        raise ApiError(GROUP_ID_NOT_FOUND, f"{called} {group_id} not found.")
    if not isinstance(group, ConsumerGroupMetadata):
        raise ApiError(GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    return group


def heartbeat(
    journal: Journal, received: ReceivedRequest, request: Request
) -> ConsumerGroupHeartbeatResponse:
    """Handle a heartbeat: all checks before any change. Raise ApiError."""
    group = journal.group
    check_group_size(group, request.member_id)
    member_id = request.member_id or new_member_id(group.cluster)
    owned = None if request.topic_partitions is None else from_wire(request.topic_partitions)
    found = _find(group, request, member_id, owned)
    if request.subscribed_topic_regex:
        regex.compiled(request.subscribed_topic_regex)
    before = take_place(journal, found, member_id, rejoins=request.member_epoch == JOINING)
    updated = _with_metadata(before, received, request)
    if before.member_id not in group.members or updated.metadata_fields != before.metadata_fields:
        journal.set_metadata(updated)
        regex.forget_unused(journal)
    advance(journal, _subscription_changed(group, before, updated))
    after = settle(journal, updated, owned)
    journal.write()
    restart_session_timer(group, after)
    regex.resolve_later(group, received.principal)
    return _answer(group, request, before, after)


def settle(journal: Journal, member: ConsumerGroupMember, owned: Owned) -> ConsumerGroupMember:
    """Reconcile a member: one step towards its target."""
    group = journal.group

    def free(partition: TopicIdPartition) -> bool:
        return group.holders.get(partition, member.member_id) == member.member_id

    after = reconcile(member, target_of(group, member), group.assignment_epoch, owned, free)
    if after.assignment_fields != member.assignment_fields:
        journal.set_assignment(after)
        update_rebalance_timer(group, after)
    return after


# --- identity


def new_member_id(state: ClusterState) -> str:
    """Return a random uuid, base64url, without padding (KIP-1082)."""
    return base64.urlsafe_b64encode(state.new_id()).decode().rstrip("=")


def _find(
    group: ConsumerGroupMetadata, request: Request, member_id: str, owned: Owned
) -> ConsumerGroupMember | None:
    """Return the member, or the static one that it replaces; None for a new one. Raise ApiError."""
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
    journal: Journal, found: ConsumerGroupMember | None, member_id: str, *, rejoins: bool
) -> ConsumerGroupMember:
    """Return the member; a static member that rejoins inherits the assignment of its former id."""
    if found is None:
        return ConsumerGroupMember(member_id)
    if found.member_id == member_id and not (rejoins and found.instance_id is not None):
        return found
    target = journal.group.targets.get(found.member_id)
    heir = attrs.evolve(found, member_id=member_id, epoch=JOINING, previous_epoch=JOINING)
    journal.remove_member(found)
    journal.set_metadata(heir)
    if target is not None:
        journal.set_target(member_id, target)
    journal.set_assignment(heir)
    return heir


# --- metadata


def _with_metadata(
    member: ConsumerGroupMember, received: ReceivedRequest, request: Request
) -> ConsumerGroupMember:
    """Return the member with the metadata of the heartbeat; absent fields stay unchanged."""
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
        member, client_id=received.client_id, client_host=received.client_host, classic=None, **changes
    )


def _subscription_changed(
    group: ConsumerGroupMetadata, before: ConsumerGroupMember, updated: ConsumerGroupMember
) -> bool:
    """Whether the group epoch must be bumped; an unresolved regular expression bumps it when it is resolved."""
    if before.epoch == JOINING and group.cluster.release < BEGIN_AT_ONE and not before.assigned:
        return True
    if set(updated.topics) != set(before.topics):
        return True
    return updated.regex != before.regex and (not updated.regex or updated.regex in group.patterns)


# --- response


def _answer(
    group: ConsumerGroupMetadata, request: Request, before: ConsumerGroupMember, after: ConsumerGroupMember
) -> ConsumerGroupHeartbeatResponse:
    """Return the response; its assignment is null unless it changed or the heartbeat was a full one."""
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
