"""The state of one assigned partition, and the table of its transitions.

    INITIALIZING      assigned a moment ago; the next poll() or position() has the committed offset looked up
    AWAIT_RESET       no position, or the log lost it; ListOffsets is asked for a new one
    AWAIT_VALIDATION  the leader changed; OffsetForLeaderEpoch is asked whether the position is still in the log
    FETCHING          has a valid position: the one state in which records are fetched, delivered and committed

A transition that the table does not have is ignored: nothing changes. `era` tells whether an answer still fits the
partition it was asked for. It changes with every change of the position but delivery, and no two are equal, so that
an offset that comes back to the same value, or a partition to the same consumer, is not mistaken for the old one.
"""

from __future__ import annotations

import enum

import attrs

from kclient.positions.strategy import ResetStrategy
from kclient.types import LeaderAndEpoch

UNKNOWN_LEADER = LeaderAndEpoch(None, None)


class FetchState(enum.Enum):
    """What an assigned partition waits for."""

    INITIALIZING = "initializing"
    FETCHING = "fetching"
    AWAIT_RESET = "await_reset"
    AWAIT_VALIDATION = "await_validation"


INITIALIZING, FETCHING, AWAIT_RESET, AWAIT_VALIDATION = FetchState

TRANSITIONS: dict[FetchState, frozenset[FetchState]] = {
    INITIALIZING: frozenset({FETCHING, AWAIT_RESET, AWAIT_VALIDATION}),
    FETCHING: frozenset({FETCHING, AWAIT_RESET, AWAIT_VALIDATION}),
    AWAIT_RESET: frozenset({FETCHING, AWAIT_RESET}),
    AWAIT_VALIDATION: frozenset({FETCHING, AWAIT_RESET, AWAIT_VALIDATION}),
}
HAS_POSITION = frozenset({FETCHING, AWAIT_VALIDATION})


@attrs.frozen
class FetchPosition:
    """The next offset to consume, the epoch of the batch before it (None: unknown), and who led when it was set.

    Two epochs, never mixed: `offset_epoch` belongs to the data and is committed; `leader.epoch` belongs to the leader
    and is what requests carry so that a stale broker is found out.
    """

    offset: int
    offset_epoch: int | None
    leader: LeaderAndEpoch = UNKNOWN_LEADER


@attrs.frozen
class EpochEnd:
    """What a leader says of a leader epoch: the newest epoch up to it that its log has, and where that one ends.

    −1 stands for what the leader does not know.
    """

    epoch: int
    end_offset: int

    @property
    def is_known(self) -> bool:
        """Whether the leader knows anything of the epoch."""
        return self.epoch >= 0 and self.end_offset >= 0

    def covers(self, offset: int) -> bool:
        """Whether the leader's log holds what was read up to `offset`."""
        return self.is_known and self.end_offset >= offset


@attrs.define(eq=False)
class PartitionState:
    """Everything known about one assigned partition. Times are seconds of the loop.

    `awaits_poll`: the first position is looked up when a poll() or position() needs it, so that a commit made before
    counts. `unwanted`: the topic has left the subscription. `asked`: a question about the position is in flight.
    `retry_at`: none is sent before. `divergence`: the answer to a validation came unasked, with a fetch.
    `topic_replaced`: the position belongs to a topic that is gone, and the one of its name is another.
    `handed_topic_id`: of the topic whose records were handed out last, or to which the user went since.
    """

    era: int
    fetch_state: FetchState = INITIALIZING
    position: FetchPosition | None = None
    high_watermark: int | None = None
    last_stable_offset: int | None = None
    log_start_offset: int | None = None
    paused: bool = False
    pending_revocation: bool = False
    unwanted: bool = False
    pending_callback: bool = False
    awaits_poll: bool = False
    out_of_range: bool = False
    reset_strategy: ResetStrategy | None = None
    lost_offset: int | None = None
    divergence: EpochEnd | None = None
    asked: bool = False
    retry_at: float | None = None
    preferred_read_replica: int | None = None
    preferred_until: float = 0.0
    topic_id: bytes | None = None
    topic_replaced: bool = False
    handed_topic_id: bytes | None = None

    @property
    def last_handed_is_gone(self) -> bool:
        """Whether what was handed out last belongs to a topic that is gone."""
        return self.topic_replaced or self.handed_topic_id not in (None, self.topic_id)

    def topic_id_of(self, offset: int) -> bytes | None:
        """Of which topic an offset to commit speaks: of that of the position if it is the position, else of that whose
        records the user has seen last."""
        here = self.position is not None and self.position.offset == offset and not self.topic_replaced
        return self.topic_id if here else self.handed_topic_id or self.topic_id

    @property
    def is_going(self) -> bool:
        """Whether a rebalance takes it away, as far as is known: nothing more is fetched, delivered or looked up."""
        return self.pending_revocation or self.unwanted

    @property
    def is_fetchable(self) -> bool:
        """Whether records may be fetched and delivered now."""
        return (
            self.fetch_state is FETCHING
            and not self.paused
            and not self.is_going
            and not self.pending_callback
            and not self.out_of_range
        )

    def is_due(self, now: float) -> bool:
        """Whether a question may be sent (again): none is in flight and no backoff runs."""
        return not self.asked and (self.retry_at is None or self.retry_at <= now)
