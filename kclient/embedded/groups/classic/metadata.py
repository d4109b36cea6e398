"""The state of a classic group: its members, its generation, and the states of the group as tables.

`ClassicGroupMetadata` only holds state: rebalance.py completes the join phase, join.py and sync.py answer the requests.
A parked response (JoinGroup, SyncGroup) is a future that the rebalance completes.
"""

from __future__ import annotations

import asyncio
import enum
from collections import Counter
from collections.abc import Collection, Sequence
from typing import ClassVar, Final, NamedTuple, TypeAlias, TypeVar

import attrs

from kclient.embedded.api_error import ApiError
from kclient.embedded.clock import Timer
from kclient.embedded.groups.coordinator import CLASSIC, CoordinatorGroup
from kclient.embedded.releases import Release
from kclient.errors import InternalError, ProtocolDecodeError
from kclient.generated.join_group_response import JoinGroupResponse
from kclient.generated.sync_group_response import SyncGroupResponse
from kclient.group.subscription_codec import PROTOCOL_TYPE, decode_assignment, decode_subscription
from kclient.log import get_logger
from kclient.protocol.errors import (
    COORDINATOR_NOT_AVAILABLE,
    FENCED_INSTANCE_ID,
    ILLEGAL_GENERATION,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)
from kclient.types import TopicPartition


class ClassicGroupState(enum.Enum):
    """The values are those of DescribeGroups."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


MAY_BE_ENTERED_FROM: Final = {
    ClassicGroupState.EMPTY: {ClassicGroupState.PREPARING},
    ClassicGroupState.PREPARING: {
        ClassicGroupState.STABLE,
        ClassicGroupState.COMPLETING,
        ClassicGroupState.EMPTY,
    },
    ClassicGroupState.COMPLETING: {ClassicGroupState.PREPARING},
    ClassicGroupState.STABLE: {ClassicGroupState.COMPLETING},
    ClassicGroupState.DEAD: set(ClassicGroupState),
}


class StateAction(enum.Enum):
    """The action for a request that is not answered with an error code alone."""

    # Store the member's metadata, begin or continue a rebalance, answer when it completes.
    REJOIN = enum.auto()
    REJOIN_IF_CHANGED = enum.auto()  # the current generation for the same metadata, else REJOIN
    REJOIN_IF_CHANGED_OR_LEADER = enum.auto()  # likewise, but the leader may always request a rebalance
    AWAIT_PLAN = enum.auto()  # answer when the leader's assignments are stored
    GIVE_ASSIGNMENT = enum.auto()  # the member's part of the stored assignments


class StateResponses(NamedTuple):
    """The responses to a known member in its current generation."""

    join: StateAction | int
    sync: StateAction | int
    heartbeat: int  # NONE and REBALANCE_IN_PROGRESS keep the member alive
    commit: int  # NONE keeps it alive too


# state → JoinGroup, SyncGroup, Heartbeat, OffsetCommit
RESPONSES: Final = {
    ClassicGroupState.EMPTY: StateResponses(
        UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID
    ),
    ClassicGroupState.PREPARING: StateResponses(
        StateAction.REJOIN, REBALANCE_IN_PROGRESS, REBALANCE_IN_PROGRESS, NONE
    ),
    ClassicGroupState.COMPLETING: StateResponses(
        StateAction.REJOIN_IF_CHANGED, StateAction.AWAIT_PLAN, NONE, REBALANCE_IN_PROGRESS
    ),
    ClassicGroupState.STABLE: StateResponses(
        StateAction.REJOIN_IF_CHANGED_OR_LEADER, StateAction.GIVE_ASSIGNMENT, NONE, NONE
    ),
    ClassicGroupState.DEAD: StateResponses(*[COORDINATOR_NOT_AVAILABLE] * 4),
}


Response = TypeVar("Response")
Parked: TypeAlias = "asyncio.Future[Response | None]"  # None: a newer request replaced it, nothing is sent


@attrs.define(eq=False)
class ClassicGroupMember:
    """A member of the group. `instance_id` is None for a dynamic member; times in ms."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: list[tuple[str, bytes]]  # name and metadata, in order of preference
    assignment: bytes = b""
    is_new: bool = False  # has not been in a generation yet
    joining: Parked[JoinGroupResponse] | None = None
    syncing: Parked[SyncGroupResponse] | None = None
    expiry: Timer | None = None

    def metadata(self, protocol: str | None) -> bytes:
        """Return its metadata for one of its protocols."""
        return dict(self.protocols).get(protocol or "", b"")

    def vote(self, candidates: Collection[str]) -> str:
        """Return the first of its protocols that every member supports."""
        return next(name for name, _ in self.protocols if name in candidates)

    def park_join(self) -> Parked[JoinGroupResponse]:
        """Park the response to its JoinGroup; an older parked one is never sent."""
        answer_parked(self.joining, None)
        self.joining = asyncio.get_running_loop().create_future()
        return self.joining

    def answer_join(self, response: JoinGroupResponse) -> bool:
        """Send the parked JoinGroup response; return False if there is none."""
        parked, self.joining = self.joining, None
        return answer_parked(parked, response)

    def park_sync(self) -> Parked[SyncGroupResponse]:
        """The same for SyncGroup."""
        answer_parked(self.syncing, None)
        self.syncing = asyncio.get_running_loop().create_future()
        return self.syncing

    def answer_sync(self, response: SyncGroupResponse) -> bool:
        """The same for SyncGroup."""
        parked, self.syncing = self.syncing, None
        return answer_parked(parked, response)

    def stop_expiry(self) -> None:
        """Cancel the timer of its session."""
        if self.expiry is not None:
            self.expiry.cancel()
            self.expiry = None


