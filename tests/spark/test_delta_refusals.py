"""Delta tables that a job cannot write to: it ends at once, with what to do, and tries nothing again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.schema import ArrayType, Field, MapType, StructType
from deltalake.table import TableAlterer

from kclient.errors import ConfigError, SinkError
from kclient.spark.sink import delta, tables
from kclient.spark.sink.delta import DeltaSink
from kclient.spark.sink.delta_errors import reason_of
from tests.spark.delta_support import LAYOUT, commit, created, offsets, other_writer, written
from tests.spark.memory_table import PausedRuntime


@pytest.fixture
def sink(tmp_path: Path) -> DeltaSink:
    return created(tmp_path)


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that are loaded, each time that one is."""
    works, met = DeltaSink.load, list[str]()

    def loading(self: DeltaSink) -> DeltaTable:
        met.append(self.url)
        return works(self)

    monkeypatch.setattr(DeltaSink, "load", loading)
    return met


def upgrade(sink: DeltaSink, **protocol: Any) -> None:
    """Commit a protocol, as a newer writer does."""
    entry = Path(sink.url) / "_delta_log" / f"{other_writer(sink).version() + 1:020d}.json"
    entry.write_text(json.dumps({"protocol": protocol}) + "\n")


def features(*names: str, reads: bool) -> dict[str, Any]:
    """A protocol with features of writers, and of readers if it `reads`."""
    readers = {"minReaderVersion": 3, "readerFeatures": names} if reads else {"minReaderVersion": 1}
    return {**readers, "minWriterVersion": 7, "writerFeatures": names}


# --- protocols


@pytest.mark.parametrize(
    ("protocol", "reason"),
    [
        (features("newest", reads=True), "Feature 'newest' is not supported"),
        (features("catalogManaged", reads=True), "catalog-managed table"),
        ({"minReaderVersion": 4, "minWriterVersion": 7, "writerFeatures": []}, "minimum reader version 4"),
    ],
)
def test_a_table_that_delta_rs_can_read_no_more_ends_the_job_at_once(
    sink: DeltaSink, loads: list[str], protocol: dict[str, Any], reason: str
) -> None:
    wanted = written(sink, 0)
    upgrade(sink, **protocol)
    loads.clear()
    with pytest.raises(SinkError, match=rf"{reason}.*Upgrade deltalake"):
        commit(sink, wanted)
    assert len(loads) == 1
    with pytest.raises(SinkError, match=rf"{reason}.*Upgrade deltalake"):
        sink.check(LAYOUT.schema(), ("topic",), evolves=False)
    assert len(loads) == 2


@pytest.mark.parametrize(
    ("protocol", "reason"),
    [
        (features("typeWidening", reads=True), "Unsupported table features required"),
        (features("newest", reads=False), "Unsupported table features required"),
        ({"minReaderVersion": 1, "minWriterVersion": 6}, "Unsupported table features required"),
        ({"minReaderVersion": 1, "minWriterVersion": 8}, "Table features must be specified"),
    ],
)
def test_a_commit_that_delta_rs_refuses_for_the_protocol_is_not_tried_again(
    sink: DeltaSink, loads: list[str], monkeypatch: pytest.MonkeyPatch, protocol: dict[str, Any], reason: str
) -> None:
    """Also where kclient's own check lets it pass: another release of delta-rs may have other features."""
    wanted = written(sink, 0)
    upgrade(sink, **protocol)
    monkeypatch.setattr(delta, "check_features", lambda *_: None)
    loads.clear()
    with pytest.raises(SinkError, match=rf"{reason}.*Upgrade deltalake"):
        commit(sink, wanted)
    assert len(loads) == 1


@pytest.mark.parametrize("number", [6, 8])
def test_a_protocol_of_writers_that_delta_rs_lacks_is_refused_before_anything_is_written(
    sink: DeltaSink, number: int
) -> None:
    upgrade(sink, minReaderVersion=1, minWriterVersion=number)
    for evolves in (False, True):
        with pytest.raises(ConfigError, match=f"its protocol {number} for writers is not supported"):
            sink.check(LAYOUT.schema(), ("topic",), evolves=evolves)


# --- what writers must compute or check

