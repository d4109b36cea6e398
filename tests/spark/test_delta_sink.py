"""A Delta table of the ingest job: each batch once, whoever else writes, and where a job stands by the table alone."""

from __future__ import annotations

import datetime
import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import duckdb
import polars
import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.schema import Field

from kclient.errors import ConfigError, SinkError
from kclient.spark.decoding.ddl import parse_ddl
from kclient.spark.sink import manifest
from kclient.spark.sink.delta import DeltaSink
from kclient.spark.sink.manifest import Manifest, batch_name
from kclient.spark.sink.tables import TableCommit, TableProgress, TableUnavailable
from kclient.types import TopicPartition
from tests.spark.delta_support import (
    JOB,
    LAYOUT,
    TP,
    by_duckdb,
    by_polars,
    commit,
    created,
    offsets,
    other_writer,
    progress,
    written,
)

OTHER = TopicPartition("orders", 1)
INT = pa.int32()
KEYS = ("topic", "date(timestamp)")


READERS = {"polars": by_polars, "duckdb": by_duckdb}


@pytest.fixture
def sink(tmp_path: Path) -> DeltaSink:
    return created(tmp_path)


def on_commit(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[Callable[[], None]], None], times: int = 1
) -> list[int]:
    """Let `act` stand for the next commits: it gets a function that really commits. Returns which were met."""
    works, met = DeltaTable.create_write_transaction, list[int]()

    def acting(self: DeltaTable, *args: Any, **kwargs: Any) -> None:
        if len(met) == times:
            return works(self, *args, **kwargs)
        met.append(self.version())
        return act(lambda: works(self, *args, **kwargs))

    monkeypatch.setattr(DeltaTable, "create_write_transaction", acting)
    return met


# --- batches, and who else reads them


def test_batches_follow_each_other_and_three_readers_find_each_row_once(sink: DeltaSink) -> None:
    for batch in range(3):
        assert commit(sink, written(sink, batch))
    assert progress(sink) == TableProgress(batch=2, offsets={TP: 30}, first={TP: 0})
    table = other_writer(sink)
    assert offsets(sink) == list(range(30)) == sorted(table.to_pyarrow_table()["_offset"].to_pylist())
    rows = table.to_pyarrow_dataset()  # noqa: F841 DuckDB finds it by its name
    [(count, distinct)] = duckdb.sql(
        "SELECT count(*), count(DISTINCT _offset) FROM rows WHERE _offset < 15"
    ).fetchall()
    assert (count, distinct) == (15, 15)
    assert offsets(sink, version=2) == list(range(20))


def test_a_table_divided_by_topic_and_day_keeps_both_in_its_log(tmp_path: Path) -> None:
    sink = created(tmp_path, *KEYS)
    assert commit(sink, written(sink, 0, rows=3))
    table = polars.read_delta(sink.url)
    assert table.sort("_offset")["_timestamp_day"].to_list() == [
        datetime.date(1970, 1, day) for day in (1, 2, 3)
    ]
    assert set(table["_topic"]) == {"orders"}
    assert len(other_writer(sink).file_uris()) == 3
    [chosen] = other_writer(sink).file_uris(file_pruning_predicate=[("_timestamp_day", "=", "1970-01-02")])
    assert pa.parquet.read_table(chosen)["_offset"].to_pylist() == [1]


def test_bounds_in_the_log_let_a_reader_skip_files(sink: DeltaSink) -> None:
    for batch in range(2):
        commit(sink, written(sink, batch))
    actions = pa.table(other_writer(sink).get_add_actions(flatten=True)).sort_by("min._offset")
    assert actions["num_records"].to_pylist() == [10, 10]
    assert actions["min._offset"].to_pylist() == [0, 10]
    assert actions["max._offset"].to_pylist() == [9, 19]
    assert actions["null_count._key"].to_pylist() == [None, None]  # raw bytes have no statistics
    (Path(sink.url) / actions["path"][0].as_py()).unlink()  # a reader that opened it would fail
    for later in READERS.values():
        assert later(sink, "_offset >= 12") == list(range(12, 20))
        with pytest.raises((OSError, duckdb.Error), match=r"(?i)no such file"):
            later(sink, "_offset >= 9")


