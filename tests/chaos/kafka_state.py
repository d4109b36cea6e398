"""The records of the topic and the commits of the group, read by Java's own tool after a cycle.

Commits are read from `__consumer_offsets`, in the order in which the coordinator took them: whatever clients believe,
these are the commits that count.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
from confluent_kafka import Consumer, TopicPartition

from localkafka import KafkaCluster
from localkafka.jars import QUICK_START, classpath, java
from localkafka.releases import NEWEST

TOOL = "org.apache.kafka.tools.consumer.ConsoleConsumer"
FORMATTER = "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"
OFFSETS_TOPIC = "__consumer_offsets"
SECONDS = 60
QUIET_MS = 10_000


@attrs.frozen
class Taken:
    """A commit as the coordinator has stored it: partition, offset, and its wall clock in seconds."""

    partition: int
    offset: int
    wall: float


def records(kafka: KafkaCluster, topic: str, count: int) -> dict[tuple[int, int], str]:
    """(partition, offset) → value of everything in a topic, which holds so many records."""
    shown = [f"print.{what}=true" for what in ("partition", "offset")]
    extra = [word for one in shown for word in ("--formatter-property", one)]
    found: dict[tuple[int, int], str] = {}
    for line in _read(kafka, ["--topic", topic, "--from-beginning", "--max-messages", str(count), *extra]):
        partition, offset, value = line.split("\t")
        found[int(partition.partition(":")[2]), int(offset.partition(":")[2])] = value
    return found


def commits(kafka: KafkaCluster, group: str, topic: str) -> list[Taken]:
    """The commits of a group for a topic, oldest first."""
    number = offsets_partition(kafka, group)
    count = _size(kafka, number)
    words = ["--topic", OFFSETS_TOPIC, "--partition", str(number), "--offset", "earliest"]
    taken: list[Taken] = []
    text = "".join(_read(kafka, [*words, "--max-messages", str(count), "--formatter", FORMATTER]))
    for message in _objects(text):
        key, value = message["key"]["data"], (message["value"] or {}).get("data")
        if value and key.get("group") == group and key.get("topic") == topic:
            taken.append(Taken(key["partition"], value["offset"], value["commitTimestamp"] / 1000))
    return taken


def offsets_partition(kafka: KafkaCluster, group: str) -> int:
    """The partition of `__consumer_offsets` that holds the group, by Java's formula."""
    code = 0
    for character in group:
        code = (31 * code + ord(character)) & 0xFFFFFFFF
    code = abs(code - (1 << 32) if code >= 1 << 31 else code)
    return code % _partitions(kafka)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Java writes one JSON object after the other, with nothing between them."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        yield value


def _partitions(kafka: KafkaCluster) -> int:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "none", "log_level": 3})
    try:
        return len(consumer.list_topics(OFFSETS_TOPIC, timeout=SECONDS).topics[OFFSETS_TOPIC].partitions)
    finally:
        consumer.close()


def _size(kafka: KafkaCluster, number: int) -> int:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "none", "log_level": 3})
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(OFFSETS_TOPIC, number), timeout=SECONDS)
        return int(high - low)
    finally:
        consumer.close()


def _read(kafka: KafkaCluster, words: Sequence[str]) -> list[str]:
    jvm = [java() or "java", *QUICK_START, "-cp", classpath(NEWEST), TOOL]
    end = ["--timeout-ms", str(QUIET_MS), "--bootstrap-server", kafka.bootstrap_servers]
    run = subprocess.run([*jvm, *words, *end], capture_output=True, text=True, timeout=SECONDS, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"{TOOL} ended with {run.returncode}:\n{run.stdout[-500:]}{run.stderr[-2000:]}")
    return run.stdout.splitlines()
