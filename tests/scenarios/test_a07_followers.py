"""Scenario A-07: fetching from a follower in one's own rack (KIP-392)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kclient import AsyncConsumer
from kclient.embedded import EmbeddedCluster
from kclient.embedded.observer import LoggedRequest
from tests.scenarios.support import T0, asked, consumer_of, play, read

pytestmark = pytest.mark.spec("A-07", "B.10.15")

NEAR, LEADER, FAR = 1, 2, 3
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
Scenario = Callable[[EmbeddedCluster, AsyncConsumer], Awaitable[None]]


def near_a_follower(scenario: Scenario, **settings: Any) -> None:
    """The consumer is in rack a, as broker 1 is; broker 2 in rack b leads, and holds five records of five batches."""

    async def run() -> None:
        async with EmbeddedCluster(
            brokers=3,
            racks=["a", "b", "c"],
            config={"replica.selector.class": RACK_AWARE, "replica.lag.time.max.ms": 300},
        ) as cluster:
            cluster.create_topic("t", 1)
            cluster.move_leader("t", 0, LEADER)
            for n in range(5):
                cluster.produce("t", [b"%d" % n])
            async with consumer_of(cluster, **{"client_rack": "a", **settings}) as consumer:
                await consumer.assign([T0])
                consumer.seek(T0, 0)
                await scenario(cluster, consumer)

    play(run)


def fetches(cluster: EmbeddedCluster) -> list[LoggedRequest]:
    """Those that ask for something, in the order in which they came."""
    return [one for one in asked(cluster, "Fetch") if one.request.session_epoch >= 0]


def nodes(cluster: EmbeddedCluster) -> list[int]:
    return [one.node for one in fetches(cluster)]


async def values(consumer: AsyncConsumer, count: int) -> list[bytes]:
    return [record.value for record in await read(consumer, count)]


async def polled_until(consumer: AsyncConsumer, condition: Callable[[], object]) -> None:
    """Poll, and get nothing, until something holds."""
    async with asyncio.timeout(10):
        while not condition():
            assert list(await consumer.poll(0.02)) == []


@pytest.mark.spec("B.10.2")
def test_a07_followers_serve_after_the_leader_named_them() -> None:
    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        assert await values(consumer, 5) == [b"%d" % n for n in range(5)]
        first, second, *_ = fetches(cluster)
        assert (first.node, second.node) == (LEADER, NEAR)
        (row,) = first.response.responses[0].partitions
        assert (row.preferred_read_replica, bytes(row.records)) == (NEAR, b"")
        assert first.request.rack_id == "a"
        cluster.produce("t", [b"new"])
        assert await values(consumer, 1) == [b"new"]
        assert set(nodes(cluster)[1:]) == {NEAR}

    near_a_follower(scenario)


@pytest.mark.spec("S2-18")
def test_a07_followers_that_die_are_replaced_by_the_leader_and_nothing_is_lost() -> None:
    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        await read(consumer, 5)
        cluster.forget_requests()
        cluster.kill(NEAR)
        cluster.produce("t", [b"new"])
        assert await values(consumer, 1) == [b"new"]
        assert nodes(cluster)[-1] == LEADER

    near_a_follower(scenario)


@pytest.mark.parametrize(
    "code",
    [
        "NOT_LEADER_OR_FOLLOWER",
        "KAFKA_STORAGE_ERROR",
        "UNKNOWN_SERVER_ERROR",
        "UNKNOWN_LEADER_EPOCH",
        "OFFSET_NOT_AVAILABLE",
        "OFFSET_OUT_OF_RANGE",
    ],
)
@pytest.mark.spec("B.15.12", "S2-30", "S2-31", "S0-10")
def test_a07_followers_that_answer_an_error_are_left_for_the_leader_at_the_same_offset(code: str) -> None:
    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        await read(consumer, 5)
        position = await consumer.position(T0)
        cluster.forget_requests()
        rule = cluster.on("Fetch", refusing(code), broker=NEAR)
        cluster.produce("t", [b"new"])
        await polled_until(consumer, lambda: LEADER in nodes(cluster))
        at_the_leader = next(one for one in fetches(cluster) if one.node == LEADER)
        assert [p.fetch_offset for t in at_the_leader.request.topics for p in t.partitions] == [5]
        cluster.lift(rule)
        assert await values(consumer, 1) == [b"new"]
        assert position == 5
        assert asked(cluster, "ListOffsets") == []
        if code in ("NOT_LEADER_OR_FOLLOWER", "KAFKA_STORAGE_ERROR", "OFFSET_NOT_AVAILABLE"):
            await polled_until(consumer, lambda: asked(cluster, "Metadata"))
        else:
            assert asked(cluster, "Metadata") == []

    near_a_follower(scenario, auto_offset_reset="latest")


def refusing(code: str) -> Callable[[Any, Any], Any]:
    """Responses say this of every partition."""
    from kclient.embedded.control.faults import error_code

    def edit(request: Any, response: Any) -> Any:
        for topic in response.responses:
            for row in topic.partitions:
                row.error_code, row.records, row.preferred_read_replica = error_code(code), b"", -1
        return response

    return edit


@pytest.mark.spec("S2-31", "S2-32")
def test_a07_followers_that_lag_say_out_of_range_and_only_the_leader_may_reset() -> None:
    """The follower's own end is below the position: no reset. The leader's log begins above it: the policy acts."""

    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        await read(consumer, 5)
        cluster.lag("t", 0, NEAR, 2)
        await polled_until(consumer, lambda: nodes(cluster)[-1] == LEADER)
        cluster.produce("t", [b"5", b"6"])
        assert await values(consumer, 2) == [b"5", b"6"]
        assert asked(cluster, "ListOffsets") == []
        cluster.catch_up("t", 0)
        consumer.seek(T0, 100)
        cluster.forget_requests()
        assert await values(consumer, 7) == [b"%d" % n for n in range(7)]
        assert len(asked(cluster, "ListOffsets")) == 1

    near_a_follower(scenario)


def test_a07_followers_are_preferred_for_metadata_max_age_and_then_the_leader_is_asked_once() -> None:
    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        await read(consumer, 5)
        cluster.forget_requests()
        await polled_until(consumer, lambda: nodes(cluster).count(LEADER) >= 3)
        seen = nodes(cluster)
        at = [one.at for one in fetches(cluster) if one.node == LEADER]
        assert all(0.3 <= later - earlier <= 0.8 for earlier, later in itertools.pairwise(at))
        for n, node in enumerate(seen[:-1]):
            assert node == NEAR or seen[n + 1] == NEAR

    near_a_follower(scenario, metadata_max_age_ms=300)


@pytest.mark.spec("B.10.2", "B.6.4")
def test_a07_followers_are_left_when_the_leader_changes() -> None:
    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        await read(consumer, 5)
        cluster.forget_requests()
        cluster.move_leader("t", 0, FAR)
        await polled_until(consumer, lambda: FAR in nodes(cluster))
        cluster.produce("t", [b"new"])
        assert await values(consumer, 1) == [b"new"]

    near_a_follower(scenario, metadata_max_age_ms=100)


def test_a07_followers_that_metadata_does_not_know_cost_no_storm_of_requests() -> None:
    def of_nowhere(request: Any, response: Any) -> Any:
        for topic in response.responses:
            for row in topic.partitions:
                row.preferred_read_replica = 9
        return response

    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        rule = cluster.on("Fetch", of_nowhere, broker=LEADER)
        end = asyncio.get_running_loop().time() + 1.0
        await polled_until(consumer, lambda: asyncio.get_running_loop().time() > end)
        assert 2 <= len(fetches(cluster)) <= 6
        assert set(nodes(cluster)) == {LEADER}
        cluster.lift(rule)
        assert await values(consumer, 5) == [b"%d" % n for n in range(5)]

    near_a_follower(scenario)
