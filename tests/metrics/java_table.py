"""What Java's consumer calls its metrics: a table that a real one printed, and how to have it printed again.

    python -m tests.metrics.java_table        writes data/java-4.3.1.tsv

The consumer reads ten records of two partitions, three a poll, and commits. Values that any such run gives are in the
table; a dash stands for what depends on time or the network. Java repeats every name whose topic has a dot in it, with
an underscore for the dot, which it calls deprecated; these repetitions are left out, and so are nodes' numbers.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from kclient.embedded import EmbeddedCluster
from localkafka.jars import QUICK_START, classpath, java

HERE: Final = Path(__file__).parent
TABLE: Final = HERE / "data" / "java-4.3.1.tsv"
TOPIC: Final = "or.ders"
DETERMINED: Final = (
    "-consumed-total",
    "fetch-size",
    "records-per-",
    "records-l",
    "preferred-",
    "fetch-throttle",
)
COUNTED: Final = ("assigned-partitions", "commit-total", "join-total", "sync-total", "rebalance-total")

Row = tuple[str, str, str, str]  # group, name, tags, value


def table() -> list[Row]:
    """The table as it is stored."""
    rows = [line.split("\t") for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    return [(group, name, tags, value) for group, name, tags, value in rows]


def fill(cluster: EmbeddedCluster) -> None:
    """Five records of 100 bytes in each partition."""
    for partition in (0, 1):
        cluster.produce(TOPIC, [b"x" * 100] * 5, partition=partition)


def printed() -> list[Row]:
    """The table as Java prints it now, reading from an embedded cluster."""
    with EmbeddedCluster(
        brokers=1, topics={TOPIC: 2}, config={"group.initial.rebalance.delay.ms": 0}
    ) as cluster:
        fill(cluster)
        return printed_of(cluster.bootstrap_servers, TOPIC)


def printed_of(bootstrap_servers: str, topic: str) -> list[Row]:
    """The table as Java prints it of any Kafka and topic."""
    source = HERE / "java" / "ConsumerMetricsTable.java"
    command = [
        java() or "java",
        *QUICK_START,
        "-cp",
        classpath("4.3.1"),
        str(source),
        bootstrap_servers,
        topic,
    ]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
    rows = [line.split("\t") for line in ended.stdout.splitlines()]
    kept = [
        (group, name, _without_node(tags), value if _is_determined(name) else "-")
        for group, name, tags, value in rows
        if group.startswith("consumer-") and ("." not in topic or topic.replace(".", "_") not in tags)
    ]
    return sorted(dict.fromkeys(kept))


def _without_node(tags: str) -> str:
    return ",".join("node-id=" if tag.startswith("node-id=") else tag for tag in tags.split(","))


def _is_determined(name: str) -> bool:
    return name in COUNTED or any(part in name for part in DETERMINED)


def main() -> None:
    """Write the table."""
    head = "# What the consumer of Apache Kafka 4.3.1 prints; written by tests/metrics/java_table.py.\n"
    TABLE.write_text(head + "".join("\t".join(row) + "\n" for row in printed()))


if __name__ == "__main__":
    main()
