"""Scenario A-06: the leader changes, with and without records that were read and are gone afterwards (KIP-320)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kclient import AsyncConsumer, OffsetAndMetadata
from kclient.embedded import EmbeddedCluster
from kclient.errors import LogTruncatedError
from tests.scenarios.support import T0, T1, asked, consumer_of, play, read
from tests.waiting import until

pytestmark = pytest.mark.spec("A-06", "B.9")

Scenario = Callable[[EmbeddedCluster, AsyncConsumer], Awaitable[None]]
OLD, NEW = 3, 2
UNKNOWN_LEADER_EPOCH = 75
POLICY: dict[str, Any] = {"auto_offset_reset": "earliest"}
NO_POLICY: dict[str, Any] = {"auto_offset_reset": "none"}


def storied(scenario: Scenario, *, release: str = "4.3", **settings: Any) -> None:
    """Both partitions, led by broker 3 in epoch 6, hold 90 records of epoch 3 and 10 of epoch 5; all were read."""

    async def run() -> None:
        async with EmbeddedCluster(brokers=3, topics={"t": 2}, release=release) as cluster:
            for tp in (T0, T1):
                tell_the_story(cluster, tp.partition)
            keys = {"metadata_max_age_ms": 100, **POLICY, **settings}
            async with consumer_of(cluster, **keys) as consumer:
                await consumer.assign([T0, T1])
                for tp in (T0, T1):
                    consumer.seek(tp, 0)
                await read(consumer, 200)
                cluster.forget_requests()
                await scenario(cluster, consumer)

    play(run)


def tell_the_story(cluster: EmbeddedCluster, partition: int) -> None:
    def lead(*nodes: int) -> None:
        for node in nodes:
            cluster.move_leader("t", partition, node)

    lead(1, 2, 1)
    for _ in range(9):
        cluster.produce("t", ["of epoch 3"] * 10, partition=partition)
    lead(2, 1)
    for _ in range(10):
        cluster.produce("t", ["of epoch 5"], partition=partition)
    lead(OLD)


async def polled_until(consumer: AsyncConsumer, condition: Callable[[], object]) -> None:
    """Poll, and get nothing, until something holds."""
    async with asyncio.timeout(10):
        while not condition():
            assert list(await consumer.poll(0.02)) == []


def questions(cluster: EmbeddedCluster) -> list[tuple[int, int, int, int]]:
    """(broker, partition, epoch of the data, epoch of the leader) of every validation."""
    return [
        (one.node, partition.partition, partition.leader_epoch, partition.current_leader_epoch)
        for one in asked(cluster, "OffsetForLeaderEpoch")
        for topic in one.request.topics
        for partition in topic.partitions
    ]


def epochs(cluster: EmbeddedCluster, api: str) -> set[int]:
    """The leader epochs that requests carried."""
    return {
        partition.current_leader_epoch
        for one in asked(cluster, api)
        for topic in one.request.topics
        for partition in topic.partitions
    }


@pytest.mark.spec("S0-04", "S0-18", "D-40", "S0-61")
def test_a_clean_leader_change_costs_one_request_and_reading_continues() -> None:
    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        cluster.move_leader("t", 0, NEW)
        await polled_until(consumer, lambda: questions(cluster))
        cluster.produce("t", ["new"], partition=0)
        (record,) = await read(consumer, 1)
        assert (record.partition, record.offset, record.value) == (0, 100, b"new")
        assert questions(cluster) == [(NEW, 0, 5, 7)]
        assert asked(cluster, "ListOffsets") == []

    storied(scenario)


@pytest.mark.spec("S0-18", "D-43")
def test_nothing_is_delivered_while_the_position_is_checked() -> None:
    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        cluster.delay("OffsetForLeaderEpoch", ms=1_200)
        cluster.produce("t", ["in flight"], partition=0)
        # Fetched from the old leader, not polled.
        await until(lambda: consumer.metrics().value("buffered-bytes") > 0)
        cluster.move_leader("t", 0, NEW)
        await until(lambda: questions(cluster))
        for _ in range(5):
            assert list(await consumer.poll(0.02)) == []
        (record,) = await read(consumer, 1)
        assert record.offset == 100

    storied(scenario)


@pytest.mark.spec("D-43")
def test_records_fetched_before_a_truncation_was_found_are_not_delivered() -> None:
    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        cluster.produce("t", ["lost"], partition=0)
        await until(lambda: consumer.metrics().value("buffered-bytes") > 0)
        cluster.truncate("t", 0, 90)
        cluster.produce("t", ["instead"], partition=0)
        await until(lambda: questions(cluster))
        (record,) = await read(consumer, 1)
        assert (record.offset, record.value) == (90, b"instead")

    storied(scenario)


def test_a_truncation_goes_back_to_where_the_logs_part_under_a_policy(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        cluster.truncate("t", 0, 90)
        cluster.produce("t", ["90", "91"], partition=0)
        records = await read(consumer, 2)
        assert [(record.partition, record.offset) for record in records] == [(0, 90), (0, 91)]
        assert asked(cluster, "ListOffsets") == []

    storied(scenario)
    logged = [record.getMessage() for record in caplog.records if record.name == "kclient.positions"]
    assert [text for text in logged if "t-0 from 100 to 90 (truncated), 10 back" in text]


@pytest.mark.spec("S0-04")
def test_a_truncation_is_one_error_for_all_partitions_without_a_policy() -> None:
    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        for partition in (0, 1):
            cluster.truncate("t", partition, 90)
        with pytest.raises(LogTruncatedError) as caught:
            await polled_until(consumer, lambda: False)
        reported = set(caught.value.partitions)
        assert caught.value.positions == dict.fromkeys(reported, 100)
        assert caught.value.divergent == dict.fromkeys(reported, OffsetAndMetadata(90, 3))
        assert reported == {T0, T1} or len(asked(cluster, "OffsetForLeaderEpoch")) > 1
        for tp in (T0, T1):
            cluster.produce("t", ["instead"], partition=tp.partition)
            consumer.seek(tp, OffsetAndMetadata(90, 3))
        assert sorted((record.partition, record.offset) for record in await read(consumer, 2)) == [
            (0, 90),
            (1, 90),
        ]
        assert asked(cluster, "ListOffsets") == []

    storied(scenario, **NO_POLICY)


@pytest.mark.parametrize("keys", [POLICY, NO_POLICY], ids=["policy", "none"])
def test_an_unknown_epoch_is_a_lost_position(keys: dict[str, Any]) -> None:
    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        cluster.on("OffsetForLeaderEpoch", forget)
        cluster.move_leader("t", 0, NEW)
        if keys is POLICY:
            records = await read(consumer, 100)
            assert [record.offset for record in records] == list(range(100))
            return
        with pytest.raises(LogTruncatedError) as caught:
            await polled_until(consumer, lambda: False)
        assert caught.value.divergent == {T0: None}
        assert caught.value.positions == {T0: 100}

    storied(scenario, **keys)


def forget(request: Any, response: Any) -> Any:
    for topic in response.topics:
        for partition in topic.partitions:
            partition.leader_epoch = partition.end_offset = -1
    return response


@pytest.mark.parametrize("release", ["4.3", "3.5"], ids=["hint", "metadata"])
@pytest.mark.spec("S2-29", "B.15.12", "D-42")
def test_a_fenced_fetch_is_followed_by_one_with_the_new_epoch(release: str) -> None:
    """The leader comes back in a newer epoch: Fetch 16 names it, before that Metadata does."""

    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        cluster.move_leader("t", 0, NEW)
        cluster.move_leader("t", 0, OLD)
        cluster.produce("t", ["new"], partition=0)
        (record,) = await read(consumer, 1)
        assert record.offset == 100
        assert questions(cluster) == [(OLD, 0, 5, 8)]
        assert max(epochs(cluster, "Fetch")) == 8
        assert (len(asked(cluster, "Metadata")) > 0) or release == "4.3"

    storied(scenario, release=release, metadata_max_age_ms=60_000)


@pytest.mark.spec("S2-29", "B.15.12")
def test_a_broker_that_lags_is_asked_again() -> None:
    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        behind = cluster.on("Fetch", know_no_such_epoch)
        cluster.produce("t", ["new"], partition=0)
        await polled_until(consumer, lambda: len(asked(cluster, "Fetch")) >= 4)
        cluster.lift(behind)
        (record,) = await read(consumer, 1)
        assert record.offset == 100
        assert questions(cluster) == []
        assert asked(cluster, "Metadata") == []

    storied(scenario, metadata_max_age_ms=60_000)


def know_no_such_epoch(request: Any, response: Any) -> Any:
    for topic in response.responses:
        for partition in topic.partitions:
            partition.error_code, partition.records, partition.high_watermark = UNKNOWN_LEADER_EPOCH, None, -1
    return response


@pytest.mark.parametrize(("release", "checked"), [("2.2", False), ("2.3", False), ("2.4", True)])
@pytest.mark.spec("D-41", "B.5.5", "B.6.4")
def test_brokers_whose_epochs_mean_nothing_are_not_asked(release: str, checked: bool) -> None:
    """2.2 has no usable OffsetForLeaderEpoch, 2.3 has it and Metadata 8, whose epochs may be stale."""

    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        cluster.move_leader("t", 0, NEW)
        await until(lambda: asked(cluster, "Metadata"))
        cluster.produce("t", ["new"], partition=0)
        (record,) = await read(consumer, 1)
        assert record.offset == 100
        assert (await consumer.end_offsets([T0]))[T0] == 101
        assert questions(cluster) == ([(NEW, 0, 5, 7)] if checked else [])
        asking = epochs(cluster, "Fetch") | epochs(cluster, "ListOffsets")
        assert asking == ({-1} if not checked else asking - {-1})

    storied(scenario, release=release)


@pytest.mark.spec("S0-23", "S0-24")
def test_a_committed_epoch_is_checked_before_the_first_fetch() -> None:
    """The log was truncated while no consumer read: the committed leader epoch still shows it."""

    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        group = {"group_id": "g", "metadata_max_age_ms": 100}
        async with consumer_of(cluster, "t", **group) as before:
            await read(before, 200)
            await before.commit()
        cluster.truncate("t", 0, 90)
        cluster.produce("t", ["instead"], partition=0)
        cluster.forget_requests()
        async with consumer_of(cluster, "t", **group, **NO_POLICY) as after:
            with pytest.raises(LogTruncatedError) as caught:
                await polled_until(after, lambda: False)
            assert caught.value.divergent == {T0: OffsetAndMetadata(90, 3)}
            asked_first = [one for one in cluster.requests if one.client_id == after._core.config.client_id]
            validated = next(i for i, one in enumerate(asked_first) if one.api == "OffsetForLeaderEpoch")
            fetched = [
                partition.partition
                for one in asked_first[:validated]
                if one.api == "Fetch"
                for topic in one.request.topics
                for partition in topic.partitions
            ]
            assert 0 not in fetched

    storied(scenario)
