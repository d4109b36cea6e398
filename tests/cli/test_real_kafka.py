"""The commands on a real Apache Kafka, the newest and 2.8; Java's own tool says what came of them."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, TopicPartition

from localkafka import KafkaCluster
from localkafka.command_line import log_sizes
from tests.cli.support import Done, call

Command = Callable[..., Done]
pytestmark = pytest.mark.kafka


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command against a cluster, with these lines as its standard input."""

    def run(kafka: KafkaCluster, *words: str, lines: bytes) -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(lines))))
        return call(capsys, *words, "-b", kafka.bootstrap_servers)

    return run


def test_on_the_newest(kafka1: KafkaCluster, fresh_name: str, command: Command) -> None:
    check_a_group_from_its_first_record_to_its_deletion(kafka1, fresh_name, command)


def test_on_2_8_with_zookeeper(kafka28: KafkaCluster, fresh_name: str, command: Command) -> None:
    check_a_group_from_its_first_record_to_its_deletion(kafka28, fresh_name, command)


def check_a_group_from_its_first_record_to_its_deletion(
    kafka: KafkaCluster, name: str, command: Command
) -> None:
    topic = group = name

    def ask(*words: str, lines: bytes = b"") -> Done:
        return command(kafka, *words, lines=lines)

    kafka.create_topic(topic, 2)
    lines = b"".join(b"k%d=v%d\n" % (number, number) for number in range(20))
    assert ask("produce", topic, "-K", "=", "--compression", "lz4", lines=lines).code == 0
    assert read_by_another_client(kafka, topic) == {(b"k%d" % n, b"v%d" % n) for n in range(20)}

    done = ask("doctor", "--topic", topic, "--group", group)
    assert done.code == 0, done.out
    [described] = ask("topics", "describe", topic, "--json").events
    assert (described["partitions"], described["records"]) == (2, 20)
    sizes = {(row["partition"], row["leader"]): row["bytes"] for row in described["partition_list"]}
    assert sizes == log_sizes(kafka.bootstrap_servers, topic)
    assert min(sizes.values()) > 0
    assert described["bytes"] == sum(sizes.values())

    first = ask("consume", topic, "-g", group, "-n", "7")
    assert len(first.out.split()) == 7
    assert sum(committed(kafka, group).values()) == 7
    rest = ask("consume", topic, "-g", group, "-e")
    assert sorted((first.out + rest.out).split()) == sorted(f"v{number}" for number in range(20))
    ends = committed(kafka, group)
    assert sum(ends.values()) == 20

    assert ask("groups", "reset", group, "--all-topics", "--to-earliest").code == 0
    assert committed(kafka, group) == ends
    assert ask("groups", "reset", group, "--all-topics", "--to-earliest", "--execute").code == 0
    assert set(committed(kafka, group).values()) == {0}
    assert ask("groups", "reset", group, "--topic", f"{topic}:1", "--shift-by", "2", "--execute").code == 0
    assert committed(kafka, group) == {(topic, 0): 0, (topic, 1): 2}

    assert group in {one["group"] for one in ask("groups", "--json").events}
    assert ask("groups", "delete", group, "--execute").code == 0
    assert group not in {one["group"] for one in ask("groups", "--json").events}


def committed(kafka: KafkaCluster, group: str) -> dict[tuple[str, int], int | None]:
    return {tp: row.committed for tp, row in kafka.describe_group(group).items() if row.committed is not None}


def read_by_another_client(kafka: KafkaCluster, topic: str) -> set[tuple[bytes | None, bytes | None]]:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "other"})
    consumer.assign([TopicPartition(topic, number, 0) for number in (0, 1)])
    found = set()
    while len(found) < 20:
        found |= {(one.key(), one.value()) for one in consumer.consume(20, 10) if one.error() is None}
    consumer.close()
    return found
