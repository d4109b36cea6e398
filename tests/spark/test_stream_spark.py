"""Streams inside Spark: the order of its calls, triggers, restarts, checkpoints of the other source, group lag."""

from __future__ import annotations

import json
import os
import signal
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from pyspark.errors import StreamingQueryException

from kclient.embedded import EmbeddedCluster
from kclient.lag.calls import lag
from kclient.spark import track
from kclient.types import TopicPartition
from tests.docs.blocks import python_blocks
from tests.spark.recording_source import RecordingSource, calls
from tests.spark.stream_driver import everything, fill

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.kafka_cluster(brokers=2, topics={"t": 2}),
]

T = TypeVar("T")

SECONDS = 120
PAGE = Path(__file__).parents[2] / "docs" / "spark-streaming.md"


def options_of(kafka: EmbeddedCluster, **extra: str) -> dict[str, str]:
    given = {name.replace("__", "."): value for name, value in extra.items()}
    return {
        "kafka.bootstrap.servers": kafka.bootstrap_servers,
        "subscribe": "t",
        "startingOffsets": "earliest",
        **given,
    }


def load(spark: SparkSession, kafka: EmbeddedCluster, name: str = "kclient", **extra: str) -> DataFrame:
    stream = spark.readStream.format(name).options(**options_of(kafka, **extra))
    return stream.schema("partition int, offset long").load()


def to_parquet(frame: DataFrame, where: Path) -> DataStreamWriter:
    return (
        frame.writeStream.format("parquet")
        .option("path", str(where / "rows"))
        .option("checkpointLocation", str(where / "checkpoint"))
    )


def patiently(action: Callable[[], T]) -> T:
    """Spark gives its streaming process ten seconds to start, which a busy machine may not keep: then once more."""
    try:
        return action()
    except StreamingQueryException as exc:
        if "failed to connect back" not in str(exc):
            raise
        return action()


def run(writer: DataStreamWriter) -> StreamingQuery:
    """Start a query and see it end."""

    def to_its_end() -> StreamingQuery:
        query = writer.start()
        assert query.awaitTermination(SECONDS)
        return query

    return patiently(to_its_end)


def rows_in(spark: SparkSession, where: Path) -> list[tuple[int, int]]:
    frame = spark.read.schema("partition int, offset long").parquet(str(where / "rows"))
    return sorted((row.partition, row.offset) for row in frame.collect())


def batches_of(where: Path) -> list[int]:
    return sorted(int(file.name) for file in (where / "checkpoint/commits").iterdir() if file.name.isdigit())


@pytest.mark.spec("ST-11", "ST-12", "SP-18", "SP-19", "SP-20", "SP-22", "SP-52")
def test_spark_calls_in_the_order_that_is_relied_on(
    spark: SparkSession, kafka: EmbeddedCluster, tmp_path: Path
) -> None:
    fill(kafka, 1500, 1500)
    spark.dataSource.register(RecordingSource)
    notes = tmp_path / "notes"
    frame = load(spark, kafka, "kclient_recorded", maxOffsetsPerTrigger="1200", groupIdPrefix=str(notes))
    run(to_parquet(frame, tmp_path).trigger(availableNow=True))
    assert rows_in(spark, tmp_path) == everything(1500, 1500)
    (driver,) = [names for names in calls(notes).values() if "latestOffset" in names]
    reads = [name for names in calls(notes).values() for name in names if name == "read"]
    later = ["latestOffset", "reportLatestOffset", "commit", "partitions"]
    assert [name for name in driver if name != "stop"] == [
        "prepareForTriggerAvailableNow",
        "getDefaultReadLimit",
        *["initialOffset", "latestOffset", "reportLatestOffset", "initialOffset", "partitions"],
        *later,
        *later,
        *["latestOffset", "reportLatestOffset"],
    ]
    assert len(reads) == 3 * 2


@pytest.mark.spec("ST-12", "ST-14", "SP-24", "SP-56", "I-21")
def test_restarts_lose_nothing_and_repeat_nothing(
    spark: SparkSession, kafka: EmbeddedCluster, tmp_path: Path
) -> None:
    """A batch that failed in the sink, first the very first one, then a later one, runs again with the same offsets."""
    fill(kafka, 100, 60)
    seen: dict[int, list[list[tuple[int, int]]]] = {}
    failing = {0, 2}

    def sink(frame: DataFrame, batch: int) -> None:
        seen.setdefault(batch, []).append(sorted((row.partition, row.offset) for row in frame.collect()))
        if batch in failing:
            failing.remove(batch)
            raise RuntimeError("the sink is down")

    frame = load(spark, kafka, maxOffsetsPerTrigger="80", minPartitions="3")
    writer = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(tmp_path / "c"))
    for _ in range(2):
        with pytest.raises(Exception, match="the sink is down"):
            run(writer.trigger(availableNow=True))
        fill(kafka, 40)
    run(writer.trigger(availableNow=True))
    assert all(again == seen[batch][0] for batch in seen for again in seen[batch])
    assert [len(seen[batch]) for batch in (0, 2)] == [2, 2]
    assert sorted(row for batch in seen for row in seen[batch][0]) == everything(180, 60)


