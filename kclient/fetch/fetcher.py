"""The task that keeps data on its way: one Fetch in flight per node, answers into the buffer.

It plans when something changed (positions, metadata, room in the buffer, an answer), sends to every idle node, and
sleeps. An answer is sorted partition by partition (response.py); a request that fails leaves nothing behind.

A Fetch shares the broker's connection with every other question to it, as in Java: a second connection to each broker
would double what a cluster has to carry. The broker answers in order, so a question may wait behind a Fetch that waits
for records, fetch_max_wait_ms at most.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kclient.change_signal import wait_any
from kclient.config import Config
from kclient.errors import InternalError, KclientError
from kclient.fetch.buffer import FetchBuffer, MemoryBudget
from kclient.fetch.diagnostics import FetchStatus
from kclient.fetch.plan import (
    FetchPlan,
    PlanInputs,
    make_plan,
    next_offset,
    update_plan,
    whom_to_ask,
    will_drain,
)
from kclient.fetch.request import NodeFetchState, ask, end_sessions, what_is_wrong
from kclient.fetch.response import FetchResponseHandler
from kclient.fetch.session import FetchSession, PartitionFetch
from kclient.log import get_logger
from kclient.metrics.fetching import FetchMetrics
from kclient.metrics.registry import Registry
from kclient.network.backoff import Backoff
from kclient.runtime import Runtime
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.network.cluster import Cluster
    from kclient.positions.table import Positions

logger = get_logger("kclient.fetch")


class Fetcher:
    """One for a consumer's life."""

    def __init__(
        self,
        cluster: Cluster,
        positions: Positions,
        buffer: FetchBuffer,
        config: Config,
        runtime: Runtime,
        metrics: FetchMetrics | None = None,
    ) -> None:
        self._cluster = cluster
        self._positions = positions
        self._buffer = buffer
        self._config = config
        self._runtime = runtime
        self._budget = MemoryBudget(buffer, config)
        self._metrics = metrics or FetchMetrics(Registry())
        self._answers = FetchResponseHandler(cluster, positions, buffer, config, runtime, self._metrics)
        self._nodes: dict[int, NodeFetchState] = {}
        turns, delays = self._answers.turns, self._answers.delays
        self._sources = PlanInputs(positions, buffer, cluster.metadata, turns, delays)
        self._plan = FetchPlan()
        self._seen: tuple[int, int] | None = None
        self._metadata_planned = -1
        self._no_room = False
        self._ending = False
        self._error: KclientError | None = None

    async def run(self) -> None:
        """Work until cancelled; then no request is left in flight."""
        positions, metadata, buffer = self._positions, self._cluster.metadata, self._buffer
        try:
            while True:
                signals = (positions.changed, metadata.changed, buffer.room)
                seen = tuple((signal, signal.count) for signal in signals)
                self._answers.follow_positions()
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

    def standing(self, tp: TopicPartition) -> FetchStatus:
        """Where fetching of an assigned partition with a position stands. Sends nothing."""
        state, now = self._positions.state(tp), self._runtime.now()
        node_id = whom_to_ask(state, self._cluster.metadata)
        if node_id is None:
            return FetchStatus(None)
        preferred = node_id == state.preferred_read_replica
        node = self._nodes.get(node_id)
        if node is not None and tp in node.asked:
            return FetchStatus(node_id, preferred, asked_at=node.asked_at)
        until, code = self._answers.delays.last(tp, node_id)
        if until > now:
            return FetchStatus(node_id, preferred, retry_at=until, trouble=code)
        if node is not None and node.request is None and node.retry_at > now:
            return FetchStatus(node_id, preferred, retry_at=node.retry_at, trouble=node.trouble)
        drains_first = self._plan.drains_first(node_id)
        return FetchStatus(node_id, preferred, drains_first=drains_first, no_room=self._no_room)

    def sessions(self) -> dict[int, FetchSession]:
        """The fetch session with each node that was ever asked."""
        return {node_id: node.session for node_id, node in self._nodes.items()}

    async def end_sessions(self, deadline: float) -> None:
        """Fetch nothing more, and give its session back to every node that can be reached. Ends by `deadline`."""
        self._ending = True
        await end_sessions(self._cluster, self._nodes.values(), self._config, deadline)

    # --- sending ---------------------------------------------------------------------------------

    def _send(self) -> float | None:
        """Start what can be started; returns the seconds until something may be tried again."""
        if self._error is not None or self._ending:
            return None
        now = self._runtime.now()
        if not self._look_again(now):
            return self._time_to_retry(now)
        plan = self._plan
        if plan.is_outdated:
            self._cluster.request_update(
                "the leader of an assigned partition is not known, or its replica is offline",
                reset_backoff=False,
            )
        self._start_all(plan, now)
        return self._time_to_retry(now)

    def _look_again(self, now: float) -> bool:
        """Bring the plan up to date. False where nothing can be sent anyway, whatever it says.

        What was dirty then waits for the look after that.
        """
        metadata = self._cluster.metadata.changed.count
        seen = (self._positions.changed.count, metadata)
        before, self._seen = self._seen, seen
        if before == seen and all(
            self._is_busy(node_id) or self._is_waiting(node_id) for node_id in self._plan.nodes
        ):
            return False
        dirty = self._buffer.take_dirty()
        if self._metadata_planned == metadata and now < self._plan.stands_until:
            self._keep_what_is_asked()
            update_plan(self._plan, dirty, self._sources, now)
            for node_id, news in self._plan.news.items():
                if (node := self._nodes.get(node_id)) is not None and node.news is not None:
                    node.news |= news
        else:
            self._plan, self._metadata_planned = make_plan(self._sources, now), metadata
            for node in self._nodes.values():
                node.news = None
        self._plan.news.clear()
        return True

    def _is_busy(self, node_id: int) -> bool:
        node = self._nodes.get(node_id)
        return node is not None and node.request is not None

    def _is_waiting(self, node_id: int) -> bool:
        tp = self._plan.drains_first(node_id)
        return tp is not None and will_drain(self._buffer, tp) and next_offset(self._buffer, tp, 0) is None

    def _is_free(self, node_id: int, now: float) -> bool:
        node = self._nodes.get(node_id)
        return node is None or (node.request is None and node.retry_at <= now)

    def _start_all(self, plan: FetchPlan, now: float) -> None:
        busy = sum(node.request is not None for node in self._nodes.values())
        self._no_room = False
        free = [node_id for node_id in plan.ready() if self._is_free(node_id, now)]
        for node_id in sorted(free, key=self._last_asked):
            wanted = plan.wanted[node_id]
            max_bytes = self._budget.grant(len(wanted), busy + len(free))
            if max_bytes is None:
                self._no_room = True
                self._budget.make_room(self._positions)
                return
            self._start(node_id, wanted, max_bytes)

    def _last_asked(self, node_id: int) -> float:
        """Who was asked longest ago, or never, is first: there may be memory for one request only."""
        node = self._nodes.get(node_id)
        return -math.inf if node is None else node.asked_at

    def _keep_what_is_asked(self) -> None:
        """A request that was not built yet asks for what the plan said when it was started, without later changes.

        Copying that for every request would cost more, with thousands of partitions, than all the rest of it.
        """
        for node_id, node in self._nodes.items():
            if node.asked is self._plan.wanted.get(node_id):
                self._plan.wanted[node_id] = dict(node.asked)

    def _start(self, node_id: int, wanted: Mapping[TopicPartition, PartitionFetch], max_bytes: int) -> None:
        node = self._nodes.get(node_id)
        if node is None:
            node = self._nodes[node_id] = NodeFetchState(
                node_id, Backoff.for_retries(self._config, self._runtime)
            )
        node.asked, node.asked_at = wanted, self._runtime.now()
        node.asked_news, node.news = node.news, {}
        self._budget.reserve(max_bytes)
        node.request = asyncio.create_task(self._fetch(node, max_bytes), name=f"fetch from node {node_id}")
        node.request.add_done_callback(lambda task: self._ended(node, task, max_bytes))

    def _time_to_retry(self, now: float) -> float | None:
        times = [
            node.retry_at for node in self._nodes.values() if node.request is None and node.retry_at > now
        ]
        times += self._answers.delays.ends(now)
        return min(times) - now if times else None

    # --- receiving -------------------------------------------------------------------------------

    async def _fetch(self, node: NodeFetchState, max_bytes: int) -> None:
        """One request and what comes of it."""
        sent = self._metrics.now()
        try:
            answer = await ask(self._cluster, node, max_bytes, self._config)
        except KclientError as exc:
            self._failed(node, exc)
            return
        self._metrics.answered(sent, answer.throttle_time_ms)
        if self._answers.take(node.node_id, node.session, answer):
            node.backoff.reset()
        else:
            node.trouble = what_is_wrong(answer.error_code)
            node.retry_at = self._runtime.now() + node.backoff.next()

    def _failed(self, node: NodeFetchState, error: KclientError) -> None:
        """Nothing came: the partitions are asked for again, at their leaders."""
        logger.debug("Fetch from node %d failed: %s", node.node_id, error)
        node.trouble, node.news = error.text, None
        node.retry_at = self._runtime.now() + node.backoff.next()
        self._answers.clear_preferred(node.asked)
        if not error.retriable:
            self._tell(error)

    def _ended(self, node: NodeFetchState, task: asyncio.Task[None], reserved_bytes: int) -> None:
        node.request, node.asked = None, {}
        self._budget.release(reserved_bytes)
        if not task.cancelled() and (problem := task.exception()) is not None:
            node.news = None
            self._tell(InternalError.of(task.get_name(), problem))
        self._buffer.room.notify()

    def _tell(self, error: KclientError) -> None:
        """Keep the first error for the next poll; nothing is fetched until it was taken."""
        self._error = self._error or error
        self._buffer.changed.notify()
