"""Every partition gets its turn (KIP-74), whether the session's broker keeps the order or the request."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kclient import AsyncConsumer
from kclient.embedded import EmbeddedCluster
from kclient.records.writer import NewRecord, build_batch
from kclient.types import OffsetAndMetadata, TopicPartition
from tests.fetch.fetch_support import P0, P1, P2, batch
from tests.fetch.fetcher_support import Logs, fetching, offsets_asked
from tests.positions.fake_cluster import FakeCluster, run

PARTITIONS = 4
BATCHES = 25


@pytest.mark.spec("B.10.5", "D-59")
@pytest.mark.parametrize("release", ["4.3", "2.8", "0.11.0"])
@pytest.mark.parametrize("slots", [1000, 0], ids=["session", "no session"])
def test_where_a_response_holds_one_batch_each_partition_has_its_turn(release: str, slots: int) -> None:
    async def main() -> None:
        config = {"max.incremental.fetch.session.cache.slots": slots}
        async with EmbeddedCluster(topics={"t": PARTITIONS}, release=release, config=config) as cluster:
            for partition in range(PARTITIONS):
                for _ in range(BATCHES if partition else 10 * BATCHES):
                    cluster.produce("t", [b"x" * 100], partition=partition)
            keys: dict[str, Any] = {
                "auto_offset_reset": "earliest",
                "fetch_max_bytes": 1,
                "fetch_max_wait_ms": 50,
            }
            served: list[int] = []
            async with AsyncConsumer(bootstrap_servers=cluster.bootstrap_servers, **keys) as consumer:
                await consumer.assign([TopicPartition("t", n) for n in range(PARTITIONS)])
                async with asyncio.timeout(30):
                    while len(served) < PARTITIONS * BATCHES:
                        served += [record.partition for record in await consumer.poll(1.0)]
        turns = [served[n : n + 3 * PARTITIONS] for n in range(0, PARTITIONS * (BATCHES - 5), PARTITIONS)]
        assert all(len(set(some)) == PARTITIONS for some in turns), served

    asyncio.run(main())


@pytest.mark.spec("B.10.5", "D-59")
def test_the_order_of_service_outlives_a_new_plan() -> None:
    async def scenario() -> None:
        cluster = FakeCluster({("orders", n): (1, 5) for n in range(3)})
        logs = Logs(cluster)
        for n in range(3):
            logs.append(P0, n, n + 1, batch(n))
        async with fetching(cluster, P0, P1, P2) as (pipeline, _):
            while pipeline.offset(P0) != 3:
                pipeline.poll()
                cluster.metadata.changed.notify()  # so that all is planned again
                await asyncio.sleep(0.01)
            orders = [[partition for partition, _ in asked] for asked in offsets_asked(cluster)]
            assert orders[0] == [0, 1, 2]
            assert orders[1:] == [[1, 2, 0]] * len(orders[1:])

    run(scenario())


@pytest.mark.spec("B.10.5", "D-59")
def test_a_partition_that_is_paused_or_moved_keeps_its_turn() -> None:
    """Only who got something has its next turn last."""

    async def scenario() -> None:
        cluster = FakeCluster({("orders", n): (1, 5) for n in range(3)})
        logs = Logs(cluster)
        logs.append(P1, 0, 1, batch(0))
        async with fetching(cluster, P0, P1, P2) as (pipeline, _):
            pipeline.positions.pause(P0)
            await asyncio.sleep(0.1)
            pipeline.poll()
            pipeline.positions.resume(P0)
            pipeline.positions.seek(P2, OffsetAndMetadata(5), pipeline.positions.state(P2).position.leader)
            await asyncio.sleep(1)
            assert offsets_asked(cluster)[-1] == [(0, 0), (2, 5), (1, 1)]

    run(scenario())


@pytest.mark.spec("B.10.5", "D-59")
def test_where_memory_holds_one_response_the_brokers_have_it_by_turns() -> None:
    """Each partition has its own leader, and a batch takes more than half of the memory."""

    async def scenario() -> None:
        cluster = FakeCluster({("orders", n): (n + 1, 5) for n in range(3)})
        logs = Logs(cluster)
        for tp in (P0, P1, P2):
            for n in range(30):
                logs.append(
                    tp, n, n + 1, build_batch([NewRecord(None, b"x" * 60_000, 0, offset=n)], base_offset=n)
                )
        keys = {"buffer_memory_bytes": 100_000, "max_partition_fetch_bytes": 100_000}
        async with fetching(cluster, P0, P1, P2, **keys) as (pipeline, _):
            served: list[int] = []
            while len(served) < 30:
                served += [record.partition for record in pipeline.poll(1) or ()]
                await asyncio.sleep(0.01)
        assert sorted(served[:3]) == [0, 1, 2]
        assert served == served[:3] * 10

    run(scenario())
