"""Ingest through Spark's own sink: files that `_spark_metadata` names, tables, sizes, schemas that are found."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kclient.embedded import EmbeddedCluster
from kclient.errors import ConfigError, SinkError
from kclient.spark.ingest import sinks
from kclient.spark.ingest.checkpoint import Checkpoint, Job
from kclient.spark.ingest.settings import IngestSettings
from kclient.spark.ingest.spark_session import check_catalog_lasts
from kclient.spark.sink import manifest, spark_metadata
from tests.docs.blocks import python_blocks
from tests.spark.jobs.support import ends, fill, landed_in, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[3] / "docs" / "direct-parquet.md"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def land(cluster: EmbeddedCluster, root: Path, **changed: Any) -> Any:
    """Run a job with Spark to its end."""
    return run(cluster, root, engine="spark", **{"writer": "spark", "parallelism": None, **changed})


def job_of(root: Path) -> Job:
    job = Checkpoint(root / "checkpoint").job()
    assert job is not None
    return job


@pytest.mark.spec("SP-81", "SP-82", "SP-86")
def test_rows_land_once_in_a_directory_that_spark_reads(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    wanted = fill(cluster, 150)
    reporter = land(cluster, tmp_path, partition_by="topic,date(timestamp)")
    sink = tmp_path / "sink"
    assert [batch.rows for batch in reporter.batches] == [60, 60, 30]
    assert [batch.lag_records for batch in reporter.batches] == [90, 30, 0]
    assert cluster.committed("lake") == ends(wanted)
    wanted += fill(cluster, 20, first=150)
    again = land(cluster, tmp_path, partition_by="topic,date(timestamp)")
    assert (again.plans[0].checkpoint.next_batch, again.results[0].rows) == (3, 20)
    assert landed_in(spark_metadata.files(sink)) == sorted(wanted)
    assert spark_metadata.count(sink) == len(wanted) == sum(b.rows for b in reporter.batches + again.batches)
    assert sinks.rows(job_of(tmp_path)) == len(wanted)
    frame = spark.read.parquet(str(sink))
    assert frame.count() == len(wanted)
    assert Counter(row["_ingest_batch"] for row in frame.collect()) == {0: 60, 1: 60, 2: 30, 3: 20}
    assert {row["topic"] for row in frame.select("topic").distinct().collect()} == {"orders"}
    assert not (sink / manifest.DIRECTORY).exists()


@pytest.mark.spec("SP-81")
def test_a_sink_has_one_writer_and_one_job(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    fill(cluster, 9)
    land(cluster, tmp_path)
    other = {"checkpoint": str(tmp_path / "other")}
    with pytest.raises(SinkError, match="holds 1 batch of another job"):
        land(cluster, tmp_path, **other)
    with pytest.raises(SinkError, match="written with --writer spark: its _spark_metadata lists"):
        run(cluster, tmp_path, **other)
    assert spark_metadata.count(tmp_path / "sink") == 9


@pytest.mark.parametrize("content", ["", "{", "{}", "[]", "1", "[" * 100_000])
def test_a_sink_that_does_not_say_whose_it_is_is_reported_as_damaged(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path, content: str
) -> None:
    fill(cluster, 9)
    (tmp_path / "sink" / "_spark_metadata").mkdir(parents=True)
    (tmp_path / "sink" / "_spark_metadata" / "0").write_text("v1")
    (tmp_path / "sink" / sinks.OWN).mkdir()
    (tmp_path / "sink" / sinks.OWN / "job.json").write_text(content)
    with pytest.raises(SinkError, match="which names the job of the batches, cannot be understood"):
        land(cluster, tmp_path)


@pytest.mark.spec("SP-81", "SP-82")
def test_a_sink_that_is_not_mounted_is_refused(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    wanted = fill(cluster, 9)
    land(cluster, tmp_path)
    (tmp_path / "sink").rename(tmp_path / "unmounted")
    wanted += fill(cluster, 9, first=9)
    with pytest.raises(SinkError, match="does not hold batch 0"):
        land(cluster, tmp_path)
    assert not (tmp_path / "sink").exists()
    (tmp_path / "unmounted").rename(tmp_path / "sink")
    land(cluster, tmp_path)
    assert landed_in(spark_metadata.files(tmp_path / "sink")) == sorted(wanted)


@pytest.mark.spec("SP-89")
def test_small_ranges_share_a_file_and_large_ones_are_cut(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    fill(cluster, 90)
    reporter = land(cluster, tmp_path / "one", target_file_mb=128, max_per_trigger=None)
    assert [(batch.rows, batch.files) for batch in reporter.batches] == [(90, 1)]
    cluster.create_topic("large", 1)
    cluster.produce("large", [bytes([n]) * 50_000 for n in range(60)], partition=0)
    reporter = land(
        cluster, tmp_path / "more", topics="large", target_file_mb=1, max_per_trigger=None, codec="none"
    )
    assert [(batch.rows, batch.files) for batch in reporter.batches] == [(60, reporter.plans[0].tasks)]
    assert all(500_000 < file.bytes < 1_200_000 for file in spark_metadata.logged(tmp_path / "more/sink"))
    kept = json.loads((tmp_path / "more/checkpoint/kclient/files.json").read_text())
    assert kept == {"target_mb": 1, "rows": pytest.approx(20, abs=2)}


@pytest.mark.spec("SP-87")
def test_a_schema_is_found_frozen_and_grows_on_request(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    infer = {"format": "json", "schema": "infer", "max_per_trigger": None}
    cluster.produce("orders", [b'{"id": 1, "at": {"x": 1.5}}', b'{"id": 2, "tags": ["a"], "odd": null}'])
    land(cluster, tmp_path, **infer)
    frozen = Checkpoint(tmp_path / "checkpoint").schema()
    assert frozen == "`at` struct<`x`:double>, `id` bigint, `tags` array<string>"
    cluster.produce("orders", [b'{"id": 3, "at": {"x": 2, "y": 1}, "new": true, "odd": "yes"}'])
    land(cluster, tmp_path, **infer)
    assert Checkpoint(tmp_path / "checkpoint").schema() == frozen
    cluster.produce("orders", [b'{"id": 4, "at": {"x": 2, "y": 2}, "new": false}'])
    land(cluster, tmp_path, **infer, on_new_field="add")
    assert Checkpoint(tmp_path / "checkpoint").schema() == (
        "`at` struct<`x`:double,`y`:bigint>, `id` bigint, `tags` array<string>, `new` boolean"
    )
    frame = spark.read.option("mergeSchema", "true").parquet(str(tmp_path / "sink"))
    assert dict(frame.dtypes)["_rescued"] == "variant"
    rows = (
        frame.selectExpr("id", "at.x", "at.y", "new", "to_json(_rescued) AS rescued").orderBy("id").collect()
    )
    assert [tuple(row) for row in rows] == [
        (1, 1.5, None, None, None),
        (2, None, None, None, '{"odd":null}'),
        (3, 2.0, None, None, '{"at":{"y":1},"new":true,"odd":"yes"}'),
        (4, 2.0, 2, False, None),
    ]


@pytest.mark.spec("SP-87")
def test_a_found_schema_serves_the_direct_writer_too(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    cluster.produce("orders", [b'{"id": 1}', b"nonsense"], partition=0)
    infer = {"format": "json", "schema": "infer", "writer": "direct", "on_bad_record": "null"}
    assert land(cluster, tmp_path, **infer).results[0].bad_records == 1
    cluster.produce("orders", [b'{"id": 2, "more": [1, {"a": "b"}]}'], partition=0)
    land(cluster, tmp_path, **infer)
    files = manifest.files(tmp_path / "sink")
    assert {path.rpartition("-")[2] for path in files} == {"000000000000.parquet", "000000000001.parquet"}
    tables = [pq.read_table(path, partitioning=None) for path in files]
    rows = pa.concat_tables(tables).select(["_offset", "id", "_rescued"]).to_pylist()
    assert sorted(tuple(row.values()) for row in rows) == [
        (0, 1, None),
        (1, None, None),
        (2, 2, '{"more":[1, {"a": "b"}]}'),
    ]
    with pytest.raises(ConfigError, match="found no JSON objects"):
        land(cluster, tmp_path / "empty", **infer, start="latest")


@pytest.mark.spec("SP-89")
def test_a_table_is_written_by_its_own_format(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    wanted = fill(cluster, 30)
    spark.sql(f"CREATE DATABASE IF NOT EXISTS lake LOCATION '{tmp_path / 'warehouse'}'")
    try:
        reporter = land(cluster, tmp_path, sink="table:spark_catalog.lake.orders")
        assert [(batch.rows, batch.files) for batch in reporter.batches] == [(30, 0)]
        fill(cluster, 5, first=30)
        land(cluster, tmp_path, sink="table:spark_catalog.lake.orders")
        assert spark.table("lake.orders").count() == len(wanted) + 5
        assert sinks.rows(job_of(tmp_path)) is None
    finally:
        spark.sql("DROP DATABASE lake CASCADE")


def test_a_table_that_spark_refuses_is_named_with_its_reason(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    fill(cluster, 3)
    spark.sql(f"CREATE DATABASE IF NOT EXISTS pond LOCATION '{tmp_path / 'warehouse'}'")
    spark.sql("CREATE VIEW pond.orders AS SELECT 1 AS id")
    try:
        with pytest.raises(ConfigError, match=r"Spark refuses to write to spark_catalog.pond.orders: .*view"):
            land(cluster, tmp_path, sink="table:spark_catalog.pond.orders")
    finally:
        spark.sql("DROP DATABASE pond CASCADE")


@pytest.mark.parametrize(
    ("sink", "kept", "refused"),
    [
        ("table:spark_catalog.lake.orders", "in-memory", True),
        ("table:spark_catalog.lake.orders", "hive", False),
        ("table:ice.lake.orders", "in-memory", False),
        ("parquet:/lake/orders", "in-memory", False),
    ],
)
def test_a_table_of_a_catalog_that_ends_with_the_run_is_refused(sink: str, kept: str, refused: bool) -> None:
    settings = IngestSettings.parse(
        {"bootstrap": "b:1", "topics": "t", "checkpoint": "/lake/ckpt", "sink": sink, "writer": "spark"}
    )
    session = SimpleNamespace(conf={"spark.sql.catalogImplementation": kept})
    with pytest.raises(ConfigError, match="would not find the table") if refused else nullcontext():
        check_catalog_lasts(session, settings)  # type: ignore[arg-type]


@pytest.mark.spec("SP-89")
def test_a_table_format_that_is_not_there_says_which_jar_and_how(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    fill(cluster, 3)
    with pytest.raises(ConfigError, match=r"this Spark has no catalog nowhere.*iceberg-spark-runtime-4"):
        land(cluster, tmp_path / "a", sink="table:nowhere.db.orders")
    spark.conf.set("spark.sql.catalog.ice", "org.apache.iceberg.spark.SparkCatalog")
    with pytest.raises(ConfigError, match=r"no JAR of this Spark has that class.*delta-spark_4.3_2.13"):
        land(cluster, tmp_path / "b", sink="table:ice.db.orders")


@pytest.mark.spec("SP-78", "SP-81")
def test_the_blocks_of_the_page_on_reading_both_kinds_of_sink(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    *_, direct, own = python_blocks(PAGE.read_text(encoding="utf-8"))
    monkeypatch.chdir(tmp_path)
    fill(cluster, 40)
    run(cluster, tmp_path, sink="parquet:lake/raw")
    exec(compile(direct, PAGE.name, "exec"), {"spark": spark})
    land(cluster, tmp_path, sink="parquet:lake/spark", checkpoint="other", max_per_trigger=None)
    counted = Path(spark_metadata.files("lake/spark")[0])
    shutil.copy(counted, counted.with_name("part-00000-killed.c000.zstd.parquet"))
    counted.with_name("part-00001-killed.c000.zstd.parquet").touch()
    exec(compile(own, PAGE.name, "exec"), {})
    assert (
        spark.read.parquet(str(tmp_path / "lake/spark")).count() == spark_metadata.count("lake/spark") == 40
    )
    with pytest.raises(duckdb.Error):
        duckdb.sql("SELECT count(*) FROM 'lake/spark/*/*.parquet'").fetchall()
    with pytest.raises(pa.ArrowInvalid, match="file size is 0 bytes"):
        pq.read_table("lake/spark")
