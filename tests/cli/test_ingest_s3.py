"""`kclient ingest` into S3 by the command line, with both engines: what it lands, shows and keeps; no credential."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.spark.sink import manifest
from localspark import JAVA_OPTIONS
from tests.s3 import Bucket
from tests.spark.jobs.support import assert_exactly_once, fill

pytestmark = [pytest.mark.timeout(300), pytest.mark.spread]

ROOT = Path(__file__).parents[2]
CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.eventLog.enabled": "true",
    "spark.log.level": "INFO",
}


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"orders": 3}) as running:
        yield running


def kclient(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    run = subprocess.run(
        [sys.executable, "-m", "kclient", "ingest", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert run.returncode == code, run.stderr[-3000:]
    return run


def job(cluster: EmbeddedCluster, s3: Bucket, *more: str) -> list[str]:
    where = ["--sink", f"parquet:{s3.url('raw')}", "--max-per-trigger", "60"]
    return ["-b", cluster.bootstrap_servers, "--topics", "orders", *where, *more]


def assert_no_credentials(s3: Bucket, tmp_path: Path, *runs: subprocess.CompletedProcess[str]) -> None:
    """Nothing that was printed or written holds the secret, and nothing that was kept the name of the key."""
    secret, name = s3.server.secret_key.encode(), s3.server.access_key.encode()
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    kept = [s3.server.data / s3.name / key for key in s3.listed()]
    assert kept
    for content in (path.read_bytes() for path in (*written, *kept)):
        assert secret not in content
        assert name not in content
    for run in runs:
        assert s3.server.secret_key not in run.stdout + run.stderr
        assert s3.server.access_key not in run.stdout + run.stderr


def test_a_job_its_status_and_its_cleaning_show_no_credential(
    cluster: EmbeddedCluster, tmp_path: Path, s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = fill(cluster, 150)
    checkpoint = ["--checkpoint", s3.url("checkpoint")]
    direct = [*job(cluster, s3), *checkpoint, "--engine", "direct", "--parallelism", "2"]
    plan = kclient(*direct, "--dry-run", "--json")
    assert json.loads(plan.stdout)["sink"] == f"parquet:{s3.url('raw')}"
    run = kclient(*direct, "--metrics", f"jsonl:{tmp_path / 'metrics'}")
    status = kclient("status", *checkpoint, "-b", cluster.bootstrap_servers, "--json")
    shown = json.loads(status.stdout)
    assert (shown["rows"], shown["next_batch"], shown["lag_records"]) == (150, 3, 0)
    assert shown["sink"] == f"parquet:{s3.url('raw')}"
    cleaned = kclient("gc", "--sink", f"parquet:{s3.url('raw')}", "--older-than", "1ms", "--apply")
    assert "nothing to remove" in cleaned.stderr
    assert_exactly_once(s3.url("raw"), wanted)
    real = s3.server.secret_key
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", f"{real}-wrong")
    refused = kclient(*direct, code=8)
    assert "The credentials of the environment or of the platform's role" in refused.stderr
    assert_no_credentials(s3, tmp_path, plan, run, status, cleaned, refused)


@pytest.mark.slow
def test_spark_executors_write_through_the_store(
    cluster: EmbeddedCluster, tmp_path: Path, s3: Bucket
) -> None:
    """The checkpoint is in a directory. Executors take the credentials of their own environment."""
    wanted = fill(cluster, 150)
    (tmp_path / "events").mkdir()
    conf = {**CONF, "spark.eventLog.dir": f"file://{tmp_path / 'events'}"}
    options = [part for pair in conf.items() for part in ("--conf", "=".join(pair))]
    where = ["--checkpoint", str(tmp_path / "checkpoint"), "--master", "local[2,4]"]
    command = [*job(cluster, s3), *where, *options]
    first = kclient(*command)
    assert_exactly_once(s3.url("raw"), wanted)
    wanted += fill(cluster, 30, first=150)
    # The same batch again, as after a driver that was killed between its manifest and the checkpoint's commit.
    os.unlink(tmp_path / "checkpoint" / "commits" / "2")
    (tmp_path / "checkpoint" / "commits" / ".2.crc").unlink(missing_ok=True)
    second = kclient(*command)
    assert_exactly_once(s3.url("raw"), wanted)
    assert manifest.names(s3.url("raw")) == [f"{n:012d}" for n in range(4)]
    assert list((tmp_path / "events").iterdir())
    assert_no_credentials(s3, tmp_path, first, second)
