"""The task that keeps data on its way: one Fetch in flight per node, answers into the buffer.

It plans when something changed (positions, metadata, room in the buffer, an answer), sends to every idle node, and
sleeps. An answer is sorted partition by partition (answers.py); a request that fails leaves nothing behind.

A Fetch shares the broker's connection with every other question to it, as in Java: a second connection to each broker
would double what a cluster has to carry. The broker answers in order, so a question may wait behind a Fetch that waits
for records, fetch_max_wait_ms at most.

Spec: I-34, S2-12…S2-18, B.10.1…B.10.6, B.15.12.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import attrs

from kclient.config import Config
from kclient.errors import InternalError, KclientError
from kclient.fetch.answers import Answers
from kclient.fetch.budget import Budget
from kclient.fetch.buffer import FetchBuffer
from kclient.fetch.plan import Plan, make_plan, next_offset, will_drain
from kclient.fetch.request import PartitionFetch, build_request, max_version
from kclient.fetch.session import Sessionless
from kclient.generated.fetch_response import FetchResponse
from kclient.network.backoff import Backoff
from kclient.notice import wait_any
from kclient.runtime import Runtime

if TYPE_CHECKING:
    from kclient.network.cluster import Cluster
    from kclient.positions.table import Positions

logger = logging.getLogger("kclient.fetch")


@attrs.define(eq=False)
class NodeFetches:
    """What the fetcher keeps per node."""

    session: Sessionless
    backoff: Backoff
    request: asyncio.Task[None] | None = None
    retry_at: float = 0.0


class Fetcher:
    """One for a consumer's life."""

    def __init__(
        self, cluster: Cluster, positions: Positions, buffer: FetchBuffer, config: Config, runtime: Runtime
    ) -> None:
        self._cluster = cluster
        self._positions = positions
        self._buffer = buffer
        self._config = config
        self._runtime = runtime
        self._budget = Budget(buffer, config)
        self._answers = Answers(cluster, positions, buffer, config, runtime)
        self._nodes: dict[int, NodeFetches] = {}
        self._plan = Plan()
        self._planned_at: tuple[int, int] | None = None
        self._error: KclientError | None = None

    async def run(self) -> None:
        """Work until cancelled; then no request is left in flight."""
        positions, metadata, buffer = self._positions, self._cluster.metadata, self._buffer
        try:
            while True:
                notices = (positions.changed, metadata.changed, buffer.room)
                seen = tuple((notice, notice.count) for notice in notices)
                self._answers.follow_assignment()
                delay = self._send()
                await wait_any(*seen, timeout=delay)
        finally:
            requests = [node.request for node in self._nodes.values() if node.request is not None]
            for request in requests:
                request.cancel()
            await asyncio.gather(*requests, return_exceptions=True)

    def take_error(self) -> KclientError | None:
        """An error of a whole request that no retry heals, for the next poll, once. Its node is asked again then."""
        error, self._error = self._error, None
        if error is not None:
            self._buffer.room.notify()
        return error

    # --- sending ---------------------------------------------------------------------------------

    def _send(self) -> float | None:
        """Start what can be started; returns the seconds until something may be tried again. Spec: S2-12…S2-16."""
        if self._error is not None:
            return None
        now = self._runtime.now()
        if self._plan_stands():
            return self._time_to_retry(now)
        self._plan = plan = make_plan(
            self._answers.order,
            self._positions,
            self._buffer,
            self._cluster.metadata,
            now,
            lambda node_id: self._is_free(node_id, now),
            lambda tp, node_id: self._answers.delays.holds(tp, node_id, now),
        )
        if plan.is_outdated:
            self._cluster.request_update(
                "the leader of an assigned partition is not known, or its replica is offline",
                reset_backoff=False,
            )
        self._start_all(plan)
        return self._time_to_retry(now)

    def _plan_stands(self) -> bool:
        """Whether nothing can be sent anyway: every node is busy, or waits for the same partition to be drained."""
        counts = (self._positions.changed.count, self._cluster.metadata.changed.count)
        before, self._planned_at = self._planned_at, counts
        return before == counts and all(
            self._is_busy(node_id) or self._is_waiting(node_id) for node_id in self._plan.nodes
        )

    def _is_busy(self, node_id: int) -> bool:
        node = self._nodes.get(node_id)
        return node is not None and node.request is not None

    def _is_waiting(self, node_id: int) -> bool:
        tp = self._plan.waiting.get(node_id)
        return tp is not None and will_drain(self._buffer, tp) and next_offset(self._buffer, tp, 0) is None

    def _is_free(self, node_id: int, now: float) -> bool:
        node = self._nodes.get(node_id)
        return node is None or (node.request is None and node.retry_at <= now)

    def _start_all(self, plan: Plan) -> None:
        busy = sum(node.request is not None for node in self._nodes.values())
        for node_id, wanted in plan.wanted.items():
            max_bytes = self._budget.grant(len(wanted), busy + len(plan.wanted))
            if max_bytes is None:
                self._budget.make_room(self._positions)
                return
            self._start(node_id, wanted, max_bytes)

    def _start(self, node_id: int, wanted: Sequence[PartitionFetch], max_bytes: int) -> None:
        node = self._nodes.get(node_id)
        if node is None:
            node = self._nodes[node_id] = NodeFetches(Sessionless(), self._backoff())
        self._budget.reserve(max_bytes)
        work = self._fetch(node_id, node, wanted, max_bytes)
        node.request = asyncio.create_task(work, name=f"fetch from node {node_id}")
        node.request.add_done_callback(lambda task: self._ended(node, task, max_bytes))

    def _time_to_retry(self, now: float) -> float | None:
        times = [
            node.retry_at for node in self._nodes.values() if node.request is None and node.retry_at > now
        ]
        times += self._answers.delays.ends(now)
        return min(times) - now if times else None

    def _backoff(self) -> Backoff:
        return Backoff.for_retries(self._config, self._runtime)

    # --- receiving -------------------------------------------------------------------------------

    async def _fetch(
        self, node_id: int, node: NodeFetches, wanted: Sequence[PartitionFetch], max_bytes: int
    ) -> None:
        """One request and what comes of it. Spec: S2-16…S2-18, B.10.6."""
        step = node.session.next_step(wanted)
        request = build_request(step, max_bytes, self._config)
        try:
            _, answer = await self._cluster.request_versioned(
                node_id, request, max_version=max_version(wanted)
            )
        except KclientError as error:
            self._failed(node_id, node, wanted, error)
            return
        if self._answers.take(node_id, node.session, wanted, cast(FetchResponse, answer)):
            node.backoff.reset()
        else:
            node.retry_at = self._runtime.now() + node.backoff.next()

    def _failed(
        self, node_id: int, node: NodeFetches, wanted: Sequence[PartitionFetch], error: KclientError
    ) -> None:
        """Nothing came: the partitions are asked for again, at their leaders. Spec: S2-18."""
        logger.debug("Fetch from node %d failed: %s", node_id, error)
        node.retry_at = self._runtime.now() + node.backoff.next()
        self._answers.clear_preferred(wanted)
        if not error.retriable:
            self._tell(error)

    def _ended(self, node: NodeFetches, task: asyncio.Task[None], reserved_bytes: int) -> None:
        node.request = None
        self._budget.release(reserved_bytes)
        if not task.cancelled() and (problem := task.exception()) is not None:
            bug = InternalError(
                f"{task.get_name()} failed: {problem!r}. This is a bug of kclient. Please report it."
            )
            bug.__cause__ = problem
            self._tell(bug)
        self._buffer.room.notify()

    def _tell(self, error: KclientError) -> None:
        """Keep the first error for the next poll; nothing is fetched until it was taken."""
        self._error = self._error or error
        self._buffer.changed.notify()