def test_jobs_and_partitions_of_one_table_do_not_touch_each_other(sink: DeltaSink) -> None:
    assert commit(sink, written(sink, 0))
    assert commit(sink, written(sink, 0, job="a/b", tp=OTHER))
    assert commit(sink, written(sink, 1, tp=OTHER))
    assert progress(sink) == TableProgress(batch=1, offsets={TP: 10, OTHER: 20}, first={TP: 0, OTHER: 10})
    assert progress(sink, "a/b") == TableProgress(batch=0, offsets={OTHER: 10}, first={OTHER: 0})
    assert progress(sink, "a") is None


def test_the_coordinates_of_all_rows_of_some_topics_are_read_in_batches(sink: DeltaSink) -> None:
    for batch in range(2):
        commit(sink, written(sink, batch))
    commit(sink, written(sink, 2, tp=TopicPartition("clicks", 0)))
    other_writer(sink).delete("_offset = 3")
    found = pa.Table.from_batches(sink.coordinates(sink.load(), ["orders", "other"])).to_pylist()
    wanted = [offset for offset in range(20) if offset != 3]
    assert sorted(row["_offset"] for row in found) == wanted
    assert {(row["_topic"], row["_partition"]) for row in found} == {("orders", 0)}
    assert sink.rows(sink.load()) == 29


def test_files_that_no_version_names_are_found_and_removed(sink: DeltaSink) -> None:
    commit(sink, written(sink, 0))
    left = written(sink, 1).files
    hidden = Path(sink.url) / f".{left[0].path}.0123456789ab.tmp"
    hidden.write_bytes(b"x")
    (Path(sink.url) / "notes.parquet").write_bytes(b"of somebody else")
    commit(sink, written(sink, 1))
    other_writer(sink).optimize.compact()  # the files that it replaces are kept for readers of older versions
    other_writer(sink).alter.set_table_properties({"delta.logRetentionDuration": "interval 0 days"})
    other_writer(sink).create_checkpoint()
    other_writer(sink).cleanup_metadata()
    later = int(hidden.stat().st_mtime * 1000) + 1
    found = sink.garbage(later)
    assert sorted(file.path for file in found) == [hidden.name, *(file.path for file in left)]
    assert sink.garbage(later - 3_600_000) == []
    sink.remove(found)
    sink.remove(found)
    assert sink.garbage(later) == []
    assert offsets(sink) == list(range(20))
    assert len(list(Path(sink.url).glob("0*.parquet"))) == 2


def test_files_of_a_table_or_a_sink_below_are_not_looked_at(sink: DeltaSink) -> None:
    """They count there, and this table's log cannot name them."""
    commit(sink, written(sink, 0))
    below = DeltaSink(f"{sink.url}/below/clicks")
    below.prepare(LAYOUT.schema(), (), evolves=False)
    commit(below, written(below, 0))
    manifest.write(f"{sink.url}/raw", Manifest(job="j", name=batch_name(0), start={}, end={}))
    (Path(sink.url) / "raw" / ".a.parquet.0123456789ab.tmp").write_bytes(b"x")
    assert sink.garbage(2**60) == []


# --- answers that are lost, and other writers


