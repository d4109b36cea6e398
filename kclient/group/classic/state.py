r"""State and generation of a classic member, and the policy by which it rejoins after a failure.

    state \ event           JOINING       JOINED        SYNCED   RESET
    UNJOINED                PREPARING     –             –        UNJOINED
    PREPARING_REBALANCE     PREPARING     COMPLETING    –        UNJOINED
    COMPLETING_REBALANCE    PREPARING     –             STABLE   UNJOINED
    STABLE                  PREPARING     –             –        UNJOINED

JOINING: JoinGroup is sent. JOINED and SYNCED: it and SyncGroup succeeded. RESET: the member left, or the coordinator
no longer knows it. A failed join or sync alone does not change the state. Heartbeats are on while joined.

`RejoinPolicy`: when the rebalance loop starts over after an error:

    22, 25, 27, 79                immediately, a few times in a row; then after a backoff
    retriable, such as 14         after a backoff
    FENCED_INSTANCE_ID            never: another consumer uses our instance id, and a join would fence it in turn
    anything else                 the next poll raises it; the loop starts over with the poll after that
"""

from __future__ import annotations

import asyncio
import copy
import enum
from collections.abc import Callable, Mapping
from typing import Final

import attrs

from kclient.change_signal import ChangeSignal
from kclient.errors import BrokerError, InternalError, KclientError
from kclient.generated.join_group_response import JoinGroupResponseMember
from kclient.group.membership import NO_MEMBER_ID, Generation
from kclient.log import get_logger
from kclient.network.backoff import Backoff
from kclient.protocol import errors as codes

logger: Final = get_logger("kclient.group")


class ClassicMemberState(enum.Enum):
    """The states of a member of a classic group."""

    UNJOINED = "unjoined"
    PREPARING_REBALANCE = "preparing rebalance"
    COMPLETING_REBALANCE = "completing rebalance"
    STABLE = "stable"


class MembershipEvent(enum.Enum):
    """The events that change the state."""

    JOINING = "joining"
    JOINED = "joined"
    SYNCED = "synced"
    RESET = "reset"


TRANSITIONS: Final[Mapping[ClassicMemberState, Mapping[MembershipEvent, ClassicMemberState]]] = {
    ClassicMemberState.UNJOINED: {
        MembershipEvent.JOINING: ClassicMemberState.PREPARING_REBALANCE,
        MembershipEvent.RESET: ClassicMemberState.UNJOINED,
    },
    ClassicMemberState.PREPARING_REBALANCE: {
        MembershipEvent.JOINING: ClassicMemberState.PREPARING_REBALANCE,
        MembershipEvent.JOINED: ClassicMemberState.COMPLETING_REBALANCE,
        MembershipEvent.RESET: ClassicMemberState.UNJOINED,
    },
    ClassicMemberState.COMPLETING_REBALANCE: {
        MembershipEvent.JOINING: ClassicMemberState.PREPARING_REBALANCE,
        MembershipEvent.SYNCED: ClassicMemberState.STABLE,
        MembershipEvent.RESET: ClassicMemberState.UNJOINED,
    },
    ClassicMemberState.STABLE: {
        MembershipEvent.JOINING: ClassicMemberState.PREPARING_REBALANCE,
        MembershipEvent.RESET: ClassicMemberState.UNJOINED,
    },
}
HEARTBEATING: Final = (ClassicMemberState.COMPLETING_REBALANCE, ClassicMemberState.STABLE)


