"""Members that leave: by a heartbeat with epoch −1 or −2, or because their session or rebalance timeout expired."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import attrs

from kclient.embedded.groups.consumer_protocol.group import ConsumerGroup, metadata_hash
from kclient.embedded.groups.consumer_protocol.journal import Journal
from kclient.embedded.groups.consumer_protocol.member import (
    LEAVING_FOR_A_WHILE,
    ConsumerGroupMember,
    MemberState,
    MemberTimerKind,
)
from kclient.embedded.groups.consumer_protocol.migration import downgrade_if_all_classic
from kclient.embedded.groups.consumer_protocol.regex import forget_unused
from kclient.embedded.groups.consumer_protocol.validation import known_member
from kclient.embedded.releases import Release
from kclient.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kclient.generated.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse


def start_timers(group: ConsumerGroup, member: ConsumerGroupMember) -> None:
    """The coordinator is new: nobody is late yet."""
    restart_session_timer(group, member)
    update_rebalance_timer(group, member)


def restart_session_timer(group: ConsumerGroup, member: ConsumerGroupMember) -> None:
    """The member is alive."""
    session_ms = group.cluster.settings.group_consumer_session_timeout_ms
    if member.classic is not None:
        session_ms = member.classic.session_timeout_ms
    late = partial(expire_member, group, member.member_id)
    group.timers.start(member.member_id, MemberTimerKind.SESSION, session_ms, late)


def update_rebalance_timer(group: ConsumerGroup, member: ConsumerGroupMember) -> None:
    """The member's state is another one: it has its rebalance timeout to give up what it must."""
    if member.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
        late = partial(expire_member, group, member.member_id)
        group.timers.start(member.member_id, MemberTimerKind.REBALANCE, member.rebalance_timeout_ms, late)
    else:
        group.timers.stop(member.member_id, MemberTimerKind.REBALANCE)


def expire_member(group: ConsumerGroup, member_id: str) -> None:
    """The member took too long."""
    if not group.dead and member_id in group.members:
        remove(group, [group.members[member_id]])


NO_MEMBERS_NO_TARGETS_SINCE: Final = Release.parse("4.4")  # an empty group's assignment epoch is its own


def leave(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    """A heartbeat with epoch −1 or −2. Raises ApiError for somebody who is no member."""
    member = known_member(group, request.member_id, request.instance_id)
    if request.member_epoch == LEAVING_FOR_A_WHILE:
        _pause(group, member)
    else:
        remove(group, [member])
    return ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)


def remove(group: ConsumerGroup, members: Sequence[ConsumerGroupMember]) -> None:
    """These are members no more; the others share what they had when they next send a heartbeat."""
    gone = [member.member_id for member in members]
    if downgrade_if_all_classic(group, gone):
        return
    journal = Journal(group)
    for member in members:
        journal.drop(member)
    forget_unused(journal)
    journal.bump(metadata_hash(group))
    if not group.members and group.cluster.release >= NO_MEMBERS_NO_TARGETS_SINCE:
        journal.assigned(0)
    journal.write()


def _pause(group: ConsumerGroup, member: ConsumerGroupMember) -> None:
    """A static member keeps its place and its partitions until its session ends, but not what it had to give up."""
    journal = Journal(group)
    away = attrs.evolve(
        member, epoch=LEAVING_FOR_A_WHILE, assigned=dict.fromkeys(member.assigned, 0), revoking={}
    )
    journal.progress(away)
    group.timers.stop(member.member_id, MemberTimerKind.REBALANCE)
    journal.write()
