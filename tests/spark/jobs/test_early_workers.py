"""The first workers of a table start while its library is imported and the job is planned."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from kclient.embedded import EmbeddedCluster
from kclient.errors import ConfigError
from kclient.spark.ingest import run as ingest
from kclient.spark.ingest.engine_direct import EARLY_WORKERS
from kclient.spark.ingest.settings import IngestSettings
from kclient.spark.ingest.worker_pool import WorkerProcess
from tests.spark.jobs.delta_job_support import DeltaLake
from tests.spark.jobs.support import RecordingReporter, files_of, fill, given
from tests.spark.jobs.table_support import assert_exactly_once

pytestmark = pytest.mark.spec("SP-82")

MANY = 4


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    return DeltaLake(tmp_path)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[WorkerProcess]]:
    """Every worker that is started; none of them is left at the end."""
    workers: list[WorkerProcess] = []
    start = WorkerProcess.start

    def noted(locks: Sequence[int] = ()) -> WorkerProcess:
        workers.append(worker := start(locks))
        return worker

    monkeypatch.setattr(WorkerProcess, "start", noted)
    yield workers
    assert [worker.process.pid for worker in workers if worker.process.poll() is None] == []


@attrs.define
class Looking(RecordingReporter):
    """A reporter that counts the workers when the plan is known."""

    workers: list[WorkerProcess] = attrs.field(kw_only=True)
    planned_with: int | None = None

    def planned(self, plan: Any) -> None:
        super().planned(plan)
        self.planned_with = len(self.workers)


def run(cluster: EmbeddedCluster, root: Path, workers: list[WorkerProcess], **changed: Any) -> Looking:
    reporter = Looking(workers=workers)
    ingest.run(IngestSettings.parse(given(cluster.bootstrap_servers, root, **changed)), reporter)
    return reporter


def test_few_workers_of_a_table_start_before_the_plan_and_the_others_after_it(
    cluster: EmbeddedCluster, lake: DeltaLake, begun: list[WorkerProcess]
) -> None:
    wanted = fill(cluster, 400)
    settings = lake.settings(parallelism=MANY, max_per_trigger=400)
    assert run(cluster, lake.root, begun, **settings).planned_with == EARLY_WORKERS
    assert len(begun) == MANY
    assert_exactly_once(lake, wanted)


def test_a_worker_that_has_no_range_yet_holds_the_lock(
    cluster: EmbeddedCluster, lake: DeltaLake, begun: list[WorkerProcess]
) -> None:
    """So if its parent is killed, no other run begins before it has ended."""
    fill(cluster, 100)
    lock = str(lake.checkpoint / "kclient" / ".lock")
    held: list[bool] = []

    class Planned(Looking):
        def planned(self, plan: Any) -> None:
            held.extend(lock in files_of(worker.process.pid) for worker in self.workers)

    settings = given(cluster.bootstrap_servers, lake.root, **lake.settings(parallelism=2))
    ingest.run(IngestSettings.parse(settings), Planned(workers=begun))
    assert held == [True] * EARLY_WORKERS


@pytest.mark.parametrize("other", ["parquet", "one process", "a backfill"])
def test_other_jobs_start_no_worker_early(
    cluster: EmbeddedCluster, lake: DeltaLake, begun: list[WorkerProcess], other: str
) -> None:
    fill(cluster, 100)
    settings = {
        "parquet": {"parallelism": 2},
        "one process": lake.settings(parallelism=1),
        "a backfill": lake.settings(parallelism=2, backfill=True, start="earliest"),
    }[other]
    assert run(cluster, lake.root, begun, **settings).planned_with == 0


def test_a_refused_job_and_one_without_records_end_their_workers(
    cluster: EmbeddedCluster, lake: DeltaLake, begun: list[WorkerProcess]
) -> None:
    assert run(cluster, lake.root, begun, **lake.settings(parallelism=2)).results[0].rows == 0
    assert len(begun) == EARLY_WORKERS
    with pytest.raises(ConfigError, match="belongs to another job"):
        run(cluster, lake.root, begun, **lake.settings(parallelism=2, topics="payments"))
    assert len(begun) == 2 * EARLY_WORKERS


def test_an_interrupt_while_workers_start_leaves_none_of_them(
    cluster: EmbeddedCluster, lake: DeltaLake, begun: list[WorkerProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    start = WorkerProcess.start

    def interrupted(locks: Sequence[int] = ()) -> WorkerProcess:
        signal.raise_signal(signal.SIGINT)  # it is raised where Popen has a child, and has not stored its pid
        return start(locks)

    monkeypatch.setattr(WorkerProcess, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(cluster, lake.root, begun, **lake.settings(parallelism=2))
    assert len(begun) == EARLY_WORKERS
