"""A topic read from end to end: everything in its order, in every codec, in parts of any size."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kclient import Consumer, TopicPartition
from kclient.records.writer import NewRecord
from kclient.types import TimestampType
from tests.brokers.conftest import Broker
from tests.brokers.writing import append, numbered, produce
from tests.kafka.blocking_consumers import read
from tests.kafka.wire_tap import Tap

FIRST = 1_700_000_000_000
COUNT = 120
PARTITIONS = 2
HEADERS = [("kind", b"flight"), ("kind", b"late"), ("none", None), ("empty", b"")]


def rows(*, headers: bool) -> list[NewRecord]:
    """Some keys and values are null or empty."""
    return [
        NewRecord(
            key=(None, b"", b"key-%d" % number)[number % 3],
            value=(None, b"", b"value %d " % number * (number % 50))[min(number % 5, 2)],
            timestamp=FIRST + 7 * number,
            headers=HEADERS[: number % 5] if headers else [],
        )
        for number in range(COUNT)
    ]


def by_hand(broker: Broker, topic: str, *partitions: int, **settings: Any) -> Consumer:
    """A consumer without a group that reads these partitions from their beginning."""
    keys = {
        "bootstrap_servers": broker.bootstrap_servers,
        "auto_offset_reset": "earliest",
        "fetch_max_wait_ms": 100,
    }
    consumer = Consumer(**keys | settings)
    consumer.assign([TopicPartition(topic, partition) for partition in partitions or (0,)])
    return consumer


def check_codec(broker: Broker, topic: str, codec: str) -> None:
    headers = broker.since("0.11.0")
    broker.kafka.create_topic(topic, PARTITIONS)
    written = rows(headers=headers)
    produce(broker, topic, written, PARTITIONS, compression_type=codec)
    with by_hand(broker, topic, *range(PARTITIONS)) as consumer:
        records = read(consumer, COUNT)
    for partition in range(PARTITIONS):
        mine = [record for record in records if record.partition == partition]
        assert [record.offset for record in mine] == list(range(COUNT // PARTITIONS))
        found = [NewRecord(one.key, one.value, one.timestamp, list(one.headers)) for one in mine]
        assert found == written[partition::PARTITIONS]
    assert {record.timestamp_type for record in records} == {TimestampType.CREATE_TIME}
    assert {record.leader_epoch for record in records} == ({0} if headers else {None})


@pytest.mark.spec("S2-23", "S2-45", "D-79", "B.11.1")
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_everything_comes_as_it_was_written(broker: Broker, codec: str, fresh_name: str) -> None:
    check_codec(broker, fresh_name, codec)


@pytest.mark.since("2.1")
@pytest.mark.spec("D-53")
def test_zstd_since_it_exists(broker: Broker, fresh_name: str) -> None:
    check_codec(broker, fresh_name, "zstd")


@pytest.mark.spec("S2-05", "S2-20", "S2-22", "S2-39", "S2-49")
def test_a_poll_gives_at_most_so_many_and_the_rest_is_not_fetched_again(
    broker: Broker, fresh_name: str
) -> None:
    broker.kafka.create_topic(fresh_name)
    append(broker, fresh_name, numbered(100, FIRST), magic=2 if broker.since("0.11.0") else 1, codec=1)
    tap = Tap()
    sizes: list[int] = []
    values: list[int] = []
    with by_hand(broker, fresh_name, max_poll_records=30, runtime=tap, fetch_max_wait_ms=50) as consumer:
        while len(values) < 100:
            records = list(consumer.poll(5.0))
            assert consumer.position(TopicPartition(fresh_name, 0)) == len(values) + len(records)
            sizes.append(len(records))
            values += [int(record.value) for record in records]
    assert (sizes, values) == ([30, 30, 30, 10], list(range(100)))
    brought = [
        one
        for one in tap.answered("Fetch")
        for topic in one.response.responses
        for row in topic.partitions
        if row.records
    ]
    assert len(brought) == 1


@pytest.mark.spec("S2-26", "D-32")
@pytest.mark.parametrize("codec", [0, 1, 3])
def test_a_position_amid_a_batch(broker: Broker, codec: int, fresh_name: str) -> None:
    broker.kafka.create_topic(fresh_name)
    append(broker, fresh_name, numbered(50, FIRST), magic=2 if broker.since("0.11.0") else 1, codec=codec)
    with by_hand(broker, fresh_name) as consumer:
        consumer.seek(TopicPartition(fresh_name, 0), 33)
        assert [(record.offset, int(record.value)) for record in read(consumer, 17)] == [
            (n, n) for n in range(33, 50)
        ]


@pytest.mark.spec("S2-03", "B.10.8", "U-31")
def test_records_larger_than_every_limit_come_all_the_same(broker: Broker, fresh_name: str) -> None:
    """Fetch has guaranteed that since its version 3, and none of these releases offers less."""
    broker.kafka.create_topic(fresh_name, PARTITIONS, max_message_bytes=6_000_000)
    large = [NewRecord(value=bytes([number]) * 2_000_000, timestamp=FIRST) for number in range(4)]
    produce(broker, fresh_name, large, PARTITIONS, message_max_bytes=6_000_000)
    small = {"max_partition_fetch_bytes": 1024, "fetch_max_bytes": 1024, "buffer_memory_bytes": 2048}
    with by_hand(broker, fresh_name, *range(PARTITIONS), **small) as consumer:
        records = read(consumer, 4)
        assert sorted(record.value for record in records) == [row.value for row in large]


@pytest.mark.spec("B.11.4", "D-79")
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_the_time_of_the_broker(broker: Broker, codec: str, fresh_name: str) -> None:
    broker.kafka.create_topic(fresh_name, message_timestamp_type="LogAppendTime")
    before = int(time.time() * 1000)
    produce(broker, fresh_name, numbered(20, FIRST, step=5), compression_type=codec)
    with by_hand(broker, fresh_name) as consumer:
        records = read(consumer, 20)
    assert {record.timestamp_type for record in records} == {TimestampType.LOG_APPEND_TIME}
    assert before <= min(record.timestamp for record in records) < before + 60_000
    assert [int(record.value) for record in records] == list(range(20))
