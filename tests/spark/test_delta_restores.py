"""RESTORE of a Delta table, beyond what its log still says: no row is left out, and no row lands twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from deltalake import CommitProperties, DeltaTable
from pyarrow.fs import FileInfo, LocalFileSystem, SubTreeFileSystem

from kclient.errors import SinkError
from kclient.spark.sink.delta import DeltaSink
from kclient.spark.sink.delta_log import Restore, Since, TransactionLog
from kclient.spark.sink.tables import TableCommit
from kclient.types import TopicPartition
from tests.spark import delta_support
from tests.spark.delta_log_support import forget_before
from tests.spark.delta_support import JOB, offsets, other_writer, three_batches, written

OTHER = TopicPartition("orders", 1)


@pytest.fixture
def sink(tmp_path: Path) -> DeltaSink:
    return three_batches(tmp_path)


def commit(sink: DeltaSink, wanted: TableCommit) -> bool:
    """Commit as a new process does."""
    return delta_support.commit(DeltaSink(sink.url), wanted)


def append(sink: DeltaSink) -> None:
    table = other_writer(sink)
    properties = CommitProperties(custom_metadata={"by": "another writer"})
    table.create_write_transaction([], "append", table.schema(), commit_properties=properties)


def clean_up(sink: DeltaSink, before: int | None = None) -> None:
    """Delete the log before a version, or before the newest one, as log clean-up does once it is old."""
    table = other_writer(sink)
    table.create_checkpoint()
    forget_before(sink, table.version() if before is None else before)


@pytest.mark.parametrize("read_before", [False, True])
def test_a_restore_of_which_the_log_is_cleaned_up_is_refused(sink: DeltaSink, read_before: bool) -> None:
    running = DeltaSink(sink.url)
    if read_before:
        assert running.progress(running.load(), JOB)
    wanted = written(sink, 3)
    other_writer(sink).restore(1)
    assert commit(sink, attrs.evolve(written(sink, 3, job="another"), batch=0))
    append(sink)
    clean_up(sink)
    with pytest.raises(
        SinkError, match=r"no rows of the job nightly from the offsets 20 to 30 of orders-0.*--start"
    ):
        delta_support.commit(running, wanted)
    assert offsets(sink) == [*range(10), *range(30, 40)]


def test_a_job_that_has_lost_its_rows_lands_them_again_under_another_name(sink: DeltaSink) -> None:
    """The way out that the refusal names."""
    other_writer(sink).restore(1)
    append(sink)
    clean_up(sink)
    again = attrs.evolve(written(sink, 1, job="again"), batch=0)
    assert commit(sink, again)
    assert commit(sink, attrs.evolve(written(sink, 2, job="again"), batch=1))
    assert offsets(sink) == list(range(30))


def undo(sink: DeltaSink) -> None:
    other_writer(sink).restore(1)
    other_writer(sink).restore(3)


KEPT: dict[str, Callable[[DeltaSink], object]] = {
    "nothing": lambda sink: None,
    "a restore that was undone": undo,
    "optimize": lambda sink: other_writer(sink).optimize.compact(),
    "a restore to the last batch": lambda sink: (append(sink), other_writer(sink).restore(3)),
}


@pytest.mark.parametrize("what", KEPT)
def test_a_job_goes_on_after_log_clean_up_where_its_rows_are_there(sink: DeltaSink, what: str) -> None:
    KEPT[what](sink)
    for _ in range(2):
        append(sink)
    clean_up(sink)
    assert commit(sink, written(sink, 3))
    assert offsets(sink) == list(range(40))


def test_rows_that_are_looked_for_are_those_of_the_last_batch_that_had_some(sink: DeltaSink) -> None:
    """Rows of idle partitions may have been deleted long ago, and the last batch may have none."""
    commit(sink, written(sink, 3, tp=OTHER))
    commit(sink, attrs.evolve(written(sink, 4), start={}, end={TopicPartition("orders", 0): 50}, files=()))
    other_writer(sink).delete("_partition = 0")
    append(sink)
    clean_up(sink)
    assert commit(sink, written(sink, 5))
    assert offsets(sink) == [*range(30, 40), *range(50, 60)]


def test_a_job_whose_last_rows_were_deleted_goes_on_with_a_warning(
    sink: DeltaSink, caplog: pytest.LogCaptureFixture
) -> None:
    append(sink)
    append(sink)
    other_writer(sink).delete("_offset >= 20")
    append(sink)
    clean_up(sink, before=5)
    with caplog.at_level("WARNING", "kclient.spark"):
        assert commit(sink, written(sink, 3))
    assert (
        "no rows of the job nightly from the offsets 20 to 30 of orders-0, and no log of that time"
        in caplog.text
    )
    assert offsets(sink) == [*range(20), *range(30, 40)]


def recreate(sink: DeltaSink) -> None:
    DeltaTable.create(sink.url, other_writer(sink).schema(), mode="overwrite")


def forget_lost_files(sink: DeltaSink) -> None:
    for file in other_writer(sink).file_uris():
        Path(file).unlink()
    other_writer(sink).repair()


def as_spark(operation: str, **parameters: str) -> Callable[[DeltaSink], None]:
    """Take all rows away, by an entry of the log as Spark writes it."""

    def act(sink: DeltaSink) -> None:
        other_writer(sink).delete()
        entry = Path(sink.url) / "_delta_log" / f"{other_writer(sink).version():020d}.json"
        lines = [json.loads(line) for line in entry.read_text().splitlines()]
        for line in lines:
            if "commitInfo" in line:
                line["commitInfo"] |= {"operation": operation, "operationParameters": parameters}
        entry.write_text("\n".join(map(json.dumps, lines)))

    return act


TAKING: dict[str, Callable[[DeltaSink], None]] = {
    "create or replace of delta-rs": recreate,
    "a repair": forget_lost_files,
    "create or replace": as_spark("CREATE OR REPLACE TABLE", isManaged="false"),
    "create or replace as select": as_spark("CREATE OR REPLACE TABLE AS SELECT", isManaged="false"),
    "replace": as_spark("REPLACE TABLE", isManaged="false"),
    "replace as select": as_spark("REPLACE TABLE AS SELECT", isManaged="false"),
    "clone": as_spark("CLONE", source="other"),
    "a query that writes all again": as_spark("STREAMING UPDATE", outputMode="Complete"),
    "insert overwrite": as_spark("WRITE", mode="Overwrite"),
}


@pytest.mark.parametrize("what", TAKING)
def test_a_table_whose_rows_were_replaced_was_not_restored(sink: DeltaSink, what: str) -> None:
    append(sink)
    TAKING[what](sink)
    version = other_writer(sink).version()
    append(sink)
    clean_up(sink, before=version)
    assert commit(sink, written(sink, 3))
    assert offsets(sink) == list(range(30, 40))


def named_by_time(sink: DeltaSink, version: int) -> None:
    """Restore to the time of a version, as an entry of the log that names a time and no version."""
    other_writer(sink).restore(version)
    entry = Path(sink.url) / "_delta_log" / f"{other_writer(sink).version():020d}.json"
    text = entry.read_text()
    assert f'"version":"{version}"' in text or f'"version":{version}' in text, text
    for old in (f'"version":"{version}"', f'"version":{version}'):
        text = text.replace(old, '"version":null,"timestamp":"2026-11-28 04:00:00"')
    entry.write_text(text)


def test_a_restore_to_a_time_is_judged_by_the_rows_of_the_last_batch(sink: DeltaSink) -> None:
    append(sink)
    named_by_time(sink, 3)
    assert commit(sink, written(sink, 3))
    wanted, version = written(sink, 4), other_writer(sink).version()
    named_by_time(sink, 2)
    with pytest.raises(
        SinkError, match=f"restored, by its version {version + 1}, .* RESTORE the table to version {version}"
    ):
        commit(sink, wanted)
    other_writer(sink).restore(version)
    assert commit(sink, wanted)
    assert offsets(sink) == list(range(50))


def test_a_restore_to_a_time_is_refused_where_rows_have_no_offsets(sink: DeltaSink) -> None:
    """Batches of a query of the user's own: nothing tells whether their rows are there."""
    batches = [attrs.evolve(written(sink, number, job="own"), start={}, end={}) for number in range(3)]
    assert commit(sink, batches[0])
    assert commit(sink, batches[1])
    named_by_time(sink, other_writer(sink).version() - 1)
    with pytest.raises(SinkError, match="restored, by its version 6"):
        commit(sink, batches[2])


