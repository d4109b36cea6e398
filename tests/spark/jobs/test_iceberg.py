"""Ingest into an Iceberg table with the direct engine: each record once, read back by pyiceberg, Polars and DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient.embedded import EmbeddedCluster
from tests.spark.jobs.iceberg_support import Lake, assert_exactly_once
from tests.spark.jobs.support import fill


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"orders": 3}) as running:
        yield running


def test_records_land_in_a_table_once_over_several_runs(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    wanted = fill(cluster, 100)
    first = lake.run(cluster)
    assert len(first.batches) >= 2
    assert_exactly_once(lake, wanted)
    assert lake.by_duckdb() == sorted(wanted)
    wanted += fill(cluster, 100, first=100)
    assert lake.run(cluster).results[0].rows == 100
    assert_exactly_once(lake, wanted)
    assert lake.run(cluster).batches == []
