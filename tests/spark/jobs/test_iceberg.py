"""Ingest into an Iceberg table with the direct engine: each record once, read back by pyiceberg, Polars and DuckDB."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest
from confluent_kafka import Producer

from kclient.embedded import EmbeddedCluster
from kclient.errors import ConfigError, SinkError
from kclient.spark.ingest.checkpoint import Checkpoint
from kclient.spark.ingest.settings import IngestSettings
from kclient.spark.sink import manifest
from kclient.spark.sink.iceberg import IcebergTable
from kclient.types import TopicPartition
from tests.spark.jobs.iceberg_support import TABLE, Lake
from tests.spark.jobs.support import Landed, ends, fill, given, run
from tests.spark.jobs.table_support import assert_exactly_once

NEW_YEAR_MS = 1_356_998_400_000  # 2013-01-01T00:00Z


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def test_records_land_in_a_table_once_over_several_runs(cluster: EmbeddedCluster, lake: Lake) -> None:
    wanted = fill(cluster, 100)
    first = lake.run(cluster)
    assert len(first.batches) >= 2
    assert sum(batch.rows for batch in first.batches) == 100
    assert_exactly_once(lake, wanted)
    assert lake.by_duckdb() == sorted(wanted)
    wanted += fill(cluster, 100, first=100)
    assert lake.run(cluster).results[0].rows == 100
    assert_exactly_once(lake, wanted)
    assert lake.run(cluster).batches == []


def test_a_dry_run_makes_no_table(cluster: EmbeddedCluster, lake: Lake) -> None:
    from kclient.spark.ingest.run import plan

    fill(cluster, 10)
    settings = IngestSettings.parse(given(cluster.bootstrap_servers, lake.root, **lake.settings()))
    found = plan(settings)
    assert (found.sink, found.backlog_rows, found.checkpoint.state) == (f"iceberg:{TABLE}", 10, "new")
    assert not lake.catalog.namespace_exists("db")
    assert not lake.checkpoint.exists()


# --- where it goes on ------------------------------------------------------------------------------------------------


def test_a_lost_checkpoint_finds_its_place_in_the_table(
    cluster: EmbeddedCluster, lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = fill(cluster, 100)
    batches = len(lake.run(cluster).batches)
    shutil.rmtree(lake.checkpoint)
    wanted += fill(cluster, 20, first=100)
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        reporter = lake.run(cluster)
    assert f"is new, and {TABLE} holds the job" in caplog.text
    assert reporter.plans[0].checkpoint.next_batch == batches
    assert sum(batch.rows for batch in reporter.batches) == 20
    assert_exactly_once(lake, wanted)
    caplog.clear()
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        assert lake.run(cluster).batches == []
    assert "goes on after that" not in caplog.text


@pytest.mark.parametrize("behind", ["checkpoint", "table"])
def test_a_copy_of_the_checkpoint_or_of_the_table_that_is_older_is_not_believed(
    cluster: EmbeddedCluster, lake: Lake, behind: str, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = fill(cluster, 100)
    lake.run(cluster)
    names = ["checkpoint"] if behind == "checkpoint" else ["catalog.db", "warehouse"]
    for name in names:
        source = lake.root / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, lake.root / f"copy of {name}")
    wanted += fill(cluster, 100, first=100)
    lake.run(cluster)
    for name in names:
        place = lake.root / name
        shutil.rmtree(place) if place.is_dir() else place.unlink()
        (lake.root / f"copy of {name}").rename(place)
    wanted += fill(cluster, 10, first=200)
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        lake.run(cluster)
    assert "the job goes on after that, as the table says" in caplog.text
    assert_exactly_once(lake, wanted)


def test_a_table_that_lost_all_of_the_job_is_refused(cluster: EmbeddedCluster, lake: Lake) -> None:
    fill(cluster, 100)
    lake.run(cluster)
    lake.catalog.drop_table(("db", "orders"))
    with pytest.raises(SinkError, match=r"does not hold batch .* which the checkpoint .* has landed there"):
        lake.run(cluster)
    assert not lake.catalog.table_exists(("db", "orders"))


def test_the_name_of_a_job_is_kept_and_can_be_given(cluster: EmbeddedCluster, lake: Lake) -> None:
    wanted = fill(cluster, 30)
    lake.run(cluster, job="nightly")
    assert "kclient.job.nightly" in lake.table.properties
    lake.run(cluster)
    with pytest.raises(ConfigError, match="belongs to the job nightly, and --job says daily"):
        lake.run(cluster, job="daily")
    assert_exactly_once(lake, wanted)


def test_a_second_run_of_the_same_job_beside_the_first_adds_no_row(
    cluster: EmbeddedCluster, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have checkpoints of their own, as on two machines; the second commits while the first one writes."""
    wanted = fill(cluster, 50)
    commit, left = IcebergTable.try_commit, ["once"]

    def overtaken(table: IcebergTable, *arguments: Any) -> None:
        if left:
            left.clear()
            run(cluster, lake.root / "second", **lake.settings(max_per_trigger=40))
        commit(table, *arguments)

    monkeypatch.setattr(IcebergTable, "try_commit", overtaken)
    with pytest.raises(SinkError, match=r"Another run of the job .* has gone on"):
        lake.run(cluster)
    assert_exactly_once(lake, wanted)
    monkeypatch.undo()
    wanted += fill(cluster, 20, first=50)
    lake.run(cluster)  # the table wins over the checkpoint of the run that was overtaken
    assert_exactly_once(lake, wanted)


