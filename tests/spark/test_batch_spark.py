"""Batches inside Spark, of the embedded cluster: filters that save reading, a group's commits, what Spark looks up."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kclient.embedded import EmbeddedCluster

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.kafka_cluster(topics={"t": 3, "u": 1}),
]

WORKER_LOGS = "spark.sql.pyspark.worker.logging.enabled"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
EXAMPLE = "partition = 1 AND offset >= 100 AND offset < 110 AND topic = 't'"
BEGIN_MS = int(time.time() - 3600) * 1000  # not so long ago that retention takes the records
ROOT = Path(__file__).parents[2]


@pytest.fixture
def filled(kafka: EmbeddedCluster) -> EmbeddedCluster:
    """Topics t and u with 200 records in each partition, one a second from BEGIN on."""
    for topic, partitions in (("t", 3), ("u", 1)):
        for partition in range(partitions):
            for number in range(200):
                at = BEGIN_MS + number * 1000
                kafka.produce(topic, [b"%d" % number], partition=partition, timestamp_ms=at)
    return kafka


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[SparkSession]:
    """A session that pushes filters down."""
    spark.conf.set(PUSHDOWN, "true")
    yield spark
    spark.conf.unset(PUSHDOWN)


def load(spark: SparkSession, kafka: EmbeddedCluster, **options: str) -> DataFrame:
    servers = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": "t,u"}
    return spark.read.format("kclient").options(**servers, **options).load()


def fetched(kafka: EmbeddedCluster) -> set[tuple[str, int, int]]:
    """Topic, partition and offset of every Fetch since the requests were forgotten."""
    ids = {topic.topic_id: name for name, topic in kafka.state.topics.items()}
    return {
        (ids.get(topic.topic_id, topic.topic), one.partition, one.fetch_offset)
        for request in kafka.requests
        if request.api == "Fetch"
        for topic in request.request.topics
        for one in topic.partitions
    }


@pytest.mark.spec("SP-31", "SP-32", "ST-10")
def test_filters_decide_what_is_fetched(pushing: SparkSession, filled: EmbeddedCluster) -> None:
    filled.forget_requests()
    narrow = load(pushing, filled, pushdownFilters="true").where(EXAMPLE)
    rows = narrow.collect()
    assert sorted((row.topic, row.partition, row.offset) for row in rows) == [
        ("t", 1, offset) for offset in range(100, 110)
    ]
    assert fetched(filled) == {("t", 1, 100)}


@pytest.mark.spec("SP-31", "SP-32", "ST-10")
def test_the_rows_are_those_of_a_batch_that_pushes_nothing(
    pushing: SparkSession, filled: EmbeddedCluster
) -> None:
    wanted = (
        f"timestamp >= timestamp_millis({BEGIN_MS + 150_000}) AND partition IN (0, 2) AND topic != 'u' "
        "AND (offset < 160 OR offset = 199) AND offset > 10"
    )
    filled.forget_requests()
    narrow = load(pushing, filled, pushdownFilters="true").where(wanted).collect()
    assert {(topic, partition) for topic, partition, _ in fetched(filled)} == {("t", 0), ("t", 2), ("u", 0)}
    assert min(offset for _, _, offset in fetched(filled)) == 150
    whole = load(pushing, filled).where(wanted).collect()
    assert sorted(narrow) == sorted(whole)
    assert len(whole) == 2 * 11


@pytest.mark.spec("SP-31")
def test_spark_refuses_pushdown_while_its_setting_is_off(
    spark: SparkSession, filled: EmbeddedCluster
) -> None:
    with pytest.raises(Exception, match="DATA_SOURCE_PUSHDOWN_DISABLED"):
        load(spark, filled, pushdownFilters="true").where(EXAMPLE).collect()
    assert load(spark, filled, pushdownFilters="false").where(EXAMPLE).count() == 10


BROKEN = """
import sys
from pyspark.sql import SparkSession
from kclient.spark import register
from localspark import JAVA_OPTIONS

spark = (
    SparkSession.builder.master("local[1,2]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.extraJavaOptions", JAVA_OPTIONS)
    .getOrCreate()
)
reader = spark.read.format("kclient").option("kafka.bootstrap.servers", sys.argv[1]).option("subscribe", "t")
try:
    reader.load()
except Exception as error:
    print("without register:", str(error))
register(spark)
print("with register:", reader.load().count())
"""


@pytest.mark.spec("SP-34", "ST-10")
def test_a_broken_package_beside_ours_stops_the_lookup_but_not_register(
    filled: EmbeddedCluster, tmp_path: Path
) -> None:
    """Spark looks packages up once in the life of a JVM, so this one is of its own."""
    (tmp_path / "pyspark_broken").mkdir()
    (tmp_path / "pyspark_broken" / "__init__.py").write_text("raise RuntimeError('broken on purpose')\n")
    python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    path = os.pathsep.join([str(ROOT), str(tmp_path)])
    done = subprocess.run(
        [sys.executable, "-c", BROKEN, filled.bootstrap_servers],
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, **python, "PYTHONPATH": path},
        cwd=tmp_path,
        check=False,
    )
    assert "DATA_SOURCE_NOT_FOUND" in done.stdout, done.stderr[-3000:]
    assert "with register: 600" in done.stdout


@pytest.mark.spec("SP-38")
def test_what_a_worker_says_is_in_sparks_table_of_logs(spark: SparkSession, filled: EmbeddedCluster) -> None:
    """Records are deleted between planning and reading; the task goes on without them, and says so."""
    spark.conf.set(WORKER_LOGS, "true")
    try:
        frame = load(spark, filled, failOnDataLoss="false")
        assert frame.count() == 800
        filled.delete_records("u", 0, 150)
        assert frame.count() == 650
        logs = spark.tvf.python_worker_logs().where("level = 'WARNING' AND logger = 'kclient.spark'")
        (said,) = [row.msg for row in logs.collect() if "u-0" in row.msg]
        assert "150" in said
    finally:
        spark.conf.unset(WORKER_LOGS)
