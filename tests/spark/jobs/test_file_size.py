"""Files of a size: ranges are cut by what the rows took on the disk, and tasks of Spark's own sink take several."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from kclient.embedded import EmbeddedCluster
from kclient.errors import SinkError
from kclient.spark.ingest import run as ingest
from kclient.spark.ingest.checkpoint import Checkpoint
from kclient.spark.ingest.progress import BatchProgress
from kclient.spark.ingest.settings import IngestSettings
from kclient.spark.ingest.stop_signals import StopRequest
from kclient.spark.ranges import OffsetRange
from kclient.spark.sink import manifest
from kclient.spark.sink.sources import bundles
from tests.realtime import within
from tests.spark.jobs import killing
from tests.spark.jobs.support import Landed, RecordingReporter, assert_exactly_once, fill, given, rows, run
from tests.spark.jobs.test_kills import PATIENCE_SECONDS, Job, kill_session, producing

pytestmark = pytest.mark.timeout(90)
ROWS = 60


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"orders": 1}) as running:
        yield running


def produce(cluster: EmbeddedCluster) -> None:
    cluster.produce("orders", [os.urandom(50_000) for _ in range(ROWS)])


@pytest.mark.spec("SP-89")
def test_ranges_are_cut_by_the_size_of_files(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    produce(cluster)
    reporter = run(cluster, tmp_path, target_file_mb=1, parallelism=1)
    assert [(batch.rows, batch.files) for batch in reporter.batches] == [(ROWS, reporter.plans[0].tasks)]
    files = [file for whole in manifest.read_all(tmp_path / "sink") for file in whole.files]
    assert all(700_000 < file.bytes <= 1_100_000 for file in files)


@pytest.mark.spec("SP-89")
def test_a_large_size_makes_one_file_of_a_partition_whatever_the_parallelism(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    fill(cluster, ROWS)
    assert run(cluster, tmp_path / "cut", parallelism=2).batches[0].files == 2
    assert run(cluster, tmp_path / "whole", parallelism=2, target_file_mb=128).batches[0].files == 1


@pytest.mark.spec("SP-89")
@pytest.mark.parametrize("after_a_job", [False, True])
def test_a_backfill_is_cut_by_the_size_of_files(
    cluster: EmbeddedCluster, tmp_path: Path, after_a_job: bool
) -> None:
    produce(cluster)
    if after_a_job:
        run(cluster, tmp_path, start="latest")
        produce(cluster)
        run(cluster, tmp_path, parallelism=1)
    sized = {"backfill": True, "target_file_mb": 1, "parallelism": 1}
    reporter = run(cluster, tmp_path, **sized)
    assert [(batch.rows, batch.files) for batch in reporter.batches] == [(ROWS, reporter.plans[0].tasks)]
    [whole] = [one for one in manifest.read_all(tmp_path / "sink") if one.name.startswith("backfill")]
    assert all(700_000 < file.bytes <= 1_100_000 for file in whole.files)
    assert manifest.count(tmp_path / "sink") == (2 * ROWS if after_a_job else ROWS)


@pytest.mark.spec("SP-79", "SP-89")
def test_a_batch_that_runs_again_is_cut_as_it_was(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    produce(cluster)
    sized = {"target_file_mb": 1, "max_per_trigger": ROWS}
    settings = given(cluster.bootstrap_servers, tmp_path, **sized)
    assert killing.killed(settings, "after a rename", 1) == -9
    half = {path.name for path in (tmp_path / "sink").rglob("*.parquet")}
    kept = Checkpoint(tmp_path / "checkpoint").file_rows(1)
    fill(cluster, 500)  # by which a record would be estimated smaller
    run(cluster, tmp_path, **sized)
    assert half <= {Path(path).name for path in manifest.files(tmp_path / "sink")}
    assert kept is not None
    run(cluster, tmp_path, **sized)
    later = Checkpoint(tmp_path / "checkpoint").file_rows(1)
    assert later is not None
    assert later > 10 * kept


@pytest.mark.parametrize("content", ["[1]", "{}", '{"target_mb": 1, "rows": "many"}'])
def test_a_damaged_size_is_reported(content: str, tmp_path: Path) -> None:
    (tmp_path / "kclient").mkdir()
    (tmp_path / "kclient" / "files.json").write_text(content)
    with pytest.raises(SinkError, match=r"files\.json cannot be understood"):
        Checkpoint(tmp_path).file_rows(1)


@pytest.mark.spec("SP-89")
def test_small_ranges_of_one_topic_share_a_task() -> None:
    ranges = [
        OffsetRange("a", 0, 0, 4),
        OffsetRange("a", 1, 0, 5),
        OffsetRange("a", 2, 0, 3),
        OffsetRange("b", 0, 0, 1),
        OffsetRange("b", 1, 0, 99),
    ]
    assert bundles(ranges, None) == [(one,) for one in ranges]
    assert bundles(ranges, 9) == [tuple(ranges[:2]), (ranges[2],), (ranges[3],), (ranges[4],)]
    assert bundles(ranges, 100) == [tuple(ranges[:3]), tuple(ranges[3:])]
    assert bundles([], 9) == []


# --- across batches


@attrs.define
class Batches(RecordingReporter):
    """Stops the job after so many batches, and calls a function after each of the others. `times`: when each began."""

    stop: StopRequest = attrs.field(factory=StopRequest)
    most: int = 3
    after: Callable[[], object] = lambda: None
    times: list[float] = attrs.field(factory=list)

    def batch(self, progress: BatchProgress) -> None:
        RecordingReporter.batch(self, progress)
        self.times.append(time.monotonic() - progress.duration_ms / 1000)
        if len(self.batches) < self.most:
            self.after()
        else:
            self.stop.ask(15)


def gather(cluster: EmbeddedCluster, root: Path, batches: Batches, **changed: Any) -> None:
    """A job that looks every 50 ms, and begins a batch when it may."""
    settings = {"trigger": "50ms", "max_per_trigger": None, "parallelism": 1, **changed}
    ingest.run(
        IngestSettings.parse(given(cluster.bootstrap_servers, root, **settings)), batches, batches.stop
    )


@pytest.mark.spec("SP-89")
def test_small_batches_wait_for_each_other_up_to_the_latency(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    wanted, batches = list[Landed](), Batches()
    with producing(cluster, wanted):  # ten rows in 100 ms
        gather(cluster, tmp_path, batches, target_file_mb=128, max_latency="1s")
    first, second, third = batches.times
    assert min(second - first, third - second) >= 0.9
    run(cluster, tmp_path)
    assert rows(tmp_path / "sink") == sorted(wanted)


@pytest.mark.spec("SP-89")
@pytest.mark.timeout(60)
def test_a_batch_begins_when_its_files_have_their_size(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    produce(cluster)
    batches = Batches(after=lambda: produce(cluster))
    gather(cluster, tmp_path, batches, target_file_mb=1, max_latency="1h")
    assert [batch.rows for batch in batches.batches] == [ROWS] * 3


SOON_SECONDS = 1.0
"""How long a trigger and a small batch may take beside the latency."""


@pytest.mark.exclusive
@pytest.mark.spec("SP-89")
def test_a_batch_lands_no_later_than_the_latency_although_its_file_is_small(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    wanted = fill(cluster, 10)
    batches = Batches(most=2, after=lambda: wanted.extend(fill(cluster, 10, first=10)))
    with within(60) as elapsed:
        gather(cluster, tmp_path, batches, target_file_mb=128, max_latency="2s")
    first, second = batches.times
    landed_after = second - first + batches.batches[1].duration_ms / 1000
    assert 1.9 <= landed_after - elapsed.lost <= 2 + SOON_SECONDS
    assert_exactly_once(tmp_path / "sink", wanted)


@pytest.mark.spec("SP-82", "SP-89")
def test_a_job_that_is_killed_while_it_gathers_loses_nothing(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    sink, wanted = tmp_path / "sink", fill(cluster, 10)
    run(cluster, tmp_path)
    wanted += fill(cluster, 10, first=10)
    where = ["-b", cluster.bootstrap_servers, "--topics", "orders", "--sink", f"parquet:{sink}"]
    how = ["--checkpoint", str(tmp_path / "checkpoint"), "--engine", "direct", "--target-file-mb", "128"]
    command = [sys.executable, "-m", "kclient", "ingest", *where, *how]
    job = Job(command, Checkpoint(tmp_path / "checkpoint"), tmp_path / "log")
    for _ in range(2):  # a run that begins lands what is there, and gathers after it
        process = job.start("--trigger", "50ms", "--max-latency", "1h")
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while manifest.count(sink) < len(wanted):
                assert time.monotonic() < deadline, job.log.read_text()[-3000:]
                time.sleep(0.05)
            begun, landed = job.begun(), len(wanted)
            wanted += fill(cluster, 20, first=landed)
            time.sleep(1)
            assert process.poll() is None, job.log.read_text()[-3000:]
            assert (job.begun(), manifest.count(sink)) == (begun, landed)
        finally:
            kill_session(process)
    job.drain()
    assert_exactly_once(sink, wanted)
