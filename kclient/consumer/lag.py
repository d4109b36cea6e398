"""How far behind the end of an assigned partition its reader is.

Where the end is not known yet, one errand asks for the ends of all partitions that somebody wanted meanwhile, a
request to each leader: who looks at a thousand partitions one after the other does not ask a thousand times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kclient.errors import KclientError
from kclient.log import get_logger
from kclient.network.backoff import Backoff
from kclient.positions.list_offsets import ask_leaders
from kclient.positions.state import PartitionState
from kclient.positions.strategy import LATEST_TIMESTAMP
from kclient.types import IsolationLevel, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kclient.consumer.session import Session

log = get_logger("kclient.consumer")


class Lag:
    """The lag of one consumer's partitions, and the ends that it still has to learn."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._isolation = session.config.isolation
        self._unknown: dict[TopicPartition, PartitionState] = {}
        self._asked: dict[TopicPartition, PartitionState] = {}
        self._asking = False

    def current(self, partition: TopicPartition) -> int | None:
        """Records behind what was handed out, None until both ends are known; then the end is asked for."""
        session = self._session
        state = session.positions.state(partition)
        end = self._end(state)
        if end is None:
            self._learn(partition, state)
        position = session.positions.position(partition)
        if end is None or position is None:
            return None
        here = OffsetAndMetadata(position.offset, position.offset_epoch)
        consumed = here if state.topic_replaced else session.hand.consumed({partition: here})[partition]
        return max(0, end - consumed.offset)

    def learn_ends(self, ends: Mapping[TopicPartition, int]) -> None:
        """Ends that a look-up brought: of partitions that are assigned now they count, as in Java."""
        for partition, end in ends.items():
            if (state := self._session.positions.find(partition)) is not None:
                self._note(state, end)

    def _end(self, state: PartitionState) -> int | None:
        if self._isolation is IsolationLevel.READ_COMMITTED:
            return state.last_stable_offset
        return state.high_watermark

    def _learn(self, partition: TopicPartition, state: PartitionState) -> None:
        if not self._session.running or partition in self._asked:
            return
        self._unknown[partition] = state
        if not self._asking:
            self._asking = True
            self._session.flows.errand("look at the ends of partitions", self._ask())

    async def _ask(self) -> None:
        backoff = Backoff.for_retries(self._session.config, self._session.runtime)
        try:
            while self._unknown:
                self._asked, self._unknown = self._unknown, {}
                answered = await self._ask_once()
                self._asked = {}
                if not answered:
                    await asyncio.sleep(backoff.next())
        except KclientError as exc:
            log.debug("the ends of partitions are not known yet: %s", exc)
        finally:
            self._asking, self._asked = False, {}

    async def _ask_once(self) -> bool:
        """Whether every partition was answered. For the others, who wants to know asks again."""
        cluster, wanted = self._session.cluster, self._asked
        found = await ask_leaders(cluster, dict.fromkeys(wanted, LATEST_TIMESTAMP), self._isolation)
        for partition, answer in found.items():
            if answer is not None:
                self._note(wanted[partition], answer.offset)
        if len(found) < len(wanted):
            cluster.request_update("a partition whose end was asked for has no leader that answers")
        return len(found) == len(wanted)

    def _note(self, state: PartitionState, end: int) -> None:
        if self._isolation is IsolationLevel.READ_COMMITTED:
            state.last_stable_offset = end
        else:
            state.high_watermark = end
