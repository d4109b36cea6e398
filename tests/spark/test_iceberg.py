"""An Iceberg table as a job commits into it: once, whatever pyiceberg, the catalog and other writers do meanwhile."""

from __future__ import annotations

import json
import logging
import pickle
import socket
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyiceberg.catalog
import pyiceberg.table
import pytest
import requests
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitStateUnknownException, ServerError
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import SetLocationUpdate
from sqlalchemy.exc import OperationalError

from kclient.errors import ConfigError, SinkError
from kclient.spark.ranges import OffsetRange
from kclient.spark.sink import iceberg_catalog, iceberg_commit, tables
from kclient.spark.sink.iceberg import PROPERTY, IcebergTable
from kclient.spark.sink.iceberg_catalog import open_catalog
from kclient.spark.sink.iceberg_schema import table_schema
from kclient.spark.sink.parquet import DirectTarget, write_batches
from kclient.spark.sink.partitions import TableFiles
from kclient.spark.sink.row_layout import RowLayout
from kclient.spark.sink.store import ObjectMissing
from kclient.spark.sink.tables import TableCommit, TableProgress, TableUnavailable
from kclient.types import TopicPartition
from tests.spark.jobs.iceberg_support import TABLE, Lake
from tests.spark.memory_table import PausedRuntime
from tests.spark.test_direct import records

TP = TopicPartition("flights", 3)
KEYS = ("topic",)


@attrs.define
class Landing:
    """A job that writes ten records a batch."""

    lake: Lake
    table: IcebergTable
    files: TableFiles
    job: str = "j"

    @classmethod
    def into(cls, lake: Lake, job: str = "j", keys: tuple[str, ...] = KEYS) -> Landing:
        table = IcebergTable(TABLE, str(lake.catalog_file))
        return cls(lake, table, table.prepare(RowLayout().schema(), keys, evolves=False), job)

    def batch(self, number: int, rows: int = 10) -> TableCommit:
        """Write the files of a batch; nothing counts yet."""
        start = number * 10
        wanted = OffsetRange(*TP, start, start + 10)
        target = DirectTarget(root=self.files.root, table=self.files, layout=RowLayout(batch=number))
        written = write_batches(wanted, [records(start, rows)], target)
        return TableCommit(
            job=self.job, batch=number, start={TP: start}, end={TP: start + 10}, files=written.files
        )

    def commit(self, wanted: TableCommit) -> bool:
        return tables.commit(self.table, wanted, PausedRuntime.seeded(1))

    def progress(self) -> TableProgress | None:
        return self.table.progress(self.table.load(), self.job)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


@pytest.fixture
def landing(lake: Lake) -> Landing:
    return Landing.into(lake)


def offsets(lake: Lake) -> list[int]:
    """The offsets in the table, as pyiceberg reads them."""
    return sorted(lake.table.scan(selected_fields=("_offset",)).to_arrow().column("_offset").to_pylist())


def append_one(lake: Lake) -> None:
    """Another writer's commit."""
    row = pa.table({"_topic": pa.nulls(1, pa.string()), "_offset": pa.array([-1], pa.int64())})
    lake.table.append(row)


# --- where a job stands ----------------------------------------------------------------------------------------------


def test_a_commit_has_the_rows_and_the_progress_and_says_both_in_its_summary(landing: Landing) -> None:
    assert landing.progress() is None
    assert landing.commit(landing.batch(0))
    assert landing.commit(landing.batch(1))
    assert landing.progress() == TableProgress(batch=1, offsets={TP: 20}, first={TP: 0})
    assert offsets(landing.lake) == list(range(20))
    snapshot = landing.lake.table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    summary = snapshot.summary.additional_properties
    assert {name: value for name, value in summary.items() if name.startswith("kclient.")} == {
        "kclient.job": "j",
        "kclient.batch": "1",
        "kclient.start": '{"flights": {"3": 10}}',
        "kclient.end": '{"flights": {"3": 20}}',
    }
    assert landing.table.rows(landing.table.load()) == 20
    assert not landing.commit(landing.batch(1))
    assert offsets(landing.lake) == list(range(20))


