"""Memory against buffer_memory_bytes, on a real Kafka 4.3.1. Each reader is a process: its peak counts.

    python -m benchmarks.bench_memory [--quick]

backlog      500 partitions full of records that do not shrink, and a handler that takes 10 of them every 20 ms
in one go    the same, read as fast as it goes
zeros        batches of 16 MB that travel as a few kB
one giant    a record of twice the budget: it passes, with a warning
columns      3 million records of 100 B as Arrow batches that are all kept

Growth is the peak of resident memory over what the process had when it knew the cluster and had read nothing.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import attrs
import confluent_kafka
import pyarrow as pa

from benchmarks.report import Figure, Goal, progress, show
from localkafka import KafkaCluster

MEBIBYTE = 1 << 20
BUDGET_BYTES = 64 * MEBIBYTE
GIANT_BUDGET_BYTES = 4 * MEBIBYTE
GIANT_BYTES = 2 * GIANT_BUDGET_BYTES
BACKLOG_PARTITIONS = 500
BACKLOG_RECORDS = 200_000
RECORD_BYTES = 1_000
ZERO_RECORDS = 20_000
ZERO_BYTES = 10_000
COLUMNS_RECORDS = 3_000_000
MOST_BUDGETS = 1.5
MOST_COLUMNS = 1.3
GROWTH = Goal(most=MOST_BUDGETS)


@attrs.frozen
class Case:
    """What one reader does. `records` 0: for `seconds`."""

    topic: str
    budget_bytes: int = BUDGET_BYTES
    records: int = 0
    seconds: float = 60.0
    handler_seconds: float = 0.0
    max_records: int = 500
    columns: bool = False


CASES = {
    "backlog": Case("backlog", seconds=4.0, handler_seconds=0.02, max_records=10),
    "in one go": Case("backlog", records=BACKLOG_RECORDS),
    "zeros": Case("zeros", records=ZERO_RECORDS),
    "one giant": Case("giant", GIANT_BUDGET_BYTES, records=1),
    "columns": Case("columns", records=COLUMNS_RECORDS, columns=True),
}


# --- the reader, in a process of its own


def read(servers: str, case: Case) -> dict[str, Any]:
    """Read as the case says; how memory grew, and what was warned of."""
    from kclient import Consumer, TopicPartition

    warnings = Warnings()
    logging.getLogger("kclient").addHandler(warnings)
    settings = {"buffer_memory_bytes": case.budget_bytes, "auto_offset_reset": "earliest"}
    count = 0
    kept: list[pa.RecordBatch] = []
    with Consumer(bootstrap_servers=servers, **settings) as consumer:
        partitions = consumer.partitions_for(case.topic)
        before, deadline = resident("VmRSS"), time.monotonic() + case.seconds
        consumer.assign([TopicPartition(case.topic, one.partition) for one in partitions])
        batches = consumer.arrow_batches()
        while time.monotonic() < deadline and (case.records == 0 or count < case.records):
            if case.columns:
                kept.append(next(batches).batch)
                count += kept[-1].num_rows
            else:
                records = consumer.poll(1.0, max_records=case.max_records)
                count += sum(record.value is not None for record in records)
            time.sleep(case.handler_seconds)
    if count < case.records:
        raise SystemExit(f"{count} records of {case.records} came in {case.seconds:g} s")
    return {
        "grown_bytes": resident("VmHWM") - before,
        "records": count,
        "arrow_bytes": sum(batch.nbytes for batch in kept),
        "warnings": warnings.texts,
    }


class Warnings(logging.Handler):
    """Keeps what the library warns of."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def resident(field: str) -> int:
    """VmRSS is resident memory now, VmHWM its peak; bytes."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"/proc/self/status has no {field}")


# --- the run


def fill(cluster: KafkaCluster) -> None:
    progress("filling topics for memory")
    cluster.create_topic("backlog", partitions=BACKLOG_PARTITIONS)
    cluster.create_topic("zeros", partitions=4)
    cluster.create_topic("giant", partitions=1, max_message_bytes=2 * GIANT_BYTES)
    servers = cluster.bootstrap_servers
    noise = os.urandom(2 * RECORD_BYTES)
    values = [noise[start : start + RECORD_BYTES] for start in range(RECORD_BYTES)]
    write(servers, "backlog", BACKLOG_RECORDS, values, BACKLOG_PARTITIONS, {"linger.ms": 300})
    packed = {"compression.codec": "zstd", "batch.size": 16_000_000, "linger.ms": 2_000}
    write(servers, "zeros", ZERO_RECORDS, [bytes(ZERO_BYTES)], 4, packed)
    cluster.create_topic("columns", partitions=6)
    write(servers, "columns", COLUMNS_RECORDS, [value[:100] for value in values], 6, {"linger.ms": 200})
    write(servers, "giant", 1, [bytes(GIANT_BYTES)], 1, {"message.max.bytes": 2 * GIANT_BYTES})


def write(
    servers: str, topic: str, count: int, values: list[bytes], partitions: int, settings: dict[str, Any]
) -> None:
    roomy = {"queue.buffering.max.messages": 5_000_000, "queue.buffering.max.kbytes": 2_000_000}
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, **roomy, **settings})
    for number in range(count):
        producer.produce(topic, values[number % len(values)], partition=number % partitions)
    if left := producer.flush(90):
        raise SystemExit(f"{left} records of {topic} could not be written")


def measure(cluster: KafkaCluster, *, quick: bool = False) -> list[Figure]:
    fill(cluster)
    names = ["backlog", "one giant"] if quick else list(CASES)
    return [figure(name, one_reader(cluster.bootstrap_servers, name)) for name in names]


def one_reader(servers: str, name: str) -> dict[str, Any]:
    progress(f"memory, {name}")
    command = [sys.executable, "-m", "benchmarks.bench_memory", "--read", name, "--servers", servers]
    found: dict[str, Any] = json.loads(subprocess.check_output(command, text=True, timeout=120))
    return found


def figure(name: str, found: dict[str, Any]) -> Figure:
    budget, grown = CASES[name].budget_bytes, found["grown_bytes"]
    note = f"{grown / MEBIBYTE:.0f} MiB of {budget / MEBIBYTE:.0f} MiB"
    if CASES[name].columns:
        arrow = found["arrow_bytes"]
        beyond = (grown - budget) / arrow
        note = f"{grown / MEBIBYTE:.0f} MiB for {arrow / MEBIBYTE:.0f} MiB of columns, {budget / MEBIBYTE:.0f} MiB"
        return Figure(
            "memory, columns: growth beyond the budget : data", beyond, "x", Goal(most=MOST_COLUMNS), note
        )
    if name != "one giant":
        return Figure(f"memory, {name}: growth : budget", grown / budget, "x", GROWTH, note)
    warned = sum("buffer_memory_bytes" in text for text in found["warnings"])
    return Figure("memory, one giant: passes with a warning", warned, "warnings", Goal(least=1), note)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two of the cases")
    parser.add_argument("--read", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--servers", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read:
        print(json.dumps(read(arguments.servers, CASES[arguments.read])))
        return
    with KafkaCluster("4.3.1", jvm_options=("-Xmx1g",)) as cluster:
        show("memory", measure(cluster, quick=arguments.quick))


if __name__ == "__main__":
    main()
