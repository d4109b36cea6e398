"""Commits as the application asks for them: in order, with callbacks, by interval, in the middle of a batch."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kclient import OffsetAndMetadata, TopicPartition
from kclient.errors import BrokerError, CommitFailedError
from localkafka import CommittedOffset, KafkaCluster
from tests.kafka.faces import read, wait_for_assignment
from tests.kafka.judges import committed, produce_numbers, wait_until_committed

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
