"""Fetch requests at a real broker: their partitions, their times, and the use of their responses."""

from __future__ import annotations

import logging
import time
from typing import Any

import pytest

from kclient import Consumer, TopicPartition
from kclient.errors import DeadlineError, DecodeError
from localkafka import KafkaCluster
from tests.kafka.blocking_consumers import read, read_nothing
from tests.kafka.other_clients import SECONDS, produce_numbers, producer
from tests.kafka.wire_tap import Exchange, Tap
from tests.realtime import within


def reader(kafka: KafkaCluster, *parts: TopicPartition, **settings: Any) -> Consumer:
    keys = {
        "bootstrap_servers": kafka.bootstrap_servers,
        "auto_offset_reset": "earliest",
        "fetch_max_wait_ms": 100,
    }
    consumer = Consumer(**{**keys, **settings})
    consumer.assign(parts)
    return consumer


def partitions(kafka: KafkaCluster, name: str, count: int = 1, each: int = 10) -> list[TopicPartition]:
    kafka.create_topic(name, count)
    produce_numbers(kafka, name, range(each * count), count)
    return [TopicPartition(name, number) for number in range(count)]


def named(fetch: Exchange) -> list[tuple[int, int]]:
    """The partitions that a request names, with their offsets."""
    return [(row.partition, row.fetch_offset) for topic in fetch.request.topics for row in topic.partitions]


def brought(tap: Tap) -> list[Exchange]:
    """The fetches whose response holds records."""
    return [
        one
        for one in tap.answered("Fetch")
        if any(row.records for topic in one.response.responses for row in topic.partitions)
    ]


def offsets(records: Any) -> list[int]:
    return [record.offset for record in records]


@pytest.mark.spec("S2-01", "S2-02", "S2-03")
def test_the_broker_waits_for_bytes_or_for_the_time(kafka1: KafkaCluster, fresh_name: str) -> None:
    (tp,) = partitions(kafka1, fresh_name)
    for wait_ms, min_bytes, seconds in ((800, 60_000, (0.7, 5.0)), (2000, 1, (0.0, 1.5))):
        tap = Tap()
        wanted = {"fetch_min_bytes": min_bytes, "fetch_max_wait_ms": wait_ms, "fetch_max_bytes": 90_000}
        begun = time.monotonic()
        with reader(kafka1, tp, runtime=tap, max_partition_fetch_bytes=70_000, **wanted) as consumer:
            assert len(read(consumer, 10)) == 10
            assert seconds[0] < time.monotonic() - begun < seconds[1]
        first = tap.asked("Fetch")[0].request
        (row,) = first.topics[0].partitions
        assert (first.min_bytes, first.max_wait_ms) == (min_bytes, wait_ms)
        assert (first.max_bytes <= 90_000, row.partition_max_bytes) == (True, 70_000)


@pytest.mark.spec("S2-08", "S2-14", "S2-37")
def test_only_assigned_partitions_are_fetched_and_returned(kafka1: KafkaCluster, fresh_name: str) -> None:
    zero, one, two = partitions(kafka1, fresh_name, 3)
    tap = Tap()
    with reader(kafka1, zero, one, runtime=tap) as consumer:
        first = list(consumer.poll(5.0, max_records=3))
        assert len(first) == 3
        given_up, kept = (zero, one) if first[0].partition == 0 else (one, zero)
        consumer.assign([kept])  # seven records of the other one are in hand
        assert {record.partition for record in read(consumer, 10)} == {kept.partition}
        read_nothing(consumer, 0.3)
        asked = {number for fetch in tap.asked("Fetch") for number, _ in named(fetch)}
        assert asked == {zero.partition, one.partition}
        consumer.assign([kept, given_up, two])
        records = read(consumer, 20)
        assert offsets(record for record in records if record.partition == given_up.partition) == list(
            range(10)
        )


