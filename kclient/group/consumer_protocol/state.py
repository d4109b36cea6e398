"""State and epoch of a member of the consumer protocol.

    state              may be entered from                                                heartbeats
    UNSUBSCRIBED       PREPARE_LEAVING, LEAVING, FENCED                                   none
    JOINING            FENCED, UNSUBSCRIBED, STALE                                        immediately, epoch 0
    RECONCILING        STABLE, JOINING, ACKNOWLEDGING, RECONCILING                        on interval
    ACKNOWLEDGING      RECONCILING                                                        immediately
    STABLE             JOINING, ACKNOWLEDGING, RECONCILING                                on interval
    FENCED             JOINING, STABLE, RECONCILING, ACKNOWLEDGING, PREPARE_LEAVING,
                       LEAVING                                                            none
    PREPARE_LEAVING    JOINING, STABLE, RECONCILING, ACKNOWLEDGING, UNSUBSCRIBED          on interval
    LEAVING            PREPARE_LEAVING                                                    the last one
    STALE              LEAVING                                                            none until a poll
    FATAL              JOINING, STABLE, RECONCILING, ACKNOWLEDGING, PREPARE_LEAVING,
                       LEAVING, UNSUBSCRIBED                                              none

The epoch is the coordinator's number for what the member has acknowledged: 0 while it joins, then that of the last
response. The client chooses the member id, which stays the same until the consumer is closed (KIP-1082).
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
    """When heartbeats are sent. `ConsumerMembership.leave` sends the last one, of LEAVING."""

    NEVER = "never"
    ON_INTERVAL = "on interval"
    AT_ONCE = "at once"


IN_GROUP: Final = (
    ConsumerMemberState.JOINING,
    ConsumerMemberState.RECONCILING,
    ConsumerMemberState.ACKNOWLEDGING,
    ConsumerMemberState.STABLE,
)
"""The states in which a member accepts assignments."""

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
LEAVE_FOR_A_WHILE_EPOCH: Final = -2  # a static member, which keeps its partitions until it returns
ID_BYTES: Final = 16


def new_member_id(runtime: Runtime) -> str:
    """Return a Kafka UUID: 16 random bytes as 22 letters of base64url, not starting with a dash (KIP-1082)."""
    raw = runtime.random_bytes(ID_BYTES)
    text = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
    # A leading dash would be taken for an option by command-line tools.
    return "A" + text[1:] if text.startswith("-") else text


@attrs.frozen
class ConsumerSubscription:
    """A subscription: topic names, or a pattern that the coordinator resolves."""

    topics: tuple[str, ...] = ()
    regex: str | None = None


@attrs.define
class ConsumerMemberStatus:
    """State and epoch of a member. `changed` is notified when one of them changes."""

    member_id: str
    now: Callable[[], float] = float  # the clock that `since` is read from; 0.0 without one
    state: ConsumerMemberState = ConsumerMemberState.UNSUBSCRIBED
    epoch: int = JOIN_EPOCH
    since: float = 0.0  # when the state was entered
    joined: int = 0  # number of memberships so far
    epochs_received: int = 0  # number of responses with an epoch
    ended: str = ""  # why the last membership ended, "" if none has
    fatal: KclientError | None = None  # the error of FATAL
    subscription: ConsumerSubscription | None = None  # None: not subscribed
    send_now: bool = False  # a changed field must not wait for the interval
    changed: ChangeSignal = attrs.field(factory=ChangeSignal)

    @property
    def in_group(self) -> bool:
        """Whether this member has joined or is joining, and is not leaving."""
        return self.state in IN_GROUP

    @property
    def member(self) -> bool:
        """Whether the coordinator has given this member an epoch."""
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
        """Epoch and member id; `Generation()` while the coordinator has given no epoch."""
        return Generation(self.epoch, self.member_id) if self.member else Generation()

    def transition_to(self, state: ConsumerMemberState) -> None:
        """Enter a state. Raises InternalError if the table does not allow it."""
        if self.state not in PREDECESSORS[state]:
            raise InternalError(f"A member that is {self.state.value} cannot become {state.value}.")
        if state is not self.state:
            self.since = self.now()
        if state is ConsumerMemberState.JOINING:
            self.joined += 1
        self.state = state
        self.changed.notify()

    def end(self, state: ConsumerMemberState, why: str) -> None:
        """End the membership; its partitions are lost. `state` is FENCED, STALE or FATAL."""
        self.epoch = JOIN_EPOCH
        self.ended = why
        self.transition_to(state)