CHECKED = StructType(
    [Field("a", "long", metadata={"delta.invariants": '{"expression":{"expression":"a > 5"}}'})]
)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (CHECKED, "x.a"),
        (StructType([Field("s", CHECKED)]), "x.s.a"),
        (ArrayType(CHECKED), "x.element.a"),
        (MapType("string", CHECKED), "x.value.a"),
        (MapType(CHECKED, ArrayType("long")), "x.key.a"),
    ],
)
def test_a_field_that_writers_must_check_is_found_at_any_depth(tmp_path: Path, kind: Any, path: str) -> None:
    DeltaTable.create(str(tmp_path), Schema([*Schema.from_arrow(LAYOUT.schema()).fields, Field("x", kind)]))
    with pytest.raises(ConfigError, match=rf"its column {path} is computed or checked by its writers"):
        DeltaSink(str(tmp_path)).check(LAYOUT.schema(), ("topic",), evolves=False)


# --- what delta-rs says


def test_a_refusal_has_no_backtrace_of_delta_rs(tmp_path: Path) -> None:
    rows = LAYOUT.schema().append(pa.field("t", pa.time64("us")))
    with pytest.raises(ConfigError, match=r"Invalid data type for Delta Lake: Time64\(µs\)\. Rename or cast"):
        DeltaSink(str(tmp_path)).check(rows, (), evolves=False)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("it failed\n   0: <unknown>\n   1: main\n             at main.c:1:2\n", "it failed"),
        ("it failed.\n\nBacktrace:\n   0: main\n", "it failed"),
        ("column 0: bad\n1: worse", "column 0: bad 1: worse"),
        ("\x1b[31mit\x1b[0m failed: s3://a/b?X-Amz-Signature=1 ", "it failed: s3://a/b?…"),
        ("x" * 400, "x" * 300),
        ("", "Exception"),
    ],
)
def test_a_reason_is_the_first_sentence_of_an_error(text: str, wanted: str) -> None:
    assert reason_of(Exception(text)) == wanted


# --- type widening


@pytest.mark.parametrize("feature", ["typeWidening", "typeWidening-preview"])
def test_a_table_with_type_widening_is_refused_with_the_way_out(
    sink: DeltaSink, loads: list[str], feature: str
) -> None:
    wanted = written(sink, 0)
    upgrade(sink, **features(feature, reads=True))
    says = rf"its feature {feature} is not supported.* DROP FEATURE '{feature}' TRUNCATE HISTORY.*checkpointProtection"
    for evolves in (False, True):
        with pytest.raises(ConfigError, match=says):
            sink.check(LAYOUT.schema(), ("topic",), evolves=evolves)
    loads.clear()
    with pytest.raises(ConfigError, match=says):
        commit(sink, wanted)
    assert len(loads) == 1


INT = pa.int32()
NAMED = pa.struct([("a", INT)])
WIDER = [
    (pa.int8(), pa.int16()),
    (INT, pa.int64()),
    (INT, pa.float64()),
    (INT, pa.decimal128(12, 2)),
    (pa.int64(), pa.decimal128(20, 0)),
    (pa.date32(), pa.timestamp("us")),
    (pa.decimal128(4, 2), pa.decimal128(6, 3)),
    (NAMED, pa.struct([("a", pa.int64())])),
    (pa.list_(NAMED), pa.list_(pa.struct([("a", pa.int64())]))),
    (pa.map_(pa.string(), INT), pa.map_(pa.string(), pa.int64())),
]
OTHER = [
    (INT, pa.string()),
    (pa.int64(), pa.float64()),
    (INT, pa.decimal128(10, 2)),
    (pa.decimal128(6, 2), pa.decimal128(6, 3)),
    (pa.date32(), pa.timestamp("us", "UTC")),
    (NAMED, pa.struct([("a", pa.int64()), ("b", INT)])),
    (NAMED, pa.struct([("a", pa.string())])),
    (NAMED, pa.list_(INT)),
]


@pytest.mark.parametrize(
    ("there", "rows", "widens"),
    [*((*pair, True) for pair in WIDER), *((*pair, False) for pair in OTHER)],
    ids=str,
)
def test_rows_with_another_type_than_the_table_are_refused_at_once(
    tmp_path: Path, there: pa.DataType, rows: pa.DataType, widens: bool
) -> None:
    url = str(tmp_path)
    columns = LAYOUT.schema()
    DeltaTable.create(url, Schema.from_arrow(columns.append(pa.field("id", there))))
    wanted = columns.append(pa.field("id", rows)).append(pa.field("new", INT))
    for act in (DeltaSink(url).check, DeltaSink(url).prepare):
        with pytest.raises(ConfigError, match="its id is ") as caught:
            act(wanted, ("topic",), evolves=True)
        assert ("needs type widening" in str(caught.value)) == widens
        assert ("Type widening changes a column" in str(caught.value)) == widens
    assert DeltaTable(url).version() == 0  # no column was added


