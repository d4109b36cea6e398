"""A backfill into a table beside its job: what each of the two lands, by what the table itself says."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.errors import ConfigError, SinkError
from kclient.spark.group_progress import GroupCommitter
from kclient.spark.ingest import run as ingest
from kclient.spark.ingest.checkpoint import Checkpoint
from kclient.spark.ingest.settings import IngestSettings
from kclient.spark.ingest.stop_signals import StopRequest
from kclient.spark.ingest.verification import verify
from kclient.spark.sink.verify import Span
from tests.spark.jobs import killing, killing_delta, killing_iceberg
from tests.spark.jobs.delta_job_support import DeltaLake
from tests.spark.jobs.iceberg_support import Lake
from tests.spark.jobs.support import Stopping, fill, given, offsets_file
from tests.spark.jobs.table_support import (
    TableLake,
    assert_exactly_once,
    assert_only_counted_files_stay,
)
from tests.spark.jobs.test_kills import PATIENCE_SECONDS, kill_session

pytestmark = [pytest.mark.spread, pytest.mark.timeout(120)]

BACKFILL = {"backfill": True, "max_per_trigger": None, "group": None}
BAD = {"format": "json", "schema": "value STRING", "on_bad_record": "dlq"}
REPLAY = {"format": "json", "schema": "value STRING", "on_bad_record": "null"}
ALONE = {"max_per_trigger": None, "group": None, "parallelism": None}
KILLS = {"iceberg": killing_iceberg, "delta": killing_delta}
FORMATS: dict[str, type[TableLake]] = {"iceberg": Lake, "delta": DeltaLake}


@pytest.fixture(params=FORMATS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> TableLake:
    return FORMATS[request.param](tmp_path)


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"orders": 1}) as running:
        yield running


def test_a_backfill_lands_what_was_before_the_job_and_once(cluster: EmbeddedCluster, lake: TableLake) -> None:
    wanted = fill(cluster, 100)
    lake.run(cluster, start="latest")
    wanted += fill(cluster, 30, first=100)
    lake.run(cluster)
    assert lake.run(cluster, **BACKFILL).results[0].rows == 100
    again = lake.run(cluster, **BACKFILL)
    assert (again.results[0].rows, again.plans[0].backlog_rows) == (0, 0)
    assert_exactly_once(lake, wanted)
    wanted += fill(cluster, 30, first=130)
    assert lake.run(cluster).results[0].rows == 30
    assert_exactly_once(lake, wanted)
    assert [(each.claimed, each.rows, each.outside) for each in verify(lake.open(), job_of(lake))] == [
        (Span(0, 160), 160, 0)
    ]
    assert_only_counted_files_stay(lake, wanted)


def test_offsets_that_are_there_are_refused_whoever_has_landed_them(
    cluster: EmbeddedCluster, lake: TableLake
) -> None:
    fill(cluster, 50)
    lake.run(cluster, start="latest")
    wanted = fill(cluster, 20, first=50)
    lake.run(cluster)
    part = {**BACKFILL, "start": offsets_file(lake.root, 10), "end": offsets_file(lake.root, 20)}
    lake.run(cluster, **part)
    for start, end in ((0, 11), (19, 30), (12, 14), (0, 50)):
        changed = {"start": offsets_file(lake.root, start), "end": offsets_file(lake.root, end)}
        with pytest.raises(SinkError, match=r"lands orders-0 from 10 to 20\. They would count twice"):
            lake.run(cluster, **{**BACKFILL, **changed})
    with pytest.raises(SinkError, match="lands orders-0 from 50 on"):
        lake.run(
            cluster, **{**BACKFILL, "start": offsets_file(lake.root, 40), "end": offsets_file(lake.root, 51)}
        )
    for found in lake.judged():
        assert [row.offset for row in found] == [*range(10, 20), *(row.offset for row in wanted)]
    spans = verify(lake.open(), job_of(lake))
    assert [each.claimed for each in spans] == [Span(10, 20), Span(50, 70)]
    assert all(each.is_proven and not each.outside for each in spans)


def test_the_table_says_where_the_job_began_when_its_checkpoint_is_lost(
    cluster: EmbeddedCluster, lake: TableLake
) -> None:
    wanted = fill(cluster, 50)
    lake.run(cluster, start="latest")
    wanted += fill(cluster, 20, first=50)
    lake.run(cluster)
    shutil.rmtree(lake.checkpoint)
    assert lake.run(cluster, **BACKFILL).results[0].rows == 50
    assert not lake.checkpoint.exists()
    assert_exactly_once(lake, wanted)


def test_a_new_job_lands_nothing_that_a_backfill_has(cluster: EmbeddedCluster, lake: TableLake) -> None:
    wanted = fill(cluster, 50)
    lake.run(cluster, **BACKFILL)
    with pytest.raises(SinkError, match="a new job with a --start after them"):
        lake.run(cluster)
    assert not (lake.checkpoint / "kclient" / "job.json").exists()
    wanted += fill(cluster, 20, first=50)
    lake.run(cluster, start=offsets_file(lake.root, 50))
    assert_exactly_once(lake, wanted)


def test_a_backfill_lands_while_its_job_holds_the_checkpoint(
    cluster: EmbeddedCluster, lake: TableLake
) -> None:
    wanted = fill(cluster, 50)
    lake.run(cluster, start="latest")
    wanted += fill(cluster, 10, first=50)
    job = lake.job(cluster)
    process = job.start("--trigger", "100ms")
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (position := Checkpoint(lake.checkpoint).position()) is None or position.batch < 1:
            assert time.monotonic() < deadline, job.log.read_text()[-3000:]
            time.sleep(0.05)
        assert lake.run(cluster, **BACKFILL).results[0].rows == 50
        assert process.poll() is None
    finally:
        kill_session(process)
    wanted += fill(cluster, 10, first=60)
    lake.run(cluster)
    assert_exactly_once(lake, wanted)


def kills() -> list[Any]:
    """Every step of a backfill, in its first and in a later batch; two of each format in every run."""
    few = {("iceberg", "after the catalog has answered", 2), ("iceberg", "after the manifest list", 0)}
    few |= {("delta", "after the log", 2), ("delta", "before the log", 1)}
    return [
        pytest.param(name, step, times, marks=() if (name, step, times) in few else pytest.mark.exhaustive)
        for name, steps in KILLS.items()
        for step, of in steps.STEPS.items()
        if of.owner not in (Checkpoint, GroupCommitter)
        for times in (0, 1, 2)
        if times == 0 or "created" not in step
    ]


@pytest.mark.parametrize(("name", "step", "times"), kills())
def test_a_backfill_that_was_killed_goes_on_where_the_table_says(
    cluster: EmbeddedCluster, tmp_path: Path, name: str, step: str, times: int
) -> None:
    lake, wanted = FORMATS[name](tmp_path), fill(cluster, 100)
    changed = {**BACKFILL, "max_per_trigger": 30}
    settings = given(cluster.bootstrap_servers, tmp_path, **lake.settings(**changed))
    assert killing.killed(settings, step, times, KILLS[name].__name__) == -9
    there = 0 if lake.open().find() is None else len(lake.judged()[0])
    reporter = lake.run(cluster, **changed)
    assert reporter.results[0].rows == 100 - there
    assert_exactly_once(lake, wanted)
    assert_only_counted_files_stay(lake, wanted)


def test_a_backfill_that_was_stopped_goes_on_with_the_next_batch(
    cluster: EmbeddedCluster, lake: TableLake
) -> None:
    wanted = fill(cluster, 100)
    changed = {**BACKFILL, "max_per_trigger": 30}
    settings = given(cluster.bootstrap_servers, lake.root, **lake.settings(**changed))
    stop = StopRequest()
    assert ingest.run(IngestSettings.parse(settings), Stopping(stop=stop), stop).ended == "stopped"
    reporter = lake.run(cluster, **changed)
    assert [batch.batch for batch in reporter.batches] == [1, 2, 3]
    assert reporter.plans[0].backlog_rows == 70
    assert_exactly_once(lake, wanted)


@pytest.mark.parametrize("name", FORMATS)
def test_a_backfill_of_a_recreated_topic_is_refused(
    cluster: EmbeddedCluster, tmp_path: Path, name: str
) -> None:
    lake = FORMATS[name](tmp_path)
    wanted = fill(cluster, 20)
    lake.run(cluster, **{**BACKFILL, "end": offsets_file(lake.root, 10)})
    cluster.recreate_topic("orders")
    fill(cluster, 20)
    with pytest.raises(ConfigError, match="topic orders was deleted and recreated since"):
        lake.run(cluster, **{**BACKFILL, "start": offsets_file(lake.root, 10)})
    assert_exactly_once(lake, wanted[:10])


def test_dead_letters_land_once_when_they_can_be_decoded(cluster: EmbeddedCluster, lake: TableLake) -> None:
    dead = f"parquet:{lake.root / 'dead'}"
    bad = {**BAD, "dlq": dead}
    cluster.produce("orders", [b'{"value": "1"}', b'{"val', b'{"value": "3"}'])
    assert lake.run(cluster, **bad).results[0].bad_records == 1
    cluster.produce("orders", [b"{", b'{"value": "5"}'])
    lake.run(cluster, **bad)
    replay = {"from_dlq": dead, **REPLAY, **ALONE}
    assert lake.run(cluster, **replay).results[0].rows == 2
    assert lake.run(cluster, **replay).results[0].rows == 0
    for found in lake.judged():
        assert [(row.offset, row.value) for row in found] == [
            (0, "1"),
            (1, None),
            (2, "3"),
            (3, None),
            (4, "5"),
        ]
    cluster.produce("orders", [b'{"value": "6"}'])
    assert lake.run(cluster, **bad).results[0].rows == 1
    assert all(each.is_proven for each in verify(lake.open(), job_of(lake)))


def test_dead_letters_of_a_batch_that_was_killed_are_none(
    cluster: EmbeddedCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It died after their manifest, and the run after it landed their records as null."""
    lake, dead = Lake(tmp_path), f"parquet:{tmp_path / 'dead'}"
    cluster.produce("orders", [b'{"value": "1"}', b'{"val'])
    settings = given(cluster.bootstrap_servers, tmp_path, **lake.settings(**BAD, dlq=dead))
    assert killing.killed(settings, "before the commit", 0, killing_iceberg.__name__) == -9
    with pytest.raises(ConfigError, match="run the job again first"):
        lake.run(cluster, from_dlq=dead, **REPLAY, **ALONE)
    lake.run(cluster, **REPLAY)
    assert lake.run(cluster, from_dlq=dead, **REPLAY, **ALONE).results[0].rows == 0
    assert "its dead letters do not land again" in caplog.text
    assert [row.offset for row in lake.by_pyiceberg()] == [0, 1]


@pytest.mark.parametrize("step", ["after the catalog has answered", "before the catalog is asked"])
def test_a_replay_that_was_killed_lands_each_dead_letter_once(
    cluster: EmbeddedCluster, tmp_path: Path, step: str
) -> None:
    lake, dead = Lake(tmp_path), f"parquet:{tmp_path / 'dead'}"
    cluster.produce("orders", [b'{"value": "1"}', b'{"val'])
    lake.run(cluster, **BAD, dlq=dead)
    changed = {"from_dlq": dead, **REPLAY, **ALONE}
    settings = given(cluster.bootstrap_servers, tmp_path, **lake.settings(**changed))
    assert killing.killed(settings, step, 0, killing_iceberg.__name__) == -9
    assert lake.run(cluster, **changed).results[0].rows == (0 if step.startswith("after") else 1)
    assert [row.offset for row in lake.by_pyiceberg()] == [0, 1]


def job_of(lake: TableLake) -> str:
    job = Checkpoint(lake.checkpoint).job()
    assert job is not None
    return job.job