def test_a_summary_names_only_the_partitions_that_moved_and_few_of_them(landing: Landing) -> None:
    """Each commit writes the summaries of all snapshots again."""

    def summary(**offsets: dict[TopicPartition, int]) -> dict[str, str]:
        number = -1 if (found := landing.progress()) is None else found.batch
        assert landing.commit(TableCommit(job="j", batch=number + 1, **offsets))
        snapshot = landing.lake.table.current_snapshot()
        assert snapshot is not None
        assert snapshot.summary is not None
        found = snapshot.summary.additional_properties
        return {name: text for name, text in found.items() if name in ("kclient.start", "kclient.end")}

    everything = {TopicPartition("flights", number): 0 for number in range(101)}
    moved = {**everything, TP: 10}
    assert summary(start=everything, end=moved) == {
        "kclient.start": '{"flights": {"3": 0}}',
        "kclient.end": '{"flights": {"3": 10}}',
    }
    assert summary(start=moved, end=dict.fromkeys(moved, 20)) == {}
    progress = landing.progress()
    assert progress is not None
    assert progress.offsets == dict.fromkeys(moved, 20)


def test_a_batch_without_records_moves_the_progress(landing: Landing) -> None:
    assert landing.commit(attrs.evolve(landing.batch(0), files=()))
    assert landing.commit(landing.batch(1))
    assert landing.progress() == TableProgress(batch=1, offsets={TP: 20}, first={TP: 0})
    assert offsets(landing.lake) == list(range(10, 20))


def test_a_commit_leaves_history_branches_and_tags_as_they_are(landing: Landing) -> None:
    assert landing.commit(landing.batch(0))
    first = landing.lake.table.current_snapshot()
    assert first is not None
    with landing.lake.table.manage_snapshots() as manage:
        manage.create_tag(first.snapshot_id, "kept").create_branch(first.snapshot_id, "audit")
    for number in (1, 2):
        assert landing.commit(landing.batch(number))
    table = landing.lake.table
    assert sorted(table.refs()) == ["audit", "kept", "main"]
    assert len(table.snapshots()) == len(table.history()) == 3
    assert table.scan(snapshot_id=first.snapshot_id).to_arrow().num_rows == 10
    assert offsets(landing.lake) == list(range(30))


def test_jobs_stand_beside_each_other(landing: Landing) -> None:
    other = Landing.into(landing.lake, "k")
    assert landing.commit(landing.batch(0))
    assert other.commit(other.batch(0))
    assert offsets(landing.lake) == sorted([*range(10)] * 2)


def test_expired_snapshots_take_no_rows_away(landing: Landing) -> None:
    for number in range(3):
        assert landing.commit(landing.batch(number))
    append_one(landing.lake)
    table = landing.lake.table
    current = table.current_snapshot()
    assert current is not None
    old = [snapshot.snapshot_id for snapshot in table.snapshots() if snapshot != current]
    table.maintenance.expire_snapshots().by_ids(old).commit()
    assert len(landing.lake.table.snapshots()) == 1
    assert landing.progress() == TableProgress(batch=2, offsets={TP: 30}, first={TP: 0})
    assert landing.commit(landing.batch(3))
    assert offsets(landing.lake) == [-1, *range(40)]


def test_manifests_are_merged_as_iceberg_itself_does_it(landing: Landing) -> None:
    """A reader opens each manifest, and each commit lists all of them."""
    with landing.lake.table.transaction() as changed:
        changed.set_properties({"commit.manifest.min-count-to-merge": "3"})
    counts = []
    for number in range(8):
        assert landing.commit(landing.batch(number))
        counts.append(manifests(landing.lake))
    assert counts == [1, 2, 1, 2, 1, 2, 1, 2]
    assert offsets(landing.lake) == list(range(80))
    assert landing.progress() == TableProgress(batch=7, offsets={TP: 80}, first={TP: 0})
    for snapshot in landing.lake.table.snapshots()[:3]:
        scan = landing.lake.table.scan(snapshot_id=snapshot.snapshot_id)
        assert sorted(scan.to_arrow().column("_offset").to_pylist()) == list(
            range(10 * (snapshot.sequence_number or 0))
        )


