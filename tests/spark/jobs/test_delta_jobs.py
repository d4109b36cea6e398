"""Ingest into a Delta table with the direct engine: each record once, and the table says where the job goes on."""

from __future__ import annotations

import datetime
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars
import pytest
from deltalake import DeltaTable, write_deltalake

from kclient.embedded import EmbeddedCluster
from kclient.errors import ConfigError, SinkError
from kclient.spark.ingest.batch_commit import BatchCommitter
from tests.cli.support import call
from tests.spark.jobs.delta_job_support import DeltaLake
from tests.spark.jobs.support import fill, run
from tests.spark.jobs.table_support import assert_exactly_once


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    return DeltaLake(tmp_path)


def test_records_land_in_a_table_once_over_several_runs(cluster: EmbeddedCluster, lake: DeltaLake) -> None:
    wanted = fill(cluster, 100)
    first = lake.run(cluster)
    assert len(first.batches) >= 2
    assert_exactly_once(lake, wanted)
    assert lake.by_duckdb() == sorted(wanted)
    before, version = list(wanted), lake.table.version()
    wanted += fill(cluster, 100, first=100)
    assert lake.run(cluster).results[0].rows == 100
    assert_exactly_once(lake, wanted)
    assert lake.by_polars(version) == sorted(before)
    assert lake.run(cluster).batches == []


