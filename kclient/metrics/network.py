"""`consumer-metrics` and `consumer-node-metrics`: connections, requests and bytes, of all and of each node.

A broker has one node for ordinary requests and, where it coordinates the group, one more: `node-id` is `node-1`, and
`node-2147483646` for the coordinator of the same number, as in Java. Bootstrap connections count in the totals only.
"""

from __future__ import annotations

from typing import Final

from kclient.metrics.registry import Group, Registry

GROUP = "consumer-metrics"
NODE_GROUP = "consumer-node-metrics"
HIGHEST_NODE_ID = 2**31 - 1


class _Traffic:
    """Requests and bytes, of a node or of all."""

    def __init__(self, registry: Registry, group: Group) -> None:
        self.outgoing: Final = registry.sensor()
        self.incoming: Final = registry.sensor()
        group.add("request-rate", self.outgoing.event_rate)
        group.add("request-total", lambda now: float(self.outgoing.events))
        group.spread("request-size", self.outgoing, "avg", "max")
        group.amounts("outgoing-byte", self.outgoing)
        group.events("response", self.incoming)
        group.amounts("incoming-byte", self.incoming)


class NodeMetrics:
    """The metrics of a connection: it counts for its node, if that has an id, and for the total."""

    def __init__(self, registry: Registry, network: NetworkMetrics, name: str | None) -> None:
        self.opened: Final = network.opened
        self.closed: Final = network.closed
        self._clock = registry.clock
        self._traffic = [network.traffic]
        self._latency = registry.sensor()
        if name is not None:
            group = registry.group(NODE_GROUP, node_id=name)
            self._traffic.append(_Traffic(registry, group))
            group.spread("request-latency", self._latency, "avg", "max")

    def sent(self, size_bytes: int) -> float:
        """Record a request and its size in bytes; return the time."""
        now = self._clock()
        for traffic in self._traffic:
            traffic.outgoing.record(size_bytes, now)
        return now

    def received(self, size_bytes: int, sent: float) -> None:
        """Record the response to a request that was sent at that moment."""
        now = self._clock()
        for traffic in self._traffic:
            traffic.incoming.record(size_bytes, now)
        self._latency.record((now - sent) * 1000, now)


class NetworkMetrics:
    """The connections of one consumer."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._clock = registry.clock
        self._opened, self._closed = registry.sensor(), registry.sensor()
        self._open = 0
        self._nodes: dict[str | None, NodeMetrics] = {}
        group = registry.group(GROUP)
        self.traffic: Final = _Traffic(registry, group)
        group.add("connection-count", lambda now: float(self._open))
        group.events("connection-creation", self._opened)
        group.events("connection-close", self._closed)
        group.add("network-io-rate", self._io_rate)
        group.add("network-io-total", self._io_total)

    def node(self, node_id: int | None, purpose: str) -> NodeMetrics:
        """Return the metrics of a node; None stands for a bootstrap server."""
        name = None if node_id is None else f"node-{HIGHEST_NODE_ID - node_id if purpose else node_id}"
        if name not in self._nodes:
            self._nodes[name] = NodeMetrics(self._registry, self, name)
        return self._nodes[name]

    def opened(self) -> None:
        """Record a new connection."""
        self._open += 1
        self._opened.record(1, self._clock())

    def closed(self) -> None:
        """Record a closed connection."""
        self._open -= 1
        self._closed.record(1, self._clock())

    def _io_rate(self, now: float) -> float:
        return self.traffic.outgoing.event_rate(now) + self.traffic.incoming.event_rate(now)

    def _io_total(self, now: float) -> float:
        return float(self.traffic.outgoing.events + self.traffic.incoming.events)


def unmeasured() -> NodeMetrics:
    """Return metrics for a connection that belongs to no consumer."""
    return NetworkMetrics(Registry()).node(None, "")
