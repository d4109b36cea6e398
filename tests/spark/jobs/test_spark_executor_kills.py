"""kill -9 of single executors while a job lands in a table: each record counts once."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from kclient.embedded import EmbeddedCluster
from tests.spark.jobs.delta_job_support import DeltaLake
from tests.spark.jobs.iceberg_support import Lake
from tests.spark.jobs.support import Landed
from tests.spark.jobs.table_support import (
    TableLake,
    assert_exactly_once,
    assert_only_counted_files_stay,
    seeded,
)
from tests.spark.jobs.test_kills import CONF, Job, kill_session, producing, sessions
from tests.spark.jobs.test_table_kills import command_of

pytestmark = [pytest.mark.slow, pytest.mark.spread, pytest.mark.exhaustive, pytest.mark.timeout(900)]

KILLS = 2
SECONDS = 260
EXECUTOR = b"org.apache.spark.executor.CoarseGrainedExecutorBackend"
FORMATS: dict[str, type[TableLake]] = {"delta": DeltaLake, "iceberg": Lake}
SMALL = {**CONF, "spark.pyspark.python": sys.executable, "spark.executor.memory": "600m"}


@pytest.mark.parametrize("name", FORMATS)
def test_executors_that_are_killed_land_each_record_of_a_table_once(
    cluster: EmbeddedCluster, tmp_path: Path, name: str
) -> None:
    """Spark starts others and runs their tasks again, or the job ends with an error and is started again."""
    moments, wanted, lake = seeded(), list[Landed](), FORMATS[name](tmp_path)
    job = lake.spark_job(cluster)
    job.command[job.command.index("local[2,4]")] = "local-cluster[2,1,1024]"
    job.command += [part for pair in SMALL.items() for part in ("--conf", "=".join(pair))]
    with producing(cluster, wanted):
        kill_executors(job, moments)
    job.drain()
    assert_exactly_once(lake, wanted)
    assert_only_counted_files_stay(lake, wanted)


def kill_executors(job: Job, moments: random.Random) -> None:
    """Kill an executor in each of some batches that no run had begun, however often the job has to be started."""
    killed, begun, deadline = 0, 0, time.monotonic() + SECONDS
    while killed < KILLS:
        process = job.start("--trigger", "100ms", "--max-per-trigger", "100")
        try:
            while process.poll() is None and killed < KILLS:
                assert time.monotonic() < deadline, job.log.read_text()[-3000:]
                time.sleep(moments.uniform(0, 0.3))
                if job.begun() > begun and kill_one(process.pid, moments):
                    killed, begun = killed + 1, job.begun()
        finally:
            kill_session(process)


def kill_one(session: int, moments: random.Random) -> bool:
    """SIGKILL for the JVM of one executor; that of the driver stays. Return whether two were there."""
    executors = [pid for pid, of in sessions() if of == session and EXECUTOR in command_of(pid)]
    if len(executors) < 2:  # the one that was killed is not replaced yet
        return False
    with suppress(ProcessLookupError):
        os.kill(moments.choice(executors), signal.SIGKILL)
    return True
