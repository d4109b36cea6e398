"""Where reading begins and how it is moved: policies, commits, seeks, times, ends."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kclient import Consumer, OffsetAndMetadata, OffsetAndTimestamp, TopicPartition
from kclient.errors import NoOffsetError, OffsetOutOfRangeError
from tests.brokers.conftest import Broker
from tests.brokers.writing import numbered, produce
from tests.kafka.blocking_consumers import read, read_nothing, wait_for_assignment
from tests.kafka.wire_tap import Tap

HOUR = 3_600_000
FIRST = 1_700_000_000_000
STEP = 1000


def values(records: list[Any]) -> list[int]:
    return sorted(int(record.value) for record in records)


def keys(broker: Broker, **settings: Any) -> dict[str, Any]:
    return {
        "bootstrap_servers": broker.bootstrap_servers,
        "heartbeat_interval_ms": 300,
        "fetch_max_wait_ms": 100,
        **settings,
    }


def produce_old_and_new(broker: Broker, topic: str) -> None:
    """Ten records of two hours ago, then ten of ten minutes ago, over two partitions."""
    now = int(time.time() * 1000)
    ages = [2 * HOUR if number < 10 else HOUR // 6 for number in range(20)]
    rows = numbered(20, now)
    produce(
        broker, topic, [row._replace(timestamp=now - age) for row, age in zip(rows, ages, strict=True)], 2
    )


@pytest.mark.spec("S0-07", "S0-25", "S0-32", "S0-41", "S0-44", "S0-56", "S2-46", "D-24")
@pytest.mark.parametrize(
    ("policy", "expected"), [("earliest", range(20)), ("by_duration:PT1H", range(10, 20)), ("latest", [])]
)
def test_where_reading_begins(broker: Broker, policy: str, expected: range, fresh_name: str) -> None:
    broker.kafka.create_topic(fresh_name, 2)
    produce_old_and_new(broker, fresh_name)
    settings = keys(broker, group_id=fresh_name, auto_offset_reset=policy)
    with Consumer(fresh_name, **settings) as consumer:
        wait_for_assignment(consumer, 2) if policy == "latest" else None
        assert values(read(consumer, len(expected))) == list(expected)
        produce(broker, fresh_name, numbered(2, FIRST), 2)
        assert values(read(consumer, 2)) == [0, 1]


@pytest.mark.spec("S0-07", "S0-41", "S0-44", "U-01")
def test_without_a_policy_the_user_decides(broker: Broker, fresh_name: str) -> None:
    broker.kafka.create_topic(fresh_name, 2)
    produce(broker, fresh_name, numbered(20, FIRST), 2)
    zero, one = (TopicPartition(fresh_name, partition) for partition in range(2))
    settings = keys(broker, group_id=fresh_name, auto_offset_reset="none")
    with Consumer(fresh_name, **settings) as consumer:
        with pytest.raises(NoOffsetError) as caught:
            read(consumer, 1)
        assert sorted(caught.value.partitions) == [zero, one]
        consumer.seek(zero, 5)
        consumer.seek(one, 10)
        assert values(read(consumer, 5)) == [10, 12, 14, 16, 18]


@pytest.mark.spec("S0-09", "S0-24", "S0-31", "S2-45", "D-20")
def test_the_next_run_continues_where_the_last_one_stopped(broker: Broker, fresh_name: str) -> None:
    """One partition amid what was read, one at offset 0, and no question to the leader."""
    broker.kafka.create_topic(fresh_name, 2)
    produce(broker, fresh_name, numbered(40, FIRST), 2, compression_type="gzip")
    zero, one = (TopicPartition(fresh_name, partition) for partition in range(2))
    chosen = {zero: OffsetAndMetadata(7, metadata="seven"), one: OffsetAndMetadata(0, metadata="")}
    with Consumer(**keys(broker, group_id=fresh_name, enable_auto_commit=False)) as consumer:
        consumer.assign([zero, one])
        consumer.commit(chosen)
        assert consumer.committed([zero, one]) == chosen
    tap = Tap()
    settings = keys(broker, group_id=fresh_name, auto_offset_reset="none", runtime=tap)
    with Consumer(fresh_name, **settings) as consumer:
        records = read(consumer, 33)
        assert values(records) == sorted([*range(14, 40, 2), *range(1, 40, 2)])
    assert tap.asked("ListOffsets") == []
    with Consumer(fresh_name, **settings) as consumer:
        wait_for_assignment(consumer, 2)
        assert (consumer.position(zero), consumer.position(one)) == (20, 20)
        read_nothing(consumer, 0.2)


@pytest.mark.spec("S2-30", "S2-31", "S2-32", "D-26", "U-01")
def test_a_position_that_the_log_does_not_have(broker: Broker, fresh_name: str) -> None:
    broker.kafka.create_topic(fresh_name)
    produce(broker, fresh_name, numbered(10, FIRST))
    tp = TopicPartition(fresh_name, 0)
    with Consumer(**keys(broker, auto_offset_reset="earliest")) as consumer:
        consumer.assign([tp])
        consumer.seek(tp, 77)
        assert values(read(consumer, 10)) == list(range(10))
    with Consumer(**keys(broker)) as consumer:
        consumer.assign([tp])
        consumer.seek(tp, 77)
        with pytest.raises(OffsetOutOfRangeError) as caught:
            read(consumer, 1)
        assert (caught.value.positions, caught.value.log_end) == ({tp: 77}, 10)


@pytest.mark.spec("S0-45", "S0-55", "B.8")
def test_offsets_by_time_and_the_ends(broker: Broker, fresh_name: str) -> None:
    broker.kafka.create_topic(fresh_name, 2)
    produce(broker, fresh_name, numbered(50, FIRST, STEP))
    full, empty = (TopicPartition(fresh_name, partition) for partition in range(2))
    epoch = 0 if broker.since("2.2") else None  # 2.1 has the field and leaves it open
    with Consumer(**keys(broker)) as consumer:
        assert consumer.offsets_for_times({full: FIRST + 20 * STEP + 1, empty: FIRST}) == {
            full: OffsetAndTimestamp(21, FIRST + 21 * STEP, epoch),
            empty: None,
        }
        assert consumer.offsets_for_times({full: FIRST + 50 * STEP}) == {full: None}
        assert consumer.beginning_offsets([full, empty]) == {full: 0, empty: 0}
        assert consumer.end_offsets([full, empty]) == {full: 50, empty: 0}


@pytest.mark.spec("S0-48", "S2-25", "S2-43", "D-31")
def test_seek_while_records_are_undelivered(broker: Broker, fresh_name: str) -> None:
    broker.kafka.create_topic(fresh_name)
    produce(broker, fresh_name, numbered(50, FIRST, STEP))
    tp = TopicPartition(fresh_name, 0)
    with Consumer(**keys(broker, auto_offset_reset="none")) as consumer:
        consumer.assign([tp])
        consumer.seek_to_end()
        assert consumer.position(tp) == 50
        read_nothing(consumer, 0.2)
        consumer.seek_to_beginning()
        assert [record.offset for record in consumer.poll(5.0, max_records=3)] == [0, 1, 2]
        consumer.seek(tp, 40)  # the rest of what was fetched is stale now
        assert [record.offset for record in consumer.poll(5.0, max_records=3)] == [40, 41, 42]
        consumer.seek(tp, 7)
        assert values(read(consumer, 43)) == list(range(7, 50))
        assert consumer.current_lag(tp) == 0


@pytest.mark.spec("S2-09", "S2-38", "S2-42", "D-22")
def test_a_paused_partition_waits_and_loses_nothing(broker: Broker, fresh_name: str) -> None:
    broker.kafka.create_topic(fresh_name, 2)
    produce(broker, fresh_name, numbered(60, FIRST), 2)
    zero, one = (TopicPartition(fresh_name, partition) for partition in range(2))
    with Consumer(**keys(broker, auto_offset_reset="earliest")) as consumer:
        consumer.assign([zero, one])
        before: list[Any] = []
        while not any(record.partition == 0 for record in before):
            before += list(consumer.poll(1.0, max_records=5))
        consumer.pause([zero])
        position = consumer.position(zero)
        meanwhile = read(consumer, 30 - sum(record.partition == 1 for record in before))
        assert {record.partition for record in meanwhile} <= {1}
        assert consumer.position(zero) == position
        consumer.resume([zero])
        assert values(before + meanwhile + read(consumer, 30 - position)) == list(range(60))
