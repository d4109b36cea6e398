"""Scenario A-01: the first consumer of a group on a cluster that has never had one, with each reset policy."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kclient import AsyncConsumer
from kclient.embedded import EmbeddedCluster
from kclient.embedded.observer import LoggedRequest
from kclient.errors import NoOffsetError
from tests.scenarios.support import T0, T1, asked, consumer_of, play, read

HOUR_MS = 3_600_000
COORDINATOR_NOT_AVAILABLE, MEMBER_ID_REQUIRED = 15, 79
FLOW = ("FindCoordinator", "JoinGroup", "SyncGroup", "OffsetFetch", "ListOffsets")

pytestmark = pytest.mark.spec(
    "A-01", "S0-01", "S0-03", "S0-06", "S0-09", "S0-19", "S0-25", "S0-32", "S0-41", "S1-03", "S1-35", "D-20",
)  # fmt: skip

Scenario = Callable[[EmbeddedCluster], Awaitable[None]]


def cold(scenario: Scenario, seconds: float = 30.0) -> None:
    """Ten records in each partition: five of two hours ago, five of ten minutes ago. No `__consumer_offsets` yet."""

    async def run() -> None:
        config = {"offsets.topic.replication.factor": 1}
        async with EmbeddedCluster(brokers=3, topics={"t": 2}, config=config) as cluster:
            now = cluster.state.clock.wall_ms()
            for age in (2 * HOUR_MS, HOUR_MS // 6):
                for partition in (0, 1):
                    values = [f"{partition}-{age}-{number}" for number in range(5)]
                    cluster.produce("t", values, partition=partition, timestamp_ms=now - age)
            assert "__consumer_offsets" not in cluster.state.topics
            await scenario(cluster)

    play(run, seconds)


def first(cluster: EmbeddedCluster, api: str) -> LoggedRequest:
    return asked(cluster, api)[0]


def check_the_way_to_a_position(cluster: EmbeddedCluster, resets: bool = True) -> None:
    """What went over the wire from the first FindCoordinator on, and in which order."""
    found = [one.response.coordinators[0].error_code for one in asked(cluster, "FindCoordinator")]
    assert found[0] == COORDINATOR_NOT_AVAILABLE
    assert found[-1] == 0
    joins = asked(cluster, "JoinGroup")
    assert [one.response.error_code for one in joins] == [MEMBER_ID_REQUIRED, 0]
    assert [one.request.member_id for one in joins] == ["", joins[0].response.member_id]
    (sync,) = asked(cluster, "SyncGroup")
    assert [one.member_id for one in sync.request.assignments] == [joins[1].response.member_id]
    (fetch,) = asked(cluster, "OffsetFetch")
    (topic,) = fetch.response.groups[0].topics
    assert sorted((one.partition_index, one.committed_offset) for one in topic.partitions) == [
        (0, -1),
        (1, -1),
    ]
    sent = [one.api for one in cluster.requests if one.api in FLOW]
    flow = list(dict.fromkeys(sent))
    assert flow == list(FLOW if resets else FLOW[:-1])
    if resets:
        assert sent.index("ListOffsets") > sent.index("OffsetFetch")
        asked_of = {
            (one.node, partition.partition_index)
            for one in asked(cluster, "ListOffsets")
            for partition in one.request.topics[0].partitions
        }
        assert asked_of == {(cluster.leader_of("t", partition), partition) for partition in (0, 1)}
    first_fetch = cluster.requests.index(first(cluster, "Fetch")) if asked(cluster, "Fetch") else None
    if first_fetch is not None:
        before = [one.api for one in cluster.requests[:first_fetch]]
        assert "ListOffsets" in before


async def positions(consumer: AsyncConsumer) -> dict[Any, int]:
    return {tp: await consumer.position(tp) for tp in consumer.assignment()}


async def assigned(consumer: AsyncConsumer) -> None:
    """Poll until both partitions are there."""
    async with asyncio.timeout(10):
        while len(consumer.assignment()) < 2:
            assert len(await consumer.poll(0.05)) == 0
    assert set(consumer.assignment()) == {T0, T1}


@pytest.mark.spec("S1-03", "S4-30", "S4-48", "S0-31", "S0-24", "S0-56")
def test_earliest_reads_all_and_continues_at_its_commits() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        async with consumer_of(cluster, "t", group_id="g") as consumer:
            records = await read(consumer, 20)
            assert sorted((record.partition, record.offset) for record in records) == [
                (partition, offset) for partition in (0, 1) for offset in range(10)
            ]
            check_the_way_to_a_position(cluster)
            await consumer.commit()
        assert cluster.committed("g") == {T0: 10, T1: 10}
        cluster.produce("t", ["new"], partition=1)
        cluster.forget_requests()
        async with consumer_of(cluster, "t", group_id="g") as again:
            (record,) = await read(again, 1)
            assert (record.partition, record.offset) == (1, 10)
            assert await positions(again) == {T0: 10, T1: 11}
        assert asked(cluster, "ListOffsets") == []
        assert len(asked(cluster, "OffsetFetch")) == 1

    cold(scenario)


def test_latest_reads_what_is_written_from_now_on() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        async with consumer_of(cluster, "t", group_id="g", auto_offset_reset="latest") as consumer:
            await assigned(consumer)
            assert await positions(consumer) == {T0: 10, T1: 10}
            assert len(await consumer.poll(0.2)) == 0
            check_the_way_to_a_position(cluster)
            cluster.produce("t", ["new"], partition=0)
            (record,) = await read(consumer, 1)
            assert (record.partition, record.offset, record.value) == (0, 10, b"new")

    cold(scenario)


@pytest.mark.spec("S0-07", "U-01")
@pytest.mark.parametrize(
    "keys", [{"auto_offset_reset": "none"}, {"on_no_committed_offset": "error"}], ids=str
)
def test_none_raises_one_error_that_names_both_and_a_seek_ends_it(keys: dict[str, str]) -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        async with consumer_of(cluster, "t", group_id="g", **{"auto_offset_reset": None, **keys}) as consumer:
            with pytest.raises(NoOffsetError) as caught:
                await read(consumer, 1)
            assert sorted(caught.value.partitions) == [T0, T1]
            check_the_way_to_a_position(cluster, resets=False)
            consumer.seek(T0, 8)
            consumer.seek(T1, 9)
            assert sorted((record.partition, record.offset) for record in await read(consumer, 3)) == [
                (0, 8), (0, 9), (1, 9),
            ]  # fmt: skip
            assert asked(cluster, "ListOffsets") == []

    cold(scenario)


@pytest.mark.spec("S0-44", "S0-55", "D-82")
def test_by_duration_begins_with_the_first_record_that_new() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        keys = {"group_id": "g", "auto_offset_reset": "by_duration:PT1H"}
        async with consumer_of(cluster, "t", **keys) as consumer:
            records = await read(consumer, 10)
            assert sorted((record.partition, record.offset) for record in records) == [
                (partition, offset) for partition in (0, 1) for offset in range(5, 10)
            ]
            check_the_way_to_a_position(cluster)

    cold(scenario)
