"""Bugs where logs are cut and topics made anew, M-50, M-110 and M-112."""

from __future__ import annotations

from typing import Any

from kclient.fetch.answers import Answers
from kclient.fetch.completed import CompletedFetch, end_of
from kclient.positions.state import AWAIT_VALIDATION, FETCHING, FetchPosition, PartitionState
from kclient.positions.table import Positions
from kclient.positions.validation import Validation
from kclient.types import TopicPartition
from tests.simulation.hosts import current_name
from tests.simulation.mutants.surfacing import surface
from tests.simulation.mutants.table import Patch, mutant


@mutant("M-110", "I-13", seed=113)
def ignore_divergence(patch: Patch) -> None:
    """Stay where one is although the leader's log parts from what was read."""

    def judge(self: Validation, tp: TopicPartition, state: Any, end: Any, truncated: Any) -> None:
        self._shared.positions.complete_validation(tp)

    patch.put(Validation, "_judge", judge)


@mutant("M-112", "I-13", seed=179)
def deliver_unchecked(patch: Patch) -> None:
    """Hand out records while it is not known whether the position is still in the log."""

    def is_fetchable(self: PartitionState) -> bool:
        stands = self.fetch_state in (FETCHING, AWAIT_VALIDATION)
        return stands and not (self.paused or self.pending_revocation or self.out_of_range)

    def advance(self: Positions, tp: TopicPartition, offset: int, offset_epoch: int | None) -> None:
        state = self.state(tp)
        if state.position is not None:
            state.position = FetchPosition(offset, offset_epoch, state.position.leader)

    patch.put(PartitionState, "is_fetchable", property(is_fetchable))
    patch.put(Positions, "advance", advance)


@mutant("M-50", "I-14", seed=121)
def old_topic_comes_back(patch: Patch) -> None:
    """Hand out an answer of the topic that was deleted when the one of the same name is read already."""

    def take_one(self: Answers, node_id: int, asked: Any, partition: Any, frame: Any) -> Any:
        fetch = before(self, node_id, asked, partition, frame)
        place = current_name(), asked.tp
        seen = answers.setdefault(place, [])
        if partition.records and not partition.error_code and asked.topic_id:
            data = memoryview(partition.records)
            aborted = partition.aborted_transactions
            one = CompletedFetch(asked.tp, asked.era, asked.offset, frame, data, end_of(data), aborted)
            if seen and seen[0][0] != asked.topic_id and len(seen) > 1:
                late.extend([seen.pop(0)[1]])
            seen[:] = [old for old in seen if old[0] != asked.topic_id] + [(asked.topic_id, one)]
        return fetch

    answers: dict[Any, list[tuple[bytes, CompletedFetch]]] = {}
    late = surface(patch)
    before = patch.put(Answers, "_take_one", take_one)
