"""Metrics of Consumer and AsyncConsumer, from other threads, before the consumer runs, and the cost of measuring."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from kclient import AsyncConsumer, Consumer, TopicPartition
from kclient.config import load
from kclient.embedded import EmbeddedCluster
from kclient.errors import ConfigError
from kclient.metrics import Metric
from kclient.metrics.sensor import Sensor

T0 = TopicPartition("t", 0)


class Keeps:
    """A reporter that keeps the metrics by their bare names."""

    def __init__(self) -> None:
        self.metrics: dict[str, Metric] = {}

    def metric_added(self, metric: Metric) -> None:
        self.metrics[metric.name.name] = metric

    def metric_removed(self, metric: Metric) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.mark.spec("B.19.1")
def test_a_consumer_for_threads_has_the_same_and_any_thread_may_read_a_metric() -> None:
    reporter = Keeps()
    read: list[float] = []
    with EmbeddedCluster(brokers=1, topics={"t": 1}) as cluster:
        cluster.produce("t", ["a", "b"])
        keys: dict[str, Any] = {
            "bootstrap_servers": cluster.bootstrap_servers,
            "auto_offset_reset": "earliest",
        }
        with Consumer(metric_reporters=[reporter], **keys) as consumer:
            assert reporter.metrics["last-poll-seconds-ago"].value() == -1
            consumer.assign([T0])
            assert len(consumer.poll(5.0)) == 2
            assert consumer.metrics().value("records-consumed-total", topic="t") == 2
            names = ("records-consumed-rate", "last-poll-seconds-ago")
            thread = threading.Thread(
                target=lambda: read.extend(reporter.metrics[name].value() for name in names)
            )
            thread.start()
            thread.join()
    assert 0 < read[0] <= 2 / 30
    assert read[1] == 0


def test_a_consumer_that_no_loop_has_run_yet_has_its_metrics_too() -> None:
    metrics = AsyncConsumer(bootstrap_servers="localhost:1").metrics()
    assert (metrics.value("poll-total"), metrics.value("connection-count")) == (0, 0)
    assert metrics.value("records-consumed-rate") == 0


def test_numbers_are_recorded_once_a_poll_and_a_chunk_and_not_once_a_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = 0
    record = Sensor.record

    def counted(self: Sensor, value: float, now: float) -> None:
        nonlocal calls
        calls += 1
        record(self, value, now)

    async def scenario() -> None:
        nonlocal calls
        async with EmbeddedCluster(brokers=1, topics={"t": 1}) as cluster:
            cluster.produce("t", [b"v"] * 500, partition=0)
            servers = cluster.bootstrap_servers
            async with AsyncConsumer(
                bootstrap_servers=servers, auto_offset_reset="earliest", fetch_max_wait_ms=5000
            ) as c:
                await c.assign([T0])
                assert len(await c.poll(5, max_records=10)) == 10  # from here on there is nothing to fetch
                await asyncio.sleep(0.05)
                for count in (1, 400):
                    calls = 0
                    records = await c.poll(5, max_records=count)
                    assert len(records) == count
                    assert calls == 2 + 4 * len(records.chunks)  # two for the poll, four for a chunk
                    assert len(records.chunks) < 10

    monkeypatch.setattr(Sensor, "record", counted)
    asyncio.run(asyncio.wait_for(scenario(), 30))


@pytest.mark.spec("B.1")
def test_the_keys_of_javas_metrics_are_taken_or_refused_with_the_reason() -> None:
    here = {"bootstrap_servers": "localhost:1"}
    javas = {
        "metric.reporters": "org.apache.kafka.common.metrics.JmxReporter",
        "metrics.recording.level": "INFO",
        "metrics.num.samples": "3",
        "metrics.sample.window.ms": "1000",
    }
    config = load(here, javas)
    assert (config.metric_reporters, config.metrics_num_samples, config.metrics_sample_window_ms) == (
        (),
        3,
        1000,
    )
    for key, value in (
        ("metrics.recording.level", "TRACE"),
        ("metrics.num.samples", 0),
        ("metrics.context.a", "b"),
    ):
        with pytest.raises(ConfigError, match=key):
            load(here, {key: value})
