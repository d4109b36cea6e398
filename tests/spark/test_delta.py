"""`kclient ingest --sink table:…` into a real Delta table: each record once, also when a batch runs again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster
from localspark import environments
from localspark.jars import DELTA, MINOR
from localspark.session import Session
from tests.spark.jobs.support import fill

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

TABLE = "lake.orders"


@pytest.fixture(scope="module")
def spark() -> Iterator[Session]:
    if reason := DELTA.unavailable():
        if os.environ.get("CI") == "true":
            pytest.fail(f"Delta must run in CI: {reason}", pytrace=False)
        pytest.skip(f"no Delta: {reason}")
    with Session("tests.spark.delta_child", environments.python(MINOR), DELTA.jars()) as session:
        yield session


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"orders": 2}) as running:
        yield running


def job(cluster: EmbeddedCluster, root: Path) -> dict[str, Any]:
    return {
        "ingest": {
            "bootstrap": cluster.bootstrap_servers,
            "topics": "orders",
            "sink": f"table:spark_catalog.{TABLE}",
            "checkpoint": str(root / "checkpoint"),
            "writer": "spark",
        }
    }


@pytest.mark.spec("SP-82", "SP-89")
def test_a_delta_table_has_each_record_once(spark: Session, cluster: EmbeddedCluster, tmp_path: Path) -> None:
    spark.ask({"sql": f"CREATE DATABASE lake LOCATION 'file:{tmp_path / 'warehouse'}'"})
    wanted = fill(cluster, 30)
    assert spark.ask(job(cluster, tmp_path)) == 30
    wanted += fill(cluster, 10, first=30)
    assert spark.ask(job(cluster, tmp_path)) == 10

    for name in ("1", ".1.crc"):  # as after a kill between the table's commit and Spark's
        (tmp_path / "checkpoint" / "commits" / name).unlink()
    spark.ask(job(cluster, tmp_path))
    assert (tmp_path / "checkpoint" / "commits" / "1").exists()
    rows = spark.ask({"table": f"spark_catalog.{TABLE}"})
    assert [tuple(row) for row in rows] == [(*row[:3], row.value.decode()) for row in sorted(wanted)]
    assert (tmp_path / "warehouse" / "orders" / "_delta_log").is_dir()
