"""Error codes and lost responses, evictions, static members, and leaving, on an embedded cluster."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from kclient import KclientError, OffsetAndMetadata, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.errors import (
    BrokerError,
    CommitFailedError,
    GroupAuthorizationError,
    TopicAuthorizationError,
    VersionError,
)
from kclient.group.consumer_protocol.state import ConsumerMemberState
from tests.group.consumer_protocol.embedded_members import (
    RecordingListener,
    heartbeats,
    member,
    membership,
    numbers,
    on_a_cluster,
    polled_until,
    quiet,
    raised_by_poll,
)
from tests.waiting import until

API = "ConsumerGroupHeartbeat"
ALL = (0, 1, 2, 3)
OFFSETS = {TopicPartition("t", 0): OffsetAndMetadata(0)}


# --- refusals


@pytest.mark.spec("B.17.4", "A-14", "B.17.1")
@pytest.mark.parametrize("code", ["FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"])
def test_a_fenced_member_loses_everything_and_joins_again_under_its_old_id(code: str) -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        diary = RecordingListener()
        async with member(cluster, "t", listener=diary) as consumer:
            await quiet(consumer)
            cluster.forget_requests()
            cluster.fail(API, code)
            await until(lambda: membership(consumer).state is ConsumerMemberState.FENCED)
            assert consumer.group_metadata().generation_id == -1
            with pytest.raises(CommitFailedError) as caught:
                await consumer.commit(OFFSETS)
            assert caught.value.reason == "evicted"
            silent = len(heartbeats(cluster))
            await asyncio.sleep(0.15)
            assert len(heartbeats(cluster)) == silent
            await polled_until(lambda: len(diary.calls) == 3, consumer)
            anew = heartbeats(cluster)[silent]
            assert anew.member_id == heartbeats(cluster)[0].member_id
            assert (anew.member_epoch, anew.subscribed_topic_names, anew.topic_partitions) == (0, ["t"], [])
            await consumer.commit(OFFSETS)
        assert diary.calls[:3] == [("assigned", ALL), ("lost", ALL), ("assigned", ALL)]

    on_a_cluster(scene)


@pytest.mark.spec("B.17.4", "B.17.2")
@pytest.mark.parametrize(
    ("code", "asks_who_coordinates"),
    [
        ("COORDINATOR_NOT_AVAILABLE", True),
        ("NOT_COORDINATOR", True),
        ("COORDINATOR_LOAD_IN_PROGRESS", False),
    ],
)
def test_a_transient_error_costs_nothing_and_the_next_heartbeat_is_full(
    code: str, asks_who_coordinates: bool
) -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        diary = RecordingListener()
        async with member(cluster, "t", listener=diary) as consumer:
            await quiet(consumer)
            cluster.forget_requests()
            cluster.fail(API, code)
            await polled_until(lambda: len(heartbeats(cluster)) >= 3, consumer)
            refused, again, _ = heartbeats(cluster)[:3]
            assert refused.subscribed_topic_names is None
            assert (again.subscribed_topic_names, again.rebalance_timeout_ms) == (["t"], 300_000)
            assert again.member_epoch == refused.member_epoch > 0
            assert [row.partitions for row in again.topic_partitions] == [list(ALL)]
            assert any(seen.api == "FindCoordinator" for seen in cluster.requests) is asks_who_coordinates
            assert diary.calls == [("assigned", ALL)]

    on_a_cluster(scene)


@pytest.mark.spec("B.17.4", "I-26")
def test_a_coordinator_that_always_refuses_is_asked_in_growing_pauses() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        cluster.fail(API, "NOT_COORDINATOR", times=None)
        async with member(cluster, "t", retry_backoff_ms=50, retry_backoff_max_ms=200) as consumer:
            await polled_until(lambda: heartbeats(cluster), consumer)
            began = time.monotonic()
            while time.monotonic() - began < 1.0:
                await consumer.poll(0.1)
            assert 3 <= len(heartbeats(cluster)) <= 12

    on_a_cluster(scene)


@pytest.mark.spec("B.17.2")
def test_after_a_lost_response_everything_is_sent_again_and_nothing_is_lost() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        diary = RecordingListener()
        async with member(cluster, "t", listener=diary) as consumer:
            await quiet(consumer)
            cluster.forget_requests()
            cluster.cut(API, after=3)
            await polled_until(lambda: len(heartbeats(cluster)) >= 3, consumer)
            assert heartbeats(cluster)[1].subscribed_topic_names == ["t"]
        assert diary.calls == [("assigned", ALL), ("revoked", ALL)]

    on_a_cluster(scene)


@pytest.mark.spec("B.17.4")
def test_a_missing_right_to_a_topic_is_reported_once_each_time_and_membership_continues() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        diary = RecordingListener()
        async with member(cluster, "t", listener=diary) as consumer:
            await quiet(consumer)
            cluster.fail(API, "TOPIC_AUTHORIZATION_FAILED")
            assert isinstance(await raised_by_poll(consumer), TopicAuthorizationError)
            seen = len(heartbeats(cluster))
            await polled_until(lambda: len(heartbeats(cluster)) > seen + 2, consumer)
            assert membership(consumer).state is ConsumerMemberState.STABLE
        assert diary.calls == [("assigned", ALL), ("revoked", ALL)]

    on_a_cluster(scene)


@pytest.mark.spec("B.17.4", "U-28")
def test_a_right_that_stays_away_is_logged_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        async with member(cluster, "t") as consumer:
            await quiet(consumer)
            cluster.fail(API, "TOPIC_AUTHORIZATION_FAILED", times=None)
            seen = len(heartbeats(cluster))
            await until(lambda: len(heartbeats(cluster)) > seen + 4)
            cluster.lift()
            assert isinstance(await raised_by_poll(consumer), TopicAuthorizationError)

    with caplog.at_level(logging.WARNING, "kclient.group"):
        on_a_cluster(scene)
    warned = [line for line in caplog.messages if "TOPIC_AUTHORIZATION_FAILED" in line]
    assert len(warned) == 1


@pytest.mark.spec("B.17.4", "B.17.1")
@pytest.mark.parametrize("code", [30, 42, 81, 112, 82, 69, 35, -1])
def test_what_cannot_be_cured_ends_the_membership_until_the_next_subscription(code: int) -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        diary = RecordingListener()
        async with member(cluster, "t", listener=diary) as consumer:
            await quiet(consumer)
            cluster.fail(API, code)
            first = await raised_by_poll(consumer)
            assert membership(consumer).state is ConsumerMemberState.FATAL
            assert diary.calls == [("assigned", ALL), ("lost", ALL)]
            silent = len(heartbeats(cluster))
            second = await raised_by_poll(consumer)
            await asyncio.sleep(0.1)
            assert len(heartbeats(cluster)) == silent
            assert str(first) == str(second)
            assert first is not second
            expected = {30: GroupAuthorizationError, 35: VersionError}
            assert isinstance(first, expected.get(code, BrokerError))
            await consumer.unsubscribe()
            assert len(heartbeats(cluster)) == silent
            await consumer.subscribe(["t"])
            await quiet(consumer)

    on_a_cluster(scene)


@pytest.mark.spec("B.17.4", "B.14.2")
@pytest.mark.parametrize(("code", "raised"), [(82, BrokerError), (42, CommitFailedError)])
def test_a_consumer_that_is_not_a_member_for_good_commits_nothing(
    code: int, raised: type[KclientError]
) -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        async with member(cluster, "t") as consumer:
            await quiet(consumer)
            cluster.fail(API, code)
            await raised_by_poll(consumer)
            cluster.forget_requests()
            with pytest.raises(raised):
                await consumer.commit(OFFSETS)
            assert not [seen for seen in cluster.requests if seen.api == "OffsetCommit"]

    on_a_cluster(scene)


@pytest.mark.spec("D-18", "B.17.3")
def test_the_response_to_an_earlier_heartbeat_changes_nothing_for_a_member_that_has_left() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        async with member(cluster, "t") as consumer:
            await quiet(consumer)
            left = membership(consumer)
            cluster.forget_requests()
            cluster.delay(API, ms=300, times=1)
            await until(lambda: heartbeats(cluster))
            assert left.generation.generation_id > 0
            await consumer.unsubscribe()
            assert [beat.member_epoch for beat in heartbeats(cluster)][1:] == [-1]
            assert (left.state, left.generation.generation_id) == (ConsumerMemberState.UNSUBSCRIBED, -1)

    on_a_cluster(scene)


@pytest.mark.spec("D-18", "B.17.3")
def test_a_new_epoch_is_used_in_the_next_request_of_every_kind() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        async with member(cluster, "t") as one, member(cluster, "t") as two:
            await polled_until(lambda: len(numbers(one)) == len(numbers(two)) == 2, one, two)
            await polled_until(
                lambda: one.group_metadata().generation_id == two.group_metadata().generation_id, one, two
            )
            epoch = one.group_metadata().generation_id
            cluster.forget_requests()
            mine = TopicPartition("t", min(numbers(one)))
            await one.commit({mine: OffsetAndMetadata(0)})
            await one.committed([mine])
            seen = len(heartbeats(cluster, one))
            await polled_until(lambda: len(heartbeats(cluster, one)) > seen, one, two)
            asked = {seen.api: seen.request for seen in cluster.requests}
            assert asked["OffsetCommit"].generation_id_or_member_epoch == epoch
            assert asked["OffsetFetch"].groups[0].member_epoch == epoch
            assert asked["OffsetFetch"].groups[0].member_id == one.group_metadata().member_id
            assert heartbeats(cluster, one)[-1].member_epoch == epoch

    on_a_cluster(scene)


# --- a late application


@pytest.mark.spec("A-14", "B.17.2", "B.3.8", "D-01")
@pytest.mark.parametrize(("instance_id", "epoch"), [(None, -1), ("i", -2)])
def test_a_member_that_polls_too_late_leaves_and_joins_again_with_the_next_poll(
    instance_id: str | None, epoch: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        diary = RecordingListener()
        settings = {"group_instance_id": instance_id, "max_poll_interval_ms": 400}
        async with member(cluster, "t", listener=diary, **settings) as consumer:
            await quiet(consumer)
            cluster.forget_requests()
            await until(lambda: membership(consumer).state is ConsumerMemberState.STALE)
            await asyncio.sleep(0.15)
            sent = heartbeats(cluster)
            assert (sent[-1].member_epoch, sent[-1].instance_id) == (epoch, instance_id)
            assert diary.calls == [("assigned", ALL)]
            await polled_until(lambda: len(diary.calls) == 3, consumer)
            assert heartbeats(cluster)[len(sent)].member_epoch == 0
        assert diary.calls[:3] == [("assigned", ALL), ("lost", ALL), ("assigned", ALL)]

    with caplog.at_level(logging.WARNING, "kclient.group"):
        on_a_cluster(scene)
    assert "Raise max_poll_interval_ms or lower max_poll_records" in caplog.text


@pytest.mark.spec("B.17.6", "B.17.3", "I-10")
def test_a_member_that_gives_nothing_up_in_time_is_fenced_by_the_coordinator() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        diary = RecordingListener()
        async with member(cluster, "t", listener=diary, max_poll_interval_ms=20_000) as slow:
            await quiet(slow)
            async with member(cluster, "t") as quick:
                await polled_until(lambda: membership(slow).state is ConsumerMemberState.RECONCILING, quick)
                cluster.clock.advance(21)
                await polled_until(lambda: numbers(quick) == set(ALL), quick)
                await until(
                    lambda: membership(slow).state is ConsumerMemberState.FENCED
                )  # by the response to its heartbeat
                await polled_until(lambda: len(numbers(slow)) == 2, slow, quick)
        assert diary.calls[:2] == [("assigned", ALL), ("lost", ALL)]

    on_a_cluster(scene)


# --- static members


@pytest.mark.spec("A-14", "B.17.5", "I-17")
def test_a_static_member_comes_back_to_its_partitions_and_no_other_is_asked() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        diary = RecordingListener()
        async with member(cluster, "t", listener=diary) as other:
            one = member(cluster, "t", group_instance_id="i")
            await polled_until(lambda: len(numbers(one)) == len(numbers(other)) == 2, one, other)
            before, count = numbers(one), len(diary.calls)
            await one.close()
            assert heartbeats(cluster, one)[-1].member_epoch == -2
            async with member(cluster, "t", group_instance_id="i") as again:
                await polled_until(lambda: len(numbers(again)) == 2, again, other)
                assert numbers(again) == before
            assert len(diary.calls) == count

    on_a_cluster(scene)


@pytest.mark.spec("A-14", "B.17.4", "I-17")
def test_a_second_consumer_with_the_same_instance_id_gets_the_error_and_the_first_continues() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        async with member(cluster, "t", group_instance_id="i") as first:
            await quiet(first)
            async with member(cluster, "t", group_instance_id="i") as second:
                error = await raised_by_poll(second)
                assert isinstance(error, BrokerError)
                assert error.name == "UNRELEASED_INSTANCE_ID"
            await quiet(first)
            assert heartbeats(cluster, first)[-1].member_epoch > 0

    on_a_cluster(scene)


@pytest.mark.spec("B.17.2", "B.17.5")
def test_a_member_that_leaves_while_joining_sends_only_join_and_leave_requests() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        cluster.fail(API, "COORDINATOR_LOAD_IN_PROGRESS", times=None)
        async with member(cluster, "t") as consumer:
            await polled_until(lambda: heartbeats(cluster), consumer)
            await membership(consumer).prepare_leaving()
            seen = len(heartbeats(cluster))
            await until(lambda: len(heartbeats(cluster)) > seen)
            assert heartbeats(cluster)[-1].subscribed_topic_names == ["t"]
        assert {beat.member_epoch for beat in heartbeats(cluster)} == {0, -1}

    on_a_cluster(scene)


@pytest.mark.spec("S3-31", "S3-53", "B.17.4", "B.17.5")
def test_a_member_that_is_fenced_while_it_waits_to_leave_has_lost_what_it_had() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        go_on = asyncio.Event()

        async def meanwhile(what: str) -> None:
            await go_on.wait()

        diary = RecordingListener(meanwhile=meanwhile)
        async with member(cluster, "t", listener=diary) as consumer:
            polling = asyncio.create_task(consumer.poll(10))
            await until(lambda: diary.calls)
            leaving = asyncio.create_task(consumer.unsubscribe())
            await until(lambda: membership(consumer).state is ConsumerMemberState.PREPARE_LEAVING)
            cluster.fail(API, "FENCED_MEMBER_EPOCH")
            await until(lambda: membership(consumer).state is ConsumerMemberState.FENCED)
            go_on.set()
            await leaving
            polling.cancel()
        assert diary.calls == [("assigned", ALL), ("lost", ALL)]

    on_a_cluster(scene)
