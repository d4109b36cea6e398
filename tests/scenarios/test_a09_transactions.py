"""Scenario A-09: transactions as an application sees them, alone and in a group.

What every order of commits and aborts brings about is proved in `tests/embedded/test_a09_transactions.py`; here is what
an application relies on besides: progress that no record shows, lag, commits, a log that was cleaned.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.protocol.errors import NONE
from kclient.records.records import Record
from kclient.records.writer import NewRecord, build_batch
from tests.embedded.raw_client import RawClient
from tests.embedded.raw_producer import RawProducer, produce, settled
from tests.scenarios.support import T0, asked, consumer_of, play, read

COMMITTED: dict[str, Any] = {"isolation_level": "read_committed"}
Play = Callable[[EmbeddedCluster, RawClient], Awaitable[None]]


def with_cluster(scenario: Play, **config: Any) -> None:
    async def run() -> None:
        async with (
            EmbeddedCluster(1, topics={"t": 1}, config=config) as cluster,
            RawClient(cluster) as raw_client,
        ):
            await scenario(cluster, raw_client)

    play(run)


async def transact(
    cluster: EmbeddedCluster, raw_client: RawClient, name: str, *values: bytes, commit: bool
) -> None:
    producer = RawProducer(cluster, raw_client, name)
    assert await producer.init() == NONE
    await producer.transact(T0, *values, commit=commit)
    await settled(cluster)


def fetch_offsets(cluster: EmbeddedCluster) -> list[int]:
    topics = [topic for one in asked(cluster, "Fetch") for topic in one.request.topics]
    return [partition.fetch_offset for topic in topics for partition in topic.partitions]


@pytest.mark.spec("A-09", "S2-41", "B.10.9", "B.12", "D-51")
def test_a09_a_response_of_aborted_data_alone_is_progress_without_records() -> None:
    """poll returns at once without records, next_offsets() shows its progress; nothing is fetched twice."""

    async def scenario(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        await transact(cluster, raw_client, "one", b"0", b"1", b"2", commit=False)
        end = cluster.state.topics["t"].partitions[0].high_watermark
        async with consumer_of(cluster, **COMMITTED) as consumer:
            await consumer.assign([T0])
            loop = asyncio.get_running_loop()
            began = loop.time()
            records = await consumer.poll(20.0)
            assert loop.time() - began < 5
            assert len(records) == 0
            assert {tp: found.offset for tp, found in records.next_offsets().items()} == {T0: end}
            assert await consumer.position(T0) == end == 4
            cluster.produce("t", ["behind"])
            assert [record.offset for record in await read(consumer, 1)] == [end]
            offsets = fetch_offsets(cluster)
            assert offsets == sorted(set(offsets))

    with_cluster(scenario)


@pytest.mark.spec("A-09", "B.12", "S0-51", "B.19.1")
def test_a09_lag_and_end_are_those_of_what_can_be_read() -> None:
    async def scenario(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        cluster.produce("t", ["0", "1"])
        producer = RawProducer(cluster, raw_client, "open")
        assert await producer.init() == NONE
        await producer.begin_write(T0, b"2")
        cluster.produce("t", ["3"])
        partition = cluster.state.topics["t"].partitions[0]
        assert (partition.last_stable_offset, partition.high_watermark) == (2, 4)
        for isolation, end in (("read_committed", 2), ("read_uncommitted", 4)):
            async with consumer_of(cluster, isolation_level=isolation) as consumer:
                await consumer.assign([T0])
                assert await consumer.end_offsets([T0]) == {T0: end}
                await read(consumer, end)
                assert await consumer.position(T0) == end
                assert consumer.current_lag(T0) == 0
                consumer.seek(T0, 1)
                await read(consumer, end - 1)
                consumer.seek_to_end([T0])
                assert await consumer.position(T0) == end
        assert await producer.end(commit=True) == NONE

    with_cluster(scenario)


@pytest.mark.spec("A-09", "B.12", "D-51", "D-52")
@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_a09_what_a_cleaner_leaves_of_transactions_is_passed_over(isolation: str) -> None:
    """Batches without records that stand for aborted data and for markers, and what was committed."""

    async def scenario(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        await transact(cluster, raw_client, "one", b"gone", commit=False)
        await transact(cluster, raw_client, "two", b"kept", commit=True)
        await transact(cluster, raw_client, "three", b"gone too", commit=False)
        partition = cluster.state.topics["t"].partitions[0]
        data = [0, 4]
        emptied = [*data, 1, 5]  # the aborted records, and both abort markers
        cluster.remove_records("t", 0, emptied)
        empty = [stored for stored in partition.log.batches if stored.header.count == 0]
        assert any(stored.header.is_control for stored in empty)
        async with consumer_of(cluster, isolation_level=isolation) as consumer:
            await consumer.assign([T0])
            assert [(record.offset, record.value) for record in await read(consumer, 1)] == [(2, b"kept")]
            while await consumer.position(T0) < partition.high_watermark:
                assert not await consumer.poll(1.0)

    with_cluster(scenario)


@pytest.mark.spec("A-09", "B.12", "S2-41")
def test_a09_a_group_commits_after_markers_and_begins_there_again() -> None:
    async def scenario(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        await transact(cluster, raw_client, "one", b"0", b"1", commit=True)
        await transact(cluster, raw_client, "one", b"aborted", commit=False)
        settings = {**COMMITTED, "group_id": "g"}
        async with consumer_of(cluster, "t", **settings) as consumer:
            assert [record.value for record in await read(consumer, 2)] == [b"0", b"1"]
            while await consumer.position(T0) < 5:
                await consumer.poll(0.1)
            await consumer.commit()
        assert cluster.committed("g") == {T0: 5}
        cluster.forget_requests()
        await transact(cluster, raw_client, "one", b"next", commit=True)
        async with consumer_of(cluster, "t", **settings) as consumer:
            assert [record.value for record in await read(consumer, 1)] == [b"next"]
        first = next(
            part
            for one in asked(cluster, "Fetch")
            for topic in one.request.topics
            for part in topic.partitions
        )
        assert first.fetch_offset == 5

    with_cluster(scenario)


@pytest.mark.spec("A-09", "S0-29", "S0-37", "D-21")
def test_a09_no_reset_runs_while_the_committed_offset_is_not_decided() -> None:
    """The group's only offset is part of a transaction that is being committed; an aborted one counts for nothing."""

    async def scenario(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        cluster.produce("t", [str(number) for number in range(5)])
        cluster.delay_markers(60_000)
        for commit, expected in ((False, 0), (True, 3)):
            group = f"g-{commit}"
            producer = RawProducer(cluster, raw_client, f"etl-{commit}", v2=True)
            assert await producer.init() == NONE
            assert await producer.commit_offset(group, T0, 3) == NONE
            assert await producer.end(commit=commit) == NONE
            cluster.forget_requests()
            async with consumer_of(cluster, "t", group_id=group) as consumer:
                for _ in range(10):
                    assert not await consumer.poll(0.05)
                assert len(asked(cluster, "OffsetFetch")) > 1
                assert not asked(cluster, "ListOffsets")
                assert not asked(cluster, "Fetch")
                cluster.clock.advance(60.0)
                found: list[Record[Any, Any]] = await read(consumer, 5 - expected)
                assert found[0].offset == expected
                assert bool(asked(cluster, "ListOffsets")) is (not commit)
        cluster.delay_markers(0)

    with_cluster(scenario)


@pytest.mark.spec("A-09", "B.12", "D-52")
def test_a09_idempotent_records_of_a_producer_whose_transaction_was_aborted_are_read() -> None:
    async def scenario(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        producer = RawProducer(cluster, raw_client, "one")
        assert await producer.init() == NONE
        await producer.begin_write(T0, b"aborted")
        plain = build_batch([NewRecord(None, b"plain", cluster.state.clock.wall_ms())])
        assert (await produce(cluster, raw_client, T0, plain)).error_code == NONE
        assert await producer.end(commit=False) == NONE
        await settled(cluster)
        async with consumer_of(cluster, **COMMITTED) as consumer:
            await consumer.assign([T0])
            assert [record.value for record in await read(consumer, 1)] == [b"plain"]

    with_cluster(scenario)
