"""Columns and partitions of an Iceberg table: every type reads back as it was, keys are those of pyiceberg."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import EqualTo
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.transforms import parse_transform
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

from kclient.errors import ConfigError, SinkError
from kclient.spark.decoding.ddl import parse_ddl
from kclient.spark.sink import iceberg, tables
from kclient.spark.sink.iceberg import IcebergTable
from kclient.spark.sink.iceberg_schema import RESERVED, spec_of, table_columns, table_name, table_schema
from kclient.spark.sink.manifest import WrittenFile
from kclient.spark.sink.parquet import HiddenFile, ParquetFile
from kclient.spark.sink.partitions import TableFiles
from kclient.spark.sink.row_layout import RowLayout
from kclient.spark.sink.tables import TableCommit
from kclient.types import TopicPartition
from tests.spark.jobs.iceberg_support import TABLE, Lake

TP = TopicPartition("flights", 3)
RAW = RowLayout().schema()

DDL = (
    "b BOOLEAN, i8 TINYINT, i16 SMALLINT, i32 INT, i64 BIGINT, f FLOAT, d DOUBLE, dec DECIMAL(20,4), s STRING, "
    "bin BINARY, day DATE, ts TIMESTAMP, ntz TIMESTAMP_NTZ, list ARRAY<INT>, map MAP<STRING, STRUCT<x: BIGINT>>, "
    "o STRUCT<a: STRUCT<b: ARRAY<STRUCT<c: STRING>>>>"
)
VALUES: list[dict[str, Any]] = [
    {
        "b": True,
        "i8": -128,
        "i16": 32767,
        "i32": -(2**31),
        "i64": 2**63 - 1,
        "f": 1.5,
        "d": -0.25,
        "dec": Decimal("1234567890123456.7890"),
        "s": "äöü",
        "bin": b"\x00\xff",
        "day": date(2013, 1, 1),
        "ts": datetime(2013, 1, 1, 12, tzinfo=UTC),
        "ntz": datetime(1969, 12, 31, 23, 59, 59, 999999),
        "list": [1, None, 3],
        "map": [("k", {"x": 1}), ("l", None)],
        "o": {"a": {"b": [{"c": "deep"}, None]}},
    },
    dict.fromkeys(("b", "i8", "i16", "i32", "i64", "f", "d", "dec", "s", "bin", "day", "ts", "ntz"))
    | {"list": [], "map": [], "o": {"a": None}},
]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def with_coordinates(rows: pa.Table) -> pa.Table:
    """Rows of a payload with the columns that a job adds."""
    count = len(rows)
    columns = {
        "_topic": pa.array(["flights"] * count, pa.string()),
        "_partition": pa.array([3] * count, pa.int32()),
        "_offset": pa.array(range(count), pa.int64()),
        "_timestamp": pa.array([1_356_998_400_000_000] * count, pa.timestamp("us", tz="UTC")),
    }
    for name, column in reversed(columns.items()):
        rows = rows if name in rows.column_names else rows.add_column(0, name, column)
    return rows


def land(table: IcebergTable, files: TableFiles, rows: pa.Table) -> list[WrittenFile]:
    """Write rows into files as a task does, and commit them as the next batch of a job."""
    version = table.load()
    progress = table.progress(version, "j")
    batch, start = (0, 0) if progress is None else (progress.batch + 1, progress.offsets[TP])
    written = []
    for batch_rows in rows.combine_chunks().to_batches():
        for number, part in enumerate(files.partitioning.split(files.fitted(batch_rows))):
            path = f"{part.key.directory}/{batch}-{number}.parquet".lstrip("/")
            file = ParquetFile(HiddenFile(Path(files.root) / path), part.rows.schema, "zstd")
            file.add(part.rows)
            file.finish()
            file.publish()
            written.append(
                WrittenFile(
                    path=path,
                    topic=TP.topic,
                    partition=TP.partition,
                    start=start,
                    end=start + 1,
                    rows=file.rows,
                    bytes=file.bytes,
                    values=part.key.values,
                    footer=file.footer(),
                )
            )
    commit = TableCommit(job="j", batch=batch, start={TP: start}, end={TP: start + 1}, files=tuple(written))
    assert tables.commit(table, commit)
    return written


def prepared(
    lake: Lake, columns: pa.Schema, *keys: str, evolves: bool = False
) -> tuple[IcebergTable, TableFiles]:
    table = IcebergTable(TABLE, str(lake.catalog_file))
    table.check(columns, keys or ("topic",), evolves=evolves)
    return table, table.prepare(columns, keys or ("topic",), evolves=evolves)


def created(lake: Lake, schema: Schema, **options: Any) -> Table:
    """A table that another program has made."""
    lake.catalog.create_namespace_if_not_exists("db")
    return lake.catalog.create_table(("db", "orders"), schema, **options)


# --- types -----------------------------------------------------------------------------------------------------------


def test_every_type_of_a_schema_reads_back_as_it_was(lake: Lake) -> None:
    kind = parse_ddl("--schema", DDL)
    rows = with_coordinates(pa.Table.from_pylist(VALUES, pa.schema(list(kind))))
    land(*prepared(lake, rows.schema), rows)
    back = lake.table.scan().to_arrow()
    for name, was, now in (
        (name, rows.column(name).to_pylist(), back.column(table_name(name)).to_pylist())
        for name in rows.column_names
    ):
        assert now == was, name
    types = {field.name: str(field.field_type) for field in lake.table.schema().fields}
    assert (types["i8"], types["dec"], types["ts"], types["ntz"]) == (
        "int",
        "decimal(20, 4)",
        "timestamptz",
        "timestamp",
    )
    assert types["map"].startswith("map<string, struct<")
    assert types["o"].startswith("struct<")
    frame = pl.scan_iceberg(lake.table, reader_override="native").select("o", "dec", "ts", "list").collect()
    assert frame.to_dicts()[0] == {
        "o": {"a": {"b": [{"c": "deep"}, None]}},
        "dec": Decimal("1234567890123456.7890"),
        "ts": datetime(2013, 1, 1, 12, tzinfo=UTC),
        "list": [1, None, 3],
    }


def test_times_in_milliseconds_are_stored_as_iceberg_counts_them(lake: Lake) -> None:
    rows = with_coordinates(pa.table({"at": pa.array([1, None], pa.timestamp("ms", tz="UTC"))}))
    land(*prepared(lake, rows.schema), rows)
    assert str(lake.table.schema().find_type("at")) == "timestamptz"
    assert lake.table.scan().to_arrow().column("at").to_pylist()[0] == datetime(
        1970, 1, 1, 0, 0, 0, 1000, tzinfo=UTC
    )


def test_a_column_that_is_renamed_keeps_its_values(lake: Lake) -> None:
    """Files have the table's field ids."""
    rows = with_coordinates(pa.table({"o": [{"a": 1}]}))
    land(*prepared(lake, rows.schema), rows)
    with lake.table.update_schema() as update:
        update.rename_column("o.a", "z")
        update.rename_column("_offset", "place")
    assert lake.table.scan(selected_fields=("o", "place")).to_arrow().to_pylist() == [
        {"o": {"z": 1}, "place": 0}
    ]


