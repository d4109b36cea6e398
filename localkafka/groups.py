"""The offsets of a group, as `kafka-consumer-groups --describe` prints them."""

from __future__ import annotations

import subprocess
from typing import NamedTuple

from localkafka.errors import LocalKafkaError
from localkafka.jars import classpath, java
from localkafka.releases import NEWEST

COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TIMEOUT_SECONDS = 60


class CommittedOffset(NamedTuple):
    """One row of the table. None stands for the tool's `-`: nothing committed."""

    committed: int | None
    end: int | None
    lag: int | None


def describe(bootstrap_servers: str, group: str) -> dict[tuple[str, int], CommittedOffset]:
    """Run the command against a cluster of 2.1 or newer. Raise LocalKafkaError."""
    arguments = ["--bootstrap-server", bootstrap_servers, "--describe", "--group", group, "--offsets"]
    jvm = [java() or "java", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-cp", classpath(NEWEST)]
    run = subprocess.run(
        [*jvm, COMMAND, *arguments], capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
    )
    if run.returncode != 0 or "Error:" in run.stdout:
        raise LocalKafkaError(f"{COMMAND} ended with {run.returncode}:\n{run.stdout}{run.stderr[-2000:]}")
    return parse(run.stdout)


def parse(table: str) -> dict[tuple[str, int], CommittedOffset]:
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


def _number(word: str) -> int | None:
    return None if word == "-" else int(word)
