"""kill -9 of a job that commits into a table, at every step and at random moments: each record counts once."""

from __future__ import annotations

import random
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.spark.ingest.checkpoint import Checkpoint
from tests.spark.jobs import killing, killing_delta, killing_iceberg
from tests.spark.jobs.delta_job_support import DeltaLake
from tests.spark.jobs.iceberg_support import Lake
from tests.spark.jobs.support import Landed, ends, fill, given
from tests.spark.jobs.table_support import (
    TableLake,
    assert_exactly_once,
    assert_only_counted_files_stay,
    other_writers,
)
from tests.spark.jobs.test_kills import producing

pytestmark = [pytest.mark.slow, pytest.mark.spread, pytest.mark.timeout(300)]

RANDOM_KILLS = 30
FORMATS: dict[str, tuple[type[TableLake], ModuleType]] = {
    "iceberg": (Lake, killing_iceberg),
    "delta": (DeltaLake, killing_delta),
}


def kills() -> list[Any]:
    """Every kill of every format; those of `make test` are no exhaustive ones."""
    return [
        pytest.param(name, *kill, marks=() if kill in steps.SAMPLE else pytest.mark.exhaustive)
        for name, (_, steps) in FORMATS.items()
        for kill in steps.KILLS
    ]


@pytest.mark.parametrize(("table", "step", "times"), kills())
def test_killed_at_any_step_each_record_counts_once(
    cluster: EmbeddedCluster, tmp_path: Path, table: str, step: str, times: int
) -> None:
    kind, steps = FORMATS[table]
    lake, wanted = kind(tmp_path), fill(cluster, 150)
    settings = given(cluster.bootstrap_servers, tmp_path, **lake.settings())
    assert killing.killed(settings, step, times, steps.__name__) == -9
    wanted += fill(cluster, 20, first=150)
    reporter = lake.run(cluster)
    assert reporter.results[0].ended == "drained"
    assert_exactly_once(lake, wanted)
    assert cluster.committed("lake") == ends(wanted)
    position = Checkpoint(lake.checkpoint).position()
    assert position is not None
    assert position.batch == lake.batches()
    assert_only_counted_files_stay(lake, wanted)


@pytest.mark.parametrize("table", ["iceberg", pytest.param("delta", marks=pytest.mark.exhaustive)])
def test_killed_while_workers_write_and_others_commit(
    cluster: EmbeddedCluster, tmp_path: Path, table: str
) -> None:
    lake, wanted, others = FORMATS[table][0](tmp_path), list[Landed](), list[int]()
    job = lake.job(cluster)
    with producing(cluster, wanted), other_writers(lake, others):
        for delay in (0.0, 0.1):
            job.killed_at_work(delay)
        deadline = time.monotonic() + 60
        while len(others) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
    job.drain()
    assert_exactly_once(lake, wanted)
    assert sorted(lake.appended()) == others


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("table", FORMATS)
def test_killed_at_random_moments_beside_other_writers_each_record_counts_once(
    cluster: EmbeddedCluster, tmp_path: Path, table: str
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    lake, wanted, others = FORMATS[table][0](tmp_path), list[Landed](), list[int]()
    job = lake.job(cluster)
    with producing(cluster, wanted), other_writers(lake, others):
        for _ in range(RANDOM_KILLS):
            job.killed_at_work(moments.uniform(0, 0.6))
    job.drain()
    assert_exactly_once(lake, wanted)
    assert job.begun() > RANDOM_KILLS
    assert sorted(lake.appended()) == others
    assert_only_counted_files_stay(lake, wanted)
