"""The task that gives every assigned partition a valid position and keeps it valid.

    metadata changed    → each position follows its leader, perhaps into AWAIT_VALIDATION
    INITIALIZING        → committed offset, else reset policy             committed.py
    out of range        → reset policy, or the error with its numbers     out_of_range.py
    AWAIT_RESET         → ListOffsets                                     reset.py
    AWAIT_VALIDATION    → OffsetForLeaderEpoch                            validation.py

No question waits for another, nobody waits for an answer. Each answer is applied when it comes, each error is kept for
the next poll, each retry has its backoff. The loop sleeps until positions or metadata change or a retry is due.

Spec: S0-04…S0-08, S0-56, B.7.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from kclient.config import Config
from kclient.errors import InternalError, KclientError
from kclient.notice import wait_any
from kclient.positions.committed import CommittedLookup, FetchCommitted
from kclient.positions.out_of_range import RangeLookup
from kclient.positions.reset import ResetLookup
from kclient.positions.shared import Shared
from kclient.positions.stored_errors import StoredErrors
from kclient.positions.strategy import reset_policy
from kclient.positions.table import Positions
from kclient.positions.validation import Validation, can_validate
from kclient.runtime import Runtime

if TYPE_CHECKING:
    from kclient.network.cluster import Cluster


class PositionUpkeep:
    """One for a consumer's life. `committed` asks the group's coordinator; None for a consumer without a group.

    Spec: S0-02, B.7.
    """

    def __init__(
        self,
        cluster: Cluster,
        positions: Positions,
        config: Config,
        runtime: Runtime,
        committed: FetchCommitted | None = None,
    ) -> None:
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._leaders_seen = -1
        self._errors = StoredErrors(positions)
        policy = reset_policy(config.auto_offset_reset)
        self._shared = Shared(cluster, positions, config, runtime, policy, self._errors, self._spawn)
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
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def take_error(self) -> KclientError | None:
        """An error that the next poll has to raise, once; the work it stopped goes on. Spec: S0-04, S0-42."""
        return self._errors.take()

    def forget_pending(self) -> None:
        """The generation changed: an OffsetFetch in flight is not waited for any more. Spec: S0-58."""
        self._committed.forget()
        self._shared.positions.changed.notify()

    def _follow_leaders(self) -> None:
        """Spec: S0-04, B.6.4, B.7."""
        metadata = self._shared.cluster.metadata
        if self._leaders_seen == metadata.changed.count:
            return
        self._leaders_seen = metadata.changed.count
        for tp in self._shared.positions.assigned():
            leader = metadata.leader(tp)
            self._shared.positions.follow_leader(
                tp, leader, can_validate=can_validate(self._shared, leader.node_id)
            )

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
            bug = InternalError(
                f"{task.get_name()} failed: {problem!r}. This is a bug of kclient. Please report it."
            )
            bug.__cause__ = problem
            self._errors.store(task.get_name(), bug, {})
