"""When a consumer sends OffsetCommit automatically and when not: the requests at a real broker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation

from kclient import Consumer
from localkafka import KafkaCluster
from tests.kafka.blocking_consumers import read
from tests.kafka.other_clients import denied, produce_numbers
from tests.kafka.test_group_requests import settings, until
from tests.kafka.wire_tap import Exchange, Tap
from tests.realtime import within

TOPIC_AUTHORIZATION_FAILED = 29


def offsets(one: Exchange) -> dict[int, int]:
    return {
        row.partition_index: row.committed_offset for topic in one.request.topics for row in topic.partitions
    }


def offsets_of_last(tap: Tap) -> list[int]:
    """What the newest commit says."""
    return [at for one in tap.answered("OffsetCommit")[-1:] for at in offsets(one).values()]


def poll_for(consumer: Consumer, seconds: float) -> list[Any]:
    """Poll for a while."""
    deadline = time.monotonic() + seconds
    records: list[Any] = []
    while time.monotonic() < deadline:
        records += list(consumer.poll(0.05))
    return records


def automatic(kafka: KafkaCluster, group: str, interval_ms: int, **more: Any) -> dict[str, Any]:
    keys = {"enable_auto_commit": True, "auto_commit_interval_ms": interval_ms}
    return settings(kafka, group, **keys, **more)


@pytest.mark.spec("S4-08", "S4-44", "S3-18", "S3-19")
def test_commits_go_out_on_the_interval_inside_one_long_poll(kafka1: KafkaCluster, fresh_name: str) -> None:
    """What an earlier poll gave out, of every partition that has a position; a poll wakes up for it."""
    kafka1.create_topic(fresh_name, 2)
    produce_numbers(kafka1, fresh_name, range(0, 10, 2), 2)  # all in partition 0
    tap = Tap()
    with Consumer(fresh_name, **automatic(kafka1, fresh_name, 400), runtime=tap) as consumer:
        assert len(read(consumer, 5)) == 5
        tap.forget()
        assert len(consumer.poll(1.5)) == 0
        commits = tap.asked("OffsetCommit")
        assert 2 <= len(commits) <= 5
        assert all(offsets(one) == {0: 5, 1: 0} for one in commits)


@pytest.mark.slow
@pytest.mark.spec("S3-30", "S3-47", "S4-59", "B.14.3")
def test_an_assignment_begins_the_interval_again(kafka1: KafkaCluster, fresh_name: str) -> None:
    """The commit before the rebalance goes out first; after a long one nothing is due that was due before it."""
    kafka1.create_topic(fresh_name, 2)
    tap, interval = Tap(), 1500
    keys = automatic(kafka1, fresh_name, interval, partition_assignment_strategy="range")
    with Consumer(fresh_name, **keys, runtime=tap) as one, Consumer(fresh_name, **keys) as two:
        until(lambda: len(one.assignment()) == len(two.assignment()) == 1, one, two)
        produce_numbers(kafka1, fresh_name, range(10), 2)
        assert len(read(one, 5)) == 5
        until(lambda: offsets_of_last(tap) == [5], one)
        produce_numbers(kafka1, fresh_name, range(2), 2)
        assert len(read(one, 1)) == 1
        tap.forget()
        one.enforce_rebalance()
        until(lambda: bool(tap.asked("JoinGroup")), one)
        steps = [api for api in tap.apis() if api in ("OffsetCommit", "JoinGroup")]
        assert steps == ["OffsetCommit", "JoinGroup"]
        assert offsets_of_last(tap) == [6]
        poll_for(one, interval / 1000 + 0.5)  # the second member is not there yet
        assert len(tap.asked("OffsetCommit")) == 1
        until(lambda: len(one.assignment()) == 1, one, two)
        installed = time.monotonic()
        until(lambda: len(tap.asked("OffsetCommit")) == 2, one, two)
        assert time.monotonic() - installed > interval / 1000 - 0.2


@pytest.mark.spec("S3-21", "B.15.8")
def test_an_automatic_commit_that_is_refused_is_tried_again_on_the_interval(
    kafka1: KafkaCluster, fresh_name: str
) -> None:
    """The user hears nothing of it. Paused partitions are not fetched, so nothing but commits is refused here."""
    kafka1.create_topic(fresh_name)
    produce_numbers(kafka1, fresh_name, range(5), 1)
    tap = Tap()
    with Consumer(fresh_name, **automatic(kafka1, fresh_name, 500), runtime=tap) as consumer:
        assert len(read(consumer, 5)) == 5
        consumer.pause(consumer.assignment())
        poll_for(consumer, 0.7)
        with denied(kafka1, AclOperation.READ, fresh_name):
            tap.forget()
            assert poll_for(consumer, 2.2) == []
            refused = [codes_of(one) for one in tap.answered("OffsetCommit")]
            assert refused == [[TOPIC_AUTHORIZATION_FAILED]] * len(refused)
            assert 2 <= len(refused) <= 5
        until(lambda: codes_of(tap.answered("OffsetCommit")[-1]) == [0], consumer)


def codes_of(one: Exchange) -> list[int]:
    return [row.error_code for topic in one.response.topics for row in topic.partitions]


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.spec("S3-20", "S4-43", "S4-45")
def test_a_commit_that_failed_for_now_is_repeated_soon(kafka3: KafkaCluster, fresh_name: str) -> None:
    """Due while the coordinator is gone, it is there as soon as there is a new one, not an interval later."""
    kafka3.create_topic(fresh_name, 1)
    produce_numbers(kafka3, fresh_name, range(5), 1)
    tap, interval = Tap(), 8.0
    keys = automatic(
        kafka3, fresh_name, int(interval * 1000), session_timeout_ms=30_000, max_poll_interval_ms=60_000
    )
    with Consumer(fresh_name, **keys, runtime=tap) as consumer:
        assert len(read(consumer, 5)) == 5
        poll_for(consumer, interval - 2)
        assert not tap.asked("OffsetCommit")
        killed = kafka3.coordinator_of(fresh_name)
        port = kafka3.address(killed)[1]
        kafka3.kill(killed)
        until(lambda: any(beats(tap, port)), consumer)
        with within(interval / 2):
            until(lambda: any(commits(tap, port)), consumer)


def beats(tap: Tap, old: int) -> Iterator[Exchange]:
    """Heartbeats that another coordinator than the old one has taken."""
    for one in tap.answered("Heartbeat"):
        if one.port != old and one.response.error_code == 0:
            yield one


def commits(tap: Tap, old: int) -> Iterator[Exchange]:
    """Commits that it has taken."""
    for one in tap.answered("OffsetCommit"):
        if one.port != old and codes_of(one) == [0]:
            yield one
