"""What is fetched and delivered, in real polls of an embedded cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from math import isnan
from typing import Any

import pytest

from kclient import AsyncConsumer
from kclient.embedded import EmbeddedCluster
from kclient.metrics import Metric, MetricName
from kclient.metrics.fetching import FetchMetrics
from kclient.metrics.registry import Registry
from kclient.types import TopicPartition
from tests.fetch.fetch_support import P0, DeliveryPipeline, batch

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
RECORD_BYTES = 8  # of one that has one byte and no key
LAG = ("records-lag", "records-lag-avg", "records-lag-max")
LEAD = ("records-lead", "records-lead-avg", "records-lead-min")

Scenario = Callable[[EmbeddedCluster, Callable[..., AsyncConsumer]], Awaitable[None]]


def with_cluster(scenario: Scenario, **options: Any) -> None:
    """Run a scenario with a cluster, and a function that makes consumers of it without a group."""

    async def run() -> None:
        async with EmbeddedCluster(**{"brokers": 1, "topics": {"t": 3}, **options}) as cluster:
            opened: list[AsyncConsumer] = []

            def consumer(**settings: Any) -> AsyncConsumer:
                keys = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 50, "client_id": "me"}
                opened.append(
                    AsyncConsumer(bootstrap_servers=cluster.bootstrap_servers, **{**keys, **settings})
                )
                return opened[-1]

            try:
                await scenario(cluster, consumer)
            finally:
                for one in opened:
                    await one.close()

    asyncio.run(asyncio.wait_for(run(), 60))


async def drain(consumer: AsyncConsumer, count: int, **arguments: Any) -> None:
    while count > 0:
        count -= len(await consumer.poll(5, **arguments))


@pytest.mark.spec("S2-51")
def test_a_response_gives_one_sample_when_its_last_partition_is_drained() -> None:
    async def scenario(cluster: EmbeddedCluster, make: Callable[..., AsyncConsumer]) -> None:
        for tp, count in ((T0, 4), (T1, 6), (T2, 8)):
            cluster.produce("t", [b"v"] * count, partition=tp.partition)
        consumer = make()
        await consumer.assign([T0, T1, T2])
        await drain(consumer, 4, max_records=4)
        await drain(consumer, 6, max_records=2)
        metrics = consumer.metrics()
        assert metrics.value("records-consumed-total") == 10
        # None yet.
        assert metrics.value("records-per-request-avg") != metrics.value("records-per-request-avg")
        await consumer.assign([T0, T1])  # the third partition's data are dropped
        metrics = consumer.metrics()
        assert metrics.value("records-per-request-avg") == 10  # of several samples the mean would be less
        assert metrics.value("fetch-size-avg") == metrics.value("fetch-size-max") == 10 * RECORD_BYTES
        assert metrics.value("records-per-request-avg", topic="t") == 10

    with_cluster(scenario)


@pytest.mark.spec("S2-51")
def test_partitions_that_failed_count_nothing_in_the_sample() -> None:
    async def scenario(cluster: EmbeddedCluster, make: Callable[..., AsyncConsumer]) -> None:
        def refuse(request: Any, response: Any) -> Any:
            for topic in response.responses:
                for partition in topic.partitions:
                    if partition.partition_index == 1:
                        partition.error_code, partition.records = 78, None
            return response

        cluster.produce("t", [b"v"] * 4, partition=0)
        cluster.produce("t", [b"v"] * 6, partition=1)
        consumer = make(group_id=None)
        rule = cluster.on("Fetch", refuse)
        await consumer.assign([T0, T1])
        await drain(consumer, 4)
        assert consumer.metrics().value("records-per-request-avg") == 4
        while consumer.metrics().value("records-per-request-avg") == 4:  # a response of failures alone: 0
            await consumer.poll(0.05)
        assert consumer.metrics().value("records-per-request-avg") < 4
        cluster.lift(rule)
        await drain(consumer, 6)

    with_cluster(scenario)


@pytest.mark.spec("S2-27", "B.19.1")
def test_topics_are_counted_apart_and_together_as_records_are_returned() -> None:
    async def scenario(cluster: EmbeddedCluster, make: Callable[..., AsyncConsumer]) -> None:
        cluster.produce("t", [b"v"] * 5, partition=0)
        cluster.produce("u", [b"longer"] * 3, partition=0)
        consumer = make()
        await consumer.assign([T0, TopicPartition("u", 0)])
        await drain(consumer, 8)
        metrics = consumer.metrics()
        longer = RECORD_BYTES + 5
        for topic, records, size in (("t", 5, RECORD_BYTES), ("u", 3, longer)):
            assert metrics.value("records-consumed-total", topic=topic) == records
            assert metrics.value("bytes-consumed-total", topic=topic) == records * size
            assert metrics.value("fetch-size-max", topic=topic) == records * size
        assert metrics.value("records-consumed-total") == 8
        assert metrics.value("bytes-consumed-total") == 5 * RECORD_BYTES + 3 * longer
        assert metrics.value("records-consumed-rate") == pytest.approx(8 / 30, rel=0.1)
        assert metrics.value("bytes-consumed-rate") == pytest.approx(
            (5 * RECORD_BYTES + 3 * longer) / 30, rel=0.1
        )

    with_cluster(scenario, topics={"t": 3, "u": 1})


@pytest.mark.spec("B.19.1")
def test_lag_and_lead_follow_the_position_and_change_only_when_records_are_returned() -> None:
    async def scenario(cluster: EmbeddedCluster, make: Callable[..., AsyncConsumer]) -> None:
        cluster.produce("t", [b"v"] * 10, partition=0)
        cluster.set_watermarks("t", 0, low=3)
        consumer = make()
        await consumer.assign([T0])
        await drain(consumer, 2, max_records=2)  # 3 and 4: the position is 5
        await drain(consumer, 4, max_records=4)  # the position is 9
        metrics = consumer.metrics()
        assert [metrics.value(name, topic="t", partition=0) for name in LAG] == [1, 3, 5]
        assert [metrics.value(name, topic="t", partition=0) for name in LEAD] == [6, 4, 2]
        assert (metrics.value("records-lag-max"), metrics.value("records-lead-min")) == (5, 2)
        cluster.produce("t", [b"v"] * 90, partition=0)
        await asyncio.sleep(0.2)
        consumer.seek(T0, 3)
        assert consumer.metrics().value("records-lag", topic="t", partition=0) == 1
        await drain(consumer, 1, max_records=1)
        assert consumer.metrics().value("records-lag", topic="t", partition=0) == 96

    with_cluster(scenario)


@pytest.mark.spec("B.19.1", "B.12")
@pytest.mark.parametrize(("isolation", "lag"), [("read_committed", 2), ("read_uncommitted", 5)])
def test_lag_ends_at_the_last_stable_offset_where_only_committed_records_are_read(
    isolation: str, lag: int
) -> None:
    pipeline = DeliveryPipeline(P0, isolation_level=isolation)
    registry = Registry()
    pipeline.delivery._metrics = metrics = FetchMetrics(registry)
    metrics.follow_assignment(1, (P0,))
    state = pipeline.positions.state(P0)
    state.high_watermark, state.last_stable_offset, state.log_start_offset = 10, 7, 0
    pipeline.arrive(P0, batch(0, 1, 2, 3, 4))
    assert len(pipeline.poll() or ()) == 5
    assert registry.values().value("records-lag", topic="orders", partition=0) == lag
    assert registry.values().value("records-lead", topic="orders", partition=0) == 5


class Present:
    """A reporter that knows which metrics there are."""

    def __init__(self) -> None:
        self.names: dict[MetricName, Metric] = {}
        self.settings: dict[str, Any] = {}
        self.closed = False

    def configure(self, settings: dict[str, Any]) -> None:
        self.settings = settings

    def metric_added(self, metric: Metric) -> None:
        self.names[metric.name] = metric

    def metric_removed(self, metric: Metric) -> None:
        del self.names[metric.name]

    def close(self) -> None:
        self.closed = True


@pytest.mark.spec("B.19.1", "S0-14")
def test_a_partitions_metrics_come_and_go_with_the_assignment_and_reporters_see_it() -> None:
    async def scenario(cluster: EmbeddedCluster, make: Callable[..., AsyncConsumer]) -> None:
        def of(tp: TopicPartition) -> set[str]:
            found = {name for name in reporter.names if name.tag("partition") == str(tp.partition)}
            assert found == {
                name for name in consumer.metrics() if name.tag("partition") == str(tp.partition)
            }
            return {name.name for name in found}

        for tp in (T0, T1):
            cluster.produce("t", [b"v"] * 3, partition=tp.partition)
        reporter = Present()
        consumer = make(metric_reporters=[reporter])
        assert reporter.settings["client.id"] == "me"
        await consumer.assign([T0, T1])
        assert of(T0) == of(T1) == {"preferred-read-replica", *LAG, *LEAD}
        assert all(isnan(consumer.metrics().value(name, topic="t", partition=0)) for name in (*LAG, *LEAD))
        await drain(consumer, 6)
        assert of(T0) == of(T1) == {"preferred-read-replica", *LAG, *LEAD}
        await consumer.assign([T0])
        assert of(T1) == set()
        assert of(T0) == {"preferred-read-replica", *LAG, *LEAD}
        kept = reporter.names[MetricName(*_name("records-lag"))]
        assert kept.value() == 0
        await consumer.assign([T0, T1])
        assert isnan(reporter.names[MetricName(*_name("records-lag", 1))].value())
        await consumer.close()
        assert (reporter.closed, of_partitions(reporter)) == (True, set())

    with_cluster(scenario)


def _name(name: str, partition: int = 0) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    tags = ("client-id", "me"), ("partition", str(partition)), ("topic", "t")
    return "consumer-fetch-manager-metrics", name, tags


def of_partitions(reporter: Present) -> set[MetricName]:
    return {name for name in reporter.names if name.tag("partition") is not None}


@pytest.mark.spec("B.19.1", "S2-17")
def test_fetches_are_timed_and_throttling_is_reported() -> None:
    async def scenario(cluster: EmbeddedCluster, make: Callable[..., AsyncConsumer]) -> None:
        cluster.produce("t", [b"v"] * 3, partition=0)
        cluster.throttle("Fetch", 70, times=1)
        consumer = make(fetch_max_wait_ms=300)
        await consumer.assign([T0])
        await drain(consumer, 3)
        metrics = consumer.metrics()
        assert (metrics.value("fetch-total"), metrics.value("fetch-throttle-time-max")) == (1, 70)
        assert metrics.value("fetch-latency-max") < 250
        await consumer.poll(0.6)
        metrics = consumer.metrics()
        assert metrics.value("fetch-total") >= 2
        assert metrics.value("fetch-throttle-time-avg") <= 35
        assert 300 <= metrics.value("fetch-latency-max") < 600  # it waited for records in vain
        assert metrics.value("fetch-rate") == pytest.approx(metrics.value("fetch-total") / 30, rel=0.1)

    with_cluster(scenario)


@pytest.mark.spec("B.19.1", "B.10.15")
def test_the_replica_that_is_read_instead_of_the_leader_is_named() -> None:
    async def scenario(cluster: EmbeddedCluster, make: Callable[..., AsyncConsumer]) -> None:
        leader = cluster.leader_of("t", 0)
        follower = next(node for node in cluster.state.brokers if node != leader)
        cluster.produce("t", [b"v"] * 3, partition=0)
        consumer = make()
        await consumer.assign([T0])
        assert consumer.metrics().value("preferred-read-replica", topic="t", partition=0) == -1
        cluster.set_follower("t", 0, follower)
        await drain(consumer, 3)
        assert consumer.metrics().value("preferred-read-replica", topic="t", partition=0) == follower

    with_cluster(scenario, brokers=2)


@pytest.mark.spec("U-01", "B.19.1")
def test_records_that_retention_took_are_counted_by_that_reason() -> None:
    async def scenario(cluster: EmbeddedCluster, make: Callable[..., AsyncConsumer]) -> None:
        cluster.produce("t", [b"v"] * 50, partition=0)
        cluster.set_watermarks("t", 0, low=40)
        consumer = make()
        await consumer.assign([T0])
        consumer.seek(T0, 10)
        await drain(consumer, 10)
        metrics = consumer.metrics()
        assert metrics.value("records-skipped-total", reason="retention") == 30
        assert metrics.value("offset-resets-total") == 1

    with_cluster(scenario)


@pytest.mark.spec("B.1")
def test_windows_are_as_long_and_as_many_as_configured() -> None:
    async def scenario(cluster: EmbeddedCluster, make: Callable[..., AsyncConsumer]) -> None:
        cluster.produce("t", [b"v"] * 3, partition=0)
        consumer = make(config={"metrics.sample.window.ms": "100", "metrics.num.samples": "1"})
        await consumer.assign([T0])
        await drain(consumer, 3)
        metrics = consumer.metrics()
        assert metrics.value("records-consumed-rate") > 3 / 0.2
        await asyncio.sleep(0.15)
        metrics = consumer.metrics()
        assert (metrics.value("records-consumed-rate"), metrics.value("records-consumed-total")) == (0, 3)

    with_cluster(scenario)
