"""From what a member owns to what it should own: in which order, and what if something comes between."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kclient import AsyncConsumer, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.embedded.groups.loading import groups_of
from kclient.errors import ListenerError
from kclient.group.consumer_protocol.state import ConsumerMemberState
from tests.group.consumer_protocol.embedded_members import (
    RecordingListener,
    heartbeats,
    member,
    membership,
    numbers,
    on_a_cluster,
    polled_until,
)
from tests.realtime import within
from tests.waiting import until

ALL = (0, 1, 2, 3)


async def shared(one: AsyncConsumer, two: AsyncConsumer) -> None:
    """Poll both until each has half."""
    await polled_until(lambda: len(numbers(one)) == len(numbers(two)) == 2, one, two)


def without(topic: str) -> Any:
    """Metadata that does not know a topic."""

    def edit(request: Any, response: Any) -> Any:
        response.topics = [one for one in response.topics if one.name != topic]
        return response

    return edit


@pytest.mark.spec("A-14", "B.17.3")
@pytest.mark.parametrize("first_alone", [True, False])
def test_what_has_a_name_is_taken_over_and_reported_and_the_rest_when_metadata_has_come(
    first_alone: bool,
) -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        cluster.create_topic("u", partitions=1)
        diary, topics = RecordingListener(), ["t", "u"]
        async with member(cluster) as consumer:
            if first_alone:
                await consumer.subscribe(["t"], listener=diary)
                await polled_until(lambda: len(numbers(consumer)) == 4, consumer)
            rule = cluster.on("Metadata", without("u"))
            await consumer.subscribe(topics, listener=diary)
            t = cluster.state.topics["t"].topic_id
            await polled_until(lambda: len(consumer.assignment()) == 4, consumer)
            await polled_until(
                lambda: membership(consumer).state is ConsumerMemberState.RECONCILING, consumer
            )

            def reported() -> Any:
                return [beat.topic_partitions for beat in heartbeats(cluster) if beat.topic_partitions]

            await polled_until(lambda: len(reported()) == 1 + first_alone, consumer)
            assert [(row.topic_id, row.partitions) for row in reported()[-1]] == [(t, list(ALL))]
            cluster.lift(rule)
            await polled_until(lambda: len(consumer.assignment()) == 5, consumer)
            await polled_until(lambda: membership(consumer).state is ConsumerMemberState.STABLE, consumer)
            await polled_until(lambda: len(reported()[-1]) == 2, consumer)
        assert diary.calls == [("assigned", ALL), ("assigned", (0,)), ("revoked", (*ALL, 0))]

    on_a_cluster(scene)


@pytest.mark.spec("A-14", "B.17.3", "I-10")
def test_no_new_assignment_is_adopted_while_a_heartbeat_with_owned_partitions_is_in_flight() -> None:
    """The coordinator takes the rest of the target for free when it handles such a heartbeat, and may give it away."""

    async def scene(cluster: EmbeddedCluster) -> None:
        cluster.create_topic("u", partitions=1)
        loop = asyncio.get_running_loop()
        async with member(cluster, "t", "u") as consumer:
            rule = cluster.on("Metadata", without("u"))
            cluster.delay("ConsumerGroupHeartbeat", 400, only_if=lambda beat: bool(beat.topic_partitions))
            await polled_until(lambda: len(consumer.assignment()) == 4, consumer)
            began = loop.time()
            await polled_until(
                lambda: membership(consumer).state is ConsumerMemberState.RECONCILING, consumer
            )
            cluster.lift(rule)
            await polled_until(lambda: len(consumer.assignment()) == 5, consumer)
            assert loop.time() - began > 0.35

    on_a_cluster(scene)


@pytest.mark.spec("A-14", "B.17.3")
def test_what_on_assigned_raises_is_raised_by_poll_and_the_next_one_finishes_and_acknowledges() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        diary = RecordingListener(failures={"assigned": ValueError("no")})
        async with member(cluster, "t", listener=diary) as one:
            with pytest.raises(ListenerError, match="on_partitions_assigned raised ValueError"):
                await polled_until(lambda: False, one)
            seen = len(heartbeats(cluster))
            await until(lambda: len(heartbeats(cluster)) > seen + 1)
            assert membership(one).state is ConsumerMemberState.RECONCILING
            assert not [beat for beat in heartbeats(cluster) if beat.topic_partitions]
            await polled_until(lambda: membership(one).state is ConsumerMemberState.STABLE, one)
        assert diary.calls == [("assigned", ALL), ("assigned", ()), ("revoked", ALL)]

    on_a_cluster(scene)


@pytest.mark.spec("A-14", "B.17.3", "S3-49")
def test_a_member_that_joins_and_gets_nothing_calls_the_listener_with_no_partitions_once() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        diary = RecordingListener()
        async with member(cluster, "t") as one, member(cluster, "t", listener=diary) as two:
            await polled_until(lambda: numbers(one) == {0}, one)
            await polled_until(lambda: diary.calls, one, two)
            assert diary.calls == [("assigned", ())]
            seen = len(heartbeats(cluster, two))
            await polled_until(lambda: len(heartbeats(cluster, two)) > seen + 2, one, two)
            assert diary.calls == [("assigned", ())]
            await one.close()
            await polled_until(lambda: numbers(two) == {0}, two)
            assert diary.calls == [("assigned", ()), ("assigned", (0,))]

    on_a_cluster(scene, partitions=1)


@pytest.mark.spec("A-14", "B.17.3", "I-10")
def test_what_on_revoked_raises_is_raised_by_poll_and_the_next_one_gives_the_partitions_free() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        diary = RecordingListener()
        async with member(cluster, "t", listener=diary) as one, member(cluster, "t") as two:
            await polled_until(lambda: len(numbers(one)) == 4, one)
            diary.failures["revoked"] = ValueError("no")
            with pytest.raises(ListenerError, match="on_partitions_revoked raised ValueError"):
                await polled_until(lambda: False, one, two)
            seen = len(heartbeats(cluster, one))
            await polled_until(lambda: len(heartbeats(cluster, one)) > seen + 1, two)
            assert membership(one).state is ConsumerMemberState.RECONCILING
            assert numbers(two) == set()
            await shared(one, two)

    on_a_cluster(scene)


@pytest.mark.spec("A-14", "B.17.3")
def test_a_target_that_changes_before_a_poll_came_is_all_that_is_taken_over() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        diary = RecordingListener()
        async with member(cluster, "t", listener=diary) as one, member(cluster, "t") as two:
            await one._core.lifecycle.start()
            await one.poll(0)  # joins, and takes nothing over
            await until(lambda: membership(one).state is ConsumerMemberState.RECONCILING)
            assert len(membership(one)._assignments.target) == 1
            first = membership(one)._assignments.local_epoch
            await polled_until(lambda: membership(one)._assignments.local_epoch > first, two)
            assert diary.calls == []
            await shared(one, two)
            assert diary.calls == [("assigned", tuple(sorted(numbers(one))))]

    on_a_cluster(scene)


@pytest.mark.spec("A-14", "B.17.3")
def test_another_member_that_leaves_while_a_listener_gives_up_for_it_gives_all_of_it_back() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        two = member(cluster, "t")
        left = asyncio.Event()

        async def two_leaves(what: str) -> None:
            if what == "revoked" and not left.is_set():
                left.set()
                seen = len(heartbeats(cluster, one))
                await two.close()
                await until(lambda: len(heartbeats(cluster, one)) >= seen + 2)

        diary = RecordingListener(meanwhile=two_leaves)
        async with member(cluster, "t", listener=diary) as one:
            await polled_until(lambda: len(numbers(one)) == 4, one)
            await polled_until(lambda: len({beat.member_id for beat in heartbeats(cluster)}) == 2, two)
            await polled_until(left.is_set, one)
            await polled_until(lambda: len(numbers(one)) == 4, one)
            await polled_until(lambda: membership(one).state is ConsumerMemberState.STABLE, one)
        gone = diary.calls[1][1]
        assert diary.calls[:2] == [("assigned", ALL), ("revoked", gone)]
        assert diary.calls[-2] == ("assigned", gone)
        assert sorted(diary.calls[-1][1]) == list(ALL)

    on_a_cluster(scene)


@pytest.mark.spec("A-14", "B.17.3", "B.14.5")
def test_what_was_delivered_is_committed_before_it_goes() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        for number in ALL:
            cluster.produce("t", [b"x"] * 3, partition=number)
        settings = {"enable_auto_commit": True, "auto_commit_interval_ms": 60_000}
        async with member(cluster, "t", **settings) as one:
            got = 0
            async with asyncio.timeout(10):
                while got < 12:
                    got += len(await one.poll(0.1))
            async with member(cluster, "t", **settings) as two:
                await shared(one, two)
                committed = cluster.committed("g")
                assert all(committed[TopicPartition("t", number)] == 3 for number in numbers(two))
                assert len(await two.poll(0.1)) == 0

    on_a_cluster(scene)


@pytest.mark.spec("A-14", "B.17.3", "B.14.8")
@pytest.mark.parametrize("code", ["OFFSET_METADATA_TOO_LARGE", "STALE_MEMBER_EPOCH"])
def test_an_automatic_commit_that_fails_does_not_stop_the_revocation(code: str) -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        for number in ALL:
            cluster.produce("t", [b"x"], partition=number)
        settings: dict[str, Any] = {
            "enable_auto_commit": True,
            "auto_commit_interval_ms": 60_000,
            "max_poll_interval_ms": 1_500,
        }
        async with member(cluster, "t", **settings) as one:
            got = 0
            async with asyncio.timeout(10):
                while got < 4:
                    got += len(await one.poll(0.1))
            cluster.fail("OffsetCommit", code, times=None)
            async with member(cluster, "t") as two:
                await shared(one, two)
                assert any(seen.api == "OffsetCommit" for seen in cluster.requests)

    on_a_cluster(scene)


@pytest.mark.spec("B.17.3", "I-11")
def test_partitions_that_stay_are_read_all_the_while() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        held = asyncio.Event()
        diary = RecordingListener()
        async with member(cluster, "t", listener=diary) as one:
            await polled_until(lambda: len(numbers(one)) == 4, one)
            async with member(cluster, "t") as two:
                await polled_until(lambda: membership(one).state is ConsumerMemberState.RECONCILING, two)
                for number in ALL:
                    cluster.produce("t", [b"x"], partition=number)
                got: set[int] = set()
                async with asyncio.timeout(10):
                    while not {0, 1} <= got:
                        got |= {record.partition for record in await one.poll(0.05)}
                        held.set()
                assert got & numbers(two) == set()

    on_a_cluster(scene)


@pytest.mark.spec("B.17.4", "A-14")
def test_a_coordinator_that_dies_costs_no_membership() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        diary = RecordingListener()
        async with member(cluster, "t", listener=diary) as consumer:
            await polled_until(lambda: len(numbers(consumer)) == 4, consumer)
            await polled_until(lambda: membership(consumer).state is ConsumerMemberState.STABLE, consumer)
            cluster.kill(cluster.coordinator_of("g"))
            seen = len(heartbeats(cluster))
            await polled_until(lambda: len(heartbeats(cluster)) > seen + 2, consumer)
        assert diary.calls == [("assigned", ALL), ("revoked", ALL)]

    on_a_cluster(scene, brokers=3)


@pytest.mark.spec("I-24", "B.17.5", "B.18")
@pytest.mark.parametrize("silent", ["ConsumerGroupHeartbeat", "FindCoordinator", "OffsetCommit"])
def test_close_is_bounded_whatever_is_not_answered(silent: str) -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        settings = {"enable_auto_commit": True, "auto_commit_interval_ms": 60_000}
        consumer = member(cluster, "t", **settings)
        cluster.produce("t", [b"x"], partition=0)
        if silent == "FindCoordinator":
            cluster.drop(silent, times=None)
            await consumer.poll(0.2)
        else:
            async with asyncio.timeout(10):
                while not await consumer.poll(0.1):
                    pass
            cluster.drop(silent, times=None)
        with within(2.5):
            await consumer.close(timeout=1.0)

    on_a_cluster(scene)


@pytest.mark.spec("A-14", "B.17.5")
def test_closing_while_the_join_is_not_answered_is_followed_by_leaving() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        cluster.delay("ConsumerGroupHeartbeat", ms=300, times=1)
        consumer = member(cluster, "t")
        await polled_until(lambda: heartbeats(cluster), consumer)
        await consumer.close()
        assert [beat.member_epoch for beat in heartbeats(cluster)] == [0, -1]
        await until(lambda: not groups_of(cluster.state.brokers[1]).groups["g"].members)

    on_a_cluster(scene)
