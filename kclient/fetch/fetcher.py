"""The background task that fetches: at most one Fetch in flight per node, responses go into the buffer.

    loop   positions, metadata or free buffer memory changed, a response came, a backoff ended
           → update the plan (plan.py) → send to every ready node without a request in flight → sleep

    `_fetch`, one task per request
           → send_fetch (request.py) → FetchResponseHandler.handle (response.py) → buffer

A Fetch shares the broker's connection with all other requests, as in Java: a second connection to each broker would
double the connections of the cluster. A broker answers in order, so another request may wait for a Fetch that waits for
records, fetch_max_wait_ms at most.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Final

from kclient.change_signal import wait_any
from kclient.config import Config
from kclient.errors import InternalError, KclientError
from kclient.fetch.buffer import FetchBuffer, MemoryBudget
from kclient.fetch.diagnostics import FetchStatus
from kclient.fetch.plan import (
    FetchPlan,
    PlanInputs,
    build_plan,
    next_offset,
    select_read_replica,
    update_plan,
    will_drain,
)
from kclient.fetch.request import NodeFetchState, close_sessions, send_fetch, unusable_response
from kclient.fetch.response import FetchResponseHandler
from kclient.fetch.session import PartitionFetches
from kclient.log import get_logger
from kclient.metrics.fetching import FetchMetrics
from kclient.metrics.registry import Registry
from kclient.network.backoff import Backoff
from kclient.runtime import Runtime
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.network.cluster import Cluster
    from kclient.positions.table import Positions

logger: Final = get_logger("kclient.fetch")

NEVER = -math.inf


class Fetcher:
    """Fetch the assigned partitions from their positions on, until closed."""

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
        self._responses = FetchResponseHandler(cluster, positions, buffer, config, runtime, self._metrics)
        self._nodes: dict[int, NodeFetchState] = {}
        fetch_order, backoffs = self._responses.fetch_order, self._responses.backoffs
        self._inputs = PlanInputs(positions, buffer, cluster.metadata, fetch_order, backoffs)
        self._plan = FetchPlan()
        self._seen: tuple[int, int] | None = None  # changes of positions and of metadata at the last look
        self._planned_metadata = -1
        self._buffer_full = False
        self._closing = False
        self._error: KclientError | None = None

    async def run(self) -> None:
        """Fetch until cancelled. Cancel the requests in flight then, and wait for the end of their tasks."""
        positions, metadata, buffer = self._positions, self._cluster.metadata, self._buffer
        try:
            while True:
                # Count before looking: a change during the look then ends the wait at once.
                signals = (positions.changed, metadata.changed, buffer.space_freed)
                seen = tuple((signal, signal.count) for signal in signals)
                self._responses.follow_positions()
                delay = self._send()
                await wait_any(*seen, timeout=delay)
        finally:
            requests = [node.request for node in self._nodes.values() if node.request is not None]
            for request in requests:
                request.cancel()
            await asyncio.gather(*requests, return_exceptions=True)

    def take_error(self) -> KclientError | None:
        """Return an error of a whole request that is not retriable, for the next poll, and clear it.

        Fetching stops at such an error and continues after this call.
        """
        error, self._error = self._error, None
        if error is not None:
            self._buffer.space_freed.notify()
        return error

    def status(self, tp: TopicPartition) -> FetchStatus:
        """Return how far the fetching of an assigned partition with a position is. Send nothing."""
        state, now = self._positions.state(tp), self._runtime.now()
        node_id = select_read_replica(state, self._cluster.metadata)
        if node_id is None:
            return FetchStatus(None)
        preferred = node_id == state.preferred_read_replica
        node = self._nodes.get(node_id)
        if node is not None and tp in node.requested:
            return FetchStatus(node_id, preferred, sent_at=node.sent_at)
        until, code = self._responses.backoffs.last(tp, node_id)
        if until > now:
            return FetchStatus(node_id, preferred, retry_at=until, last_error=code)
        if node is not None and node.request is None and node.retry_at > now:
            return FetchStatus(node_id, preferred, retry_at=node.retry_at, last_error=node.last_error)
        backpressured_by = self._plan.backpressured_by(node_id)
        return FetchStatus(
            node_id, preferred, backpressured_by=backpressured_by, buffer_full=self._buffer_full
        )

    async def close_sessions(self, deadline: float) -> None:
        """Stop fetching, and close the fetch session on every connected node by `deadline` (time of the loop)."""
        self._closing = True
        await close_sessions(self._cluster, self._nodes.values(), self._config, deadline)

    # --- sending ---------------------------------------------------------------------------------

    def _send(self) -> float | None:
        """Send what can be sent. Return the seconds until the next backoff ends, None if there is none."""
        if self._error is not None or self._closing:
            return None
        now = self._runtime.now()
        if not self._update_plan(now):
            return self._time_to_retry(now)
        plan = self._plan
        if plan.needs_metadata:
            self._cluster.request_update(
                "the leader of an assigned partition is not known, or its replica is offline",
                reset_backoff=False,
            )
        self._start_requests(plan, now)
        return self._time_to_retry(now)

    def _update_plan(self, now: float) -> bool:
        """Bring the plan up to date. Return False, doing nothing, if no node could get a request whatever it says.

        The buffer keeps its dirty partitions in that case, for the next update.
        """
        metadata = self._cluster.metadata.changed.count
        seen = (self._positions.changed.count, metadata)
        before, self._seen = self._seen, seen
        if before == seen and all(
            self._is_in_flight(node_id) or self._waits_for_poll(node_id)
            for node_id in self._plan.active_nodes()
        ):
            return False
        dirty = self._buffer.take_dirty()
        if self._planned_metadata == metadata and now < self._plan.valid_until:
            self._protect_requested()
            update_plan(self._plan, dirty, self._inputs, now)
            for node_id, node_plan in self._plan.nodes.items():
                if (node := self._nodes.get(node_id)) is not None and node.changes is not None:
                    node.changes |= node_plan.changes
        else:
            self._plan, self._planned_metadata = build_plan(self._inputs, now), metadata
            for node in self._nodes.values():
                node.changes = None  # any partition may differ from the session
        for node_plan in self._plan.nodes.values():
            node_plan.changes.clear()
        return True

    def _protect_requested(self) -> None:
        """Replace `requests` of a NodePlan by a copy where a request that is not built yet still reads it.

        `_start` passes the dict of the plan to the request, without a copy. Most requests are built before the plan
        changes next, and then read the dict of their session; only a request that waits for its connection needs the
        copy. Copying for every request would cost more than all the rest with thousands of partitions.
        """
        for node_id, node in self._nodes.items():
            node_plan = self._plan.nodes.get(node_id)
            if node_plan is not None and node.requested is node_plan.requests:
                node_plan.requests = dict(node_plan.requests)

    def _is_in_flight(self, node_id: int) -> bool:
        node = self._nodes.get(node_id)
        return node is not None and node.request is not None

    def _waits_for_poll(self, node_id: int) -> bool:
        """Whether one of the node's partitions is still backpressured, as the last plan said."""
        tp = self._plan.backpressured_by(node_id)
        return tp is not None and will_drain(self._buffer, tp) and next_offset(self._buffer, tp, 0) is None

    def _is_idle(self, node_id: int, now: float) -> bool:
        node = self._nodes.get(node_id)
        return node is None or (node.request is None and node.retry_at <= now)

    def _start_requests(self, plan: FetchPlan, now: float) -> None:
        in_flight = sum(node.request is not None for node in self._nodes.values())
        self._buffer_full = False
        idle = [node_id for node_id in plan.ready_nodes() if self._is_idle(node_id, now)]
        # The node that waits longest is first: the memory left may be enough for one request only.
        for node_id in sorted(idle, key=self._last_sent):
            requests = plan.nodes[node_id].requests
            max_bytes = self._budget.grant(len(requests), in_flight + len(idle))
            if max_bytes is None:
                self._buffer_full = True
                self._budget.make_space(self._positions)
                return
            self._start(node_id, requests, max_bytes)

    def _last_sent(self, node_id: int) -> float:
        node = self._nodes.get(node_id)
        return NEVER if node is None else node.sent_at

    def _start(self, node_id: int, requests: PartitionFetches, max_bytes: int) -> None:
        node = self._nodes.get(node_id)
        if node is None:
            backoff = Backoff.for_retries(self._config, self._runtime)
            node = self._nodes[node_id] = NodeFetchState(node_id, backoff)
        node.requested, node.sent_at = requests, self._runtime.now()
        node.requested_changes, node.changes = node.changes, {}
        self._budget.reserve(max_bytes)
        node.request = asyncio.create_task(self._fetch(node, max_bytes), name=f"fetch from node {node_id}")
        node.request.add_done_callback(lambda task: self._request_done(node, task, max_bytes))

    def _time_to_retry(self, now: float) -> float | None:
        times = [
            node.retry_at for node in self._nodes.values() if node.request is None and node.retry_at > now
        ]
        times += self._responses.backoffs.ends(now)
        return min(times) - now if times else None

    # --- receiving -------------------------------------------------------------------------------

    async def _fetch(self, node: NodeFetchState, max_bytes: int) -> None:
        """Send one request and handle its response or its failure."""
        sent = self._metrics.now()
        try:
            response = await send_fetch(self._cluster, node, max_bytes, self._config)
        except KclientError as exc:
            self._request_failed(node, exc)
            return
        self._metrics.responded(sent, response.throttle_time_ms)
        if self._responses.handle(node.node_id, node.session, response):
            node.backoff.reset()
        else:
            node.last_error = unusable_response(response.error_code)
            node.retry_at = self._runtime.now() + node.backoff.next()

    def _request_failed(self, node: NodeFetchState, exc: KclientError) -> None:
        """Back off after a request without a response. The next requests go to the leaders."""
        logger.debug("Fetch from node %d failed: %s", node.node_id, exc)
        node.last_error, node.changes = exc.text, None
        node.retry_at = self._runtime.now() + node.backoff.next()
        self._responses.clear_read_replicas(node.requested)
        if not exc.retriable:
            self._set_error(exc)

    def _request_done(self, node: NodeFetchState, task: asyncio.Task[None], reserved_bytes: int) -> None:
        node.request, node.requested = None, {}
        self._budget.release(reserved_bytes)
        if not task.cancelled() and (exc := task.exception()) is not None:
            node.changes = None
            self._set_error(InternalError.of(task.get_name(), exc))
        self._buffer.space_freed.notify()

    def _set_error(self, error: KclientError) -> None:
        """Keep the first error for the next poll; nothing is fetched until `take_error`."""
        self._error = self._error or error
        self._buffer.changed.notify()
