"""Spark's own Kafka source for the JVM as the reference: equal rows for equal options, and its real checkpoints.

Both sources run in one Spark 4.0, the newest whose JAR is to be had, in an environment of its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from localkafka import KafkaCluster
from localspark import environments
from localspark.jars import JVM_SOURCE, MINOR
from localspark.session import Session
from tests.spark.conftest import Message, make_topic, write

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

NOON = 1_357_041_600_000
EACH = 300


@pytest.fixture(scope="module")
def both() -> Iterator[Session]:
    """One Spark with both sources."""
    if reason := JVM_SOURCE.unavailable():
        if os.environ.get("CI") == "true":
            pytest.fail(f"Spark's own Kafka source must run in CI: {reason}", pytrace=False)
        pytest.skip(f"no Kafka source for the JVM: {reason}")
    python = environments.python(MINOR)
    with Session("tests.spark.jvm_child", python, JVM_SOURCE.jars()) as session:
        yield session


@pytest.fixture(scope="module")
def topics(_kafka1: KafkaCluster) -> str:
    """`jvm-a` with three partitions, `jvm-b` with one, `jvm-txn` with what a transaction left behind."""
    for topic, partitions in {"jvm-a": 3, "jvm-b": 1, "jvm-txn": 1}.items():
        make_topic(_kafka1, topic, partitions)
    write(_kafka1, "jvm-a", messages(3), compression_type="lz4")
    write(_kafka1, "jvm-b", messages(1), compression_type="zstd")
    transactions(_kafka1, "jvm-txn")
    return _kafka1.bootstrap_servers


def messages(partitions: int) -> Iterator[Message]:
    """A second apart, with nulls, empty values, and headers on some."""
    for number in range(EACH * partitions):
        yield Message(
            value=None if number % 11 == 0 else b"" if number % 13 == 0 else b"value %d" % number,
            partition=number % partitions,
            key=None if number % 7 == 0 else b"key %d" % number,
            headers=[("h", b"%d" % number), ("h", None)] if number % 5 == 0 else None,
            timestamp=NOON + 1_000 * number,
        )


def transactions(kafka: KafkaCluster, topic: str) -> None:
    """Committed and aborted in turns, an aborted one last."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "jvm-txn"})
    producer.init_transactions(30)
    for number in range(6):
        producer.begin_transaction()
        for record in range(20):
            producer.produce(topic, b"%d %d" % (number, record), partition=0)
        producer.flush(30)
        if number % 2:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)


def offsets(**by_topic: list[int]) -> str:
    return json.dumps(
        {
            topic.replace("_", "-"): {str(number): offset for number, offset in enumerate(each)}
            for topic, each in by_topic.items()
        }
    )


BOTH_TOPICS = {"subscribe": "jvm-a,jvm-b"}
CASES: dict[str, dict[str, str]] = {
    "subscribe": BOTH_TOPICS,
    "headers": {**BOTH_TOPICS, "includeHeaders": "true"},
    "pattern": {"subscribePattern": "jvm-[ab]"},
    "pattern-is-found-anywhere": {"subscribePattern": "vm-b"},
    "assign": {"assign": '{"jvm-a": [0, 2]}'},
    "offsets": {
        **BOTH_TOPICS,
        "startingOffsets": offsets(jvm_a=[10, -2, 300], jvm_b=[5]),
        "endingOffsets": offsets(jvm_a=[20, 299, -1], jvm_b=[5]),
    },
    "times-of-partitions": {
        "subscribe": "jvm-b",
        "startingOffsetsByTimestamp": offsets(jvm_b=[NOON + 10_500]),
        "endingOffsetsByTimestamp": offsets(jvm_b=[NOON + 20_000]),
    },
    "times": {
        **BOTH_TOPICS,
        "startingTimestamp": f"{NOON + 100_000}",
        "endingTimestamp": f"{NOON + 250_000}",
    },
    "too-late-a-time": {
        **BOTH_TOPICS,
        "startingTimestamp": f"{NOON + 400_000}",
        "startingOffsetsByTimestampStrategy": "latest",
    },
    "at-least-7-tasks": {**BOTH_TOPICS, "minPartitions": "7"},
    "small-tasks": {**BOTH_TOPICS, "maxRecordsPerPartition": "90"},
    "uncommitted": {"subscribe": "jvm-txn"},
    "committed": {"subscribe": "jvm-txn", "kafka.isolation.level": "read_committed"},
}


def read(both: Session, source: str, servers: str, options: dict[str, str], **more: Any) -> dict[str, Any]:
    given = {"kafka.bootstrap.servers": servers, **options}
    answer: dict[str, Any] = both.ask({"format": source, "options": given, **more})
    return answer


@pytest.mark.spec("ST-22", "SP-55")
@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_equal_rows_for_equal_options(both: Session, topics: str, options: dict[str, str]) -> None:
    theirs, ours = (read(both, source, topics, options) for source in ("kafka", "kclient"))
    assert theirs["rows"]
    assert ours["rows"] == theirs["rows"]
    assert ours["schema"] == theirs["schema"]
    if "minPartitions" in options:  # the batches of 4.0.0 take no notice of maxRecordsPerPartition
        assert ours["tasks"] == theirs["tasks"]


@pytest.mark.spec("ST-15", "SP-21", "SP-46")
@pytest.mark.parametrize("sources", [("kafka", "kclient", "kafka"), ("kclient", "kafka", "kclient")])
def test_a_checkpoint_moves_to_the_other_source_and_back(
    both: Session, kafka1: KafkaCluster, fresh_name: str, tmp_path: Path, sources: tuple[str, ...]
) -> None:
    """Twelve partitions, whose order as text is not that of their numbers, and two topics."""
    topics = {fresh_name: 12, f"{fresh_name}-b": 2}
    for topic, partitions in topics.items():
        make_topic(kafka1, topic, partitions)
    options = {"subscribe": ",".join(topics), "startingOffsets": "earliest"}
    for written, source in enumerate(sources, 1):
        for topic, partitions in topics.items():
            write(kafka1, topic, [Message(b"%d" % written, partition) for partition in range(partitions)] * 5)
        here = {"folder": str(tmp_path)}
        answer = read(both, source, kafka1.bootstrap_servers, options, **here)
        assert places(answer) == [
            (topic, partition, offset)
            for topic, partitions in sorted(topics.items())
            for partition in range(partitions)
            for offset in range(5 * written)
        ]
        assert sum(answer["batches"]) == 70
        assert answer["batches"].count(0) <= 1
    idle = read(both, sources[0], kafka1.bootstrap_servers, options, folder=str(tmp_path))
    assert sum(idle["batches"]) == 0
    assert len(places(idle)) == 210


def places(answer: dict[str, Any]) -> list[tuple[str, int, int]]:
    rows = map(json.loads, answer["rows"])
    return [(row["topic"], row["partition"], row["offset"]) for row in rows]
