"""kill -9 of a job that commits into an Iceberg table, at every step and at random moments: each record counts once."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException

from kclient.embedded import EmbeddedCluster
from kclient.spark.ingest.checkpoint import Checkpoint
from kclient.spark.ingest.resume import open_table
from tests.spark.jobs import killing, killing_iceberg
from tests.spark.jobs.iceberg_support import TABLE, Lake, assert_exactly_once
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
        pytest.param(*kill, marks=() if kill in killing_iceberg.SAMPLE else pytest.mark.exhaustive)
        for kill in killing_iceberg.KILLS
    ],
)
def test_killed_at_any_step_each_record_counts_once(
    cluster: EmbeddedCluster, tmp_path: Path, step: str, times: int
) -> None:
    lake = Lake(tmp_path)
    wanted = fill(cluster, 150)
    settings = given(cluster.bootstrap_servers, tmp_path, **lake.settings())
    assert killing.killed(settings, step, times, killing_iceberg.__name__) == -9
    wanted += fill(cluster, 20, first=150)
    reporter = lake.run(cluster)
    assert reporter.results[0].ended == "drained"
    assert_exactly_once(lake, wanted)
    assert cluster.committed("lake") == ends(wanted)
    position = Checkpoint(lake.checkpoint).position()
    assert position is not None
    assert position.batch == len(lake.table.snapshots())
    assert_only_counted_files_stay(lake, wanted)


def assert_only_counted_files_stay(lake: Lake, wanted: list[Landed]) -> None:
    """What killed batches left is found and removed, and nothing that counts."""
    table = open_table("iceberg", TABLE, str(lake.catalog_file))
    table.remove(table.garbage(2**60))
    counted = {row["file_path"].removeprefix("file://") for row in lake.table.inspect.all_files().to_pylist()}
    assert set(lake.files_on_disk()) == counted
    assert_exactly_once(lake, wanted)


@contextmanager
def other_writers(lake: Lake, rows: list[int]) -> Iterator[None]:
    """Append rows without a topic to the table all the time, as another program does."""
    over = threading.Event()

    def write() -> None:
        while not over.wait(0.2):
            if not lake.catalog.table_exists(("db", "orders")):
                continue
            table = lake.table
            row = pa.table({"_topic": pa.nulls(1, pa.string()), "_offset": pa.array([len(rows)], pa.int64())})
            try:
                table.append(row)
            except CommitFailedException:
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
    lake, wanted, others = Lake(tmp_path), list[Landed](), list[int]()
    job = iceberg_job(cluster, lake)
    with producing(cluster, wanted), other_writers(lake, others):
        for _ in range(RANDOM_KILLS):
            job.killed_at_work(moments.uniform(0, 0.6))
    job.drain()
    assert_exactly_once(lake, wanted)
    assert job.begun() > RANDOM_KILLS
    theirs = lake.table.scan(row_filter="_topic is null").to_arrow().column("_offset").to_pylist()
    assert sorted(theirs) == others
    assert_only_counted_files_stay(lake, wanted)


def iceberg_job(cluster: EmbeddedCluster, lake: Lake, **changed: Any) -> Job:
    options = {
        "--topics": "orders",
        "--sink": f"iceberg:{TABLE}",
        "--catalog": str(lake.catalog_file),
        "--checkpoint": str(lake.checkpoint),
        "--engine": "direct",
        "--parallelism": "2",
        **changed,
    }
    command = [sys.executable, "-m", "kclient", "ingest", "-b", cluster.bootstrap_servers]
    command += [part for pair in options.items() for part in pair]
    return Job(command, Checkpoint(lake.checkpoint), lake.root / "log")


def test_killed_while_workers_write_and_others_commit(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    lake, wanted, others = Lake(tmp_path), list[Landed](), list[int]()
    job = iceberg_job(cluster, lake)
    with producing(cluster, wanted), other_writers(lake, others):
        for delay in (0.0, 0.1):
            job.killed_at_work(delay)
        deadline = time.monotonic() + 60
        while len(others) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
    job.drain()
    assert_exactly_once(lake, wanted)
    theirs = lake.table.scan(row_filter="_topic is null").to_arrow().column("_offset").to_pylist()
    assert sorted(theirs) == others
