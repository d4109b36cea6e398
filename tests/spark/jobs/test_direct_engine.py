"""Ingest without Spark against the embedded cluster: exactly once, wherever it is killed, and what it says of it."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import pyarrow.parquet as pq
import pytest

from kclient.embedded import EmbeddedCluster
from kclient.errors import ConfigError, DataLossError, SinkError, UnknownTopicError
from kclient.runtime import Runtime
from kclient.spark.ingest import engine_direct
from kclient.spark.ingest import run as ingest
from kclient.spark.ingest.checkpoint import Checkpoint
from kclient.spark.ingest.progress import BatchProgress, CheckpointState
from kclient.spark.ingest.settings import IngestSettings
from kclient.spark.ingest.stop_signals import StopRequest
from kclient.spark.sink import manifest, parquet
from kclient.spark.sink.atomic_files import locked
from kclient.types import TopicPartition
from tests.spark.jobs import killing
from tests.spark.jobs.support import (
    Landed,
    RecordingReporter,
    assert_exactly_once,
    ends,
    fill,
    given,
    offsets_file,
    rows,
    run,
)

pytestmark = pytest.mark.timeout(90)


@pytest.mark.spec("SP-82", "SP-83", "SP-84")
def test_what_is_there_lands_in_batches_and_the_next_run_continues(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    wanted = fill(cluster, 150)
    reporter = run(cluster, tmp_path)
    plan, result = reporter.plans[0], reporter.results[0]
    assert (plan.topics, plan.backlog_rows, plan.checkpoint) == (("orders",), 150, CheckpointState("new"))
    assert [batch.rows for batch in reporter.batches] == [60, 60, 30]
    assert [batch.lag_records for batch in reporter.batches] == [90, 30, 0]
    assert [(batch.batch, batch.files) for batch in reporter.batches] == [(0, 3), (1, 3), (2, 3)]
    assert (result.ended, result.batches, result.rows, result.lag_records) == ("drained", 3, 150, 0)
    assert result.committed
    assert cluster.committed("lake") == ends(wanted)
    wanted += fill(cluster, 10, first=150)
    again = run(cluster, tmp_path)
    assert again.plans[0].checkpoint == CheckpointState("resume", 3)
    assert again.results[0].rows == 10
    assert_exactly_once(tmp_path / "sink", wanted)
    assert [batch.batch for batch in again.batches] == [3]


@pytest.mark.spec("SP-82")
def test_nothing_new_is_no_batch(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    wanted = fill(cluster, 10)
    run(cluster, tmp_path)
    reporter = run(cluster, tmp_path)
    assert (reporter.batches, reporter.results[0].batches, reporter.results[0].ended) == ([], 0, "drained")
    assert_exactly_once(tmp_path / "sink", wanted)


@pytest.mark.spec("ST-13", "SP-79", "SP-82")
@pytest.mark.parametrize(
    ("step", "times"),
    [(step, 0) for step in killing.STEPS] + [(step, 2) for step in killing.LATER],
)
def test_killed_at_any_step_each_record_counts_once(
    cluster: EmbeddedCluster, tmp_path: Path, step: str, times: int
) -> None:
    wanted = fill(cluster, 150)
    settings = given(cluster.bootstrap_servers, tmp_path)
    assert killing.killed(settings, step, times) == -9
    wanted += fill(cluster, 20, first=150)
    reporter = run(cluster, tmp_path)
    assert reporter.results[0].ended == "drained"
    assert_exactly_once(tmp_path / "sink", wanted)
    assert cluster.committed("lake") == ends(wanted)
    batches = reporter.plans[0].checkpoint.next_batch + len(reporter.batches)
    assert manifest.names(tmp_path / "sink") == [f"{n:012d}" for n in range(batches)]


@pytest.mark.spec("SP-78", "SP-79")
def test_a_batch_runs_again_over_the_same_offsets(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    wanted = fill(cluster, 150)
    settings = given(cluster.bootstrap_servers, tmp_path, max_per_trigger=None)
    assert killing.killed(settings, "after a rename", 1) == -9
    half = sorted(path.name for path in (tmp_path / "sink").rglob("*.parquet"))
    assert (len(half), manifest.count(tmp_path / "sink")) == (2, 0)
    later = fill(cluster, 30, first=150)
    reporter = run(cluster, tmp_path)
    assert reporter.plans[0].checkpoint == CheckpointState("resume", 0, again=True)
    assert [batch.rows for batch in reporter.batches] == [150, 30]
    assert reporter.batches[0].end == ends(wanted)
    assert set(half) < {Path(path).name for path in manifest.files(tmp_path / "sink")}
    assert_exactly_once(tmp_path / "sink", wanted + later)


@pytest.mark.spec("SP-18")
def test_latest_is_decided_once(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    fill(cluster, 50)
    assert run(cluster, tmp_path, start="latest").results[0].rows == 0
    wanted = fill(cluster, 20, first=50)
    run(cluster, tmp_path, start="latest")
    assert_exactly_once(tmp_path / "sink", wanted)


@pytest.mark.spec("SP-83")
def test_starts_at_a_time_at_a_group_and_at_offsets(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    cluster.produce("orders", [b"old"] * 3, partition=0, timestamp_ms=1_356_998_400_000)
    cluster.produce("orders", [b"new"] * 3, partition=0, timestamp_ms=1_356_998_400_001)
    run(cluster, tmp_path / "time", start="@2013-01-01T00:00:00.001Z")
    assert [row.offset for row in rows(tmp_path / "time" / "sink")] == [3, 4, 5]
    start = offsets_file(tmp_path, 5, 0, 0)
    run(cluster, tmp_path / "file", start=start)
    assert [row.offset for row in rows(tmp_path / "file" / "sink")] == [5]
    cluster.produce("orders", [b"newest"], partition=0)
    run(cluster, tmp_path / "group", start="group")
    assert [row.value for row in rows(tmp_path / "group" / "sink")] == [b"newest"]


@pytest.mark.spec("SP-83")
@pytest.mark.parametrize("offset", [4, 500])
def test_a_start_that_no_log_has_binds_no_checkpoint(
    cluster: EmbeddedCluster, tmp_path: Path, offset: int
) -> None:
    wanted = fill(cluster, 90)
    cluster.delete_records("orders", 0, 5)
    start = offsets_file(tmp_path, offset, 0, 0)
    with pytest.raises(ConfigError, match=f"not there: orders-0 at {offset}, of 5 to 30") as refused:
        run(cluster, tmp_path, start=start)
    assert len(refused.value.problems) == 1
    run(cluster, tmp_path, start="earliest")
    assert_exactly_once(
        tmp_path / "sink", [row for row in wanted if row[1:3] not in [(0, n) for n in range(5)]]
    )


@pytest.mark.spec("SP-83", "SP-85")
def test_a_start_whose_records_are_gone_may_be_accepted(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    fill(cluster, 90)
    cluster.delete_records("orders", 0, 5)
    start = offsets_file(tmp_path, 0, 0, 0)
    assert run(cluster, tmp_path, start=start, fail_on_data_loss=False).results[0].rows == 85


@pytest.mark.spec("SP-18", "SP-83")
def test_another_start_than_the_first_run_kept_is_not_ignored(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    fill(cluster, 90)
    start = offsets_file(tmp_path, 30, 30, 30)
    assert run(cluster, tmp_path, start=start).results[0].rows == 0
    start = offsets_file(tmp_path, 20, 30, 30)
    with pytest.raises(
        ConfigError, match=r"not begin at --start: orders-0 at 30, not 20.* give a new checkpoint"
    ):
        run(cluster, tmp_path, start=start)
    new = str(tmp_path / "new")
    assert run(cluster, tmp_path, start=start, checkpoint=new).results[0].rows == 10
    start = offsets_file(tmp_path, 10, 30, 30)
    assert (
        run(cluster, tmp_path, start=start, checkpoint=new).results[0].rows == 0
    )  # batches have begun: it counts no more


@pytest.mark.spec("SP-22")
def test_once_is_one_batch_without_limits(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    wanted = fill(cluster, 150)
    reporter = run(cluster, tmp_path, trigger="once")
    assert [batch.rows for batch in reporter.batches] == [150]
    assert_exactly_once(tmp_path / "sink", wanted)


@pytest.mark.spec("SP-85")
def test_a_signal_ends_it_after_the_batch_at_work(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    wanted = fill(cluster, 150)
    stop = StopRequest()

    class Impatient(RecordingReporter):
        def batch(self, progress: BatchProgress) -> None:
            super().batch(progress)
            stop.ask(15)

    reporter = Impatient()
    settings = IngestSettings.parse(given(cluster.bootstrap_servers, tmp_path, trigger="50ms"))
    ingest.run(settings, reporter, stop)
    assert (reporter.results[0].ended, reporter.results[0].signal, reporter.results[0].rows) == (
        "stopped",
        15,
        60,
    )
    with pytest.raises(KeyboardInterrupt):
        stop.ask(15)
    run(cluster, tmp_path)
    assert_exactly_once(tmp_path / "sink", wanted)


@pytest.mark.spec("SP-22")
@pytest.mark.timeout(30)
def test_a_wall_clock_that_is_set_back_delays_no_batch(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(cluster, 150)
    hours = itertools.count(1_760_000_000, -3600)
    monkeypatch.setattr(engine_direct, "Runtime", lambda: Runtime(wall_clock=lambda: next(hours)))
    stop = StopRequest()

    class Patient(RecordingReporter):
        def batch(self, progress: BatchProgress) -> None:
            super().batch(progress)
            if progress.batch == 2:
                stop.ask(15)

    reporter = Patient()
    settings = IngestSettings.parse(given(cluster.bootstrap_servers, tmp_path, trigger="500ms"))
    began = monotonic()
    ingest.run(settings, reporter, stop)
    assert monotonic() - began >= 2 * 0.5
    assert [batch.rows for batch in reporter.batches] == [60, 60, 30]


@pytest.mark.spec("SP-82")
def test_worker_processes_write_the_same_and_one_that_dies_is_replaced(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kclient.spark.ingest.worker_pool import WorkerProcess

    begun: list[WorkerProcess] = []
    held: list[str] = []
    start = WorkerProcess.start

    def mortal(locks: Sequence[int] = ()) -> WorkerProcess:
        worker = start(locks)
        held[:] = [os.readlink(f"/proc/{worker.process.pid}/fd/{lock}") for lock in locks]
        begun.append(worker)
        if len(begun) == 1:
            worker.process.kill()
        return worker

    monkeypatch.setattr(WorkerProcess, "start", mortal)
    wanted = fill(cluster, 150)
    run(cluster, tmp_path, parallelism=2)
    assert_exactly_once(tmp_path / "sink", wanted)
    assert len(begun) == 3
    assert held == [str(tmp_path / part / ".lock") for part in ("checkpoint/kclient", "sink/_manifest")]
    assert [worker.process.poll() is not None for worker in begun] == [True] * 3


@pytest.mark.spec("SP-82")
def test_an_error_of_a_worker_is_the_error_of_the_job(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    fill(cluster, 150)
    (tmp_path / "sink").mkdir()
    (tmp_path / "sink" / "topic=orders").write_text("a file where a directory belongs")
    with pytest.raises(SinkError, match="topic=orders"):
        run(cluster, tmp_path, parallelism=2)
    (tmp_path / "sink" / "topic=orders").unlink()
    assert run(cluster, tmp_path, parallelism=2).plans[0].checkpoint.again


@pytest.mark.spec("SP-86")
def test_patterns_dates_and_batches(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    new_year = 1_356_998_400_000
    for topic, time in (("clicks.eu", new_year - 1), ("clicks.us", new_year), ("xclicks.us", new_year)):
        cluster.create_topic(topic, 1)
        cluster.produce(topic, [b"click"], timestamp_ms=time)
    run(cluster, tmp_path, topics="orders,clicks.*", partition_by="topic,date(timestamp)")
    files = sorted(Path(path).relative_to(tmp_path / "sink") for path in manifest.files(tmp_path / "sink"))
    assert [str(path.parent) for path in files] == [
        "topic=clicks.eu/date=2012-12-31",
        "topic=clicks.us/date=2013-01-01",
    ]
    assert pq.read_table(tmp_path / "sink" / files[0], partitioning=None)["_ingest_batch"].to_pylist() == [0]


@pytest.mark.spec("SP-50")
def test_a_partition_that_appears_is_read_from_its_beginning(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    wanted = fill(cluster, 30)
    run(cluster, tmp_path)
    cluster.add_partitions("orders", 4)
    cluster.produce("orders", [b"first"], partition=3)
    reporter = run(cluster, tmp_path)
    assert reporter.batches[0].start[TopicPartition("orders", 3)] == 0
    assert len(rows(tmp_path / "sink")) == len(wanted) + 1


@pytest.mark.spec("SP-83", "SP-58")
def test_a_checkpoint_of_something_else_is_refused(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    fill(cluster, 30)
    run(cluster, tmp_path)
    before = _tree(tmp_path)
    cluster.create_topic("clicks", 1)
    for changed, message in (
        ({"topics": "orders,clicks"}, "topics are 'orders'"),
        ({"sink": f"parquet:{tmp_path / 'other'}"}, "its sink is"),
        ({"engine": "spark"}, "its engine is 'direct', not 'spark'.* Add --engine direct, or"),
    ):
        with pytest.raises(ConfigError, match=message):
            ingest.plan(IngestSettings.parse(given(cluster.bootstrap_servers, tmp_path, **changed)))
    with EmbeddedCluster(topics={"orders": 3}) as other, pytest.raises(ConfigError, match="cluster id"):
        run(other, tmp_path)
    cluster.recreate_topic("orders")
    with pytest.raises(ConfigError, match="orders was deleted and recreated"):
        run(cluster, tmp_path)
    assert _tree(tmp_path) == before


def _tree(root: Path) -> dict[str, Any]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.spec("SP-83")
def test_a_job_continues_however_its_places_are_spelled(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = fill(cluster, 30)
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        run(cluster, tmp_path, sink="parquet:../sink", checkpoint="../checkpoint")
    kept = tmp_path / "checkpoint" / "kclient" / "job.json"
    kept.write_text(kept.read_text().replace("/sink", "/a/../sink"))  # as a release before spelled it
    wanted += fill(cluster, 10, first=30)
    run(cluster, tmp_path)
    assert_exactly_once(tmp_path / "sink", wanted)


@pytest.mark.spec("SP-83")
def test_two_points_after_a_link_resolve_against_its_target(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    wanted = fill(cluster, 30)
    (tmp_path / "disk" / "lake").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "lake")
    run(cluster, tmp_path, sink=f"parquet:{tmp_path}/a/../link/../sink")
    assert_exactly_once(tmp_path / "disk" / "sink", wanted)
    kept = json.loads((tmp_path / "checkpoint" / "kclient" / "job.json").read_text())
    assert kept["sink"] == f"parquet:{tmp_path}/link/../sink"


@pytest.mark.spec("SP-82")
def test_a_sink_of_another_checkpoint_is_refused(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    wanted = fill(cluster, 30)
    run(cluster, tmp_path)
    shutil.rmtree(tmp_path / "checkpoint")
    with pytest.raises(SinkError, match="holds 1 batch of another job"):
        run(cluster, tmp_path)
    assert not (tmp_path / "checkpoint").exists()
    assert_exactly_once(tmp_path / "sink", wanted)


@pytest.mark.spec("SP-82")
@pytest.mark.parametrize("older", [False, True], ids=["away", "an older copy"])
def test_a_sink_without_what_has_landed_is_refused(
    cluster: EmbeddedCluster, tmp_path: Path, older: bool
) -> None:
    """Not mounted for one run: what landed beside it would be missing when it is mounted again."""
    lake, mounted = tmp_path / "lake" / "sink", f"parquet:{tmp_path / 'lake' / 'sink'}"
    wanted = fill(cluster, 30)
    run(cluster, tmp_path, sink=mounted)
    if older:
        shutil.copytree(lake, tmp_path / "copy" / "sink")
    wanted += fill(cluster, 30, first=30)
    run(cluster, tmp_path, sink=mounted)
    (tmp_path / "lake").rename(tmp_path / "unmounted")
    if older:
        (tmp_path / "copy").rename(tmp_path / "lake")
    before = _tree(tmp_path)
    wanted += fill(cluster, 30, first=60)
    settings = IngestSettings.parse(given(cluster.bootstrap_servers, tmp_path, sink=mounted))
    for go in (lambda: ingest.plan(settings), lambda: run(cluster, tmp_path, sink=mounted)):
        with pytest.raises(SinkError, match=r"does not hold batch 1, .* not mounted"):
            go()
    assert _tree(tmp_path) == before
    shutil.rmtree(tmp_path / "lake", ignore_errors=True)
    (tmp_path / "unmounted").rename(tmp_path / "lake")
    run(cluster, tmp_path, sink=mounted)
    assert_exactly_once(lake, wanted)


@pytest.mark.spec("SP-82")
@pytest.mark.parametrize("held", ["checkpoint/kclient", "sink/_manifest"])
def test_two_runs_at_once_are_refused(cluster: EmbeddedCluster, tmp_path: Path, held: str) -> None:
    with locked(tmp_path / held, "The test"), pytest.raises(SinkError, match="in use: another process"):
        run(cluster, tmp_path)
    assert run(cluster, tmp_path).results[0].ended == "drained"


@pytest.mark.spec("SP-83")
def test_a_plan_writes_nothing(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    fill(cluster, 90)
    plan = ingest.plan(IngestSettings.parse(given(cluster.bootstrap_servers, tmp_path, parallelism=6)))
    assert [(part.partition.partition, part.start, part.end) for part in plan.partitions] == [
        (0, 0, 30),
        (1, 0, 30),
        (2, 0, 30),
    ]
    assert (plan.tasks, plan.group, plan.engine, plan.trigger) == (6, "lake", "direct", "availableNow")
    assert plan.backlog_bytes is not None
    assert 500 < plan.backlog_bytes < 5_000
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spec("SP-85")
def test_lost_records_end_the_job_unless_that_is_allowed(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    fill(cluster, 30)
    run(cluster, tmp_path)
    fill(cluster, 30, first=30)
    cluster.delete_records("orders", 1, 15)
    with pytest.raises(DataLossError):
        run(cluster, tmp_path)
    run(cluster, tmp_path, fail_on_data_loss=False)
    assert manifest.count(tmp_path / "sink") == 55


@pytest.mark.spec("SP-57", "SP-85")
def test_a_topic_that_was_deleted_is_a_loss_like_any_other(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    cluster.create_topic("clicks", 1)
    wanted = fill(cluster, 30)
    run(cluster, tmp_path, topics="orders,clicks")
    cluster.delete_topic("clicks")
    wanted += fill(cluster, 30, first=30)
    with pytest.raises(DataLossError, match="clicks-0 does not exist any more") as caught:
        run(cluster, tmp_path, topics="orders,clicks", options=["fetchOffset.numRetries=1"])
    assert caught.value.kind == "PARTITIONS_DELETED"
    reporter = run(cluster, tmp_path, topics="orders,clicks", fail_on_data_loss=False)
    assert (reporter.plans[0].topics, reporter.results[0].ended) == (("orders",), "drained")
    assert_exactly_once(tmp_path / "sink", wanted)


@pytest.mark.spec("SP-71", "SP-85")
def test_after_a_loss_the_group_shows_its_lag(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    """While the job runs, not only once another has begun."""
    fill(cluster, 90)
    committed: list[int] = []

    class Cutting(RecordingReporter):
        def batch(self, progress: BatchProgress) -> None:
            if not committed:
                cluster.truncate("orders", 0, 10)
            committed.append(cluster.committed("lake")[TopicPartition("orders", 0)])

    given_here = given(cluster.bootstrap_servers, tmp_path, fail_on_data_loss=False, max_per_trigger=45)
    ingest.run(IngestSettings.parse(given_here), Cutting())
    assert committed == [15, 10]


def test_an_unknown_topic_is_reported_before_anything_is_written(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    with pytest.raises(UnknownTopicError, match="Did you mean orders"):
        run(cluster, tmp_path, topics="order")
    assert Checkpoint(tmp_path / "checkpoint").job() is None


@pytest.mark.spec("SP-68", "SP-73")
def test_a_group_with_members_does_not_stop_the_job(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    from kclient import Consumer

    wanted = fill(cluster, 30)
    with Consumer(
        "orders", bootstrap_servers=cluster.bootstrap_servers, group_id="lake", auto_offset_reset="earliest"
    ) as member:
        while not member.assignment():
            member.poll(0.1)
        reporter = run(cluster, tmp_path)
    assert reporter.results[0].committed is False
    assert_exactly_once(tmp_path / "sink", wanted)


def test_offsets_that_come_again_land_in_files_of_their_own(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    """A log is cut below what has landed, as after an unclean leader election, and grows again."""
    lossy = {"fail_on_data_loss": False, "max_per_trigger": None, "options": {"fetchOffset.numRetries": "0"}}
    wanted = fill(cluster, 30)
    run(cluster, tmp_path, **lossy)
    wanted += fill(cluster, 120, first=30)
    run(cluster, tmp_path, **lossy)
    cluster.truncate("orders", 0, 10)
    assert run(cluster, tmp_path, **lossy).results[0].rows == 0
    values = [b"new %d" % n for n in range(40)]
    places = cluster.produce("orders", values, partition=0)
    wanted += [Landed("orders", *at, value) for at, value in zip(places, values, strict=True)]
    assert run(cluster, tmp_path, **lossy).results[0].rows == 40
    assert_exactly_once(tmp_path / "sink", wanted)


def test_a_batch_of_too_many_days_lands_without_them(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "OPEN_FILES", 1)
    monkeypatch.setattr(parquet, "MAX_PARTS", 2)
    by_day: dict[str, Any] = {"partition_by": "topic,date(timestamp)"}
    wanted = fill(cluster, 30)
    for day in range(3):
        at = cluster.produce("orders", [b"x"], partition=0, timestamp_ms=day * 86_400_000)
        wanted.append(Landed("orders", *at[0], b"x"))
    for _ in range(2):
        with pytest.raises(SinkError, match="Choose another --partition-by, as topic alone"):
            run(cluster, tmp_path, **by_day)
    run(cluster, tmp_path, partition_by="topic")
    wanted += fill(cluster, 10, first=30)
    run(cluster, tmp_path, **by_day)
    assert_exactly_once(tmp_path / "sink", wanted)
