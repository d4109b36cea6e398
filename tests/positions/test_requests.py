"""The requests of the position flow: a whole consumer at the embedded cluster, its requests decoded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kclient import AsyncConsumer, OffsetAndMetadata, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.errors import TopicAuthorizationError, UsageError, VersionError
from tests.scenarios.support import T0, T1, asked, consumer_of, play, read
from tests.waiting import until

Scenario = Callable[[EmbeddedCluster], Awaitable[None]]
NOT_LEADER, TOPIC_AUTHORIZATION_FAILED, FENCED_LEADER_EPOCH = 6, 29, 74
GROUP: dict[str, Any] = {"group_id": "g", "retry_backoff_ms": 20, "retry_backoff_max_ms": 40}


def with_cluster(scenario: Scenario, *, brokers: int = 1, partitions: int = 2, **options: Any) -> None:
    """Topic `t` with ten records in each of its partitions."""

    async def run() -> None:
        async with EmbeddedCluster(brokers=brokers, topics={"t": partitions}, **options) as cluster:
            for partition in range(partitions):
                cluster.produce("t", [f"{partition}-{n}" for n in range(10)], partition=partition)
            await scenario(cluster)

    play(run)


async def stored(cluster: EmbeddedCluster, *commits: tuple[TopicPartition, OffsetAndMetadata]) -> None:
    """Commit for the group from outside of it."""
    async with consumer_of(cluster, **GROUP) as consumer:
        await consumer.assign([tp for tp, _ in commits])
        await consumer.commit(dict(commits))
    cluster.forget_requests()


async def polled_until(consumer: AsyncConsumer, condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await consumer.poll(0.01)


def wanted(cluster: EmbeddedCluster, api: str) -> list[list[int]]:
    """The partitions of `t` that each request of an API names."""
    found = []
    for one in asked(cluster, api):
        topics = one.request.groups[0].topics if api == "OffsetFetch" else one.request.topics
        numbers = [
            p for topic in topics for p in getattr(topic, "partition_indexes", None) or topic.partitions
        ]
        found.append(sorted(getattr(number, "partition_index", number) for number in numbers))
    return found


def refuse(*codes: int) -> Callable[[Any, Any], Any]:
    """Responses of ListOffsets say these codes of partitions 0, 1, …, and what they said of the others."""

    def edit(request: Any, response: Any) -> Any:
        for topic in response.topics:
            for partition in topic.partitions:
                if partition.partition_index < len(codes) and (code := codes[partition.partition_index]):
                    partition.error_code, partition.offset = code, -1
        return response

    return edit


@pytest.mark.spec("S0-02", "S0-08")
def test_without_a_group_only_leaders_are_asked() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        async with consumer_of(cluster) as consumer:
            await consumer.assign([T0, T1])
            await read(consumer, 20)
        assert {one.api for one in cluster.requests} - {"ApiVersions"} == {"Metadata", "ListOffsets", "Fetch"}

    with_cluster(scenario)


@pytest.mark.spec("S0-05", "S0-13", "S0-19", "D-27", "D-29")
def test_known_positions_are_asked_for_no_more_and_new_partitions_alone() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        await stored(cluster, (T0, OffsetAndMetadata(4)), (T1, OffsetAndMetadata(7)))
        async with consumer_of(cluster, **GROUP, metadata_max_age_ms=50) as consumer:
            await consumer.assign([T0])
            assert [record.offset for record in await read(consumer, 6)] == [4, 5, 6, 7, 8, 9]
            updates = len(asked(cluster, "Metadata"))
            await polled_until(consumer, lambda: len(asked(cluster, "Metadata")) > updates + 3)
            assert wanted(cluster, "OffsetFetch") == [[0]]
            await consumer.assign([T0, T1])
            assert [(record.partition, record.offset) for record in await read(consumer, 3)] == [
                (1, 7),
                (1, 8),
                (1, 9),
            ]
            assert wanted(cluster, "OffsetFetch") == [[0], [1]]
            assert asked(cluster, "ListOffsets") == []

    with_cluster(scenario)


@pytest.mark.spec("S0-06", "S0-20", "S0-26", "D-20")
def test_shorter_polls_leave_one_request_in_flight_and_no_reset() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        await stored(cluster, (T0, OffsetAndMetadata(4)))
        cluster.delay("OffsetFetch", ms=1_500, times=1)
        async with consumer_of(cluster, **GROUP) as consumer:
            await consumer.assign([T0])
            await reached_after_polls(consumer, lambda: asked(cluster, "OffsetFetch"))
            for _ in range(10):
                consumer.pause([T0])
                consumer.resume([T0])  # news for the position updater, though none of the response
                assert len(await consumer.poll(0.01)) == 0
            assert (len(asked(cluster, "OffsetFetch")), asked(cluster, "ListOffsets")) == (1, [])
            assert (await read(consumer, 6))[0].offset == 4
            assert (len(asked(cluster, "OffsetFetch")), asked(cluster, "ListOffsets")) == (1, [])

    with_cluster(scenario)


async def reached_after_polls(consumer: AsyncConsumer, condition: Callable[[], object]) -> None:
    await consumer.poll(0)
    await until(condition)


@pytest.mark.spec("S0-12", "D-09")
@pytest.mark.parametrize("answered", [False, True], ids=["in flight", "waits for a poll"])
def test_a_join_that_ends_too_late_does_not_touch_a_manual_assignment(answered: bool) -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        cluster.delay("SyncGroup", ms=100 if answered else 300)
        async with consumer_of(cluster, "t", **GROUP) as consumer:
            with pytest.raises(UsageError):
                await consumer.assign([T1])
            await polled_until(consumer, lambda: asked(cluster, "JoinGroup")[1:])
            await until(lambda: asked(cluster, "SyncGroup"))
            await until(lambda: asked(cluster, "SyncGroup")[0].response or not answered)
            await asyncio.sleep(0.05)
            assert consumer.assignment() == ()
            await consumer.unsubscribe()
            await consumer.assign([T1])
            consumer.seek(T1, 6)
            assert [record.offset for record in await read(consumer, 4)] == [6, 7, 8, 9]
            await asyncio.sleep(0.3)
            assert len(await consumer.poll(0.05)) == 0
            assert consumer.assignment() == (T1,)
            with pytest.raises(UsageError):
                await consumer.subscribe(["t"])
            assert await consumer.position(T1) == 10

    with_cluster(scenario)


@pytest.mark.spec("S0-10", "B.6.3")
def test_nothing_is_fetched_before_the_listener_was_notified_for_it_may_seek() -> None:
    """The commit is one that retention overtook: fetching there first would be an error, or a jump."""

    async def scenario(cluster: EmbeddedCluster) -> None:
        await stored(cluster, (T0, OffsetAndMetadata(2)), (T1, OffsetAndMetadata(3)))
        cluster.delete_records("t", 0, 5)

        class Seeking:
            async def on_partitions_assigned(self, partitions: Any) -> None:
                assert await consumer.position(T0) == 2
                await asyncio.sleep(0.2)
                assert asked(cluster, "Fetch") == []
                assert (await consumer.explain())[T1].startswith("assigned just now")
                consumer.seek(T0, 7)

        keys = {**GROUP, "auto_offset_reset": None}
        async with consumer_of(cluster, **keys) as consumer:
            await consumer.subscribe(["t"], listener=Seeking())  # type: ignore[arg-type]
            records = await read(consumer, 3 + 7)
        assert min(record.offset for record in records if record.partition == 0) == 7
        assert min(record.offset for record in records if record.partition == 1) == 3

    with_cluster(scenario)


@pytest.mark.spec("S0-21")
def test_a_coordinator_that_is_not_known_yet_is_found_and_asked() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        await stored(cluster, (T0, OffsetAndMetadata(4)))
        cluster.fail("FindCoordinator", error="COORDINATOR_NOT_AVAILABLE", times=3)
        cluster.fail("OffsetFetch", error="NOT_COORDINATOR", times=1)
        async with consumer_of(cluster, **GROUP) as consumer:
            await consumer.assign([T0])
            assert (await read(consumer, 6))[0].offset == 4
        assert len(asked(cluster, "FindCoordinator")) == 3 + 1 + 1
        assert asked(cluster, "ListOffsets") == []

    with_cluster(scenario)


@pytest.mark.spec("S0-22", "D-21")
@pytest.mark.parametrize(
    ("release", "version", "stable"), [("2.4", 6, False), ("2.5", 7, True), ("4.3", 10, True)]
)
def test_stable_offsets_are_demanded_where_a_version_can(release: str, version: int, stable: bool) -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        await stored(cluster, (T0, OffsetAndMetadata(4)))
        async with consumer_of(cluster, **GROUP) as consumer:
            await consumer.assign([T0])
            assert (await read(consumer, 6))[0].offset == 4
        (one,) = asked(cluster, "OffsetFetch")
        assert (one.version, one.request.require_stable) == (version, stable)

    with_cluster(scenario, release=release)


@pytest.mark.spec("S0-22", "D-21")
@pytest.mark.parametrize("release", ["2.4", "2.5"])
def test_a_client_that_must_have_stable_offsets_gets_none_from_a_broker_that_cannot_say(release: str) -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        await stored(cluster, (T0, OffsetAndMetadata(4)))
        keys = {"internal_throw_on_fetch_stable_offset_unsupported": True}
        async with consumer_of(cluster, **GROUP, **keys) as consumer:
            await consumer.assign([T0])
            if release == "2.5":
                assert (await read(consumer, 6))[0].offset == 4
                return
            with pytest.raises(VersionError) as caught:
                await polled_until(consumer, lambda: False)
            assert caught.value.api == "OffsetFetch"
            assert asked(cluster, "OffsetFetch") == []

    with_cluster(scenario, release=release)


@pytest.mark.spec("S0-28", "S0-42", "S0-49", "S0-60", "U-07")
def test_an_error_of_a_look_up_is_raised_once_by_each_poll_and_then_asked_again() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        rule = cluster.on("ListOffsets", refuse(0, TOPIC_AUTHORIZATION_FAILED))
        async with consumer_of(cluster) as consumer:
            await consumer.assign([T0, T1])
            for times in (1, 2):
                await asyncio.sleep(0.3)  # the error waits for a poll, and nothing is asked meanwhile
                with pytest.raises(TopicAuthorizationError) as caught:
                    await polled_until(consumer, lambda: False)
                assert caught.value.topics == ("t",)
                assert len(asked(cluster, "ListOffsets")) == times
            cluster.lift(rule)
            await read(consumer, 20)

    with_cluster(scenario)


@pytest.mark.spec("S0-47", "S0-60")
def test_one_refused_partition_is_asked_again_after_metadata_and_the_others_continue() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        cluster.on("ListOffsets", refuse(0, NOT_LEADER), times=1)
        async with consumer_of(cluster, retry_backoff_ms=300, retry_backoff_max_ms=300) as consumer:
            await consumer.assign([T0, T1])
            assert {record.partition for record in await read(consumer, 10)} == {0}
            await read(consumer, 10)
        assert wanted(cluster, "ListOffsets") == [[0, 1], [1]]
        apis = [one.api for one in cluster.requests]
        first, second = [place for place, api in enumerate(apis) if api == "ListOffsets"]
        assert "Metadata" in apis[first:second]
        times = [one.at for one in asked(cluster, "ListOffsets")]
        assert times[1] - times[0] >= 0.29

    with_cluster(scenario)


@pytest.mark.spec("S0-45", "D-42", "D-45")
def test_a_retried_look_up_goes_to_the_new_leader_with_its_epoch() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        cluster.delay("ListOffsets", ms=300)  # the leader moves before the refusal asks for new metadata
        cluster.on("ListOffsets", refuse(FENCED_LEADER_EPOCH), times=1)
        async with consumer_of(cluster, retry_backoff_ms=200, retry_backoff_max_ms=200) as consumer:
            await consumer.assign([T0])
            await reached_after_polls(consumer, lambda: len(asked(cluster, "ListOffsets")) == 1)
            old = cluster.leader_of("t", 0)
            cluster.move_leader("t", 0)
            await read(consumer, 10)
        first, second = asked(cluster, "ListOffsets")
        assert (first.node, second.node) == (old, cluster.leader_of("t", 0))
        epochs = [one.request.topics[0].partitions[0].current_leader_epoch for one in (first, second)]
        assert epochs == [0, 1]

    with_cluster(scenario, brokers=3, partitions=1)


@pytest.mark.spec("S0-43", "S0-46")
def test_a_look_up_in_flight_is_not_repeated_and_one_that_was_lost_is() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        cluster.drop("ListOffsets", times=1)
        async with consumer_of(cluster, request_timeout_ms=400) as consumer:
            await consumer.assign([T0])
            await reached_after_polls(consumer, lambda: asked(cluster, "ListOffsets"))
            sent = asked(cluster, "ListOffsets")[0].at
            await read(consumer, 10)
        again = asked(cluster, "ListOffsets")
        assert len(again) == 2
        assert again[1].at - sent >= 0.39

    with_cluster(scenario)


@pytest.mark.spec("S0-48", "S0-58", "D-31", "D-46")
@pytest.mark.parametrize("api", ["OffsetFetch", "ListOffsets"])
def test_a_seek_during_a_look_up_wins(api: str) -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        cluster.delay(api, ms=200, times=1)
        async with consumer_of(cluster, **GROUP) as consumer:
            await consumer.assign([T0, T1])
            await reached_after_polls(consumer, lambda: asked(cluster, api))
            consumer.seek(T0, 8)
            records = await read(consumer, 12)
            assert [record.offset for record in records if record.partition == 0] == [8, 9]
            assert [record.offset for record in records if record.partition == 1] == list(range(10))
        fetches = wanted(cluster, "OffsetFetch")
        assert fetches == ([[0, 1], [1]] if api == "OffsetFetch" else [[0, 1]])

    with_cluster(scenario)


@pytest.mark.spec("S0-01", "S0-06", "D-20")
def test_without_a_coordinator_a_partition_of_a_group_waits_and_nothing_is_guessed() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        await stored(cluster, (T0, OffsetAndMetadata(4)))
        rule = cluster.fail("FindCoordinator", error="COORDINATOR_NOT_AVAILABLE", times=None)
        async with consumer_of(cluster, **GROUP) as consumer:
            await consumer.assign([T0, T1])
            for _ in range(10):
                assert len(await consumer.poll(0.03)) == 0
            assert {one.api for one in cluster.requests} == {"ApiVersions", "Metadata", "FindCoordinator"}
            cluster.lift(rule)
            records = await read(consumer, 6 + 10)
            assert min(record.offset for record in records if record.partition == 0) == 4

    with_cluster(scenario)


@pytest.mark.spec("D-29", "S0-08", "S0-17", "B.6.3")
def test_a_partition_that_waits_for_its_reset_is_not_committed() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        await stored(cluster, (T0, OffsetAndMetadata(4)))
        cluster.drop("ListOffsets", times=None)
        async with consumer_of(cluster, **GROUP) as consumer:
            await consumer.assign([T0, T1])
            await read(consumer, 6)
            async with asyncio.timeout(10):
                while not wanted(cluster, "ListOffsets"):
                    await consumer.poll(0.01)
            assert wanted(cluster, "ListOffsets") == [[1]]
            await consumer.commit()
            (one,) = asked(cluster, "OffsetCommit")
            assert [row.partition_index for row in one.request.topics[0].partitions] == [0]
            consumer.seek_to_end([T0])  # what was read is not valid any more either
            await consumer.commit()
            assert len(asked(cluster, "OffsetCommit")) == 1
        assert cluster.committed("g") == {T0: 10}

    with_cluster(scenario, brokers=3)  # an unanswered request holds up its own connection only


@pytest.mark.spec("S0-57", "S0-06")
def test_a_seek_to_the_end_needs_no_coordinator() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        cluster.drop("FindCoordinator", times=None)
        async with consumer_of(cluster, **GROUP) as consumer:
            await consumer.assign([T0, T1])
            consumer.seek_to_end([])
            assert [await consumer.position(tp) for tp in (T0, T1)] == [10, 10]
            assert asked(cluster, "OffsetFetch") == []

    with_cluster(scenario)


@pytest.mark.spec("S0-08", "D-24")
def test_polls_that_wait_for_nothing_reach_the_records_of_six_partitions_on_three_leaders() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        async with consumer_of(cluster) as consumer:
            await consumer.assign([TopicPartition("t", n) for n in range(6)])
            found: list[Any] = []
            async with asyncio.timeout(10):
                while len(found) < 60:
                    found += await consumer.poll(0)
        assert len(asked(cluster, "ListOffsets")) == 3

    with_cluster(scenario, brokers=3, partitions=6)


@pytest.mark.spec("S0-50", "B.8")
def test_a_broker_of_2016_is_asked_in_version_0_for_ends_and_not_for_times() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        async with consumer_of(cluster) as consumer:
            await consumer.assign([T0])
            assert len(await read(consumer, 10)) == 10
            assert await consumer.end_offsets([T0]) == {T0: 10}
            assert {one.version for one in asked(cluster, "ListOffsets")} == {0}
            assert {
                one.request.topics[0].partitions[0].max_num_offsets for one in asked(cluster, "ListOffsets")
            } == {1}
            with pytest.raises(VersionError, match=r"A search by time needs Kafka 0.10.1"):
                await consumer.offsets_for_times({T0: 1})
            assert {one.version for one in asked(cluster, "ListOffsets")} == {0}

    with_cluster(scenario, release="0.10.0")


@pytest.mark.spec("S0-50", "S0-51", "B.8")
def test_a_broker_without_transactions_cannot_be_read_committed_and_says_so() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        async with consumer_of(cluster, isolation_level="read_committed") as consumer:
            await consumer.assign([T0])
            with pytest.raises(VersionError) as caught:
                await polled_until(consumer, lambda: False)
            assert (caught.value.retriable, caught.value.api, caught.value.node_id) == (
                False,
                "ListOffsets",
                1,
            )
            assert "read_committed needs Kafka 0.11" in caught.value.text
            assert asked(cluster, "ListOffsets") == []

    with_cluster(scenario, release="0.10.2")


@pytest.mark.spec("D-26", "U-01")
@pytest.mark.parametrize("policy", ["earliest", "latest"])
def test_a_position_that_retention_took_is_one_look_up_a_count_and_then_records(policy: str) -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        async with consumer_of(cluster, auto_offset_reset=None, on_offset_out_of_range=policy) as consumer:
            await consumer.assign([T0])
            consumer.seek(T0, 2)
            cluster.delete_records("t", 0, 7)
            if policy == "earliest":
                assert [record.offset for record in await read(consumer, 3)] == [7, 8, 9]
            else:
                await polled_until(consumer, lambda: asked(cluster, "ListOffsets"))
                assert await consumer.position(T0) == 10
            assert len(asked(cluster, "ListOffsets")) == 1
            skipped = consumer.metrics().value("records-skipped-total", reason="retention")
            assert skipped == (5 if policy == "earliest" else 8)

    with_cluster(scenario)


@pytest.mark.spec("S0-29", "D-21")
def test_a_commit_that_is_not_stable_yet_is_waited_for_and_nothing_is_raised() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        await stored(cluster, (T0, OffsetAndMetadata(4)))
        cluster.on("OffsetFetch", unstable, times=3)
        async with consumer_of(cluster, **GROUP) as consumer:
            await consumer.assign([T0])
            assert (await read(consumer, 6))[0].offset == 4
        assert len(asked(cluster, "OffsetFetch")) == 4
        assert asked(cluster, "ListOffsets") == []

    with_cluster(scenario)


def unstable(request: Any, response: Any) -> Any:
    for topic in response.groups[0].topics:
        for partition in topic.partitions:
            partition.error_code, partition.committed_offset = 88, -1
    return response
