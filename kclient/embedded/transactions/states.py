"""The states of a transactional id, and what each makes of a request to end its transaction.

    Empty ─ add ─▶ Ongoing ─ end ─▶ PrepareCommit, PrepareAbort ─ markers written ─▶ CompleteCommit, CompleteAbort
      ▲               ▲                                                                     │
      └──── init ─────┴───────────────────────────── add ───────────────────────────────────┘

The numbers are those in the records of `__transaction_state`.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Final


class State(IntEnum):
    """Where a transactional id stands."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6


PREPARED: Final = (State.PREPARE_COMMIT, State.PREPARE_ABORT)
AT_REST: Final = (State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT)

# state → the states that it may follow
FOLLOWS: Final = {
    State.EMPTY: AT_REST,
    State.ONGOING: (State.ONGOING, *AT_REST),
    State.PREPARE_COMMIT: (State.ONGOING,),
    State.PREPARE_ABORT: (
        State.ONGOING,
        *AT_REST,
    ),  # at rest: a producer of V2 aborts before it wrote anything
    State.COMPLETE_COMMIT: (State.PREPARE_COMMIT,),
    State.COMPLETE_ABORT: (State.PREPARE_ABORT,),
    State.DEAD: AT_REST,
}


class Verdict(Enum):
    """What becomes of a request to end a transaction."""

    PROCEED = "end it"
    DONE = "it has been ended so: say yes once more"
    CONCURRENT = "it is being ended: ask again"
    INVALID = "it cannot be ended so"


# state → the verdict on a commit, on an abort
ENDING: Final = {
    State.EMPTY: (Verdict.INVALID, Verdict.INVALID),
    State.ONGOING: (Verdict.PROCEED, Verdict.PROCEED),
    State.PREPARE_COMMIT: (Verdict.CONCURRENT, Verdict.CONCURRENT),
    State.PREPARE_ABORT: (Verdict.CONCURRENT, Verdict.CONCURRENT),
    State.COMPLETE_COMMIT: (Verdict.DONE, Verdict.INVALID),
    State.COMPLETE_ABORT: (Verdict.INVALID, Verdict.DONE),
}

# The same under KIP-890, where a repeated request is told by its old epoch: at rest a new one is about the next
# transaction, which may be aborted before it began.
ENDING_NEXT: Final = {
    State.EMPTY: (Verdict.INVALID, Verdict.PROCEED),
    State.ONGOING: (Verdict.PROCEED, Verdict.PROCEED),
    State.COMPLETE_COMMIT: (Verdict.INVALID, Verdict.PROCEED),
    State.COMPLETE_ABORT: (Verdict.INVALID, Verdict.PROCEED),
}
