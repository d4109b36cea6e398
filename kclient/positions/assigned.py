"""Which partitions are assigned, with their states, and what the user or a rebalance keeps from being fetched. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

from kclient.change_signal import ChangeSignal
from kclient.errors import NotAssignedError
from kclient.positions.state import INITIALIZING, FetchState, PartitionState
from kclient.types import TopicPartition


class AssignedPartitions:
    """Partition → state, for what is assigned now, with one index per state.

    `changed` counts changes of state, pauses and assignments, not deliveries. `assignment_id` counts assignments.
    Of whose state or position anything changed is touched, so that the fetcher need not look at all of them.
    """

    def __init__(self) -> None:
        self.changed = ChangeSignal()
        self.assignment_id = 0
        self._states: dict[TopicPartition, PartitionState] = {}
        self._index: dict[FetchState, dict[TopicPartition, PartitionState]] = {
            state: {} for state in FetchState
        }
        self._out_of_range: dict[TopicPartition, int] = {}
        self._touched: dict[TopicPartition, None] = {}
        self._eras = itertools.count(1)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Make these the assigned partitions. Who stays keeps its state, who comes begins, who goes is forgotten."""
        wanted = dict.fromkeys(partitions)
        for state in self._touching([tp for tp, state in self._states.items() if state.pending_revocation]):
            state.pending_revocation = False
        if wanted.keys() != self._states.keys():
            for tp in [tp for tp in self._states if tp not in wanted]:
                del self._index[self._states.pop(tp).fetch_state][tp]
                self._touch(tp)
            kept, self._states = self._states, {}
            for tp in wanted:
                self._states[tp] = kept.get(tp) or self._begin(tp)
            self.assignment_id += 1
        self.changed.notify()

    def _begin(self, tp: TopicPartition) -> PartitionState:
        state = self._index[INITIALIZING][tp] = PartitionState(next(self._eras))
        return state

    def assigned(self) -> tuple[TopicPartition, ...]:
        """The assigned partitions, in the order in which they were given."""
        return tuple(self._states)

    def __contains__(self, tp: object) -> bool:
        return tp in self._states

    def __len__(self) -> int:
        return len(self._states)

    def items(self) -> Iterator[tuple[TopicPartition, PartitionState]]:
        """Each assigned partition with its state."""
        return iter(self._states.items())

    def find(self, tp: TopicPartition, era: int | None = None) -> PartitionState | None:
        """The state, or None where the partition is not assigned, or (with `era`) is not what it was."""
        state = self._states.get(tp)
        return None if state is None or era not in (None, state.era) else state

    def state(self, tp: TopicPartition) -> PartitionState:
        """The state of an assigned partition. Raises NotAssignedError."""
        state = self._states.get(tp)
        if state is None:
            raise NotAssignedError(
                f"Partition {tp} is not assigned to this consumer. It may have moved in a rebalance. "
                "Use a partition of assignment().",
                partition=tp,
            )
        return state

    def is_fetchable(self, tp: TopicPartition) -> bool:
        """Whether records of the partition may be fetched and delivered now."""
        state = self._states.get(tp)
        return state is not None and state.is_fetchable

    def pause(self, tp: TopicPartition) -> None:
        """Deliver nothing of the partition until `resume`; what is buffered is kept. Raises NotAssignedError."""
        self.state(tp).paused = True
        self._touch(tp)
        self.changed.notify()

    def resume(self, tp: TopicPartition) -> None:
        """Undo `pause`. Raises NotAssignedError."""
        self.state(tp).paused = False
        self._touch(tp)
        self.changed.notify()

    def paused(self) -> tuple[TopicPartition, ...]:
        """The paused partitions."""
        return tuple(tp for tp, state in self._states.items() if state.paused)

    def mark_pending_revocation(self, partitions: Iterable[TopicPartition]) -> None:
        """These will be revoked: nothing more of them is fetched, delivered or looked up."""
        for state in self._touching(partitions):
            state.pending_revocation = True
        self.changed.notify()

    def keep_after_all(self, partitions: Iterable[TopicPartition]) -> None:
        """These will not be revoked now: they are fetched and delivered again."""
        for state in self._touching(partitions):
            state.pending_revocation = False
        self.changed.notify()

    def follow_subscription(self, covers: Callable[[str], bool]) -> None:
        """Partitions of topics that it does not cover stay assigned until the rebalance, unread."""
        covered = {topic: covers(topic) for topic in dict.fromkeys(tp.topic for tp in self._states)}
        for tp, state in self._states.items():
            state.unwanted = not covered[tp.topic]
            self._touch(tp)
        self.changed.notify()

    def await_callback(self, partitions: Iterable[TopicPartition]) -> None:
        """The user is about to be told of these. Nothing is fetched before, for a listener may seek."""
        for state in self._touching(partitions):
            state.pending_callback = True

    def callback_over(self, partitions: Iterable[TopicPartition]) -> None:
        """The user was told of these."""
        for state in self._touching(partitions):
            state.pending_callback = False
        self.changed.notify()

    def await_poll(self, partitions: Iterable[TopicPartition]) -> None:
        """These are new: where they begin is looked up when the next poll() or position() needs it."""
        for state in self._touching(partitions):
            state.awaits_poll = True

    def poll_needs(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """A poll() needs every first position but those that a listener may still choose; position() needs this one."""
        waiting = self._index[INITIALIZING]
        if not waiting:
            return
        if partitions is None:
            needed = [tp for tp, state in waiting.items() if state.awaits_poll and not state.pending_callback]
        else:
            needed = [tp for tp in partitions if tp in waiting and waiting[tp].awaits_poll]
        for state in self._touching(needed):
            state.awaits_poll = False
        if needed:
            self.changed.notify()

    def mark_out_of_range(self, tp: TopicPartition) -> None:
        """The leader does not have the position: not fetched until it is reset or moved, or the user was told."""
        state = self.state(tp)
        state.out_of_range = True
        self._out_of_range[tp] = state.era
        self._touch(tp)
        self.changed.notify()

    def look_again(self, tp: TopicPartition) -> None:
        """The user was told: the next fetch or poll shows whether it is still so. A topic that is gone stays so."""
        state = self.state(tp)
        state.awaits_poll = (
            state.fetch_state is INITIALIZING
        )  # the user may commit first, as a NoOffsetError advises
        state.out_of_range = False
        self._touch(tp)
        if state.topic_replaced:
            self.mark_out_of_range(tp)

    def take_out_of_range(self) -> dict[TopicPartition, int]:
        """The partitions (with their era) marked since the last call, as far as they are what they were."""
        marked, self._out_of_range = self._out_of_range, {}
        return {tp: era for tp, era in marked.items() if self.find(tp, era) is not None}

    # --- what the fetcher has to look at again -----------------------------------------------------

    def _touch(self, tp: TopicPartition) -> None:
        self._touched[tp] = None

    def _touching(self, partitions: Iterable[TopicPartition]) -> Iterator[PartitionState]:
        """The states of those that are assigned, which the caller is about to change."""
        for tp in partitions:
            if (state := self._states.get(tp)) is not None:
                self._touch(tp)
                yield state

    def take_touched(self) -> Iterable[TopicPartition]:
        """Partitions of which something changed since the last call, or that came or went, each once."""
        touched, self._touched = self._touched, {}
        return touched
