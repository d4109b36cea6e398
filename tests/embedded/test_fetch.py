"""Fetch beyond what one broker shows: waiting, replicas, leaders, transactions; many partitions in one response."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.generated.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kclient.protocol.errors import (
    FENCED_LEADER_EPOCH,
    KAFKA_STORAGE_ERROR,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from tests.embedded.one_topic import MANY, OneTopic, batch, values
from tests.embedded.raw_client import RawClient

Test = Callable[[EmbeddedCluster, OneTopic], Awaitable[None]]


def run(test: Test, *, brokers: int = 3, partitions: int = 1, **options: Any) -> None:
    """The test on a cluster with a topic; broker 1 leads its partition 0."""

    async def main() -> None:
        async with EmbeddedCluster(brokers=brokers, **options) as cluster, RawClient(cluster) as raw_client:
            cluster.create_topic("orders", partitions)
            await test(cluster, OneTopic(cluster, raw_client, "orders"))

    asyncio.run(main())


def waits(task: asyncio.Task[Any]) -> Awaitable[bool]:
    """Whether a response is held back for 50 ms."""

    async def look() -> bool:
        await asyncio.sleep(0.05)
        return not task.done()

    return look()


def test_a_response_waits_for_enough_bytes() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        one = batch(b"a" * 100)
        fetching = asyncio.create_task(on.fetch(0, max_wait_ms=60_000, min_bytes=2 * len(one)))
        assert await waits(fetching)
        cluster.produce("orders", [("key", b"a" * 100)], partition=0)
        assert await waits(fetching)
        cluster.produce("orders", [("key", b"a" * 100)], partition=0)
        assert values(await fetching) == [b"a" * 100] * 2

    run(test)


def test_a_response_waits_no_longer_than_asked() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        fetching = asyncio.create_task(on.fetch(0, max_wait_ms=60_000))
        assert await waits(fetching)
        cluster.clock.advance(60)
        row = await fetching
        assert (row.error_code, row.high_watermark, len(row.records)) == (NONE, 0, 0)

    run(test)


@pytest.mark.parametrize("event", ["move_leader", "delete_topic"])
def test_a_response_waits_no_longer_than_the_leader_leads(event: str) -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        fetching = asyncio.create_task(on.fetch(0, max_wait_ms=60_000, version=10))
        assert await waits(fetching)
        if event == "move_leader":
            cluster.move_leader("orders", 0, 2)
        else:
            cluster.delete_topic("orders")
        code = NOT_LEADER_OR_FOLLOWER if event == "move_leader" else UNKNOWN_TOPIC_OR_PARTITION
        assert (await fetching).error_code == code

    run(test)


@pytest.mark.spec("S4-60")
def test_what_is_not_replicated_is_served_to_followers_alone() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        cluster.produce("orders", ["a"], partition=0)
        cluster.lag("orders", 0, 2)
        await on.produce(batch(b"b"), acks=1)
        row = await on.fetch(0)
        assert (row.high_watermark, values(row)) == (1, [b"a"])
        assert values(await on.fetch(0, replica_id=2)) == [b"a", b"b"]
        assert (await on.fetch(2)).error_code == NONE  # within the log, so not out of range
        assert (await on.fetch(3)).error_code == OFFSET_OUT_OF_RANGE

        by_state = FetchRequest(
            replica_state=ReplicaState(replica_id=3),
            topics=[
                FetchTopic(
                    topic_id=cluster.state.topics["orders"].topic_id,
                    partitions=[FetchPartition(fetch_offset=0, partition_max_bytes=MANY)],
                )
            ],
        )
        response = await on.raw_client.ask(by_state, 16, 1)
        assert values(response.responses[0].partitions[0]) == [b"a", b"b"]

        fetching = asyncio.create_task(on.fetch(1, max_wait_ms=60_000))
        assert await waits(fetching)
        cluster.catch_up("orders", 0)
        assert values(await fetching) == [b"b"]

    run(test)


def test_a_follower_needs_the_right_of_one() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        cluster.deny("*", "CLUSTER_ACTION", "Cluster:*")
        assert (await on.fetch(0, replica_id=2)).error_code == TOPIC_AUTHORIZATION_FAILED
        assert (await on.fetch(0)).error_code == NONE

    run(test)


@pytest.mark.spec("S0-61")
def test_leader_and_epoch_are_checked_first_and_in_order() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        cluster.create_topic("alone", 1, 1)
        alone = OneTopic(cluster, on.raw_client, "alone")
        cluster.move_leader("orders", 0, 2)  # epoch 1
        leader, other = 2, 1

        async def code(node: int, epoch: int, partition: int = 0, topic: OneTopic = on) -> int:
            options = {"node": node, "current_leader_epoch": epoch, "partition": partition, "version": 10}
            return int((await topic.fetch(99, **options)).error_code)

        assert await code(leader, 0, partition=7) == UNKNOWN_TOPIC_OR_PARTITION
        assert await code(2, 9, topic=alone) == NOT_LEADER_OR_FOLLOWER  # it has no replica there
        assert await code(other, 0) == FENCED_LEADER_EPOCH
        assert await code(other, 2) == UNKNOWN_LEADER_EPOCH
        assert await code(other, 1) == NOT_LEADER_OR_FOLLOWER
        assert [await code(leader, epoch) for epoch in (-1, 1)] == [OFFSET_OUT_OF_RANGE] * 2
        on.partition().offline.append(leader)
        assert await code(leader, 0) == KAFKA_STORAGE_ERROR

    run(test)


@pytest.mark.spec("S0-61")
def test_version_5_does_not_know_storage_errors() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        on.partition().offline.append(1)
        codes = [(await on.fetch(0, version=version)).error_code for version in (4, 5, 6)]
        assert codes == [NOT_LEADER_OR_FOLLOWER, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR]

    run(test)


@pytest.mark.spec("B.10.6")
@pytest.mark.parametrize(("version", "named"), [(15, False), (16, True), (18, True)])
def test_the_leader_is_named_from_version_16_on(version: int, named: bool) -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        cluster.move_leader("orders", 0, 3)
        wanted = FetchPartition(fetch_offset=0, current_leader_epoch=0, partition_max_bytes=MANY)
        topic_id = cluster.state.topics["orders"].topic_id
        request = FetchRequest(topics=[FetchTopic(topic_id=topic_id, partitions=[wanted])])
        response = await on.raw_client.ask(request, version, 1)
        row = response.responses[0].partitions[0]
        assert row.error_code == FENCED_LEADER_EPOCH
        found = (
            None
            if row.current_leader is None
            else (row.current_leader.leader_id, row.current_leader.leader_epoch)
        )
        assert found == ((3, 1) if named else None)
        assert [node.node_id for node in response.node_endpoints] == ([3] if named else [])

    run(test)


@pytest.mark.spec("B.10.16")
def test_a_fetcher_whose_last_record_is_of_another_log_is_notified_where_they_part() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        for _ in range(3):
            await on.produce(batch(b"a"))
        cluster.truncate("orders", 0, 2)
        await on.produce(batch(b"b"))  # offset 2, epoch 1
        row = await on.fetch(3, last_fetched_epoch=0)
        assert (row.diverging_epoch.epoch, row.diverging_epoch.end_offset) == (0, 2)
        assert not row.records
        assert (await on.fetch(2, last_fetched_epoch=0)).diverging_epoch is None
        assert (await on.fetch(3, last_fetched_epoch=1)).diverging_epoch is None
        assert (await on.fetch(3, last_fetched_epoch=5)).error_code == OFFSET_OUT_OF_RANGE

    run(test, brokers=1)


@pytest.mark.spec("B.10.5")
def test_bytes_are_shared_in_the_order_of_the_request_and_the_first_batch_always_comes() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        one = batch(b"x" * 1000)
        for number in range(3):
            for _ in range(2):
                await on.produce(one, partition=number, acks=1)

        async def sizes(max_bytes: int, order: tuple[int, ...]) -> list[float]:
            rows = [
                FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=MANY) for number in order
            ]
            request = FetchRequest(max_bytes=max_bytes, topics=[FetchTopic(topic="orders", partitions=rows)])
            response = await on.raw_client.ask(request, 12, 1)
            return [len(row.records) / len(one) for row in response.responses[0].partitions]

        assert await sizes(10 * len(one), (0, 1, 2)) == [2, 2, 2]
        assert await sizes(1, (2, 0, 1)) == [1, 0, 0]
        assert await sizes(3 * len(one), (1, 0, 2)) == [2, 1, 0]

    run(test, brokers=1, partitions=3)


@pytest.mark.spec("B.12", "S0-51", "S4-60")
def test_read_committed_ends_at_the_last_stable_offset_and_names_what_was_aborted() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        from kclient.embedded.replication import append
        from kclient.records.writer import build_marker

        def write(producer_id: int, commit: bool | None, sequence: int = 0) -> None:
            options = {"producer_id": producer_id, "producer_epoch": 0}
            data = (
                batch(b"v", is_transactional=True, base_sequence=sequence, **options)
                if commit is None
                else build_marker(commit=commit, offset=0, **options)
            )
            append(cluster.state, on.partition(), data)

        write(1, None)  # 0
        write(2, None)  # 1
        write(1, False)  # 2: the first one's end
        row = await on.fetch(0, isolation_level=1)
        assert (row.last_stable_offset, row.high_watermark, values(row)) == (1, 3, [b"v"])
        assert [(one.producer_id, one.first_offset) for one in row.aborted_transactions] == [(1, 0)]
        assert (await on.fetch(0, isolation_level=0)).aborted_transactions is None
        write(2, True)  # 3
        row = await on.fetch(0, isolation_level=1)
        assert (row.last_stable_offset, values(row)) == (4, [b"v", b"v"])
        assert (await on.fetch(3, isolation_level=1)).aborted_transactions == []
        cluster.lag("orders", 0, 2)
        write(3, None)  # 4
        cluster.catch_up("orders", 0)
        cluster.lag("orders", 0, 2)
        write(3, True)  # 5: written, but not replicated
        assert (await on.fetch(0, isolation_level=1)).last_stable_offset == 4
        cluster.catch_up("orders", 0)
        assert (await on.fetch(0, isolation_level=1)).last_stable_offset == 6

    run(test)


def test_a_request_may_ask_for_nothing() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        response = await on.raw_client.ask(FetchRequest(max_wait_ms=60_000, min_bytes=1), 12)
        assert (response.error_code, response.responses) == (NONE, [])

    run(test, brokers=1)
