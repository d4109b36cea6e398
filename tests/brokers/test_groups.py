"""A group on brokers of every age: joined, shared out, committed, resumed, and a leader that restarts under it."""

from __future__ import annotations

from typing import Any

import pytest

from kclient import Consumer, OffsetAndMetadata, TopicPartition
from tests.brokers.conftest import Broker
from tests.brokers.writing import numbered, produce
from tests.kafka.blocking_consumers import read, wait_for_assignment
from tests.kafka.other_clients import committed
from tests.kafka.wire_tap import Tap

FIRST = 1_700_000_000_000


@pytest.fixture
def keys(broker: Broker, fresh_name: str) -> dict[str, Any]:
    """The settings of a member of a group of its own."""
    return {
        "bootstrap_servers": broker.bootstrap_servers,
        "group_id": fresh_name,
        "auto_offset_reset": "earliest",
        "heartbeat_interval_ms": 200,
        "fetch_max_wait_ms": 100,
        "session_timeout_ms": 10_000,
    }


def numbers(records: list[Any]) -> list[int]:
    return sorted(int(record.value) for record in records)


@pytest.mark.spec("S0-06", "S0-11", "S0-13", "S0-19", "B.13")
def test_two_members_share_and_the_next_run_resumes(
    broker: Broker, keys: dict[str, Any], fresh_name: str
) -> None:
    broker.kafka.create_topic(fresh_name, 4)
    produce(broker, fresh_name, numbered(40, FIRST), 4)
    with Consumer(fresh_name, **keys) as one:
        assert numbers(read(one, 40)) == list(range(40))
        one.commit()
        with Consumer(fresh_name, **keys) as two:
            while len(two.assignment()) != 2 or len(one.assignment()) != 2:
                assert list(one.poll(0.05)) + list(two.poll(0.05)) == []
            assert not set(one.assignment()) & set(two.assignment())
            produce(broker, fresh_name, numbered(40, FIRST), 4)
            assert numbers(read(one, 20) + read(two, 20)) == list(range(40))
    with Consumer(fresh_name, **keys) as three:
        wait_for_assignment(three, 4)
        assert [three.position(tp) for tp in three.assignment()] == [20] * 4
        ends = {TopicPartition(fresh_name, number): 20 for number in range(4)}
        assert {tp: found.offset for tp, found in three.committed(list(ends)).items() if found} == ends


@pytest.mark.timeout(180)
@pytest.mark.spec("S2-12", "S2-18", "S2-29", "B.4.8", "I-04")
def test_the_broker_restarts_and_reading_continues(
    broker: Broker, keys: dict[str, Any], fresh_name: str
) -> None:
    """Nothing is lost and nothing comes twice; the group, its coordinator and the leader were all on that broker."""
    broker.kafka.create_topic(fresh_name)
    produce(broker, fresh_name, numbered(20, FIRST))
    with Consumer(fresh_name, **keys, max_poll_records=5) as consumer:
        before = read(consumer, 10)
        consumer.commit()
        broker.kafka.restart(1)
        produce(
            broker,
            fresh_name,
            [row._replace(value=b"%d" % n) for n, row in enumerate(numbered(40, FIRST))][20:],
        )
        after = read(consumer, 40 - len(before), seconds=60)
        assert [int(record.value) for record in before + after] == list(range(40))
        assert [record.offset for record in before + after] == list(range(40))


@pytest.mark.spec("S1-29", "S1-30")
def test_a_commit_says_what_its_version_can(broker: Broker, keys: dict[str, Any], fresh_name: str) -> None:
    """Where the client could say how long it is kept, the broker decides; the epoch goes along since 2.1."""
    broker.kafka.create_topic(fresh_name)
    produce(broker, fresh_name, numbered(5, FIRST), 1)
    tp, tap = TopicPartition(fresh_name, 0), Tap()
    with Consumer(**keys, runtime=tap) as consumer:
        consumer.commit({tp: OffsetAndMetadata(3, 0, "as far as that")})
        (commit,) = tap.answered("OffsetCommit")
        assert (2 <= commit.version <= 4) == (not broker.since("2.1.0"))
        assert commit.request.retention_time_ms == -1
        (row,) = commit.request.topics[0].partitions
        epoch = 0 if broker.since("2.1.0") else None
        assert row.committed_leader_epoch == (-1 if epoch is None else epoch)
        assert consumer.committed([tp]) == {tp: OffsetAndMetadata(3, epoch, "as far as that")}
    if broker.since("2.1.0"):  # librdkafka asks older ones for what they do not have
        assert committed(broker.kafka, fresh_name) == {tp: 3}
