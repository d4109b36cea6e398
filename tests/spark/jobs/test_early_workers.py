"""The workers of a table start while its library is imported and the job is planned; they get its locks later."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from kclient.embedded import EmbeddedCluster
from kclient.errors import KclientError, UnknownTopicError
from kclient.spark.ingest import run as ingest
from kclient.spark.ingest.engine_direct import EARLY_WORKERS
from kclient.spark.ingest.settings import IngestSettings
from kclient.spark.ingest.worker_pool import WorkerPool, WorkerProcess
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

    def noted() -> WorkerProcess:
        workers.append(worker := start())
        return worker

    monkeypatch.setattr(WorkerProcess, "start", noted)
    yield workers
    assert [worker.process.poll() for worker in workers if worker.process.poll() is None] == []


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


@pytest.mark.parametrize("first_run", [True, False])
def test_workers_that_started_before_the_lock_hold_it_while_they_write(
    cluster: EmbeddedCluster,
    lake: DeltaLake,
    begun: list[WorkerProcess],
    monkeypatch: pytest.MonkeyPatch,
    first_run: bool,
) -> None:
    if not first_run:
        fill(cluster, 10)
        lake.run(cluster)
    held: list[set[str]] = []
    close = WorkerPool.close

    def closed(pool: WorkerPool) -> None:
        held.extend(files_of(worker.process.pid) for worker in begun if worker.process.poll() is None)
        close(pool)

    monkeypatch.setattr(WorkerPool, "close", closed)
    fill(cluster, 100)
    run(cluster, lake.root, begun, **lake.settings(parallelism=2))
    lock = str(lake.checkpoint / "kclient" / ".lock")
    assert [lock in files for files in held] == [True, True]


def test_neither_parquet_nor_a_backfill_nor_one_process_starts_workers_early(
    cluster: EmbeddedCluster, lake: DeltaLake, begun: list[WorkerProcess]
) -> None:
    fill(cluster, 100)
    assert run(cluster, lake.root / "parquet", begun, parallelism=2).planned_with == 0
    assert len(begun) == 2
    begun.clear()
    assert run(cluster, lake.root, begun, **lake.settings(start="latest")).planned_with == 0
    backfill = {"parallelism": 2, "backfill": True, "start": "earliest"}
    assert run(cluster, lake.root, begun, **lake.settings(**backfill)).planned_with == 0


def test_a_refused_job_and_one_without_records_end_their_workers(
    cluster: EmbeddedCluster, lake: DeltaLake, begun: list[WorkerProcess]
) -> None:
    with pytest.raises(UnknownTopicError):
        run(cluster, lake.root, begun, **lake.settings(parallelism=2, topics="no-such-topic"))
    assert len(begun) == EARLY_WORKERS
    assert not lake.checkpoint.exists()
    assert run(cluster, lake.root, begun, **lake.settings(parallelism=2)).results[0].rows == 0


def test_a_lock_that_is_not_to_be_had_ends_the_workers(
    cluster: EmbeddedCluster, lake: DeltaLake, begun: list[WorkerProcess]
) -> None:
    lake.run(cluster)
    (lake.checkpoint / "kclient" / ".lock").unlink()
    (lake.checkpoint / "kclient" / ".lock").symlink_to("elsewhere")
    with pytest.raises(KclientError):
        run(cluster, lake.root, begun, **lake.settings(parallelism=2))
    assert len(begun) == EARLY_WORKERS
