"""Reading a topic of a real Kafka 4.3.1 from end to end, against other clients in the same run. Prints ratios.

    python -m benchmarks.bench_consume [--quick] [--records N] [--rounds N] [--only NAME …] [--topics NAME …]

One topic for each codec and size of batches, with 6 partitions and records of 100 bytes with a key of 8. Each client
reads all partitions from the beginning, without a group, and accesses every value; the time includes connecting to
the cluster. The clients take turns in rounds, so that a busy machine slows all of them; each round starts with another
client, so that no client always runs first after a pause; a ratio is the median over the rounds. They end when
SECONDS_A_TOPIC have passed. The two slowest peers read a part of the topic. CPU is that of all threads of the process;
a goal is judged by CPU, because wall time depends on other load of the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import aiokafka
import attrs
import confluent_kafka
import kafka

from benchmarks.report import Figure, Goal, progress, show
from kclient import AsyncConsumer, Consumer, TopicPartition
from localkafka import KafkaCluster

PARTITIONS = 6
VALUE = b"v" * 100
TOPICS = {  # codec and bytes of a batch
    "none, 1 MB": ("none", 1_000_000),
    "lz4, 1 MB": ("lz4", 1_000_000),
    "none, 16 kB": ("none", 16_384),
    "lz4, 16 kB": ("lz4", 16_384),
}
QUICK_TOPICS = ("none, 1 MB", "lz4, 16 kB")
SLOW_SHARE = 2  # the slowest peers read one record of so many
BASE = "kafka-python + crc32c"
GOALS = {"kclient poll": Goal(least=3.0)}
RECORDS, ROUNDS = 200_000, 5
QUICK_RECORDS, QUICK_ROUNDS = 100_000, 1
SECONDS_A_TOPIC = 45.0

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


@attrs.frozen
class Run:
    """Seconds of time and of CPU for a record."""

    seconds: float
    cpu: float


def fill(kafka_cluster: KafkaCluster, name: str, records: int) -> str:
    """A topic with so many records; its name."""
    codec, batch_bytes = TOPICS[name]
    topic = f"bench-{codec}-{batch_bytes}"
    kafka_cluster.create_topic(topic, partitions=PARTITIONS)
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": kafka_cluster.bootstrap_servers,
            "compression.codec": codec,
            "linger.ms": 200,
            "batch.size": batch_bytes,
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


def one_run(read: Read, servers: str, topic: str, wanted: int) -> Run:
    begun, used = time.perf_counter(), time.process_time()
    count = read(servers, topic, wanted)
    return Run((time.perf_counter() - begun) / count, (time.process_time() - used) / count)


def rounds_of(
    servers: str, topic: str, records: int, rounds: int, only: list[str]
) -> Iterator[dict[str, Run]]:
    """Run each reader once per round, until the time is over."""
    deadline = time.monotonic() + SECONDS_A_TOPIC
    readers = [(name, read) for name, read in (OURS | PEERS).items() if not only or name in only]
    for number in range(rounds):
        if number and time.monotonic() >= deadline:
            return
        first = number % len(readers)
        yield {
            name: one_run(read, servers, topic, records // SLOW_SHARE if name in SLOW else records)
            for name, read in readers[first:] + readers[:first]
        }


def figures(topic: str, runs: list[dict[str, Run]]) -> Iterator[Figure]:
    """Who reads how many records, with what CPU, and how that stands to BASE in the same rounds."""
    for name in runs[0]:
        seconds, cpu = (median(getattr(run[name], what) for run in runs) for what in ("seconds", "cpu"))
        yield Figure(f"{topic}: {name}", 0.001 / seconds, "1000/s", note=f"{cpu * 1e6:.2f} us CPU/record")
    for name in runs[0]:
        if BASE in runs[0] and name in OURS:
            ratio = median(run[BASE].cpu / run[name].cpu for run in runs)
            time_ratio = median(run[BASE].seconds / run[name].seconds for run in runs)
            note = f"{time_ratio:.1f} x by time"
            yield Figure(f"{topic}: {name} : {BASE}, by CPU", ratio, "x", GOALS.get(name), note)


def measure(
    cluster: KafkaCluster,
    *,
    quick: bool = False,
    records: int = 0,
    rounds: int = 0,
    only: list[str] | None = None,
    topics: list[str] | None = None,
) -> list[Figure]:
    """0 and None stand for what `quick` says, or else the usual."""
    records = records or (QUICK_RECORDS if quick else RECORDS)
    rounds = rounds or (QUICK_ROUNDS if quick else ROUNDS)
    found: list[Figure] = []
    for name in topics or (QUICK_TOPICS if quick else TOPICS):
        progress(f"reading {name} from end to end")
        topic = fill(cluster, name, records)
        runs = list(rounds_of(cluster.bootstrap_servers, topic, records, rounds, only or []))
        found += figures(name, runs)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two topics, fewer records, one round")
    parser.add_argument("--records", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--only", nargs="*", choices=OURS | PEERS, metavar="NAME")
    parser.add_argument("--topics", nargs="*", choices=TOPICS, metavar="NAME")
    arguments = parser.parse_args()
    with KafkaCluster("4.3.1", jvm_options=("-Xmx1g",)) as cluster:
        show("end to end", measure(cluster, **vars(arguments)))


if __name__ == "__main__":
    main()
