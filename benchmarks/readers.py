"""Ways to read a topic of PARTITIONS partitions from the beginning, without a group: ours and those of other clients.

Each is called with (bootstrap servers, topic, number of records), accesses every value, and returns what the reading
took: connecting included, the start of the interpreter or the JVM not. CPU is that of all threads of the process. The
readers of other languages are programs in `peers/`, which measure themselves, in a process of their own each time. So
the figure of Java includes loading its classes and the JIT warm-up: the JVM compiles while it reads.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import aiokafka
import attrs
import confluent_kafka
import kafka
import pyarrow as pa

from benchmarks.floor import read_bytes
from kclient import AsyncConsumer, Consumer, TopicPartition
from localkafka.jars import classpath, java

PARTITIONS: Final = 6
VALUE: Final = b"v" * 100
MANY: Final = 10_000  # records of one call, for readers that take a number
PEERS_FOLDER: Final = Path(__file__).parent / "peers"
BUILT: Final = Path(".cache/bench")
KAFKA: Final = "4.3.1"


@attrs.frozen
class Run:
    """Seconds of time and of CPU for a record."""

    seconds: float
    cpu: float


Read = Callable[[str, str, int], Run]
Count = Callable[[str, str, int], int]


def measured(count_of: Count) -> Read:
    """Return a reader in this process, measured."""

    def read(servers: str, topic: str, wanted: int) -> Run:
        begun, used = time.perf_counter(), time.process_time()
        count = count_of(servers, topic, wanted)
        return Run((time.perf_counter() - begun) / count, (time.process_time() - used) / count)

    return read


def checked(count: int, size: int) -> int:
    """Return the count if the values of so many records have this size together, as the other languages' readers do."""
    if size != count * len(VALUE):
        raise SystemExit("a record is not what was written")
    return count


# --- kclient


def partitions_of(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(PARTITIONS)]


def ours(servers: str, topic: str) -> Consumer[bytes, bytes]:
    consumer = Consumer(bootstrap_servers=servers, auto_offset_reset="earliest")
    consumer.assign(partitions_of(topic))
    return consumer


def poll(servers: str, topic: str, wanted: int, max_records: int | None = None) -> int:
    count = size = 0
    with ours(servers, topic) as consumer:
        while count < wanted:
            for record in consumer.poll(1.0, max_records=max_records):
                count += 1
                size += len(record.value)
    return checked(count, size)


@measured
def iterate(servers: str, topic: str, wanted: int) -> int:
    count = size = 0
    with ours(servers, topic) as consumer:
        for record in consumer:
            count += 1
            size += len(record.value)
            if count == wanted:
                break
    return checked(count, size)


@measured
def iterate_async(servers: str, topic: str, wanted: int) -> int:
    async def work() -> int:
        count = size = 0
        async with AsyncConsumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
            await consumer.assign(partitions_of(topic))
            async for record in consumer:
                count += 1
                size += len(record.value)
                if count == wanted:
                    break
        return checked(count, size)

    return asyncio.run(work())


@measured
def to_arrow(servers: str, topic: str, wanted: int) -> int:
    """Make a table of what each call returns, as `confluent_arrow` does."""
    count = 0
    with ours(servers, topic) as consumer:
        while count < wanted:
            count += consumer.poll(1.0, max_records=MANY).to_arrow().num_rows
    return count


@measured
def to_arrow_async(servers: str, topic: str, wanted: int) -> int:
    """The same without the thread of a `Consumer`."""

    async def work() -> int:
        count = 0
        async with AsyncConsumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
            await consumer.assign(partitions_of(topic))
            while count < wanted:
                count += (await consumer.poll(1.0, max_records=MANY)).to_arrow().num_rows
        return count

    return asyncio.run(work())


@measured
def arrow_batches(servers: str, topic: str, wanted: int) -> int:
    count = 0
    with ours(servers, topic) as consumer:
        for batch, _ in consumer.arrow_batches(rows=100_000, timeout=0.2):
            count += batch.num_rows
            if count >= wanted:
                break
    return count


# --- other clients in Python


def kafka_python(servers: str, topic: str, wanted: int) -> int:
    count = size = 0
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=servers, auto_offset_reset="earliest", group_id=None, enable_auto_commit=False
    )
    consumer.assign([kafka.TopicPartition(*one) for one in partitions_of(topic)])
    while count < wanted:
        for records in consumer.poll(timeout_ms=1000).values():
            for record in records:
                count += 1
                size += len(record.value)
    consumer.close()
    return checked(count, size)


def confluent(servers: str, topic: str, **tuning: Any) -> confluent_kafka.Consumer:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": "bench", "enable.auto.commit": False, **tuning}
    )
    consumer.assign([confluent_kafka.TopicPartition(*one, 0) for one in partitions_of(topic)])
    return consumer


def confluent_tuned(servers: str, topic: str) -> confluent_kafka.Consumer:
    tuning = {"fetch.queue.backoff.ms": 5, "queued.max.messages.kbytes": 1_000_000}
    return confluent(servers, topic, **tuning)


def consume(consumer: confluent_kafka.Consumer, wanted: int) -> int:
    count = size = 0
    while count < wanted:
        for message in consumer.consume(MANY, 1.0):
            count += 1
            size += len(message.value())
    consumer.close()
    return checked(count, size)


