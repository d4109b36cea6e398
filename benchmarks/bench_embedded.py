"""What the embedded cluster costs: until it is there, and per byte that it serves.

python -m benchmarks.bench_embedded

cold     a fresh interpreter: import kclient.embedded, start three brokers
warm     start and end of three brokers, where all is imported
example  the test of README: cluster, two records, a group that reads them, end
serve    200 MB in records of 1 kB, read from a cluster in a process of its own by librdkafka, and by a client that only
         counts bytes; nothing is decoded by the cluster either way
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import confluent_kafka

from kclient import Consumer
from kclient.embedded import EmbeddedCluster
from kclient.generated.fetch_request import FetchPartition, FetchRequest, FetchTopic
from tests.conformance.raw_client import RawClient

TURNS = 20
PARTITIONS = 6
RECORDS = 200_000
RECORD_BYTES = 1_000
FETCH_BYTES = 8_000_000
GOALS = "goals: cold <= 400 ms; warm <= 50 ms; example < 100 ms; serve >= 100 MB/s"
COLD = """
import time; began, worked = time.perf_counter(), time.process_time()
from kclient.embedded import EmbeddedCluster
with EmbeddedCluster(brokers=3):
    print(time.perf_counter() - began, time.process_time() - worked)
"""


def main() -> None:
    """Print one line for each."""
    colds = [subprocess.check_output([sys.executable, "-c", COLD], text=True).split() for _ in range(5)]
    took, worked = (statistics.median(map(float, column)) * 1000 for column in zip(*colds, strict=True))
    report("cold", f"{took:8.1f} ms, {worked:.1f} ms of them on a core")
    report("warm", f"{warm(start_and_end) * 1000:8.1f} ms")
    report("example", f"{warm(example) * 1000:8.1f} ms")
    serve()
    print(GOALS)


def report(name: str, figures: str) -> None:
    print(f"{name:8} {figures}")


def warm(action: Callable[[], None]) -> float:
    """The median of some turns, after one that does not count."""
    action()
    took = []
    for _ in range(TURNS):
        began = time.perf_counter()
        action()
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def start_and_end() -> None:
    with EmbeddedCluster(brokers=3):
        pass


def example() -> None:
    with EmbeddedCluster(brokers=3) as kafka:
        kafka.prepare_groups()
        kafka.produce("orders", ["one", "two"])
        settings = {"group_id": "billing", "auto_offset_reset": "earliest"}
        with Consumer("orders", bootstrap_servers=kafka.bootstrap_servers, **settings) as consumer:
            assert len(consumer.poll(timeout=5.0)) == 2


# --- serving


def serve() -> None:
    command = [sys.executable, "-m", "kclient.embedded", "--topic", f"load:{PARTITIONS}"]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            servers = process.stdout.readline().strip()
            began = time.perf_counter()
            fill(servers)
            report("take", rate(RECORDS * RECORD_BYTES, began))
            began = time.perf_counter()
            report("serve", rate(count_bytes(servers), began) + " to a client that only counts")
            began = time.perf_counter()
            report("serve", rate(read_all(servers), began) + " to librdkafka")
        finally:
            process.terminate()


def rate(size: int, began: float) -> str:
    return f"{size / 1e6 / (time.perf_counter() - began):8.1f} MB/s"


def fill(servers: str) -> None:
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": servers,
            "linger.ms": 20,
            "batch.size": 500_000,
            "queue.buffering.max.messages": RECORDS,
        }
    )
    value = bytes(RECORD_BYTES)
    for number in range(RECORDS):
        producer.produce("load", value, partition=number % PARTITIONS)
    assert producer.flush(60) == 0


def count_bytes(servers: str) -> int:
    """Fetch partition after partition on one connection, moving by whole answers."""
    host, port = servers.split(":")
    total = 0
    with RawClient(host, int(port)) as raw_client:
        for number in range(PARTITIONS):
            offset, end = 0, 1
            while offset < end:
                part = FetchPartition(number, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
                request = FetchRequest(
                    max_wait_ms=0, max_bytes=FETCH_BYTES, topics=[FetchTopic(topic="load", partitions=[part])]
                )
                (row,) = raw_client.ask(request, 11).responses[0].partitions
                end, data = row.high_watermark, memoryview(row.records)
                total += len(data)
                offset = next_offset(data)
    return total


def next_offset(data: memoryview) -> int:
    """Return the offset after the last whole batch."""
    at, offset = 0, 0
    while at + 61 <= len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "big") + 12
        offset = int.from_bytes(data[at : at + 8], "big") + int.from_bytes(data[at + 23 : at + 27], "big") + 1
        at += size
    return offset


def read_all(servers: str) -> int:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "bench",
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": FETCH_BYTES,
        }
    )
    consumer.subscribe(["load"])
    size = 0
    while size < RECORDS * RECORD_BYTES:
        size += sum(len(message.value()) for message in consumer.consume(10_000, 1.0))
    consumer.close()
    return size


if __name__ == "__main__":
    main()
