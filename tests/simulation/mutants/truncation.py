"""Bugs where logs are cut and topics made anew, M-110 to M-113."""

from __future__ import annotations

from typing import Any

from kclient.positions.state import AWAIT_VALIDATION, FETCHING, FetchPosition, PartitionState
from kclient.positions.table import Positions
from kclient.positions.validation import Validation
from kclient.types import TopicPartition
from tests.simulation.mutants.table import Patch, mutant


@mutant("M-110", "I-13")
def ignore_divergence(patch: Patch) -> None:
    """Stay where one is although the leader's log parts from what was read."""

    def judge(self: Validation, tp: TopicPartition, state: Any, end: Any, truncated: Any) -> None:
        self._shared.positions.complete_validation(tp)

    patch.put(Validation, "_judge", judge)


@mutant("M-112", "I-13")
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
