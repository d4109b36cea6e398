"""The metrics of a consumer, under the names of Java's consumer.

    sensor.py        recorded numbers: count, sum, average and extremes over sliding windows
    registry.py      metric names with tags, the function that reads each value, and the reporters
    calls.py         `consumer-metrics`: polls, commits; `kclient-metrics`: metrics that Java does not have
    network.py       `consumer-metrics` and `consumer-node-metrics`: connections, requests, bytes
    coordinator.py   `consumer-coordinator-metrics`: heartbeats, joins, rebalances, commits
    fetching.py      `consumer-fetch-manager-metrics`: fetches, records, lag
    prometheus.py    all of it as text

Recording costs a few additions, once for each poll, response or chunk, never for each record. Everything else is
computed when a value is read.
"""

from __future__ import annotations

from kclient.metrics.prometheus import prometheus_text
from kclient.metrics.registry import Metric, MetricName, MetricReporter, MetricValues

__all__ = ["Metric", "MetricName", "MetricReporter", "MetricValues", "prometheus_text"]
