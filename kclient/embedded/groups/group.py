"""The interface of a group to the APIs, for both protocols.

`ClassicGroup` (classic.py) and `ConsumerGroup` (consumer/) derive from it. Commits and fetches of offsets, listing and
deletion are the same for both except for the checks below, which raise `ApiError`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

import attrs

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.offsets import CommittedOffset, GroupOffsets
from kclient.protocol.errors import INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID
from kclient.records.writer import NewRecord
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.embedded.groups.coordinator import GroupCoordinator
    from kclient.embedded.request_context import RequestContext
    from kclient.generated.heartbeat_request import HeartbeatRequest
    from kclient.generated.join_group_request import JoinGroupRequest
    from kclient.generated.join_group_response import JoinGroupResponse
    from kclient.generated.leave_group_request import MemberIdentity
    from kclient.generated.sync_group_request import SyncGroupRequest
    from kclient.generated.sync_group_response import SyncGroupResponse

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"


@attrs.frozen
class Committer:
    """The sender of a commit: member id, instance id, generation or member epoch; "" and −1 for no member."""

    member_id: str
    instance_id: str | None
    generation: int
    api_version: int
    transactional: bool = False


@attrs.define(eq=False)
class CoordinatorGroup(ABC):
    """A group of either protocol."""

    kind: ClassVar[str]

    coordinator: GroupCoordinator
    group_id: str
    offsets: GroupOffsets = attrs.field(factory=GroupOffsets)

    # --- listing and describing

    @property
    @abstractmethod
    def state_name(self) -> str:
        """The state in ListGroups."""

    @property
    @abstractmethod
    def protocol_type(self) -> str | None:
        """ "consumer" and the like; None for a group that only stores offsets."""

    @property
    @abstractmethod
    def empty(self) -> bool:
        """Whether it has no members and may be deleted."""

    # --- checks

    @abstractmethod
    def check_commit(self, committer: Committer, partitions: Sequence[TopicPartition]) -> None:
        """Raise ApiError unless the commit is valid. In a classic group it also counts as a heartbeat."""

    @abstractmethod
    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise ApiError unless this member may fetch committed offsets."""

    @abstractmethod
    def check_offset_delete(self) -> None:
        """Raise ApiError unless single offsets may be deleted."""

    @abstractmethod
    def subscribes_to(self, topic: str) -> bool:
        """Whether a member subscribes to the topic, which protects its offsets."""

    @abstractmethod
    def retention_begins(self, tp: TopicPartition, commit: CommittedOffset) -> int | None:
        """Return the wall time in ms when the retention of an offset begins; None while it is protected."""

    # --- members of the classic protocol, also in a group of the consumer protocol

    async def classic_join(
        self, context: RequestContext, request: JoinGroupRequest
    ) -> JoinGroupResponse | None:
        """Handle an authorized JoinGroup; return None if a newer request replaced it."""
        raise ApiError(INCONSISTENT_GROUP_PROTOCOL)

    async def classic_sync(
        self, context: RequestContext, request: SyncGroupRequest
    ) -> SyncGroupResponse | None:
        """Handle an authorized SyncGroup; return None as above."""
        raise ApiError(UNKNOWN_MEMBER_ID)

    def classic_heartbeat(self, context: RequestContext, request: HeartbeatRequest) -> int:
        """Return the error code for a Heartbeat."""
        raise ApiError(UNKNOWN_MEMBER_ID)

    def classic_leave(self, context: RequestContext, who: MemberIdentity) -> int:
        """Remove a member of a LeaveGroup request; return its error code. Raise ApiError for the whole group."""
        raise ApiError(UNKNOWN_MEMBER_ID)

    # --- life

    @abstractmethod
    def begin(self) -> None:
        """Start the timers of a group that was loaded."""

    @abstractmethod
    def end(self, code: int) -> None:
        """Stop all timers and answer parked requests with the code: this broker no longer has the group."""

    @abstractmethod
    def tombstones(self) -> list[NewRecord]:
        """Return the tombstones of its records, offsets excepted."""
