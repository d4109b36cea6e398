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
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final


class MemberState(enum.Enum):
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


class Rhythm(enum.Enum):
    """When heartbeats are sent. The last one, of LEAVING, is sent by whoever leaves."""

    NEVER = "never"
    ON_INTERVAL = "on interval"
    AT_ONCE = "at once"


IN_GROUP: Final = (
    MemberState.JOINING,
    MemberState.RECONCILING,
    MemberState.ACKNOWLEDGING,
    MemberState.STABLE,
)
"""New assignments are taken only here."""

PREDECESSORS: Final[Mapping[MemberState, tuple[MemberState, ...]]] = {
    MemberState.UNSUBSCRIBED: (MemberState.PREPARE_LEAVING, MemberState.LEAVING, MemberState.FENCED),
    MemberState.JOINING: (MemberState.FENCED, MemberState.UNSUBSCRIBED, MemberState.STALE),
    MemberState.RECONCILING: IN_GROUP,
    MemberState.ACKNOWLEDGING: (MemberState.RECONCILING,),
    MemberState.STABLE: (MemberState.JOINING, MemberState.ACKNOWLEDGING, MemberState.RECONCILING),
    MemberState.FENCED: (*IN_GROUP, MemberState.PREPARE_LEAVING, MemberState.LEAVING),
    MemberState.PREPARE_LEAVING: (*IN_GROUP, MemberState.UNSUBSCRIBED),
    MemberState.LEAVING: (MemberState.PREPARE_LEAVING,),
    MemberState.STALE: (MemberState.LEAVING,),
    MemberState.FATAL: (
        *IN_GROUP,
        MemberState.PREPARE_LEAVING,
        MemberState.LEAVING,
        MemberState.UNSUBSCRIBED,
    ),
}

RHYTHM: Final[Mapping[MemberState, Rhythm]] = {
    MemberState.UNSUBSCRIBED: Rhythm.NEVER,
    MemberState.JOINING: Rhythm.AT_ONCE,
    MemberState.RECONCILING: Rhythm.ON_INTERVAL,
    MemberState.ACKNOWLEDGING: Rhythm.AT_ONCE,
    MemberState.STABLE: Rhythm.ON_INTERVAL,
    MemberState.FENCED: Rhythm.NEVER,
    MemberState.PREPARE_LEAVING: Rhythm.ON_INTERVAL,
    MemberState.LEAVING: Rhythm.NEVER,
    MemberState.STALE: Rhythm.NEVER,
    MemberState.FATAL: Rhythm.NEVER,
}
