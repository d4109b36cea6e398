"""kill -9 of jobs without Spark that land in S3, at random moments, one or two at once: each record counts once."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.spark.sink import manifest
from tests.s3 import Bucket
from tests.spark.jobs.support import Landed, assert_exactly_once
from tests.spark.jobs.test_kills import PATIENCE_SECONDS, ROOT, kill_session, producing

pytestmark = [pytest.mark.slow, pytest.mark.spread, pytest.mark.timeout(900)]

KILLS = 10


def start(cluster: EmbeddedCluster, s3: Bucket, log: Path, *more: str) -> subprocess.Popen[bytes]:
    """Start a run of the job, with two workers, in a session of its own."""
    where = ["--sink", f"parquet:{s3.url('raw')}", "--checkpoint", s3.url("checkpoint")]
    how = ["--engine", "direct", "--parallelism", "2", "--max-per-trigger", "30", *more]
    command = [
        sys.executable,
        "-m",
        "kclient",
        "ingest",
        "-b",
        cluster.bootstrap_servers,
        "--topics",
        "orders",
    ]
    with log.open("ab") as output:
        return subprocess.Popen(
            [*command, *where, *how], cwd=ROOT, stdout=output, stderr=output, start_new_session=True
        )


@pytest.mark.exhaustive
@pytest.mark.parametrize("at_once", [1, 2])
def test_killed_at_random_moments_each_record_counts_once(
    cluster: EmbeddedCluster, tmp_path: Path, s3: Bucket, at_once: int
) -> None:
    """Nothing keeps a second run out: the newest one fences the other, if it lives long enough."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    moments, wanted, log = random.Random(seed), list[Landed](), tmp_path / "log"
    with producing(cluster, wanted):
        for _ in range(KILLS):
            processes = [start(cluster, s3, log, "--trigger", "100ms") for _ in range(at_once)]
            for process in processes:
                time.sleep(moments.uniform(0.5, 3))
                kill_session(process)
    last = start(cluster, s3, log)
    try:
        assert last.wait(PATIENCE_SECONDS) == 0, log.read_text()[-3000:]
    finally:
        kill_session(last)
    assert_exactly_once(s3.url("raw"), wanted)
    assert len(manifest.names(s3.url("raw"))) > 3
    manifest.gc(s3.url("raw"), apply=True, min_age_ms=0)
    files = [key for key in s3.listed() if key.endswith(".parquet")]
    assert files == sorted(path.removeprefix(f"s3://{s3.name}/") for path in manifest.files(s3.url("raw")))
    assert_exactly_once(s3.url("raw"), wanted)
