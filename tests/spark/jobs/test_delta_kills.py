"""kill -9 of a job that commits into a Delta table, at every step and at random moments: each record counts once."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from kclient.embedded import EmbeddedCluster
from kclient.spark.ingest.checkpoint import Checkpoint
from kclient.spark.ingest.resume import open_table
from tests.spark.jobs import killing, killing_delta
from tests.spark.jobs.delta_job_support import DeltaLake, assert_exactly_once
from tests.spark.jobs.support import Landed, ends, fill, given
from tests.spark.jobs.test_kills import Job, producing

pytestmark = [pytest.mark.slow, pytest.mark.spread, pytest.mark.timeout(300)]

RANDOM_KILLS = 30


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"orders": 3}) as running:
        yield running


@pytest.mark.parametrize(
    ("step", "times"),
    [
        pytest.param(*kill, marks=() if kill in killing_delta.SAMPLE else pytest.mark.exhaustive)
        for kill in killing_delta.KILLS
    ],
)
def test_killed_at_any_step_each_record_counts_once(
    cluster: EmbeddedCluster, tmp_path: Path, step: str, times: int
) -> None:
    lake = DeltaLake(tmp_path)
    wanted = fill(cluster, 150)
    settings = given(cluster.bootstrap_servers, tmp_path, **lake.settings())
    assert killing.killed(settings, step, times, killing_delta.__name__) == -9
    wanted += fill(cluster, 20, first=150)
    reporter = lake.run(cluster)
    assert reporter.results[0].ended == "drained"
    assert_exactly_once(lake, wanted)
    assert cluster.committed("lake") == ends(wanted)
    position = Checkpoint(lake.checkpoint).position()
    assert position is not None
    assert position.batch == lake.table.version()  # one version for each batch, after the table's creation
    assert_only_counted_files_stay(lake, wanted)


def assert_only_counted_files_stay(lake: DeltaLake, wanted: list[Landed]) -> None:
    """What killed batches left is found and removed, and nothing that counts."""
    table = open_table("delta", lake.where, None)
    table.remove(table.garbage(2**42))
    assert lake.files_on_disk() == sorted(lake.table.file_uris())
    assert_exactly_once(lake, wanted)


@contextmanager
def other_writers(lake: DeltaLake, rows: list[int]) -> Iterator[None]:
    """Append rows without a topic to the table all the time, as another program does."""
    over = threading.Event()

    def write() -> None:
        while not over.wait(0.2):
            if not DeltaTable.is_deltatable(lake.where):
                continue
            columns = {"_topic": pa.nulls(1, pa.string()), "_offset": pa.array([len(rows)], pa.int64())}
            try:
                write_deltalake(lake.where, pa.table(columns), mode="append", schema_mode="merge")
            except CommitFailedError:
                continue
            rows.append(len(rows))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
def test_killed_at_random_moments_beside_other_writers_each_record_counts_once(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    lake, wanted, others = DeltaLake(tmp_path), list[Landed](), list[int]()
    job = delta_job(cluster, lake)
    with producing(cluster, wanted), other_writers(lake, others):
        for _ in range(RANDOM_KILLS):
            job.killed_at_work(moments.uniform(0, 0.6))
    job.drain()
    assert_exactly_once(lake, wanted)
    assert job.begun() > RANDOM_KILLS
    table = lake.table.to_pyarrow_table()
    theirs = table.filter(pa.compute.is_null(table["_topic"]))["_offset"].to_pylist()
    assert sorted(theirs) == others


def delta_job(cluster: EmbeddedCluster, lake: DeltaLake) -> Job:
    options = {
        "--topics": "orders",
        "--sink": f"delta:{lake.where}",
        "--checkpoint": str(lake.checkpoint),
        "--engine": "direct",
        "--parallelism": "2",
    }
    command = [sys.executable, "-m", "kclient", "ingest", "-b", cluster.bootstrap_servers]
    command += [part for pair in options.items() for part in pair]
    return Job(command, Checkpoint(lake.checkpoint), lake.root / "log")
