"""Commits as the application asks for them: in order, with callbacks, by interval, in the middle of a batch."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

import pytest

from kclient import OffsetAndMetadata, TopicPartition
from kclient.errors import BrokerError, CommitFailedError
from localkafka import CommittedOffset, KafkaCluster
from tests.kafka.blocking_consumers import FACES, read, wait_for_assignment
from tests.kafka.other_clients import committed, produce_numbers, wait_until_committed
from tests.kafka.wire_tap import Tap

COUNT = 50


def keys(kafka: KafkaCluster, name: str, **more: Any) -> dict[str, Any]:
    base = {"bootstrap_servers": kafka.bootstrap_servers, "group_id": name, "auto_offset_reset": "earliest"}
    return (
        base | {"enable_auto_commit": False, "session_timeout_ms": 6000, "heartbeat_interval_ms": 500} | more
    )


@pytest.mark.spec("S1-17", "S4-46", "B.14.2", "I-08", "M-05")
@pytest.mark.parametrize("cluster", ["kafka1", "kafka28"])
def test_asynchronous_commits_call_back_in_order(
    request: pytest.FixtureRequest, consumer_class: Any, cluster: str, fresh_name: str
) -> None:
    """One after each record; the callbacks come in the order of the commits and only inside calls of the consumer."""
    kafka = request.getfixturevalue(cluster)
    kafka.create_topic(fresh_name)
    produce_numbers(kafka, fresh_name, range(COUNT), 1)
    tp = TopicPartition(fresh_name, 0)
    called: list[tuple[int, object]] = []
    with consumer_class(fresh_name, **keys(kafka, fresh_name)) as consumer:
        for record in read(consumer, COUNT):
            consumer.commit_async(
                {tp: OffsetAndMetadata(record.offset + 1, record.leader_epoch)},
                lambda offsets, error: called.append((offsets[tp].offset, error)),
            )
        in_between = list(called)
        time.sleep(0.3)
        assert called == in_between
        deadline = time.monotonic() + 10
        while len(called) < COUNT and time.monotonic() < deadline:
            consumer.poll(0.05)
        assert called == [(number, None) for number in range(1, COUNT + 1)]
        assert consumer.committed([tp]) == {tp: OffsetAndMetadata(COUNT, 0)}
    assert committed(kafka, fresh_name) == {tp: COUNT}


@pytest.mark.spec("S1-22", "S1-32", "S3-18", "S4-44", "D-30", "I-01")
def test_what_was_returned_is_committed_by_a_poll_after_the_interval(
    kafka1: KafkaCluster, consumer_class: Any, fresh_name: str
) -> None:
    kafka1.create_topic(fresh_name, 2)
    produce_numbers(kafka1, fresh_name, range(10), 1)
    zero, one = (TopicPartition(fresh_name, partition) for partition in range(2))
    settings = keys(kafka1, fresh_name, enable_auto_commit=True, auto_commit_interval_ms=300)
    with consumer_class(fresh_name, **settings) as consumer:
        assert len(read(consumer, 10)) == 10
        time.sleep(0.5)
        assert committed(kafka1, fresh_name).get(zero, 0) == 0  # only a poll releases what was returned
        deadline = time.monotonic() + 10
        while committed(kafka1, fresh_name) != {zero: 10, one: 0} and time.monotonic() < deadline:
            consumer.poll(0.1)
        assert committed(kafka1, fresh_name) == {zero: 10, one: 0}


@pytest.mark.spec("S1-30", "S1-32", "B.14.4", "B.14.6", "D-62")
def test_offsets_with_metadata(kafka1: KafkaCluster, consumer_class: Any, fresh_name: str) -> None:
    kafka1.create_topic(fresh_name, 2)
    produce_numbers(kafka1, fresh_name, range(10), 2)
    zero, one = (TopicPartition(fresh_name, partition) for partition in range(2))
    with consumer_class(fresh_name, **keys(kafka1, fresh_name)) as consumer:
        wait_for_assignment(consumer, 2)
        stored = OffsetAndMetadata(3, 0, "a\0b – ünïcode")
        consumer.commit({zero: stored})
        assert consumer.committed([zero, one]) == {zero: stored, one: None}
        with pytest.raises(BrokerError, match="OFFSET_METADATA_TOO_LARGE") as caught:
            consumer.commit({zero: OffsetAndMetadata(4, metadata="x" * 5000)})
        assert caught.value.code == 12
        assert kafka1.describe_group(fresh_name) == {
            zero: CommittedOffset(3, 5, 2),
            one: CommittedOffset(None, 5, None),
        }


@pytest.mark.spec("B.14.3", "B.15.8", "B.21", "I-09")
def test_a_commit_from_outside_of_a_group_with_members_is_refused(
    kafka1: KafkaCluster, consumer_class: Any, fresh_name: str
) -> None:
    kafka1.create_topic(fresh_name)
    produce_numbers(kafka1, fresh_name, range(10), 1)
    tp = TopicPartition(fresh_name, 0)
    with consumer_class(fresh_name, **keys(kafka1, fresh_name)) as member:
        assert len(read(member, 10)) == 10
        with consumer_class(**keys(kafka1, fresh_name)) as outsider:
            outsider.assign([tp])
            with pytest.raises(CommitFailedError) as caught:
                outsider.commit({tp: OffsetAndMetadata(1)})
            assert caught.value.uncommitted == {tp: OffsetAndMetadata(1)}
        member.commit()
        wait_until_committed(kafka1, fresh_name, {tp: 10})


@pytest.mark.spec("D-01", "B.13.5", "B.14.3", "I-09")
@pytest.mark.parametrize("cluster", ["kafka1", "kafka28"])
def test_a_member_that_was_too_slow_is_notified_how_slow_and_what_was_allowed(
    request: pytest.FixtureRequest, consumer_class: Any, cluster: str, fresh_name: str
) -> None:
    kafka = request.getfixturevalue(cluster)
    kafka.create_topic(fresh_name)
    produce_numbers(kafka, fresh_name, range(10), 1)
    tp = TopicPartition(fresh_name, 0)
    slow = keys(kafka, fresh_name, max_poll_interval_ms=2_000, max_poll_records=7, session_timeout_ms=6_000)
    with consumer_class(fresh_name, **slow) as consumer:
        assert len(read(consumer, 7)) == 7
        time.sleep(2.5)
        for _ in range(100):  # a loop that stood still sees by and by how late it is
            if not consumer.group_metadata().member_id:
                break
        with pytest.raises(CommitFailedError) as caught:
            consumer.commit()
        error = caught.value
        assert error.reason == "evicted"
        assert 2_400 < (error.since_poll_ms or 0) < 6_000
        assert (error.max_poll_interval_ms, error.max_poll_records) == (2_000, 7)
        assert {each.offset for each in error.uncommitted.values()} == {7}
        assert read(consumer, 7)[0].offset == 0  # it joins again and reads again
        consumer.commit()
        assert committed(kafka, fresh_name)[tp] >= 7


@pytest.mark.spec("S4-44", "S3-30", "B.14.5", "B.18", "B.2", "D-30")
@pytest.mark.parametrize("moment", ["close", "rebalance", "assign"])
def test_what_was_released_is_committed_before_partitions_go(
    kafka1: KafkaCluster, consumer_class: Any, fresh_name: str, moment: str
) -> None:
    """The interval is too long to matter but for `assign`, which waits for it, as a poll does."""
    kafka1.create_topic(fresh_name, 2)
    produce_numbers(kafka1, fresh_name, range(20), 2)
    zero, one = (TopicPartition(fresh_name, partition) for partition in range(2))
    interval = 2_000 if moment == "assign" else 600_000
    settings = keys(kafka1, fresh_name, enable_auto_commit=True, auto_commit_interval_ms=interval)
    with consumer_class(*([] if moment == "assign" else [fresh_name]), **settings) as consumer:
        if moment == "assign":
            consumer.assign([zero])
            assert len(read(consumer, 10)) == 10
            assert len(consumer.poll(0)) == 0  # which releases what was returned
            assert committed(kafka1, fresh_name).get(zero, 0) == 0
            time.sleep(2)
            consumer.assign([one])  # the next commit could not hold what zero was at
            wait_until_committed(kafka1, fresh_name, {zero: 10})
        else:
            assert len(read(consumer, 20)) == 20
        if moment == "rebalance":
            consumer.enforce_rebalance()
            deadline = time.monotonic() + 10
            while committed(kafka1, fresh_name) != {zero: 10, one: 10} and time.monotonic() < deadline:
                consumer.poll(0.1)
        if moment != "assign":
            expected = {zero: 10, one: 10} if moment == "rebalance" else {}
            assert committed(kafka1, fresh_name) == expected
    if moment == "close":
        assert committed(kafka1, fresh_name) == {zero: 10, one: 10}


OF_THE_GROUP = ("JoinGroup", "SyncGroup", "Heartbeat", "OffsetFetch", "OffsetCommit", "LeaveGroup")


@pytest.mark.spec("S3-24", "S3-25", "S1-25")
def test_every_member_finds_the_one_coordinator_and_asks_no_other(
    kafka3: KafkaCluster, fresh_name: str
) -> None:
    kafka3.create_topic(fresh_name, 6)
    taps = Tap(), Tap()
    with ExitStack() as stack:
        members = [
            stack.enter_context(FACES["Consumer"](fresh_name, runtime=tap, **keys(kafka3, fresh_name)))
            for tap in taps
        ]
        deadline = time.monotonic() + 30
        while [len(member.assignment()) for member in members] != [3, 3]:
            assert time.monotonic() < deadline
            for member in members:
                member.poll(0.1)
        for member in members:
            member.commit({member.assignment()[0]: OffsetAndMetadata(0)})
    homes = set()
    for tap in taps:
        reported = [
            c.port for e in tap.answered("FindCoordinator") for c in e.response.coordinators if c.port > 0
        ]
        homes |= {*reported, *(e.port for api in OF_THE_GROUP for e in tap.asked(api))}
        assert tap.apis().index("FindCoordinator") < tap.apis().index("JoinGroup")
        assert len({e.port for e in tap.asked("Fetch")}) > 1
    assert len(homes) == 1
