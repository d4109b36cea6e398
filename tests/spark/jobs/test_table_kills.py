"""kill -9 of a job that commits into a table, at every step and at random moments: each record counts once."""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import suppress
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
    killed_at_random,
    other_writers,
    seeded,
)
from tests.spark.jobs.test_kills import kill_session, producing, sessions

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
    lake = FORMATS[table][0](tmp_path)
    wanted = killed_at_random(cluster, lake, RANDOM_KILLS)
    assert_only_counted_files_stay(lake, wanted)


# --- with Spark ------------------------------------------------------------------------------------------------------


def spark_kills() -> list[Any]:
    """A few kills of one format in each run."""
    rest = [pytest.param(table, RANDOM_KILLS, marks=pytest.mark.exhaustive) for table in FORMATS]
    return [("iceberg", 2), *rest]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("table", "times"), spark_kills())
def test_drivers_that_are_killed_while_executors_write_land_each_record_once(
    cluster: EmbeddedCluster, tmp_path: Path, table: str, times: int
) -> None:
    """kill -9 of the driver, its JVM and all Python workers."""
    moments = seeded()
    lake, wanted = FORMATS[table][0](tmp_path), list[Landed]()
    job = lake.spark_job(cluster)
    with producing(cluster, wanted):
        for _ in range(times):
            job.killed_at_work(moments.uniform(0, 3))
    job.drain()
    assert_exactly_once(lake, wanted)
    assert job.begun() > times
    assert_only_counted_files_stay(lake, wanted)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("table", "times"), spark_kills())
def test_python_workers_that_are_killed_land_each_record_once(
    cluster: EmbeddedCluster, tmp_path: Path, table: str, times: int
) -> None:
    """Spark runs their tasks again, or the job ends with an error and is started again."""
    moments = seeded()
    lake, wanted = FORMATS[table][0](tmp_path), list[Landed]()
    job = lake.spark_job(cluster)
    killed = 0
    deadline = time.monotonic() + 60 * times
    with producing(cluster, wanted):
        while killed < times:
            process = job.start("--trigger", "100ms", "--max-per-trigger", "100")
            try:
                while process.poll() is None and killed < times:
                    assert time.monotonic() < deadline, job.log.read_text()[-3000:]
                    time.sleep(moments.uniform(0, 1))
                    killed += kill_a_worker(process.pid, moments)
            finally:
                kill_session(process)
    job.drain()
    assert_exactly_once(lake, wanted)
    assert_only_counted_files_stay(lake, wanted)


def kill_a_worker(session: int, moments: random.Random) -> bool:
    """SIGKILL for one of the Python processes that Spark has started. Return whether there was one."""
    ours = [pid for pid, of in sessions() if of == session]
    workers = [pid for pid in ours if any(part.startswith(b"pyspark.") for part in command_of(pid))]
    if not workers:
        return False
    with suppress(ProcessLookupError):
        os.kill(moments.choice(workers), signal.SIGKILL)
    return True


def command_of(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:  # it has ended
        return []
