"""Reading from followers (KIP-392): who is sent where, and what a follower that lags can serve."""

from __future__ import annotations

import asyncio

import pytest

from kclient import AsyncConsumer, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.embedded.fetch import RACK_AWARE
from kclient.protocol.errors import NONE, NOT_LEADER_OR_FOLLOWER, OFFSET_OUT_OF_RANGE
from tests.embedded.one_topic import OneTopic, batch, values
from tests.embedded.raw_client import RawClient

RACKED = {"racks": ["a", "b", "b"], "config": {"replica.selector.class": RACK_AWARE}}


@pytest.mark.spec("B.10.15")
def test_the_leader_sends_a_consumer_to_the_follower_in_its_rack_that_is_furthest() -> None:
    async def main() -> None:
        async with (
            EmbeddedCluster(brokers=3, topics={"orders": 1}, **RACKED) as cluster,
            RawClient(cluster) as raw_client,
        ):
            on = OneTopic(cluster, raw_client, "orders")
            await on.produce(batch(b"a"))
            cluster.lag("orders", 0, 2)
            await on.produce(batch(b"b"), acks=1)

            async def sent_to(rack: str, offset: int = 0, version: int = 12) -> int:
                row = await on.fetch(offset, rack_id=rack, version=version)
                assert bool(row.records) == (row.preferred_read_replica < 0 and offset == 0)
                return int(row.preferred_read_replica)

            assert [await sent_to(rack) for rack in ("", "a", "b", "c")] == [-1, -1, 3, -1]
            assert await sent_to("b", version=11) == 3
            cluster.lag("orders", 0, 3, 0)
            assert await sent_to("b", offset=1) == 2
            assert await sent_to("b", offset=2) == -1  # neither has it
            cluster.kill(2)
            assert await sent_to("b", offset=1) == -1

    asyncio.run(main())


@pytest.mark.spec("B.10.15", "F-38")
def test_the_leader_redirects_no_fetch_for_an_offset_below_the_log_start() -> None:
    async def main() -> None:
        async with (
            EmbeddedCluster(brokers=3, topics={"orders": 1}, **RACKED) as cluster,
            RawClient(cluster) as raw_client,
        ):
            on = OneTopic(cluster, raw_client, "orders")
            await on.produce(batch(b"a", b"b"))
            cluster.delete_records("orders", 0, 1)
            below, at = await on.fetch(0, rack_id="b"), await on.fetch(1, rack_id="b")
            assert (below.error_code, below.preferred_read_replica) == (OFFSET_OUT_OF_RANGE, -1)
            assert (at.error_code, at.preferred_read_replica) == (NONE, 2)

    asyncio.run(main())


@pytest.mark.spec("B.10.15", "F-44")
def test_a_follower_serves_what_it_has() -> None:
    async def main() -> None:
        async with (
            EmbeddedCluster(brokers=3, topics={"orders": 1}) as cluster,
            RawClient(cluster) as raw_client,
        ):
            on = OneTopic(cluster, raw_client, "orders")
            await on.produce(batch(b"a"))
            cluster.lag("orders", 0, 2)
            await on.produce(batch(b"b"), acks=1)
            cluster.clock.advance("31s")  # out of sync, so it holds nothing up
            row = await on.fetch(0, node=3)
            assert (row.high_watermark, values(row)) == (2, [b"a", b"b"])
            row = await on.fetch(0, node=2)
            assert (row.high_watermark, values(row)) == (1, [b"a"])
            assert (await on.fetch(1, node=2)).error_code == NONE
            assert (await on.fetch(2, node=2)).error_code == OFFSET_OUT_OF_RANGE
            assert (await on.fetch(0, node=2, version=10)).error_code == NOT_LEADER_OR_FOLLOWER

    asyncio.run(main())


@pytest.mark.spec("B.10.15")
def test_a_consumer_reads_on_at_the_leader_when_its_follower_lags() -> None:
    async def main() -> None:
        async with EmbeddedCluster(brokers=3, topics={"orders": 1}, **RACKED) as cluster:
            cluster.produce("orders", ["1", "2"], partition=0)
            options = {"auto_offset_reset": "earliest", "client_rack": "b"}
            async with AsyncConsumer(bootstrap_servers=cluster.bootstrap_servers, **options) as consumer:
                await consumer.assign([TopicPartition("orders", 0)])
                read = [record.value for record in await consumer.poll(timeout=5)]
                for node in (2, 3):
                    cluster.lag("orders", 0, node, 0)
                    cluster.clock.advance("31s")
                cluster.produce("orders", ["3"], partition=0)
                while len(read) < 3:
                    read += [record.value for record in await consumer.poll(timeout=5)]
            assert read == [b"1", b"2", b"3"]

    asyncio.run(asyncio.wait_for(main(), 30))
