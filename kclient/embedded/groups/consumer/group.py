"""A group of the consumer protocol: its epochs, its members, and their targets.

The group epoch grows with every change of members, subscriptions or topics; the assignment epoch follows when targets
are computed; each member's epoch follows that when it has given up what it must. From this the group's state is read:

| state       | when                                                          |
|-------------|---------------------------------------------------------------|
| Empty       | it has no members                                             |
| Assigning   | the group epoch is ahead of the assignment epoch              |
| Reconciling | some member is not yet where the assignment epoch wants it    |
| Stable      | all are                                                       |
| Dead        | it is gone                                                    |

Only `journal.Journal` changes it.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Sequence
from copy import copy
from typing import Any, ClassVar, Final

import attrs

from kclient.embedded.groups.consumer import commits
from kclient.embedded.groups.consumer.member import Member
from kclient.embedded.groups.consumer.partitions import TopicIdPartition
from kclient.embedded.groups.consumer.timers import Timers
from kclient.embedded.groups.group import CONSUMER, Committer, Group
from kclient.embedded.groups.offsets import Commit
from kclient.embedded.releases import Release
from kclient.embedded.request_context import RequestContext
from kclient.embedded.state import ClusterState
from kclient.generated.heartbeat_request import HeartbeatRequest
from kclient.generated.join_group_request import JoinGroupRequest
from kclient.generated.join_group_response import JoinGroupResponse
from kclient.generated.leave_group_request import MemberIdentity
from kclient.generated.sync_group_request import SyncGroupRequest
from kclient.generated.sync_group_response import SyncGroupResponse
from kclient.records.writer import NewRecord
from kclient.types import TopicPartition

BEGIN_AT_ONE: Final = Release.parse("4.3")  # epoch 1 has no targets; the first ones come with epoch 2


class GroupState(enum.Enum):
    """As ListGroups and ConsumerGroupDescribe say it."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


@attrs.frozen
class Resolved:
    """The topics that a pattern stands for, and the wall time in ms when that was found out."""

    topics: tuple[str, ...]
    at_ms: int


def _first_epoch(group: ConsumerGroup) -> int:
    return int(group.cluster.release >= BEGIN_AT_ONE)


@attrs.define(eq=False)
class ConsumerGroup(Group):
    """See the module. `holders` says for every partition which member nobody else may get it from."""

    kind: ClassVar[str] = CONSUMER

    epoch: int = attrs.field(default=attrs.Factory(_first_epoch, takes_self=True))
    metadata_hash: int = 0
    assignment_epoch: int = attrs.field(default=attrs.Factory(_first_epoch, takes_self=True))
    assigned_at_ms: int = 0
    members: dict[str, Member] = attrs.field(factory=dict)
    targets: dict[str, tuple[TopicIdPartition, ...]] = attrs.field(factory=dict)
    patterns: dict[str, Resolved] = attrs.field(factory=dict)
    holders: dict[TopicIdPartition, str] = attrs.field(factory=dict)
    topics_seen: tuple[str, ...] = ()  # all there were when the patterns were last resolved
    dead: bool = False
    timers: Timers = attrs.field(
        default=attrs.Factory(lambda group: Timers(group.coordinator.broker), takes_self=True)
    )

    @property
    def cluster(self) -> ClusterState:
        """The cluster that it is a group of."""
        return self.coordinator.broker.state

    # --- its whole state

    def snapshot(self) -> dict[str, Any]:
        """All that a journal may change."""
        return {name: copy(getattr(self, name)) for name in _CHANGEABLE}

    def go_back(self, snapshot: dict[str, Any]) -> None:
        """Undo what was changed since."""
        for name, value in snapshot.items():
            setattr(self, name, value)

    # --- looking

    @property
    def state(self) -> GroupState:
        """See the module."""
        if self.dead:
            return GroupState.DEAD
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        settled = all(member.reached(self.assignment_epoch) for member in self.members.values())
        return GroupState.STABLE if settled else GroupState.RECONCILING

    def static_member(self, instance_id: str) -> Member | None:
        """Who has this instance id."""
        return next((one for one in self.members.values() if one.instance_id == instance_id), None)

    def topics_of(self, member: Member) -> tuple[str, ...]:
        """The names of the topics that a member wants, also through its pattern."""
        resolved = self.patterns.get(member.regex)
        return tuple(dict.fromkeys((*member.topics, *(resolved.topics if resolved else ()))))

    @property
    def assignor(self) -> str:
        """The one that most members ask for; the coordinator's first where nobody asks, or several have as many."""
        known = self.cluster.settings.group_consumer_assignors.split(",")
        votes = Counter(member.assignor for member in self.members.values())
        return max(known, key=lambda name: votes[name])

    # --- members of the classic protocol

    async def classic_join(self, call: RequestContext, request: JoinGroupRequest) -> JoinGroupResponse | None:
        from kclient.embedded.groups.consumer import classic_members

        return classic_members.join(self, call, request)

    async def classic_sync(self, call: RequestContext, request: SyncGroupRequest) -> SyncGroupResponse | None:
        from kclient.embedded.groups.consumer import classic_members

        return classic_members.sync(self, request)

    def classic_heartbeat(self, call: RequestContext, request: HeartbeatRequest) -> int:
        from kclient.embedded.groups.consumer import classic_members

        return classic_members.heartbeat(self, request)

    def classic_leave(self, call: RequestContext, who: MemberIdentity) -> int:
        from kclient.embedded.groups.consumer import classic_members

        return classic_members.leave_group(self, who)

    # --- the same for both kinds of groups

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol_type(self) -> str | None:
        return "consumer"

    @property
    def empty(self) -> bool:
        return not self.members

    def check_commit(self, committer: Committer, partitions: Sequence[TopicPartition]) -> None:
        commits.check_commit(self, committer, partitions)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        commits.check_fetch(self, member_id, member_epoch)

    def check_offset_delete(self) -> None:
        """Single offsets may always be deleted, but for those of topics that a member reads."""

    def subscribes_to(self, topic: str) -> bool:
        return any(topic in self.topics_of(member) for member in self.members.values())

    def retention_begins(self, tp: TopicPartition, commit: Commit) -> int | None:
        return None if self.subscribes_to(tp.topic) else commit.commit_ms

    def begin(self) -> None:
        from kclient.embedded.groups.consumer import sessions

        for member in self.members.values():
            sessions.begin(self, member)

    def end(self, code: int) -> None:
        self.dead = True
        self.timers.stop_all()

    def tombstones(self) -> list[NewRecord]:
        from kclient.embedded.groups.consumer import records

        return records.group_tombstones(self)


_CHANGEABLE: Final = (
    *("epoch", "metadata_hash", "assignment_epoch", "assigned_at_ms"),
    *("members", "targets", "patterns", "holders"),
)