def test_statistics_let_readers_skip_files(lake: Lake) -> None:
    table, files = prepared(lake, with_coordinates(pa.table({"n": [1], "s": ["x"]})).schema)
    for first in (0, 100):
        rows = pa.table({"n": range(first, first + 10), "s": [f"s{n:03}" for n in range(first, first + 10)]})
        land(table, files, with_coordinates(rows))
    for wanted, count in (("n > 50", 1), ("n < 50", 1), ("n = 55", 0), ("s = 's105'", 1), ("n is null", 0)):
        assert len(list(lake.table.scan(row_filter=wanted).plan_files())) == count, wanted
    assert lake.table.inspect.files().column("record_count").to_pylist() == [10, 10]


def test_times_beyond_the_calendar_do_not_stop_a_commit(lake: Lake) -> None:
    """Any producer can send microseconds as milliseconds: such records are thousands of years ahead."""
    times = pa.array([0, 2**62], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    rows = with_coordinates(pa.table({"_timestamp": times, "n": [1, 2]}))
    written = land(*prepared(lake, rows.schema, "day(_timestamp)"), rows)
    assert [file.values for file in written] == [(0,), (53_375_995,)]
    assert len(list(lake.table.scan(row_filter="_timestamp > '2013-01-01T00:00:00+00:00'").plan_files())) == 1
    assert lake.table.scan(selected_fields=("n",)).to_arrow().column("n").to_pylist() == [1, 2]


@pytest.mark.parametrize("last", ["\ud7ff", "\ud7ff\U0010ffff"])
def test_a_text_whose_upper_bound_would_end_in_half_a_character_lands(lake: Lake, last: str) -> None:
    """A bound has 16 characters, the last counted up: after U+D7FF come the halves of UTF-16, which are none."""
    texts = ["a", "x" * (16 - len(last)) + last + "yz", "x" * 15 + "\uf000"]
    for text in texts:
        rows = with_coordinates(pa.table({"s": [text]}))
        land(*prepared(lake, rows.schema), rows)
    for text in texts:
        [found] = lake.table.scan(row_filter=EqualTo("s", text)).plan_files()
        assert lake.table.scan(row_filter=EqualTo("s", text)).to_arrow().column("s").to_pylist() == [text]
        assert found.file.record_count == 1


@pytest.mark.parametrize("kind", [pa.duration("s"), pa.month_day_nano_interval()])
def test_a_type_that_iceberg_does_not_have_is_refused_before_the_table_is_made(
    lake: Lake, kind: pa.DataType
) -> None:
    with pytest.raises(ConfigError, match="Iceberg has no type for a column"):
        prepared(lake, RAW.append(pa.field("x", kind)))
    assert not lake.catalog.namespace_exists("db")


# --- names that Iceberg keeps ----------------------------------------------------------------------------------------


def test_the_partition_of_a_record_does_not_have_the_name_of_icebergs_own_column(lake: Lake) -> None:
    rows = with_coordinates(pa.table({"n": [1, 2]}))
    table, files = prepared(lake, rows.schema, "_partition")
    land(table, files, rows)
    version = table.load()
    assert RESERVED.isdisjoint(version.schema().column_names)
    assert lake.table.inspect.partitions().column("partition").to_pylist() == [{"_kafka_partition": 3}]
    assert lake.table.scan(row_filter="_kafka_partition = 3").to_arrow().num_rows == 2
    [found] = table.coordinates(version, ["flights"])
    assert found.to_pylist() == [
        {"_topic": "flights", "_partition": 3, "_offset": offset} for offset in (0, 1)
    ]


@pytest.mark.parametrize("name", ["_file", "_POS", "_kafka_partition"])
def test_a_field_that_is_named_as_a_column_of_icebergs_own_is_refused(lake: Lake, name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        prepared(lake, RAW.append(pa.field(name, pa.string())))
    assert not lake.catalog.namespace_exists("db")


CASES = {
    "X, x": pa.schema([("x", pa.int64()), ("X", pa.int64())]),
    "o.A, o.a": pa.schema([("o", pa.struct([("a", pa.int64()), ("A", pa.int64())]))]),
    "_OFFSET, _offset": pa.schema([("_OFFSET", pa.int64())]),
}


@pytest.mark.parametrize("names", CASES)
def test_columns_that_differ_only_in_upper_and_lower_case_are_refused(lake: Lake, names: str) -> None:
    """Iceberg's own look-up does not tell them apart in Spark, and refuses the table."""
    with pytest.raises(ConfigError, match=f"only in upper and lower case: {names}"):
        prepared(lake, pa.schema([*CASES[names], *COORDINATES]))
    assert not lake.catalog.namespace_exists("db")


def test_a_column_is_not_added_beside_one_that_differs_only_in_upper_and_lower_case(lake: Lake) -> None:
    more = (
        NestedField(5, "Carrier", StringType()),
        NestedField(6, "a", StringType()),
        NestedField(7, "A", LongType()),
    )
    created(lake, fields(*more))
    prepared(lake, COORDINATES.append(pa.field("n", pa.int64())), evolves=True)
    columns, table = COORDINATES.append(pa.field("carrier", pa.string())), lake.open()
    for call in (table.check, table.prepare):
        with pytest.raises(ConfigError, match="only in upper and lower case: Carrier, carrier"):
            call(columns, (), evolves=True)
    assert len(lake.table.schemas()) == 2


# --- a table that is there -------------------------------------------------------------------------------------------


def fields(*more: NestedField, required: bool = False) -> Schema:
    """The columns of raw rows as another program may have made them, wider and in another order."""
    return Schema(
        NestedField(1, "_offset", LongType(), required=required),
        NestedField(2, "_kafka_partition", LongType()),
        NestedField(3, "_topic", StringType(), required=required),
        NestedField(4, "_timestamp", TimestamptzType()),
        *more,
    )


COORDINATES = pa.schema([RAW.field(name) for name in ("_topic", "_partition", "_offset", "_timestamp")])


def test_a_table_with_wider_columns_in_another_order_is_followed(lake: Lake) -> None:
    more = (
        NestedField(5, "d", DoubleType()),
        NestedField(6, "dec", DecimalType(20, 2)),
        NestedField(7, "theirs", StringType()),
        NestedField(8, "o", StructType(NestedField(9, "b", LongType()), NestedField(10, "a", StringType()))),
    )
    created(lake, fields(*more, required=True))
    payload = {
        "d": pa.array([1.5], pa.float32()),
        "dec": pa.array([Decimal("1.25")], pa.decimal128(5, 2)),
        "o": pa.array([{"a": "x"}], pa.struct([pa.field("a", pa.string())])),
    }
    rows = with_coordinates(pa.table(payload))
    land(*prepared(lake, rows.schema), rows)
    [row] = lake.table.scan().to_arrow().to_pylist()
    assert (row["d"], row["dec"], row["theirs"], row["o"]) == (
        1.5,
        Decimal("1.25"),
        None,
        {"b": None, "a": "x"},
    )
    assert (row["_kafka_partition"], row["_offset"], row["_topic"]) == (3, 0, "flights")


@pytest.mark.parametrize(
    ("columns", "schema", "problem"),
    [
        (COORDINATES.append(pa.field("x", pa.int32())), fields(), "x is not there"),
        (
            COORDINATES.append(pa.field("x", pa.int64())),
            fields(NestedField(5, "x", IntegerType())),
            "x is int there, and long here",
        ),
        (COORDINATES, fields(NestedField(5, "x", IntegerType(), required=True)), "x is required there"),
        (
            COORDINATES.append(pa.field("o", pa.struct([pa.field("a", pa.string())]))),
            fields(NestedField(5, "o", StructType(NestedField(6, "b", StringType())))),
            "o.a is not there",
        ),
        (
            COORDINATES.append(pa.field("o", pa.string())),
            fields(NestedField(5, "o", StructType(NestedField(6, "b", StringType())))),
            "o is struct<6: b: optional string> there, and string here",
        ),
    ],
)
def test_a_table_that_does_not_fit_says_which_columns(
    lake: Lake, columns: pa.Schema, schema: Schema, problem: str
) -> None:
    created(lake, schema)
    with pytest.raises(ConfigError) as caught:
        prepared(lake, columns)
    assert problem in str(caught.value).replace("{", "<")


X: Any = pa.struct([pa.field("x", pa.int64())])
NESTED = NestedField(6, "x", LongType(), required=True)
PARTS: dict[str, tuple[pa.DataType, IcebergType, Any, Any]] = {
    "c.x": (X, StructType(NESTED), {"x": 1}, {"x": None}),
    "c.element": (
        pa.list_(pa.int64()), ListType(7, LongType(), element_required=True), [1, 2], [3, None],
    ),
    "c.value": (
        pa.map_(pa.string(), pa.int64()),
        MapType(7, StringType(), 8, LongType(), value_required=True),
        [("k", 1), ("l", 2)],
        [("k", 1), ("l", None)],
    ),
    "c.element.x": (pa.list_(X), ListType(7, StructType(NESTED), element_required=False), [None, {"x": 1}], [{}]),
    "c.value.x": (
        pa.map_(pa.string(), X), MapType(7, StringType(), 8, StructType(NESTED), value_required=False),
        [("k", None), ("l", {"x": 2})], [("k", {})],
    ),
}  # fmt: skip


@pytest.mark.parametrize("path", PARTS)
def test_a_part_of_a_value_that_is_not_null_in_the_table_is_never_missing(lake: Lake, path: str) -> None:
    kind, there, whole, lacking = PARTS[path]
    created(lake, fields(NestedField(5, "c", there)))
    table, files = prepared(lake, COORDINATES.append(pa.field("c", kind)))
    values = pa.array([whole, whole, whole], kind)
    land(table, files, with_coordinates(pa.table({"c": values})))
    assert lake.table.scan().to_arrow()["c"].to_pylist() == values.to_pylist()
    rows = with_coordinates(pa.table({"c": pa.array([whole, None, whole, lacking, lacking], kind)}))
    with pytest.raises(
        SinkError, match=rf"at offset 3 of flights-3 has no value for {path}, which is NOT NULL"
    ):
        land(table, files, rows.slice(1))


@pytest.mark.parametrize("path", PARTS)
@pytest.mark.parametrize("pattern", [[0], [0, 2, 0], [1, 2], [2, 1, 0, 2]], ids=str)
def test_values_with_required_parts_stay_as_they_are(lake: Lake, path: str, pattern: list[int]) -> None:
    """A value of none, of one part, or of all."""
    kind, there, whole, _ = PARTS[path]
    created(lake, fields(NestedField(5, "c", there)))
    one = whole if isinstance(whole, dict) else whole[:1]
    values = pa.array([(None, one, whole)[number] for number in pattern], kind)
    rows = with_coordinates(pa.table({"c": values}))
    table, files = prepared(lake, rows.schema)
    [batch] = rows.combine_chunks().to_batches()
    for part in (batch, batch.slice(1), batch.slice(0, 0)):
        found = files.fitted(part)
        found.validate(full=True)
        assert found.schema.equals(files.schema)
        assert found["c"].to_pylist() == part["c"].to_pylist()
    land(table, files, rows)


def test_what_is_below_a_null_is_not_missing(lake: Lake) -> None:
    """Decoders leave nulls there."""
    created(lake, fields(NestedField(5, "c", StructType(NESTED))))
    below = pa.StructArray.from_arrays([pa.array([None, 2])], fields=list(X), mask=pa.array([True, False]))
    rows = with_coordinates(pa.table({"c": below}))
    land(*prepared(lake, rows.schema), rows)
    assert lake.table.scan().to_arrow()["c"].to_pylist() == [None, {"x": 2}]


def test_columns_are_added_and_widened_only_if_the_job_may(lake: Lake) -> None:
    created(lake, fields(NestedField(5, "n", IntegerType())))
    rows = with_coordinates(pa.table({"n": pa.array([2**40], pa.int64()), "more": ["x"]}))
    with pytest.raises(ConfigError, match="n is int there, and long here; more is not there"):
        prepared(lake, rows.schema)
    assert len(lake.table.schemas()) == 1
    land(*prepared(lake, rows.schema, evolves=True), rows)
    [row] = lake.table.scan().to_arrow().to_pylist()
    assert (row["n"], row["more"]) == (2**40, "x")
    prepared(lake, rows.schema, evolves=True)
    assert len(lake.table.schemas()) == 2


@pytest.mark.parametrize("identifier", [[], [5]])
def test_columns_are_added_and_those_that_are_not_null_stay_so(lake: Lake, identifier: list[int]) -> None:
    more = (
        NestedField(5, "n", IntegerType(), required=True),
        NestedField(6, "o", StructType(NestedField(7, "x", LongType(), required=True))),
    )
    schema = fields(*more, required=True)
    created(lake, schema.model_copy(update={"identifier_field_ids": identifier}))
    columns = {"n": pa.array([1], pa.int64()), "o": pa.array([{"x": 1, "y": 2}]), "more": pa.array(["x"])}
    rows = with_coordinates(pa.table(columns))
    table, files = prepared(lake, rows.schema, evolves=True)
    land(table, files, rows)
    now = lake.table.schema()
    assert [name for name in now.column_names if now.find_field(name).required] == [
        "_offset",
        "_topic",
        "n",
        "o.x",
    ]
    assert (str(now.find_type("n")), str(now.find_type("o.y"))) == ("long", "long")
    assert now.identifier_field_ids == identifier
    without = with_coordinates(pa.table({**columns, "n": pa.nulls(1, pa.int64())}))
    with pytest.raises(SinkError, match="has no value for n, which is NOT NULL"):
        land(table, files, without)


def test_a_column_that_would_have_to_change_its_type_is_refused(lake: Lake) -> None:
    created(lake, fields(NestedField(5, "n", StringType())))
    with pytest.raises(ConfigError, match=r"lake\.db\.orders"):
        prepared(lake, COORDINATES.append(pa.field("n", pa.int32())), evolves=True)


# --- columns that others change under a run --------------------------------------------------------------------------


def swap(update: UpdateSchema) -> None:
    update.rename_column("a", "b").rename_column("b", "a")


def drop_and_add(lake: Lake) -> None:
    change(lake, lambda update: update.delete_column("a"))
    change(lake, lambda update: update.add_column("a", LongType()))


def change(lake: Lake, step: Callable[[UpdateSchema], Any]) -> None:
    with lake.table.update_schema(allow_incompatible_changes=True) as update:
        step(update)


PAIRS: dict[str, Any] = {
    "a": pa.array([1, 2], pa.int64()),
    "b": pa.array([100, 200], pa.int64()),
    "o": pa.array([{"x": 1}, None], pa.struct([pa.field("x", pa.int64())])),
}


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (swap, "a is another column now; b is another column now"),
        (lambda update: update.delete_column("a"), "a is not there"),
        (lambda update: update.rename_column("a", "c"), "a is not there"),
        (lambda update: update.rename_column("o.x", "y"), r"o\.x is not there"),
        (
            lambda update: update.add_column("r", LongType(), required=True),
            "r is required there, and the rows",
        ),
        (lambda update: update.update_column("a", required=True), "a is required now"),
        (None, "a is another column now"),
    ],
)
def test_files_are_not_committed_once_their_columns_are_others(
    lake: Lake, step: Callable[[UpdateSchema], Any] | None, said: str
) -> None:
    """Files have field ids: their values would land in a column with another name, or in none."""
    rows = with_coordinates(pa.table(PAIRS))
    table, files = prepared(lake, rows.schema)
    land(table, files, rows)
    drop_and_add(lake) if step is None else change(lake, step)
    with pytest.raises(SinkError, match=rf"lake\.db\.orders was changed while.*{said}.*Start again"):
        land(table, files, rows)
    assert len(lake.table.snapshots()) == 1


