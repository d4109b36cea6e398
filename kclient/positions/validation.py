"""AWAIT_VALIDATION → FETCHING: is the position still in the log of the new leader? (KIP-320)

    the leader answers epoch and end offset of the position's epoch
    nothing known (−1)           the position is lost: reset policy, or LogTruncatedError
    end offset < position        the log was cut below it: go to the end offset if a policy allows jumps, else the error
    otherwise                    the position is valid

Answers are used only where the position is what it was when the question was sent.

Spec: S0-04, S0-18, B.9, B.15.10.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import cast

from kclient.errors import KclientError, LogTruncatedError, VersionError
from kclient.generated.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest
from kclient.generated.offset_for_leader_epoch_response import EpochEndOffset, OffsetForLeaderEpochResponse
from kclient.positions.list_offsets import names_of
from kclient.positions.shared import Shared
from kclient.positions.state import FetchPosition, PartitionState
from kclient.positions.validation_messages import build_request, split_answer
from kclient.types import OffsetAndMetadata, TopicPartition

logger = logging.getLogger("kclient.positions")

KIND = "OffsetForLeaderEpoch"
FIRST_USABLE_VERSION = 3


def can_validate(shared: Shared, node_id: int | None) -> bool:
    """Whether the node answers OffsetForLeaderEpoch 3; one not met yet counts as new enough. Spec: B.6.4."""
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
        """Ask the leaders of the positions that wait and whose backoff is over."""
        due = self._shared.positions.needing_validation(now)
        if not due or KIND in self._shared.errors:
            return
        by_node: dict[int | None, dict[TopicPartition, FetchPosition]] = {}
        for tp, state in due.items():
            if state.position is not None:
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
        except VersionError as failure:
            if can_validate(shared, node_id):
                shared.failed(KIND, eras, failure, self._backoff.next())
            else:
                self._complete(eras)
        except KclientError as failure:
            logger.debug("OffsetForLeaderEpoch to node %d failed: %s", node_id, failure)
            shared.failed(KIND, eras, failure, self._backoff.next())
        finally:
            shared.positions.set_answered(eras)

    def _complete(self, eras: Mapping[TopicPartition, int]) -> None:
        for tp, era in eras.items():
            if self._shared.positions.find(tp, era) is not None:
                self._shared.positions.complete_validation(tp)

    def _apply(self, answer: OffsetForLeaderEpochResponse, eras: Mapping[TopicPartition, int]) -> None:
        """Spec: B.9, B.15.10. Raises TopicAuthorizationError; positions stay then (D-44)."""
        results = split_answer(answer)
        truncated: dict[TopicPartition, OffsetAndMetadata | None] = {}
        retry: dict[TopicPartition, int] = {}
        for tp, era in eras.items():
            state = self._shared.positions.find(tp, era)
            if state is None:
                continue
            if tp in results:
                self._judge(tp, state, results[tp], truncated)
            else:
                retry[tp] = era
        self._retry(retry)
        if truncated:
            self._tell(truncated, eras)

    def _judge(
        self,
        tp: TopicPartition,
        state: PartitionState,
        end: EpochEndOffset,
        truncated: dict[TopicPartition, OffsetAndMetadata | None],
    ) -> None:
        positions, strategy, position = (
            self._shared.positions,
            self._shared.policy.on_out_of_range,
            state.position,
        )
        if position is None:
            return
        known = end.end_offset >= 0 and end.leader_epoch >= 0
        if known and end.end_offset >= position.offset:
            positions.complete_validation(tp)
        elif strategy is None:
            truncated[tp] = OffsetAndMetadata(end.end_offset, end.leader_epoch) if known else None
        elif known:
            positions.set_position(tp, FetchPosition(end.end_offset, end.leader_epoch, position.leader))
            logger.warning(
                "The log of %s was truncated: going back from offset %d to %d",
                tp,
                position.offset,
                end.end_offset,
            )
        else:
            positions.request_reset(tp, strategy, lost=True)

    def _retry(self, eras: Mapping[TopicPartition, int]) -> None:
        if not eras:
            self._backoff.reset()
            return
        self._shared.positions.ask_again_at(eras, self._shared.runtime.now() + self._backoff.next())
        self._shared.cluster.request_update("OffsetForLeaderEpoch was refused for some partitions")

    def _tell(
        self,
        truncated: Mapping[TopicPartition, OffsetAndMetadata | None],
        eras: Mapping[TopicPartition, int],
    ) -> None:
        """One error for all truncations of an answer; their positions stay."""
        shared = self._shared
        told = {tp: eras[tp] for tp in truncated}
        offsets = {
            tp: state.position.offset
            for tp in truncated
            if (state := shared.positions.state(tp)).position is not None
        }
        shared.positions.ask_again_at(told, shared.runtime.now() + self._backoff.next())
        failure = LogTruncatedError(
            f"The log of {names_of(truncated)} was cut below what was consumed. An unclean leader election lost "
            "records that were read before. Seek to where to go on (`divergent` says where the logs part), "
            "or set auto_offset_reset.",
            partitions=tuple(truncated),
            positions=offsets,
            divergent=dict(truncated),
        )
        shared.errors.store(KIND, failure, told)