@pytest.mark.parametrize("present", [(), (500, 998, 1000)])
def test_a_log_that_was_cleaned_up_for_long_costs_one_listing(
    sink: DeltaSink, monkeypatch: pytest.MonkeyPatch, present: tuple[int, ...]
) -> None:
    log, asked = Path(sink.url) / "_delta_log", list[str]()
    for version in present:
        info = {"operation": "RESTORE", "operationParameters": {"version": "3"}}
        (log / f"{version:020d}.json").write_text(json.dumps({"commitInfo": info}))
    reads, lists = TransactionLog._read, TransactionLog._entries_of

    def read(self: TransactionLog, version: int) -> dict[str, int]:
        asked.append(str(version))
        return reads(self, version)

    def listed(self: TransactionLog, directory: str) -> list[FileInfo]:
        asked.append(directory)
        return lists(self, directory)

    monkeypatch.setattr(TransactionLog, "_read", read)
    monkeypatch.setattr(TransactionLog, "_entries_of", listed)
    log_of_table = TransactionLog(SubTreeFileSystem(sink.url, LocalFileSystem()))
    wanted = Since(tuple(Restore(version, 3) for version in present), first_missing=4)
    for _ in range(2):
        assert log_of_table.since(3, 1000) == wanted
        assert asked == ["4", "_delta_log", *map(str, present)]
    assert log_of_table.since(999, 1000) == Since(
        wanted.restores[2:], first_missing=None if present else 1000
    )


@pytest.mark.parametrize(
    ("restores", "first_missing", "wanted"),
    [
        ([], None, (5, True)),
        ([], 6, (6, None)),
        ([(8, 4)], None, (8, False)),
        ([(8, 5)], None, (8, True)),
        ([(8, 5)], 6, (8, True)),
        ([(8, 6)], 6, (8, None)),
        ([(8, 4), (9, 7)], None, (9, True)),
        ([(8, 4), (9, 7)], 6, (9, None)),
        ([(8, 4), (9, 8)], None, (9, False)),
        ([(8, None)], None, (8, None)),
        ([(8, None), (9, 3)], None, (9, False)),
    ],
)
def test_what_the_log_says_of_a_batch_of_version_5(
    restores: list[tuple[int, int | None]], first_missing: int | None, wanted: tuple[int, bool | None]
) -> None:
    since = Since(tuple(Restore(*pair) for pair in restores), first_missing=first_missing)
    assert since.holds(5) == wanted
