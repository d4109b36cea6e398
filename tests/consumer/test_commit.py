"""Commits of several tasks, in every pair of ways: the commit that was called last stays stored."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kclient import AsyncConsumer, OffsetAndMetadata
from kclient.embedded import EmbeddedCluster
from kclient.errors import CommitFailedError
from tests.scenarios.support import T0, asked, consumer_of, play, read
from tests.waiting import until

QUICK: dict[str, Any] = {"group_id": "g", "retry_backoff_ms": 200, "retry_backoff_max_ms": 200}


async def commit(consumer: AsyncConsumer, offset: int) -> None:
    await consumer.commit({T0: OffsetAndMetadata(offset)}, timeout=10)


async def commit_async(consumer: AsyncConsumer, offset: int) -> None:
    consumer.commit_async({T0: OffsetAndMetadata(offset)})


def offsets_sent(cluster: EmbeddedCluster) -> list[int]:
    return [one.request.topics[0].partitions[0].committed_offset for one in asked(cluster, "OffsetCommit")]


async def member(cluster: EmbeddedCluster, **settings: Any) -> AsyncConsumer:
    cluster.produce("t", [f"v{number}" for number in range(20)], partition=0)
    consumer = consumer_of(cluster, "t", **QUICK, **settings)
    await read(consumer, 20)
    return consumer


@pytest.mark.spec("B.14.1", "B.14.2", "I-08", "M-05")
@pytest.mark.parametrize("later", [commit, commit_async])
def test_what_is_asked_for_during_a_commit_that_is_tried_again_comes_after_it(
    later: Callable[[AsyncConsumer, int], Awaitable[None]],
) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(topics={"t": 1}) as cluster:
            consumer = await member(cluster)
            cluster.fail("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", times=2)
            first = asyncio.create_task(commit(consumer, 5))
            await until(lambda: asked(cluster, "OffsetCommit"))
            await later(consumer, 7)
            await first
            await until(lambda: cluster.committed("g") == {T0: 7})
            await asyncio.sleep(0.3)
            assert offsets_sent(cluster) == [5, 5, 5, 7]
            assert cluster.committed("g") == {T0: 7}
            await consumer.close()

    play(scenario)


@pytest.mark.spec("B.14.5", "I-08", "M-05")
def test_an_automatic_commit_waits_for_the_one_that_is_tried_again() -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(topics={"t": 1}) as cluster:
            consumer = await member(cluster, enable_auto_commit=True, auto_commit_interval_ms=100)
            await consumer.poll(0)
            cluster.forget_requests()
            cluster.fail("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", times=2)
            first = asyncio.create_task(commit(consumer, 5))
            await until(lambda: asked(cluster, "OffsetCommit"))
            await consumer.poll(0.2)
            await first
            await consumer.poll(0.3)
            assert offsets_sent(cluster)[:4] == [5, 5, 5, 20]
            assert cluster.committed("g") == {T0: 20}
            await consumer.close()

    play(scenario)


@pytest.mark.spec("B.14.1", "I-30", "I-08")
def test_a_commit_that_is_cancelled_in_the_line_lets_no_other_overtake() -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(topics={"t": 1}) as cluster:
            consumer = await member(cluster)
            cluster.fail("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", times=2)
            first = asyncio.create_task(commit(consumer, 5))
            await until(lambda: asked(cluster, "OffsetCommit"))
            second = asyncio.create_task(commit(consumer, 6))
            await asyncio.sleep(0)
            consumer.commit_async({T0: OffsetAndMetadata(7)})
            second.cancel()
            third = asyncio.create_task(commit(consumer, 8))
            await asyncio.gather(first, third)
            assert offsets_sent(cluster) == [5, 5, 5, 7, 8]
            await consumer.close()

    play(scenario)


@pytest.mark.spec("B.13.9", "I-08", "M-06")
def test_a_commit_that_waited_in_the_line_is_not_sent_under_another_generation() -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(topics={"t": 1}) as cluster:
            consumer = await member(cluster)
            cluster.fail("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", times=3)
            first = asyncio.create_task(commit(consumer, 5))
            await until(lambda: asked(cluster, "OffsetCommit"))
            second = asyncio.create_task(commit(consumer, 6))
            await asyncio.sleep(0)
            before = consumer.group_metadata()
            consumer.enforce_rebalance()
            await reached_by_polling(consumer, lambda: consumer.group_metadata() != before)
            for waiting in (first, second):
                with pytest.raises(CommitFailedError) as failed:
                    await waiting
                assert failed.value.reason == "rebalancing"
                assert set(failed.value.uncommitted) == {T0}
            assert 6 not in offsets_sent(cluster)
            await consumer.close()

    play(scenario)


async def reached_by_polling(consumer: AsyncConsumer, condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not (condition() and consumer.assignment()):
            await consumer.poll(0.02)


@pytest.mark.spec("B.14.1")
def test_committing_nothing_waits_for_the_commits_before_and_runs_their_callbacks() -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(topics={"t": 1}) as cluster:
            consumer = await member(cluster)
            outcomes: list[object] = []
            cluster.delay("OffsetCommit", 200, times=1)
            consumer.commit_async({T0: OffsetAndMetadata(5)}, lambda offsets, error: outcomes.append(error))
            await consumer.commit({})
            assert outcomes == [None]
            assert offsets_sent(cluster) == [5]
            await consumer.close()

    play(scenario)
