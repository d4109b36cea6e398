"""The output of Kafka's console consumer for the internal topics, with their formatters."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any, Final

from localkafka.errors import LocalKafkaError
from localkafka.jars import classpath, java
from localkafka.releases import NEWEST

COMMAND: Final = "org.apache.kafka.tools.consumer.ConsoleConsumer"
COMMITS: Final = "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"
GROUPS: Final = "org.apache.kafka.tools.consumer.GroupMetadataMessageFormatter"
TIMEOUT_SECONDS: Final = 60


def formatted(bootstrap_servers: str, topic: str, partition: int, formatter: str, records: int) -> list[Any]:
    """Return the formatter's output for the first `records` of a partition, one JSON object for each of its type.

    Asks a cluster of 2.1 or newer, read_committed. Raises LocalKafkaError.
    """
    arguments = ["--bootstrap-server", bootstrap_servers, "--topic", topic, "--partition", str(partition)]
    arguments += ["--offset", "earliest", "--isolation-level", "read_committed", "--formatter", formatter]
    arguments += ["--max-messages", str(records), "--timeout-ms", "20000"]
    jvm = [java() or "java", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-cp", classpath(NEWEST)]
    run = subprocess.run(
        [*jvm, COMMAND, *arguments], capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
    )
    if run.returncode != 0:
        raise LocalKafkaError(f"{COMMAND} ended with {run.returncode}:\n{run.stdout}{run.stderr[-2000:]}")
    return list(_objects(run.stdout))


def _objects(text: str) -> Iterator[Any]:
    """Split the output: the formatters print no separator between objects."""
    decoder, at = json.JSONDecoder(), 0
    while (at := text.find("{", at)) >= 0:
        found, at = decoder.raw_decode(text, at)
        yield found