def test_files_are_committed_into_columns_that_grew_meanwhile(lake: Lake) -> None:
    rows = with_coordinates(pa.table({**PAIRS, "i": pa.array([1, 2], pa.int32())}))
    created(lake, fields(*required_and_other_columns(), required=True))
    table, files = prepared(lake, rows.schema)
    change(lake, lambda update: update.update_column("i", LongType()).add_column("c", StringType()))
    change(lake, lambda update: update.update_column("a", required=False).move_first("b"))
    land(table, files, rows)
    assert lake.table.scan(row_filter="i > 1 AND a > 1").to_arrow().column("b").to_pylist() == [200]


def required_and_other_columns() -> list[NestedField]:
    return [
        NestedField(5, "a", LongType(), required=True),
        NestedField(6, "b", LongType()),
        NestedField(7, "o", StructType(NestedField(8, "x", LongType()))),
        NestedField(9, "i", IntegerType()),
    ]


def test_columns_that_change_at_the_moment_of_the_commit_are_looked_at_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = with_coordinates(pa.table(PAIRS))
    table, files = prepared(lake, rows.schema)
    commit, left = SqlCatalog.commit_table, [swap]

    def overtaken(catalog: SqlCatalog, *arguments: Any) -> Any:
        if left:
            change(lake, left.pop())
        return commit(catalog, *arguments)

    monkeypatch.setattr(SqlCatalog, "commit_table", overtaken)
    with pytest.raises(SinkError, match="a is another column now"):
        land(table, files, rows)
    assert lake.table.snapshots() == []


