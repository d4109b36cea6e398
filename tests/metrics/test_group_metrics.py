"""Polls, commits and the group, on a virtual clock: every number is exact.

The simulated wires take ten milliseconds a way; what a test delays takes so much longer.
"""

from __future__ import annotations

import asyncio
from math import isnan
from typing import Any

import pytest

from kclient.types import TopicPartition
from tests.scenarios.simulated import Place, simulate

T0 = TopicPartition("t", 0)
TOPICS: dict[str, Any] = {"topics": {"t": 1}, "config": {"group.initial.rebalance.delay.ms": 0}}


def ms(value: float, within: float = 1.0) -> Any:
    return pytest.approx(value, abs=within)


ROUND_TRIP = 20


@pytest.mark.spec("B.19.1", "S3-07")
def test_time_between_polls_and_how_much_of_it_is_spent_inside() -> None:
    async def scenario(place: Place) -> None:
        consumer = place.consumer("t", group_id="g", fetch_max_wait_ms=500)
        assert consumer.metrics().value("last-poll-seconds-ago") == -1
        await place.poll_until(consumer, consumer.assignment)
        await asyncio.sleep(100)  # what came before is out of the windows
        assert consumer.metrics().value("last-poll-seconds-ago") == 100
        for pause in (3, 9):
            await place.on_member(consumer.poll(1.0))
            await asyncio.sleep(pause)
        metrics = consumer.metrics()
        assert metrics.value("last-poll-seconds-ago") == 10
        await place.on_member(consumer.poll(1.0))
        metrics = consumer.metrics()  # gaps of 100, 4 and 10 s; inside 1 of 101, 1 of 4, 1 of 10
        assert metrics.value("time-between-poll-max") == ms(100_100, 200)
        assert metrics.value("time-between-poll-avg") == ms((100_100 + 4_000 + 10_000) / 3, 100)
        assert metrics.value("poll-idle-ratio-avg") == pytest.approx(
            (1 / 101 + 1 / 4 + 1 / 10) / 3, abs=0.001
        )

    simulate(scenario, **TOPICS)


@pytest.mark.spec("B.19.1", "S3-07")
def test_a_poll_that_raises_has_ended_as_well() -> None:
    async def scenario(place: Place) -> None:
        consumer = place.consumer(group_id=None)
        await place.on_member(consumer.assign([T0]))
        consumer.wakeup()
        with pytest.raises(Exception, match="wakeup"):
            await place.on_member(consumer.poll(1.0))
        await asyncio.sleep(4)
        await place.on_member(consumer.poll(1.0))
        metrics = consumer.metrics()
        assert (metrics.value("poll-total"), metrics.value("time-between-poll-max")) == (2, ms(4_000))
        assert metrics.value("poll-idle-ratio-avg") == pytest.approx(0.2, abs=0.01)  # 1 s of 5

    simulate(scenario, **TOPICS)


@pytest.mark.spec("B.19.1")
def test_commits_take_the_time_that_the_coordinator_takes() -> None:
    async def scenario(place: Place) -> None:
        cluster = place.cluster
        cluster.produce("t", ["a", "b"])
        consumer = place.consumer("t", group_id="g")
        await place.read(consumer, 2)
        cluster.delay("OffsetCommit", 250, times=1)
        cluster.delay("OffsetFetch", 125, times=1)
        before = consumer.metrics().value("committed-time-ns-total")
        await place.on_member(consumer.commit())
        await place.on_member(consumer.commit())
        await place.on_member(consumer.committed([T0]))
        metrics = consumer.metrics()
        assert (metrics.value("commit-total"), metrics.value("commit-rate")) == (
            2,
            pytest.approx(2 / 30, rel=0.1),
        )
        assert (metrics.value("commit-latency-max"), metrics.value("commit-latency-avg")) == (
            ms(250 + ROUND_TRIP),
            ms(125 + ROUND_TRIP),
        )
        assert metrics.value("commit-sync-time-ns-total") == pytest.approx(0.29e9, rel=0.01)
        assert (before, metrics.value("committed-time-ns-total")) == (0, pytest.approx(0.145e9, rel=0.01))
        cluster.fail("OffsetCommit", "GROUP_AUTHORIZATION_FAILED")
        with pytest.raises(Exception, match="AUTHORIZATION"):
            await place.on_member(consumer.commit())
        metrics = consumer.metrics()
        assert (metrics.value("commit-total"), metrics.value("commit-failed-total")) == (2, 1)

    simulate(scenario, **TOPICS)


@pytest.mark.spec("B.19.1")
def test_heartbeats_are_counted_with_the_longest_response() -> None:
    async def scenario(place: Place) -> None:
        consumer = place.consumer("t", group_id="g", heartbeat_interval_ms=3_000)
        await place.poll_until(consumer, consumer.assignment)
        assert consumer.metrics().value("last-heartbeat-seconds-ago") == -1
        assert isnan(consumer.metrics().value("heartbeat-response-time-max"))
        place.cluster.delay("Heartbeat", 40, times=2)
        await asyncio.sleep(10)  # at 3, 6 and 9 s
        metrics = consumer.metrics()
        assert (metrics.value("heartbeat-total"), metrics.value("last-heartbeat-seconds-ago")) == (3, 1)
        assert metrics.value("heartbeat-response-time-max") == ms(40 + ROUND_TRIP)
        assert metrics.value("heartbeat-rate") == pytest.approx(3 / 37, rel=0.05)  # the windows began 7 s ago

    simulate(scenario, **TOPICS)