def test_a_lost_answer_is_looked_up_and_the_batch_counts_once(
    sink: DeltaSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(works: Callable[[], None]) -> None:
        works()
        raise OSError("operation timed out")

    met = on_commit(monkeypatch, lose, times=2)
    assert not commit(sink, written(sink, 0))
    assert met == [0]
    assert offsets(sink) == list(range(10))


def test_a_service_that_fails_is_tried_again(sink: DeltaSink, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(works: Callable[[], None]) -> None:
        raise OSError("Generic S3 error: 503 Slow Down")

    met = on_commit(monkeypatch, fail, times=3)
    assert commit(sink, written(sink, 0))
    assert met == [0, 0, 0]
    assert offsets(sink) == list(range(10))


def test_credentials_that_are_refused_are_not_tried_again(
    sink: DeltaSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(works: Callable[[], None]) -> None:
        raise OSError(
            "The operation lacked the necessary privileges to complete for path t?X-Amz-Signature=1"
        )

    met = on_commit(monkeypatch, refuse, times=3)
    with pytest.raises(SinkError, match="lacked the necessary privileges") as caught:
        commit(sink, written(sink, 0))
    assert met == [0]
    assert "Signature" not in str(caught.value)


OTHERS: dict[str, Callable[[DeltaTable], Any]] = {
    "append": lambda table: table.create_write_transaction(
        [],
        "append",
        table.schema(),
        commit_properties=CommitProperties(app_transactions=[Transaction("other", 1)]),
    ),
    "optimize": lambda table: table.optimize.compact(),
    "delete": lambda table: table.delete("_offset = 3"),
    "add a column": lambda table: table.alter.add_columns([Field("more", "string")]),
    "set a property": lambda table: table.alter.set_table_properties({"delta.appendOnly": "false"}),
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_commit_beside_another_writer_is_done_on_the_new_version(
    other: str, sink: DeltaSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    for batch in range(2):
        commit(sink, written(sink, batch))
    wanted = written(sink, 2)

    def be_slow(works: Callable[[], None]) -> None:
        OTHERS[other](other_writer(sink))
        works()

    met = on_commit(monkeypatch, be_slow)
    assert commit(sink, wanted)
    assert met == [2]
    table = other_writer(sink)
    assert table.version() == table.transaction_version(f"kclient/{JOB}/version") == 4
    assert offsets(sink) == [offset for offset in range(30) if other != "delete" or offset != 3]
    assert progress(sink) == TableProgress(batch=2, offsets={TP: 30}, first={TP: 0})


def test_two_runs_of_a_job_at_the_same_time_land_each_batch_once(sink: DeltaSink) -> None:
    runs = [[written(sink, batch) for batch in range(5)] for _ in range(4)]
    start, refused = threading.Barrier(len(runs)), list[SinkError]()

    def run(batches: list[TableCommit]) -> None:
        mine = DeltaSink(sink.url)
        for wanted in batches:
            start.wait()
            try:
                commit(mine, wanted)
            except SinkError as exc:
                refused.append(exc)

    threads = [threading.Thread(target=run, args=(batches,)) for batches in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert offsets(sink) == list(range(50))
    assert other_writer(sink).version() == 5
    assert progress(sink) == TableProgress(batch=4, offsets={TP: 50}, first={TP: 0})
    assert all("Another run of the job nightly has gone on" in str(exc) for exc in refused)


def test_a_run_that_was_taken_for_dead_cannot_commit_any_more(sink: DeltaSink) -> None:
    zombie = written(sink, 0, rows=7)
    commit(sink, written(sink, 0))
    with pytest.raises(SinkError, match="Another run of the job nightly has gone on"):
        commit(DeltaSink(sink.url), zombie)
    assert offsets(sink) == list(range(10))


def test_delta_rs_commits_for_the_version_after_the_one_it_has_read_or_not_at_all(sink: DeltaSink) -> None:
    """What the rules stand on: with retries it would commit after another run of the job."""
    old = other_writer(sink)
    commit(sink, written(sink, 0))
    with pytest.raises(CommitFailedError, match=r"transaction: 0$"):
        old.create_write_transaction(
            [], "append", old.schema(), commit_properties=CommitProperties(max_commit_retries=0)
        )


# --- the log: checkpoints, clean-up, RESTORE


@pytest.mark.parametrize("keep", ["_last_checkpoint", "nothing but checkpoint and log"])
def test_the_job_finds_its_place_after_log_clean_up(sink: DeltaSink, keep: str) -> None:
    running = DeltaSink(sink.url)
    commit(running, written(sink, 0))
    commit(sink, written(sink, 1, tp=OTHER))
    table = other_writer(sink)
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 0 days"})
    commit(sink, written(sink, 2, tp=OTHER))
    table = other_writer(sink)
    table.create_checkpoint()
    table.cleanup_metadata()
    log = Path(sink.url) / "_delta_log"
    assert sorted(path.suffixes[-1] for path in log.glob("0*")) == [".json", ".parquet"]
    if keep != "_last_checkpoint":
        (log / "_last_checkpoint").unlink()

    wanted = TableProgress(batch=2, offsets={TP: 10, OTHER: 30}, first={TP: 0, OTHER: 10})
    assert progress(sink) == wanted
    assert running.progress(running.load(), JOB) == wanted  # it had read what was deleted since
    assert commit(running, written(sink, 3, tp=OTHER))
    assert offsets(sink) == list(range(40))


def test_a_restore_that_took_rows_of_the_job_away_is_refused_until_it_is_undone(sink: DeltaSink) -> None:
    for batch in range(3):
        commit(sink, written(sink, batch))
    other_writer(sink).restore(2)
    wanted = written(sink, 3)
    for table in (sink, DeltaSink(sink.url)):
        with pytest.raises(
            SinkError, match=r"restored, by its version 4, .*RESTORE the table to version 3\. "
        ):
            commit(table, wanted)
    assert offsets(sink) == list(range(20))
    other_writer(sink).restore(3)
    assert commit(sink, wanted)
    assert offsets(sink) == list(range(40))


def test_a_restore_to_a_version_with_the_last_batch_takes_nothing_away(sink: DeltaSink) -> None:
    commit(sink, written(sink, 0))
    OTHERS["set a property"](other_writer(sink))
    other_writer(sink).restore(1)
    assert commit(sink, written(sink, 1))
    assert offsets(sink) == list(range(20))


def test_a_table_that_was_dropped_and_created_again_is_recognised(sink: DeltaSink) -> None:
    for batch in range(2):
        commit(sink, written(sink, batch))
    wanted = written(sink, 2)
    shutil.rmtree(sink.url)
    with pytest.raises(SinkError, match="no table at"):
        commit(sink, wanted)
    sink.prepare(LAYOUT.schema(), (), evolves=False)
    with pytest.raises(SinkError, match="knows nothing of the job nightly"):
        commit(sink, wanted)
    assert commit(sink, written(sink, 0))
    assert progress(sink) == TableProgress(batch=0, offsets={TP: 10}, first={TP: 0})


def test_the_table_is_opened_once_for_batches_that_follow_each_other(
    sink: DeltaSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And still each commit sees what others have done since."""
    batches = [written(sink, batch) for batch in range(4)]
    opened = list[int]()
    opens = DeltaSink._open
    monkeypatch.setattr(DeltaSink, "_open", lambda self: opened.append(1) or opens(self))
    assert commit(sink, batches[0])
    assert commit(sink, batches[1])
    for name in ("append", "set a property", "optimize"):
        OTHERS[name](other_writer(sink))
    assert commit(sink, batches[2])
    assert len(opened) == 1
    other_writer(sink).restore(2)
    with pytest.raises(
        SinkError, match="was restored, by its version 7, to what it was before the last batch"
    ):
        commit(sink, batches[3])
    assert len(opened) == 1


@pytest.mark.parametrize("versions", [1, 5], ids=["shorter", "longer"])
def test_a_table_made_at_the_place_of_one_between_two_batches_is_recognised(
    sink: DeltaSink, versions: int
) -> None:
    batches = [written(sink, batch) for batch in range(3)]
    for wanted in batches[:2]:
        commit(sink, wanted)
    shutil.rmtree(Path(sink.url) / "_delta_log")
    with pytest.raises(SinkError, match="no table at"):
        commit(sink, batches[2])
    commit(created(Path(sink.url).parent), attrs.evolve(batches[0], job="other"))
    commit(sink, attrs.evolve(batches[0], job="another"))  # the table is held again
    shutil.rmtree(Path(sink.url) / "_delta_log")
    created(Path(sink.url).parent)
    for _ in range(versions):
        OTHERS["set a property"](other_writer(sink))
    with pytest.raises(SinkError, match="knows nothing of the job nightly"):
        commit(sink, batches[2])
    with pytest.raises(SinkError, match="knows nothing of the job another"):
        commit(sink, attrs.evolve(batches[1], job="another"))


@pytest.mark.parametrize("others", [0, 3], ids=["shorter", "as long"])
def test_a_backup_that_was_put_back_between_two_batches_is_recognised(sink: DeltaSink, others: int) -> None:
    """With its times, so that its entries are those of before."""
    table, backup = Path(sink.url), Path(sink.url).with_name("backup")
    batches = [written(sink, batch) for batch in range(5)]
    for batch, wanted in enumerate(batches[:4]):
        commit(sink, wanted)
        if batch == 1:
            shutil.copytree(table, backup, copy_function=shutil.copy2)
    shutil.rmtree(table / "_delta_log")
    shutil.copytree(backup / "_delta_log", table / "_delta_log", copy_function=shutil.copy2)
    for batch in range(others):
        commit(DeltaSink(sink.url), written(DeltaSink(sink.url), batch, tp=OTHER, job="other"))
    version = sink.load()
    assert sorted(version.file_uris()) == sorted(other_writer(sink).file_uris())
    assert sink.progress(version, JOB) == TableProgress(batch=1, offsets={TP: 20}, first={TP: 0})
    with pytest.raises(SinkError, match="does not follow on it"):
        commit(sink, batches[4])
    assert commit(sink, batches[2])
    assert offsets(sink) == sorted([*range(30), *range(10 * others)])


def test_a_log_that_was_cleaned_up_between_two_batches_is_read_anew(sink: DeltaSink) -> None:
    batches = [written(sink, batch) for batch in range(3)]
    for wanted in batches[:2]:
        commit(sink, wanted)
    other_writer(sink).create_checkpoint()
    for version in range(2):
        (Path(sink.url) / "_delta_log" / f"{version:020d}.json").unlink()
    assert commit(sink, batches[2])
    assert offsets(sink) == list(range(30))


def test_a_table_that_cannot_be_brought_up_to_date_is_opened_anew(
    sink: DeltaSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: DeltaTable) -> None:
        raise DeltaError(
            "Kernel error: Invalid Checkpoint: Gap between checkpoint version 99 and next commit 155"
        )

    monkeypatch.setattr(DeltaTable, "update_incremental", fail)
    for wanted in [written(sink, batch) for batch in range(2)]:
        commit(sink, wanted)
    assert offsets(sink) == list(range(20))


def test_the_log_is_cleaned_up_with_each_hundredth_version(
    sink: DeltaSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time the whole log is listed."""
    cleaned, works = dict[int, bool | None](), DeltaTable.create_write_transaction

    def recording(self: DeltaTable, *args: Any, **kwargs: Any) -> None:
        cleaned[self.version() + 1] = kwargs["post_commithook_properties"].cleanup_expired_logs
        works(self, *args, **kwargs)

    monkeypatch.setattr(DeltaTable, "create_write_transaction", recording)
    for _ in range(98):
        OTHERS["set a property"](other_writer(sink))
    for batch in range(3):
        commit(sink, written(sink, batch))
    assert cleaned == {99: False, 100: None, 101: False}


def test_a_damaged_log_is_an_error_and_not_a_new_job(sink: DeltaSink) -> None:
    commit(sink, written(sink, 0))
    entry = Path(sink.url) / "_delta_log" / f"{1:020d}.json"
    entry.write_text(entry.read_text().replace('"kclient.batch":0', '"kclient.batch":'))
    with pytest.raises((SinkError, TableUnavailable)):
        progress(sink)


# --- tables that do not fit


def test_a_table_that_lost_a_column_while_files_were_written_is_refused(tmp_path: Path) -> None:
    sink = created(tmp_path)
    wanted = written(sink, 0)
    other = pa.schema([field for field in LAYOUT.schema() if field.name != "_key"])
    DeltaTable.create(sink.url, Schema.from_arrow(other), mode="overwrite")
    with pytest.raises(SinkError, match="was changed while files were written for it: _key differ"):
        commit(sink, wanted)


def test_a_table_that_is_partitioned_otherwise_since_is_refused(tmp_path: Path) -> None:
    sink = created(tmp_path)
    wanted = written(sink, 0)
    DeltaTable.create(sink.url, Schema.from_arrow(LAYOUT.schema()), mode="overwrite", partition_by="_topic")
    with pytest.raises(SinkError, match="was changed while files were written for it: _topic differ"):
        commit(sink, wanted)


def test_rows_are_written_with_the_columns_of_a_table_that_is_there(tmp_path: Path) -> None:
    wider = [pa.field("_partition", pa.int64()), *(f for f in LAYOUT.schema() if f.name != "_partition")]
    more = pa.field("note", pa.string())
    url = str(tmp_path / "table")
    DeltaTable.create(url, Schema.from_arrow(pa.schema([*wider, more])), partition_by=["_topic"])
    sink = DeltaSink(url)
    assert commit(sink, written(sink, 0))
    table = polars.read_delta(url)
    assert table.height == 10
    assert (table["_partition"].dtype, table["note"].null_count()) == (polars.Int64, 10)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"_key": None}, "the table has no column _key"),
        ({"_offset": pa.int32()}, "its _offset is int32, and int64 needs type widening"),
        ({"must": pa.field("must", pa.int64(), nullable=False)}, "its must must not be null"),
    ],
)
def test_a_table_with_other_columns_is_refused_before_anything_is_written(
    tmp_path: Path, columns: dict[str, Any], reason: str
) -> None:
    fields = {field.name: field for field in LAYOUT.schema()}
    for name, kind in columns.items():
        fields[name] = kind if isinstance(kind, pa.Field) else pa.field(name, kind) if kind else None
    DeltaTable.create(
        str(tmp_path), Schema.from_arrow(pa.schema([field for field in fields.values() if field]))
    )
    sink = DeltaSink(str(tmp_path))
    with pytest.raises(ConfigError, match=reason):
        sink.check(LAYOUT.schema(), ("topic",), evolves=False)


def test_a_table_whose_partition_column_is_in_no_row_is_refused(tmp_path: Path) -> None:
    columns = pa.schema([*LAYOUT.schema(), pa.field("country", pa.string())])
    DeltaTable.create(str(tmp_path), Schema.from_arrow(columns), partition_by=["country"])
    sink = DeltaSink(str(tmp_path))
    with pytest.raises(ConfigError, match="its partition column country is in no row"):
        sink.check(LAYOUT.schema(), ("topic",), evolves=False)


def test_a_table_whose_writers_must_check_rows_is_refused(sink: DeltaSink) -> None:
    wanted = written(sink, 0)
    other_writer(sink).alter.add_constraint({"positive": "_offset >= 0"})
    with pytest.raises(ConfigError, match="it has the constraint positive"):
        sink.check(LAYOUT.schema(), ("topic",), evolves=False)
    with pytest.raises(ConfigError, match="it has the constraint positive"):
        commit(sink, wanted)


def test_a_table_that_forgets_where_jobs_stand_is_refused(sink: DeltaSink) -> None:
    wanted = attrs.evolve(written(sink, 0), files=())
    name = "delta.setTransactionRetentionDuration"
    other_writer(sink).alter.set_table_properties({name: "interval 30 days"}, raise_if_not_exists=False)
    with pytest.raises(ConfigError, match=f"with {name} it forgets"):
        sink.check(LAYOUT.schema(), ("topic",), evolves=False)
    with pytest.raises(ConfigError, match=f"with {name} it forgets"):
        commit(sink, wanted)


@pytest.mark.parametrize(
    ("feature", "reads"),
    [
        ("icebergCompatV2", False),
        ("clustering", False),
        ("domainMetadata", False),
        ("typeWidening", True),
        ("vacuumProtocolCheck", True),
    ],
)
def test_a_table_with_a_feature_that_delta_rs_does_not_commit_to_is_refused(
    sink: DeltaSink, feature: str, reads: bool
) -> None:
    log = Path(sink.url) / "_delta_log" / f"{0:020d}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    readers = {"minReaderVersion": 3, "readerFeatures": [feature]} if reads else {"minReaderVersion": 1}
    for line in lines:
        if "protocol" in line:
            line["protocol"] = {**readers, "minWriterVersion": 7, "writerFeatures": [feature]}
    log.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises((ConfigError, SinkError), match=f"(?i){feature}"):
        sink.check(LAYOUT.schema(), ("topic",), evolves=False)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("truncate(4,_key)", "_key is binary"),
        ("bucket(4,_headers)", "_headers is list<"),
        ("hour(_offset)", "_offset is int64"),
        ("country", "there is no column country"),
        ("_key", "_key is binary"),
        ("day(_offset)", "_offset is int64"),
    ],
)
def test_a_key_that_delta_does_not_have_is_refused(tmp_path: Path, key: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        created(tmp_path, key)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        (pa.field("a b", pa.int64()), "'a b' is no name of a column"),
        (pa.field("_OFFSET", pa.int64()), "_OFFSET differs from another one only in its case"),
        (pa.field("x", pa.struct([("a b", pa.int64())])), "'x.a b' is no name of a column"),
        (pa.field("x", pa.list_(pa.struct([("c;d", INT)]))), "'x.element.c;d' is no name of a column"),
        (pa.field("x", pa.map_(pa.string(), pa.struct([("", INT)]))), "'x.value.' is no name of a column"),
        (pa.field("x", pa.struct([("a", INT), ("A", INT)])), "x.A differs from another one only in its case"),
        (pa.field("t", pa.time64("us")), "Time64"),
        (pa.field("u", pa.uint64()), "u would be int64, not uint64"),
    ],
)
def test_columns_that_delta_does_not_have_are_refused(tmp_path: Path, field: pa.Field, reason: str) -> None:
    sink = DeltaSink(str(tmp_path / "table"))
    with pytest.raises(ConfigError, match=reason):
        sink.check(LAYOUT.schema().append(field), (), evolves=False)
    assert list(tmp_path.iterdir()) == []