def test_a_table_may_forbid_that_manifests_are_merged(landing: Landing) -> None:
    with landing.lake.table.transaction() as changed:
        changed.set_properties(
            {"commit.manifest.min-count-to-merge": "3", "commit.manifest-merge.enabled": "false"}
        )
    for number in range(4):
        assert landing.commit(landing.batch(number))
    assert manifests(landing.lake) == 4


def manifests(lake: Lake) -> int:
    snapshot = lake.table.current_snapshot()
    assert snapshot is not None
    return len(snapshot.manifests(lake.table.io))


def test_a_commit_copies_no_history_beside_what_the_catalog_does(
    landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each copy is one of all snapshots: with thousands of them copies are what a commit costs."""
    assert landing.commit(landing.batch(0))
    copies = []
    compute = pyiceberg.table.update_table_metadata

    def counted(*given: Any, **named: Any) -> TableMetadata:
        copies.append(given)
        return compute(*given, **named)

    monkeypatch.setattr(pyiceberg.table, "update_table_metadata", counted)
    wanted = landing.batch(1)
    assert landing.commit(wanted)
    assert copies == []


def set_property(lake: Lake, name: str, value: str = "") -> None:
    with lake.table.transaction() as changed:
        changed.set_properties({name: value})


def append_an_hour_ahead(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer's commit, by a clock that is wrong."""
    made = Snapshot.__init__

    def ahead(snapshot: Snapshot, **given: Any) -> None:
        made(snapshot, **{**given, "timestamp_ms": int(time.time() * 1000) + 3_600_000})

    with monkeypatch.context() as patched:
        patched.setattr(Snapshot, "__init__", ahead)
        append_one(lake)


def test_a_snapshot_is_never_older_than_what_is_in_the_table(
    landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Iceberg's Java reads no table whose history goes back by more than a minute."""
    assert landing.commit(landing.batch(0))
    before = landing.lake.table.metadata.last_updated_ms
    append_an_hour_ahead(landing.lake, monkeypatch)
    set_property(landing.lake, "a")  # by a clock that is right
    for number in (1, 2):
        assert landing.commit(landing.batch(number))
    metadata = landing.lake.table.metadata
    times = [entry.timestamp_ms for entry in metadata.snapshot_log]
    assert times == sorted(times) == [snapshot.timestamp_ms for snapshot in metadata.snapshots]
    assert metadata.last_updated_ms == times[-1] > before + 3_500_000
    assert times[0] == before <= time.time() * 1000


def change_an_hour_ahead(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer's change of a property, by a clock that is wrong."""
    with monkeypatch.context() as patched:
        ahead = int(time.time() * 1000) + 3_600_000
        patched.setattr(pyiceberg.table.update, "datetime_to_millis", lambda _: ahead)
        set_property(lake, "a")


@pytest.mark.parametrize(
    ("step", "right"), [(append_an_hour_ahead, 2), (change_an_hour_ahead, 1), (change_an_hour_ahead, 0)]
)
def test_a_snapshot_is_never_older_than_one_or_a_version_that_is_logged(
    landing: Landing,
    monkeypatch: pytest.MonkeyPatch,
    step: Callable[[Lake, pytest.MonkeyPatch], None],
    right: int,
) -> None:
    """Each is in its own log, of which that of versions is short, and later changes are by a clock that is right."""
    set_property(landing.lake, "write.metadata.previous-versions-max", "1")
    step(landing.lake, monkeypatch)
    for number in range(right):
        set_property(landing.lake, str(number))
    assert landing.commit(landing.batch(0))
    [*_, newest] = landing.lake.table.metadata.snapshots
    assert newest.timestamp_ms > time.time() * 1000 + 3_500_000


def test_no_column_is_added_while_the_newest_version_is_ahead_of_the_clock(
    landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyiceberg gives the change the time of this machine."""
    append_an_hour_ahead(landing.lake, monkeypatch)
    columns = RowLayout().schema()
    landing.table.prepare(columns, KEYS, evolves=True)
    more = columns.append(pa.field("more", pa.string()))
    with pytest.raises(SinkError, match=r"No column can be added to db\.orders now: .* 3[56]\d\d s ahead"):
        landing.table.prepare(more, KEYS, evolves=True)
    assert len(landing.lake.table.schemas()) == 1
    monkeypatch.setattr(iceberg_commit, "BEARABLE_MS", 3_700_000)
    landing.table.prepare(more, KEYS, evolves=True)
    assert len(landing.lake.table.schemas()) == 2


def roll_back(table: Table, snapshot: int) -> None:
    with table.manage_snapshots() as manage:
        manage.rollback_to_snapshot(snapshot)


@pytest.mark.parametrize("then", ["at once", "others append", "the snapshot expires", "older ones expire"])
def test_a_rollback_that_took_rows_back_is_refused_with_two_ways_to_go_on(
    landing: Landing, then: str
) -> None:
    for number in range(3):
        assert landing.commit(landing.batch(number))
    first, *_, last = landing.lake.table.snapshots()
    roll_back(landing.lake.table, first.snapshot_id)
    if then != "at once":
        append_one(landing.lake)
    if then == "the snapshot expires":
        landing.lake.table.maintenance.expire_snapshots().by_id(last.snapshot_id).commit()
    if then == "older ones expire":
        landing.lake.table.maintenance.expire_snapshots().by_id(first.snapshot_id).commit()
    with pytest.raises(
        SinkError, match=f"rolled back or replaced, and the snapshot {last.snapshot_id}"
    ) as caught:
        landing.commit(landing.batch(3))
    assert "set_current_snapshot" in str(caught.value)
    assert "another --job" in str(caught.value)
    assert max(offsets(landing.lake)) == 9


def expire_all_but_the_newest(table: Table) -> None:
    current = table.current_snapshot()
    old = [each.snapshot_id for each in table.snapshots() if each != current]
    table.maintenance.expire_snapshots().by_ids(old).commit()


def test_a_rollback_is_recognised_after_all_that_was_before_has_expired(landing: Landing) -> None:
    for number in range(3):
        assert landing.commit(landing.batch(number))
    first, *_, last = landing.lake.table.snapshots()
    roll_back(landing.lake.table, first.snapshot_id)
    for _ in range(2):
        append_one(landing.lake)
    expire_all_but_the_newest(landing.lake.table)
    with pytest.raises(SinkError, match=f"rolled back or replaced, and the snapshot {last.snapshot_id}"):
        landing.commit(landing.batch(3))
    assert offsets(landing.lake) == [-1, -1, *range(10)]


def test_a_rollback_is_recognised_where_the_newest_batch_had_no_rows(landing: Landing) -> None:
    assert landing.commit(landing.batch(0))
    [first] = landing.lake.table.snapshots()
    assert landing.commit(landing.batch(1))
    assert landing.commit(attrs.evolve(landing.batch(2), files=()))
    roll_back(landing.lake.table, first.snapshot_id)
    append_one(landing.lake)
    expire_all_but_the_newest(landing.lake.table)
    with pytest.raises(SinkError, match="rolled back or replaced"):
        landing.progress()


def test_rows_that_were_deleted_before_their_snapshots_expired_stop_no_job(
    landing: Landing, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(2):
        assert landing.commit(landing.batch(number))
    landing.lake.table.delete("_offset >= 10")
    expire_all_but_the_newest(landing.lake.table)
    assert landing.commit(landing.batch(2))
    assert "has no rows of batch 1 of the job j" in caplog.text
    assert offsets(landing.lake) == [*range(10), *range(20, 30)]


def test_a_rollback_of_another_writers_rows_is_none_of_ours(landing: Landing) -> None:
    assert landing.commit(landing.batch(0))
    ours = landing.lake.table.current_snapshot()
    assert ours is not None
    append_one(landing.lake)
    roll_back(landing.lake.table, ours.snapshot_id)
    assert landing.commit(landing.batch(1))
    assert offsets(landing.lake) == list(range(20))


@pytest.mark.parametrize("text", [None, "{}", '{"batch": 0, "offsets": {}}', "?"])
def test_a_property_that_was_removed_or_changed_is_not_taken_for_a_new_job(
    landing: Landing, text: str | None
) -> None:
    assert landing.commit(landing.batch(0))
    with landing.lake.table.transaction() as transaction:
        if text is None:
            transaction.remove_properties(PROPERTY + "j")
        else:
            transaction.set_properties({PROPERTY + "j": text})
    with pytest.raises(SinkError, match=r"kclient\.job\.j"):
        landing.commit(landing.batch(1))


def test_a_table_that_was_dropped_is_said_to_be_gone(landing: Landing) -> None:
    assert landing.commit(landing.batch(0))
    landing.lake.catalog.drop_table(("db", "orders"))
    with pytest.raises(SinkError, match="the table does not exist any more"):
        landing.commit(landing.batch(1))
    assert landing.table.find() is None


# --- other writers, lost answers, failing catalogs -------------------------------------------------------------------


Commit = Callable[..., Any]


def at_commit(monkeypatch: pytest.MonkeyPatch, *steps: Callable[[Commit], Any]) -> list[str]:
    """Let each call of the catalog's commit be one of the steps, in order; afterwards they work."""
    works, left, made = SqlCatalog.commit_table, list(steps), list[str]()

    def commit_table(catalog: SqlCatalog, *arguments: Any) -> Any:
        made.append("commit")
        if not left:
            return works(catalog, *arguments)
        return left.pop(0)(lambda: works(catalog, *arguments))

    monkeypatch.setattr(SqlCatalog, "commit_table", commit_table)
    return made


def raising(error: Exception, *, done: bool) -> Callable[[Commit], Any]:
    """A commit that fails, after it was done or before."""

    def step(works: Commit) -> Any:
        if done:
            works()
        raise error

    return step


UNKNOWN = [
    CommitStateUnknownException("504"),
    ServerError("500"),
    requests.ConnectionError("reset by peer"),
    requests.Timeout("timed out"),
    OperationalError("UPDATE", {}, Exception("database is locked")),
]


@pytest.mark.parametrize("error", UNKNOWN, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("done", [True, False])
def test_an_unknown_outcome_is_looked_up_before_another_try(
    landing: Landing, monkeypatch: pytest.MonkeyPatch, error: Exception, done: bool
) -> None:
    assert landing.commit(landing.batch(0))
    made = at_commit(monkeypatch, raising(error, done=done))
    assert landing.commit(landing.batch(1)) is not done
    assert len(made) == (1 if done else 2)
    assert landing.commit(landing.batch(2))
    assert offsets(landing.lake) == list(range(30))


def test_another_writer_that_was_faster_costs_a_try_and_no_row(
    landing: Landing, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert landing.commit(landing.batch(0))

    def faster(works: Commit) -> Any:
        append_one(landing.lake)
        return works()

    # The writer's own commit is one of the calls.
    made = at_commit(monkeypatch, faster)
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        assert landing.commit(landing.batch(1))
    assert (made, caplog.records) == (["commit"] * 3, [])
    assert offsets(landing.lake) == [-1, *range(20)]


def test_a_second_run_that_was_faster_keeps_its_rows_and_this_one_adds_none(
    landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyiceberg's own retries would add the files to the version of the other run."""
    assert landing.commit(landing.batch(0))
    second = Landing.into(landing.lake)
    theirs = attrs.evolve(second.batch(1), end={TP: 17})

    def faster(works: Commit) -> Any:
        assert second.commit(theirs)
        return works()

    at_commit(monkeypatch, faster)
    with pytest.raises(SinkError, match="Another run of the job j has gone on"):
        landing.commit(landing.batch(1))
    assert offsets(landing.lake) == list(range(20))
    counted = {row["file_path"] for row in landing.lake.table.inspect.files().to_pylist()}
    assert {f"file://{landing.files.root}/{file.path}" for file in theirs.files} < counted


def forbid_old_metadata(lake: Lake) -> None:
    """Have each writer remove the metadata files of all versions but the newest two."""
    with lake.table.transaction() as changed:
        changed.set_properties(
            {
                "write.metadata.delete-after-commit.enabled": "true",
                "write.metadata.previous-versions-max": "1",
            }
        )


def append_thrice(lake: Lake) -> None:
    for _ in range(3):
        append_one(lake)


def at_reading(monkeypatch: pytest.MonkeyPatch, step: Callable[[], None], number: int) -> None:
    """Do something when the catalog has named a table's metadata file for the nth time, before that is read."""
    reads, steps = SqlCatalog._convert_orm_to_iceberg, [step] + [lambda: None] * (number - 1)

    def named(catalog: SqlCatalog, row: Any) -> Table:
        if steps:
            steps.pop()()
        return reads(catalog, row)

    monkeypatch.setattr(SqlCatalog, "_convert_orm_to_iceberg", named)


@pytest.mark.parametrize("number", [1, 2])
def test_metadata_that_a_faster_writer_removed_costs_a_try_and_no_row(
    landing: Landing, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Before each commit it is read twice: by the job, and by the catalog."""
    forbid_old_metadata(landing.lake)
    assert landing.commit(landing.batch(0))
    written = landing.batch(1)
    at_reading(monkeypatch, lambda: append_thrice(landing.lake), number)
    assert landing.commit(written)
    assert offsets(landing.lake) == [-1] * 3 + list(range(20))


def test_an_object_that_a_faster_writer_removed_costs_a_try(
    landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> None:
        raise ObjectMissing("Reading s3://b/00001.metadata.json failed", path="s3://b/00001.metadata.json")

    written = landing.batch(0)
    at_reading(monkeypatch, gone, 1)
    assert landing.commit(written)


def expire(lake: Lake, snapshot: Snapshot) -> None:
    """Expire a snapshot as Spark does: its files are removed too."""
    lake.table.maintenance.expire_snapshots().by_id(snapshot.snapshot_id).commit()
    Path(snapshot.manifest_list.removeprefix("file://")).unlink()


def test_a_version_that_expires_during_its_commit_costs_a_try_and_no_row(
    landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert landing.commit(landing.batch(0))
    written, base = landing.batch(1), landing.lake.table.current_snapshot()
    assert base is not None

    load, left = landing.table.load, [base]

    def loaded() -> Table:
        version = load()
        if left:
            append_one(landing.lake)
            expire(landing.lake, left.pop())
        return version

    monkeypatch.setattr(landing.table, "load", loaded)
    assert landing.commit(written)
    assert offsets(landing.lake) == [-1, *range(20)]


@pytest.mark.parametrize("what", ["metadata", "manifest list"])
def test_a_file_of_the_newest_version_that_is_gone_is_an_error(landing: Landing, what: str) -> None:
    assert landing.commit(landing.batch(0))
    written, version = landing.batch(1), landing.lake.table
    snapshot = version.current_snapshot()
    assert snapshot is not None
    gone = version.metadata_location if what == "metadata" else snapshot.manifest_list
    Path(gone.removeprefix("file://")).unlink()
    with pytest.raises(SinkError, match=rf"lake\.db\.orders failed: FileNotFoundError.*{Path(gone).name}"):
        landing.commit(written)


def test_an_error_that_another_try_does_not_mend_is_raised_at_once(
    landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = at_commit(monkeypatch, raising(PermissionError(13, "Permission denied"), done=False))
    with pytest.raises(SinkError, match=rf"Committing into {TABLE} failed: PermissionError"):
        landing.commit(landing.batch(0))
    assert made == ["commit"]


def test_a_partition_spec_that_changes_under_a_run_is_noticed(landing: Landing) -> None:
    assert landing.commit(landing.batch(0))
    written = landing.batch(1)
    with landing.lake.table.update_spec() as update:
        update.add_identity("_kafka_partition")
    with pytest.raises(SinkError, match=r"lake\.db\.orders was changed.*its partition spec"):
        landing.commit(written)
    again = Landing.into(landing.lake)
    assert again.commit(again.batch(1))
    assert offsets(landing.lake) == list(range(20))


def move_data(lake: Lake) -> None:
    with lake.table.transaction() as changed:
        changed.set_properties({"write.data.path": f"file://{lake.root}/elsewhere"})


def move_table(lake: Lake) -> None:
    moved = SetLocationUpdate(location=f"file://{lake.root}/elsewhere")
    lake.catalog.commit_table(lake.table, (), (moved,))


@pytest.mark.parametrize("move", [move_data, move_table])
def test_files_of_a_place_that_the_table_has_left_are_not_committed(
    landing: Landing, move: Callable[[Lake], None]
) -> None:
    """The commit would name them below the new place, where they are not."""
    assert landing.commit(landing.batch(0))
    written = landing.batch(1)
    move(landing.lake)
    with pytest.raises(SinkError, match=r"lake\.db\.orders was changed.*its files go to file:.*elsewhere"):
        landing.commit(written)
    assert offsets(landing.lake) == list(range(10))
    again = Landing.into(landing.lake)
    assert again.commit(again.batch(1))
    assert offsets(landing.lake) == list(range(20))


def test_files_for_a_table_that_was_dropped_and_created_again_are_not_committed(landing: Landing) -> None:
    written = landing.batch(0)
    schema = landing.lake.table.schema()
    landing.lake.catalog.drop_table(("db", "orders"))
    reordered = pa.schema(reversed(schema.as_arrow()))
    landing.lake.catalog.create_table(("db", "orders"), table_schema(reordered))
    with pytest.raises(SinkError, match="it was dropped and created again"):
        landing.commit(written)
    assert landing.lake.table.snapshots() == []


# --- files that count nowhere ----------------------------------------------------------------------------------------


def test_files_that_no_snapshot_names_are_garbage_and_those_of_old_snapshots_are_not(
    landing: Landing,
) -> None:
    lost = landing.batch(0)
    assert landing.commit(landing.batch(0))
    landing.lake.table.delete("_offset >= 0")  # the file stays in the first snapshot
    assert landing.commit(landing.batch(1))
    theirs = Path(landing.files.root) / "theirs.parquet"
    theirs.write_bytes(b"another program's")
    assert landing.table.garbage(0) == []
    found = landing.table.garbage(2**60)
    assert [each.path for each in found] == [file.path for file in lost.files]
    assert [each.bytes for each in found] == [file.bytes for file in lost.files]
    landing.table.remove(found)
    assert landing.table.garbage(2**60) == []
    assert theirs.exists()
    assert offsets(landing.lake) == list(range(10, 20))


# --- a database that does not take a change --------------------------------------------------------------------------


def test_what_the_database_of_the_catalog_did_not_take_does_not_count_as_there(landing: Landing) -> None:
    """A reader holds the database: SQLite takes the change and refuses to commit it. The connection still shows it."""
    lake = landing.lake
    text = lake.catalog_file.read_text()
    lake.catalog_file.write_text(text.replace("catalog.db", "catalog.db?timeout=0.1"))
    landing = Landing.into(lake)
    reader = sqlite3.connect(lake.root / "catalog.db", check_same_thread=False, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM iceberg_tables").fetchall()
    end = threading.Timer(1.0, reader.close)
    end.start()
    assert landing.commit(landing.batch(0))
    end.join()
    assert offsets(lake) == list(range(10))


# --- the catalog -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("catalog:\n  other:\n    uri: x\n", "has no catalog lake, which --sink names; it has other"),
        ("- a list", "not YAML of the form"),
        ("catalog: {lake: {password: hush}", "not YAML of the form"),
        ("lake:\n  uri: x\n", "not YAML of the form"),
        ("catalog:\n  lake:\n    type: strange\n", "Opening the catalog lake failed"),
    ],
)
def test_a_catalog_file_that_cannot_be_used_says_why_and_shows_nothing_of_it(
    tmp_path: Path, content: str, reason: str
) -> None:
    file = tmp_path / "catalog.yaml"
    file.write_text(content)
    with pytest.raises((ConfigError, SinkError), match=reason) as caught:
        open_catalog("lake", str(file))
    assert "hush" not in str(caught.value)


def test_names_in_a_catalog_file_are_read_as_pyiceberg_reads_its_own(lake: Lake) -> None:
    text = lake.catalog_file.read_text()
    lake.catalog_file.write_text(text.replace("catalog:", "Catalog:").replace("lake:", "Lake:"))
    assert open_catalog("lake", str(lake.catalog_file)).list_namespaces() == []


def test_requests_to_a_rest_catalog_have_a_time_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[Any] = []

    def send(session: requests.Session, request: Any, **options: Any) -> Any:
        seen.append(options.get("timeout"))
        response = requests.Response()
        response.status_code, response._content = 200, json.dumps({"defaults": {}, "overrides": {}}).encode()
        if not request.url.endswith("config"):
            response._content = b'{"namespaces": []}'
        return response

    monkeypatch.setattr(requests.Session, "send", send)
    file = tmp_path / "catalog.yaml"
    file.write_text("catalog:\n  lake:\n    type: rest\n    uri: http://127.0.0.1:9\n")
    catalog = open_catalog("lake", str(file))
    catalog.list_namespaces()
    assert seen[-1] == 60.0


@pytest.mark.parametrize("auth", ["", "    credential: me:secret\n    oauth2-server-uri: {uri}\n"])
def test_a_catalog_that_takes_connections_and_never_answers_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, auth: str
) -> None:
    monkeypatch.setattr(iceberg_catalog, "REQUEST_SECONDS", 0.3)
    file = tmp_path / "catalog.yaml"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        file.write_text(f"catalog:\n  lake:\n    type: rest\n    uri: {uri}\n" + auth.format(uri=uri))
        with pytest.raises(TableUnavailable, match=r"no answer in 0\.3 s"):
            open_catalog("lake", str(file))


def test_the_files_of_a_table_can_be_sent_to_other_processes(landing: Landing) -> None:
    again = pickle.loads(pickle.dumps(landing.files))
    assert again.schema.equals(landing.files.schema, check_metadata=True)
    assert again.partitioning == landing.files.partitioning


def test_a_catalog_that_does_not_answer_is_opened_again(
    landing: Landing, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    left = [requests.Timeout("timed out")] * 2

    def fails_once(works: Callable[..., Any], calls: int) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if len(left) == calls:
                raise left.pop()
            return works(*arguments, **options)

        return call

    monkeypatch.setattr(SqlCatalog, "load_table", fails_once(SqlCatalog.load_table, 2))
    monkeypatch.setattr(pyiceberg.catalog, "load_catalog", fails_once(pyiceberg.catalog.load_catalog, 1))
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        assert landing.commit(landing.batch(0))
    assert caplog.text.count("Timeout: timed out") == 2
    assert offsets(landing.lake) == list(range(10))
