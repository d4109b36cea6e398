"""`consumer-fetch-manager-metrics`: requests, returned records, lag and lead; for all, a topic, or a partition.

    bytes and records consumed    when records are returned
    fetch-size, records-per-…     one sample for a response, when the last partition that came with it is drained;
                                  what was dropped or failed counts nothing in it. A response that brought no bytes and
                                  no error for any partition gives none
    lag, lead                     whenever a partition's position moves past delivered records, and only then:
                                  end − position and position − log start. The end is the last stable offset where
                                  only committed records are read, else the high watermark

A partition's metrics come and go with the assignment; a topic's appear with its first records and stay. What is
consumed of all is the sum of the topics; the extremes of lag and lead are of the partitions that are assigned now.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import isnan, nan

import attrs

from kclient.metrics.registry import Group, Registry
from kclient.types import TopicPartition

GROUP = "consumer-fetch-manager-metrics"
NO_REPLICA = -1.0


class _PerResponse:
    """How much one response gave, of a topic or of all."""

    def __init__(self, registry: Registry, group: Group) -> None:
        self._bytes, self._records = registry.sensor(), registry.sensor()
        group.spread("fetch-size", self._bytes, "avg", "max")
        group.spread("records-per-request", self._records, "avg")

    def record(self, size_bytes: int, records: int, now: float) -> None:
        self._bytes.record(size_bytes, now)
        self._records.record(records, now)


class _Topic:
    """The consumed records of a topic."""

    def __init__(self, registry: Registry, name: str) -> None:
        self.bytes, self.records = registry.sensor(), registry.sensor()
        group = registry.group(GROUP, topic=name)
        group.amounts("bytes-consumed", self.bytes)
        group.amounts("records-consumed", self.records)
        self.responses = _PerResponse(registry, group)


class _Gauge:
    """The latest value of a number, and its sensor; NaN before the first value."""

    __slots__ = ("latest", "sensor")

    def __init__(self, registry: Registry) -> None:
        self.latest = nan
        self.sensor = registry.sensor()

    def record(self, value: int, now: float) -> None:
        self.latest = float(value)
        self.sensor.record(value, now)

    def add_to(self, group: Group, name: str, extreme: str) -> None:
        group.add(name, lambda now: self.latest)
        group.spread(name, self.sensor, "avg", extreme)


class _Partition:
    """Lag and lead of a partition. Without reporters, its names are added when the metrics are read."""

    __slots__ = ("_group", "_registry", "lag", "lead")

    def __init__(self, registry: Registry, tp: TopicPartition, replica: Callable[[float], float]) -> None:
        self.lag, self.lead = _Gauge(registry), _Gauge(registry)
        self._registry = registry
        self._group: Group | None = None
        registry.add_later(self, lambda: self._add_names(tp, replica))

    def remove(self) -> None:
        self._registry.forget(self)
        if self._group is not None:
            self._group.remove()

    def _add_names(self, tp: TopicPartition, replica: Callable[[float], float]) -> None:
        self._group = group = self._registry.group(GROUP, topic=tp.topic, partition=tp.partition)
        group.add("preferred-read-replica", replica)
        self.lag.add_to(group, "records-lag", "max")
        self.lead.add_to(group, "records-lead", "min")


@attrs.define(eq=False)
class ResponseSizes:
    """The records of one Fetch response so far; `done` if there are no more."""

    _metrics: FetchMetrics
    _topics: dict[str, tuple[int, int]] = attrs.field(factory=dict)

    def add(self, topic: str, size_bytes: int, records: int) -> None:
        """Add delivered records."""
        before = self._topics.get(topic, (0, 0))
        self._topics[topic] = before[0] + size_bytes, before[1] + records

    def done(self) -> None:
        """Finish: the last partition of this response was drained or dropped."""
        self._metrics.response_drained(self._topics)


class FetchMetrics:
    """`preferred` returns the replica that a partition is read from, None for the leader."""

    def __init__(
        self, registry: Registry, preferred: Callable[[TopicPartition], int | None] = lambda tp: None
    ) -> None:
        self._registry = registry
        self._preferred = preferred
        self._clock = registry.clock
        self._latency, self._throttle = registry.sensor(), registry.sensor()
        self._topics: dict[str, _Topic] = {}
        self._partitions: dict[TopicPartition, _Partition] = {}
        self._assignment_id = -1
        group = registry.group(GROUP)
        group.events("fetch", self._latency)
        group.spread("fetch-latency", self._latency, "avg", "max")
        group.spread("fetch-throttle-time", self._throttle, "avg", "max")
        self._responses = _PerResponse(registry, group)
        for what in ("bytes", "records"):
            group.add(f"{what}-consumed-rate", partial(self._rate, what))
            group.add(f"{what}-consumed-total", partial(self._total, what))
        group.add("records-lag-max", self._highest_lag)
        group.add("records-lead-min", self._lowest_lead)

    # --- requests and responses

    def now(self) -> float:
        """Return the moment to give to `responded` as `sent`."""
        return self._clock()

    def responded(self, sent: float, throttle_time_ms: int) -> None:
        """Record the response to a Fetch that was sent at that moment."""
        now = self._clock()
        self._latency.record((now - sent) * 1000, now)
        self._throttle.record(throttle_time_ms, now)

    def response(self) -> ResponseSizes:
        """Return the sums for one response."""
        return ResponseSizes(self)

    def response_drained(self, topics: dict[str, tuple[int, int]]) -> None:
        """Record one sample for a whole response, and one for each of its topics that had records."""
        now = self._clock()
        self._responses.record(
            sum(size for size, _ in topics.values()), sum(count for _, count in topics.values()), now
        )
        for topic, (size_bytes, records) in topics.items():
            self._topic(topic).responses.record(size_bytes, records, now)

    # --- partitions

    def follow_assignment(self, assignment_id: int, partitions: Sequence[TopicPartition]) -> None:
        """Forget partitions that went, begin with those that came. Costs nothing while the id is the same."""
        if assignment_id == self._assignment_id:
            return
        self._assignment_id = assignment_id
        assigned = dict.fromkeys(partitions)
        for tp in [tp for tp in self._partitions if tp not in assigned]:
            self._partitions.pop(tp).remove()
        for tp in assigned:
            if tp not in self._partitions:
                self._partitions[tp] = _Partition(self._registry, tp, partial(self._replica, tp))

    def handed_out(
        self, tp: TopicPartition, size_bytes: int, records: int, lag: int | None, lead: int | None
    ) -> None:
        """Record lag and lead after delivered records; None is unknown. The hot path: once per chunk."""
        now = self._clock()
        topic = self._topics.get(tp.topic) or self._topic(tp.topic)
        topic.bytes.record(size_bytes, now)
        topic.records.record(records, now)
        partition = self._partitions.get(tp)
        if partition is None:
            return
        if lag is not None:
            partition.lag.record(lag, now)
        if lead is not None:
            partition.lead.record(lead, now)

    def _replica(self, tp: TopicPartition, now: float) -> float:
        replica = self._preferred(tp)
        return NO_REPLICA if replica is None else float(replica)

    def _topic(self, name: str) -> _Topic:
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = _Topic(self._registry, name)
        return topic

    # --- of all partitions, when the metrics are read

    def _rate(self, what: str, now: float) -> float:
        return sum((getattr(topic, what).rate(now) for topic in self._topics.values()), 0.0)

    def _total(self, what: str, now: float) -> float:
        return sum((getattr(topic, what).total for topic in self._topics.values()), 0.0)

    def _highest_lag(self, now: float) -> float:
        lags = (partition.lag.sensor.max(now) for partition in self._partitions.values())
        return max((lag for lag in lags if not isnan(lag)), default=nan)

    def _lowest_lead(self, now: float) -> float:
        leads = (partition.lead.sensor.min(now) for partition in self._partitions.values())
        return min((lead for lead in leads if not isnan(lead)), default=nan)
