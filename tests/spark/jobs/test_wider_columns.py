"""Jobs whose schema has a column that became wider: into a table they go on from their checkpoint, if it can widen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake

from kclient.embedded import EmbeddedCluster
from kclient.errors import ConfigError
from kclient.spark.ingest.checkpoint import Checkpoint
from tests.spark.jobs import killing
from tests.spark.jobs.delta_job_support import DeltaLake
from tests.spark.jobs.iceberg_support import Lake
from tests.spark.jobs.support import given, run
from tests.spark.jobs.table_support import TableLake

pytestmark = pytest.mark.timeout(90)

NARROW = "delay INT, o STRUCT<x: FLOAT>, l ARRAY<STRUCT<n: INT>>, p DECIMAL(4,1)"
WIDE = "delay BIGINT, o STRUCT<x: DOUBLE>, l ARRAY<STRUCT<n: BIGINT>>, p DECIMAL(9,1), at STRING"
JSON = {"format": "json", "on_new_field": "add"}
MORE = 2**40
"""More than an INT holds."""


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"orders": 1}) as running:
        yield running


@pytest.fixture(params=[Lake, DeltaLake])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> TableLake:
    made: TableLake = request.param(tmp_path)
    return made


def produce(cluster: EmbeddedCluster, **value: Any) -> None:
    cluster.produce("orders", [json.dumps(value).encode()])


def column(table: Any, name: str = "delay") -> list[Any]:
    return list(table.sort_by("_offset").column(name).to_pylist())


def versions(lake: TableLake) -> list[tuple[int, str]]:
    kept = json.loads((lake.checkpoint / "kclient/schema.json").read_text())
    return [(version["batch"], version["schema"]) for version in kept]


@pytest.mark.spec("SP-87")
@pytest.mark.parametrize("engine", ["direct", "spark"])
def test_an_iceberg_table_gets_the_wider_type_from_the_same_checkpoint(
    request: pytest.FixtureRequest, cluster: EmbeddedCluster, tmp_path: Path, engine: str
) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    lake, how = Lake(tmp_path), {"engine": engine, "parallelism": None}
    produce(cluster, delay=1, o={"x": 0.5}, l=[{"n": 1}], p=0.5)
    lake.run(cluster, **JSON, **how, schema=NARROW)
    produce(cluster, delay=MORE, o={"x": 0.1}, l=[{"n": MORE}], p=12345678.5, at="now")
    with pytest.raises(ConfigError, match=r"delay, o\.x, l, p would become wider\. Give --on-new-field add"):
        lake.run(cluster, format="json", **how, schema=WIDE)
    lake.run(cluster, **JSON, **how, schema=WIDE)
    rows = lake.table.scan().to_arrow()
    assert column(rows) == [1, MORE]
    assert column(rows, "o") == [{"x": 0.5}, {"x": 0.1}]
    assert column(rows, "l") == [[{"n": 1}], [{"n": MORE}]]
    assert column(rows, "p") == [Decimal("0.5"), Decimal("12345678.5")]
    assert column(rows, "at") == [None, "now"]
    assert versions(lake) == [(0, NARROW), (1, WIDE)]
    produce(cluster, delay=3)
    with pytest.raises(ConfigError, match=r"delay, o\.x, l, p, at would change or go away"):
        lake.run(cluster, **JSON, **how, schema=NARROW)


@pytest.mark.spec("SP-82", "SP-87")
@pytest.mark.parametrize("step", ["before the commit", "after the commit"])
def test_a_batch_that_was_begun_before_the_change_counts_once(
    cluster: EmbeddedCluster, tmp_path: Path, step: str
) -> None:
    lake = Lake(tmp_path)
    produce(cluster, delay=1)
    lake.run(cluster, **JSON, schema=NARROW)
    produce(cluster, delay=2)
    narrow = given(cluster.bootstrap_servers, tmp_path, **lake.settings(**JSON, schema=NARROW))
    assert killing.killed(narrow, step, 0, "tests.spark.jobs.killing_iceberg") == -9
    produce(cluster, delay=MORE)
    lake.run(cluster, **JSON, schema=WIDE)
    assert column(lake.table.scan().to_arrow()) == [1, 2, MORE]


@pytest.mark.spec("SP-87")
def test_a_delta_table_is_written_again_with_the_wider_type(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    lake = DeltaLake(tmp_path)
    produce(cluster, delay=1)
    lake.run(cluster, **JSON, schema="delay INT")
    produce(cluster, delay=MORE)
    with pytest.raises(
        ConfigError, match=r"its delay is int32, and int64 needs type widening\. .* it still knows"
    ):
        lake.run(cluster, **JSON, schema="delay BIGINT")
    assert versions(lake) == [(0, "delay INT")]
    rows = lake.table.to_pyarrow_table()
    delay = rows.schema.get_field_index("delay")
    wider = rows.set_column(delay, "delay", rows.column("delay").cast("int64"))
    write_deltalake(lake.where, wider, mode="overwrite", schema_mode="overwrite")
    lake.run(cluster, **JSON, schema="delay BIGINT")
    assert column(lake.table.to_pyarrow_table()) == [1, MORE]
    assert versions(lake) == [(0, "delay INT"), (1, "delay BIGINT")]


@pytest.mark.spec("SP-87")
@pytest.mark.parametrize("schema", ["delay SMALLINT", "delay STRING", "x INT"])
def test_another_change_is_refused_and_what_works_is_said(
    cluster: EmbeddedCluster, lake: TableLake, schema: str
) -> None:
    produce(cluster, delay=1)
    lake.run(cluster, **JSON, schema="delay INT")
    produce(cluster, delay=2)
    name = Checkpoint(lake.checkpoint).job()
    assert name is not None
    advice = (
        rf"Give a new --checkpoint with the same --sink and --job {name.job}: the job goes on where the table"
    )
    with pytest.raises(ConfigError, match=rf"delay would change or go away\. {advice}"):
        lake.run(cluster, **JSON, schema=schema)
    again = {**JSON, "schema": schema, "job": name.job, "checkpoint": str(lake.root / "other")}
    if "STRING" in schema:
        with pytest.raises(ConfigError, match="delay"):
            lake.run(cluster, **again)
    else:
        assert lake.run(cluster, **again).results[0].rows == 1


@pytest.mark.spec("SP-87")
@pytest.mark.parametrize(
    ("narrow", "wide"), [("DOUBLE", "DECIMAL(20,2)"), ("DECIMAL(10,2)", "DECIMAL(12,4)"), ("INT", "DOUBLE")]
)
def test_what_iceberg_cannot_widen_is_refused_before_anything_is_kept(
    cluster: EmbeddedCluster, tmp_path: Path, narrow: str, wide: str
) -> None:
    lake = Lake(tmp_path)
    produce(cluster, delay=1)
    lake.run(cluster, **JSON, schema=f"delay {narrow}")
    with pytest.raises(ConfigError, match="delay"):
        lake.run(cluster, **JSON, schema=f"delay {wide}")
    assert versions(lake) == [(0, f"delay {narrow}")]
    produce(cluster, delay=2)
    assert lake.run(cluster, **JSON, schema=f"delay {narrow}").results[0].rows == 1


@pytest.mark.spec("SP-87")
@pytest.mark.parametrize(
    ("narrow", "wide"), [("DECIMAL(12,2)", "DECIMAL(10,4)"), ("DECIMAL(10,2)", "DECIMAL(12,4)")]
)
def test_a_decimal_of_another_scale_does_not_fit_a_column_of_iceberg(
    cluster: EmbeddedCluster, tmp_path: Path, narrow: str, wide: str
) -> None:
    lake = Lake(tmp_path)
    produce(cluster, delay=1)
    lake.run(cluster, **JSON, schema=f"delay {narrow}")
    other = {"schema": f"delay {wide}", "checkpoint": str(tmp_path / "other"), "job": "other"}
    with pytest.raises(ConfigError, match="delay"):
        lake.run(cluster, **JSON, **other)
    assert not (tmp_path / "other").exists()


@pytest.mark.spec("SP-87")
def test_files_of_another_sink_stay_of_one_type(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    produce(cluster, delay=1)
    run(cluster, tmp_path, **JSON, schema="delay INT")
    with pytest.raises(
        ConfigError, match=r"would not fit together\. Give a checkpoint and a sink of their own"
    ):
        run(cluster, tmp_path, **JSON, schema="delay BIGINT")
