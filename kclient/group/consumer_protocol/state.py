"""The states of a member of the consumer protocol, as a table.

state              may be entered from                                                heartbeats
UNSUBSCRIBED       PREPARE_LEAVING, LEAVING, FENCED                                   none
JOINING            FENCED, UNSUBSCRIBED, STALE                                        at once, epoch 0
RECONCILING        STABLE, JOINING, ACKNOWLEDGING, RECONCILING                        on interval
ACKNOWLEDGING      RECONCILING                                                        at once
STABLE             JOINING, ACKNOWLEDGING, RECONCILING                                on interval
FENCED             JOINING, STABLE, RECONCILING, ACKNOWLEDGING, PREPARE_LEAVING,
                   LEAVING                                                            none
PREPARE_LEAVING    JOINING, STABLE, RECONCILING, ACKNOWLEDGING, UNSUBSCRIBED          on interval
LEAVING            PREPARE_LEAVING                                                    the last one
STALE              LEAVING                                                            none until a poll
FATAL              JOINING, STABLE, RECONCILING, ACKNOWLEDGING, PREPARE_LEAVING,
                   LEAVING, UNSUBSCRIBED                                              none

Where this member stands: its state, its epoch, and why the membership before ended.

The epoch is the coordinator's number for what the member has confirmed: 0 while it joins, then what each answer says.
The member id is the client's own, and stays the same for the consumer's life.
"""

from __future__ import annotations

import base64
import enum
from collections.abc import Callable, Mapping
from typing import Final

import attrs

from kclient.change_signal import ChangeSignal
from kclient.errors import InternalError, KclientError
from kclient.group.membership import Generation
from kclient.runtime import Runtime


class ConsumerMemberState(enum.Enum):
    """The states of a member of a consumer group."""

    UNSUBSCRIBED = "unsubscribed"
    JOINING = "joining"
    RECONCILING = "reconciling"
    ACKNOWLEDGING = "acknowledging"
    STABLE = "stable"
    FENCED = "fenced"
    PREPARE_LEAVING = "preparing to leave"
    LEAVING = "leaving"
    STALE = "stale"
    FATAL = "failed for good"


class HeartbeatSchedule(enum.Enum):
    """When heartbeats are sent. The last one, of LEAVING, is sent by whoever leaves."""

    NEVER = "never"
    ON_INTERVAL = "on interval"
    AT_ONCE = "at once"


IN_GROUP: Final = (
    ConsumerMemberState.JOINING,
    ConsumerMemberState.RECONCILING,
    ConsumerMemberState.ACKNOWLEDGING,
    ConsumerMemberState.STABLE,
)
"""New assignments are taken only here."""

PREDECESSORS: Final[Mapping[ConsumerMemberState, tuple[ConsumerMemberState, ...]]] = {
    ConsumerMemberState.UNSUBSCRIBED: (
        ConsumerMemberState.PREPARE_LEAVING,
        ConsumerMemberState.LEAVING,
        ConsumerMemberState.FENCED,
    ),
    ConsumerMemberState.JOINING: (
        ConsumerMemberState.FENCED,
        ConsumerMemberState.UNSUBSCRIBED,
        ConsumerMemberState.STALE,
    ),
    ConsumerMemberState.RECONCILING: IN_GROUP,
    ConsumerMemberState.ACKNOWLEDGING: (ConsumerMemberState.RECONCILING,),
    ConsumerMemberState.STABLE: (
        ConsumerMemberState.JOINING,
        ConsumerMemberState.ACKNOWLEDGING,
        ConsumerMemberState.RECONCILING,
    ),
    ConsumerMemberState.FENCED: (*IN_GROUP, ConsumerMemberState.PREPARE_LEAVING, ConsumerMemberState.LEAVING),
    ConsumerMemberState.PREPARE_LEAVING: (*IN_GROUP, ConsumerMemberState.UNSUBSCRIBED),
    ConsumerMemberState.LEAVING: (ConsumerMemberState.PREPARE_LEAVING,),
    ConsumerMemberState.STALE: (ConsumerMemberState.LEAVING,),
    ConsumerMemberState.FATAL: (
        *IN_GROUP,
        ConsumerMemberState.PREPARE_LEAVING,
        ConsumerMemberState.LEAVING,
        ConsumerMemberState.UNSUBSCRIBED,
    ),
}

