"""The assigned partitions with their states and positions, as SubscriptionState in the Java client. Pure.

This module has no event loop and sends no requests: the lookups apply the responses of brokers here.

Every change of the fetch state goes through `_transition`, which checks it against the table in `state`, keeps an index
per state (so that a poll over thousands of idle partitions costs nothing) and notifies the waiting tasks.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from kclient.change_signal import ChangeSignal
from kclient.errors import InternalError, NotAssignedError
from kclient.positions.state import (
    AWAIT_RESET,
    AWAIT_VALIDATION,
    FETCHING,
    HAS_POSITION,
    INITIALIZING,
    TRANSITIONS,
    EpochEnd,
    FetchPosition,
    FetchState,
    PartitionState,
    ResetStrategy,
)
from kclient.types import LeaderAndEpoch, OffsetAndMetadata, TopicPartition


class Positions:
    """Partition → state, for the present assignment, with one index per fetch state.

    `changed` counts changes of state, pauses and assignments, but not deliveries. `assignment_id` counts assignments.
    A partition whose state or position changed is dirty until the fetcher takes it, so that the fetcher need not look
    at all partitions.
    """

    def __init__(self) -> None:
        self.changed: Final = ChangeSignal()
        self.assignment_id: int = 0
        self._states: dict[TopicPartition, PartitionState] = {}
        self._index: dict[FetchState, dict[TopicPartition, PartitionState]] = {
            state: {} for state in FetchState
        }
        self._out_of_range: dict[TopicPartition, int] = {}
        self._dirty: dict[TopicPartition, None] = {}
        self._versions = itertools.count(1)

    # --- assignment --------------------------------------------------------------------------------------

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Replace the assignment. Retained partitions keep their state, added ones are INITIALIZING."""
        wanted = dict.fromkeys(partitions)
        for state in self._marking_dirty(
            [tp for tp, state in self._states.items() if state.pending_revocation]
        ):
            state.pending_revocation = False
        if wanted.keys() != self._states.keys():
            for tp in [tp for tp in self._states if tp not in wanted]:
                del self._index[self._states.pop(tp).fetch_state][tp]
                self._mark_dirty(tp)
            kept, self._states = self._states, {}
            for tp in wanted:
                self._states[tp] = kept.get(tp) or self._begin(tp)
            self.assignment_id += 1
        self.changed.notify()

    def _begin(self, tp: TopicPartition) -> PartitionState:
        state = self._index[INITIALIZING][tp] = PartitionState(next(self._versions))
        return state

    def assigned(self) -> tuple[TopicPartition, ...]:
        """Return the assigned partitions, in the order in which they were given."""
        return tuple(self._states)

    def __contains__(self, tp: object) -> bool:
        return tp in self._states

    def __len__(self) -> int:
        return len(self._states)

    def items(self) -> Iterator[tuple[TopicPartition, PartitionState]]:
        """Iterate over the assigned partitions with their states."""
        return iter(self._states.items())

    def find(self, tp: TopicPartition, position_version: int | None = None) -> PartitionState | None:
        """Return the state, or None where the partition is not assigned or no longer has this version."""
        state = self._states.get(tp)
        return None if state is None or position_version not in (None, state.position_version) else state

    def topic_id_for_commit(self, tp: TopicPartition, offset: int) -> bytes | None:
        """Return the id of the topic that an offset to commit belongs to; None if the partition is not assigned."""
        state = self._states.get(tp)
        return None if state is None else state.topic_id_for_commit(offset)

    def state(self, tp: TopicPartition) -> PartitionState:
        """Return the state of an assigned partition. Raises NotAssignedError."""
        state = self._states.get(tp)
        if state is None:
            raise NotAssignedError(
                f"Partition {tp} is not assigned to this consumer. It may have moved in a rebalance. "
                "Use a partition of assignment().",
                partition=tp,
            )
        return state

    # --- what keeps partitions from being fetched -----------------------------------------------------------

    def is_fetchable(self, tp: TopicPartition) -> bool:
        """Return whether records of the partition may be fetched and delivered now."""
        state = self._states.get(tp)
        return state is not None and state.is_fetchable

    def pause(self, tp: TopicPartition) -> None:
        """Deliver nothing of the partition until `resume`; buffered data are kept. Raises NotAssignedError."""
        self.state(tp).paused = True
        self._mark_dirty(tp)
        self.changed.notify()

    def resume(self, tp: TopicPartition) -> None:
        """Undo `pause`. Raises NotAssignedError."""
        self.state(tp).paused = False
        self._mark_dirty(tp)
        self.changed.notify()

    def paused(self) -> tuple[TopicPartition, ...]:
        """Return the paused partitions."""
        return tuple(tp for tp, state in self._states.items() if state.paused)

    def mark_pending_revocation(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop fetching, delivering and looking up partitions that will be revoked."""
        for state in self._marking_dirty(partitions):
            state.pending_revocation = True
        self.changed.notify()

    def clear_pending_revocation(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetch and deliver these again: they will not be revoked now."""
        for state in self._marking_dirty(partitions):
            state.pending_revocation = False
        self.changed.notify()

    def follow_subscription(self, covers: Callable[[str], bool]) -> None:
        """Stop reading topics that `covers` rejects. Their partitions stay assigned until the rebalance."""
        covered = {topic: covers(topic) for topic in dict.fromkeys(tp.topic for tp in self._states)}
        for tp, state in self._states.items():
            state.unsubscribed = not covered[tp.topic]
            self._mark_dirty(tp)
        self.changed.notify()

    def mark_pending_callback(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetch nothing of these until on_partitions_assigned has returned: the listener may seek."""
        for state in self._marking_dirty(partitions):
            state.pending_callback = True

    def clear_pending_callback(self, partitions: Iterable[TopicPartition]) -> None:
        """Allow fetching: on_partitions_assigned has returned."""
        for state in self._marking_dirty(partitions):
            state.pending_callback = False
        self.changed.notify()

    # --- first positions -------------------------------------------------------------------------------------

    def defer_lookup(self, partitions: Iterable[TopicPartition]) -> None:
        """Look up the first positions of new partitions only when the next poll() or position() needs them."""
        for state in self._marking_dirty(partitions):
            state.lookup_deferred = True

    def start_deferred_lookups(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Start deferred lookups: of `partitions` for position(), of all for a poll().

        A poll() leaves out partitions whose listener may still choose a position.
        """
        waiting = self._index[INITIALIZING]
        if not waiting:
            return
        if partitions is None:
            needed = [
                tp for tp, state in waiting.items() if state.lookup_deferred and not state.pending_callback
            ]
        else:
            needed = [tp for tp in partitions if tp in waiting and waiting[tp].lookup_deferred]
        for state in self._marking_dirty(needed):
            state.lookup_deferred = False
        if needed:
            self.changed.notify()

    def partitions_needing_committed(self) -> list[TopicPartition]:
        """Return the partitions whose committed offset has to be looked up."""
        waiting = self._index[INITIALIZING]
        return [tp for tp, state in waiting.items() if not state.is_revoking and not state.lookup_deferred]

    # --- positions out of range ------------------------------------------------------------------------------

    def mark_out_of_range(self, tp: TopicPartition) -> None:
        """Stop fetching a position that the leader does not have, until a reset, a seek, or the error was raised."""
        state = self.state(tp)
        state.out_of_range = True
        # With its version: after a seek the old position needs no lookup.
        self._out_of_range[tp] = state.position_version
        self._mark_dirty(tp)
        self.changed.notify()

    def take_out_of_range(self) -> dict[TopicPartition, int]:
        """Return the partitions (with versions) marked since the last call whose position has not changed since."""
        marked, self._out_of_range = self._out_of_range, {}
        return {tp: version for tp, version in marked.items() if self.find(tp, version) is not None}

    def resume_after_error(self, tp: TopicPartition) -> None:
        """Try the partition again after its error was raised to the user. A deleted topic stays out of range."""
        state = self.state(tp)
        # A NoOffsetError advises a commit. Deferring the lookup to the next poll gives the user time to commit first.
        state.lookup_deferred = state.fetch_state is INITIALIZING
        state.out_of_range = False
        self._mark_dirty(tp)
        if state.topic_replaced:
            self.mark_out_of_range(tp)

    # --- positions -------------------------------------------------------------------------------------------

    def position(self, tp: TopicPartition) -> FetchPosition | None:
        """Return the valid position, or None during a lookup or validation. Raises NotAssignedError."""
        state = self.state(tp)
        return state.position if state.fetch_state is FETCHING else None

    def seek(self, tp: TopicPartition, target: OffsetAndMetadata, leader: LeaderAndEpoch) -> None:
        """Set the position; validate it first if both epochs are known. Raises NotAssignedError."""
        state = self.state(tp)
        position = FetchPosition(target.offset, target.leader_epoch, leader)
        state.delivered_topic_id = state.topic_id
        # Through FETCHING, because AWAIT_RESET has no transition to AWAIT_VALIDATION: it has no position to validate.
        self._transition(tp, state, FETCHING, position)
        if _can_be_validated(position):
            self._transition(tp, state, AWAIT_VALIDATION, position)

    def request_offset_reset(
        self, tp: TopicPartition, strategy: ResetStrategy, *, lost: bool = False
    ) -> None:
        """Look up the position by this strategy; a repeated request changes nothing. Raises NotAssignedError.

        `lost`: the log no longer holds the position; the old offset is kept for the report of the reset.
        """
        state = self.state(tp)
        if state.fetch_state is AWAIT_RESET and state.reset_strategy == strategy:
            return
        lost_offset = state.position.offset if lost and state.position else None
        self._transition(tp, state, AWAIT_RESET, None)
        state.reset_strategy = strategy
        state.lost_offset = lost_offset

    def set_position(self, tp: TopicPartition, position: FetchPosition) -> None:
        """Fetch from a position that needs no validation: from ListOffsets, or the end of a truncated log."""
        self._transition(tp, self.state(tp), FETCHING, position)

    def advance(self, tp: TopicPartition, offset: int, offset_epoch: int | None) -> None:
        """Move the position to `offset` after the records before it were delivered."""
        state = self.state(tp)
        if state.fetch_state is not FETCHING or state.position is None:
            raise InternalError(f"Records of {tp} were delivered in state {state.fetch_state.value}.")
        state.position = FetchPosition(offset, offset_epoch, state.position.leader)
        state.delivered_topic_id = state.topic_id
        self._mark_dirty(tp)

    def all_consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets that may be committed: valid positions, with the epoch of the data before them."""
        return {
            tp: OffsetAndMetadata(state.position.offset, state.position.offset_epoch)
            for tp, state in self._index[FETCHING].items()
            if state.position is not None and not state.topic_replaced
        }

    # --- metadata changes and validation -----------------------------------------------------------------------

    def follow_leader(self, tp: TopicPartition, leader: LeaderAndEpoch, *, can_validate: bool) -> None:
        """Take over the leader from metadata, and validate the position if both epochs are known (KIP-320).

        `can_validate` is false where the leader is too old for OffsetForLeaderEpoch 3. A position in a deleted topic is
        never validated: the epochs of the new topic mean nothing for it.
        """
        state = self.state(tp)
        old = state.position
        if (
            state.fetch_state not in HAS_POSITION
            or old is None
            or leader.node_id is None
            or old.leader == leader
        ):
            return
        # Each leader chooses its own replica (KIP-392).
        state.preferred_read_replica = None
        self._mark_dirty(tp)
        position = FetchPosition(old.offset, old.offset_epoch, leader)
        if can_validate and not state.topic_replaced and _can_be_validated(position):
            self._transition(tp, state, AWAIT_VALIDATION, position)
        elif state.fetch_state is AWAIT_VALIDATION:
            self._transition(tp, state, FETCHING, position)
        else:
            # The offset stays the same, so the version does too: buffered data and a Fetch in flight remain valid.
            state.position = position
            self.changed.notify()

    def follow_topic(self, tp: TopicPartition, topic_id: bytes) -> None:
        """Take over the topic id from metadata. A different id means that the topic was deleted and created again.

        Fetched data and requests in flight then belong to the deleted topic; the position counts as out of range.
        """
        state = self.state(tp)
        before, state.topic_id = state.topic_id, topic_id
        self._mark_dirty(tp)
        if before in (None, topic_id):
            return
        if state.fetch_state is AWAIT_RESET:
            # The transition to the same state gives a new version: a ListOffsets response of the old topic is ignored.
            strategy, lost_offset = state.reset_strategy, state.lost_offset
            self._transition(tp, state, AWAIT_RESET, None)
            state.reset_strategy, state.lost_offset = strategy, lost_offset
        elif state.position is not None:
            self._transition(tp, state, FETCHING, state.position)
            state.high_watermark = state.last_stable_offset = state.log_start_offset = None
            state.preferred_read_replica = None
            state.topic_replaced = True
            self.mark_out_of_range(tp)

    def complete_validation(self, tp: TopicPartition) -> None:
        """Fetch again: the leader's log contains the position."""
        state = self.state(tp)
        if state.fetch_state is AWAIT_VALIDATION:
            self._transition(tp, state, FETCHING, state.position)

    def mark_diverging(self, tp: TopicPartition, epoch: int, end_offset: int) -> None:
        """Treat the diverging epoch of a Fetch response as the result of a validation (KIP-595).

        Does nothing unless the partition is FETCHING. Raises NotAssignedError.
        """
        state = self.state(tp)
        if state.fetch_state is FETCHING:
            self._transition(tp, state, AWAIT_VALIDATION, state.position)
            state.divergence = EpochEnd(epoch, end_offset)

    # --- lookup requests and their retries -----------------------------------------------------------------------

    def partitions_needing_reset(self, now: float) -> dict[TopicPartition, PartitionState]:
        """Return the AWAIT_RESET partitions for which ListOffsets may be sent now."""
        return {tp: state for tp, state in self._index[AWAIT_RESET].items() if state.can_send(now)}

    def partitions_needing_validation(self, now: float) -> dict[TopicPartition, PartitionState]:
        """Return the AWAIT_VALIDATION partitions for which OffsetForLeaderEpoch may be sent now."""
        return {tp: state for tp, state in self._index[AWAIT_VALIDATION].items() if state.can_send(now)}

    def next_retry(self, now: float) -> float | None:
        """Return the next time after `now` at which a lookup request may be sent again."""
        waiting = itertools.chain(self._index[AWAIT_RESET].values(), self._index[AWAIT_VALIDATION].values())
        times = (state.retry_at for state in waiting if state.retry_at is not None and state.retry_at > now)
        return min(times, default=None)

    def mark_in_flight(self, versions: Mapping[TopicPartition, int], deadline: float) -> None:
        """Send no other lookup for these while this one is in flight, nor before `deadline` unless it fails."""
        for tp, state in self._unchanged(versions):
            state.request_in_flight, state.retry_at = True, deadline
            self._mark_dirty(tp)

    def clear_in_flight(self, versions: Mapping[TopicPartition, int]) -> None:
        """The lookup request ended, with or without success."""
        for tp, state in self._unchanged(versions):
            state.request_in_flight = False
            self._mark_dirty(tp)
        self.changed.notify()

    def set_next_allowed_retry(self, versions: Mapping[TopicPartition, int], when: float) -> None:
        """Send no lookup before `when` for partitions that still have these versions."""
        for _, state in self._unchanged(versions):
            state.retry_at = when

    def _unchanged(
        self, versions: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[TopicPartition, PartitionState]]:
        return (
            (tp, state) for tp, version in versions.items() if (state := self.find(tp, version)) is not None
        )

    # --- changes -------------------------------------------------------------------------------------------------

    def take_dirty(self) -> Iterable[TopicPartition]:
        """Return, once each, the partitions that changed, came or went since the last call."""
        dirty, self._dirty = self._dirty, {}
        return dirty

    def _mark_dirty(self, tp: TopicPartition) -> None:
        self._dirty[tp] = None

    def _marking_dirty(self, partitions: Iterable[TopicPartition]) -> Iterator[PartitionState]:
        """Yield the states of assigned partitions that the caller is about to change."""
        for tp in partitions:
            if (state := self._states.get(tp)) is not None:
                self._mark_dirty(tp)
                yield state

    def _transition(
        self, tp: TopicPartition, state: PartitionState, target: FetchState, position: FetchPosition | None
    ) -> None:
        if target not in TRANSITIONS[state.fetch_state]:
            raise InternalError(f"{tp} cannot go from {state.fetch_state.value} to {target.value}.")
        if (position is None) == (target in HAS_POSITION):
            raise InternalError(f"{tp} goes to {target.value} with position {position}.")
        del self._index[state.fetch_state][tp]
        self._index[target][tp] = state
        state.fetch_state = target
        state.position = position
        state.reset_strategy = state.lost_offset = state.retry_at = state.divergence = None
        state.out_of_range = state.topic_replaced = state.request_in_flight = False
        state.position_version = next(self._versions)
        self._mark_dirty(tp)
        self.changed.notify()


def _can_be_validated(position: FetchPosition) -> bool:
    return position.offset_epoch is not None and position.leader.epoch is not None