def test_two_jobs_land_two_topics_in_one_table(lake: Lake) -> None:
    with EmbeddedCluster(topics={"orders": 2, "returns": 2}) as cluster:
        wanted = fill(cluster, 30) + fill(cluster, 30, topic="returns")
        lake.run(cluster)
        run(cluster, lake.root / "second", **lake.settings(topics="returns"))
        assert_exactly_once(lake, wanted)
        assert len([name for name in lake.table.properties if name.startswith("kclient.job.")]) == 2


def test_a_partition_that_appears_later_lands_from_its_beginning(
    cluster: EmbeddedCluster, lake: Lake
) -> None:
    wanted = fill(cluster, 30)
    lake.run(cluster)
    cluster.add_partitions("orders", 5)
    wanted += fill(cluster, 50, first=30)
    lake.run(cluster)
    assert {row.partition for row in wanted} == set(range(5))
    assert_exactly_once(lake, wanted)


def test_workers_land_in_a_table_too(cluster: EmbeddedCluster, lake: Lake) -> None:
    wanted = fill(cluster, 200)
    lake.run(cluster, parallelism=2, partition_by="topic,bucket(4,_key)")
    assert_exactly_once(lake, wanted)


# --- what is in the table --------------------------------------------------------------------------------------------


def test_json_lands_with_its_types_and_bad_values_as_dead_letters(
    cluster: EmbeddedCluster, lake: Lake
) -> None:
    values = [
        b'{"id": 1, "price": 12.50, "at": "2013-01-01T00:00:00Z", "tags": ["a"], "to": {"city": "Bonn"}}',
        b"not JSON",
        b'{"id": 2, "price": null, "at": null, "tags": [], "to": null}',
    ]
    for value in values:
        cluster.produce("orders", [value], partition=0)
    schema = "id BIGINT, price DECIMAL(10,2), at TIMESTAMP, tags ARRAY<STRING>, to STRUCT<city: STRING>"
    dead = lake.root / "dead"
    reporter = lake.run(cluster, format="json", schema=schema, on_bad_record="dlq", dlq=f"parquet:{dead}")
    assert (reporter.results[0].rows, reporter.results[0].bad_records) == (2, 1)
    rows = lake.table.scan().to_arrow().sort_by("_offset").to_pylist()
    assert [(row["_offset"], row["id"], str(row["price"]), row["tags"], row["to"]) for row in rows] == [
        (0, 1, "12.50", ["a"], {"city": "Bonn"}),
        (2, 2, "None", [], None),
    ]
    assert manifest.count(dead) == 1
    assert str(lake.table.schema().find_type("price")) == "decimal(10, 2)"
    assert str(lake.table.schema().find_type("at")) == "timestamptz"
    assert (
        lake.run(cluster, format="json", schema=schema, on_bad_record="dlq", dlq=f"parquet:{dead}").batches
        == []
    )


