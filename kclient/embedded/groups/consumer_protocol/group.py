"""`ConsumerGroup`: a group of the consumer protocol, with the interface of all groups."""

from __future__ import annotations

import attrs

from kclient.embedded.groups.consumer_protocol import classic_members, records
from kclient.embedded.groups.consumer_protocol.leave import start_timers
from kclient.embedded.groups.consumer_protocol.metadata import ConsumerGroupMetadata
from kclient.embedded.received_request import ReceivedRequest
from kclient.generated.heartbeat_request import HeartbeatRequest
from kclient.generated.join_group_request import JoinGroupRequest
from kclient.generated.join_group_response import JoinGroupResponse
from kclient.generated.leave_group_request import MemberIdentity
from kclient.generated.sync_group_request import SyncGroupRequest
from kclient.generated.sync_group_response import SyncGroupResponse
from kclient.records.writer import NewRecord


@attrs.define(eq=False)
class ConsumerGroup(ConsumerGroupMetadata):
    """A consumer group; members of the classic protocol may be in it too."""

    # --- members of the classic protocol

    async def classic_join(
        self, context: ReceivedRequest, request: JoinGroupRequest
    ) -> JoinGroupResponse | None:
        return classic_members.join(self, context, request)

    async def classic_sync(
        self, context: ReceivedRequest, request: SyncGroupRequest
    ) -> SyncGroupResponse | None:
        return classic_members.sync(self, request)

    def classic_heartbeat(self, context: ReceivedRequest, request: HeartbeatRequest) -> int:
        return classic_members.heartbeat(self, request)

    def classic_leave(self, context: ReceivedRequest, who: MemberIdentity) -> int:
        return classic_members.leave_group(self, who)

    # --- life

    def begin(self) -> None:
        for member in self.members.values():
            start_timers(self, member)

    def tombstones(self) -> list[NewRecord]:
        return records.group_tombstones(self)
