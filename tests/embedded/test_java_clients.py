"""Java's own clients and tools on the embedded cluster: producer, both consumers, group command."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from kclient.embedded import EmbeddedCluster
from localkafka import unavailable
from localkafka.command_line import describe_group, log_sizes
from localkafka.jars import QUICK_START, classpath, java

pytestmark = pytest.mark.kafka

TOOLS = "org.apache.kafka.tools"
GROUPS = f"{TOOLS}.consumer.group.ConsumerGroupCommand"
SECONDS = 90
RECORDS = 6_000


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    if reason := unavailable("4.3.1"):
        if os.environ.get("CI") == "true":
            pytest.fail(f"Java's clients must run in CI: {reason}", pytrace=False)
        pytest.skip(f"no Kafka 4.3.1: {reason}")
    with EmbeddedCluster(brokers=3, topics={"orders": 6}) as cluster:
        yield cluster


def run(main: str, *arguments: str, options: Sequence[str] = ()) -> str:
    """What a Java program printed, which ended well; the options are those of the JVM."""
    jvm = [java() or "java", *QUICK_START, *options, "-cp", classpath("4.3.1")]
    ended = subprocess.run(
        [*jvm, main, *arguments], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def tool(cluster: EmbeddedCluster, name: str, *arguments: str) -> str:
    return run(f"{TOOLS}.{name}", "--bootstrap-server", cluster.bootstrap_servers, *arguments)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_java_consumes_in_a_group_and_kafka_consumer_groups_agrees(
    cluster: EmbeddedCluster, protocol: str, tmp_path: Path
) -> None:
    cluster.produce("orders", [b"x" * 100] * RECORDS, codec="zstd")
    settings = tmp_path / "consumer.properties"
    settings.write_text(f"group.protocol={protocol}\n")
    wanted = ("--topic", "orders", "--num-records", str(RECORDS), "--group", "perf", "--timeout", "20000")
    table = tool(cluster, "ConsumerPerformance", *wanted, "--command-config", str(settings))
    heading, figures = [line.split(", ") for line in table.splitlines() if ", " in line]
    assert figures[heading.index("data.consumed.in.nMsg")] == str(RECORDS)
    reported = describe_group(cluster.bootstrap_servers, "perf")
    assert {tp: row.committed for tp, row in reported.items()} == cluster.committed("perf")
    assert [row.lag for row in reported.values()] == [0] * 6
    state = run(
        GROUPS, "--bootstrap-server", cluster.bootstrap_servers, "--describe", "--group", "perf", "--state"
    )
    assert " Empty " in state
    deleted = run(GROUPS, "--bootstrap-server", cluster.bootstrap_servers, "--delete", "--group", "perf")
    assert "was successful" in deleted
    assert cluster.committed("perf") == {}


@pytest.mark.timeout(240)
def test_java_produces_within_transactions(cluster: EmbeddedCluster) -> None:
    output = tool(
        cluster,
        "ProducerPerformance",
        *("--topic", "orders", "--num-records", str(RECORDS), "--record-size", "100", "--throughput", "-1"),
        *("--transactional-id", "perf", "--transaction-duration-ms", "100"),
        *("--command-property", "compression.type=lz4"),
    )
    assert f"{RECORDS} records sent" in output
    wanted = ("--topic", "orders", "--num-records", str(RECORDS), "--group", "perf", "--timeout", "20000")
    table = tool(
        cluster, "ConsumerPerformance", *wanted, "--command-property", "isolation.level=read_committed"
    )
    assert f" {RECORDS}, " in table
    assert any(entry.api == "EndTxn" for entry in cluster.requests)


@pytest.mark.timeout(240)
def test_kafka_log_dirs_prints_the_bytes_of_every_replica(cluster: EmbeddedCluster) -> None:
    cluster.produce("orders", [b"x" * 100] * 50, partition=2)
    stored = cluster.state.topics["orders"].partitions[2].log.batches
    size = sum(len(batch.data) for batch in stored)
    expected = {(number, broker): size if number == 2 else 0 for number in range(6) for broker in (1, 2, 3)}
    assert log_sizes(cluster.bootstrap_servers, "orders") == expected
