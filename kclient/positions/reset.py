"""AWAIT_RESET → FETCHING: ListOffsets to each leader, not waited for by anybody.

An answer is used only where the partition is still what it was when the question was sent: a seek meanwhile wins, and
a second reset with another strategy discards the first one's answer. The new position has no offset epoch.
"""

from __future__ import annotations

from collections.abc import Mapping

from kclient.errors import KclientError
from kclient.log import get_logger
from kclient.positions.jumps import OffsetReset, tell
from kclient.positions.list_offsets import ask_leader, group_by_leader
from kclient.positions.list_offsets_messages import ListedOffsets
from kclient.positions.refusals import note
from kclient.positions.shared import Shared
from kclient.positions.state import FetchPosition
from kclient.text import format_names, format_partitions
from kclient.types import TopicPartition

logger = get_logger("kclient.positions")

KIND = "ListOffsets"


class ResetLookup:
    """Looks up where partitions without a position begin."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._backoff = shared.backoff()

    def start_due(self, now: float) -> None:
        """Ask every leader for the partitions that wait and whose backoff is over."""
        shared = self._shared
        due = shared.positions.needing_reset(now)
        if not due or KIND in shared.errors:
            return
        leaders, unknown = group_by_leader(shared.cluster.metadata, due)
        if unknown:
            logger.debug("ListOffsets waits for a leader of %s", format_partitions(unknown))
            shared.cluster.request_update(
                "the leader of a partition to be reset is not known", reset_backoff=False
            )
        wall_ms = shared.runtime.wall_ms()
        for node_id, partitions in leaders.items():
            eras = {tp: due[tp].era for tp in partitions}
            strategies = {tp: due[tp].reset_strategy for tp in partitions}
            wanted = {tp: strategy.timestamp(wall_ms) for tp, strategy in strategies.items() if strategy}
            shared.sent(eras)
            shared.spawn(self._ask(node_id, wanted, eras), KIND)

    async def _ask(
        self, node_id: int, wanted: Mapping[TopicPartition, int], eras: Mapping[TopicPartition, int]
    ) -> None:
        shared = self._shared
        timeout_ms = shared.config.request_timeout_ms
        try:
            listed = await ask_leader(shared.cluster, node_id, wanted, shared.config.isolation, timeout_ms)
        except KclientError as exc:
            logger.debug("ListOffsets to node %d failed: %s", node_id, exc)
            shared.failed(KIND, eras, exc, self._backoff.next())
        else:
            self._apply(listed, eras)
        finally:
            shared.positions.set_answered(eras)

    def _apply(self, listed: ListedOffsets, eras: Mapping[TopicPartition, int]) -> None:
        shared = self._shared
        begun: list[str] = []
        jumps: list[OffsetReset] = []
        for tp, found in listed.found.items():
            shared.saw_epoch(tp, found.leader_epoch)
            if shared.positions.find(tp, eras[tp]) is None:
                continue
            if (jump := self._begin_at(tp, found.offset)) is not None:
                jumps.append(jump)
            begun.append(f"{tp} at {found.offset}")
        tell(jumps, shared.jumped)
        note(shared.throttled, shared.runtime.now(), KIND, listed.refused)
        if begun:
            logger.info("Beginning %s", format_names(begun))
        if listed.retry:
            shared.positions.ask_again_at(
                {tp: eras[tp] for tp in listed.retry}, shared.runtime.now() + self._backoff.next()
            )
            shared.cluster.request_update("ListOffsets was refused for some partitions")
        else:
            self._backoff.reset()

    def _begin_at(self, tp: TopicPartition, offset: int) -> OffsetReset | None:
        """Fetch from there; what is returned is the jump away from a lost position, if it was one."""
        state = self._shared.positions.state(tp)
        lost, strategy = state.lost_offset, state.reset_strategy
        leader = self._shared.cluster.metadata.leader(tp)
        self._shared.positions.set_position(tp, FetchPosition(offset, None, leader))
        return None if lost is None or strategy is None else OffsetReset(tp, lost, offset, strategy.name)