def answer_parked(parked: Parked[Response] | None, response: Response | None) -> bool:
    """Complete a parked response; return False if there is none."""
    if parked is None or parked.done():
        return False
    parked.set_result(response)
    return True


KNOWS_NAMES: Final = Release.parse("3.0")

logger: Final = get_logger("kclient.embedded")


@attrs.define(eq=False)
class ClassicGroupMetadata(CoordinatorGroup):
    """Members are in the order in which they joined; `pending` ones only have a member id yet."""

    kind: ClassVar[str] = CLASSIC

    type_of_protocol: str | None = None
    state: ClassicGroupState = ClassicGroupState.EMPTY
    since_ms: int | None = (
        None  # wall time of the last state change; None if an older broker wrote the record
    )
    generation: int = 0
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, ClassicGroupMember] = attrs.field(factory=dict)
    static: dict[str, str] = attrs.field(factory=dict)  # group instance id → member id
    pending: dict[str, Timer] = attrs.field(factory=dict)
    pending_sync_members: dict[str, None] = attrs.field(factory=dict)  # no SyncGroup yet in this generation
    subscribed: frozenset[str] | None = None  # topics of the generation; None if they are unknown
    join_timer: Timer | None = None  # the end of PreparingRebalance
    initial_delay: bool = False  # it is the initial delay, which new members extend
    new_member_added: bool = False  # one joined during the initial delay
    sync_timer: Timer | None = None  # the end of the wait for SyncGroup
    reason: str = ""  # of the last rebalance

    # --- members

    def add(self, member: ClassicGroupMember) -> None:
        """Add a member; the first one is the leader."""
        self.drop_pending(member.member_id)
        self.leader = self.leader or member.member_id
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id

    def remove(self, member: ClassicGroupMember) -> None:
        """Remove a member; if it is the leader, the first other one becomes the leader."""
        member.stop_expiry()
        del self.members[member.member_id]
        self.pending_sync_members.pop(member.member_id, None)
        if member.instance_id is not None and self.static.get(member.instance_id) == member.member_id:
            del self.static[member.instance_id]
        if self.leader == member.member_id:
            self.leader = next(iter(self.members), None)

    def rename(self, member: ClassicGroupMember, member_id: str) -> None:
        """Give a static member that rejoined its new member id, and fence the old id."""
        old = member.member_id
        member.answer_join(
            JoinGroupResponse(error_code=FENCED_INSTANCE_ID, member_id=old, protocol_name=None)
        )
        member.answer_sync(SyncGroupResponse(error_code=FENCED_INSTANCE_ID))
        member.member_id = member_id
        self.members = {one.member_id: one for one in self.members.values()}
        if member.instance_id is None:
            raise InternalError(f"member {old} of group {self.group_id} is not a static one")
        self.static[member.instance_id] = member_id
        if self.leader == old:
            self.leader = member_id
        if old in self.pending_sync_members:
            del self.pending_sync_members[old]
            self.pending_sync_members[member_id] = None

    def drop_pending(self, member_id: str) -> bool:
        """Remove a pending member id; return False if it is not pending."""
        timer = self.pending.pop(member_id, None)
        if timer is not None:
            timer.cancel()
        return timer is not None

    def member_for(
        self, member_id: str, instance_id: str | None, *, strict: bool = False
    ) -> ClassicGroupMember:
        """Return the member. Raise ApiError for an unknown one, and for one that was fenced by its instance id.

        An unknown instance id was accepted before 3.0, except by a `strict` caller.
        """
        holder = None if instance_id is None else self.static.get(instance_id)
        if holder is not None and holder != member_id:
            raise ApiError(FENCED_INSTANCE_ID)
        strange = instance_id is not None and holder is None and (strict or self.rejects_unknown_instances)
        if strange or member_id not in self.members:
            raise ApiError(UNKNOWN_MEMBER_ID)
        return self.members[member_id]

    def present(self, member_id: str, instance_id: str | None, generation: int) -> ClassicGroupMember:
        """Return the member if its generation is current. Raise ApiError otherwise, and for a dead group."""
        if self.state is ClassicGroupState.DEAD:
            raise ApiError(COORDINATOR_NOT_AVAILABLE)
        member = self.member_for(member_id, instance_id)
        if generation != self.generation:
            raise ApiError(ILLEGAL_GENERATION)
        return member

    @property
    def rejects_unknown_instances(self) -> bool:
        """Whether an unknown instance id makes its member unknown (since 3.0)."""
        return self.coordinator.broker.state.release >= KNOWS_NAMES

    @property
    def waiting(self) -> list[ClassicGroupMember]:
        """The members whose JoinGroup is parked."""
        return [member for member in self.members.values() if member.joining is not None]

    @property
    def rebalance_timeout(self) -> float:
        """The longest rebalance timeout of the members, in seconds."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0) / 1000

    # --- protocols

    def candidates(self) -> set[str]:
        """Return the protocols that every member supports."""
        counted = Counter(name for member in self.members.values() for name in dict(member.protocols))
        return {name for name, count in counted.items() if count == len(self.members)}

    def supports(self, protocol_type: str, protocols: Sequence[tuple[str, bytes]]) -> bool:
        """Whether a member with these protocols can join."""
        if not self.members:
            return bool(protocol_type and protocols)
        common = self.candidates()
        return protocol_type == self.type_of_protocol and any(name in common for name, _ in protocols)

    def select_protocol(self) -> str:
        """Return the protocol with the most votes; of several the one that was voted for first."""
        common = self.candidates()
        votes = Counter(member.vote(common) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def topics_of_members(self) -> frozenset[str] | None:
        """Return the topics that the members subscribe to; None if they are unknown."""
        if self.type_of_protocol != PROTOCOL_TYPE:
            return None
        try:
            blobs = [member.metadata(self.protocol) for member in self.members.values()]
            return frozenset(topic for blob in blobs for topic in decode_subscription(blob).topics)
        except ProtocolDecodeError:
            return None

    # --- states

    def enter(self, state: ClassicGroupState) -> None:
        """Change the state. Raise InternalError for a transition that the table does not have."""
        if self.state not in MAY_BE_ENTERED_FROM[state]:
            raise InternalError(f"group {self.group_id} cannot go from {self.state.value} to {state.value}")
        logger.info("group %s: %s in generation %d", self.group_id, state.value, self.generation)
        self.state = state
        self.since_ms = self.coordinator.broker.state.clock.wall_ms()

    def stop_join_phase(self) -> None:
        """End the join phase."""
        if self.join_timer is not None:
            self.join_timer.cancel()
        self.join_timer, self.initial_delay, self.new_member_added = None, False, False

    def stop_waiting_for_sync(self) -> None:
        """Stop waiting for SyncGroup."""
        if self.sync_timer is not None:
            self.sync_timer.cancel()
        self.sync_timer = None
        self.pending_sync_members.clear()


def notify_rebalanced(group: ClassicGroupMetadata) -> None:
    """Notify observers of a new generation and its assignments."""
    observers = group.coordinator.broker.state.observers
    if observers:
        owned = owned_by_member(group)
        for observer in observers:
            observer.rebalanced(group.group_id, group.generation, owned)


def owned_by_member(group: ClassicGroupMetadata) -> dict[str, list[TopicPartition]]:
    """Return member id → partitions, as far as the assignments can be decoded."""
    return {member.member_id: _owned(group, member.assignment) for member in group.members.values()}


def _owned(group: ClassicGroupMetadata, assignment: bytes) -> list[TopicPartition]:
    if group.type_of_protocol != PROTOCOL_TYPE or not assignment:
        return []
    try:
        return list(decode_assignment(assignment).partitions)
    except ProtocolDecodeError:
        return []  # clients may send any bytes; then the partitions are unknown
