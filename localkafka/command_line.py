"""Kafka's own command line tools: the console consumer with a formatter, the offsets of a group, the sizes of logs.

They run with the newest release, against a cluster of 2.1 or newer.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from localkafka.errors import LocalKafkaError
from localkafka.jars import QUICK_START, classpath, java
from localkafka.releases import NEWEST

CONSOLE_CONSUMER: Final = "org.apache.kafka.tools.consumer.ConsoleConsumer"
CONSUMER_GROUPS: Final = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
LOG_DIRS: Final = "org.apache.kafka.tools.LogDirsCommand"
COMMITS: Final = "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"
GROUPS: Final = "org.apache.kafka.tools.consumer.GroupMetadataMessageFormatter"
TIMEOUT_SECONDS: Final = 60


def format_records(
    bootstrap_servers: str, topic: str, partition: int, formatter: str, records: int
) -> list[Any]:
    """Return the formatter's output for the first `records` of a partition, one JSON object for each of its type.

    Reads with read_committed. Raises LocalKafkaError.
    """
    arguments = ["--topic", topic, "--partition", str(partition)]
    arguments += ["--offset", "earliest", "--isolation-level", "read_committed", "--formatter", formatter]
    arguments += ["--max-messages", str(records), "--timeout-ms", "20000"]
    return list(_objects(_run(CONSOLE_CONSUMER, bootstrap_servers, arguments)))


class CommittedOffset(NamedTuple):
    """One row of `kafka-consumer-groups --describe`. None stands for the tool's `-`: nothing committed."""

    committed: int | None
    end: int | None
    lag: int | None


def describe_group(bootstrap_servers: str, group: str) -> dict[tuple[str, int], CommittedOffset]:
    """Return the offsets of a group. Raises LocalKafkaError."""
    return parse_offsets(
        _run(CONSUMER_GROUPS, bootstrap_servers, ["--describe", "--group", group, "--offsets"])
    )


def parse_offsets(table: str) -> dict[tuple[str, int], CommittedOffset]:
    """Parse the printed table by its column names."""
    lines = [line.split() for line in table.splitlines() if line.strip()]
    header = next((number for number, words in enumerate(lines) if "CURRENT-OFFSET" in words), None)
    if header is None:
        return {}
    names = lines[header]
    rows = (dict(zip(names, words, strict=False)) for words in lines[header + 1 :])
    return {
        (row["TOPIC"], int(row["PARTITION"])): CommittedOffset(
            _number(row["CURRENT-OFFSET"]), _number(row["LOG-END-OFFSET"]), _number(row["LAG"])
        )
        for row in rows
    }


def log_sizes(bootstrap_servers: str, topic: str) -> dict[tuple[int, int], int]:
    """Return what `kafka-log-dirs` prints: (partition, broker) → bytes of the replica. Raises LocalKafkaError."""
    printed = _run(LOG_DIRS, bootstrap_servers, ["--describe", "--topic-list", topic])
    [described] = _objects(printed[printed.index('{"') :])
    return {
        (int(row["partition"].rpartition("-")[2]), broker["broker"]): row["size"]
        for broker in described["brokers"]
        for directory in broker["logDirs"]
        for row in directory["partitions"]
    }


def _number(word: str) -> int | None:
    return None if word == "-" else int(word)


def _run(command: str, bootstrap_servers: str, arguments: Sequence[str]) -> str:
    jvm = [java() or "java", *QUICK_START, "-cp", classpath(NEWEST)]
    run = subprocess.run(
        [*jvm, command, "--bootstrap-server", bootstrap_servers, *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    # ConsumerGroupCommand prints an error and ends with 0.
    if run.returncode != 0 or (command == CONSUMER_GROUPS and "Error:" in run.stdout):
        raise LocalKafkaError(f"{command} ended with {run.returncode}:\n{run.stdout}{run.stderr[-2000:]}")
    return run.stdout


def _objects(text: str) -> Iterator[Any]:
    """Split the output: the formatters print no separator between objects."""
    decoder, at = json.JSONDecoder(), 0
    while (at := text.find("{", at)) >= 0:
        found, at = decoder.raw_decode(text, at)
        yield found
