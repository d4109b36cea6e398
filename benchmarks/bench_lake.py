"""What tables cost: rows a second into them beside direct Parquet on a local disk, and a commit as history grows.

    python -m benchmarks.bench_lake [--quick] [--only rate commit] [--json FILE]

rate     one topic of a real Kafka 4.3.1 by `kclient ingest --engine direct` into each sink, in turns, a process each
         time, which goes on from a first batch of few records. "rows/s" is of the job once it is planned, "steady" of
         its batches but the first, for which workers start, and the last, after which none begins. "a run" is the whole
         process: Python's start and the library of a table are in it, pyiceberg's import takes half a second. CPU is
         that of all its processes. The S3 is S3Proxy on loopback: it takes its CPU from the same cores. The first turns
         are not counted: until then both JVMs compile, S3Proxy for six of them (2 s of its CPU a job, then 0.4)
commit   batches of one file into a table with 10, 100 and 1,000 snapshots, by the same calls as the job's; the files
         are named and not written. Beside it what the newest version costs to read: that grows with the history in any
         case

A ratio of the rate is the median over the turns of ratios within one turn.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

import attrs
import pyarrow as pa
from confluent_kafka import Producer

from benchmarks.report import Figure, Goal, progress, show, write_json
from kclient.records.arrow import SCHEMA
from kclient.spark.ingest import run as ingest
from kclient.spark.ingest.progress import BatchProgress, SilentListener
from kclient.spark.ingest.resume import open_table
from kclient.spark.ingest.setting_values import location
from kclient.spark.ingest.settings import IngestSettings
from kclient.spark.ingest.stop_signals import StopRequest
from kclient.spark.ranges import OffsetRange
from kclient.spark.sink import tables
from kclient.spark.sink.manifest import WrittenFile
from kclient.spark.sink.parquet import DirectTarget, write_batches
from kclient.spark.sink.row_layout import RowLayout
from kclient.spark.sink.tables import LakeTable, TableCommit
from kclient.types import TopicPartition
from localkafka import KafkaCluster
from locals3 import S3Server

TOPIC, PARTITIONS, BATCHES = "rows", 6, 5
RECORDS, QUICK_RECORDS = 4_000_000, 300_000
TURNS, QUICK_TURNS = 9, 2
WARM_UP = 6
BUCKET = "lake"
# The collector of a server's default takes arrays of megabytes, which S3Proxy makes for each object, as a case of their
# own: 2 MB take 12 ms of CPU with it, and 9 with this one.
S3_JVM = ("-Xmx512m", "-XX:+UseParallelGC")
MEBIBYTE = 1 << 20
LEAST_RATE = Goal(least=0.85)
MOST_COMMIT_MS = Goal(most=300)
SIZES, QUICK_SIZES = (10, 100, 1_000), (10, 100)
MEASURED = 15
RESULTS = Path(".cache/bench-lake.json")
LOCAL, S3 = "local disk", "S3"
TP = TopicPartition(TOPIC, 0)


def main() -> int:
    """1 where a goal was missed."""
    arguments = parsed()
    found: list[Figure] = []
    with ExitStack() as stack:
        s3 = stack.enter_context(S3Server(S3_JVM))
        s3.create_bucket(BUCKET)
        os.environ.update(s3.environment)
        place = Place(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        if "rate" in arguments.only:
            kafka = stack.enter_context(KafkaCluster("4.3.1", jvm_options=("-Xmx1g",)))
            found += shown("rate", rates(kafka, place, quick=arguments.quick))
        if "commit" in arguments.only:
            for kind in KINDS:
                for where in (LOCAL, S3):
                    figures = list(commits(kind, where, place, QUICK_SIZES if arguments.quick else SIZES))
                    found += shown(f"commit, {kind} on {where}", figures)
    write_json(arguments.json, found, quick=arguments.quick)
    return 1 if any(one.verdict == "MISSED" for one in found) else 0


def shown(part: str, figures: list[Figure]) -> list[Figure]:
    show(part, figures)
    return figures


@attrs.frozen
class Place:
    """Where the sinks of a run are; each one is used once."""

    root: Path

    def sink(self, kind: str, where: str, name: str) -> dict[str, str]:
        """The settings of an empty sink."""
        base = f"s3://{BUCKET}/{name}" if where == S3 else str(self.root / name)
        if kind != "iceberg":
            return {"sink": f"{kind}:{base}"}
        catalog = self.root / f"{name}.yaml"
        properties = {
            "type": "sql",
            "uri": f"sqlite:///{self.root / name}.db",
            "warehouse": base if where == S3 else f"file://{base}",
            "s3.endpoint": os.environ["AWS_ENDPOINT_URL"],
            "s3.region": os.environ["AWS_REGION"],
        }
        lines = [f"    {key}: {value}\n" for key, value in properties.items()]
        catalog.write_text(f"catalog:\n  lake:\n{''.join(lines)}", encoding="utf-8")
        if where == LOCAL:
            Path(base).mkdir()
        return {"sink": "iceberg:lake.db.rows", "catalog": str(catalog)}


# --- rate


@attrs.frozen
class Spent:
    """What one job took: all its batches, those between the first and the last one, and the process as a whole."""

    seconds: float
    steady_seconds: float
    run_seconds: float
    cpu: float
    peak_bytes: int
    commit_ms: float


# Linux lets a child inherit the peak of the process that started it, so a small one starts the job and reports.
STARTER = """
import json, os, resource, sys, time
began = time.monotonic()
code = os.spawnv(os.P_WAIT, sys.argv[1], sys.argv[1:])
seconds = time.monotonic() - began
used = resource.getrusage(resource.RUSAGE_CHILDREN)
cpu = used.ru_utime + used.ru_stime
print(json.dumps({"event": "used", "seconds": seconds, "cpu": cpu, "peak_kib": used.ru_maxrss}), flush=True)
sys.exit(code)
"""

SINKS = [
    ("parquet", LOCAL),
    ("iceberg", LOCAL),
    ("delta", LOCAL),
    ("parquet", S3),
    ("iceberg", S3),
    ("delta", S3),
]


def rates(kafka: KafkaCluster, place: Place, *, quick: bool) -> list[Figure]:
    """Each sink beside Parquet on the local disk."""
    records = QUICK_RECORDS if quick else RECORDS
    fill(kafka, records)
    turns: list[dict[tuple[str, str], Spent]] = []
    for turn in range(WARM_UP + (QUICK_TURNS if quick else TURNS)):
        turns.append({})
        for kind, where in SINKS:
            name = f"{kind}-{where.replace(' ', '-').lower()}-{turn}"
            turns[-1][kind, where] = spent = job(
                kafka, place.sink(kind, where, name), place.root / f"c-{name}", records
            )
            progress(f"{name}: {records / spent.seconds:,.0f} rows/s, a commit {spent.commit_ms:.0f} ms")
            shutil.rmtree(place.root / name, ignore_errors=True)
    return list(rate_figures(turns[WARM_UP:], records))


def rate_figures(turns: list[dict[tuple[str, str], Spent]], records: int) -> Iterator[Figure]:
    def of(sink: tuple[str, str], what: Callable[[Spent], float]) -> float:
        return median(what(turn[sink]) for turn in turns)

    for sink in SINKS:
        name = f"{sink[0]} on {sink[1]}"
        note = f"{of(sink, lambda one: one.commit_ms):.0f} ms a commit"
        yield Figure(f"{name}: rows/s", records / of(sink, lambda one: one.seconds), "rows/s", note=note)
        yield Figure(f"{name}: a run", of(sink, lambda one: one.run_seconds), "s")
        yield Figure(f"{name}: CPU of a million rows", of(sink, lambda one: one.cpu) / records * 1e6, "s")
        yield Figure(f"{name}: largest process", of(sink, lambda one: one.peak_bytes) / MEBIBYTE, "MiB")

    def ratio(sink: tuple[str, str], what: Callable[[Spent], float]) -> float:
        return median(what(turn[SINKS[0]]) / what(turn[sink]) for turn in turns)

    for sink in SINKS[1:]:
        name = f"{sink[0]} on {sink[1]} : parquet on {LOCAL}"
        yield Figure(name, ratio(sink, lambda one: one.seconds), "x", LEAST_RATE)
        yield Figure(f"{name}, steady", ratio(sink, lambda one: one.steady_seconds), "x", LEAST_RATE)
        yield Figure(f"{name}, a run", ratio(sink, lambda one: one.run_seconds), "x")


def fill(kafka: KafkaCluster, records: int) -> None:
    """Records of about 200 B that shrink as JSON does."""
    progress(f"filling a topic with {records:,} records")
    kafka.create_topic(TOPIC, PARTITIONS)
    settings = {"linger.ms": 50, "compression.type": "lz4", "queue.buffering.max.messages": 1_000_000}
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, **settings})
    for number in range(records):
        while True:
            try:
                producer.produce(TOPIC, value(number), partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    if left := producer.flush(120):
        raise SystemExit(f"{left} records could not be written")


def value(number: int) -> bytes:
    noise = number * 2654435761 % (1 << 32)
    fields = {
        "id": number,
        "account": f"{noise:032x}",
        "amount": noise / 100,
        "text": f"payment {noise} of the day " * 4,
    }
    return json.dumps(fields).encode()


def job(kafka: KafkaCluster, sink: dict[str, str], checkpoint: Path, records: int) -> Spent:
    """One ingest to the end of the topic. Raises SystemExit if it fails or lands another number of rows."""
    given = {
        **sink,
        "bootstrap": kafka.bootstrap_servers,
        "topics": TOPIC,
        "checkpoint": str(checkpoint),
        "engine": "direct",
    }
    left = records - begun(given)
    # A limit is divided among the partitions and rounded down: what is left would be a batch of its own.
    given["max-per-trigger"] = str(-(-left // BATCHES) + PARTITIONS)
    options = [part for name, text in given.items() for part in (f"--{name}", text)]
    log = checkpoint.with_suffix(".log")
    with log.open("w+b") as output:
        command = [sys.executable, "-m", "kclient", "ingest", "--json", *options]
        starter = [sys.executable, "-I", "-S", "-c", STARTER]
        run = subprocess.run([*starter, *command], check=False, stdout=output, stderr=subprocess.STDOUT)
        output.seek(0)
        text = output.read().decode()
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    finished = [line for line in lines if line["event"] == "finished"]
    if run.returncode or not finished or finished[0]["total_rows"] != left:
        raise SystemExit(f"{given['sink']} failed:\n{text[-2000:]}")
    batches, used = [line for line in lines if line["event"] == "batch"], lines[-1]
    return Spent(
        seconds=finished[0]["seconds"],
        steady_seconds=sum(batch["duration_ms"] for batch in batches[1:-1]) / 1000,
        run_seconds=used["seconds"],
        cpu=used["cpu"],
        peak_bytes=used["peak_kib"] * 1024,
        commit_ms=median(float(batch["commit_ms"]) for batch in batches),
    )


@attrs.define
class OneBatch(SilentListener):
    """Stops a job after its first batch, whose rows it keeps."""

    stop: StopRequest = attrs.field(factory=StopRequest)
    rows: int = 0

    def batch(self, progress: BatchProgress) -> None:
        self.rows += progress.rows
        self.stop.ask(signal.SIGTERM)


def begun(given: dict[str, str]) -> int:
    """Begin a job with a first batch of few records, in this process; their number."""
    listener = OneBatch()
    settings = {**given, "max_per_trigger": PARTITIONS, "parallelism": 1}
    ingest.run(IngestSettings.parse(settings), listener, listener.stop)
    return listener.rows


# --- commit

KINDS = ("iceberg", "delta")


def commits(kind: str, where: str, place: Place, sizes: tuple[int, ...]) -> Iterator[Figure]:
    """The time of a commit into a table that has so many snapshots, each with one file."""
    sink = place.sink(kind, where, f"history-{kind}-{where.replace(' ', '-').lower()}")
    table = open_table(location(sink["sink"]), sink.get("catalog"))
    written, done = one_file(table), 0
    for size in sizes:
        progress(f"commit, {kind} on {where}: {size} snapshots")
        while done < size:
            commit(table, written, done)
            done += 1
        began = resident()
        load_ms = median(timed(table.load)[0] for _ in range(MEASURED))
        turns = [
            timed(lambda number=number: commit(table, written, number))
            for number in range(done, done + MEASURED)
        ]
        done += MEASURED
        note = (
            f"CPU {median(cpu for _, cpu in turns):.0f} ms, the longest {max(wall for wall, _ in turns):.0f} ms, "
            f"to read the newest version {load_ms:.0f} ms, memory {began / MEBIBYTE:.0f} MiB"
        )
        goal = MOST_COMMIT_MS if size == max(sizes) else None
        yield Figure(f"a commit at {size:,} snapshots", median(wall for wall, _ in turns), "ms", goal, note)


def one_file(table: LakeTable[Any]) -> WrittenFile:
    """A file of ten rows, written for the table."""
    files = table.prepare(RowLayout().schema(), ("topic",), evolves=False)
    target = DirectTarget(root=files.root, layout=RowLayout(), table=files)
    names = RowLayout().read()
    columns: dict[str, list[Any]] = {
        "offset": list(range(10)),
        "timestamp": [0] * 10,
        "headers": [[]] * 10,
        "key": [None] * 10,
        "value": [value(number) for number in range(10)],
    }
    arrays = [pa.array(columns[name], SCHEMA.field(name).type) for name in names]
    batch = pa.RecordBatch.from_arrays(arrays, names=list(names))
    (file,) = write_batches(OffsetRange(*TP, 0, 10), [batch], target).files
    return file


def commit(table: LakeTable[Any], written: WrittenFile, number: int) -> None:
    path = written.path.replace(".parquet", f"-{number}.parquet")
    ends = {"start": {TP: 10 * number}, "end": {TP: 10 * number + 10}}
    wanted = TableCommit(job="bench", batch=number, files=(attrs.evolve(written, path=path),), **ends)
    if not tables.commit(table, wanted):
        raise SystemExit(f"batch {number} was there already")


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds by the clock, and of CPU."""
    began, used = time.perf_counter(), time.process_time()
    work()
    return 1e3 * (time.perf_counter() - began), 1e3 * (time.process_time() - used)


def resident() -> int:
    """The resident memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bench_lake",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="fewer records, turns and snapshots")
    parts = ("rate", "commit")
    parser.add_argument(
        "--only", nargs="+", choices=parts, default=parts, metavar="PART", help=", ".join(parts)
    )
    parser.add_argument("--json", type=Path, default=RESULTS, metavar="FILE", help=f"default {RESULTS}")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
