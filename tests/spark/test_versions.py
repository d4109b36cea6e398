"""What each Spark can do, from 4.0 on: the table in docs/spark.md. `make test-spark-versions` runs this on all."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.spark import register, track
from tests.docs.blocks import python_blocks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming import StreamingQuery

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.kafka_cluster(brokers=2, topics={"orders": 3}),
]

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"
SECONDS = 120


@pytest.fixture
def minor(spark: SparkSession) -> str:
    """The release that this run is about, 4.0 to 4.3."""
    return ".".join(spark.version.split(".")[:2])


@pytest.fixture
def can(minor: str) -> Callable[[str], str]:
    """What the page's table says for this release, by column."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    head = next(_cells(line) for line in lines if line.startswith("| Spark |"))
    row = next(_cells(line) for line in lines if minor in re.findall(r"\d\.\d", _cells(line)[0]))
    return lambda column: row[head.index(column)]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def load(spark: SparkSession, kafka: EmbeddedCluster, **options: str) -> DataFrame:
    given = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": "orders"}
    return spark.read.format("kclient").options(**given, **_dotted(options)).load()


class Stream:
    """A query that is stopped and started again with the checkpoint in its folder; its rows land beside it."""

    def __init__(self, spark: SparkSession, kafka: EmbeddedCluster, folder: Path, **options: str) -> None:
        self._spark = spark
        self._folder = folder
        self.options = {
            "kafka.bootstrap.servers": kafka.bootstrap_servers,
            "subscribe": "orders",
            "startingOffsets": "earliest",
            **_dotted(options),
        }

    def run(self, **trigger: Any) -> StreamingQuery:
        """Read what there is and end."""
        frame = self._spark.readStream.format("kclient").options(**self.options).load()
        writer = frame.writeStream.format("parquet").option("path", str(self._folder / "rows"))
        writer = writer.option("checkpointLocation", str(self._folder / "checkpoint"))
        query = writer.trigger(**(trigger or {"availableNow": True})).start()
        if not query.awaitTermination(SECONDS):
            query.stop()
            pytest.fail(f"the query did not end in {SECONDS} s", pytrace=False)
        return query

    def rows(self) -> list[tuple[int, int]]:
        """(partition, offset) of everything that landed."""
        frame = self._spark.read.parquet(str(self._folder / "rows"))
        return sorted(
            (row["partition"], row["offset"]) for row in frame.select("partition", "offset").collect()
        )


def _dotted(options: dict[str, str]) -> dict[str, str]:
    return {name.replace("__", "."): value for name, value in options.items()}


def fill(kafka: EmbeddedCluster, each: int) -> None:
    for partition in range(3):
        kafka.produce("orders", [b"%d" % number for number in range(each)], partition=partition)


def everything(each: int) -> list[tuple[int, int]]:
    return [(partition, offset) for partition in range(3) for offset in range(each)]


@pytest.mark.spec("SP-01", "SP-36", "ST-21")
def test_a_batch(spark: SparkSession, kafka: EmbeddedCluster, minor: str, can: Callable[[str], str]) -> None:
    fill(kafka, 2_000)
    assert can("batch") == "yes"
    frame = load(spark, kafka)
    rows: list[Row] = frame.selectExpr("partition", "offset", "CAST(value AS STRING) AS text").collect()
    assert sorted((row["partition"], row["offset"]) for row in rows) == everything(2_000)
    assert all(row["text"] == str(row["offset"]) for row in rows)
    assert frame.where("partition = 1 AND offset >= 10 AND offset < 15").count() == 5
    kafka.produce("orders", [b"late"], partition=0)
    assert frame.count() == (6_001 if can("a frame's end") == "each action" else 6_000)


@pytest.mark.spec("SP-30", "SP-35", "ST-21")
def test_the_examples_of_the_page(spark: SparkSession, kafka: EmbeddedCluster, tmp_path: Path) -> None:
    fill(kafka, 20)
    page = PAGE.read_text(encoding="utf-8").replace("localhost:9092", kafka.bootstrap_servers)
    page = page.replace('"lake/', f'"{tmp_path}/')
    names: dict[str, Any] = {}
    for block in python_blocks(page):
        exec(compile(block, PAGE.name, "exec"), names)
    assert names["spark"] is spark
    assert names["values"].count() == 60
    assert spark.read.parquet(str(tmp_path / "orders")).count() == 60
    (view,) = re.findall(r"^```sql\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    spark.sql(view)
    assert spark.sql("SELECT count(*) FROM orders").first()[0] == 60
    spark.catalog.dropTempView("orders")


@pytest.mark.spec("SP-34")
def test_registering_a_source_that_is_known_already(spark: SparkSession, kafka: EmbeddedCluster) -> None:
    fill(kafka, 10)
    assert load(spark, kafka).count() == 30
    register(spark)
    register(spark)
    assert load(spark, kafka).count() == 30


@pytest.mark.spec("SP-01", "SP-09", "SP-46", "ST-21")
def test_a_stream_without_limits(
    spark: SparkSession, kafka: EmbeddedCluster, tmp_path: Path, can: Callable[[str], str]
) -> None:
    assert can("stream") == "yes"
    stream = Stream(spark, kafka, tmp_path)
    fill(kafka, 500)
    stream.run()
    assert stream.rows() == everything(500)
    fill(kafka, 500)
    stream.run()
    assert stream.rows() == everything(1_000)


@pytest.mark.spec("SP-01", "SP-22", "SP-52", "SP-53", "ST-21")
def test_a_stream_with_a_limit(
    spark: SparkSession, kafka: EmbeddedCluster, tmp_path: Path, can: Callable[[str], str]
) -> None:
    fill(kafka, 500)
    stream = Stream(spark, kafka, tmp_path, maxOffsetsPerTrigger="600")
    if can("`maxOffsetsPerTrigger` and other limits") == "refused":
        with pytest.raises(Exception, match=r"need pyspark 4\.2 or newer"):
            stream.run()
        return
    query = stream.run()
    assert stream.rows() == everything(500)
    assert [one["numInputRows"] for one in query.recentProgress if one["numInputRows"]] == [600, 600, 300]


@pytest.mark.spec("SP-69", "SP-70", "ST-16", "ST-21")
def test_progress_in_a_group(spark: SparkSession, kafka: EmbeddedCluster, tmp_path: Path) -> None:
    fill(kafka, 100)
    stream = Stream(spark, kafka, tmp_path)
    tracker = track(spark, options=stream.options, group="lake")
    try:
        query = stream.run()
    finally:
        tracker.close(query.lastProgress)
    assert kafka.committed("lake") == {("orders", partition): 100 for partition in range(3)}
