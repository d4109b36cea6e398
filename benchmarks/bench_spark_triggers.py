"""What a micro-batch costs beside its records: the source's share, and Spark's own. It says how often a trigger pays.

    python -m benchmarks.bench_spark_triggers [--batches N] [--without-spark]

The source is driven as Spark drives it, on a real Kafka: `latestOffset`, `partitions` and `commit` to a group, in turns
with single round trips on a connection of the same kind. How many round trips it makes a test counts; three of them may
take what they take, and 5 ms more are the bound. On a busy machine the broker's disk adds to that; CPU is reported too.
Spark's share is what its progress says of batches that have one record and a sink that does nothing.

Spec: SG-06, SP-25.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple, TypeVar

from confluent_kafka import Producer

from benchmarks.report import Figure, Goal, progress, show, write_json
from kclient.spark.client import ClusterHandle, DriverClient
from kclient.spark.decoding import ValueDecoder
from kclient.spark.option_table import Topics
from kclient.spark.options import SourceOptions
from kclient.spark.source import ReadAllAvailable, StreamReader
from localkafka import KafkaCluster

TOPIC, PARTITIONS = "triggers", 8
OWN_MS = 5.0
WARM_UP = 3
RESULTS = Path(".cache/bench-spark-triggers.json")
PARTS = ("triggerExecution", "addBatch", "walCommit", "commitOffsets", "queryPlanning", "latestOffset")


Offset = dict[str, dict[str, int]]
T = TypeVar("T")


class Cost(NamedTuple):
    """Seconds by the clock, and of CPU."""

    seconds: float
    cpu: float


def main() -> int:
    """1 where a goal was missed."""
    arguments = parsed()
    with KafkaCluster("4.3.1", jvm_options=("-Xmx1g",)) as kafka:
        kafka.create_topic(TOPIC, PARTITIONS)
        found = list(of_the_source(kafka, arguments.batches))
        show("the source's share of a batch", found)
        if not arguments.without_spark:
            of_spark = list(of_sparks(kafka, min(arguments.batches, 20)))
            show("Spark's share", of_spark)
            found += of_spark
    write_json(arguments.json, found)
    return 1 if any(one.verdict == "MISSED" for one in found) else 0


def of_the_source(kafka: KafkaCluster, batches: int) -> Iterator[Figure]:
    """Driver calls of one batch, and what a round trip takes meanwhile."""
    options = SourceOptions.parse(options_of(kafka), "stream")
    reader, other = StreamReader(options, ("offset",), ValueDecoder({})), DriverClient(options)
    turns, trips = list[Cost](), list[Cost]()
    try:
        end = reader.initialOffset()
        for number in range(batches + WARM_UP):
            produce(kafka, number)
            trips.append(cost(lambda: other.call(round_trip))[0])
            spent, end = cost(partial(batch, reader, end))
            turns.append(spent)
    finally:
        other.close()
        reader.stop()
    whole, trip = (1e3 * undisturbed(one.seconds for one in measured) for measured in (turns, trips))
    yield Figure("latestOffset, partitions and commit", whole, "ms")
    yield Figure("a round trip", trip, "ms")
    yield Figure("beyond three round trips", max(0.0, whole - 3 * trip), "ms", Goal(most=OWN_MS), "SG-06")
    yield Figure("the source's CPU", 1e3 * undisturbed(one.cpu for one in turns), "ms")


def of_sparks(kafka: KafkaCluster, batches: int) -> Iterator[Figure]:
    """What Spark's progress says of small batches, one after the other."""
    from pyspark.sql import SparkSession

    from kclient.spark import register

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false").getOrCreate()
    register(spark)
    frame = spark.readStream.format("kclient").options(**options_of(kafka)).load()
    query = frame.writeStream.format("noop").start()
    durations: list[dict[str, int]] = []
    seen = -1
    while len(durations) < batches + WARM_UP:
        produce(kafka, len(durations))
        time.sleep(0.05)
        for batch in query.recentProgress:
            if batch.batchId > seen and batch.numInputRows:
                seen = batch.batchId
                durations.append(batch.durationMs)
                progress(f"batch {seen}: {batch.durationMs['triggerExecution']} ms")
    query.stop()
    spark.stop()
    for part in PARTS:
        yield Figure(part, median(one.get(part, 0) for one in durations[WARM_UP:]), "ms")


def options_of(kafka: KafkaCluster) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": kafka.bootstrap_servers,
        "subscribe": TOPIC,
        "startingOffsets": "earliest",
        "commit.group.id": "triggers",
    }


def produce(kafka: KafkaCluster, number: int) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce(TOPIC, b"x", partition=number % PARTITIONS)
    if producer.flush(30):
        raise SystemExit("a record did not get to Kafka within 30 s")


def undisturbed(measured: Iterable[float]) -> float:
    """The lower quartile: others on the machine only ever add to it."""
    return quantiles(list(measured)[WARM_UP:], n=4)[0]


def batch(reader: StreamReader, start: Offset) -> Offset:
    """What Spark asks the source between two batches; where the next one begins."""
    end = reader.latestOffset(start, ReadAllAvailable())
    reader.commit(start)
    reader.partitions(start, end)
    return end


async def round_trip(handle: ClusterHandle) -> object:
    """One request for metadata."""
    return await handle.lookup.partitions(Topics((TOPIC,)), internal=False)


def cost(work: Callable[[], T]) -> tuple[Cost, T]:
    """What a call costs, with all threads of this process, and its result."""
    begun, used = time.perf_counter(), time.process_time()
    result = work()
    return Cost(time.perf_counter() - begun, time.process_time() - used), result


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bench_spark_triggers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--batches", type=int, default=50)
    parser.add_argument("--without-spark", action="store_true")
    parser.add_argument("--json", type=Path, default=RESULTS)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