HEARTBEAT_SCHEDULE: Final[Mapping[ConsumerMemberState, HeartbeatSchedule]] = {
    ConsumerMemberState.UNSUBSCRIBED: HeartbeatSchedule.NEVER,
    ConsumerMemberState.JOINING: HeartbeatSchedule.AT_ONCE,
    ConsumerMemberState.RECONCILING: HeartbeatSchedule.ON_INTERVAL,
    ConsumerMemberState.ACKNOWLEDGING: HeartbeatSchedule.AT_ONCE,
    ConsumerMemberState.STABLE: HeartbeatSchedule.ON_INTERVAL,
    ConsumerMemberState.FENCED: HeartbeatSchedule.NEVER,
    ConsumerMemberState.PREPARE_LEAVING: HeartbeatSchedule.ON_INTERVAL,
    ConsumerMemberState.LEAVING: HeartbeatSchedule.NEVER,
    ConsumerMemberState.STALE: HeartbeatSchedule.NEVER,
    ConsumerMemberState.FATAL: HeartbeatSchedule.NEVER,
}

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LEAVE_FOR_A_WHILE_EPOCH: Final = -2  # a static member: its place and its partitions wait for it
ID_BYTES: Final = 16


def new_member_id(runtime: Runtime) -> str:
    """16 random bytes as 22 letters of base64url, the first one no dash. See KIP-1082."""
    raw = runtime.random_bytes(ID_BYTES)
    text = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
    return "A" + text[1:] if text.startswith("-") else text


@attrs.frozen
class ConsumerSubscription:
    """What is subscribed to: topics by name, or a pattern that the broker resolves."""

    topics: tuple[str, ...] = ()
    regex: str | None = None


@attrs.define
class ConsumerMemberStatus:
    """The one place where state and epoch are kept. `changed` wakes who waits for either."""

    member_id: str
    now: Callable[[], float] = float  # the clock that `since` is read from; 0.0 without one
    state: ConsumerMemberState = ConsumerMemberState.UNSUBSCRIBED
    epoch: int = JOIN_EPOCH
    since: float = 0.0  # when the state was entered
    joined: int = 0  # how many memberships there were
    heard: int = 0  # how many answers have brought an epoch
    ended: str = ""  # why the last membership ended, "" if none has
    fatal: KclientError | None = None  # why there is no way back
    subscription: ConsumerSubscription | None = None  # None: nothing is subscribed to
    send_now: bool = False  # something to tell that need not wait for the interval
    changed: ChangeSignal = attrs.field(factory=ChangeSignal)

    @property
    def in_group(self) -> bool:
        """Whether this member has joined, or is about to, and does not leave."""
        return self.state in IN_GROUP

    @property
    def member(self) -> bool:
        """Whether the coordinator counts on us: it has given us an epoch."""
        return self.epoch > JOIN_EPOCH

    @property
    def schedule(self) -> HeartbeatSchedule:
        """When the next heartbeat is due."""
        schedule = HEARTBEAT_SCHEDULE[self.state]
        return (
            HeartbeatSchedule.AT_ONCE
            if self.send_now and schedule is HeartbeatSchedule.ON_INTERVAL
            else schedule
        )

    @property
    def generation(self) -> Generation:
        """Epoch and member id, as the consumer tells them; none while the coordinator has given no epoch."""
        return Generation(self.epoch, self.member_id) if self.member else Generation()

    def enter(self, state: ConsumerMemberState) -> None:
        """Move on. Raises InternalError where the table has no way from the present state."""
        if self.state not in PREDECESSORS[state]:
            raise InternalError(f"A member that is {self.state.value} cannot become {state.value}.")
        if state is not self.state:
            self.since = self.now()
        if state is ConsumerMemberState.JOINING:
            self.joined += 1
        self.state = state
        self.changed.notify()

    def end(self, state: ConsumerMemberState, why: str) -> None:
        """No member any more: the partitions are lost. `state` is FENCED, STALE or FATAL."""
        self.epoch = JOIN_EPOCH
        self.ended = why
        self.enter(state)
