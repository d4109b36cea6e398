"""Heartbeat and LeaveGroup: members that stay and members that go."""

from __future__ import annotations

from typing import Final

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups import rebalance
from kclient.embedded.groups.roster import Roster
from kclient.embedded.groups.states import ANSWERS, State
from kclient.embedded.releases import Release
from kclient.generated.heartbeat_request import HeartbeatRequest
from kclient.generated.leave_group_request import MemberIdentity
from kclient.protocol.errors import (
    COORDINATOR_NOT_AVAILABLE,
    FENCED_INSTANCE_ID,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)

# Before, a heartbeat between JoinGroup and the plan sent one back.
PATIENT_SINCE: Final = Release.parse("2.6")


def heartbeat(group: Roster, request: HeartbeatRequest) -> int:
    """The code to answer. Raises ApiError."""
    member = group.present(request.member_id, request.group_instance_id, request.generation_id)
    if group.state is State.COMPLETING and group.coordinator.broker.state.release < PATIENT_SINCE:
        return REBALANCE_IN_PROGRESS
    code = ANSWERS[group.state].heartbeat
    if code in (NONE, REBALANCE_IN_PROGRESS):
        rebalance.keep_alive(group, member)
    return code


def leave(group: Roster, who: MemberIdentity) -> int:
    """Let one member go, by its id or its static name alone; the code for it. Raises ApiError."""
    if group.state is State.DEAD:
        raise ApiError(COORDINATOR_NOT_AVAILABLE)
    holder = group.static.get(who.group_instance_id or "")
    if who.member_id and holder is not None and holder != who.member_id:
        return FENCED_INSTANCE_ID
    if who.member_id in group.pending:
        rebalance.remove_pending(group, who.member_id)
        return NONE
    if who.group_instance_id is not None and holder is None and group.knows_names:
        return UNKNOWN_MEMBER_ID
    member = group.members.get(holder or who.member_id)
    if member is None:
        return UNKNOWN_MEMBER_ID
    rebalance.remove(group, member, f"member {member.member_id} leaves: {who.reason or 'no reason given'}")
    return NONE