def test_each_type_of_a_schema_is_one_of_the_table(tmp_path: Path) -> None:
    kind = parse_ddl(
        "--schema",
        "b BOOLEAN, t TINYINT, s SMALLINT, i INT, l BIGINT, f FLOAT, d DOUBLE, c DECIMAL(38,10), x STRING, y BINARY, "
        "w DATE, z TIMESTAMP, n TIMESTAMP_NTZ, a ARRAY<STRUCT<q: DECIMAL(4,2)>>, m MAP<STRING, TIMESTAMP>, "
        "r STRUCT<v: STRUCT<u: BIGINT>>",
    )
    sink = DeltaSink(str(tmp_path))
    files = sink.prepare(pa.schema(list(kind)), (), evolves=False)
    assert files.schema.types == [field.type for field in kind]
    assert files.schema.names == [field.name for field in kind]


def test_a_second_creation_leaves_the_table_as_it_is(sink: DeltaSink) -> None:
    commit(sink, written(sink, 0))
    sink.prepare(LAYOUT.schema(), ("topic",), evolves=False)
    assert offsets(sink) == list(range(10))


def test_columns_are_added_to_a_table(sink: DeltaSink) -> None:
    commit(sink, written(sink, 0))
    rows = LAYOUT.schema().append(pa.field("note", pa.string()))
    with pytest.raises(ConfigError, match="the table has no column note"):
        sink.check(rows, ("topic",), evolves=False)
    sink.check(rows, ("topic",), evolves=True)
    for _ in range(2):
        assert sink.prepare(rows, ("topic",), evolves=True).schema.names == rows.names
    assert other_writer(sink).version() == 2
    assert polars.read_delta(sink.url)["note"].null_count() == 10


def test_a_batch_without_files_moves_the_offsets(sink: DeltaSink) -> None:
    commit(sink, written(sink, 0))
    assert commit(sink, attrs.evolve(written(sink, 1), files=()))
    assert progress(sink) == TableProgress(batch=1, offsets={TP: 20}, first={TP: 0})
    assert not commit(sink, attrs.evolve(written(sink, 1), files=()))


def test_rows_of_others_stay(sink: DeltaSink) -> None:
    commit(sink, written(sink, 0))
    write_deltalake(
        sink.url, pa.table({"_offset": pa.array([99], pa.int64())}), mode="append", schema_mode="merge"
    )
    commit(sink, written(sink, 1))
    assert offsets(sink) == [*range(20), 99]
