"""Members that leave: by a heartbeat with epoch −1 or −2, or because their session or rebalance timeout expired."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import attrs

from kclient.embedded.groups.consumer_protocol.journal import Journal
from kclient.embedded.groups.consumer_protocol.member import (
    LEAVING_TEMPORARILY,
    ConsumerGroupMember,
    MemberState,
    MemberTimerKind,
)
from kclient.embedded.groups.consumer_protocol.metadata import ConsumerGroupMetadata, metadata_hash
from kclient.embedded.groups.consumer_protocol.migration import downgrade_if_all_classic
from kclient.embedded.groups.consumer_protocol.regex import forget_unused
from kclient.embedded.groups.consumer_protocol.validation import known_member
from kclient.embedded.releases import Release
from kclient.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kclient.generated.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse


def start_timers(group: ConsumerGroupMetadata, member: ConsumerGroupMember) -> None:
    """Start the timers of a member that was loaded."""
    restart_session_timer(group, member)
    update_rebalance_timer(group, member)


def restart_session_timer(group: ConsumerGroupMetadata, member: ConsumerGroupMember) -> None:
    """Restart the session timer of a member."""
    session_ms = group.cluster.settings.group_consumer_session_timeout_ms
    if member.classic is not None:
        session_ms = member.classic.session_timeout_ms
    late = partial(expire_member, group, member.member_id)
    group.timers.start(member.member_id, MemberTimerKind.SESSION, session_ms, late)


def update_rebalance_timer(group: ConsumerGroupMetadata, member: ConsumerGroupMember) -> None:
    """Start the rebalance timer of a member that must revoke partitions; stop it otherwise."""
    if member.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
        late = partial(expire_member, group, member.member_id)
        group.timers.start(member.member_id, MemberTimerKind.REBALANCE, member.rebalance_timeout_ms, late)
    else:
        group.timers.stop(member.member_id, MemberTimerKind.REBALANCE)


def expire_member(group: ConsumerGroupMetadata, member_id: str) -> None:
    """Remove a member after its session or rebalance timeout."""
    if not group.dead and member_id in group.members:
        remove(group, [group.members[member_id]])


NO_MEMBERS_NO_TARGETS_SINCE: Final = Release.parse(
    "4.4"
)  # the assignment epoch of an empty group equals its group epoch


def leave(
    group: ConsumerGroupMetadata, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    """Handle a heartbeat with epoch −1 or −2. Raise ApiError for an unknown member."""
    member = known_member(group, request.member_id, request.instance_id)
    if request.member_epoch == LEAVING_TEMPORARILY:
        _leave_temporarily(group, member)
    else:
        remove(group, [member])
    return ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)


def remove(group: ConsumerGroupMetadata, members: Sequence[ConsumerGroupMember]) -> None:
    """Remove members; the others get their partitions with the next heartbeats."""
    gone = [member.member_id for member in members]
    if downgrade_if_all_classic(group, gone):
        return
    journal = Journal(group)
    for member in members:
        journal.remove_member(member)
    forget_unused(journal)
    journal.bump_epoch(metadata_hash(group))
    if not group.members and group.cluster.release >= NO_MEMBERS_NO_TARGETS_SINCE:
        journal.set_assignment_epoch(0)
    journal.write()


def _leave_temporarily(group: ConsumerGroupMetadata, member: ConsumerGroupMember) -> None:
    """Let a static member leave temporarily: it keeps its partitions until its session expires."""
    journal = Journal(group)
    away = attrs.evolve(
        member, epoch=LEAVING_TEMPORARILY, assigned=dict.fromkeys(member.assigned, 0), revoking={}
    )
    journal.set_assignment(away)
    group.timers.stop(member.member_id, MemberTimerKind.REBALANCE)
    journal.write()