def test_files_with_other_field_ids_are_not_equal(lake: Lake) -> None:
    """By this a batch of Spark's `foreachBatch` sees that its table has changed."""
    rows = with_coordinates(pa.table(PAIRS))
    table, files = prepared(lake, rows.schema)
    assert table.prepare(rows.schema, (), evolves=False) == files
    change(lake, swap)
    assert table.prepare(rows.schema, (), evolves=False) != files


def test_a_format_that_is_too_new_is_refused(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyiceberg cannot make a table of version 3 yet."""
    created(lake, fields())
    monkeypatch.setattr(iceberg, "NEWEST_FORMAT", 1)
    with pytest.raises(ConfigError, match="format version 2, and kclient writes up to 1"):
        prepared(lake, COORDINATES)


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("hdfs://nn:8020/lake/orders", "hdfs://… is no store that kclient knows"),
        ("hdfs:/lake/orders", "hdfs:/lake/orders is neither the URL of a store nor file:///DIRECTORY"),
        ("s3n://b/orders", "s3n://… is no store that kclient knows"),
        ("s3:/orders", "s3:/orders is neither"),
        ("s3://me:hush@b/orders", "holds credentials"),
        ("s3://b/orders?versionId=hush", "has ? or #"),
        ("file:///lake/orders#1", "has ? or #"),
        ("FILE:///lake/orders", "FILE:///lake/orders is neither"),
        ("file://lake/orders", "file://lake/orders is neither"),
        ("lake/orders", "lake/orders is neither"),
    ],
)
def test_a_place_where_nobody_would_find_the_files_is_refused_before_any_is_written(
    lake: Lake, place: str, problem: str
) -> None:
    table = created(lake, fields())
    with table.transaction() as transaction:
        transaction.set_properties({"write.data.path": place})
    with pytest.raises(ConfigError, match=r"Correct its write\.data\.path") as caught:
        prepared(lake, COORDINATES)
    assert problem in str(caught.value)
    assert "hush" not in str(caught.value)


# --- partitions ------------------------------------------------------------------------------------------------------


def samples() -> pa.Table:
    """Rows with values before 1970, beyond ASCII, negative, and null."""
    times = [-1, 0, 1_356_998_400_000_000, 1_357_000_000_000_000, None]
    return with_coordinates(
        pa.table(
            {
                "_timestamp": pa.array(times, pa.timestamp("us", tz="UTC")),
                "_key": pa.array([b"a", b"", b"abcdef", None, b"\xff\x00"], pa.binary()),
                "s": pa.array(["äöüß", "", "a/b c%", None, "x" * 60], pa.string()),
                "n": pa.array([-11, 0, 11, None, 2**40], pa.int64()),
                "i": pa.array([-11, 0, 11, None, 7], pa.int32()),
                "dec": pa.array(
                    [Decimal("-1.05"), Decimal(0), Decimal("10.65"), None, Decimal(1)], pa.decimal128(9, 2)
                ),
                "day": pa.array(
                    [date(1969, 12, 31), date(1970, 1, 1), date(2013, 1, 31), None, date(9999, 12, 31)]
                ),
                "ok": pa.array([True, False, True, None, False]),
            }
        )
    )


KEYS = (
    "_topic", "s", "n", "day", "ok", "dec", "_timestamp", "year(_timestamp)", "month(_timestamp)", "day(_timestamp)",
    "hour(_timestamp)", "year(day)", "month(day)", "day(day)", "bucket(16,_key)", "bucket(7,s)", "bucket(16,n)",
    "bucket(16,i)", "bucket(3,dec)", "bucket(4,day)", "bucket(4,_timestamp)", "truncate(2,s)", "truncate(2,_key)",
    "truncate(10,n)", "truncate(10,i)", "truncate(50,dec)",
)  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_each_transform_gives_the_partitions_that_pyiceberg_gives(lake: Lake, key: str) -> None:
    """The same rows, appended by pyiceberg to a table with the same spec, are the judge."""
    rows = samples()
    land(*prepared(lake, rows.schema, key), rows)
    rows = rows.rename_columns([table_name(name) for name in rows.column_names])
    ours = lake.table
    twin = lake.catalog.create_table(("db", "twin"), ours.schema(), partition_spec=ours.spec())
    twin.append(rows)
    assert partitions(ours) == partitions(twin)
    assert ours.scan().to_arrow().sort_by("_offset").to_pylist() == rows.to_pylist()
    for row in rows.to_pylist():
        found = ours.scan(row_filter=f"_offset = {row['_offset']}").to_arrow()
        assert found.num_rows == 1


def partitions(table: Table) -> list[tuple[str, int]]:
    found = table.inspect.partitions().to_pylist()
    return sorted((repr(sorted(row["partition"].items())), row["record_count"]) for row in found)


def test_values_longer_than_a_file_name_and_strange_ones_are_partitions_too(lake: Lake) -> None:
    values = ["x" * 300, "x" * 301, "../../etc", "/", "a\0b", ".", "", "a=b/c=d"]
    rows = with_coordinates(pa.table({"s": values}))
    land(*prepared(lake, rows.schema, "s"), rows)
    assert lake.table.scan().to_arrow().sort_by("_offset").column("s").to_pylist() == values
    assert len(lake.files_on_disk()) == len(values)
    for value in values[:4]:
        assert lake.table.scan(row_filter=EqualTo("s", value)).to_arrow().num_rows == 1


@pytest.mark.parametrize("key", ["d", "year(d)", "day(d)", "bucket(4,d)"])
def test_dates_that_no_calendar_has_land_as_they_are(lake: Lake, key: str) -> None:
    days = [3_000_000, -800_000, 2**31 - 1, -(2**31), 0, None]
    rows = with_coordinates(pa.table({"d": pa.array(days, pa.int32()).cast(pa.date32())}))
    land(*prepared(lake, rows.schema, key), rows)
    found = lake.table.scan().to_arrow().sort_by("_offset")["d"].combine_chunks()
    assert found.cast(pa.int32()).to_pylist() == days


def test_keys_together_divide_by_each_combination(lake: Lake) -> None:
    rows = samples()
    keys = ("topic", "date(timestamp)", "bucket(16,_key)")
    land(*prepared(lake, rows.schema, *keys), rows)
    assert [field.name for field in lake.table.spec().fields] == ["_topic", "_timestamp_day", "_key_bucket"]
    assert len(partitions(lake.table)) == 5


def test_a_tables_own_spec_is_followed(lake: Lake) -> None:
    table = created(lake, fields(), partition_spec=UNPARTITIONED_PARTITION_SPEC)
    with table.update_spec() as update:
        update.add_field("_offset", parse_transform("bucket[4]"), "place")
    rows = with_coordinates(pa.table({"_offset": range(100)}))
    land(*prepared(lake, rows.schema), rows)
    assert sum(count for _, count in partitions(lake.table)) == 100
    assert len(partitions(lake.table)) == 4
    prepared(lake, rows.schema, "bucket(4,_offset)")
    IcebergTable(TABLE, str(lake.catalog_file)).check(
        rows.schema, (), evolves=False
    )  # as for a query of the user
    with pytest.raises(ConfigError, match=r"is partitioned by bucket\(4,_offset\), and --partition-by says"):
        prepared(lake, rows.schema, "day(_timestamp)")


def without_partition_column(lake: Lake, rows: pa.Table) -> pa.Table:
    """Drop the column c, by which the table was divided, from its spec and then from it; return rows without it."""
    with lake.table.update_spec() as update:
        update.remove_field("c")
    change(lake, lambda update: update.delete_column("c"))
    return rows.drop_columns(["c"])


def test_manifests_of_a_partition_field_whose_column_is_gone_are_kept_as_they_are(lake: Lake) -> None:
    """pyiceberg cannot write them again without the column's type. Those of the spec of today are merged."""
    rows = with_coordinates(pa.table({"a": [1, 2], "c": ["x", "y"]}))
    for _ in range(2):
        land(*prepared(lake, rows.schema, "c"), rows)
    rows = without_partition_column(lake, rows)
    with lake.table.transaction() as changed:
        changed.set_properties({"commit.manifest.min-count-to-merge": "2"})
    for _ in range(3):
        land(*prepared(lake, rows.schema), rows)
    snapshot = lake.table.current_snapshot()
    assert snapshot is not None
    assert [each.partition_spec_id for each in snapshot.manifests(lake.table.io)] == [1, 0, 0]
    assert lake.table.scan().to_arrow().column("a").to_pylist() == [1, 2] * 5
    assert lake.table.scan(row_filter="a = 1").to_arrow().num_rows == 5


def test_a_spec_of_a_column_that_is_gone_is_refused(lake: Lake) -> None:
    """Format version 1 keeps a removed partition field, as `void`."""
    rows = with_coordinates(pa.table({"a": [1, 2], "c": ["x", "y"]}))
    schema = table_schema(table_columns(rows.schema))
    created(lake, schema, partition_spec=spec_of(["c"], schema), properties={"format-version": "1"})
    rows = without_partition_column(lake, rows)
    with pytest.raises(ConfigError, match="partitioned by c, which is void of a column that was dropped"):
        prepared(lake, rows.schema)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (("nothing",), "the rows have no column nothing"),
        (("day(_key)",), "_key is binary, which day does not take"),
        (("_headers",), "_headers is list"),
        (("topic", "_topic"), "the same key twice"),
        (("day(_timestamp)", "date(timestamp)"), "the same key twice"),
    ],
)
def test_keys_that_the_columns_do_not_allow_are_refused(
    lake: Lake, keys: tuple[str, ...], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        prepared(lake, RAW, *keys)
    assert not lake.catalog.namespace_exists("db")


def test_a_value_that_the_table_cannot_hold_ends_the_batch(lake: Lake) -> None:
    _, files = prepared(lake, COORDINATES.append(pa.field("n", pa.decimal128(4, 2))))
    rows = with_coordinates(pa.table({"n": pa.array([Decimal("123456.78")], pa.decimal128(9, 2))}))
    with pytest.raises(SinkError, match="A value does not fit into its column"):
        files.fitted(rows.combine_chunks().to_batches()[0])
