"""kill -9 of Spark's driver and of its Python workers while a job lands in S3: each record counts once."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from kclient.embedded import EmbeddedCluster
from kclient.spark.ingest.checkpoint import Checkpoint
from kclient.spark.sink import manifest
from tests.s3 import Bucket
from tests.spark.jobs.support import Landed, assert_exactly_once
from tests.spark.jobs.table_support import seeded
from tests.spark.jobs.test_kills import CONF, Job, kill_session, producing
from tests.spark.jobs.test_table_kills import kill_a_worker

pytestmark = [pytest.mark.slow, pytest.mark.spread, pytest.mark.exhaustive, pytest.mark.timeout(900)]

KILLS = 5


@attrs.define
class StoreJob(Job):
    """A job of Spark with sink and checkpoint in a bucket."""

    bucket: Bucket

    def begun(self) -> int:
        return sum("/offsets/" in key for key in self.bucket.listed())


@pytest.fixture
def job(cluster: EmbeddedCluster, tmp_path: Path, s3: Bucket) -> StoreJob:
    where = ["--sink", f"parquet:{s3.url('raw')}", "--checkpoint", s3.url("checkpoint")]
    how = [
        "--engine",
        "spark",
        "--master",
        "local[2,4]",
        "-b",
        cluster.bootstrap_servers,
        "--topics",
        "orders",
    ]
    conf = [part for pair in CONF.items() for part in ("--conf", "=".join(pair))]
    command = [sys.executable, "-m", "kclient", "ingest", *where, *how, *conf]
    return StoreJob(command, Checkpoint(s3.url("checkpoint")), tmp_path / "log", s3)


def test_drivers_that_are_killed_while_they_land_in_s3_land_each_record_once(
    cluster: EmbeddedCluster, job: StoreJob
) -> None:
    """kill -9 of the driver, its JVM and all Python workers."""
    moments, wanted = seeded(), list[Landed]()
    with producing(cluster, wanted):
        for _ in range(KILLS):
            job.killed_at_work(moments.uniform(0, 3))
    assert_drained(job, wanted)
    assert job.begun() > KILLS


def test_python_workers_that_are_killed_while_they_land_in_s3_land_each_record_once(
    cluster: EmbeddedCluster, job: StoreJob
) -> None:
    moments, wanted = seeded(), list[Landed]()
    with producing(cluster, wanted):
        killed_while_running(job, kill_a_worker, moments)
    assert_drained(job, wanted)


def assert_drained(job: StoreJob, wanted: list[Landed]) -> None:
    job.drain()
    sink = job.bucket.url("raw")
    assert_exactly_once(sink, wanted)
    manifest.gc(sink, apply=True, min_age_ms=0)
    files = [key for key in job.bucket.listed() if key.endswith(".parquet")]
    assert files == sorted(path.removeprefix(f"s3://{job.bucket.name}/") for path in manifest.files(sink))


def killed_while_running(
    job: Job, kill: Callable[[int, random.Random], bool], moments: random.Random, times: int = KILLS
) -> None:
    """Run a job, as often as it ends with an error, until so many of its processes were killed."""
    killed, deadline = 0, time.monotonic() + 60 * times
    while killed < times:
        process = job.start("--trigger", "100ms", "--max-per-trigger", "100")
        try:
            while process.poll() is None and killed < times:
                assert time.monotonic() < deadline, job.log.read_text()[-3000:]
                time.sleep(moments.uniform(0, 1))
                killed += kill(process.pid, moments)
            wait_for_a_batch(job, process, deadline)
        finally:
            kill_session(process)


def wait_for_a_batch(job: Job, process: subprocess.Popen[bytes], deadline: float) -> None:
    """Wait until the job has begun another batch after the last kill, or has ended with an error."""
    before = job.begun()
    while process.poll() is None and job.begun() < before + 2:
        assert time.monotonic() < deadline, job.log.read_text()[-3000:]
        time.sleep(0.2)
