"""What a poll costs with 10, 1,000 and 10,000 assigned partitions; it should not matter. CPU of the client alone.

    python -m benchmarks.bench_poll [--quick]

The embedded cluster runs in a process of its own. One partition has records, the others have none and are asked for all
the same.

start      from assign to the first poll that finds every position known: time, and CPU for a partition
empty      poll(0) while every Fetch waits at the broker
deliver    a poll that returns 500 records of 100 bytes, each of which needs a Fetch of its own; after a rest, for the
           cluster takes 0.2 s to answer for 10,000 partitions, and who waits comes back to cold caches
idle       CPU of a second in which nothing happens but Fetches that come back empty

Then the polls of a Consumer, which runs on another thread: 300,000 records of 6 partitions by poll(500), iteration, and
columns; poll(10,000) beside them, whose changes of threads do not count.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from statistics import median

import attrs
import confluent_kafka

from benchmarks.report import Figure, Goal, progress, show
from kclient import AsyncConsumer, Consumer, TopicPartition

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
SYNC_TOPIC, SYNC_PARTITIONS, SYNC_RECORDS = "read", 6, 300_000
SYNC_ROUNDS = 3
NEAR = Goal(most=1.3)


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
    topics = [f"{TOPIC}:{partitions}", f"{SYNC_TOPIC}:{SYNC_PARTITIONS}"]
    command = [
        sys.executable, "-m", "kclient.embedded", *(word for topic in topics for word in ("--topic", topic))
    ]  # fmt: skip
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
        progress("polls of a Consumer")
        fill_sync(servers)
        rounds = [
            {name: sync_cpu(servers, read) for name, read in SYNC.items()}
            for _ in range(1 if quick else SYNC_ROUNDS)
        ]
    return [*rows(found), *flatness(found), *sync_rows(rounds)]


def fill_sync(servers: str) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": servers, "linger.ms": 100, "queue.buffering.max.messages": SYNC_RECORDS}
    )
    for number in range(SYNC_RECORDS):
        producer.produce(SYNC_TOPIC, VALUE, b"%08d" % number, partition=number % SYNC_PARTITIONS)
        if not number % 1_000:
            producer.poll(0)
    if left := producer.flush(60):
        raise SystemExit(f"{left} records could not be written")


def polls_of(max_records: int) -> Callable[[Consumer], Iterator[int]]:
    return lambda consumer: (len(consumer.poll(5.0, max_records)) for _ in repeat(None))


SYNC: dict[str, Callable[[Consumer], Iterator[int]]] = {
    "poll(10000)": polls_of(10_000),
    "poll(500)": polls_of(RECORDS_A_POLL),
    "for record in consumer": lambda consumer: (1 for _ in consumer),
    "poll(500).to_arrow()": lambda consumer: (
        consumer.poll(5.0, RECORDS_A_POLL).to_arrow().num_rows for _ in repeat(None)
    ),
    "arrow_batches(50000)": lambda consumer: (one.batch.num_rows for one in consumer.arrow_batches(50_000)),
}


def sync_cpu(servers: str, read: Callable[[Consumer], Iterator[int]]) -> float:
    """Microseconds of CPU a record, after the first records."""
    partitions = [TopicPartition(SYNC_TOPIC, number) for number in range(SYNC_PARTITIONS)]
    with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        consumer.assign(partitions)
        counts = read(consumer)
        while not next(counts):
            continue
        used, total = time.process_time(), 0
        while total < SYNC_RECORDS * 0.8:
            total += next(counts)
        return (time.process_time() - used) / total * 1e6


def sync_rows(rounds: Sequence[dict[str, float]]) -> Iterator[Figure]:
    medians = {name: median(one[name] for one in rounds) for name in SYNC}
    for name, cost in medians.items():
        yield Figure(f"Consumer: {name}", cost, "us CPU/rec")
    yield Figure(
        "Consumer: poll(500) : poll(10000)", medians["poll(500)"] / medians["poll(10000)"], "x", NEAR
    )


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
