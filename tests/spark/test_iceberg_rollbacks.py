"""Where rows of an Iceberg table were taken back, and where they only moved: no gap, and no job is stuck."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    write_manifest,
)
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update.snapshot import _FastAppendFiles, _OverwriteFiles
from pyiceberg.typedef import Record

from kclient.errors import SinkError
from kclient.spark.sink.iceberg import PROPERTY
from tests.spark.jobs.iceberg_support import IDENTIFIER, Lake
from tests.spark.test_iceberg import Landing, append_one, expire_all_but_the_newest, offsets, roll_back


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


@pytest.fixture
def landing(lake: Lake) -> Landing:
    return Landing.into(lake)


def current(table: Table) -> int:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


def commit_batches(landing: Landing, *numbers: int) -> list[int]:
    """Commit batches; return their snapshots."""
    snapshots = []
    for number in numbers:
        assert landing.commit(landing.batch(number))
        snapshots.append(current(landing.lake.table))
    return snapshots


class _Replacing:
    """A snapshot that says it has the rows of before in other files, as those of Iceberg's procedures do."""

    def _summary(self, *given: Any) -> Summary:
        found: Summary = super()._summary(*given)  # type: ignore[misc]
        return found.model_copy(update={"operation": Operation.REPLACE})


class _RewriteManifests(_Replacing, _FastAppendFiles):
    pass


class _Compact(_Replacing, _OverwriteFiles):
    pass


def rewrite(table: Table, *, compacts: bool) -> None:
    """Rewrite the manifests, or all rows into one file, as Spark's procedures do."""
    transaction = table.transaction()
    if not compacts:
        _RewriteManifests(Operation.APPEND, transaction, table.io).commit()
    else:
        files = _Compact(Operation.OVERWRITE, transaction, table.io)
        for task in table.scan().plan_files():
            files.delete_data_file(task.file)
        for each in _dataframe_to_data_files(table.metadata, table.scan().to_arrow(), table.io):
            files.append_data_file(each)
        files.commit()
    transaction.commit_transaction()


# --- rollbacks after which all that was before has expired -----------------------------------------------------------


def test_a_rewrite_of_manifests_is_not_taken_for_a_deletion(landing: Landing) -> None:
    good, _ = commit_batches(landing, 0, 1)
    roll_back(landing.lake.table, good)
    append_one(landing.lake)
    rewrite(landing.lake.table, compacts=False)
    expire_all_but_the_newest(landing.lake.table)
    [left] = landing.lake.table.snapshots()
    assert left.summary is not None
    assert left.summary.operation == Operation.REPLACE
    with pytest.raises(SinkError, match="rolled back or replaced"):
        landing.commit(landing.batch(2))


@pytest.mark.parametrize("is_back", [False, True])
def test_rows_in_the_file_of_a_compaction_are_there_and_those_of_a_rollback_are_not(
    landing: Landing, is_back: bool
) -> None:
    good, _ = commit_batches(landing, 0, 1)
    if is_back:
        roll_back(landing.lake.table, good)
    rewrite(landing.lake.table, compacts=True)
    append_one(landing.lake)
    expire_all_but_the_newest(landing.lake.table)
    if is_back:
        with pytest.raises(SinkError, match="rolled back or replaced"):
            landing.commit(landing.batch(2))
        return
    assert landing.commit(landing.batch(2))
    assert offsets(landing.lake) == [-1, *range(30)]


def test_rows_of_another_job_with_the_same_offsets_do_not_answer(landing: Landing) -> None:
    other = Landing.into(landing.lake, "k")
    commit_batches(landing, 0)
    [good] = commit_batches(other, 0)
    commit_batches(landing, 1)
    roll_back(landing.lake.table, good)
    commit_batches(other, 1)
    expire_all_but_the_newest(landing.lake.table)
    with pytest.raises(SinkError, match="Rows of the job j were taken back"):
        landing.commit(landing.batch(2))
    assert other.commit(other.batch(2))


def test_a_rollback_in_format_version_1_is_told_by_the_time(lake: Lake) -> None:
    """Its snapshots have no sequence numbers."""
    lake.catalog.create_namespace("db")
    with_columns = Landing.into(Lake(lake.root / "other")).lake.table
    lake.catalog.create_table(
        IDENTIFIER,
        with_columns.schema(),
        partition_spec=with_columns.spec(),
        properties={"format-version": "1"},
    )
    landing = Landing.into(lake)
    append_one(lake)
    lake.table.delete("_offset == -1")  # so that not all of its snapshots append
    good, bad = commit_batches(landing, 0, 1)
    roll_back(lake.table, good)
    append_one(lake)
    lake.table.maintenance.expire_snapshots().by_id(bad).commit()
    assert {each.sequence_number for each in lake.table.snapshots()} <= {0, None}
    with pytest.raises(SinkError, match="rolled back or replaced"):
        landing.commit(landing.batch(2))


def test_what_an_earlier_version_kept_of_a_batch_is_looked_up_by_its_rows(landing: Landing) -> None:
    commit_batches(landing, 0, 1)
    kept = json.loads(landing.lake.table.properties[PROPERTY + "j"])
    del kept["at"]
    kept["landed"].pop()
    with landing.lake.table.transaction() as transaction:
        transaction.set_properties({PROPERTY + "j": json.dumps(kept)})
    append_one(landing.lake)
    expire_all_but_the_newest(landing.lake.table)
    assert landing.commit(landing.batch(2))


# --- rows that were brought back -------------------------------------------------------------------------------------


