"""The positions of all assigned partitions. Pure: no loop, no requests; whoever asks brokers applies the answers here.

Every change of state goes through `_move`, which obeys the table of `state`, keeps one index per state (so that a poll
over thousands of idle partitions costs nothing) and tells the flows that wait.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from kclient.errors import InternalError
from kclient.positions.assigned import AssignedPartitions
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
)
from kclient.positions.strategy import ResetStrategy
from kclient.types import LeaderAndEpoch, OffsetAndMetadata, TopicPartition


class Positions(AssignedPartitions):
    """The FetchState table over the assigned partitions."""

    def position(self, tp: TopicPartition) -> FetchPosition | None:
        """The valid position, None while it is looked up or checked. Raises NotAssignedError."""
        state = self.state(tp)
        return state.position if state.fetch_state is FETCHING else None

    def seek(self, tp: TopicPartition, target: OffsetAndMetadata, leader: LeaderAndEpoch) -> None:
        """Go to an offset; with both epochs known it is checked first. Raises NotAssignedError."""
        state = self.state(tp)
        position = FetchPosition(target.offset, target.leader_epoch, leader)
        state.handed_topic_id = state.topic_id
        self._move(tp, state, FETCHING, position)
        if _can_be_checked(position):
            self._move(tp, state, AWAIT_VALIDATION, position)

    def request_reset(self, tp: TopicPartition, strategy: ResetStrategy, *, lost: bool = False) -> None:
        """Look the position up by this strategy; asking for it again changes nothing. Raises NotAssignedError.

        `lost` says that the log does not hold the position any more: the old offset is kept for the one who tells.
        """
        state = self.state(tp)
        if state.fetch_state is AWAIT_RESET and state.reset_strategy == strategy:
            return
        lost_offset = state.position.offset if lost and state.position else None
        self._move(tp, state, AWAIT_RESET, None)
        state.reset_strategy = strategy
        state.lost_offset = lost_offset

    def set_position(self, tp: TopicPartition, position: FetchPosition) -> None:
        """Begin to fetch at a position that needs no check: an answer of ListOffsets, or the end of a truncated log."""
        self._move(tp, self.state(tp), FETCHING, position)

    def advance(self, tp: TopicPartition, offset: int, offset_epoch: int | None) -> None:
        """Everything up to before `offset` was handed out."""
        state = self.state(tp)
        if state.fetch_state is not FETCHING or state.position is None:
            raise InternalError(f"Records of {tp} were delivered in state {state.fetch_state.value}.")
        state.position = FetchPosition(offset, offset_epoch, state.position.leader)
        state.handed_topic_id = state.topic_id
        self._touch(tp)

    def follow_leader(self, tp: TopicPartition, leader: LeaderAndEpoch, *, can_validate: bool) -> None:
        """Metadata names this leader now: the position takes it over, and is checked if both epochs are known.

        `can_validate` is false where the leader is known to be too old for OffsetForLeaderEpoch 3. A position in a
        topic that is gone is never checked: epochs of the new topic say nothing of it.
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
        state.preferred_read_replica = None
        self._touch(tp)
        position = FetchPosition(old.offset, old.offset_epoch, leader)
        if can_validate and not state.topic_replaced and _can_be_checked(position):
            self._move(tp, state, AWAIT_VALIDATION, position)
        elif state.fetch_state is AWAIT_VALIDATION:
            self._move(tp, state, FETCHING, position)
        else:
            state.position = position
            self.changed.notify()

    def follow_topic(self, tp: TopicPartition, topic_id: bytes) -> None:
        """Metadata gives the topic this id now. Another one than before: a new topic, which the position is not of.

        What was fetched or asked for belongs to the old one; the position counts as out of range.
        """
        state = self.state(tp)
        before, state.topic_id = state.topic_id, topic_id
        self._touch(tp)
        if before in (None, topic_id):
            return
        if state.fetch_state is AWAIT_RESET:
            strategy, lost_offset = state.reset_strategy, state.lost_offset
            self._move(tp, state, AWAIT_RESET, None)
            state.reset_strategy, state.lost_offset = strategy, lost_offset
        elif state.position is not None:
            self._move(tp, state, FETCHING, state.position)
            state.high_watermark = state.last_stable_offset = state.log_start_offset = None
            state.preferred_read_replica = None
            state.topic_replaced = True
            self.mark_out_of_range(tp)

    def complete_validation(self, tp: TopicPartition) -> None:
        """The position was found in the leader's log."""
        state = self.state(tp)
        if state.fetch_state is AWAIT_VALIDATION:
            self._move(tp, state, FETCHING, state.position)

    def mark_diverging(self, tp: TopicPartition, epoch: int, end_offset: int) -> None:
        """A fetch was told that the leader's log parts from the position: judged as an answer to its validation is.

        Means nothing unless the partition is FETCHING. Raises NotAssignedError.
        """
        state = self.state(tp)
        if state.fetch_state is FETCHING:
            self._move(tp, state, AWAIT_VALIDATION, state.position)
            state.divergence = EpochEnd(epoch, end_offset)

    def all_consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What may be committed: valid positions, with the epoch of the data before them."""
        return {
            tp: OffsetAndMetadata(state.position.offset, state.position.offset_epoch)
            for tp, state in self._index[FETCHING].items()
            if state.position is not None and not state.topic_replaced
        }

    def needing_committed(self) -> list[TopicPartition]:
        """Partitions whose committed offset is wanted."""
        waiting = self._index[INITIALIZING]
        return [tp for tp, state in waiting.items() if not state.is_going and not state.awaits_poll]

    def needing_reset(self, now: float) -> dict[TopicPartition, PartitionState]:
        """Partitions that wait for ListOffsets and may be asked for now."""
        return {tp: state for tp, state in self._index[AWAIT_RESET].items() if state.is_due(now)}

    def needing_validation(self, now: float) -> dict[TopicPartition, PartitionState]:
        """Partitions that wait for OffsetForLeaderEpoch and may be asked for now."""
        return {tp: state for tp, state in self._index[AWAIT_VALIDATION].items() if state.is_due(now)}

    def next_retry(self, now: float) -> float | None:
        """The next moment after `now` at which a waiting partition may be asked for."""
        waiting = itertools.chain(self._index[AWAIT_RESET].values(), self._index[AWAIT_VALIDATION].values())
        times = (state.retry_at for state in waiting if state.retry_at is not None and state.retry_at > now)
        return min(times, default=None)

    def set_asked(self, eras: Mapping[TopicPartition, int], deadline: float) -> None:
        """A question about these is in flight: no other is sent before its end, nor before its deadline unless it
        failed."""
        for tp, state in self._unchanged(eras):
            state.asked, state.retry_at = True, deadline
            self._touch(tp)

    def set_answered(self, eras: Mapping[TopicPartition, int]) -> None:
        """The question is not in flight any more, whatever became of it."""
        for tp, state in self._unchanged(eras):
            state.asked = False
            self._touch(tp)
        self.changed.notify()

    def ask_again_at(self, eras: Mapping[TopicPartition, int], when: float) -> None:
        """Ask for these again not before `when`, unless they are not what they were."""
        for _, state in self._unchanged(eras):
            state.retry_at = when

    def _unchanged(
        self, eras: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[TopicPartition, PartitionState]]:
        return ((tp, state) for tp, era in eras.items() if (state := self.find(tp, era)) is not None)

    def _move(
        self, tp: TopicPartition, state: PartitionState, target: FetchState, position: FetchPosition | None
    ) -> None:
        if target not in TRANSITIONS[state.fetch_state]:
            return
        if (position is None) == (target in HAS_POSITION):
            raise InternalError(f"{tp} goes to {target.value} with position {position}.")
        del self._index[state.fetch_state][tp]
        self._index[target][tp] = state
        state.fetch_state = target
        state.position = position
        state.reset_strategy = state.lost_offset = state.retry_at = state.divergence = None
        state.out_of_range = state.topic_replaced = state.asked = False
        state.era = next(self._eras)
        self._touch(tp)
        self.changed.notify()


def _can_be_checked(position: FetchPosition) -> bool:
    return position.offset_epoch is not None and position.leader.epoch is not None