@pytest.mark.parametrize("evolves", [False, True])
def test_a_column_that_differs_only_in_its_case_is_refused_at_once(tmp_path: Path, *, evolves: bool) -> None:
    url = str(tmp_path)
    DeltaTable.create(url, Schema.from_arrow(LAYOUT.schema().append(pa.field("Carrier", pa.string()))))
    rows = LAYOUT.schema().append(pa.field("carrier", pa.string()))
    for act in (DeltaSink(url).check, DeltaSink(url).prepare):
        with pytest.raises(ConfigError, match="carrier differs from its column Carrier only in its case"):
            act(rows, ("topic",), evolves=evolves)
    assert DeltaTable(url).version() == 0


def test_columns_that_delta_rs_refuses_are_not_tried_again(
    sink: DeltaSink, loads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer may have added such a column since the check."""
    other_case = pa.schema([pa.field("_OFFSET", pa.int64())])
    monkeypatch.setattr(delta, "check_rows", lambda *_, **__: None)
    with pytest.raises(SinkError, match=r"Duplicate field name .*_OFFSET.*do not allow it"):
        sink.prepare(other_case, ("topic",), evolves=True)
    assert len(loads) == 2


@pytest.mark.parametrize(
    ("says", "tries"), [("Permission denied", 1), ("Failed to commit transaction: 0", tables.LOAD_TRIES)]
)
def test_only_a_version_that_is_there_is_a_conflict_of_new_columns(
    sink: DeltaSink, monkeypatch: pytest.MonkeyPatch, says: str, tries: int
) -> None:
    met = list[str]()

    def refuse(*_: Any, **__: Any) -> None:
        met.append(says)
        raise CommitFailedError(says)

    monkeypatch.setattr(TableAlterer, "add_columns", refuse)
    running = DeltaSink(sink.url, PausedRuntime.seeded(1))
    with pytest.raises(SinkError, match=says if tries == 1 else "version 1 is another writer's"):
        running.prepare(LAYOUT.schema().append(pa.field("note", pa.string())), ("topic",), evolves=True)
    assert len(met) == tries


def test_a_table_that_was_written_again_with_the_wider_type_takes_the_next_batch(sink: DeltaSink) -> None:
    """The way out that the refusal names."""
    commit(sink, written(sink, 0))
    wider = LAYOUT.schema().set(1, pa.field("_partition", pa.int64()))
    with pytest.raises(ConfigError, match="its _partition is int32, and int64 needs type widening"):
        sink.check(wider, ("topic",), evolves=True)
    rows = other_writer(sink).to_pyarrow_table()
    write_deltalake(sink.url, rows.cast(wider), mode="overwrite", schema_mode="overwrite")
    sink.check(wider, ("topic",), evolves=False)
    assert commit(sink, written(sink, 1))
    assert offsets(sink) == list(range(20))


# --- columns that must not be null


@pytest.mark.parametrize("keys", [[], ["note"]])
def test_a_record_without_a_value_for_a_column_that_must_have_one_is_refused(
    tmp_path: Path, keys: list[str]
) -> None:
    rows = LAYOUT.schema().append(pa.field("note", pa.string()))
    must = rows.set(len(rows) - 1, pa.field("note", pa.string(), nullable=False))
    DeltaTable.create(str(tmp_path), Schema.from_arrow(must), partition_by=keys)
    files = DeltaSink(str(tmp_path)).prepare(rows, ("topic",), evolves=False)
    plain = {"_topic": "orders", "_partition": 3}
    found = [{**plain, "_offset": 7, "note": ""}, {**plain, "_offset": 8}, {**plain, "_offset": 9}]
    assert len(files.fitted(pa.RecordBatch.from_pylist(found[:1], rows))) == 1
    with pytest.raises(
        SinkError, match="A record at offset 8 of orders-3 has no value for note, which is NOT NULL"
    ):
        files.fitted(pa.RecordBatch.from_pylist(found, rows))
    with pytest.raises(SinkError, match="A record has no value for note, which is NOT NULL"):
        files.fitted(pa.RecordBatch.from_pylist(found, rows).select(["_topic", "note"]))
