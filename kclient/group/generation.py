"""Where this consumer stands in its group: state, generation, and whether it must join again.

    state \\ event           JOINING       JOINED        SYNCED   RESET
    UNJOINED                PREPARING     –             –        UNJOINED
    PREPARING_REBALANCE     PREPARING     COMPLETING    –        UNJOINED
    COMPLETING_REBALANCE    PREPARING     –             STABLE   UNJOINED
    STABLE                  PREPARING     –             –        UNJOINED

JOINING: JoinGroup is sent. JOINED and SYNCED: it and SyncGroup succeeded. RESET: the member left, or the coordinator
no longer knows it. A failed join or sync changes nothing by itself. Heartbeats are on while joined.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Final

import attrs

from kclient.change_signal import ChangeSignal
from kclient.errors import InternalError

NO_GENERATION_ID: Final = -1
NO_MEMBER_ID: Final = ""


class MemberState(enum.Enum):
    """The states of a member of a classic group."""

    UNJOINED = "unjoined"
    PREPARING_REBALANCE = "preparing rebalance"
    COMPLETING_REBALANCE = "completing rebalance"
    STABLE = "stable"


class Event(enum.Enum):
    """What moves a member from state to state."""

    JOINING = "joining"
    JOINED = "joined"
    SYNCED = "synced"
    RESET = "reset"


TRANSITIONS: Final[Mapping[MemberState, Mapping[Event, MemberState]]] = {
    MemberState.UNJOINED: {
        Event.JOINING: MemberState.PREPARING_REBALANCE,
        Event.RESET: MemberState.UNJOINED,
    },
    MemberState.PREPARING_REBALANCE: {
        Event.JOINING: MemberState.PREPARING_REBALANCE,
        Event.JOINED: MemberState.COMPLETING_REBALANCE,
        Event.RESET: MemberState.UNJOINED,
    },
    MemberState.COMPLETING_REBALANCE: {
        Event.JOINING: MemberState.PREPARING_REBALANCE,
        Event.SYNCED: MemberState.STABLE,
        Event.RESET: MemberState.UNJOINED,
    },
    MemberState.STABLE: {
        Event.JOINING: MemberState.PREPARING_REBALANCE,
        Event.RESET: MemberState.UNJOINED,
    },
}
EPOCHS_SINCE: Final = 9  # OffsetCommit takes a member epoch where a generation stood before
INSTANCE_ID_SINCE: Final = {"JoinGroup": 5, "SyncGroup": 3, "Heartbeat": 3, "OffsetCommit": 7}
HEARTBEATING: Final = (MemberState.COMPLETING_REBALANCE, MemberState.STABLE)


def lowest_version(api: str, instance_id: str | None) -> int:
    """The lowest version that can carry the instance id of a static member."""
    return 0 if instance_id is None else INSTANCE_ID_SINCE[api]


@attrs.frozen
class Generation:
    """One round of the group: its number, our member id in it, the assignor it chose. −1 and "" mean none."""

    generation_id: int = NO_GENERATION_ID
    member_id: str = NO_MEMBER_ID
    protocol: str | None = None

    @property
    def lost(self) -> bool:
        """Whether the coordinator does not count us in: partitions are lost then, not revoked."""
        return self.generation_id == NO_GENERATION_ID or self.member_id == NO_MEMBER_ID


@attrs.frozen
class Identity:
    """Under which name offsets are committed and read. The default is that of a consumer without membership.

    With `by_epoch` the generation id is a member epoch: it moves on while the member keeps partitions. `joined` counts
    the memberships under this member id: what was asked for in one before is not done in the next. `heard` counts the
    answers to heartbeats, each of which says the newest epoch; it makes nobody somebody else.
    """

    generation_id: int = NO_GENERATION_ID
    member_id: str = NO_MEMBER_ID
    group_instance_id: str | None = None
    by_epoch: bool = False
    joined: int = 0
    heard: int = attrs.field(default=0, eq=False)

    def newer_than(self, stale: Identity) -> bool:
        """Whether the coordinator has said since then what the newest epoch is; it may be the same."""
        return self != stale or self.heard > stale.heard

    def continues(self, before: Identity) -> bool:
        """Whether what was asked for under the name `before` may be done under this one."""
        same = attrs.evolve(before, generation_id=self.generation_id) == self
        return same and (self.generation_id == before.generation_id or self.by_epoch)


@attrs.define
class Standing:
    """The one place where state, generation and the wish to rejoin are kept. `changed` wakes who waits for either."""

    state: MemberState = MemberState.UNJOINED
    generation: Generation = Generation()
    rejoin_reason: str | None = ""  # None: nothing to do; at first there is no reason to give
    prepare_due: bool = True  # the next join must be prepared by the user
    ended: str = ""  # why the last membership ended, "" if none has
    changed: ChangeSignal = attrs.field(factory=ChangeSignal)
    now: Callable[[], float] = float  # the clock that `since` is read from; 0.0 without one
    since: float = 0.0  # when the state was entered

    @property
    def heartbeating(self) -> bool:
        """Whether the coordinator expects heartbeats."""
        return self.state in HEARTBEATING

    def advance(self, event: Event) -> None:
        """Follow the table. Raises InternalError for an event that the state does not know."""
        following = TRANSITIONS[self.state].get(event)
        if following is None:
            raise InternalError(
                f"A member that is {self.state.value} cannot be told that it is {event.value}."
            )
        if following is not self.state:
            self.since = self.now()
        self.state = following
        self.changed.notify()

    def synced(self) -> None:
        """The assignment has come: nothing more to do until something changes."""
        self.rejoin_reason = None
        self.prepare_due = True
        self.advance(Event.SYNCED)

    def request_rejoin(self, reason: str) -> None:
        """Raise the flag; generation, member id and assignment stay. The last reason counts."""
        self.rejoin_reason = reason
        self.changed.notify()

    def reset(self, reason: str, *, keep_member_id: bool = False) -> None:
        """We are no member any more, and the next join is prepared anew."""
        self.generation = Generation(member_id=self.generation.member_id if keep_member_id else NO_MEMBER_ID)
        self.prepare_due = True
        self.ended = reason
        self.request_rejoin(reason)
        self.advance(Event.RESET)
