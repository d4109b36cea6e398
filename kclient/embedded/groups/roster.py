"""The members of a classic group, what they have in common, and its state. No conversation: that is in the flows.

rebalance.py gathers the members, join.py brings them in, sync.py hands out the plan, leaving.py lets them go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, Final

import attrs

from kclient.embedded.api_error import ApiError
from kclient.embedded.clock import Timer
from kclient.embedded.groups.group import CLASSIC, Group
from kclient.embedded.groups.member import Member
from kclient.embedded.groups.states import MAY_BE_ENTERED_FROM, State
from kclient.embedded.releases import Release
from kclient.errors import InternalError, ProtocolDecodeError
from kclient.generated.join_group_response import JoinGroupResponse
from kclient.generated.sync_group_response import SyncGroupResponse
from kclient.group.subscription_codec import PROTOCOL_TYPE, decode_subscription
from kclient.log import get_logger
from kclient.protocol.errors import (
    COORDINATOR_NOT_AVAILABLE,
    FENCED_INSTANCE_ID,
    ILLEGAL_GENERATION,
    UNKNOWN_MEMBER_ID,
)

KNOWS_NAMES: Final = Release.parse("3.0")

logger = get_logger("kclient.embedded")


@attrs.define(eq=False)
class Roster(Group):
    """Members are in the order in which they came; `pending` ones have an id and nothing else yet."""

    kind: ClassVar[str] = CLASSIC

    type_of_protocol: str | None = None
    state: State = State.EMPTY
    since_ms: int | None = (
        None  # wall time at which the state began; None where older brokers did not write it
    )
    generation: int = 0
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, Member] = attrs.field(factory=dict)
    static: dict[str, str] = attrs.field(factory=dict)  # group instance id → member id
    pending: dict[str, Timer] = attrs.field(factory=dict)
    unsynced: dict[str, None] = attrs.field(factory=dict)  # have not sent SyncGroup in this generation
    subscribed: frozenset[str] | None = None  # topics of the generation; None where they cannot be known
    gathering: Timer | None = None  # ends PreparingRebalance
    initial: bool = False  # that is the initial delay, which new members lengthen
    newcomer: bool = False  # one came during it
    planning: Timer | None = None  # ends the wait for SyncGroups
    reason: str = ""  # of the last rebalance

    # --- members

    def add(self, member: Member) -> None:
        """The first one leads."""
        self.drop_pending(member.member_id)
        self.leader = self.leader or member.member_id
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id

    def remove(self, member: Member) -> None:
        """Another one leads if the leader goes."""
        member.stop_expiry()
        del self.members[member.member_id]
        self.unsynced.pop(member.member_id, None)
        if member.instance_id is not None and self.static.get(member.instance_id) == member.member_id:
            del self.static[member.instance_id]
        if self.leader == member.member_id:
            self.leader = next(iter(self.members), None)

    def rename(self, member: Member, member_id: str) -> None:
        """A static member came back: it keeps its place under the new id, and the old id is fenced."""
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
        if old in self.unsynced:
            del self.unsynced[old]
            self.unsynced[member_id] = None

    def drop_pending(self, member_id: str) -> bool:
        """Forget an id that was given out; False if it was not."""
        timer = self.pending.pop(member_id, None)
        if timer is not None:
            timer.cancel()
        return timer is not None

    def member_for(self, member_id: str, instance_id: str | None, *, strict: bool = False) -> Member:
        """The member that speaks. Raises ApiError for one that is unknown, and one whose static name another has.

        A name that nobody has did not matter before 3.0, but to a `strict` caller.
        """
        holder = None if instance_id is None else self.static.get(instance_id)
        if holder is not None and holder != member_id:
            raise ApiError(FENCED_INSTANCE_ID)
        strange = instance_id is not None and holder is None and (strict or self.knows_names)
        if strange or member_id not in self.members:
            raise ApiError(UNKNOWN_MEMBER_ID)
        return self.members[member_id]

    def present(self, member_id: str, instance_id: str | None, generation: int) -> Member:
        """The member that speaks of the present generation. Raises ApiError for a group that is gone, and as above."""
        if self.state is State.DEAD:
            raise ApiError(COORDINATOR_NOT_AVAILABLE)
        member = self.member_for(member_id, instance_id)
        if generation != self.generation:
            raise ApiError(ILLEGAL_GENERATION)
        return member

    @property
    def knows_names(self) -> bool:
        """Whether a static name that nobody has makes its member unknown."""
        return self.coordinator.broker.state.release >= KNOWS_NAMES

    @property
    def waiting(self) -> list[Member]:
        """Those whose JoinGroup is parked."""
        return [member for member in self.members.values() if member.joining is not None]

    @property
    def rebalance_timeout(self) -> float:
        """Seconds: the longest that any member asks for."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0) / 1000

    # --- protocols

    def candidates(self) -> set[str]:
        """The protocols that every member has."""
        counted = Counter(name for member in self.members.values() for name in dict(member.protocols))
        return {name for name, count in counted.items() if count == len(self.members)}

    def supports(self, protocol_type: str, protocols: Sequence[tuple[str, bytes]]) -> bool:
        """Whether somebody with these protocols fits in."""
        if not self.members:
            return bool(protocol_type and protocols)
        common = self.candidates()
        return protocol_type == self.type_of_protocol and any(name in common for name, _ in protocols)

    def select_protocol(self) -> str:
        """The one with most votes; of several the one that was voted for first."""
        common = self.candidates()
        votes = Counter(member.vote(common) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def topics_of_members(self) -> frozenset[str] | None:
        """What the members subscribe to; None where that is not known."""
        if self.type_of_protocol != PROTOCOL_TYPE:
            return None
        try:
            blobs = [member.metadata(self.protocol) for member in self.members.values()]
            return frozenset(topic for blob in blobs for topic in decode_subscription(blob).topics)
        except ProtocolDecodeError:
            return None

    # --- states

    def enter(self, state: State) -> None:
        """Change the state. Raises InternalError for a step that the table does not have."""
        if self.state not in MAY_BE_ENTERED_FROM[state]:
            raise InternalError(f"group {self.group_id} cannot go from {self.state.value} to {state.value}")
        logger.info("group %s: %s in generation %d", self.group_id, state.value, self.generation)
        self.state = state
        self.since_ms = self.coordinator.broker.state.clock.wall_ms()

    def stop_gathering(self) -> None:
        """The join phase is over."""
        if self.gathering is not None:
            self.gathering.cancel()
        self.gathering, self.initial, self.newcomer = None, False, False

    def stop_planning(self) -> None:
        """Nobody is waited for to send SyncGroup."""
        if self.planning is not None:
            self.planning.cancel()
        self.planning = None
        self.unsynced.clear()
