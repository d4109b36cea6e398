"""Spark with the checkpoint of its job in an object store: no JARs of Hadoop, and nothing kept on a disk."""

from __future__ import annotations

import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.errors import SinkError
from kclient.spark.ingest.batch_commit import BatchCommitter
from kclient.spark.ingest.checkpoint import Checkpoint, Offsets
from kclient.spark.sink.store import is_remote
from tests.s3 import Bucket
from tests.spark.jobs import killing
from tests.spark.jobs.delta_job_support import DeltaLake
from tests.spark.jobs.support import RecordingReporter, assert_exactly_once, ends, fill, given, run
from tests.spark.jobs.table_support import assert_exactly_once as assert_in_table_once
from tests.spark.jobs.test_kills import CONF

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def land(cluster: EmbeddedCluster, root: Path, s3: Bucket, **changed: Any) -> RecordingReporter:
    """Run a job with Spark to its end, with its checkpoint in the bucket."""
    places = {"checkpoint": s3.url("checkpoint"), "engine": "spark", "parallelism": None}
    return run(cluster, root, **{**places, **changed})


def test_a_job_goes_on_where_its_checkpoint_in_the_store_says(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path, s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    wanted = fill(cluster, 150)
    reporter = land(cluster, tmp_path, s3)
    assert [(batch.batch, batch.rows) for batch in reporter.batches] == [(0, 60), (1, 60), (2, 30)]
    assert cluster.committed("lake") == ends(wanted)
    wanted += fill(cluster, 20, first=150)
    again = land(cluster, tmp_path, s3)
    assert [(batch.batch, batch.rows) for batch in again.batches] == [(3, 20)]
    assert_exactly_once(tmp_path / "sink", wanted)
    position = Checkpoint(s3.url("checkpoint")).position()
    assert position is not None
    assert (position.batch, position.start) == (4, ends(wanted))
    assert not list(scratch.glob("kclient-query-*"))


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_batch_that_failed_at_its_commit_is_landed_once(
    spark: SparkSession,
    cluster: EmbeddedCluster,
    tmp_path: Path,
    s3: Bucket,
    monkeypatch: pytest.MonkeyPatch,
    when: str,
) -> None:
    """More records arrive before the next run, and the batch still ends where it was to end."""
    lake, count = DeltaLake(tmp_path), BatchCommitter.count

    def fail(self: BatchCommitter, name: str, *given: Any, **more: Any) -> Any:
        if int(name) == 1 and when == "before":
            raise SinkError("The store is gone.")
        found = count(self, name, *given, **more)
        if int(name) == 1:
            raise SinkError("The store is gone.")
        return found

    wanted = fill(cluster, 90)
    with monkeypatch.context() as patch:
        patch.setattr(BatchCommitter, "count", fail)
        with pytest.raises(SinkError, match="is gone"):
            land(cluster, tmp_path, s3, **lake.settings())
    wanted += fill(cluster, 40, first=90)
    again = land(cluster, tmp_path, s3, **lake.settings())
    rows = [batch.rows for batch in again.batches]
    assert rows == ([30, 40] if when == "before" else [40])
    assert_in_table_once(lake, wanted)


def test_a_batch_that_another_run_began_meanwhile_is_told_and_landed_by_the_next_run(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path, s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = Checkpoint.begin

    def begin_second(self: Checkpoint, batch: int, end: Offsets) -> Offsets:
        if is_remote(self.where):
            begin(self, batch, {tp: min(offset, 10) for tp, offset in end.items()})
        return begin(self, batch, end)

    wanted = fill(cluster, 90)
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "begin", begin_second)
        with pytest.raises(SinkError, match="Another run has begun batch 0"):
            land(cluster, tmp_path, s3)
    again = land(cluster, tmp_path, s3)
    assert again.batches[0].end == dict.fromkeys(ends(wanted), 10)
    assert_exactly_once(tmp_path / "sink", wanted)


STEPS = [
    "after the offsets are written",
    pytest.param("before the manifest", marks=pytest.mark.exhaustive),
    "after the manifest",
    pytest.param("after the commit", marks=pytest.mark.exhaustive),
]


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_driver_leaves_all_that_the_next_one_needs_in_the_store(
    cluster: EmbeddedCluster, tmp_path: Path, s3: Bucket, step: str
) -> None:
    """Sink and checkpoint in the bucket; the next driver runs anywhere, here with the direct writer's own judge."""
    wanted = fill(cluster, 150)
    places = {"sink": f"parquet:{s3.url('raw')}", "checkpoint": s3.url("checkpoint")}
    spark = {"engine": "spark", "parallelism": None, "master": "local[2]", "conf": dict(CONF)}
    settings = given(cluster.bootstrap_servers, tmp_path, **places, **spark)
    assert killing.killed(settings, step, 1) == -signal.SIGKILL
    assert killing.killed(settings, step, 1000) == 0
    assert_exactly_once(s3.url("raw"), wanted)
    position = Checkpoint(s3.url("checkpoint")).position()
    assert position is not None
    assert position.start == ends(wanted)
