"""The states of a classic group: which may follow which, and what each API is answered in each."""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

from kclient.protocol.errors import (
    COORDINATOR_NOT_AVAILABLE,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)


class State(enum.Enum):
    """Under the names that DescribeGroups shows."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


MAY_BE_ENTERED_FROM: Final = {
    State.EMPTY: {State.PREPARING},
    State.PREPARING: {State.STABLE, State.COMPLETING, State.EMPTY},
    State.COMPLETING: {State.PREPARING},
    State.STABLE: {State.COMPLETING},
    State.DEAD: set(State),
}


class Act(enum.Enum):
    """What to do where the answer is not simply an error code."""

    # Take the member's metadata, rebalance (or go on with it), answer when it is through.
    REJOIN = enum.auto()
    REJOIN_IF_CHANGED = enum.auto()  # the current generation for the same metadata, else REJOIN
    REJOIN_IF_CHANGED_OR_LEADER = enum.auto()  # likewise, but the leader may always ask for a rebalance
    AWAIT_PLAN = enum.auto()  # answer when the leader's plan is stored; the leader brings it
    GIVE_ASSIGNMENT = enum.auto()  # what the plan says of the member


class Answers(NamedTuple):
    """To a member that the group knows, in its current generation."""

    join: Act | int
    sync: Act | int
    heartbeat: int  # NONE and REBALANCE_IN_PROGRESS keep the member alive
    commit: int  # NONE keeps it alive too


# state → JoinGroup, SyncGroup, Heartbeat, OffsetCommit
ANSWERS: Final = {
    State.EMPTY: Answers(UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID),
    State.PREPARING: Answers(Act.REJOIN, REBALANCE_IN_PROGRESS, REBALANCE_IN_PROGRESS, NONE),
    State.COMPLETING: Answers(Act.REJOIN_IF_CHANGED, Act.AWAIT_PLAN, NONE, REBALANCE_IN_PROGRESS),
    State.STABLE: Answers(Act.REJOIN_IF_CHANGED_OR_LEADER, Act.GIVE_ASSIGNMENT, NONE, NONE),
    State.DEAD: Answers(*[COORDINATOR_NOT_AVAILABLE] * 4),
}