@pytest.mark.spec("S2-13", "S2-16")
def test_one_fetch_is_out_at_a_time_and_nothing_waits_for_it(kafka1: KafkaCluster, fresh_name: str) -> None:
    parts = partitions(kafka1, fresh_name, 3)
    tap = Tap()
    with reader(kafka1, *parts, runtime=tap, fetch_max_wait_ms=700) as consumer:
        assert len(read(consumer, 30)) == 30
        with within(1.5):
            for _ in range(20):
                assert len(consumer.poll(0)) == 0
            assert consumer.end_offsets(parts) == dict.fromkeys(parts, 10)
        for number in range(4):
            produce_numbers(kafka1, fresh_name, [number], 3)
            assert len(read(consumer, 1)) == 1
    assert len(tap.asked("Fetch")) > 4
    assert [one.beside for one in tap.asked("Fetch") if one.request.session_epoch != -1 and one.beside] == []


@pytest.mark.spec("S3-12", "S3-13", "S4-04")
def test_the_next_fetch_is_under_way_while_the_application_works(
    kafka1: KafkaCluster, fresh_name: str
) -> None:
    """No call is needed for it; what it brings is there at once when the next poll comes."""
    kafka1.create_topic(fresh_name)
    source = producer(kafka1, batch_num_messages=1, linger_ms=0)
    for number in range(40):
        source.produce(fresh_name, value=b"%d" % number + b" " * 1000, partition=0)
    assert source.flush(SECONDS) == 0
    tp, tap = TopicPartition(fresh_name, 0), Tap()
    small = {"max_partition_fetch_bytes": 5000, "fetch_max_bytes": 5000}
    with reader(kafka1, tp, runtime=tap, **small) as consumer:
        first = consumer.poll(5.0)
        time.sleep(0.5)
        assert len(brought(tap)) > 1
        with within(1.0):
            second = consumer.poll(5.0)
        assert offsets(first) + offsets(second) == list(range(len(first) + len(second)))


@pytest.mark.spec("S2-07", "S2-10", "S2-11", "S2-22")
def test_what_is_not_taken_is_not_fetched_without_end(kafka1: KafkaCluster, fresh_name: str) -> None:
    """One chunk is being drained and one waits, however long there is no poll."""
    kafka1.create_topic(fresh_name)
    source = producer(kafka1, batch_num_messages=1, linger_ms=0)
    for number in range(40):
        source.produce(fresh_name, value=b"%d" % number + b" " * 1000, partition=0)
    assert source.flush(SECONDS) == 0
    tp = TopicPartition(fresh_name, 0)
    tap = Tap()
    small = {"max_partition_fetch_bytes": 5000, "fetch_max_bytes": 5000}
    with reader(kafka1, tp, runtime=tap, **small) as consumer:
        assert offsets(consumer.poll(5.0, max_records=1)) == [0]
        time.sleep(0.8)
        assert len(brought(tap)) <= 2
        assert consumer.position(tp) == 1
        assert offsets(read(consumer, 39)) == list(range(1, 40))
        assert 7 <= len(brought(tap)) <= 14
        starts = [offset for one in brought(tap) for _, offset in named(one)]
        assert starts == sorted(set(starts))  # each chunk was fetched once


@pytest.mark.spec("S2-17", "S2-25", "D-31")
def test_a_response_for_another_offset_is_dropped(kafka1: KafkaCluster, fresh_name: str) -> None:
    """A Fetch waits at the end, the user seeks, a record comes: the response holds it, and poll returns it once."""
    (tp,) = partitions(kafka1, fresh_name)
    tap = Tap()
    with reader(kafka1, tp, runtime=tap, fetch_max_wait_ms=1500) as consumer:
        assert len(read(consumer, 10)) == 10
        while tap.asked("Fetch")[-1].response is not None:
            time.sleep(0.01)
        consumer.seek(tp, 4)
        produce_numbers(kafka1, fresh_name, [10], 1)
        assert offsets(read(consumer, 7)) == list(range(4, 11))
        bases = [int.from_bytes(one.response.responses[0].partitions[0].records[:8]) for one in brought(tap)]
        assert (10 in bases, bases[-1] < 10) == (True, True)
        assert offsets(consumer.poll(0.3)) == []


