"""Records as another program wrote them, in every codec and format that a broker keeps, read from the beginning."""

from __future__ import annotations

from typing import Any

import pytest

from kclient import TopicPartition
from kclient.types import TimestampType
from localkafka import CommittedOffset, KafkaCluster
from tests.kafka.blocking_consumers import read
from tests.kafka.other_clients import SECONDS, producer

PARTITIONS = 2
COUNT = 300
FIRST_TIMESTAMP = 1_700_000_000_000
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
HEADERS = [("kind", b"flight"), ("kind", b"late"), ("none", None), ("empty", b"")]

Written = tuple[bytes | None, bytes | None, int, list[tuple[str, bytes | None]]]


def written(number: int, *, headers: bool) -> Written:
    """Key, value, timestamp and headers of one record; some keys and values are null or empty."""
    key = None if number % 5 == 0 else b"" if number % 5 == 1 else b"key-%d" % number
    value = None if number % 7 == 0 else b"" if number % 7 == 1 else b"value %d " % number * (number % 50)
    return key, value, FIRST_TIMESTAMP + 7 * number, HEADERS[: number % 5] if headers else []


def produce(kafka: KafkaCluster, topic: str, codec: str, *, headers: bool = True) -> None:
    source = producer(kafka, compression_type=codec)
    for number in range(COUNT):
        key, value, timestamp, extra = written(number, headers=headers)
        source.produce(
            topic,
            value=value,
            key=key,
            partition=number % PARTITIONS,
            timestamp=timestamp,
            headers=extra or None,
        )
    assert source.flush(SECONDS) == 0


def as_read(records: list[Any]) -> dict[tuple[int, int], Written]:
    found = {
        (record.partition, record.offset): (record.key, record.value, record.timestamp, list(record.headers))
        for record in records
    }
    assert len(found) == len(records), "an offset came twice"
    return found


def as_written(*, headers: bool = True) -> dict[tuple[int, int], Written]:
    return {(n % PARTITIONS, n // PARTITIONS): written(n, headers=headers) for n in range(COUNT)}


def consume(consumer_class: Any, kafka: KafkaCluster, name: str) -> list[Any]:
    """Read everything in a group of the topic's name, and close cleanly."""
    settings = {"group_id": name, "auto_offset_reset": "earliest", "max_poll_records": 70}
    with consumer_class(name, bootstrap_servers=kafka.bootstrap_servers, **settings) as consumer:
        records = read(consumer, COUNT)
        assert all(record.topic == name for record in records)
    return records


@pytest.mark.spec("S0-41", "S0-54", "S2-23", "S3-19", "S4-02", "U-08", "D-53", "D-79")
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("cluster", ["kafka1", "kafka28"])
def test_everything_comes_as_it_was_written(
    request: pytest.FixtureRequest, consumer_class: Any, cluster: str, codec: str, fresh_name: str
) -> None:
    kafka = request.getfixturevalue(cluster)
    stored = "uncompressed" if codec == "none" else codec
    kafka.create_topic(fresh_name, PARTITIONS, compression_type=stored, retention_ms=-1)
    produce(kafka, fresh_name, codec)
    records = consume(consumer_class, kafka, fresh_name)
    assert as_read(records) == as_written()
    assert {record.timestamp_type for record in records} == {TimestampType.CREATE_TIME}
    assert {record.leader_epoch for record in records} == {0}


@pytest.mark.spec("U-08", "D-79")
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
@pytest.mark.parametrize("message_format", ["0.9.0", "0.10.2"])
def test_the_formats_of_old_brokers(
    kafka28: KafkaCluster, consumer_class: Any, message_format: str, codec: str, fresh_name: str
) -> None:
    stored = "uncompressed" if codec == "none" else codec
    settings: dict[str, str | int] = {"message_format_version": message_format, "retention_ms": -1}
    kafka28.create_topic(fresh_name, PARTITIONS, compression_type=stored, **settings)
    produce(kafka28, fresh_name, codec, headers=False)
    found = as_read(consume(consumer_class, kafka28, fresh_name))
    if message_format == "0.9.0":  # a format without timestamps
        assert {timestamp for _, _, timestamp, _ in found.values()} == {-1}
        found = {at: (key, value, found[at][2], headers) for at, (key, value, _, headers) in found.items()}
        expected = {
            at: (key, value, -1, headers)
            for at, (key, value, _, headers) in as_written(headers=False).items()
        }
    else:
        expected = as_written(headers=False)
    assert found == expected


@pytest.mark.spec("S3-19", "S1-32")
def test_kafkas_own_tool_sees_what_close_committed(
    kafka1: KafkaCluster, consumer_class: Any, fresh_name: str
) -> None:
    kafka1.create_topic(fresh_name, PARTITIONS, message_timestamp_type="LogAppendTime")
    produce(kafka1, fresh_name, "lz4")
    records = consume(consumer_class, kafka1, fresh_name)
    assert {record.timestamp_type for record in records} == {TimestampType.LOG_APPEND_TIME}
    assert min(record.timestamp for record in records) > FIRST_TIMESTAMP + 7 * COUNT
    each = COUNT // PARTITIONS
    assert kafka1.describe_group(fresh_name) == {
        TopicPartition(fresh_name, partition): CommittedOffset(each, each, 0)
        for partition in range(PARTITIONS)
    }
