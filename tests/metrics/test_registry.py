"""Names, reporters, and the text for Prometheus."""

from __future__ import annotations

import asyncio
import logging
import pickle
import sys

import pytest

from kclient.metrics import Metric, MetricName, MetricValues, prometheus_text
from kclient.metrics.registry import Registry


class Recorder:
    """A reporter that records its calls."""

    def __init__(self) -> None:
        self.present: dict[MetricName, Metric] = {}
        self.closed = 0

    def metric_added(self, metric: Metric) -> None:
        self.present[metric.name] = metric

    def metric_removed(self, metric: Metric) -> None:
        del self.present[metric.name]

    def close(self) -> None:
        self.closed += 1


class Broken:
    """A reporter that cannot do anything, and says so in every way."""

    def metric_added(self, metric: Metric) -> None:
        raise RuntimeError("full")

    def metric_removed(self, metric: Metric) -> None:
        raise asyncio.CancelledError

    def close(self) -> None:
        sys.exit("never")


def test_reporters_are_notified_what_appears_and_goes_and_a_broken_one_disturbs_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    recorder = Recorder()
    registry = Registry("me", reporters=(Broken(), recorder))
    group = registry.group("a-metrics", topic="t", partition=3)
    group.add("lead", lambda now: 1.0)
    group.remove()
    group.add("lag", lambda now: 7.0)
    (name,) = recorder.present
    assert name == MetricName("a-metrics", "lag", (("client-id", "me"), ("partition", "3"), ("topic", "t")))
    assert (name.tag("topic"), name.tag("node-id"), recorder.present[name].value()) == ("t", None, 7.0)
    assert dict(registry.values()) == {name: 7.0}
    assert pickle.loads(pickle.dumps(name)) == name
    group.remove()
    registry.close()
    assert (recorder.present, recorder.closed, len(registry.values())) == ({}, 1, 0)
    lines = [record.message for record in caplog.records if record.levelno == logging.ERROR]
    # One line for each, and two metrics were added.
    assert [line.split(" failed")[0] for line in lines] == [
        f"the metric reporter's Broken.{method}" for method in ("metric_added", "metric_removed", "close")
    ]


def test_a_value_is_found_by_its_name_and_exactly_its_tags() -> None:
    values = MetricValues(
        {
            MetricName("g", "lag", (("client-id", "me"),)): 1.0,
            MetricName("g", "lag", (("client-id", "me"), ("partition", "0"), ("topic", "t"))): 2.0,
            MetricName("g", "rate", (("client-id", "me"), ("node-id", "node-1"))): 3.0,
        }
    )
    assert (values.value("lag"), values.value("lag", topic="t", partition=0)) == (1.0, 2.0)
    assert values.value("rate", node_id="node-1") == 3.0
    with pytest.raises(KeyError, match="lag topic=t"):
        values.value("lag", topic="t")
    with pytest.raises(KeyError, match="rate"):
        values.value("rate")


def test_prometheus_gets_families_with_types_labels_and_escapes() -> None:
    group, me = "consumer-fetch-manager-metrics", ("client-id", 'my "own"\\\n')
    values = {
        MetricName(group, "records-lag", (me, ("partition", "1"), ("topic", "t"))): 12.0,
        MetricName(group, "records-lag", (me, ("partition", "0"), ("topic", "t"))): 0.5,
        MetricName("consumer-metrics", "request-total", (("client-id", "c"),)): 1e9,
        MetricName(
            "kclient-metrics", "records-skipped-total", (("client-id", "c"), ("reason", "retention"))
        ): 400.0,
        MetricName("consumer-metrics", "time-between-poll-max", (("client-id", "c"),)): float("nan"),
    }
    label = 'client_id="my \\"own\\"\\\\\\n"'
    assert prometheus_text(values).splitlines() == [
        "# TYPE kafka_consumer_fetch_manager_records_lag gauge",
        f'kafka_consumer_fetch_manager_records_lag{{{label},partition="0",topic="t"}} 0.5',
        f'kafka_consumer_fetch_manager_records_lag{{{label},partition="1",topic="t"}} 12',
        "# TYPE kafka_consumer_request_total counter",
        'kafka_consumer_request_total{client_id="c"} 1000000000',
        "# TYPE kafka_consumer_time_between_poll_max gauge",
        'kafka_consumer_time_between_poll_max{client_id="c"} NaN',
        "# TYPE kclient_records_skipped_total counter",
        'kclient_records_skipped_total{client_id="c",reason="retention"} 400',
    ]
