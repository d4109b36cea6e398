"""The task that gives every assigned partition a valid position and keeps it valid.

    metadata changed    → each position follows its leader, perhaps into AWAIT_VALIDATION
    INITIALIZING        → committed offset, else reset policy             committed.py
    out of range        → reset policy, or the error with its numbers     out_of_range.py
    AWAIT_RESET         → ListOffsets                                     reset.py
    AWAIT_VALIDATION    → OffsetForLeaderEpoch                            validation.py

No question waits for another, nobody waits for an answer. Each answer is applied when it comes, each error is kept for
the next poll, each retry has its backoff. The loop sleeps until positions or metadata change or a retry is due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from kclient.change_signal import wait_any
from kclient.config import Config
from kclient.errors import InternalError, KclientError
from kclient.positions.committed import CommittedLookup, FetchCommitted
from kclient.positions.jumps import Jumped
from kclient.positions.out_of_range import RangeLookup
from kclient.positions.reset import ResetLookup
from kclient.positions.shared import Shared
from kclient.positions.stored_errors import StoredErrors
from kclient.positions.strategy import reset_policy
from kclient.positions.table import Positions
from kclient.positions.validation import Validation, can_validate
from kclient.runtime import Runtime
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.network.cluster import Cluster


class PositionUpkeep:
    """One for a consumer's life. `committed` asks the group's coordinator; None for a consumer without a group.
    `jumped` is called for each position that the log lost and that was moved.
    """

    def __init__(
        self,
        cluster: Cluster,
        positions: Positions,
        config: Config,
        runtime: Runtime,
        committed: FetchCommitted | None = None,
        jumped: Jumped = lambda jump: None,
    ) -> None:
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._leaders_seen = (-1, -1)
        self._errors = StoredErrors(positions)
        policy = reset_policy(config)
        self._shared = Shared(cluster, positions, config, runtime, policy, self._errors, self._spawn, jumped)
        self._committed = CommittedLookup(self._shared, committed)
        self._resets = ResetLookup(self._shared)
        self._validation = Validation(self._shared)
        self._out_of_range = RangeLookup(self._shared)

    async def run(self) -> None:
        """Work until cancelled; then nothing is left running."""
        positions, metadata = self._shared.positions, self._shared.cluster.metadata
        try:
            while True:
                seen = (
                    (positions.changed, positions.changed.count),
                    (metadata.changed, metadata.changed.count),
                )
                now = self._shared.runtime.now()
                self._follow_leaders()
                self._committed.start_due(now)
                self._out_of_range.start_due()
                self._resets.start_due(now)
                self._validation.start_due(now)
                await wait_any(*seen, timeout=self._time_to_retry(now))
        finally:
            self._committed.forget()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def take_error(self) -> KclientError | None:
        """An error that the next poll has to raise, once; the work it stopped goes on."""
        return self._errors.take()

    def error_about(self, tp: TopicPartition) -> KclientError | None:
        """The error of this partition that the next poll raises, without taking it."""
        return self._errors.about(tp)

    @property
    def asks_committed(self) -> bool:
        """Whether committed offsets are being asked for."""
        return self._committed.is_asking

    @property
    def committed_retry_at(self) -> float:
        """When they may be asked for again, in the loop's time."""
        return self._committed.retry_at

    def forget_pending(self) -> None:
        """The generation changed: an OffsetFetch in flight is not waited for any more."""
        self._committed.forget()
        self._shared.positions.changed.notify()

    def _follow_leaders(self) -> None:
        metadata = self._shared.cluster.metadata
        news = metadata.changed.count, self._shared.positions.assignment_id
        if self._leaders_seen == news:
            return
        self._leaders_seen = news
        checkable: dict[int | None, bool] = {}
        for tp, state in self._shared.positions.items():
            topic_id = metadata.topic_id(tp.topic)
            if topic_id is not None and topic_id != state.topic_id:
                self._shared.positions.follow_topic(tp, topic_id)
            leader = metadata.leader(tp)
            if state.position is None or state.position.leader == leader:
                continue
            if leader.node_id not in checkable:
                checkable[leader.node_id] = can_validate(self._shared, leader.node_id)
            self._shared.positions.follow_leader(tp, leader, can_validate=checkable[leader.node_id])

    def _time_to_retry(self, now: float) -> float | None:
        """Seconds until something may be asked again, None when nothing waits for time to pass."""
        times = [self._shared.positions.next_retry(now)]
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
        if not task.cancelled() and (problem := task.exception()) is not None:
            self._errors.store(task.get_name(), InternalError.of(task.get_name(), problem), {})
