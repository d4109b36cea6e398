"""What a poll costs with 10, 1,000 and 10,000 assigned partitions; it should not matter. CPU of the client alone.

    python -m benchmarks.bench_poll [--quick]

The embedded cluster runs in a process of its own. One partition has records, the others have none and are asked for all
the same.

start      from assign to the first poll that finds every position known: time, and CPU for a partition
empty      poll(0) while every Fetch waits at the broker
deliver    a poll that returns 500 records of 100 bytes, each of which needs a Fetch of its own; after a rest, for the
           cluster takes 0.2 s to answer for 10,000 partitions, and who waits comes back to cold caches
idle       CPU of a second in which nothing happens but Fetches that come back empty
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

import attrs
import confluent_kafka

from benchmarks.report import Figure, Goal, progress, show
from kclient import AsyncConsumer, TopicPartition

TOPIC = "many"
SIZES = (10, 1_000, 10_000)
RECORDS_A_POLL = 500
VALUE = b"v" * 100
DELIVERIES = 40
REST_SECONDS = 0.25
EMPTY_POLLS = 500
IDLE_SECONDS = 3.0
START_SECONDS = 60.0
FLAT = Goal(most=1.5)
IDLE = Goal(most=0.5)


@attrs.frozen
class Costs:
    """Of one number of partitions. Seconds, all of CPU but `start`."""

    start: float
    start_cpu: float
    empty: float
    deliver: float
    idle: float


@contextmanager
def cluster(partitions: int) -> Iterator[str]:
    """The bootstrap servers of an embedded cluster whose work is not ours to pay."""
    command = [sys.executable, "-m", "kclient.embedded", "--topic", f"{TOPIC}:{partitions}"]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def fill(servers: str, records: int) -> None:
    """Partition 0 gets them, in batches of RECORDS_A_POLL."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": servers, "linger.ms": 500, "batch.num.messages": RECORDS_A_POLL}
    )
    for number in range(records):
        producer.produce(TOPIC, VALUE, b"%08d" % number, partition=0)
    if left := producer.flush(60):
        raise SystemExit(f"{left} records could not be written")


async def costs(servers: str, partitions: int, deliveries: int) -> Costs:
    # a Fetch brings one batch of the one partition that has records
    settings = {"max_partition_fetch_bytes": RECORDS_A_POLL * len(VALUE), "auto_offset_reset": "earliest"}
    async with AsyncConsumer(bootstrap_servers=servers, **settings) as consumer:
        began, used = time.perf_counter(), time.process_time()
        await consumer.assign([TopicPartition(TOPIC, number) for number in range(partitions)])
        await consumer.position(TopicPartition(TOPIC, partitions - 1), START_SECONDS)
        start, start_cpu = time.perf_counter() - began, time.process_time() - used
        deliver = await delivering(consumer, deliveries)
        while len(await consumer.poll(1.0)):
            continue
        return Costs(start, start_cpu, await empty(consumer), deliver, await idle(consumer))


async def delivering(consumer: AsyncConsumer, deliveries: int) -> float:
    """CPU from one delivery to the next: the Fetch, its answer, and the poll."""
    times = []
    used = time.process_time()
    while len(times) < deliveries:
        records = await consumer.poll(5.0, max_records=RECORDS_A_POLL)
        if len(records):
            now = time.process_time()
            times.append((now - used) * RECORDS_A_POLL / len(records))
            await asyncio.sleep(REST_SECONDS)
            used = now
    return median(times)


async def empty(consumer: AsyncConsumer) -> float:
    times = []
    for _ in range(EMPTY_POLLS):
        used = time.process_time()
        await consumer.poll(0)
        times.append(time.process_time() - used)
    return median(times)


async def idle(consumer: AsyncConsumer) -> float:
    """CPU of one second."""
    began, used = time.perf_counter(), time.process_time()
    while time.perf_counter() - began < IDLE_SECONDS:
        await consumer.poll(1.0)
    return (time.process_time() - used) / (time.perf_counter() - began)


def measure(*, quick: bool = False) -> list[Figure]:
    """One cluster serves all sizes; flatness is the largest size against the smallest."""
    deliveries = DELIVERIES // 3 if quick else DELIVERIES
    found: dict[int, Costs] = {}
    with cluster(SIZES[-1]) as servers:
        fill(servers, (deliveries + 5) * RECORDS_A_POLL)
        for size in SIZES:
            progress(f"polls over {size:,} partitions")
            found[size] = asyncio.run(costs(servers, size, deliveries))
    return [*rows(found), *flatness(found)]


def rows(found: dict[int, Costs]) -> Iterator[Figure]:
    for size, one in found.items():
        yield Figure(f"empty poll, {size:,} partitions", one.empty * 1e6, "us CPU")
        yield Figure(f"poll with 500 records, {size:,} partitions", one.deliver * 1e6, "us CPU")
        yield Figure(f"idle, {size:,} partitions", one.idle * 100, "% of core", IDLE)
        yield Figure(f"start, {size:,} partitions", one.start, "s", note=f"{one.start_cpu:.2f} s of CPU")


def flatness(found: dict[int, Costs]) -> Iterator[Figure]:
    small, large = found[SIZES[0]], found[SIZES[-1]]
    yield Figure("empty poll, most partitions : fewest", large.empty / small.empty, "x", FLAT)
    yield Figure("poll with 500 records, most partitions : fewest", large.deliver / small.deliver, "x", FLAT)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer polls")
    show("cost of a poll", measure(quick=parser.parse_args().quick))


if __name__ == "__main__":
    main()
