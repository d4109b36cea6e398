"""Mistakes about positions and epochs that other clients made, each played against this one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kclient import AsyncConsumer, OffsetAndMetadata, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.errors import TopicAuthorizationError
from kclient.protocol.errors import NONE, TOPIC_AUTHORIZATION_FAILED
from tests.embedded.raw_client import RawClient
from tests.embedded.raw_producer import RawProducer, settled
from tests.scenarios.simulated import Place, simulate
from tests.scenarios.support import T0, T1, asked, consumer_of, play, read


async def owned(consumer: AsyncConsumer, *partitions: TopicPartition) -> None:
    """Poll until the consumer owns just these."""
    async with asyncio.timeout(10):
        while set(consumer.assignment()) != set(partitions):
            await consumer.poll(0.05)


@pytest.mark.spec("D-28", "S0-13")
def test_a_partition_that_comes_back_begins_where_its_last_owner_stopped() -> None:
    """Seen: the old position in memory was used again when a partition came back after another member had it."""

    async def scenario() -> None:
        async with EmbeddedCluster(1, topics={"t": 2}) as cluster:
            for partition in (0, 1):
                cluster.produce("t", [str(number) for number in range(60)], partition=partition)
            settings = {"group_id": "g", "heartbeat_interval_ms": 50, "max_poll_records": 5}
            async with consumer_of(cluster, "t", **settings) as first:
                await owned(first, T0, T1)
                await read(first, 10)
                second = consumer_of(cluster, "t", **settings)
                joining = asyncio.create_task(second.poll(5))
                await reached_while_polling(first, lambda: len(first.assignment()) == 1)
                await joining
                (moved,) = second.assignment()
                await second.commit({moved: OffsetAndMetadata(50)})
                await second.close()
                await reached_while_polling(first, lambda: len(first.assignment()) == 2)
                assert await first.position(moved) >= 50
                (own,) = {T0, T1} - {moved}
                assert set(first.assignment()) == {moved, own}
                first.pause([own])
                async with asyncio.timeout(5):
                    while not (
                        found := [one for one in await first.poll(0.5) if one.partition == moved.partition]
                    ):
                        pass
                assert found[0].offset == 50

    play(scenario)


async def reached_while_polling(consumer: AsyncConsumer, condition: Any) -> None:
    """Poll, but take nothing: the partitions are paused meanwhile."""
    async with asyncio.timeout(10):
        while not condition():
            consumer.pause(list(consumer.assignment()))
            await consumer.poll(0.05)
    consumer.resume(list(consumer.assignment()))


@pytest.mark.spec("D-30", "S3-18", "S1-32")
def test_the_offset_after_the_last_record_is_committed_by_a_poll_after_the_interval() -> None:
    """Seen: no automatic commit, or one of the last offset instead of the one after it."""

    async def scenario(place: Place) -> None:
        place.cluster.produce("t", [str(number) for number in range(10)])
        settings = {"group_id": "g", "enable_auto_commit": True, "auto_commit_interval_ms": 5_000}
        consumer = place.consumer("t", **settings)
        await place.read(consumer, 10)
        committing = place.now
        await asyncio.sleep(20)  # without a poll
        assert not place.asked("OffsetCommit")
        await place.on_member(consumer.poll(0))
        await asyncio.sleep(0.5)
        (commit,) = place.asked("OffsetCommit", committing)
        (topic,) = commit.request.topics
        assert [(one.partition_index, one.committed_offset) for one in topic.partitions] == [(0, 10)]
        assert place.cluster.committed("g") == {T0: 10}

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("D-33", "B.9", "B.11.7")
def test_the_committed_epoch_is_that_of_the_last_batch_even_if_that_is_a_marker() -> None:
    """Seen: offsets committed without an epoch, or with that of the current leader."""

    async def scenario() -> None:
        async with EmbeddedCluster(2, topics={"t": 1}) as cluster, RawClient(cluster) as raw_client:
            place = cluster.state.topics["t"].partitions[0]

            def to_epoch(epoch: int) -> None:
                while place.leader_epoch < epoch:
                    cluster.move_leader("t", 0)

            producer = RawProducer(cluster, raw_client, "one")
            assert await producer.init() == NONE
            to_epoch(3)
            await producer.begin_write(T0, b"data of epoch 3")
            to_epoch(4)
            assert await producer.end(commit=True) == NONE
            await settled(cluster)
            to_epoch(6)
            epochs = [(stored.header.is_control, stored.leader_epoch) for stored in place.log.batches]
            assert epochs == [(False, 3), (True, 4)]
            async with consumer_of(cluster, "t", group_id="g") as consumer:
                await read(consumer, 1)
                while await consumer.position(T0) < 2:
                    await consumer.poll(0.1)
                await consumer.commit()
            (topic,) = asked(cluster, "OffsetCommit")[-1].request.topics
            (partition,) = topic.partitions
            assert (partition.committed_offset, partition.committed_leader_epoch) == (2, 4)

    play(scenario)


@pytest.mark.spec("D-44", "B.9", "B.15.10")
@pytest.mark.parametrize("policy", ["earliest", "latest", "none"])
def test_a_validation_that_is_refused_is_reported_and_resets_nothing(policy: str) -> None:
    """Seen: a permanent error of the validation made the position fall back on the policy."""

    async def scenario() -> None:
        async with EmbeddedCluster(2, topics={"t": 1}) as cluster:
            cluster.produce("t", ["0", "1", "2"])
            async with consumer_of(cluster, auto_offset_reset=policy) as consumer:
                await consumer.assign([T0])
                consumer.seek(T0, 0)
                await read(consumer, 3)
                refusal = cluster.on("OffsetForLeaderEpoch", refused)
                cluster.forget_requests()
                cluster.move_leader("t", 0)
                with pytest.raises(TopicAuthorizationError, match=" t"):
                    await read(consumer, 1)
                assert not asked(cluster, "ListOffsets")
                cluster.lift(refusal)
                cluster.produce("t", ["3"])
                assert [record.offset for record in await read_through(consumer)] == [3]
                assert await consumer.position(T0) == 4
                assert not asked(cluster, "ListOffsets")

    play(scenario)


async def read_through(consumer: AsyncConsumer) -> list[Any]:
    """Return the next records; ignore TopicAuthorizationErrors from before."""
    async with asyncio.timeout(10):
        while True:
            try:
                if found := list(await consumer.poll(0.2)):
                    return found
            except TopicAuthorizationError:
                continue


def refused(request: Any, response: Any) -> Any:
    for topic in response.topics:
        for partition in topic.partitions:
            partition.error_code = TOPIC_AUTHORIZATION_FAILED
            partition.end_offset = partition.leader_epoch = -1
    return response


@pytest.mark.spec("D-62")
@pytest.mark.parametrize("metadata", ["a\0b", "", "\0", "é😀\0"])
def test_metadata_of_a_commit_keeps_its_zero_bytes(metadata: str) -> None:
    """Seen: text cut at its first NUL."""

    async def scenario() -> None:
        async with EmbeddedCluster(1, topics={"t": 1}) as cluster:
            async with consumer_of(cluster, group_id="g") as consumer:
                await consumer.commit({T0: OffsetAndMetadata(3, None, metadata)})
            async with consumer_of(cluster, group_id="g") as consumer:
                found = (await consumer.committed([T0]))[T0]
                assert found is not None
                assert (found.offset, found.metadata) == (3, metadata)

    play(scenario)
