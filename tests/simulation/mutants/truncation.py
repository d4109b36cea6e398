"""Bugs where logs are cut and topics recreated, M-50 and M-110 to M-113."""

from __future__ import annotations

from typing import Any

from kclient.fetch.buffer import CompletedFetch
from kclient.fetch.response import FetchResponseHandler
from kclient.group import offset_commit, offset_fetch
from kclient.positions.state import AWAIT_VALIDATION, EARLIEST, FETCHING, FetchPosition, PartitionState
from kclient.positions.table import Positions
from kclient.positions.validation import PositionValidator
from kclient.simulation.process import current_name
from kclient.types import TopicPartition
from tests.simulation.mutants.reading_scripts import cut_and_unchecked
from tests.simulation.mutants.surfacing import fetched, surface
from tests.simulation.mutants.table import Patch, mutant


@mutant("M-110", "I-13", "I-14", look=cut_and_unchecked)
def ignore_divergence(patch: Patch) -> None:
    """Stay where one is although the leader's log parts from what was read."""

    def apply_epoch_ends(self: PositionValidator, ends: Any) -> None:
        for tp in ends:
            self._context.positions.complete_validation(tp)

    patch.put(PositionValidator, "apply_epoch_ends", apply_epoch_ends)


@mutant("M-111", "I-13", "I-15", seed=156)
def unknown_epoch_is_loss(patch: Patch) -> None:
    """Give up a position with an unknown epoch when another broker leads: its log may hold it all the same."""

    def follow_leader(self: Positions, tp: TopicPartition, leader: Any, *args: Any, **options: Any) -> None:
        position = self.state(tp).position
        moved = position is not None and leader.node_id is not None and position.leader != leader
        if position is not None and moved and position.offset_epoch is None:
            self.request_offset_reset(tp, EARLIEST, lost=True)
        else:
            before(self, tp, leader, *args, **options)

    before = patch.put(Positions, "follow_leader", follow_leader)


@mutant("M-113", "I-14", "I-01", seed=22)
def commit_for_any_topic(patch: Patch) -> None:
    """Commit under the name of a topic, whichever it is, and go on committing a place in the one that is gone."""

    def ids_by_name(metadata: Any, partitions: Any) -> None:
        return None

    def follow_topic(self: Positions, tp: TopicPartition, topic_id: bytes) -> None:
        self.state(tp).topic_id = topic_id

    patch.put(offset_commit, "ids_by_name", ids_by_name)
    patch.put(offset_fetch, "ids_by_name", ids_by_name)
    patch.put(Positions, "follow_topic", follow_topic)


@mutant("M-112", "I-13", look=cut_and_unchecked)
def deliver_unchecked(patch: Patch) -> None:
    """Deliver records while it is not known whether the position is still in the log."""

    def is_fetchable(self: PartitionState) -> bool:
        stands = self.fetch_state in (FETCHING, AWAIT_VALIDATION)
        return stands and not (self.paused or self.pending_revocation or self.out_of_range)

    def advance(self: Positions, tp: TopicPartition, offset: int, offset_epoch: int | None) -> None:
        state = self.state(tp)
        if state.position is not None:
            state.position = FetchPosition(offset, offset_epoch, state.position.leader)

    patch.put(PartitionState, "is_fetchable", property(is_fetchable))
    patch.put(Positions, "advance", advance)


@mutant("M-50", "I-14", seed=86)
def old_topic_comes_back(patch: Patch) -> None:
    """Deliver a response of the topic that was deleted when the one of the same name is read already."""

    def take_one(self: FetchResponseHandler, node_id: int, asked: Any, partition: Any, frame: Any) -> Any:
        fetch = before(self, node_id, asked, partition, frame)
        place = current_name(), asked.tp
        seen = responses.setdefault(place, [])
        if partition.records and not partition.error_code and asked.topic_id:
            one = fetched(asked, partition, frame)
            if seen and seen[0][0] != asked.topic_id and len(seen) > 1:
                late.extend([seen.pop(0)[1]])
            seen[:] = [old for old in seen if old[0] != asked.topic_id] + [(asked.topic_id, one)]
        return fetch

    responses: dict[Any, list[tuple[bytes, CompletedFetch]]] = {}
    late = surface(patch)
    before = patch.put(FetchResponseHandler, "_handle_partition", take_one)
