"""The state of one assigned partition, the table of its transitions, and the strategies that reset a position.

    INITIALIZING      newly assigned; the next poll() or position() looks up the committed offset
    AWAIT_RESET       no position, or the log no longer has it; ListOffsets returns a new one
    AWAIT_VALIDATION  the leader changed; OffsetForLeaderEpoch returns whether the position is still in the log
    FETCHING          has a valid position: the only state in which records are fetched, delivered and committed

A transition that the table does not have is a bug in kclient and raises InternalError. `position_version` shows
whether a response still fits the partition that the request was sent for. It changes with every change of the position
except delivery, and no two versions are equal. A position that returns to the same offset, or a partition that returns
to the same consumer, is therefore never mistaken for the old one.
"""

from __future__ import annotations

import enum

import attrs

from kclient.config import Config, resets
from kclient.types import LeaderAndEpoch

UNKNOWN_LEADER = LeaderAndEpoch(None, None)
LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2


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


# --- reset strategies -----------------------------------------------------------------------------------


@attrs.frozen
class ResetStrategy:
    """Where a partition without a position begins: `earliest`, `latest`, or `by_duration`.

    `duration_ms` is the age of the first record to read, for `by_duration` only.
    """

    name: str
    duration_ms: int | None = None

    def timestamp(self, wall_ms: int) -> int:
        """Return the timestamp to send in ListOffsets. `wall_ms` is the wall clock when the request is built."""
        if self.duration_ms is not None:
            return max(0, wall_ms - self.duration_ms)
        return LATEST_TIMESTAMP if self.name == "latest" else EARLIEST_TIMESTAMP


EARLIEST = ResetStrategy("earliest")
LATEST = ResetStrategy("latest")


@attrs.frozen
class ResetPolicy:
    """The strategies for two separate cases: no committed offset, and a position that the log does not hold.

    None: raise an error to the user. `config.resets` lists the options that set them.
    """

    on_no_committed_offset: ResetStrategy | None
    on_offset_out_of_range: ResetStrategy | None


def reset_policy(config: Config) -> ResetPolicy:
    """Return the policy of a validated configuration."""
    without, lost = resets.answers(
        config.auto_offset_reset, config.on_no_committed_offset, config.on_offset_out_of_range
    )
    return ResetPolicy(on_no_committed_offset=_strategy(without), on_offset_out_of_range=_strategy(lost))


def _strategy(answer: resets.Answer) -> ResetStrategy | None:
    if isinstance(answer, int):
        return ResetStrategy(resets.BY_DURATION, answer)
    return {"earliest": EARLIEST, "latest": LATEST, "error": None}[answer]


# --- position and state ---------------------------------------------------------------------------------


@attrs.frozen
class FetchPosition:
    """The next offset to consume, the epoch of the batch before it (None: unknown), and the leader when it was set.

    The two epochs are never mixed. `offset_epoch` belongs to the data and is committed. `leader.epoch` belongs to the
    leader; requests carry it so that a stale broker rejects them.
    """

    offset: int
    offset_epoch: int | None
    leader: LeaderAndEpoch = UNKNOWN_LEADER


@attrs.frozen
class EpochEnd:
    """The answer of OffsetForLeaderEpoch: the largest epoch at or below the requested one, and its end offset.

    −1 stands for what the leader does not know.
    """

    epoch: int
    end_offset: int

    @property
    def is_known(self) -> bool:
        """Whether the leader knows the epoch at all."""
        return self.epoch >= 0 and self.end_offset >= 0

    def covers(self, offset: int) -> bool:
        """Return whether the leader's log holds everything that was read up to `offset`."""
        return self.is_known and self.end_offset >= offset


@attrs.define(eq=False)
class PartitionState:
    """Everything known about one assigned partition. Times are seconds of the event loop.

    `unsubscribed`: the topic left the subscription. `pending_callback`: on_partitions_assigned has not returned.
    `lookup_deferred`: the committed offset is looked up only when a poll() or position() needs it, so that a commit
    made before counts. `request_in_flight`: a ListOffsets or OffsetForLeaderEpoch for it is in flight, `retry_at`: none
    is sent before. `divergence`: a Fetch response contained the result of a validation. `topic_replaced`: the position
    belongs to a deleted topic, and another topic has its name. `delivered_topic_id`: the topic of the records delivered
    last, or of the last seek. `began_at_end`: the offset to which a reset to the end of the log set the position.
    """

    position_version: int
    fetch_state: FetchState = INITIALIZING
    position: FetchPosition | None = None
    high_watermark: int | None = None
    last_stable_offset: int | None = None
    log_start_offset: int | None = None
    paused: bool = False
    pending_revocation: bool = False
    unsubscribed: bool = False
    pending_callback: bool = False
    lookup_deferred: bool = False
    out_of_range: bool = False
    reset_strategy: ResetStrategy | None = None
    lost_offset: int | None = None
    divergence: EpochEnd | None = None
    request_in_flight: bool = False
    retry_at: float | None = None
    preferred_read_replica: int | None = None
    preferred_until: float = 0.0
    topic_id: bytes | None = None
    topic_replaced: bool = False
    delivered_topic_id: bytes | None = None
    began_at_end: int | None = None

    @property
    def delivered_topic_is_gone(self) -> bool:
        """Whether the records delivered last belong to a deleted topic."""
        return self.topic_replaced or self.delivered_topic_id not in (None, self.topic_id)

    def topic_id_for_commit(self, offset: int) -> bytes | None:
        """Return the id of the topic that an offset to commit belongs to.

        The position belongs to the present topic; any other offset to the topic whose records were delivered last.
        """
        here = self.position is not None and self.position.offset == offset and not self.topic_replaced
        return self.topic_id if here else self.delivered_topic_id or self.topic_id

    @property
    def is_revoking(self) -> bool:
        """Whether a rebalance is expected to revoke it: no more fetches, deliveries or lookups."""
        return self.pending_revocation or self.unsubscribed

    @property
    def is_fetchable(self) -> bool:
        """Whether records may be fetched and delivered now."""
        return (
            self.fetch_state is FETCHING
            and not self.paused
            and not self.is_revoking
            and not self.pending_callback
            and not self.out_of_range
        )

    def can_send(self, now: float) -> bool:
        """Return whether a lookup request may be sent: none is in flight and no backoff runs."""
        return not self.request_in_flight and (self.retry_at is None or self.retry_at <= now)
