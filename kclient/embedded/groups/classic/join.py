"""JoinGroup: a new member joins, a member rejoins, or a static member is replaced."""

from __future__ import annotations

import uuid
from typing import Self

import attrs

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.classic import rebalance
from kclient.embedded.groups.classic.metadata import (
    RESPONSES,
    ClassicGroupMember,
    ClassicGroupMetadata,
    ClassicGroupState,
    Parked,
    StateAction,
    notify_rebalanced,
)
from kclient.embedded.groups.classic.records import group_record
from kclient.embedded.received_request import ReceivedRequest
from kclient.generated.join_group_request import JoinGroupRequest
from kclient.generated.join_group_response import JoinGroupResponse
from kclient.protocol.errors import (
    COORDINATOR_NOT_AVAILABLE,
    GROUP_MAX_SIZE_REACHED,
    INCONSISTENT_GROUP_PROTOCOL,
    MEMBER_ID_REQUIRED,
    UNKNOWN_MEMBER_ID,
)
from kclient.runtime import Runtime


@attrs.frozen
class JoiningMember:
    """The sender of a JoinGroup request, with its metadata; times in ms."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: list[tuple[str, bytes]]
    version: int

    @classmethod
    def of(cls, context: ReceivedRequest, request: JoinGroupRequest) -> Self:
        """Return the member of a request. Version 0 has no rebalance timeout: use the session timeout."""
        session, rebalance_ms = request.session_timeout_ms, request.rebalance_timeout_ms
        return cls(
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            client_id=context.client_id,
            client_host=context.client_host,
            session_timeout_ms=session,
            rebalance_timeout_ms=session if context.version == 0 else rebalance_ms,
            protocol_type=request.protocol_type,
            protocols=[(row.name, bytes(row.metadata)) for row in request.protocols],
            version=context.version,
        )

    @property
    def needs_id(self) -> bool:
        """Whether it must join with a member id from the coordinator (KIP-394)."""
        return self.version >= 4 and self.instance_id is None

    def new_id(self, runtime: Runtime) -> str:
        number = uuid.UUID(bytes=runtime.random_bytes(16), version=4)
        return f"{self.client_id if self.instance_id is None else self.instance_id}-{number}"

    def member(self, member_id: str) -> ClassicGroupMember:
        """Return a new group member."""
        return ClassicGroupMember(
            member_id,
            self.instance_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            self.protocols,
            is_new=True,
        )


async def join(group: ClassicGroupMetadata, joiner: JoiningMember) -> JoinGroupResponse | None:
    """Add the member; return the response when the join phase completes. Raise ApiError."""
    if not _accepts(group, joiner.member_id):
        known = group.members.get(joiner.member_id)
        if known is not None:
            group.remove(known)
        group.drop_pending(joiner.member_id)
        rebalance.try_complete(group)
        raise ApiError(GROUP_MAX_SIZE_REACHED)
    if group.state is ClassicGroupState.DEAD:
        raise ApiError(COORDINATOR_NOT_AVAILABLE)
    if not group.supports(joiner.protocol_type, joiner.protocols):
        raise ApiError(INCONSISTENT_GROUP_PROTOCOL)
    if joiner.member_id:
        return await _known(group, joiner)
    return await _unknown(group, joiner)


def _accepts(group: ClassicGroupMetadata, member_id: str) -> bool:
    """During the join phase the first members to rejoin have a place, otherwise the members of the group."""
    limit = group.coordinator.broker.state.settings.group_max_size
    member = group.members.get(member_id)
    if group.empty:
        return True
    if group.state is ClassicGroupState.PREPARING:
        return (member is not None and member.joining is not None) or len(group.waiting) < limit
    return member is not None or len(group.members) < limit


# --- without a member id


async def _unknown(group: ClassicGroupMetadata, joiner: JoiningMember) -> JoinGroupResponse | None:
    member_id = joiner.new_id(group.coordinator.broker.state.runtime)
    if joiner.instance_id is not None and joiner.instance_id in group.static:
        return await _replace_static_member(
            group, joiner, group.members[group.static[joiner.instance_id]], member_id
        )
    if joiner.needs_id:
        return _require_member_id(group, joiner, member_id)
    return await _enter(group, joiner, member_id)


def _require_member_id(
    group: ClassicGroupMetadata, joiner: JoiningMember, member_id: str
) -> JoinGroupResponse:
    """Return a member id, with which the member must join within its session timeout (KIP-394)."""
    group.pending[member_id] = group.coordinator.broker.call_later(
        joiner.session_timeout_ms / 1000, lambda: rebalance.remove_pending(group, member_id)
    )
    return JoinGroupResponse(error_code=MEMBER_ID_REQUIRED, member_id=member_id, protocol_name=None)


async def _enter(
    group: ClassicGroupMetadata, joiner: JoiningMember, member_id: str
) -> JoinGroupResponse | None:
    """Add a new member and begin a rebalance."""
    member = joiner.member(member_id)
    if not group.members:
        group.type_of_protocol = joiner.protocol_type
    group.new_member_added = group.new_member_added or group.initial_delay
    group.add(member)
    parked = member.park_join()
    rebalance.keep_alive(group, member)
    rebalance.prepare(group, f"new member {member_id}")
    return await parked


# --- with a member id


async def _known(group: ClassicGroupMetadata, joiner: JoiningMember) -> JoinGroupResponse | None:
    if joiner.member_id in group.pending:
        return await _enter(group, joiner, joiner.member_id)
    member = group.member_for(joiner.member_id, joiner.instance_id, strict=True)
    act = RESPONSES[group.state].join
    if not isinstance(act, StateAction):
        raise ApiError(UNKNOWN_MEMBER_ID)
    changed = member.protocols != joiner.protocols
    leads = act is StateAction.REJOIN_IF_CHANGED_OR_LEADER and group.leader == member.member_id
    if act is StateAction.REJOIN or changed or leads:
        return await _rejoin(group, joiner, member, "leads and asks for it" if leads else "joins again")
    return rebalance.join_response(group, member)  # the same generation continues


async def _rejoin(
    group: ClassicGroupMetadata, joiner: JoiningMember, member: ClassicGroupMember, why: str
) -> JoinGroupResponse | None:
    parked = _update_and_park(joiner, member)
    rebalance.prepare(group, f"member {member.member_id} {why}")
    return await parked


def _update_and_park(joiner: JoiningMember, member: ClassicGroupMember) -> Parked[JoinGroupResponse]:
    member.protocols = joiner.protocols
    member.rebalance_timeout_ms = joiner.rebalance_timeout_ms
    member.session_timeout_ms = joiner.session_timeout_ms
    return member.park_join()


# --- a static member that comes back


async def _replace_static_member(
    group: ClassicGroupMetadata, joiner: JoiningMember, member: ClassicGroupMember, member_id: str
) -> JoinGroupResponse | None:
    """Replace a static member by its new member id, without a rebalance if the group is stable (KIP-345)."""
    leader_before = group.leader
    old_id, protocols = member.member_id, member.protocols
    group.rename(member, member_id)
    rebalance.keep_alive(group, member)
    parked = _update_and_park(joiner, member)
    if group.state is not ClassicGroupState.STABLE or group.select_protocol() != group.protocol:
        rebalance.prepare(group, f"static member {joiner.instance_id} comes back")
        return await parked
    member.joining = None
    try:
        await _store(group)
    except ApiError:
        member.protocols = protocols
        group.rename(member, old_id)
        raise
    notify_rebalanced(group)  # the same generation, with another member id
    response = rebalance.join_response(group, member)
    if joiner.version >= 9:
        response.skip_assignment = group.leader == member_id
    else:
        response.leader, response.members = leader_before or "", []  # it must not act as the leader
    return response


async def _store(group: ClassicGroupMetadata) -> None:
    assignments = {member.member_id: member.assignment for member in group.members.values()}
    stored = group.coordinator.write(group.group_id, [group_record(group, assignments)])
    await group.coordinator.replicated(group.group_id, stored)
