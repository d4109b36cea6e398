"""A position that the leader does not have: reset by the policy, or told to the user with what the log does hold.

The broker's answer to such a fetch holds no offsets, so begin and end of the log are looked up before the user is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from kclient.errors import KclientError, OffsetOutOfRangeError
from kclient.log import get_logger
from kclient.positions.list_offsets import ask_leader, group_by_leader
from kclient.positions.list_offsets_messages import ListedOffsets
from kclient.positions.shared import Shared
from kclient.positions.strategy import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kclient.types import TopicPartition

logger = get_logger("kclient.positions")

KIND = "OFFSET_OUT_OF_RANGE"


class RangeLookup:
    """Acts on partitions that were marked out of range."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    def start_due(self) -> None:
        """Reset the marked partitions, or find out what to tell."""
        shared = self._shared
        eras = shared.positions.take_out_of_range()
        strategy = shared.policy.on_out_of_range
        if strategy is not None:
            for tp in eras:
                shared.positions.request_reset(tp, strategy, lost=True)
            return
        leaders, unknown = group_by_leader(shared.cluster.metadata, eras)
        self._tell({tp: eras[tp] for tp in unknown}, {}, {})
        for node_id, partitions in leaders.items():
            shared.spawn(self._ask(node_id, {tp: eras[tp] for tp in partitions}), KIND)

    async def _ask(self, node_id: int, eras: Mapping[TopicPartition, int]) -> None:
        starts, ends = await asyncio.gather(
            self._bounds(node_id, eras, EARLIEST_TIMESTAMP), self._bounds(node_id, eras, LATEST_TIMESTAMP)
        )
        self._tell(eras, starts, ends)

    async def _bounds(
        self, node_id: int, partitions: Mapping[TopicPartition, int], timestamp: int
    ) -> dict[TopicPartition, int]:
        shared = self._shared
        wanted = dict.fromkeys(partitions, timestamp)
        try:
            listed: ListedOffsets = await ask_leader(shared.cluster, node_id, wanted, shared.config.isolation)
        except KclientError as exc:
            logger.debug("The bounds of a log are not known: %s", exc)
            return {}
        return {tp: found.offset for tp, found in listed.found.items()}

    def _tell(
        self,
        eras: Mapping[TopicPartition, int],
        starts: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
    ) -> None:
        """One error a partition, so that its numbers are its own."""
        for tp, era in eras.items():
            state = self._shared.positions.find(tp, era)
            if state is not None and state.position is not None:
                bounds = starts.get(tp), ends.get(tp)
                failure = out_of_range(tp, state.position.offset, *bounds, replaced=state.topic_replaced)
                self._shared.errors.store(f"{KIND} {tp}", failure, {tp: era})


def out_of_range(
    tp: TopicPartition, position: int, log_start: int | None, log_end: int | None, *, replaced: bool = False
) -> OffsetOutOfRangeError:
    """The error with its numbers: what was wanted, what there is, how many records are gone."""
    missing = max(0, log_start - position) if log_start is not None and not replaced else None
    holds = "" if log_start is None or log_end is None else f", which holds {log_start} to {log_end}"
    cause = (
        "The topic was deleted and created anew: the offset is one of the old topic"
        if replaced
        else f"{missing} records were removed by retention or deletion before they were read"
        if missing
        else "The topic may have been recreated, or the log truncated"
    )
    return OffsetOutOfRangeError(
        f"Offset {position} of {tp} is not in the log{holds}. {cause}. "
        "Seek to an offset that exists (seek_to_beginning), or set on_out_of_range to 'earliest' or 'latest'.",
        partition=tp,
        position=position,
        partitions=(tp,),
        positions={tp: position},
        log_start=log_start,
        log_end=log_end,
        missing=missing,
    )
