"""Offsets and timestamps out of range are refused by the call: a request would fail with them for a whole node."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kclient import AsyncConsumer, KclientError, OffsetAndMetadata, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.errors import ArgumentError, DeadlineError, InternalError, UnknownTopicError
from kclient.group.offset_commit import OffsetCommitter
from tests.scenarios.simulated import Place, simulate
from tests.scenarios.support import T0, asked, consumer_of, play, read
from tests.waiting import until

WRONG: list[tuple[Any, str]] = [
    (OffsetAndMetadata(-1), "The offset for t-0 is -1"),
    (OffsetAndMetadata(2**63), "The offset for t-0 is 9223372036854775808"),
    (OffsetAndMetadata(True), "The offset for t-0 is True"),
    (OffsetAndMetadata("5"), "The offset for t-0 is '5'"),  # type: ignore[arg-type]
    (OffsetAndMetadata(None), "The offset for t-0 is None"),  # type: ignore[arg-type]
    (OffsetAndMetadata(5.0), "The offset for t-0 is 5.0"),  # type: ignore[arg-type]
    (OffsetAndMetadata(5, -1), "leader epoch of the offset for t-0 is -1"),
    (OffsetAndMetadata(5, 2**31), "leader epoch of the offset for t-0 is 2147483648"),
    (OffsetAndMetadata(5, "x"), "leader epoch of the offset for t-0 is 'x'"),  # type: ignore[arg-type]
    (OffsetAndMetadata(5, None, None), "metadata of the offset for t-0 is None"),  # type: ignore[arg-type]
]


async def seek(consumer: AsyncConsumer, offset: Any) -> None:
    consumer.seek(T0, offset)


async def commit(consumer: AsyncConsumer, offset: Any) -> None:
    await consumer.commit({T0: offset}, timeout=5)


async def commit_async(consumer: AsyncConsumer, offset: Any) -> None:
    consumer.commit_async({T0: offset})


def with_one_record(scenario: Callable[[EmbeddedCluster, AsyncConsumer], Awaitable[None]]) -> None:
    """Play with a consumer that reads a partition manually."""

    async def run() -> None:
        async with EmbeddedCluster(2, topics={"t": 1}) as cluster:
            cluster.produce("t", ["0"], partition=0)
            async with consumer_of(cluster, group_id="g") as consumer:
                await consumer.assign([T0])
                await scenario(cluster, consumer)

    play(run)


@pytest.mark.parametrize("call", [seek, commit, commit_async])
def test_an_offset_that_cannot_be_is_refused_by_the_call_and_costs_nothing(
    call: Callable[[AsyncConsumer, Any], Awaitable[None]],
) -> None:
    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        for wrong, why in WRONG:
            with pytest.raises(ArgumentError, match=why):
                await call(consumer, wrong)
        assert [record.offset for record in await read(consumer, 1)] == [0]
        assert asked(cluster, "OffsetCommit") == []

    with_one_record(scenario)


def test_a_bare_offset_can_be_sought_to_and_committed() -> None:
    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        with pytest.raises(ArgumentError, match="The offset for t-0 is '5'"):
            consumer.seek(T0, "5")  # type: ignore[arg-type]
        with pytest.raises(ArgumentError, match=r"or OffsetAndMetadata\(offset\)"):
            await consumer.commit({T0: "5"})  # type: ignore[dict-item]
        with pytest.raises(ArgumentError, match="The offset for t-0 is True"):
            await consumer.commit({T0: True})
        await consumer.commit({T0: 5})
        assert await consumer.committed([T0]) == {T0: OffsetAndMetadata(5)}
        stored: list[Any] = []
        consumer.commit_async({T0: 6}, lambda offsets, error: stored.append((offsets, error)))
        await consumer.commit({T0: 7})
        assert stored == [({T0: OffsetAndMetadata(6)}, None)]
        consumer.seek(T0, 0)
        assert [record.offset for record in await read(consumer, 1)] == [0]

    with_one_record(scenario)


@pytest.mark.parametrize("wrong", ["ab", "abc", ("t", "0"), ("t", -1), ("t", 2**31), ("t", True), None])
def test_what_is_no_partition_is_not_committed(wrong: Any) -> None:
    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        for call in (consumer.commit, consumer.commit_async):
            with pytest.raises(ArgumentError, match="is not a partition"):
                await call({wrong: OffsetAndMetadata(0)})  # type: ignore[misc]
        assert asked(cluster, "OffsetCommit") == []

    with_one_record(scenario)


def test_what_other_calls_return_is_refused_with_what_to_write() -> None:
    """Tried first by a newcomer: what partitions_for() and offsets_for_times() return goes into assign() and seek()."""

    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        infos: Any = await consumer.partitions_for("t")
        with pytest.raises(
            ArgumentError, match=r"For this one write TopicPartition\(one.topic, one.partition\)"
        ):
            await consumer.assign(infos)
        found: Any = (await consumer.offsets_for_times({T0: 0}))[T0]
        with pytest.raises(ArgumentError, match=r"Give its \.offset"):
            consumer.seek(T0, found)
        with pytest.raises(ArgumentError, match=r"where offsets_for_times\(\) returned None"):
            consumer.seek(T0, None)  # type: ignore[arg-type]
        record: Any = (await read(consumer, 1))[0]
        with pytest.raises(ArgumentError, match=r"record.partition\): record.offset \+ 1}"):
            await consumer.commit(record)

    with_one_record(scenario)


@pytest.mark.spec("B.14.2", "I-38")
def test_a_commit_that_ended_in_a_bug_calls_its_callback(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(self: OffsetCommitter, offsets: Any, **options: Any) -> Any:
        raise ZeroDivisionError("planned")

    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        outcomes: list[KclientError | None] = []
        monkeypatch.setattr(OffsetCommitter, "commit", broken)
        consumer.commit_async({T0: OffsetAndMetadata(0)}, lambda offsets, error: outcomes.append(error))
        async with asyncio.timeout(10):
            while not outcomes:
                await consumer.poll(0.1)
        (error,) = outcomes
        assert isinstance(error, InternalError)
        assert isinstance(error.__cause__, ZeroDivisionError)

    with_one_record(scenario)


async def by_seek(cluster: EmbeddedCluster, consumer: AsyncConsumer, epoch: int) -> None:
    consumer.seek(T0, OffsetAndMetadata(0, epoch))


async def by_committed(cluster: EmbeddedCluster, consumer: AsyncConsumer, epoch: int) -> None:
    async with consumer_of(cluster, group_id="g") as other:
        await other.commit({T0: OffsetAndMetadata(1, epoch)})
    assert await consumer.committed([T0]) == {T0: OffsetAndMetadata(1, epoch)}


async def by_commit(cluster: EmbeddedCluster, consumer: AsyncConsumer, epoch: int) -> None:
    await consumer.commit({T0: OffsetAndMetadata(1, epoch)})


@pytest.mark.spec("S0-23", "B.5.6")
@pytest.mark.parametrize("names_an_epoch", [by_seek, by_committed, by_commit])
def test_a_newer_leader_epoch_asks_for_metadata_and_older_metadata_does_not_count(
    names_an_epoch: Callable[[EmbeddedCluster, AsyncConsumer, int], Awaitable[None]],
) -> None:
    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        await read(consumer, 1)
        metadata = consumer._core.cluster.metadata
        epoch = metadata.leader(T0).epoch
        assert epoch is not None
        before = metadata.version
        await names_an_epoch(cluster, consumer, epoch + 1)
        assert metadata._last_seen_epochs.get(T0) == epoch + 1
        assert metadata.leader(T0).node_id is None
        await until(lambda: metadata.version > before)
        assert metadata.leader(T0).node_id is None
        cluster.move_leader("t", 0)
        await until(
            lambda: metadata.leader(T0).epoch == epoch + 1 and metadata.leader(T0).node_id is not None
        )

    with_one_record(scenario)


T7 = TopicPartition("t", 7)


@pytest.mark.spec("B.14")
def test_a_commit_for_a_partition_that_its_topic_does_not_have_is_refused_soon() -> None:
    async def scenario(place: Place) -> None:
        consumer, began = place.consumer(group_id="g"), place.now
        with pytest.raises(
            UnknownTopicError, match=r"t-7: topic 't' has no such partition.* 0 to 1"
        ) as caught:
            await place.on_member(consumer.commit({T0: OffsetAndMetadata(3), T7: OffsetAndMetadata(5)}))
        assert caught.value.topic == "t"
        assert place.now - began < 3.0
        assert place.cluster.committed("g") == {T0: 3}

    simulate(scenario, topics={"t": 2})


@pytest.mark.spec("B.14")
def test_a_commit_for_a_partition_that_is_just_being_made_is_tried_again() -> None:
    """Metadata shows it already, the coordinator does not know it yet."""

    async def scenario(place: Place) -> None:
        consumer = place.consumer(group_id="g")
        place.cluster.fail("OffsetCommit", "UNKNOWN_TOPIC_OR_PARTITION", times=4)
        await place.on_member(consumer.commit({T0: OffsetAndMetadata(5)}))
        assert place.cluster.committed("g") == {T0: 5}

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("B.14")
def test_a_commit_for_a_topic_that_does_not_exist_says_so_when_its_time_is_over() -> None:
    async def scenario(place: Place) -> None:
        consumer = place.consumer(group_id="g")
        unknown = r"UNKNOWN_TOPIC_OR_PARTITION \(3\) for nowhere-0"
        with pytest.raises(DeadlineError, match=unknown):
            await place.on_member(
                consumer.commit({TopicPartition("nowhere", 0): OffsetAndMetadata(5)}, timeout=5)
            )

    simulate(scenario, topics={"t": 1})


def test_a_commit_for_many_topics_that_do_not_exist_asks_for_all_of_them_at_once() -> None:
    async def scenario(place: Place) -> None:
        consumer = place.consumer(group_id="g")
        offsets = {TopicPartition(f"nowhere-{number}", 0): 5 for number in range(40)}
        with pytest.raises(DeadlineError):
            await place.on_member(consumer.commit(offsets, timeout=5))
        assert len(asked(place.cluster, "Metadata")) < len(offsets)

    simulate(scenario, topics={"t": 1})