def test_a_grown_schema_needs_leave_and_then_grows_the_table(cluster: EmbeddedCluster, lake: Lake) -> None:
    cluster.produce("orders", [b'{"id": 1}'], partition=0)
    lake.run(cluster, format="json", schema="id INT", on_new_field="add")
    cluster.produce("orders", [b'{"id": 2, "note": "x"}'], partition=0)
    with pytest.raises(ConfigError, match="Give --on-new-field add"):
        lake.run(cluster, format="json", schema="id INT, note STRING")
    lake.run(cluster, format="json", schema="id INT, note STRING", on_new_field="add")
    rows = lake.table.scan(selected_fields=("id", "note")).to_arrow().sort_by("id").to_pylist()
    assert rows == [{"id": 1, "note": None}, {"id": 2, "note": "x"}]


def test_a_grown_avro_schema_grows_the_table_with_leave(cluster: EmbeddedCluster, lake: Lake) -> None:
    fields = [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}]
    schemas = [{"type": "record", "name": "Order", "fields": fields[:count]} for count in (1, 2)]
    for schema, order in zip(schemas, ({"id": 1}, {"id": 2, "note": "x"}), strict=True):
        written = BytesIO()
        fastavro.schemaless_writer(written, schema, order)
        cluster.produce("orders", [written.getvalue()], partition=0)
        given_schema = {"format": "avro", "schema": json.dumps(schema)}
        if order["id"] == 2:
            with pytest.raises(ConfigError, match=r"note is not there.*give --on-new-field add"):
                lake.run(cluster, **given_schema)
        lake.run(cluster, **given_schema, on_new_field="add")
    rows = lake.table.scan(selected_fields=("id", "note")).to_arrow().sort_by("id").to_pylist()
    assert rows == [{"id": 1, "note": None}, {"id": 2, "note": "x"}]


def test_a_table_that_does_not_fit_is_refused_before_anything_is_written(
    cluster: EmbeddedCluster, lake: Lake
) -> None:
    fill(cluster, 10)
    lake.run(cluster)
    before = lake.files_on_disk()
    with pytest.raises(ConfigError, match="id is not there; note is not there"):
        run(
            cluster,
            lake.root / "second",
            **lake.settings(job="j", format="json", schema="id INT, note STRING"),
        )
    with pytest.raises(ConfigError, match="is partitioned by _topic, and --partition-by says"):
        run(cluster, lake.root / "third", **lake.settings(job="j", partition_by="day(_timestamp)"))
    assert lake.files_on_disk() == before
    assert not (lake.root / "second").exists()


def test_days_of_records_are_partitions(cluster: EmbeddedCluster, lake: Lake) -> None:
    for day in range(3):
        cluster.produce("orders", [b"x"] * 4, partition=0, timestamp_ms=NEW_YEAR_MS + day * 86_400_000)
    lake.run(cluster, partition_by="topic,date(timestamp)", max_per_trigger=None)
    found = lake.table.inspect.partitions().to_pylist()
    days = sorted((row["partition"]["_timestamp_day"], row["record_count"]) for row in found)
    assert days == [(date(2013, 1, 1), 4), (date(2013, 1, 2), 4), (date(2013, 1, 3), 4)]
    chosen = lake.table.scan(row_filter="_timestamp >= '2013-01-03T00:00:00+00:00'")
    assert len(list(chosen.plan_files())) == 1
    assert chosen.to_arrow().num_rows == 4


