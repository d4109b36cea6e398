"""Backfills into a table that die, compete, or are written by Spark: beside their job, each record counts once."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from kclient.embedded import EmbeddedCluster
from kclient.spark.ingest.verification import verify
from tests.spark.jobs.delta_job_support import DeltaLake
from tests.spark.jobs.iceberg_support import Lake
from tests.spark.jobs.support import Landed, fill, offsets_file
from tests.spark.jobs.table_support import (
    TableLake,
    assert_exactly_once,
    assert_only_counted_files_stay,
    seeded,
)
from tests.spark.jobs.test_kills import PATIENCE_SECONDS, Job, kill_session, producing
from tests.spark.jobs.test_table_backfill import BACKFILL, job_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.spread, pytest.mark.timeout(300)]

FORMATS: dict[str, type[TableLake]] = {"iceberg": Lake, "delta": DeltaLake}
BATCH = 10
BATCHES_OF_A_RUN = 60
"""More than a run lands until it is killed."""


@pytest.fixture(params=FORMATS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> TableLake:
    return FORMATS[request.param](tmp_path)


def backfill_of(lake: TableLake, cluster: EmbeddedCluster, name: str = "backfill", **options: str) -> Job:
    """A backfill of the job of this table, in processes of its own, with a log of its own."""
    job = attrs.evolve(lake.job(cluster, **options), log=lake.root / f"log-{name}")
    job.command.append("--backfill")
    return job


def killed_at_random(backfill: Job, delay: float) -> bool:
    """Kill a run `delay` seconds after its plan. Return whether it was still at work."""
    before, process = planned(backfill), backfill.start("--max-per-trigger", str(BATCH))
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while planned(backfill) == before and process.poll() is None:
            assert time.monotonic() < deadline, backfill.log.read_text()[-3000:]
            time.sleep(0.02)
        time.sleep(delay)
        return process.poll() is None
    finally:
        kill_session(process)


def planned(backfill: Job) -> int:
    """How many runs have printed their plan."""
    lines = backfill.log.read_text().splitlines() if backfill.log.exists() else []
    return sum(line.startswith("plan ") for line in lines)


def ended(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(PATIENCE_SECONDS)
    finally:
        kill_session(process)


def random_kills() -> list[Any]:
    few = [pytest.param(name, 3) for name in FORMATS]
    return [*few, *(pytest.param(name, 30, marks=pytest.mark.exhaustive) for name in FORMATS)]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("name", "times"), random_kills())
def test_a_backfill_that_is_killed_at_random_moments_beside_its_job_lands_each_record_once(
    cluster: EmbeddedCluster, tmp_path: Path, name: str, times: int
) -> None:
    moments, lake = seeded(), FORMATS[name](tmp_path)
    wanted = fill(cluster, BATCH * BATCHES_OF_A_RUN * times)
    before = list[Landed](wanted)
    lake.run(cluster, start="latest")
    backfill, job = backfill_of(lake, cluster), lake.job(cluster)
    with producing(cluster, wanted):
        process = job.start("--trigger", "500ms")
        try:
            killed = [killed_at_random(backfill, moments.uniform(0, 1.5)) for _ in range(times)]
            assert process.poll() is None, job.log.read_text()[-3000:]
        finally:
            kill_session(process)
    assert all(killed), backfill.log.read_text()[-3000:]
    there = {row for row in lake.judged()[0] if row in set(before)}
    assert len(there) < len(before)
    assert ended(backfill.start()) == 0, backfill.log.read_text()[-3000:]
    job.drain()
    assert_exactly_once(lake, wanted)
    assert_only_counted_files_stay(lake, wanted)
    assert all(each.is_proven and not each.outside for each in verify(lake.open(), job_of(lake)))


def test_of_two_backfills_that_overlap_one_is_refused(lake: TableLake) -> None:
    """Both at the same time, in batches: the one that comes second to an offset ends with 8."""
    with EmbeddedCluster(topics={"orders": 1}) as cluster:
        fill(cluster, 200)
        lake.run(cluster, start="latest")
        ranges = {"one": (0, 120), "two": (80, 200)}
        jobs = {
            name: backfill_of(
                lake,
                cluster,
                name,
                **{"--start": offsets_file(lake.root, start), "--end": offsets_file(lake.root, end)},
            )
            for name, (start, end) in ranges.items()
        }
        running = {name: job.start("--max-per-trigger", str(BATCH)) for name, job in jobs.items()}
        codes = {name: ended(process) for name, process in running.items()}
        assert sorted(codes.values()) == [0, 8], [job.log.read_text()[-2000:] for job in jobs.values()]
        [winner] = [name for name, code in codes.items() if code == 0]
        [refused] = [name for name, code in codes.items() if code == 8]
        assert "They would count twice" in jobs[refused].log.read_text()
        for found in lake.judged():
            offsets = [row.offset for row in found]
            assert offsets == sorted(set(offsets))
            assert set(range(*ranges[winner])) <= set(offsets)


def test_a_backfill_by_spark_lands_beside_the_job_of_the_table(
    spark: SparkSession, cluster: EmbeddedCluster, lake: TableLake
) -> None:
    by_spark = {"engine": "spark", "parallelism": None}
    wanted = fill(cluster, 100)
    lake.run(cluster, **by_spark, start="latest")
    wanted += fill(cluster, 30, first=100)
    lake.run(cluster, **by_spark)
    changed = {**BACKFILL, **by_spark, "max_per_trigger": 30}
    reporter = lake.run(cluster, **changed)
    assert (reporter.results[0].rows, len(reporter.batches)) == (100, 4)
    again = lake.run(cluster, **changed)
    assert (again.results[0].rows, again.batches) == (0, [])
    wanted += fill(cluster, 10, first=130)
    assert lake.run(cluster, **by_spark).results[0].rows == 10
    assert_exactly_once(lake, wanted)
    assert_only_counted_files_stay(lake, wanted)
