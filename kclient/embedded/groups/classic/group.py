"""`ClassicGroup`: a group of the classic protocol, with the interface of all groups; Heartbeat and LeaveGroup."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.classic import rebalance
from kclient.embedded.groups.classic.join import JoiningMember, join
from kclient.embedded.groups.classic.metadata import RESPONSES, ClassicGroupMetadata, ClassicGroupState
from kclient.embedded.groups.classic.records import group_tombstone
from kclient.embedded.groups.classic.sync import sync
from kclient.embedded.groups.coordinator import Committer
from kclient.embedded.groups.offsets import CommittedOffset
from kclient.embedded.received_request import ReceivedRequest
from kclient.embedded.releases import Release
from kclient.generated.heartbeat_request import HeartbeatRequest
from kclient.generated.join_group_request import JoinGroupRequest
from kclient.generated.join_group_response import JoinGroupResponse
from kclient.generated.leave_group_request import MemberIdentity
from kclient.generated.sync_group_request import SyncGroupRequest
from kclient.generated.sync_group_response import SyncGroupResponse
from kclient.group.subscription_codec import PROTOCOL_TYPE
from kclient.protocol.errors import (
    COORDINATOR_NOT_AVAILABLE,
    FENCED_INSTANCE_ID,
    ILLEGAL_GENERATION,
    NON_EMPTY_GROUP,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)
from kclient.records.writer import NewRecord
from kclient.types import TopicPartition

# Before 2.6 a heartbeat between JoinGroup and SyncGroup was answered REBALANCE_IN_PROGRESS.
PATIENT_SINCE: Final = Release.parse("2.6")


def heartbeat(group: ClassicGroupMetadata, request: HeartbeatRequest) -> int:
    """Return the error code of the response. Raise ApiError for an unknown member."""
    member = group.present(request.member_id, request.group_instance_id, request.generation_id)
    if group.state is ClassicGroupState.COMPLETING and group.coordinator.broker.state.release < PATIENT_SINCE:
        return REBALANCE_IN_PROGRESS
    code = RESPONSES[group.state].heartbeat
    if code in (NONE, REBALANCE_IN_PROGRESS):
        rebalance.keep_alive(group, member)
    return code


def leave(group: ClassicGroupMetadata, who: MemberIdentity) -> int:
    """Remove one member, found by its id or its instance id; return the error code for it. Raise ApiError."""
    if group.state is ClassicGroupState.DEAD:
        raise ApiError(COORDINATOR_NOT_AVAILABLE)
    holder = group.static.get(who.group_instance_id or "")
    if who.member_id and holder is not None and holder != who.member_id:
        return FENCED_INSTANCE_ID
    if who.member_id in group.pending:
        rebalance.remove_pending(group, who.member_id)
        return NONE
    if who.group_instance_id is not None and holder is None and group.rejects_unknown_instances:
        return UNKNOWN_MEMBER_ID
    member = group.members.get(holder or who.member_id)
    if member is None:
        return UNKNOWN_MEMBER_ID
    rebalance.remove(group, member, f"member {member.member_id} leaves: {who.reason or 'no reason given'}")
    return NONE


# Before 3.0 a transaction's commit need not carry a member id.
NAMED_SINCE: Final = Release.parse("3.0")


@attrs.define(eq=False)
class ClassicGroup(ClassicGroupMetadata):
    """A classic group. A group without a protocol type only stores offsets."""

    # --- listing and describing

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol_type(self) -> str | None:
        return self.type_of_protocol

    @property
    def empty(self) -> bool:
        return self.state in (ClassicGroupState.EMPTY, ClassicGroupState.DEAD)

    # --- requests

    async def classic_join(
        self, context: ReceivedRequest, request: JoinGroupRequest
    ) -> JoinGroupResponse | None:
        return await join(self, JoiningMember.of(context, request))

    async def classic_sync(
        self, context: ReceivedRequest, request: SyncGroupRequest
    ) -> SyncGroupResponse | None:
        return await sync(self, request)

    def classic_heartbeat(self, context: ReceivedRequest, request: HeartbeatRequest) -> int:
        return heartbeat(self, request)

    def classic_leave(self, context: ReceivedRequest, who: MemberIdentity) -> int:
        return leave(self, who)

    # --- life

    def begin(self) -> None:
        for member in self.members.values():
            rebalance.keep_alive(self, member)
        if len(self.members) > self.coordinator.broker.state.settings.group_max_size:
            rebalance.prepare(self, f"the group has more than group.max.size members: {len(self.members)}")

    def end(self, code: int) -> None:
        self.enter(ClassicGroupState.DEAD)
        self.stop_join_phase()
        self.stop_waiting_for_sync()
        for member_id in list(self.pending):
            self.drop_pending(member_id)
        for member in self.members.values():
            member.stop_expiry()
            member.answer_join(
                JoinGroupResponse(error_code=code, member_id=member.member_id, protocol_name=None)
            )
            member.answer_sync(SyncGroupResponse(error_code=code))

    def tombstones(self) -> list[NewRecord]:
        if self.type_of_protocol is None and self.generation == 0:
            return []  # no record was written
        return [group_tombstone(self.group_id, self.coordinator.broker.state.clock.wall_ms())]

    # --- checks

    def check_commit(self, committer: Committer, partitions: Sequence[TopicPartition]) -> None:
        if self.state is ClassicGroupState.DEAD:
            raise ApiError(COORDINATOR_NOT_AVAILABLE)
        if committer.generation < 0 and self.state is ClassicGroupState.EMPTY:
            return  # the group only stores offsets
        if committer.generation < 0 and not committer.member_id and committer.instance_id is None:
            if committer.transactional:
                return  # producers before KIP-447 do not send the member
            raise ApiError(UNKNOWN_MEMBER_ID)
        named = committer.member_id or committer.instance_id is not None
        old = self.coordinator.broker.state.release < NAMED_SINCE
        if named or not (committer.transactional and old):
            member = self.member_for(committer.member_id, committer.instance_id)
        if committer.generation != self.generation:
            raise ApiError(ILLEGAL_GENERATION)
        if committer.transactional:
            return
        if (code := RESPONSES[self.state].commit) != NONE:
            raise ApiError(code)
        rebalance.keep_alive(self, member)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        return

    def check_offset_delete(self) -> None:
        if not self.empty and self.type_of_protocol != PROTOCOL_TYPE:
            raise ApiError(NON_EMPTY_GROUP)

    def subscribes_to(self, topic: str) -> bool:
        if self.state is ClassicGroupState.EMPTY:
            return False
        return self.subscribed is None or topic in self.subscribed

    def retention_begins(self, tp: TopicPartition, commit: CommittedOffset) -> int | None:
        if self.type_of_protocol is None:
            return commit.commit_ms
        if self.state is ClassicGroupState.EMPTY:
            return commit.commit_ms if self.since_ms is None else self.since_ms
        stable = self.state is ClassicGroupState.STABLE and self.subscribed is not None
        return commit.commit_ms if stable and not self.subscribes_to(tp.topic) else None
