"""What the APIs know of a group, whichever protocol its members speak.

`ClassicGroup` (classic.py) and `ConsumerGroup` (consumer/) derive from it. Commits and fetches of offsets, listing and
deletion are the same for both but for the checks below, which raise `ApiError`.
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
    """Who commits: member id, static name, and generation or member epoch; "" and −1 without membership."""

    member_id: str
    instance_id: str | None
    generation: int
    api_version: int
    transactional: bool = False


@attrs.define(eq=False)
class CoordinatorGroup(ABC):
    """One group in the memory of its coordinator."""

    kind: ClassVar[str]

    coordinator: GroupCoordinator
    group_id: str
    offsets: GroupOffsets = attrs.field(factory=GroupOffsets)

    # --- what listing and describing show

    @property
    @abstractmethod
    def state_name(self) -> str:
        """As ListGroups says it."""

    @property
    @abstractmethod
    def protocol_type(self) -> str | None:
        """ "consumer" and the like; None for a group that only stores offsets."""

    @property
    @abstractmethod
    def empty(self) -> bool:
        """Whether it has no members, so that it may be deleted."""

    # --- checks

    @abstractmethod
    def check_commit(self, committer: Committer, partitions: Sequence[TopicPartition]) -> None:
        """Whether this commit is taken; one that is counts as a heartbeat where the protocol says so."""

    @abstractmethod
    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Whether this member may read committed offsets."""

    @abstractmethod
    def check_offset_delete(self) -> None:
        """Whether single offsets may be deleted at all."""

    @abstractmethod
    def subscribes_to(self, topic: str) -> bool:
        """Whether a live member reads this topic, so that its offsets may not be deleted."""

    @abstractmethod
    def retention_begins(self, tp: TopicPartition, commit: CommittedOffset) -> int | None:
        """The wall time in ms from which the retention of an offset counts; None while it is protected."""

    # --- members of the classic protocol; a group of the other one may host them too

    async def classic_join(
        self, context: RequestContext, request: JoinGroupRequest
    ) -> JoinGroupResponse | None:
        """JoinGroup, allowed and with a fitting session timeout; None: the answer is not wanted any more."""
        raise ApiError(INCONSISTENT_GROUP_PROTOCOL)

    async def classic_sync(
        self, context: RequestContext, request: SyncGroupRequest
    ) -> SyncGroupResponse | None:
        """SyncGroup, allowed; None as above."""
        raise ApiError(UNKNOWN_MEMBER_ID)

    def classic_heartbeat(self, context: RequestContext, request: HeartbeatRequest) -> int:
        """The code that a heartbeat is answered with."""
        raise ApiError(UNKNOWN_MEMBER_ID)

    def classic_leave(self, context: RequestContext, who: MemberIdentity) -> int:
        """The code for one of the members that LeaveGroup names; an error of the whole group is raised."""
        raise ApiError(UNKNOWN_MEMBER_ID)

    # --- life

    @abstractmethod
    def begin(self) -> None:
        """It was read back from the log: its members' timers run from now on."""

    @abstractmethod
    def end(self, code: int) -> None:
        """It is gone from this broker: no timer rings any more, and whoever is parked is answered with the code."""

    @abstractmethod
    def tombstones(self) -> list[NewRecord]:
        """Records that remove what was written of it, offsets excepted."""
