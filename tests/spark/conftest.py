"""What the tests of the Spark source share: topics on a real Kafka, the other client's view of them, one session."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kclient.spark.executor import clients
from kclient.spark.options import SourceOptions
from localkafka import KafkaCluster
from localspark import JAVA_OPTIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "local[2,4]"


class Row(NamedTuple):
    """One record as another client read it."""

    topic: str
    partition: int
    offset: int
    timestamp_type: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] | None


class Message(NamedTuple):
    """One record to write."""

    value: bytes | None
    partition: int = 0
    key: bytes | None = None
    headers: list[tuple[str, bytes | None]] | None = None
    timestamp: int = 1_357_034_400_000


def make_topic(kafka: KafkaCluster, topic: str, partitions: int = 1, **configs: str | int) -> None:
    """A topic that keeps its records: those here are stamped 2013, and would be deleted within half a minute."""
    kafka.create_topic(topic, partitions, retention_ms=-1, **configs)


def write(kafka: KafkaCluster, topic: str, messages: Iterable[Message], **config: str | int) -> None:
    """Publish with the other client and wait until all is acknowledged."""
    settings = {name.replace("_", "."): value for name, value in config.items()}
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 20, **settings})
    failures: list[Any] = []
    for message in messages:
        producer.produce(
            topic,
            message.value,
            message.key,
            message.partition,
            timestamp=message.timestamp,
            headers=message.headers,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
        producer.poll(0)
    assert producer.flush(30) == 0
    assert not failures


def read_with_other_client(
    kafka: KafkaCluster, topic: str, partitions: Sequence[int], isolation: str = "read_uncommitted"
) -> list[Row]:
    """Everything of these partitions, to their ends."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "judge",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    rows: list[Row] = []
    ended: dict[int, None] = {}
    deadline = time.monotonic() + 60
    while len(ended) < len(partitions) and time.monotonic() < deadline:
        for message in consumer.consume(1000, timeout=1):
            if message.error():
                ended[message.partition()] = None
                continue
            kind, timestamp = message.timestamp()
            rows.append(
                Row(
                    message.topic(),
                    message.partition(),
                    message.offset(),
                    kind - 1,  # librdkafka counts from 1
                    timestamp,
                    message.key(),
                    message.value(),
                    message.headers(),
                )
            )
    consumer.close()
    assert len(ended) == len(partitions)
    return sorted(rows[:], key=lambda row: (row.partition, row.offset))


@pytest.fixture(autouse=True)
def _no_client_outlives_a_test() -> Iterator[None]:
    yield
    clients.close()
    if "tests.spark.stream_driver" in sys.modules:
        sys.modules["tests.spark.stream_driver"].stop_readers()


@pytest.fixture
def options() -> Callable[..., SourceOptions]:
    """Options for a topic of a cluster; `__` in a name stands for a dot."""

    def make(kafka: KafkaCluster, topic: str, **extra: str) -> SourceOptions:
        given = {name.replace("__", "."): value for name, value in extra.items()}
        return SourceOptions.parse(
            {"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": topic, **given}
        )

    return make


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for the whole run: two cores, four attempts for each task (SP-05, SP-06)."""
    if shutil.which("java") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("Spark must run in CI, and there is no java on the path", pytrace=False)
        pytest.skip("no Spark: there is no java on the path")
    sql = pytest.importorskip("pyspark.sql")
    root = str(Path(__file__).parents[2])
    # The JVM and its workers keep it; other programs need not.
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        environment.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        environment.setenv("PYTHONPATH", root, prepend=os.pathsep)
        session = (
            sql.SparkSession.builder.master(MASTER)
            .appName("kclient tests")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.log.level", "ERROR")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.extraJavaOptions", JAVA_OPTIONS)
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.shuffle.partitions", "2")
            .getOrCreate()
        )
    yield session
    session.stop()