@pytest.mark.spec("S2-21", "S2-48", "B.10.11", "D-23")
def test_records_are_decoded_when_they_are_returned(kafka1: KafkaCluster, fresh_name: str) -> None:
    """Up to the first that cannot be decoded; its error is raised again until it can be, or the user seeks."""
    (tp,) = partitions(kafka1, fresh_name)
    decoded: list[int] = []
    broken = [5]

    def decode(topic: str, headers: Any, value: bytes) -> int:
        if int(value) in broken:
            raise ArithmeticError(value)
        decoded.append(int(value))
        return int(value)

    with reader(kafka1, tp, value_deserializer=decode) as consumer:
        assert [record.value for record in consumer.poll(5.0, max_records=3)] == [0, 1, 2]
        assert decoded == [0, 1, 2]
        assert [record.value for record in consumer.poll(5.0)] == [3, 4]
        for _ in range(2):
            with pytest.raises(DecodeError) as caught:
                consumer.poll(5.0)
            assert (caught.value.topic, caught.value.partition, caught.value.offset) == (fresh_name, 0, 5)
            assert consumer.position(tp) == 5
        broken.clear()
        assert [record.value for record in read(consumer, 5)] == [5, 6, 7, 8, 9]


@pytest.mark.spec("S2-24", "S2-38")
def test_data_of_a_paused_partition_are_kept(kafka1: KafkaCluster, fresh_name: str) -> None:
    (tp,) = partitions(kafka1, fresh_name)
    tap = Tap()
    with reader(kafka1, tp, runtime=tap) as consumer:
        assert offsets(consumer.poll(5.0, max_records=2)) == [0, 1]
        consumer.pause([tp])
        read_nothing(consumer, 0.3)
        consumer.resume([tp])
        assert offsets(read(consumer, 8)) == list(range(2, 10))
    assert len(brought(tap)) == 1


@pytest.mark.spec("S2-27", "S2-51", "B.19.1")
def test_what_was_read_is_measured(kafka1: KafkaCluster, fresh_name: str) -> None:
    parts = partitions(kafka1, fresh_name, 2)
    tap = Tap()
    with reader(kafka1, *parts, runtime=tap) as consumer:
        first = list(consumer.poll(5.0, max_records=4))
        measured = consumer.metrics()
        drained = first[0].partition
        assert measured.value("records-lag", topic=fresh_name, partition=drained) == 6
        assert len(first) + len(read(consumer, 16)) == 20
        measured = consumer.metrics()
        assert measured.value("records-consumed-total", topic=fresh_name) == 20
        assert [measured.value("records-lag", topic=fresh_name, partition=n) for n in range(2)] == [0, 0]
        sizes = [
            sum(
                len(row.records)
                for topic in one.response.responses
                for row in topic.partitions
                if row.records
            )
            for one in brought(tap)
        ]
        assert 0 < measured.value("bytes-consumed-total", topic=fresh_name) <= sum(sizes)


@pytest.mark.spec("S2-53", "S2-31")
def test_a_position_outside_the_log_is_noted(
    kafka1: KafkaCluster, fresh_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tp,) = partitions(kafka1, fresh_name)
    caplog.set_level(logging.INFO, "kclient")
    with reader(kafka1, tp) as consumer:
        consumer.seek(tp, 77)
        assert offsets(read(consumer, 10)) == list(range(10))
    (line,) = [record for record in caplog.records if "out of range" in record.getMessage()]
    assert (line.levelno, "77" in line.getMessage(), str(tp) in line.getMessage()) == (
        logging.INFO,
        True,
        True,
    )


@pytest.mark.spec("S2-04", "B.4.9")
def test_requests_are_repeated_with_a_backoff(kafka1: KafkaCluster, fresh_name: str) -> None:
    partitions(kafka1, fresh_name)
    tap = Tap()
    with reader(kafka1, runtime=tap, retry_backoff_ms=200, retry_backoff_max_ms=200) as consumer:
        with pytest.raises(DeadlineError):
            consumer.end_offsets([TopicPartition(fresh_name, 99)], timeout=1.2)
        assert 3 <= len(tap.asked("Metadata")) <= 9