def test_a_job_whose_checkpoint_is_lost_goes_on_where_the_table_says(
    cluster: EmbeddedCluster, lake: DeltaLake, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = fill(cluster, 100)
    lake.run(cluster)
    shutil.rmtree(lake.checkpoint)
    wanted += fill(cluster, 50, first=100)
    with caplog.at_level("WARNING", "kclient.spark"):
        assert lake.run(cluster).results[0].rows == 50
    assert "goes on after that, as the table says" in caplog.text
    assert_exactly_once(lake, wanted)


def test_a_run_of_the_same_job_beside_this_one_is_fenced(
    cluster: EmbeddedCluster, lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = fill(cluster, 200)
    works, met = BatchCommitter.count, list[str]()

    def overtaken(self: Any, name: str, *args: Any) -> Any:
        met.append(name)
        if len(met) == 2:  # this run's second batch is written; another one lands it, and all the rest
            run(cluster, lake.root / "other", sink=f"delta:{lake.where}", job="nightly", max_per_trigger=1000)
        return works(self, name, *args)

    monkeypatch.setattr(BatchCommitter, "count", overtaken)
    with pytest.raises(SinkError, match="Another run of the job nightly has gone on"):
        lake.run(cluster, job="nightly")
    assert len(met) == 3
    assert_exactly_once(lake, wanted)
    monkeypatch.undo()
    assert lake.run(cluster, job="nightly").batches == []
    assert_exactly_once(lake, wanted)


def test_a_commit_whose_answer_is_lost_counts_once(
    cluster: EmbeddedCluster, lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = fill(cluster, 100)
    works = DeltaTable.create_write_transaction

    def losing(self: DeltaTable, *args: Any, **kwargs: Any) -> None:
        works(self, *args, **kwargs)
        raise OSError("Generic S3 error: operation timed out")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", losing)
    assert len(lake.run(cluster).batches) >= 2
    assert_exactly_once(lake, wanted)


def test_decoded_values_are_columns_and_more_of_them_come_by_evolution(
    cluster: EmbeddedCluster, lake: DeltaLake
) -> None:
    cluster.produce("orders", ['{"id": 1, "at": "2026-01-02T03:04:05.678Z", "tags": [{"k": "a"}]}'])
    schema = "id BIGINT, at TIMESTAMP, tags ARRAY<STRUCT<k: STRING>>"
    settings = {"format": "json", "on_new_field": "add", "partition_by": "date(timestamp)"}
    lake.run(cluster, schema=schema, **settings)
    cluster.produce("orders", ['{"id": 2, "price": 1.50}'])
    lake.run(cluster, schema=f"{schema}, price DECIMAL(10,2)", **settings)
    rows = polars.read_delta(lake.where).sort("id")
    at = datetime.datetime(2026, 1, 2, 3, 4, 5, 678000, datetime.UTC)
    assert rows["at"].to_list() == [at, None]
    assert rows["tags"].to_list() == [[{"k": "a"}], None]
    assert [None if price is None else str(price) for price in rows["price"]] == [None, "1.50"]
    assert lake.table.metadata().partition_columns == ["_timestamp_day"]
    assert rows["_timestamp_day"].null_count() == 0


def test_a_table_is_divided_by_times_and_values_and_followed_without_its_keys(
    cluster: EmbeddedCluster, lake: DeltaLake
) -> None:
    settings = {"format": "json", "schema": "id BIGINT, at TIMESTAMP"}
    values = [
        f'{{"id": {number}, "at": "2026-{1 + number % 3:02d}-28T2{number % 2}:59:59Z"}}'
        for number in range(12)
    ]
    cluster.produce("orders", values[:6])
    lake.run(cluster, partition_by="month(at),hour(at),truncate(4,id)", **settings)
    cluster.produce("orders", values[6:])
    lake.run(cluster, **settings)
    rows = polars.read_delta(lake.where).sort("id")
    assert rows["at_month"].to_list() == [f"2026-{1 + number % 3:02d}" for number in range(12)]
    assert rows["at_hour"].to_list() == [
        f"2026-{1 + number % 3:02d}-28-2{number % 2}" for number in range(12)
    ]
    assert rows["id_truncate_4"].to_list() == [number // 4 * 4 for number in range(12)]
    assert lake.run(cluster, **settings).batches == []


def test_a_topic_per_table_of_several_topics_is_divided_by_topic(
    cluster: EmbeddedCluster, lake: DeltaLake
) -> None:
    cluster.create_topic("clicks", 1)
    wanted = fill(cluster, 30) + fill(cluster, 30, topic="clicks")
    lake.run(cluster, topics="orders,clicks")
    assert_exactly_once(lake, wanted)
    assert sorted(row["_topic"] for row in lake.table.partitions()) == ["clicks", "orders"]


def test_a_key_that_delta_does_not_have_is_refused_before_anything_is_written(
    cluster: EmbeddedCluster, lake: DeltaLake
) -> None:
    fill(cluster, 10)
    with pytest.raises(ConfigError, match=r"_key is binary.*--sink iceberg:…"):
        lake.run(cluster, partition_by="truncate(4,_key)")
    assert list(lake.root.iterdir()) == []


def test_verify_believes_only_the_logs_of_the_job_and_only_what_they_hold(
    cluster: EmbeddedCluster, lake: DeltaLake, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(cluster, 150)
    lake.run(cluster, job="nightly")
    lake.table.delete("_partition = 1 AND _offset < 5")
    asked = ("ingest", "verify", "--checkpoint", str(lake.checkpoint), "-b")
    named = ("ingest", "verify", "--sink", f"delta:{lake.where}", "--job", "nightly", "-b")
    with EmbeddedCluster(topics={"orders": 3}) as other:
        theirs = call(capsys, *asked, other.bootstrap_servers)
        assert (theirs.code, "the cluster id is another" in theirs.err) == (2, True)
        theirs = call(capsys, *named, other.bootstrap_servers)
        assert (theirs.code, "topic orders is another one" in theirs.err) == (2, True)
    cluster.delete_records("orders", 1, 3)
    gone = call(capsys, *asked, cluster.bootstrap_servers)
    assert gone.code == 6
    assert "0 offsets twice, 2 missing, 3 unknown: the log does not hold them" in gone.err
    cluster.recreate_topic("orders")
    other_log = call(capsys, *asked, cluster.bootstrap_servers)
    assert (other_log.code, "topic orders is another one" in other_log.err) == (2, True)


def test_status_verify_and_gc_look_into_the_table(
    cluster: EmbeddedCluster, lake: DeltaLake, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(cluster, 100)
    lake.run(cluster, job="nightly")
    checkpoint, sink = str(lake.checkpoint), f"delta:{lake.where}"
    status = call(capsys, "ingest", "status", "--checkpoint", checkpoint, "--json")
    assert json.loads(status.out)["rows"] == 100
    proven = call(capsys, "ingest", "verify", "--checkpoint", checkpoint, "-b", cluster.bootstrap_servers)
    assert proven.code == 0, proven.err

    lake.table.delete("_partition = 1 AND _offset = 3")
    gap = call(
        capsys, "ingest", "verify", "--sink", sink, "--job", "nightly", "-b", cluster.bootstrap_servers
    )
    assert gap.code == 6
    assert "1" in gap.out

    counted = Path(lake.files_on_disk()[0])
    left = counted.with_name(counted.name.replace("-0.parquet", "-9.parquet"))
    left.write_bytes(b"of a killed batch")
    found = call(capsys, "ingest", "gc", "--sink", sink, "--older-than", "0s", "--apply")
    assert found.out.split("\t")[0] == str(left.relative_to(lake.where))
    assert not left.exists()
    assert set(lake.files_on_disk()) >= set(lake.table.file_uris())

    for command in (["status", "--checkpoint", checkpoint], ["gc", "--sink", sink]):
        refused = call(capsys, "ingest", *command, "--catalog", str(left))
        assert "--catalog is for" in refused.err
    text = call(capsys, "ingest", "status", "--checkpoint", checkpoint).out
    assert re.search(r"rows \d+  engine direct  job nightly  batch", text)


def compacted(table: DeltaTable) -> None:
    assert table.optimize.compact()["numFilesAdded"]


def overwritten(table: DeltaTable) -> None:
    write_deltalake(table.table_uri, table.to_pyarrow_table(), mode="overwrite", schema_mode="overwrite")


@pytest.mark.parametrize("rewritten", [compacted, overwritten])
def test_a_table_whose_files_hold_several_partitions_is_verified_and_goes_on(
    cluster: EmbeddedCluster,
    lake: DeltaLake,
    capsys: pytest.CaptureFixture[str],
    rewritten: Callable[[DeltaTable], None],
) -> None:
    dead = {"format": "json", "schema": "id INT"}
    cluster.produce("orders", [b'{"id": 1}'] * 50 + [b"bad"] * 6)
    lake.run(cluster, on_bad_record="dlq", dlq=f"parquet:{lake.root / 'dead'}", **dead)
    rewritten(lake.table)
    checkpoint = ("--checkpoint", str(lake.checkpoint))
    asked = (*checkpoint, "-b", cluster.bootstrap_servers, "--json")
    assert json.loads(call(capsys, "ingest", "status", *checkpoint, "--json").out)["rows"] == 50
    gaps = call(capsys, "ingest", "verify", *asked)
    assert gaps.code == 6, gaps.err
    parts = json.loads(gaps.out)["partitions"]
    assert [part["duplicates"] for part in parts] == [[]] * 3
    assert sum(end - start for part in parts for start, end in part["missing"]) == 6
    assert call(capsys, "ingest", "gc", "--sink", f"delta:{lake.where}", "--older-than", "0s").out == ""

    replay = {"from_dlq": f"parquet:{lake.root / 'dead'}", "on_bad_record": "null", **dead}
    assert lake.run(cluster, **replay).results[0].rows == 6
    cluster.produce("orders", [b'{"id": 2}'] * 10)
    assert lake.run(cluster, on_bad_record="null", **dead).results[0].rows == 10
    rewritten(lake.table)
    proven = call(capsys, "ingest", "verify", *asked)
    assert (proven.code, json.loads(proven.out)["rows"]) == (0, 66)
