"""Workers write the files of the next batch while one is committed: where they may, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.errors import DataLossError, SinkError
from kclient.spark.ingest import run as ingest
from kclient.spark.ingest.batch_commit import BatchCommitter
from kclient.spark.ingest.checkpoint import Checkpoint
from kclient.spark.ingest.settings import IngestSettings
from kclient.spark.ingest.stop_signals import StopRequest
from kclient.spark.ingest.worker_pool import WorkerPool
from kclient.spark.stream import Stream
from kclient.types import TopicPartition
from tests.spark.jobs.delta_job_support import DeltaLake
from tests.spark.jobs.support import RecordingReporter, fill, given, run
from tests.spark.jobs.table_support import assert_exactly_once, assert_only_counted_files_stay

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    return DeltaLake(tmp_path)


def at_commit(monkeypatch: pytest.MonkeyPatch, action: Callable[[int], object]) -> None:
    """Call `action` with the number of each batch before it is committed."""
    count = BatchCommitter.count

    def counted(self: BatchCommitter, name: str, *rest: Any) -> Any:
        action(int(name))
        return count(self, name, *rest)

    monkeypatch.setattr(BatchCommitter, "count", counted)


@pytest.fixture
def order(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happens in which order: `begin N` when workers get the first ranges of a batch, `commit N`."""
    found = list[str]()
    begin = WorkerPool.begin

    def begun(self: WorkerPool, ranges: Any, options: Any, target: Any) -> Any:
        found.append(f"begin {target.layout.batch}")
        return begin(self, ranges, options, target)

    monkeypatch.setattr(WorkerPool, "begin", begun)
    at_commit(monkeypatch, lambda batch: found.append(f"commit {batch}"))
    return found


def test_workers_begin_with_the_next_batch_before_one_is_committed(
    cluster: EmbeddedCluster, lake: DeltaLake, order: list[str]
) -> None:
    wanted = fill(cluster, 150)
    reporter = lake.run(cluster, parallelism=2)
    assert [batch.rows for batch in reporter.batches] == [60, 60, 30]
    assert order == ["begin 0", "begin 1", "commit 0", "begin 2", "commit 1", "commit 2"]
    assert_exactly_once(lake, wanted)
    assert lake.files_on_disk() == lake.counted_files()


@pytest.mark.parametrize("changed", [{}, {"trigger": "once", "max_per_trigger": None}])
def test_files_whose_names_another_attempt_may_write_wait_for_the_commit(
    cluster: EmbeddedCluster, tmp_path: Path, order: list[str], changed: dict[str, Any]
) -> None:
    fill(cluster, 150)
    run(cluster, tmp_path, parallelism=2, **changed)
    batches = 1 if changed else 3
    assert order == [f"{step} {batch}" for batch in range(batches) for step in ("begin", "commit")]


def test_a_batch_that_was_begun_lands_before_a_job_stops(
    cluster: EmbeddedCluster, lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, stop, reporter = fill(cluster, 150), StopRequest(), RecordingReporter()
    at_commit(monkeypatch, lambda batch: stop.ask(15) if batch == 0 else None)
    settings = given(cluster.bootstrap_servers, lake.root, **lake.settings(parallelism=2))
    ingest.run(IngestSettings.parse(settings), reporter, stop)
    assert (reporter.results[0].ended, [batch.batch for batch in reporter.batches]) == ("stopped", [0, 1])
    assert lake.files_on_disk() == lake.counted_files()
    lake.run(cluster)
    assert_exactly_once(lake, wanted)


def test_a_loss_that_is_met_before_the_commit_is_raised_after_it(
    cluster: EmbeddedCluster, lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(cluster, 150)
    latest, looks = Stream.latest, list[int]()

    def losing(self: Stream, start: Any, limit: Any) -> Any:
        looks.append(1)
        if len(looks) > 1:
            raise DataLossError("planted", kind="TRUNCATED", partitions=(TopicPartition("orders", 0),))
        return latest(self, start, limit)

    monkeypatch.setattr(Stream, "latest", losing)
    with pytest.raises(DataLossError, match="planted"):
        lake.run(cluster, parallelism=2)
    assert len(looks) == 3
    assert Checkpoint(lake.checkpoint).position().batch == 1  # type: ignore[union-attr]
    assert lake.batches() == 1


def test_a_failed_commit_leaves_files_that_gc_finds(
    cluster: EmbeddedCluster, lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = fill(cluster, 150)

    def fail(batch: int) -> None:
        if batch == 1:
            raise SinkError("planted", path="planted")

    with monkeypatch.context() as patch:
        at_commit(patch, fail)
        with pytest.raises(SinkError, match="planted"):
            lake.run(cluster, parallelism=2)
    lake.run(cluster, parallelism=2)
    assert_only_counted_files_stay(lake, wanted)


def test_what_was_begun_is_left_to_a_run_that_has_decided_the_batch(
    cluster: EmbeddedCluster, lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a checkpoint in an object store has such rivals; here one is played."""
    wanted, begin = fill(cluster, 150), Checkpoint.begin

    def of_rival(self: Checkpoint, batch: int, end: dict[Any, int]) -> Any:
        if batch == 1:
            end = {tp: offset - (offset > 25) for tp, offset in end.items()}
        return begin(self, batch, end)

    monkeypatch.setattr(Checkpoint, "begin", of_rival)
    lake.run(cluster, parallelism=2)
    assert len(lake.files_on_disk()) > len(lake.counted_files())
    assert_only_counted_files_stay(lake, wanted)
