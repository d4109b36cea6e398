"""Reading a topic of a real Kafka 4.3.1 from end to end, against other clients in the same run. Prints ratios.

    python -m benchmarks.bench_consume [--records N] [--rounds N] [--only NAME …]

One topic per codec with 6 partitions, records of 100 bytes with a key of 8, in large batches. Everybody reads all
partitions from the beginning, without a group, and touches every value; the time includes finding the cluster. The
rounds alternate, so that a busy machine slows everybody, and end when SECONDS_A_CODEC have passed; medians count. The
two slowest peers read a part of the topic. CPU is that of all threads of the process.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import aiokafka
import confluent_kafka
import kafka

from kclient import AsyncConsumer, Consumer, TopicPartition
from localkafka import KafkaCluster

PARTITIONS = 6
VALUE = b"v" * 100
CODECS = ("none", "lz4")
SLOW_SHARE = 4  # the slowest peers read one record of so many
BASE = "kafka-python"
GOAL = f"goal: kclient Consumer >= 3 x {BASE} (which uses crc32c here)"
SECONDS_A_CODEC = 90.0

Read = Callable[[str, str, int], int]


# --- kclient


def partitions_of(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(PARTITIONS)]


def read_sync(servers: str, topic: str, wanted: int) -> int:
    count = 0
    with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        consumer.assign(partitions_of(topic))
        while count < wanted:
            for record in consumer.poll(1.0):
                count += 1
                touch(record.value)
    return count


def read_iterating(servers: str, topic: str, wanted: int) -> int:
    count = 0
    with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        consumer.assign(partitions_of(topic))
        for record in consumer:
            count += 1
            touch(record.value)
            if count == wanted:
                break
    return count


def read_async(servers: str, topic: str, wanted: int) -> int:
    async def work() -> int:
        count = 0
        async with AsyncConsumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
            await consumer.assign(partitions_of(topic))
            while count < wanted:
                for record in await consumer.poll(1.0):
                    count += 1
                    touch(record.value)
        return count

    return asyncio.run(work())


def read_arrow(servers: str, topic: str, wanted: int) -> int:
    count = 0
    with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        consumer.assign(partitions_of(topic))
        while count < wanted:
            count += consumer.poll(1.0, max_records=10_000).to_arrow().num_rows
    return count


# --- peers


def read_kafka_python(servers: str, topic: str, wanted: int) -> int:
    count = 0
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=servers, auto_offset_reset="earliest", group_id=None, enable_auto_commit=False
    )
    consumer.assign([kafka.TopicPartition(*one) for one in partitions_of(topic)])
    while count < wanted:
        for records in consumer.poll(timeout_ms=1000).values():
            for record in records:
                count += 1
                touch(record.value)
    consumer.close()
    return count


def read_confluent(servers: str, topic: str, wanted: int, **tuning: Any) -> int:
    count = 0
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": "bench", "enable.auto.commit": False, **tuning}
    )
    consumer.assign([confluent_kafka.TopicPartition(*one, 0) for one in partitions_of(topic)])
    while count < wanted:
        for message in consumer.consume(10_000, 1.0):
            count += 1
            touch(message.value())
    consumer.close()
    return count


def read_confluent_tuned(servers: str, topic: str, wanted: int) -> int:
    tuning = {"fetch.queue.backoff.ms": 5, "queued.max.messages.kbytes": 1_000_000}
    return read_confluent(servers, topic, wanted, **tuning)


def read_aiokafka(servers: str, topic: str, wanted: int) -> int:
    async def work() -> int:
        count = 0
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest")
        consumer.assign([aiokafka.TopicPartition(*one) for one in partitions_of(topic)])
        await consumer.start()
        while count < wanted:
            for records in (await consumer.getmany(timeout_ms=1000)).values():
                for record in records:
                    count += 1
                    touch(record.value)
        await consumer.stop()
        return count

    return asyncio.run(work())


def touch(value: bytes | None) -> None:
    if value is None or len(value) != len(VALUE):
        raise SystemExit("a record is not what was written")


OURS: dict[str, Read] = {
    "kclient poll": read_sync,
    "kclient for record in": read_iterating,
    "kclient async": read_async,
    "kclient to_arrow": read_arrow,
}
PEERS: dict[str, Read] = {
    BASE: read_kafka_python,
    "confluent defaults": read_confluent,
    "confluent tuned": read_confluent_tuned,
    "aiokafka": read_aiokafka,
}
SLOW = (BASE, "confluent defaults")


# --- the run


def fill(kafka_cluster: KafkaCluster, codec: str, records: int) -> str:
    """A topic with so many records in batches of up to 1 MB."""
    topic = f"bench-{codec}"
    kafka_cluster.create_topic(topic, partitions=PARTITIONS)
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": kafka_cluster.bootstrap_servers,
            "compression.codec": codec,
            "linger.ms": 200,
            "batch.size": 1_000_000,
            "batch.num.messages": 100_000,
            "queue.buffering.max.messages": records + 1,
            "queue.buffering.max.kbytes": 2_000_000,
        }
    )
    for number in range(records):
        producer.produce(topic, VALUE, b"%08d" % number, number % PARTITIONS)
        if number % 10_000 == 0:
            producer.poll(0)
    if left := producer.flush(60):
        raise SystemExit(f"{left} records could not be written")
    return topic


def one_run(read: Read, servers: str, topic: str, wanted: int) -> tuple[float, float]:
    """Seconds of time and of CPU for a record."""
    begun, used = time.perf_counter(), time.process_time()
    count = read(servers, topic, wanted)
    return (time.perf_counter() - begun) / count, (time.process_time() - used) / count


def measure(servers: str, topic: str, arguments: argparse.Namespace) -> dict[str, tuple[float, float]]:
    """The medians of everybody: seconds of time and of CPU for a record."""
    runs: dict[str, list[tuple[float, float]]] = {}
    deadline = time.monotonic() + SECONDS_A_CODEC
    for _ in range(arguments.rounds):
        for name, read in (OURS | PEERS).items():
            if not arguments.only or name in arguments.only:
                wanted = arguments.records // SLOW_SHARE if name in SLOW else arguments.records
                runs.setdefault(name, []).append(one_run(read, servers, topic, wanted))
        if time.monotonic() >= deadline:
            break
    return {
        name: (median(run[0] for run in some), median(run[1] for run in some)) for name, some in runs.items()
    }


def show(codec: str, medians: dict[str, tuple[float, float]]) -> None:
    base = medians.get(BASE, (float("nan"), 0.0))[0]
    print(f"\n{codec:22} {'1000/s':>8} {'CPU us/record':>15} {'x ' + BASE:>16}")
    for name, (seconds, cpu) in medians.items():
        print(f"{name:22} {0.001 / seconds:8.0f} {cpu * 1e6:15.2f} {base / seconds:16.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[])
    arguments = parser.parse_args()
    with KafkaCluster("4.3.1", jvm_options=("-Xmx1g",)) as kafka_cluster:
        for codec in CODECS:
            topic = fill(kafka_cluster, codec, arguments.records)
            show(codec, measure(kafka_cluster.bootstrap_servers, topic, arguments))
    print(f"\n{GOAL}")


if __name__ == "__main__":
    main()