def cherry_pick(table: Table, snapshot: int) -> None:
    """Add the files of a snapshot again, as Iceberg's `cherrypick_snapshot` does."""
    found = table.snapshot_by_id(snapshot)
    assert found is not None
    added = [
        entry.data_file
        for each in found.manifests(table.io)
        for entry in each.fetch_manifest_entry(table.io)
        if entry.snapshot_id == snapshot
    ]
    transaction = table.transaction()
    with transaction.update_snapshot(
        snapshot_properties={"source-snapshot-id": str(snapshot)}
    ).fast_append() as files:
        for file in added:
            files.append_data_file(file)
    transaction.commit_transaction()


def test_a_batch_that_was_cherry_picked_after_a_rollback_is_there(landing: Landing) -> None:
    good, bad = commit_batches(landing, 0, 1)
    roll_back(landing.lake.table, good)
    append_one(landing.lake)
    with pytest.raises(SinkError, match="cherrypick_snapshot of each"):
        landing.commit(landing.batch(2))
    cherry_pick(landing.lake.table, bad)
    assert landing.commit(landing.batch(2))
    assert offsets(landing.lake) == [-1, *range(30)]


@pytest.mark.parametrize("picks_all", [False, True])
def test_one_cherry_picked_batch_does_not_stand_for_those_before_it(
    landing: Landing, picks_all: bool
) -> None:
    good, middle, last = commit_batches(landing, 0, 1, 2)
    roll_back(landing.lake.table, good)
    append_one(landing.lake)
    for snapshot in (middle, last) if picks_all else (last,):
        cherry_pick(landing.lake.table, snapshot)
    if not picks_all:
        with pytest.raises(SinkError, match="rolled back or replaced"):
            landing.commit(landing.batch(3))
        return
    assert landing.commit(landing.batch(3))
    assert offsets(landing.lake) == [-1, *range(40)]


def test_a_copy_that_was_rolled_back_too_is_missed(landing: Landing) -> None:
    good, second = commit_batches(landing, 0, 1)
    roll_back(landing.lake.table, good)
    append_one(landing.lake)
    base = current(landing.lake.table)
    cherry_pick(landing.lake.table, second)
    [third] = commit_batches(landing, 2)
    roll_back(landing.lake.table, base)
    append_one(landing.lake)
    cherry_pick(landing.lake.table, third)
    with pytest.raises(SinkError, match="rolled back or replaced"):
        landing.commit(landing.batch(3))


# --- equality deletes ------------------------------------------------------------------------------------------------


STATISTICS = (
    *("column_sizes", "value_counts", "null_value_counts", "nan_value_counts"),
    *("lower_bounds", "upper_bounds"),
)


class _Upsert(_FastAppendFiles):
    """A snapshot with a file of equality deletes, as Flink's upserts add."""

    file: DataFile

    def _manifests(self) -> list[ManifestFile]:
        table = self._transaction.table_metadata
        output = self._io.new_output(f"{table.location}/metadata/deletes-m0.avro")
        with write_manifest(2, table.spec(), table.schema(), output, self._snapshot_id, "deflate") as writer:
            writer.add_entry(
                ManifestEntry.from_args(
                    status=ManifestEntryStatus.ADDED,
                    snapshot_id=self._snapshot_id,
                    sequence_number=None,
                    file_sequence_number=None,
                    data_file=self.file,
                )
            )
        manifest = writer.to_manifest_file()
        manifest._data[3] = ManifestContent.DELETES
        return [*super()._manifests(), manifest]


def delete_by_value(lake: Lake, offset: int) -> None:
    table = lake.table
    path = lake.root / "deletes.parquet"
    pq.write_table(
        table.scan(row_filter=f"_offset = {offset}", selected_fields=("_offset",)).to_arrow(), path
    )
    transaction = table.transaction()
    upsert = _Upsert(Operation.APPEND, transaction, table.io)
    statistics: dict[str, Any] = {name: {} for name in STATISTICS}
    upsert.file = DataFile.from_args(
        content=DataFileContent.EQUALITY_DELETES,
        file_path=f"file://{path}",
        file_format=FileFormat.PARQUET,
        partition=Record("flights"),
        record_count=1,
        file_size_in_bytes=path.stat().st_size,
        equality_ids=[table.schema().find_field("_offset").field_id],
        spec_id=0,
        **statistics,
    )
    upsert.commit()
    transaction.commit_transaction()


def test_a_table_with_equality_deletes_takes_batches_also_after_snapshots_have_expired(
    landing: Landing, caplog: pytest.LogCaptureFixture
) -> None:
    commit_batches(landing, 0)
    delete_by_value(landing.lake, 3)
    with pytest.raises(ValueError, match="equality deletes"):
        landing.lake.table.scan().to_arrow()
    commit_batches(landing, 1)
    append_one(landing.lake)
    expire_all_but_the_newest(landing.lake.table)
    assert landing.commit(landing.batch(2))
    assert caplog.text == ""
    files = landing.lake.table.inspect.data_files().column("file_path").to_pylist()
    assert len([path for path in files if "_topic=flights" in path]) == 3


def test_a_batch_that_is_gone_from_a_table_with_equality_deletes_stops_no_job(
    landing: Landing, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody can say by which way it went: pyiceberg cannot look for the rows."""
    good, _ = commit_batches(landing, 0, 1)
    delete_by_value(landing.lake, 3)
    roll_back(landing.lake.table, good)
    delete_by_value(landing.lake, 3)
    expire_all_but_the_newest(landing.lake.table)
    assert landing.commit(landing.batch(2))
    assert "has no rows of batch 1 of the job j" in caplog.text


def test_rows_of_a_table_with_equality_deletes_are_not_compared(landing: Landing) -> None:
    commit_batches(landing, 0)
    delete_by_value(landing.lake, 3)
    with pytest.raises(SinkError, match=r"lake\.db\.orders has equality deletes"):
        list(landing.table.coordinates(landing.table.load(), ["flights"]))
