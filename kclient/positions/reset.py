"""Resets of positions: AWAIT_RESET → FETCHING by ListOffsets, and positions that the leader does not have.

    AWAIT_RESET      ListOffsets to each leader, in the background
    out of range     a reset by the policy, or OffsetOutOfRangeError with the range that the log does hold

A response is used only where the position has not changed since the request was sent: a seek meanwhile wins, and a
second reset with another strategy discards the first one's response. The new position has no offset epoch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from kclient.errors import KclientError, OffsetOutOfRangeError
from kclient.log import get_logger
from kclient.positions.list_offsets import ListedOffsets, group_by_leader, list_offsets_from
from kclient.positions.lookup_context import LookupContext, OffsetReset, report_resets
from kclient.positions.state import EARLIEST_TIMESTAMP, LATEST, LATEST_TIMESTAMP, FetchPosition
from kclient.text import format_names, format_partitions
from kclient.types import TopicPartition

logger: Final = get_logger("kclient.positions")

LIST_OFFSETS = "ListOffsets"
OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"


class ResetLookup:
    """Looks up where partitions without a position begin."""

    def __init__(self, context: LookupContext) -> None:
        self._context = context
        self._backoff = context.backoff()

    def start_due(self, now: float) -> None:
        """Send ListOffsets to every leader for the waiting partitions whose backoff is over."""
        context = self._context
        due = context.positions.partitions_needing_reset(now)
        if not due or LIST_OFFSETS in context.errors:
            return
        leaders, unknown = group_by_leader(context.cluster.metadata, due)
        if unknown:
            logger.debug("ListOffsets waits for a leader of %s", format_partitions(unknown))
            context.cluster.request_update(
                "the leader of a partition to be reset is not known", reset_backoff=False
            )
        wall_ms = context.runtime.wall_ms()
        for node_id, partitions in leaders.items():
            versions = {tp: due[tp].position_version for tp in partitions}
            strategies = {tp: due[tp].reset_strategy for tp in partitions}
            wanted = {tp: strategy.timestamp(wall_ms) for tp, strategy in strategies.items() if strategy}
            context.sent(versions)
            context.spawn(self._send(node_id, wanted, versions), LIST_OFFSETS)

    async def _send(
        self, node_id: int, wanted: Mapping[TopicPartition, int], versions: Mapping[TopicPartition, int]
    ) -> None:
        context = self._context
        timeout_ms = context.config.request_timeout_ms
        try:
            listed = await list_offsets_from(
                context.cluster, node_id, wanted, context.config.isolation, timeout_ms
            )
        except KclientError as exc:
            logger.debug("ListOffsets to node %d failed: %s", node_id, exc)
            context.failed(LIST_OFFSETS, versions, exc, self._backoff.next())
        else:
            self._apply(listed, versions)
        finally:
            context.positions.clear_in_flight(versions)

    def _apply(self, listed: ListedOffsets, versions: Mapping[TopicPartition, int]) -> None:
        context = self._context
        begun: list[str] = []
        resets: list[OffsetReset] = []
        for tp, found in listed.found.items():
            context.update_last_seen_epoch(tp, found.leader_epoch)
            if context.positions.find(tp, versions[tp]) is None:
                continue
            if (reset := self._begin_at(tp, found.offset)) is not None:
                resets.append(reset)
            begun.append(f"{tp} at {found.offset}")
        report_resets(resets, context.on_offset_reset)
        context.log_refused(LIST_OFFSETS, listed.refused)
        if begun:
            logger.info("Beginning %s", format_names(begun))
        if listed.retry:
            context.positions.set_next_allowed_retry(
                {tp: versions[tp] for tp in listed.retry}, context.runtime.now() + self._backoff.next()
            )
            context.cluster.request_update("ListOffsets was refused for some partitions")
        else:
            self._backoff.reset()

    def _begin_at(self, tp: TopicPartition, offset: int) -> OffsetReset | None:
        """Set the position. Return the reset event if it replaces a lost position."""
        state = self._context.positions.state(tp)
        lost, strategy = state.lost_offset, state.reset_strategy
        leader = self._context.cluster.metadata.leader(tp)
        # The epoch of the data is not known before the first fetch, so this position is not validated.
        self._context.positions.set_position(tp, FetchPosition(offset, None, leader))
        state.began_at_end = offset if strategy == LATEST else None
        return None if lost is None or strategy is None else OffsetReset(tp, lost, offset, strategy.name)


class OutOfRangeLookup:
    """Resets partitions that were marked out of range, or stores OffsetOutOfRangeError.

    A Fetch response with that code has no offsets, so the error needs ListOffsets for begin and end of the log.
    """

    def __init__(self, context: LookupContext) -> None:
        self._context = context

    def start_due(self) -> None:
        """Reset the marked partitions, or look up what their logs hold."""
        context = self._context
        versions = context.positions.take_out_of_range()
        strategy = context.policy.on_offset_out_of_range
        if strategy is not None:
            for tp in versions:
                context.positions.request_offset_reset(tp, strategy, lost=True)
            return
        leaders, unknown = group_by_leader(context.cluster.metadata, versions)
        # Without a leader to ask, the error has the position and not the bounds of the log.
        self._store_errors({tp: versions[tp] for tp in unknown}, {}, {})
        for node_id, partitions in leaders.items():
            context.spawn(self._look_up(node_id, {tp: versions[tp] for tp in partitions}), OUT_OF_RANGE)

    async def _look_up(self, node_id: int, versions: Mapping[TopicPartition, int]) -> None:
        starts, ends = await asyncio.gather(
            self._offsets_at(node_id, versions, EARLIEST_TIMESTAMP),
            self._offsets_at(node_id, versions, LATEST_TIMESTAMP),
        )
        self._store_errors(versions, starts, ends)

    async def _offsets_at(
        self, node_id: int, partitions: Mapping[TopicPartition, int], timestamp: int
    ) -> dict[TopicPartition, int]:
        context = self._context
        wanted = dict.fromkeys(partitions, timestamp)
        try:
            listed = await list_offsets_from(context.cluster, node_id, wanted, context.config.isolation)
        except KclientError as exc:
            logger.debug("The bounds of a log are not known: %s", exc)
            return {}
        return {tp: found.offset for tp, found in listed.found.items()}

    def _store_errors(
        self,
        versions: Mapping[TopicPartition, int],
        starts: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
    ) -> None:
        """Store one error per partition, so that each error has the numbers of its partition."""
        for tp, version in versions.items():
            state = self._context.positions.find(tp, version)
            if state is not None and state.position is not None:
                error = offset_out_of_range(
                    tp, state.position.offset, starts.get(tp), ends.get(tp), replaced=state.topic_replaced
                )
                self._context.errors.store(f"{OUT_OF_RANGE} {tp}", error, {tp: version})


def offset_out_of_range(
    tp: TopicPartition, position: int, log_start: int | None, log_end: int | None, *, replaced: bool = False
) -> OffsetOutOfRangeError:
    """Return the error with the position, the range of the log, and how many records are missing.

    `replaced`: the topic was deleted and created again, so the two ranges cannot be compared.
    """
    missing = max(0, log_start - position) if log_start is not None and not replaced else None
    holds = "" if log_start is None or log_end is None else f", which holds {log_start} to {log_end}"
    cause = (
        "The topic was deleted and created again: the offset belongs to the old topic"
        if replaced
        else f"{missing} records were removed by retention or deletion before they were read"
        if missing
        else "The topic may have been recreated, or the log truncated"
    )
    return OffsetOutOfRangeError(
        f"Offset {position} of {tp} is not in the log{holds}. {cause}. "
        "Seek to an offset that exists (seek_to_beginning), or set on_offset_out_of_range to 'earliest' or 'latest'.",
        partition=tp,
        position=position,
        partitions=(tp,),
        positions={tp: position},
        log_start=log_start,
        log_end=log_end,
        missing=missing,
    )
