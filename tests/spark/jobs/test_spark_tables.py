"""Ingest into tables with Spark: executors write the files, the driver commits, and each record is there once."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars
import pytest
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException

import kclient.spark
from kclient.embedded import EmbeddedCluster
from kclient.errors import ConfigError, DataLossError, SinkError
from kclient.spark.ingest.batch_commit import BatchCommitter
from tests.spark.jobs.delta_job_support import DeltaLake
from tests.spark.jobs.iceberg_support import Lake
from tests.spark.jobs.support import ends, fill, run
from tests.spark.jobs.table_support import TableLake, assert_exactly_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(params=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> TableLake:
    return DeltaLake(tmp_path) if request.param == "delta" else Lake(tmp_path)


def land(lake: TableLake, cluster: EmbeddedCluster, **changed: Any) -> Any:
    """Run a job with Spark to its end."""
    return lake.run(cluster, engine="spark", **{"parallelism": None, **changed})


def test_executors_write_and_the_driver_commits(
    spark: SparkSession, cluster: EmbeddedCluster, lake: TableLake
) -> None:
    wanted = fill(cluster, 150)
    reporter = land(lake, cluster, partition_by="topic,date(timestamp)")
    assert [batch.rows for batch in reporter.batches] == [60, 60, 30]
    assert reporter.results[0].bytes > 0
    assert cluster.committed("lake") == ends(wanted)
    wanted += fill(cluster, 20, first=150)
    assert land(lake, cluster, partition_by="topic,date(timestamp)").results[0].rows == 20
    assert_exactly_once(lake, wanted)


def test_a_lost_checkpoint_of_spark_follows_the_table(
    spark: SparkSession, cluster: EmbeddedCluster, lake: TableLake
) -> None:
    wanted = fill(cluster, 150)
    land(lake, cluster)
    shutil.rmtree(lake.checkpoint)
    wanted += fill(cluster, 20, first=150)
    again = land(lake, cluster)
    assert (again.batches[0].batch, again.results[0].rows) == (3, 20)
    wanted += fill(cluster, 5, first=170)
    assert land(lake, cluster).results[0].rows == 5
    assert_exactly_once(lake, wanted)


def test_a_log_that_was_cut_ends_the_job_before_it_writes(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    lake, wanted = DeltaLake(tmp_path), fill(cluster, 30)
    lossy: dict[str, Any] = {"fail_on_data_loss": False, "options": {"fetchOffset.numRetries": "0"}}
    land(lake, cluster, **lossy)
    cluster.truncate("orders", 0, 3)
    with pytest.raises(DataLossError, match="The offsets of this job come again, as those of other records"):
        land(lake, cluster, **lossy)
    assert_exactly_once(lake, wanted)


@pytest.mark.exhaustive
def test_a_checkpoint_of_spark_that_is_behind_follows_the_table(
    spark: SparkSession, cluster: EmbeddedCluster, lake: TableLake
) -> None:
    wanted = fill(cluster, 150)
    land(lake, cluster)
    for name in ("offsets/2", "offsets/.2.crc", "commits/2", "commits/.2.crc", "commits/1", "commits/.1.crc"):
        (lake.checkpoint / name).unlink()
    wanted += fill(cluster, 20, first=150)
    assert land(lake, cluster).results[0].rows == 20
    assert_exactly_once(lake, wanted)


@pytest.mark.exhaustive
def test_a_driver_that_dies_after_the_commit_lands_nothing_twice(
    spark: SparkSession, cluster: EmbeddedCluster, lake: TableLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = fill(cluster, 100)
    works = BatchCommitter.count

    def dying(self: BatchCommitter, *args: Any) -> Any:
        works(self, *args)
        raise SinkError("the driver dies")

    monkeypatch.setattr(BatchCommitter, "count", dying)
    with pytest.raises(SinkError, match="the driver dies"):
        land(lake, cluster)
    monkeypatch.undo()
    land(lake, cluster)
    assert_exactly_once(lake, wanted)


@pytest.mark.exhaustive
def test_a_schema_that_spark_finds_makes_the_table(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    lake = DeltaLake(tmp_path)
    cluster.produce("orders", ['{"id": 1, "name": "a"}', '{"id": 2, "name": "b"}'])
    land(lake, cluster, format="json", schema="infer")
    cluster.produce("orders", ['{"id": 3, "name": "c"}'])
    run(
        cluster, tmp_path, sink=f"delta:{lake.where}", engine="spark", parallelism=None,
        format="json", schema="infer",
    )  # fmt: skip
    rows = polars.read_delta(lake.where).sort("id")
    assert (rows["id"].to_list(), rows["name"].to_list()) == ([1, 2, 3], ["a", "b", "c"])


# --- a query of the user's own


def stream(spark: SparkSession, cluster: EmbeddedCluster) -> Any:
    """What a user's query may be: two columns of its own, and a filter."""
    options = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": "orders"}
    frame = spark.readStream.format("kclient").options(**options, startingOffsets="earliest").load()
    return frame.selectExpr("CAST(value AS STRING) AS text", "timestamp AS at").where("text <> 'value 3'")


def landed(spark: SparkSession, cluster: EmbeddedCluster, root: Path, land: Any) -> None:
    writer = stream(spark, cluster).writeStream.foreachBatch(land).trigger(availableNow=True)
    writer.option("checkpointLocation", str(root / "query")).start().awaitTermination()


def test_a_query_of_the_users_own_lands_each_batch_once(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    where = str(tmp_path / "table")
    land = kclient.spark.table_writer(f"delta:{where}", job="own", partition_by="day(at)")
    fill(cluster, 20)
    landed(spark, cluster, tmp_path, land)
    fill(cluster, 10, first=20)

    def dying(frame: Any, batch: int) -> None:
        land(frame, batch)
        raise SinkError("the driver dies")

    with pytest.raises(StreamingQueryException, match="the driver dies"):
        landed(spark, cluster, tmp_path, dying)
    landed(spark, cluster, tmp_path, land)
    table = polars.read_delta(where)
    assert sorted(table["text"]) == sorted(f"value {n}" for n in range(30) if n != 3)
    assert DeltaTable(where).version() == 2
    assert table.columns == ["text", "at", "at_day"]


def test_another_query_of_the_same_job_is_refused_whatever_its_batch(
    spark: SparkSession, cluster: EmbeddedCluster, lake: TableLake
) -> None:
    """Or the same one with a new checkpoint: its batch 0 is not that of the table."""
    settings = lake.settings()
    arguments = {"job": "own", "catalog": settings.get("catalog")}
    fill(cluster, 20)
    landed(spark, cluster, lake.root, kclient.spark.table_writer(settings["sink"], **arguments))
    for _ in range(2):  # with as many batches as the other one, and with more
        with pytest.raises(StreamingQueryException, match="Another query lands as the job own"):
            landed(
                spark, cluster, lake.root / "new", kclient.spark.table_writer(settings["sink"], **arguments)
            )
        fill(cluster, 10, first=20)
        landed(spark, cluster, lake.root, kclient.spark.table_writer(settings["sink"], **arguments))
    table = lake.open()
    assert table.rows(table.load()) == 39


@pytest.mark.parametrize(
    ("sink", "job", "reason"),
    [
        ("parquet:/lake", "own", "parquet:/lake is no table"),
        ("delta:", "own", "must be parquet:"),
        ("delta:/lake", "a b", "must be 1 to 100 letters"),
    ],
)
def test_arguments_of_a_table_writer_are_checked_at_once(sink: str, job: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        kclient.spark.table_writer(sink, job=job)