@attrs.define
class MemberStatus:
    """State, generation and rejoin request of a member. `changed` is notified when one of them changes."""

    state: ClassicMemberState = ClassicMemberState.UNJOINED
    generation: Generation = attrs.field(factory=Generation)
    rejoin_reason: str | None = ""  # None: no rejoin is needed; "": the first join has no reason
    prepare_due: bool = True  # on_join_prepare must run before the next join
    ended: str = ""  # why the last membership ended, "" if none has
    changed: ChangeSignal = attrs.field(factory=ChangeSignal)
    now: Callable[[], float] = float  # the clock that `since` is read from; 0.0 without one
    since: float = 0.0  # when the state was entered

    @property
    def heartbeating(self) -> bool:
        """Whether the coordinator expects heartbeats."""
        return self.state in HEARTBEATING

    def advance(self, event: MembershipEvent) -> None:
        """Change the state by the table. Raises InternalError for an event that is illegal in this state."""
        following = TRANSITIONS[self.state].get(event)
        if following is None:
            raise InternalError(
                f"The event {event.value!r} is illegal for a group member in the state {self.state.value!r}."
            )
        if following is not self.state:
            self.since = self.now()
        self.state = following
        self.changed.notify()

    def synced(self) -> None:
        """Enter STABLE: SyncGroup brought the assignment, and no rejoin is needed."""
        self.rejoin_reason = None
        self.prepare_due = True
        self.advance(MembershipEvent.SYNCED)

    def request_rejoin(self, reason: str) -> None:
        """Request a rejoin; generation, member id and assignment stay. The last reason is kept."""
        self.rejoin_reason = reason
        self.changed.notify()

    def reset(self, reason: str, *, keep_member_id: bool = False) -> None:
        """End the membership; the next join is preceded by on_join_prepare again."""
        self.generation = Generation(member_id=self.generation.member_id if keep_member_id else NO_MEMBER_ID)
        self.prepare_due = True
        self.ended = reason
        self.request_rejoin(reason)
        self.advance(MembershipEvent.RESET)


AT_ONCE: Final = (
    codes.ILLEGAL_GENERATION,
    codes.UNKNOWN_MEMBER_ID,
    codes.REBALANCE_IN_PROGRESS,
    codes.MEMBER_ID_REQUIRED,
)
AT_ONCE_LIMIT: Final = 3


def code_of(error: KclientError) -> int:
    """Return the protocol error code of an exception, 0 if it has none."""
    return error.code if isinstance(error, BrokerError) else codes.NONE


class RejoinPolicy:
    """The failures of one member. `polls` is notified by every poll."""

    def __init__(self, group_id: str, backoff: Backoff) -> None:
        self.polls: Final = ChangeSignal()
        self.fenced: KclientError | None = None
        self._group_id = group_id
        self._backoff = backoff
        self._pending_error: KclientError | None = None
        self._at_once = 0

    def store_error(self, error: KclientError) -> None:
        """Keep an error for the user; the first one wins. FENCED_INSTANCE_ID stays until `forget`."""
        logger.warning("group %s: %s", self._group_id, error.text)
        if code_of(error) == codes.FENCED_INSTANCE_ID:
            self.fenced = error
        elif self._pending_error is None:
            self._pending_error = error

    def take_error(self) -> KclientError | None:
        """Return the error that the next poll raises, if any."""
        pending, self._pending_error = self._pending_error, None
        return pending if self.fenced is None else copy.copy(self.fenced)

    def raise_if_fenced(self) -> None:
        """Raise the error of a fenced instance, if another consumer uses our instance id."""
        if self.fenced is not None:
            raise copy.copy(self.fenced)

    def succeeded(self) -> None:
        """Reset the backoff after a successful rebalance."""
        self._at_once = 0
        self._backoff.reset()

    def forget(self) -> None:
        """Forget all failures: the consumer has left the group."""
        self.succeeded()
        self.fenced = self._pending_error = None

    async def pause(self) -> None:
        """Wait for the backoff, which grows with each call."""
        await asyncio.sleep(self._backoff.next())

    async def recover(self, error: KclientError) -> None:
        """Return when the rebalance loop may start over after `error`."""
        at_once = code_of(error) in AT_ONCE
        # The whole group waits for this member. But a broker that repeats the error gets a backoff.
        if at_once and self._at_once < AT_ONCE_LIMIT:
            self._at_once += 1
        elif at_once or error.retriable:
            logger.info("group %s: not joined yet: %s", self._group_id, error.text)
            await self.pause()
        else:
            # Read before the pause, so that a poll during the pause counts.
            polled = self.polls.count
            self.store_error(error)
            await self.pause()
            await self.polls.wait(polled)


@attrs.frozen
class JoinedGeneration:
    """The result of JoinGroup: a generation without its assignment. Only the leader receives `members`."""

    generation: Generation
    is_leader: bool
    skip_assignment: bool
    members: tuple[JoinGroupResponseMember, ...]