# --- status, verify, gc ----------------------------------------------------------------------------------------------


def cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kclient", "ingest", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)


def verify(lake: Lake, *more: str) -> tuple[int, dict[str, Any]]:
    done = cli(
        "verify", "--checkpoint", str(lake.checkpoint), "--catalog", str(lake.catalog_file), "--json", *more
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def drop_file(lake: Lake) -> Landed:
    """Take a data file out of the table, as a careless clean-up does; return its first row."""
    task = next(iter(lake.table.scan(row_filter="_kafka_partition = 1").plan_files()))
    path = task.file.file_path
    rows = [row for row in lake.by_pyiceberg() if row.partition == 1]
    with lake.table.transaction() as transaction, transaction.update_snapshot().overwrite() as overwrite:
        overwrite.delete_data_file(task.file)
    os.unlink(path.removeprefix("file://"))
    left = set(lake.by_pyiceberg())
    return next(row for row in rows if row not in left)


def test_verify_counts_in_the_table_and_asks_the_log(cluster: EmbeddedCluster, lake: Lake) -> None:
    wanted = fill(cluster, 150)
    lake.run(cluster)
    code, found = verify(lake)
    assert (code, found["proven"], found["rows"]) == (0, True, 150)
    assert {part["partition"]: part["end"] for part in found["partitions"]} == {
        tp.partition: end for tp, end in ends(wanted).items()
    }
    table = lake.table
    [task, *_] = table.scan(row_filter="_kafka_partition = 0").plan_files()
    twice = shutil.copy(task.file.file_path.removeprefix("file://"), lake.root / "twice.parquet")
    table.add_files([str(twice)])
    lost = drop_file(lake)
    code, found = verify(lake, "-b", cluster.bootstrap_servers)
    assert (code, found["proven"]) == (6, False)
    by_partition = {part["partition"]: part for part in found["partitions"]}
    assert by_partition[0]["duplicates"] != []
    assert by_partition[1]["missing"][0][0] == lost.offset
    assert by_partition[1]["absent"] == []
    assert by_partition[2]["gaps"] == []
    text = cli("verify", "--checkpoint", str(lake.checkpoint), "--catalog", str(lake.catalog_file))
    assert text.returncode == 6
    assert f"gap orders-1 {lost.offset}" in text.stdout
    assert "give -b HOST:PORT to learn whether they ever were" in text.stderr


def test_verify_reads_files_with_rows_of_several_partitions(cluster: EmbeddedCluster, lake: Lake) -> None:
    cluster.create_topic("clicks", 2)
    wanted = fill(cluster, 100) + fill(cluster, 50, topic="clicks")
    lake.run(cluster, topics="orders,clicks")
    table = lake.table
    table.overwrite(table.scan().to_arrow())  # as compaction by another engine: one file for each topic
    assert len(list(lake.table.scan().plan_files())) == 2
    code, found = verify(lake, "-b", cluster.bootstrap_servers)
    assert (code, found["proven"], found["rows"]) == (0, True, 150)
    assert_exactly_once(lake, wanted)


def test_verify_tells_offsets_without_a_record_from_lost_ones(cluster: EmbeddedCluster, lake: Lake) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "t"})
    producer.init_transactions()
    for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        producer.produce("orders", b"x", partition=0)
        producer.flush()
        end()
    del producer  # it would go on to look for the cluster when that has ended
    lake.run(cluster, options={"kafka.isolation.level": "read_committed"})
    code, found = verify(lake)
    assert (code, found["proven"]) == (6, False)
    code, found = verify(lake, "-b", cluster.bootstrap_servers, "--set", "isolation.level=read_committed")
    assert (code, found["proven"]) == (0, True)
    # The first record, its marker, the aborted one with its marker, the last one with its marker.
    assert found["partitions"][0]["absent"] == [[1, 4], [5, 6]]
    job = Checkpoint(lake.checkpoint).job()
    assert job is not None
    done = cli("verify", "--sink", f"iceberg:{TABLE}", "--job", job.job, "--catalog", str(lake.catalog_file))
    assert done.returncode == 6
    unknown = cli("verify", "--sink", f"iceberg:{TABLE}", "--job", "x", "--catalog", str(lake.catalog_file))
    assert unknown.returncode == 2
    assert f"holds nothing of the job x, but of {job.job}. Give" in unknown.stderr


