"""AWAIT_VALIDATION → FETCHING: is the position still in the log of the new leader? (KIP-320)

    the leader answers epoch and end offset of the position's epoch
    nothing known (−1)           the position is lost: reset policy, or LogTruncatedError
    end offset < position        the log was cut below it: go to the end offset if a policy allows jumps, else the error
    otherwise                    the position is valid

Answers are used only where the position is what it was when the question was sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from kclient.errors import KclientError, VersionError
from kclient.generated.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest
from kclient.generated.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse
from kclient.log import get_logger
from kclient.positions.jumps import TRUNCATED, OffsetReset, tell
from kclient.positions.refusals import note
from kclient.positions.shared import Shared
from kclient.positions.state import AWAIT_VALIDATION, EpochEnd, FetchPosition, PartitionState
from kclient.positions.truncation import log_truncated
from kclient.positions.validation_messages import build_request, split_answer
from kclient.types import TopicPartition

logger = get_logger("kclient.positions")

KIND = "OffsetForLeaderEpoch"
FIRST_USABLE_VERSION = 3


def can_validate(shared: Shared, node_id: int | None) -> bool:
    """Whether the node answers OffsetForLeaderEpoch 3; one not met yet counts as new enough."""
    if node_id is None:
        return True
    try:
        shared.cluster.usable_version(node_id, OffsetForLeaderEpochRequest, min_version=FIRST_USABLE_VERSION)
    except VersionError:
        return False
    return True


class Validation:
    """Checks positions after a change of leader."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._backoff = shared.backoff()

    def start_due(self, now: float) -> None:
        """Ask the leaders of positions whose backoff is over; judge at once what a fetch has brought."""
        due = self._shared.positions.needing_validation(now)
        if not due or KIND in self._shared.errors:
            return
        self._settle_divergences(due)
        by_node: dict[int | None, dict[TopicPartition, FetchPosition]] = {}
        for tp, state in due.items():
            if state.position is not None and state.fetch_state is AWAIT_VALIDATION and state.is_due(now):
                by_node.setdefault(state.position.leader.node_id, {})[tp] = state.position
        for node_id, asked in by_node.items():
            self._start(node_id, asked, {tp: due[tp].era for tp in asked})

    def _start(
        self,
        node_id: int | None,
        asked: Mapping[TopicPartition, FetchPosition],
        eras: Mapping[TopicPartition, int],
    ) -> None:
        shared = self._shared
        if node_id is None:
            shared.cluster.request_update(
                "the leader of a position to be checked is not known", reset_backoff=False
            )
        elif not can_validate(shared, node_id):
            self._complete(eras)
        else:
            shared.sent(eras)
            shared.spawn(self._ask(node_id, asked, eras), KIND)

    async def _ask(
        self, node_id: int, asked: Mapping[TopicPartition, FetchPosition], eras: Mapping[TopicPartition, int]
    ) -> None:
        shared = self._shared
        try:
            answer = await shared.cluster.request(
                node_id, build_request(asked), min_version=FIRST_USABLE_VERSION
            )
            self._apply(cast(OffsetForLeaderEpochResponse, answer), eras)
        except VersionError as exc:
            if can_validate(shared, node_id):
                shared.failed(KIND, eras, exc, self._backoff.next())
            else:
                self._complete(eras)
        except KclientError as exc:
            logger.debug("OffsetForLeaderEpoch to node %d failed: %s", node_id, exc)
            shared.failed(KIND, eras, exc, self._backoff.next())
        finally:
            shared.positions.set_answered(eras)

    def _complete(self, eras: Mapping[TopicPartition, int]) -> None:
        for tp, era in eras.items():
            if self._shared.positions.find(tp, era) is not None:
                self._shared.positions.complete_validation(tp)

    def _apply(self, answer: OffsetForLeaderEpochResponse, eras: Mapping[TopicPartition, int]) -> None:
        ends = split_answer(answer)
        note(self._shared.throttled, self._shared.runtime.now(), KIND, ends.refused)
        current = {tp: era for tp, era in eras.items() if self._shared.positions.find(tp, era) is not None}
        self._retry({tp: era for tp, era in current.items() if tp not in ends.found})
        self.settle({tp: ends.found[tp] for tp in current if tp in ends.found})

    def _settle_divergences(self, due: Mapping[TopicPartition, PartitionState]) -> None:
        """A position that the log does hold takes over its epoch, or the next fetch would be told the same again."""
        ends: dict[TopicPartition, EpochEnd] = {}
        for tp, state in due.items():
            if (end := state.divergence) is not None and (position := state.position) is not None:
                state.divergence = None
                if end.covers(position.offset):
                    moved = FetchPosition(position.offset, end.epoch, position.leader)
                    self._shared.positions.set_position(tp, moved)
                else:
                    ends[tp] = end
        self.settle(ends)

    def settle(self, ends: Mapping[TopicPartition, EpochEnd]) -> None:
        """Judge the positions of partitions that are AWAIT_VALIDATION by what their leaders say."""
        truncated: dict[TopicPartition, EpochEnd] = {}
        jumps: list[OffsetReset] = []
        strategy = self._shared.policy.on_out_of_range
        for tp, end in ends.items():
            position = self._shared.positions.state(tp).position
            if position is None:
                continue
            if end.covers(position.offset):
                self._shared.positions.complete_validation(tp)
            elif strategy is None:
                truncated[tp] = end
            elif end.is_known:
                cut = FetchPosition(end.end_offset, end.epoch, position.leader)
                self._shared.positions.set_position(tp, cut)
                jumps.append(OffsetReset(tp, position.offset, cut.offset, TRUNCATED))
            else:
                self._shared.positions.request_reset(tp, strategy, lost=True)
        tell(jumps, self._shared.jumped)
        if truncated:
            self._tell_user(truncated)

    def _retry(self, eras: Mapping[TopicPartition, int]) -> None:
        if not eras:
            self._backoff.reset()
            return
        self._shared.positions.ask_again_at(eras, self._shared.runtime.now() + self._backoff.next())
        self._shared.cluster.request_update("OffsetForLeaderEpoch was refused for some partitions")

    def _tell_user(self, truncated: Mapping[TopicPartition, EpochEnd]) -> None:
        """One error for all truncations of an answer; their positions stay."""
        shared = self._shared
        states = {tp: shared.positions.state(tp) for tp in truncated}
        eras = {tp: state.era for tp, state in states.items()}
        offsets = {tp: state.position.offset for tp, state in states.items() if state.position is not None}
        shared.positions.ask_again_at(eras, shared.runtime.now() + self._backoff.next())
        shared.errors.store(KIND, log_truncated(offsets, truncated), eras)