def confluent_poll(servers: str, topic: str, wanted: int) -> int:
    count, size, consumer = 0, 0, confluent_tuned(servers, topic)
    while count < wanted:
        message = consumer.poll(1.0)
        if message is not None:
            count += 1
            size += len(message.value())
    consumer.close()
    return checked(count, size)


def confluent_arrow(servers: str, topic: str, wanted: int) -> int:
    count, consumer = 0, confluent_tuned(servers, topic)
    while count < wanted:
        messages = consumer.consume(MANY, 1.0)
        columns = {
            "partition": pa.array([message.partition() for message in messages], pa.int32()),
            "offset": pa.array([message.offset() for message in messages], pa.int64()),
            "timestamp": pa.array([message.timestamp()[1] for message in messages], pa.timestamp("ms")),
            "key": pa.array([message.key() for message in messages], pa.binary()),
            "value": pa.array([message.value() for message in messages], pa.binary()),
        }
        count += pa.table(columns).num_rows
    consumer.close()
    return count


def aiokafka_getmany(servers: str, topic: str, wanted: int) -> int:
    async def work() -> int:
        count = size = 0
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest")
        consumer.assign([aiokafka.TopicPartition(*one) for one in partitions_of(topic)])
        await consumer.start()
        while count < wanted:
            for records in (await consumer.getmany(timeout_ms=1000)).values():
                for record in records:
                    count += 1
                    size += len(record.value)
        await consumer.stop()
        return checked(count, size)

    return asyncio.run(work())


@measured
def floor(servers: str, topic: str, wanted: int) -> int:
    return read_bytes(servers, topic, PARTITIONS, wanted)


# --- clients of other languages


def program(command: list[str], servers: str, topic: str, wanted: int) -> Run:
    """Run a reader that prints the number of records, its seconds, and its seconds of CPU."""
    arguments = [*command, servers, topic, str(PARTITIONS), str(wanted)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed: {done.stderr[-2000:]}")
    count, seconds, cpu = map(float, done.stdout.split())
    return Run(seconds / count, cpu / count)


def java_consumer(servers: str, topic: str, wanted: int) -> Run:
    source = PEERS_FOLDER / "Reader.java"
    return program([java() or "java", "-Xmx1g", "-cp", classpath(KAFKA), str(source)], servers, topic, wanted)


def franz_go(servers: str, topic: str, wanted: int) -> Run:
    return program([str(built_franz())], servers, topic, wanted)


@cache
def built_franz() -> Path:
    target = (BUILT / "franz").resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    build = ["go", "build", "-o", str(target), "."]
    subprocess.run(build, cwd=PEERS_FOLDER / "franz", capture_output=True, text=True, check=True)
    return target


POLL, POLL_MANY, ITERATE, ITERATE_ASYNC, TO_ARROW, TO_ARROW_ASYNC, ARROW = OURS = (
    "kclient poll()",
    f"kclient poll(max_records={MANY})",
    "kclient for record in",
    "kclient async for",
    "kclient to_arrow",
    "kclient async to_arrow",
    "kclient arrow_batches(rows=100000)",
)
KAFKA_PYTHON, CONFLUENT, CONFLUENT_POLL, CONSUME, CONFLUENT_ARROW, AIOKAFKA, JAVA, FRANZ_GO, FLOOR = PEERS = (
    "kafka-python + crc32c",
    "confluent consume, defaults",
    "confluent poll, tuned",
    "confluent consume, tuned",
    "confluent -> Arrow, tuned",
    "aiokafka getmany",
    "Java consumer",
    "franz-go PollRecords",
    "receive, check, copy: no columns",
)
READERS: Final[dict[str, Read]] = {
    POLL: measured(poll),
    POLL_MANY: measured(partial(poll, max_records=MANY)),
    ITERATE: iterate,
    ITERATE_ASYNC: iterate_async,
    TO_ARROW: to_arrow,
    TO_ARROW_ASYNC: to_arrow_async,
    ARROW: arrow_batches,
    KAFKA_PYTHON: measured(kafka_python),
    CONFLUENT: measured(lambda servers, topic, wanted: consume(confluent(servers, topic), wanted)),
    CONFLUENT_POLL: measured(confluent_poll),
    CONSUME: measured(lambda servers, topic, wanted: consume(confluent_tuned(servers, topic), wanted)),
    CONFLUENT_ARROW: measured(confluent_arrow),
    AIOKAFKA: measured(aiokafka_getmany),
    JAVA: java_consumer,
    FRANZ_GO: franz_go,
    FLOOR: floor,
}
SLOW: Final = (KAFKA_PYTHON, CONFLUENT)
"""They read a part of the topic."""


def missing() -> dict[str, str]:
    """Return the readers that cannot run here, and why."""
    reasons = {
        JAVA: None if java() else "no Java",
        FRANZ_GO: franz_go_missing(),
    }
    return {name: reason for name, reason in reasons.items() if reason}


def franz_go_missing() -> str | None:
    """Return why franz-go cannot run here, or None: the build needs a recent Go, and fetches modules the first time."""
    if not shutil.which("go"):
        return "no Go compiler"
    try:
        built_franz()
    except subprocess.CalledProcessError as failed:
        return f"go build failed: {failed.stderr.strip()[-500:]}"
    return None
