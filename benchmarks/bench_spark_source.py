"""What the source adds to Spark's Python workers: memory and connections, read from /proc. Linux only.

Spec: SG-07, SG-08.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.bench_spark_process import connections, peak_bytes, workers
from benchmarks.bench_spark_topics import PARTITIONS, Topic
from benchmarks.report import Figure, Goal
from localkafka import KafkaCluster
from localspark.session import Session

PREFIX = "bench"  # of batches and streams: queries with other client ids have other connections
STREAM_ROWS, STREAM_BATCHES = 40_000, 20
MB = 1_000_000


def peak_of_workers(session: Session) -> int:
    """The most memory that one of a session's Python workers ever had."""
    return max(map(peak_bytes, workers(session.pid)), default=0)


def memory(idle: int, reading: int) -> Figure:
    """What reading adds to a worker that handed out batches from memory before. Spec: SG-07."""
    note = f"{idle / MB:.0f} MB with free batches, {reading / MB:.0f} MB reading"
    return Figure("extra memory of a Python worker", (reading - idle) / MB, "MB", Goal(most=64), note)


def connected(
    session: Session, kafka: KafkaCluster, topic: Topic, rows: int, folder: Path
) -> Iterator[Figure]:
    """Two streams of many small batches, one after the other: the second finds everything open. Spec: SG-08."""
    port = int(kafka.bootstrap_servers.rpartition(":")[2])
    options = {
        "kafka.bootstrap.servers": kafka.bootstrap_servers,
        "subscribe": topic.kafka_name,
        "startingOffsets": topic.offsets((rows - STREAM_ROWS) // PARTITIONS),
        "groupIdPrefix": PREFIX,
        "maxOffsetsPerTrigger": STREAM_ROWS // STREAM_BATCHES,
    }
    job: dict[str, Any] = {"format": "kclient", "sink": "stream", "options": options}
    session.ask({**job, "folder": str(folder / "first")})
    before = {worker: connections([worker], port) for worker in workers(session.pid)}
    batches = session.ask({**job, "folder": str(folder / "second")})["batches"]
    after = {worker: connections([worker], port) for worker in workers(session.pid)}
    most = max(map(len, after.values()), default=0)
    new = sum(len(held - before[worker]) for worker, held in after.items() if worker in before)
    yield Figure(
        "connections of a worker to one broker", most, "", Goal(most=1), f"{len(after)} Python workers"
    )
    yield Figure(f"new connections in {batches} micro-batches", new, "", Goal(most=0))