def test_status_looks_into_the_table(cluster: EmbeddedCluster, lake: Lake) -> None:
    fill(cluster, 100)
    batches = len(lake.run(cluster, job="nightly").batches)
    given_catalog = ("--catalog", str(lake.catalog_file))
    found = json.loads(cli("status", "--checkpoint", str(lake.checkpoint), "--json", *given_catalog).stdout)
    assert (found["rows"], found["job"], found["table_batch"]) == (100, "nightly", batches - 1)
    assert (found["next_batch"], found["sink"]) == (batches, f"iceberg:{TABLE}")
    text = cli("status", "--checkpoint", str(lake.checkpoint), *given_catalog).stdout
    assert f"rows 100  engine direct  job nightly  batch {batches - 1} in the table" in text
    assert json.loads(cli("status", "--checkpoint", str(lake.checkpoint), "--json").stdout)["rows"] is None
    without = cli("status", "--checkpoint", str(lake.checkpoint)).stdout
    assert "rows - (give --catalog FILE to count them)  engine direct  job nightly\n" in without


def test_gc_removes_what_no_snapshot_names(cluster: EmbeddedCluster, lake: Lake) -> None:
    wanted = fill(cluster, 60)
    lake.run(cluster)
    [counted, *_] = lake.files_on_disk()
    left = Path(counted).with_name(Path(counted).name.replace("-0.parquet", "-9.parquet"))
    shutil.copy(counted, left)
    arguments = ("gc", "--sink", f"iceberg:{TABLE}", "--catalog", str(lake.catalog_file))
    young = cli(*arguments)
    assert (young.stdout, "nothing to remove" in young.stderr) == ("", True)
    listed = cli(*arguments, "--older-than", "0s")
    assert listed.stdout.split("\t")[0].endswith(left.name)
    assert f"--catalog {lake.catalog_file} --older-than 0s --apply" in listed.stderr
    assert left.exists()
    assert cli(*arguments, "--older-than", "0s", "--apply").returncode == 0
    assert not left.exists()
    assert_exactly_once(lake, wanted)


# --- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"writer": "spark"}, "is written by the job itself"),
        ({"sink": "iceberg:orders"}, "give it with all of its parts, as iceberg:CATALOG.NAMESPACE.TABLE"),
        ({"sink": "parquet:/x"}, "--catalog is for --sink iceberg:…"),
        ({"sink": "parquet:/x", "catalog": None, "job": "j"}, "--job names a job in its table"),
        ({"sink": "parquet:/x", "catalog": None, "partition_by": "day(_timestamp)"}, "other keys are for"),
        ({"catalog": "/nowhere"}, "--catalog names /nowhere, which is no file"),
        ({"job": "a b"}, "--job must be 1 to 100 letters"),
        ({"partition_by": "week(x)"}, "--partition-by has 'week(x)', but week is no transform"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(
    lake: Lake, changed: dict[str, Any], problem: str
) -> None:
    settings = given("localhost:9092", lake.root, **lake.settings(**changed))
    with pytest.raises(ConfigError) as caught:
        IngestSettings.parse(settings)
    assert problem in str(caught.value)


def test_partitions_of_a_topic_keep_their_offsets_in_the_progress(
    cluster: EmbeddedCluster, lake: Lake
) -> None:
    wanted = fill(cluster, 30)
    lake.run(cluster, job="j")
    kept = json.loads(lake.table.properties["kclient.job.j"])
    offsets = {
        TopicPartition("orders", int(number)): end for number, end in kept["offsets"]["orders"].items()
    }
    assert offsets == ends(wanted)