@pytest.mark.spec("ST-14", "SP-06", "SP-24")
def test_a_worker_that_is_killed_in_a_batch(
    spark: SparkSession, kafka: EmbeddedCluster, tmp_path: Path
) -> None:
    fill(kafka, 4000, 4000)
    marker = str(tmp_path / "killed")

    def kill_once(rows: Any) -> Iterator[Any]:
        for number, row in enumerate(rows):
            if number == 1500 and not os.path.exists(marker):
                with open(marker, "w"):
                    os.kill(os.getpid(), signal.SIGKILL)
            yield row

    found: list[tuple[int, int]] = []

    def sink(frame: DataFrame, batch: int) -> None:
        found.extend(frame.rdd.mapPartitions(kill_once).map(tuple).collect())

    writer = load(spark, kafka).writeStream.foreachBatch(sink)
    run(writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True))
    assert os.path.exists(marker)
    assert sorted(found) == everything(4000, 4000)


@pytest.mark.spec("ST-12", "ST-16", "SP-22", "SP-23", "SP-50", "SP-69", "SP-70")
def test_a_running_query_sees_new_partitions_and_the_group_follows(
    spark: SparkSession, kafka: EmbeddedCluster, tmp_path: Path
) -> None:
    fill(kafka, 10, 10)
    tracker = track(spark, options=options_of(kafka), group="lake")

    def begin() -> StreamingQuery:
        query = to_parquet(load(spark, kafka), tmp_path).trigger(processingTime="0 seconds").start()
        query.processAllAvailable()
        return query

    query = patiently(begin)
    kafka.add_partitions("t", 3)
    kafka.produce("t", [b"x"] * 5, partition=2)
    query.processAllAvailable()
    fill(kafka, 1, 1, 1)
    query.processAllAvailable()
    query.stop()
    assert tracker.close(query.lastProgress)
    assert rows_in(spark, tmp_path) == everything(11, 11, 6)
    report = lag("lake", bootstrap_servers=kafka.bootstrap_servers)
    assert report.total == 0
    assert [one.committed.offset for one in report.partitions if one.committed] == [11, 11, 6]
    metadata = json.loads(report.partitions[0].committed.metadata) if report.partitions[0].committed else {}
    assert metadata["query"] == str(query.id)


@pytest.mark.spec("ST-16", "SP-70")
@pytest.mark.kafka_cluster(brokers=2, topics={"orders": 2})
def test_the_example_of_the_page_leaves_no_lag(
    spark: SparkSession, kafka: EmbeddedCluster, tmp_path: Path
) -> None:
    fill(kafka, 50, 30, topic="orders")
    (block,) = python_blocks(PAGE.read_text(encoding="utf-8"))
    block = block.replace("localhost:9092", kafka.bootstrap_servers).replace('"lake/', f'"{tmp_path}/')
    names: dict[str, Any] = {"spark": spark}
    patiently(lambda: exec(compile(block, PAGE.name, "exec"), names))
    assert lag("lake-orders", bootstrap_servers=kafka.bootstrap_servers).total == 0
    assert kafka.committed("lake-orders") == {
        TopicPartition("orders", 0): 50,
        TopicPartition("orders", 1): 30,
    }
    assert [source.total for source in names["tracker"].lag] == [0]


@pytest.mark.spec("ST-12", "SP-22")
def test_once_takes_no_limit(spark: SparkSession, kafka: EmbeddedCluster, tmp_path: Path) -> None:
    fill(kafka, 300, 300)
    frame = load(spark, kafka, maxOffsetsPerTrigger="100")
    run(to_parquet(frame, tmp_path).trigger(once=True))
    assert (len(rows_in(spark, tmp_path)), batches_of(tmp_path)) == (600, [0])


@pytest.mark.spec("ST-12", "SP-24", "SP-57")
def test_an_error_of_the_driver_says_what_and_what_to_do(
    spark: SparkSession, kafka: EmbeddedCluster, tmp_path: Path
) -> None:
    fill(kafka, 10)
    options = {"fetchOffset__numRetries": "1", "fetchOffset__retryIntervalMs": "10"}
    writer = to_parquet(load(spark, kafka, **options), tmp_path).trigger(availableNow=True)
    run(writer)
    kafka.delete_topic("t")
    with pytest.raises(Exception, match=r"t-0 does not exist any more[\s\S]*failOnDataLoss"):
        run(writer)


@pytest.mark.spec("ST-15", "SP-21", "SP-46", "I-21")
def test_a_checkpoint_of_sparks_own_source_continues(
    spark: SparkSession, kafka: EmbeddedCluster, tmp_path: Path
) -> None:
    """Written as that source writes it: no spaces, partitions in the order of a hash map."""
    fill(kafka, 30, 20)
    start, end = '{"t":{"1":0,"0":0}}', '{"t":{"1":20,"0":30}}'
    settings = {"batchWatermarkMs": 0, "batchTimestampMs": 1_700_000_000_000, "conf": {}}
    files = {
        "metadata": json.dumps({"id": str(uuid.uuid4())}),
        "sources/0/0": f"\0v1\n{start}",
        "offsets/0": f"v1\n{json.dumps(settings)}\n{end}",
        "commits/0": 'v1\n{"nextBatchWatermarkMs":0}',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    seen: list[tuple[int, list[tuple[int, int]]]] = []

    def sink(frame: DataFrame, batch: int) -> None:
        seen.append((batch, sorted((row.partition, row.offset) for row in frame.collect())))

    writer = load(spark, kafka).writeStream.foreachBatch(sink).option("checkpointLocation", str(tmp_path))
    run(writer.trigger(availableNow=True))
    assert seen == [(1, [])]
    fill(kafka, 2, 1)
    run(writer.trigger(availableNow=True))
    assert seen == [(1, []), (2, [(0, 30), (0, 31), (1, 20)])]
