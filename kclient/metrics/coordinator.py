"""`consumer-coordinator-metrics`: heartbeats, joins, rebalances and commits. Times are milliseconds.

A rebalance begins with the first JoinGroup and is over when SyncGroup brought the assignment. One that is given up and
started again counts as failed; the round trip that only assigns a member id does not (Java counts it).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kclient.metrics.registry import Registry, seconds_ago

GROUP = "consumer-coordinator-metrics"
CALLBACKS = ("assigned", "revoked", "lost")


class CoordinatorMetrics:
    """`assigned` returns the number of assigned partitions."""

    def __init__(self, registry: Registry, assigned: Callable[[], int] = int) -> None:
        self._clock = registry.clock
        self._commits, self._heartbeats, self._joins, self._syncs = (registry.sensor() for _ in range(4))
        self._rebalances, self._failures = registry.sensor(), registry.sensor()
        self._callbacks = {name: registry.sensor() for name in CALLBACKS}
        self._rebalance_began: float | None = None
        self._last_rebalance: float | None = None
        self._last_heartbeat: float | None = None
        group = registry.group(GROUP)
        group.add("assigned-partitions", lambda now: float(assigned()))
        group.spread("commit-latency", self._commits, "avg", "max")
        group.events("commit", self._commits)
        group.events("heartbeat", self._heartbeats)
        group.add("heartbeat-response-time-max", self._heartbeats.max)
        group.add("last-heartbeat-seconds-ago", lambda now: seconds_ago(self._last_heartbeat, now))
        for name, sensor in (("join", self._joins), ("sync", self._syncs)):
            group.spread(f"{name}-time", sensor, "avg", "max")
            group.events(name, sensor)
        group.spread("rebalance-latency", self._rebalances, "avg", "max")
        group.add("rebalance-latency-total", lambda now: self._rebalances.total)
        group.add("rebalance-rate-per-hour", lambda now: self._rebalances.event_rate(now) * 3600)
        group.add("rebalance-total", lambda now: float(self._rebalances.events))
        group.add("failed-rebalance-rate-per-hour", lambda now: self._failures.event_rate(now) * 3600)
        group.add("failed-rebalance-total", lambda now: float(self._failures.events))
        group.add("last-rebalance-seconds-ago", lambda now: seconds_ago(self._last_rebalance, now))
        for name, sensor in self._callbacks.items():
            group.spread(f"partition-{name}-latency", sensor, "avg", "max")

    def now(self) -> float:
        """Return the moment to give to `committed`, `joined`, `synced` and `heartbeat_response` as `sent`."""
        return self._clock()

    def committed(self, sent: float) -> None:
        """Record a successful commit that was sent at that moment."""
        self._commits.record(*self._since(sent))

    def heartbeat_sent(self) -> float:
        """Record a heartbeat request; return the moment."""
        self._last_heartbeat = self._clock()
        return self._last_heartbeat

    def heartbeat_response(self, sent: float) -> None:
        """Record a heartbeat response, with or without an error."""
        self._heartbeats.record(*self._since(sent))

    def rebalance_began(self) -> None:
        """Record that a join begins; the first one since the last rebalance counts."""
        if self._rebalance_began is None:
            self._rebalance_began = self._clock()

    def joined(self, sent: float) -> None:
        """Record a successful JoinGroup."""
        self._joins.record(*self._since(sent))

    def synced(self, sent: float) -> None:
        """Record a successful SyncGroup: the rebalance is over."""
        self._syncs.record(*self._since(sent))
        self.reconciled(sent)

    def reconciled(self, sent: float) -> None:
        """Record the end of a rebalance; without a recorded start it counts as started now."""
        began = sent if self._rebalance_began is None else self._rebalance_began
        latency_ms, now = self._since(began)
        self._rebalances.record(latency_ms, now)
        self._rebalance_began, self._last_rebalance = None, now

    def rebalance_failed(self) -> None:
        """Record a rebalance that failed and starts again."""
        if self._rebalance_began is not None:
            self._failures.record(1, self._clock())

    @contextmanager
    def callback(self, name: str) -> Iterator[None]:
        """Record the time that a listener's method takes, also if it raises; `name` is one of CALLBACKS."""
        began = self._clock()
        try:
            yield
        finally:
            self._callbacks[name].record(*self._since(began))

    def _since(self, moment: float) -> tuple[float, float]:
        now = self._clock()
        return (now - moment) * 1000, now
