"""What a consumer measures about itself, under the names that Java's consumer uses. Imports nothing of ours but types.

    sensor.py        a number that is recorded now and then: how often, how much, the extremes, over sliding windows
    registry.py      names with tags, what stands behind each, and who is told of them
    calls.py         `consumer-metrics`: polls, commits
    network.py       `consumer-metrics` and `consumer-node-metrics`: connections, requests, bytes
    coordinator.py   `consumer-coordinator-metrics`: heartbeats, joins, rebalances, commits
    fetching.py      `consumer-fetch-manager-metrics`: fetches, records, lag
    own.py           `kclient-metrics`: what Java has no name for
    prometheus.py    all of it as text

Recording costs a few additions, and happens once for a poll, an answer or a chunk, never once for a record. Whatever
can be computed when somebody looks is computed then.
"""

from __future__ import annotations

from kclient.metrics.prometheus import prometheus_text
from kclient.metrics.registry import Metric, MetricName, MetricReporter, MetricValues

__all__ = ["Metric", "MetricName", "MetricReporter", "MetricValues", "prometheus_text"]