@pytest.mark.spec("B.19.1")
def test_a_rebalance_lasts_from_the_first_join_to_the_assignment_and_what_failed_is_counted() -> None:
    async def scenario(place: Place) -> None:
        cluster = place.cluster
        consumer = place.consumer("t", group_id="g")
        cluster.fail("SyncGroup", "REBALANCE_IN_PROGRESS", times=1)
        cluster.delay("SyncGroup", 200, times=2)
        assert consumer.metrics().value("last-rebalance-seconds-ago") == -1
        await place.poll_until(consumer, consumer.assignment)
        metrics = consumer.metrics()
        assert (metrics.value("join-total"), metrics.value("sync-total")) == (2, 1)
        assert (metrics.value("rebalance-total"), metrics.value("failed-rebalance-total")) == (1, 1)
        assert (metrics.value("sync-time-max"), metrics.value("sync-time-avg")) == (
            ms(200 + ROUND_TRIP),
            ms(200 + ROUND_TRIP),
        )
        assert metrics.value("join-time-max") == ms(ROUND_TRIP)
        latencies = [metrics.value(f"rebalance-latency-{kind}") for kind in ("avg", "max", "total")]
        assert latencies == [latencies[0]] * 3
        assert 2 * (200 + ROUND_TRIP) < latencies[0] < 600  # both tries, and the round trips before them
        assert metrics.value("rebalance-rate-per-hour") == pytest.approx(120, rel=0.05)
        assert metrics.value("failed-rebalance-rate-per-hour") == pytest.approx(120, rel=0.05)
        await asyncio.sleep(7)
        assert consumer.metrics().value("last-rebalance-seconds-ago") == 7

    simulate(scenario, **TOPICS)


class Slow:
    """A listener that takes its time."""

    async def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        await asyncio.sleep(0.3)

    async def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        await asyncio.sleep(0.5)

    async def on_partitions_lost(self, partitions: tuple[TopicPartition, ...]) -> None:
        await asyncio.sleep(0.7)


@pytest.mark.spec("B.19.1")
def test_a_listener_is_timed_method_by_method() -> None:
    async def scenario(place: Place) -> None:
        consumer = place.consumer("t", group_id="g", listener=Slow())
        latencies = [f"partition-{name}-latency-max" for name in ("assigned", "revoked", "lost")]
        assert all(isnan(consumer.metrics().value(name)) for name in latencies)
        await place.poll_until(consumer, consumer.assignment)
        consumer.enforce_rebalance()
        await place.poll_until(consumer, lambda: consumer.metrics().value("rebalance-total") == 2)
        await place.poll_until(consumer, consumer.assignment)
        place.cluster.fail("Heartbeat", "UNKNOWN_MEMBER_ID")
        await place.poll_until(consumer, lambda: consumer.metrics().value("partitions-lost-total") == 1)
        await place.poll_until(consumer, consumer.assignment)
        metrics = consumer.metrics()
        assert [metrics.value(name) for name in latencies] == [ms(300), ms(500), ms(700)]
        assert metrics.value("assigned-partitions") == 1
        own = ("assignments-total", "partitions-assigned-total", "partitions-revoked-total")
        assert [metrics.value(name) for name in own] == [3, 3, 1]

    simulate(scenario, **TOPICS)


@pytest.mark.spec("B.19.1")
def test_connections_requests_and_bytes_are_counted_for_all_and_for_each_node() -> None:
    async def scenario(place: Place) -> None:
        consumer = place.consumer("t", group_id="g")
        await place.poll_until(consumer, consumer.assignment)
        metrics = consumer.metrics()
        opened, closed = metrics.value("connection-creation-total"), metrics.value("connection-close-total")
        assert (metrics.value("connection-count"), opened, closed) == (
            2,
            3,
            1,
        )  # the bootstrap connection is closed
        names = ("node-1", "node-2147483646")
        bootstrap = 2  # ApiVersions and Metadata
        assert metrics.value("request-total") == bootstrap + sum(
            metrics.value("request-total", node_id=name) for name in names
        )
        assert metrics.value("response-total") + 1 >= metrics.value("request-total")
        assert metrics.value("network-io-total") == metrics.value("request-total") + metrics.value(
            "response-total"
        )
        coordinator = [
            one for one in place.cluster.requests if one.api in ("JoinGroup", "SyncGroup", "OffsetFetch")
        ]
        # ApiVersions before them.
        assert metrics.value("request-total", node_id=names[1]) == 1 + len(coordinator)
        ways = list(place.network.between("member", "broker-1"))
        assert len(ways) == 2
        place.cluster.delay("Heartbeat", 80, times=1)
        before = metrics.value("outgoing-byte-total", node_id=names[1])
        await asyncio.sleep(4)
        metrics = consumer.metrics()
        assert metrics.value("request-latency-max", node_id=names[1]) == ms(80 + ROUND_TRIP)
        assert metrics.value("outgoing-byte-total", node_id=names[1]) > before

    simulate(scenario, release="4.4", **TOPICS)  # older ones refuse the newest ApiVersions first
