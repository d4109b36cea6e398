"""The task that gives every assigned partition a valid position and keeps it valid.

    metadata changed    → each position follows its leader, perhaps into AWAIT_VALIDATION
    INITIALIZING        → committed offset, else reset policy             committed.py
    out of range        → reset policy, or OffsetOutOfRangeError          reset.py
    AWAIT_RESET         → ListOffsets                                     reset.py
    AWAIT_VALIDATION    → OffsetForLeaderEpoch                            validation.py

The lookups run side by side in the background, and no call waits for them. A response is applied when it arrives, an
error is stored for the next poll, and every retry has a backoff. The task sleeps until positions or metadata change or
a retry is due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from kclient.change_signal import wait_any
from kclient.config import Config
from kclient.errors import InternalError, KclientError
from kclient.positions.committed import CommittedLookup, FetchCommitted
from kclient.positions.lookup_context import LookupContext, OnOffsetReset, StoredErrors
from kclient.positions.reset import OutOfRangeLookup, ResetLookup
from kclient.positions.state import reset_policy
from kclient.positions.table import Positions
from kclient.positions.validation import PositionValidator, can_validate
from kclient.runtime import Runtime
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.network.cluster import Cluster


class PositionUpdater:
    """The position updater of one consumer.

    `committed` fetches committed offsets from the group coordinator; None for a consumer without a group.
    `on_offset_reset` is called for each position that was no longer in the log and was moved.
    """

    def __init__(
        self,
        cluster: Cluster,
        positions: Positions,
        config: Config,
        runtime: Runtime,
        committed: FetchCommitted | None = None,
        on_offset_reset: OnOffsetReset = lambda reset: None,
    ) -> None:
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._leaders_seen = (-1, -1)
        self._errors = StoredErrors(positions)
        policy = reset_policy(config)
        self._context = LookupContext(
            cluster, positions, config, runtime, policy, self._errors, self._spawn, on_offset_reset
        )
        self._committed = CommittedLookup(self._context, committed)
        self._resets = ResetLookup(self._context)
        self._validation = PositionValidator(self._context)
        self._out_of_range = OutOfRangeLookup(self._context)

    async def run(self) -> None:
        """Run until cancelled, then cancel all lookups and wait for them."""
        positions, metadata = self._context.positions, self._context.cluster.metadata
        try:
            while True:
                seen = (
                    (positions.changed, positions.changed.count),
                    (metadata.changed, metadata.changed.count),
                )
                now = self._context.runtime.now()
                self._follow_leaders()
                self._committed.start_due(now)
                self._out_of_range.start_due()
                self._resets.start_due(now)
                self._validation.start_due(now)
                await wait_any(*seen, timeout=self._time_to_retry(now))
        finally:
            self._committed.cancel()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def take_error(self) -> KclientError | None:
        """Remove and return the error that the next poll raises. The lookup that it stopped starts again."""
        return self._errors.take()

    def error_about(self, tp: TopicPartition) -> KclientError | None:
        """Return the error about this partition that the next poll will raise, without removing it."""
        return self._errors.about(tp)

    @property
    def committed_in_flight(self) -> bool:
        """Whether an OffsetFetch is in flight."""
        return self._committed.in_flight

    @property
    def committed_retry_at(self) -> float:
        """When OffsetFetch may be sent again, in seconds of the event loop."""
        return self._committed.retry_at

    def cancel_committed_lookup(self) -> None:
        """Cancel an OffsetFetch in flight, because the generation changed."""
        self._committed.cancel()
        self._context.positions.changed.notify()

    def _follow_leaders(self) -> None:
        metadata = self._context.cluster.metadata
        news = metadata.changed.count, self._context.positions.assignment_id
        if self._leaders_seen == news:
            return
        self._leaders_seen = news
        checkable: dict[int | None, bool] = {}
        for tp, state in self._context.positions.items():
            topic_id = metadata.topic_id(tp.topic)
            if topic_id is not None and topic_id != state.topic_id:
                self._context.positions.follow_topic(tp, topic_id)
            leader = metadata.leader(tp)
            if state.position is None or state.position.leader == leader:
                continue
            if leader.node_id not in checkable:
                checkable[leader.node_id] = can_validate(self._context, leader.node_id)
            self._context.positions.follow_leader(tp, leader, can_validate=checkable[leader.node_id])

    def _time_to_retry(self, now: float) -> float | None:
        """Return the seconds until the next retry, None if none is waiting."""
        times = [self._context.positions.next_retry(now)]
        if self._committed.retry_at > now:
            times.append(self._committed.retry_at)
        return min((when - now for when in times if when is not None), default=None)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=f"positions: {name}")
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            self._errors.store(task.get_name(), InternalError.of(task.get_name(), error), {})
