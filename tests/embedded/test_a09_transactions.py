"""Scenario A-09: one partition with every way in which transactions can lie, read by our consumer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kclient import AsyncConsumer
from kclient.embedded import EmbeddedCluster
from kclient.protocol.errors import NONE
from kclient.records.writer import NewRecord, build_batch
from kclient.types import TopicPartition
from tests.embedded.raw_client import RawClient
from tests.embedded.raw_producer import RawProducer, produce, settled

T0 = TopicPartition("t", 0)
COMMITTED = [b"1", b"2", b"plain", b"even", b"again", b"more plain"]
OPEN = [b"open", b"hidden behind it"]
Play = Callable[[EmbeddedCluster, RawClient], Awaitable[None]]

pytestmark = pytest.mark.spec("S0-51", "S2-41", "B.10.9", "B.12", "D-51", "D-52", "U-04", "I-05")
both = pytest.mark.parametrize("v2", [False, True], ids=["V1", "V2"])


async def plain(cluster: EmbeddedCluster, raw_client: RawClient, value: bytes) -> None:
    batch = build_batch([NewRecord(None, value, cluster.state.clock.wall_ms())])
    assert (await produce(cluster, raw_client, T0, batch)).error_code == NONE


async def fill(cluster: EmbeddedCluster, raw_client: RawClient, v2: bool) -> RawProducer:
    """The partition of the scenario; the producer whose transaction is left open."""
    first, second = (RawProducer(cluster, raw_client, name, v2=v2) for name in ("first", "second"))
    assert [await first.init(), await second.init()] == [NONE, NONE]
    await first.transact(T0, b"1", b"2", commit=True)
    await first.transact(T0, b"aborted", commit=False)
    await plain(cluster, raw_client, b"plain")
    await settled(cluster)
    await first.begin_write(T0, b"odd")
    await second.begin_write(T0, b"even")
    assert [await second.end(commit=True), await first.end(commit=False)] == [NONE, NONE]
    await first.transact(T0, b"again", commit=True)
    await first.transact(T0, b"gone", commit=False)
    await plain(cluster, raw_client, b"more plain")
    await settled(cluster)
    await second.begin_write(T0, b"open")
    await plain(cluster, raw_client, b"hidden behind it")
    return second


def run(v2: bool, play: Callable[[EmbeddedCluster, RawClient, RawProducer], Awaitable[None]]) -> None:
    async def main() -> None:
        async with EmbeddedCluster(brokers=1, topics={"t": 1}) as cluster, RawClient(cluster) as raw_client:
            await play(cluster, raw_client, await fill(cluster, raw_client, v2))

    asyncio.run(main())


def consumer_of(cluster: EmbeddedCluster, isolation_level: str = "read_committed") -> AsyncConsumer:
    return AsyncConsumer(
        bootstrap_servers=cluster.bootstrap_servers,
        auto_offset_reset="earliest",
        isolation_level=isolation_level,
        fetch_max_wait_ms=20,
    )


async def read(consumer: AsyncConsumer, count: int) -> list[bytes]:
    """So many values, and the certainty that no more come."""
    found: list[bytes] = []
    async with asyncio.timeout(10):
        while len(found) < count:
            found += [record.value for record in await consumer.poll(0.5)]
    return found + [record.value for record in await consumer.poll(0.1)]


@both
def test_read_committed_stops_at_the_open_transaction(v2: bool) -> None:
    async def play(cluster: EmbeddedCluster, raw_client: RawClient, producer: RawProducer) -> None:
        (partition,) = cluster.state.topics["t"].partitions
        stable = partition.last_stable_offset
        assert stable < partition.high_watermark
        async with consumer_of(cluster) as consumer:
            await consumer.assign([T0])
            assert await read(consumer, len(COMMITTED)) == COMMITTED
            assert await consumer.position(T0) == stable
            assert await consumer.end_offsets([T0]) == {T0: stable}
            assert consumer.current_lag(T0) == 0
            assert await producer.end(commit=True) == NONE
            assert await read(consumer, len(OPEN)) == OPEN
            assert await consumer.position(T0) == partition.high_watermark

    run(v2, play)


@both
def test_an_aborted_one_lets_pass_what_was_after_it(v2: bool) -> None:
    async def play(cluster: EmbeddedCluster, raw_client: RawClient, producer: RawProducer) -> None:
        async with consumer_of(cluster) as consumer:
            await consumer.assign([T0])
            assert await read(consumer, len(COMMITTED)) == COMMITTED
            assert await producer.end(commit=False) == NONE
            assert await read(consumer, 1) == OPEN[1:]

    run(v2, play)


@both
def test_read_uncommitted_sees_all_data_and_no_marker(v2: bool) -> None:
    async def play(cluster: EmbeddedCluster, raw_client: RawClient, producer: RawProducer) -> None:
        async with consumer_of(cluster, "read_uncommitted") as consumer:
            await consumer.assign([T0])
            values = await read(consumer, 11)
            assert sorted(values) == sorted([*COMMITTED, *OPEN, b"aborted", b"odd", b"gone"])

    run(v2, play)


@both
def test_from_every_offset_on(v2: bool) -> None:
    """Also from an abort marker on, whose data lie before the position, and from the middle of aborted data."""

    async def play(cluster: EmbeddedCluster, raw_client: RawClient, producer: RawProducer) -> None:
        (partition,) = cluster.state.topics["t"].partitions
        offsets: list[int] = []
        async with consumer_of(cluster) as consumer:
            await consumer.assign([T0])
            while len(offsets) < len(COMMITTED):
                offsets += [record.offset for record in await consumer.poll(0.5)]
            for start in range(partition.last_stable_offset + 1):
                consumer.seek(T0, start)
                expected = [value for value, at in zip(COMMITTED, offsets, strict=True) if at >= start]
                found: list[bytes] = []
                async with asyncio.timeout(10):
                    while await consumer.position(T0) < partition.last_stable_offset:
                        found += [record.value for record in await consumer.poll(0.02)]
                assert found == expected, start

    run(v2, play)


@both
@pytest.mark.spec("S0-22", "S0-29", "S0-37", "D-21")
@pytest.mark.parametrize("before", [None, 3], ids=["without offset", "with offset"])
def test_a_pending_offset_holds_the_position_up(v2: bool, before: int | None) -> None:
    async def play(cluster: EmbeddedCluster, raw_client: RawClient, _: RawProducer) -> None:
        cluster.delay_markers(60_000)
        producer = RawProducer(cluster, raw_client, "etl", v2=v2)
        await producer.init()
        for offset in (before, 5):
            if offset is None:
                continue
            assert v2 or await producer.add_group("g") == NONE
            assert await producer.commit_offset("g", T0, offset) == NONE
            assert await producer.end(commit=True) == NONE
            if offset == before:
                cluster.clock.advance(60.0)
        async with AsyncConsumer(
            "t",
            bootstrap_servers=cluster.bootstrap_servers,
            group_id="g",
            auto_offset_reset="latest",
            enable_auto_commit=False,
        ) as consumer:
            async with asyncio.timeout(30):
                while [one.api for one in cluster.requests].count("OffsetFetch") < 2:
                    assert not await consumer.poll(0.1)
            cluster.clock.advance(60.0)
            async with asyncio.timeout(30):
                while not (records := await consumer.poll(0.5)):
                    pass
            assert next(iter(records)).offset >= 5
            assert (await consumer.committed([T0]))[T0].offset == 5
            cluster.delay_markers(0)

    run(v2, play)
