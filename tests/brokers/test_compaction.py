"""What a log cleaner leaves: holes between and within batches of every format, and nothing that is read twice."""

from __future__ import annotations

import time

import pytest

from kclient import Consumer, TopicPartition
from kclient.records.writer import NewRecord
from tests.brokers.conftest import Broker
from tests.brokers.writing import append
from tests.kafka.blocking_consumers import read

FIRST = 1_700_000_000_000
HOUR = 3_600_000
LEFT = [0, 1, 4, 5, 6]
KEYS = [b"a", b"b", b"c", b"d", b"z"]
SECONDS = 30


def rows(letters: str, timestamp: int) -> list[NewRecord]:
    return [NewRecord(letter.encode(), letter.encode() * 20, timestamp) for letter in letters]


def reader(broker: Broker, tp: TopicPartition, **settings: int) -> Consumer:
    consumer = Consumer(
        bootstrap_servers=broker.bootstrap_servers,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=50,
        **settings,
    )
    consumer.assign([tp])
    return consumer


def offsets(broker: Broker, tp: TopicPartition) -> list[int]:
    with reader(broker, tp) as consumer:
        found: list[int] = []
        while consumer.position(tp) < LEFT[-1] + 1:
            found += [record.offset for record in consumer.poll(1.0)]
    return found


def wait_until_cleaned(broker: Broker, tp: TopicPartition) -> None:
    deadline = time.monotonic() + SECONDS
    while (found := offsets(broker, tp)) != LEFT:
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


def formats(broker: Broker) -> dict[int, dict[str, str]]:
    """Format → the setting of a topic that keeps it, for those that this release writes."""
    old = {} if broker.since("3.0") else {0: "0.9.0", 1: "0.10.2"}
    kept = {magic: {"message_format_version": name} for magic, name in old.items()}
    return kept | ({2: {}} if broker.since("0.11.0") else {})


def write_all(broker: Broker, name: str) -> list[TopicPartition]:
    """A topic of each format and codec, whose first segment the cleaner may take."""
    kinds = {
        f"{name}-{magic}-{codec}": (magic, codec, setting)
        for magic, setting in formats(broker).items()
        for codec in (0, 1, 3)
    }
    compact = {"cleanup_policy": "compact", "segment_ms": 100, "min_cleanable_dirty_ratio": "0.01"}
    for topic, (magic, codec, setting) in kinds.items():
        broker.kafka.create_topic(topic, **compact, **setting)
        append(broker, topic, rows("abcd", FIRST), magic=magic, codec=codec)
        append(broker, topic, rows("cd", FIRST), magic=magic, codec=codec)
    time.sleep(0.2)  # format 0 has no times, so a segment is rolled by the clock
    for topic, (magic, codec, _) in kinds.items():
        append(broker, topic, rows("z", FIRST + HOUR), magic=magic, codec=codec)
    return [TopicPartition(topic, 0) for topic in kinds]


@pytest.mark.spec("S2-39", "S2-49", "B.10.10", "D-50")
def test_holes_are_stepped_over(broker: Broker, fresh_name: str) -> None:
    """The end of the first batch is gone; one record a poll, and each offset once."""
    for tp in write_all(broker, fresh_name):
        wait_until_cleaned(broker, tp)
        one_batch = {"max_partition_fetch_bytes": 1, "fetch_max_bytes": 1}  # and so it has to be gone past
        with reader(broker, tp, max_poll_records=1, **one_batch) as consumer:
            found = read(consumer, len(LEFT))
            assert [(record.offset, record.key) for record in found] == list(zip(LEFT, KEYS, strict=True))
            assert consumer.position(tp) == LEFT[-1] + 1
            consumer.seek(tp, 2)  # into the hole
            assert [record.offset for record in read(consumer, 3)] == LEFT[2:]
