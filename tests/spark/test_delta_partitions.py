"""The partitions of a Delta table: the values of Iceberg's transforms, in columns by which other readers skip files."""

from __future__ import annotations

import datetime
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import duckdb
import polars
import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema, write_deltalake
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.types import (
    BinaryType,
    DateType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestamptzType,
)

from kclient.errors import ConfigError, SinkError
from kclient.spark.ranges import OffsetRange
from kclient.spark.sink import tables
from kclient.spark.sink.buckets import buckets_of
from kclient.spark.sink.delta import DeltaSink
from kclient.spark.sink.delta_partitions import DeltaPartitioning, check_keys, column_of, text_of
from kclient.spark.sink.iceberg_schema import transform_of
from kclient.spark.sink.parquet import RangeFiles
from kclient.spark.sink.partitions import partition_key
from kclient.spark.sink.tables import TableCommit
from kclient.types import TopicPartition
from tests.spark.delta_support import (
    DAY_US,
    LAYOUT,
    by_duckdb,
    by_polars,
    created,
    offsets,
    other_writer,
    written,
)
from tests.spark.memory_table import PausedRuntime

HOUR_US = 3_600_000_000
UTC = pa.timestamp("us", "UTC")
TIMES = ("year(_timestamp)", "month(_timestamp)", "day(_timestamp)", "hour(_timestamp)")
NUMBERS = ("truncate(4,_offset)", "bucket(3,_offset)")
FIRST_US, LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999  # of the years 1 and 9999


def values(key: str, column: pa.Array) -> list[Any]:
    """The value of the partition of each row."""
    rows = pa.record_batch({"x": column, "n": pa.array(range(len(column)), pa.int64())})
    partitioning: DeltaPartitioning = pickle.loads(pickle.dumps(DeltaPartitioning((partition_key(key),))))
    found = {n: part.key.values[0] for part in partitioning.split(rows) for n in part.rows["n"].to_pylist()}
    return [found[n] for n in range(len(column))]


def by_iceberg(key: str, column: pa.Array, kind: IcebergType) -> list[Any]:
    """The same by pyiceberg."""
    transform = transform_of(partition_key(key))
    return [transform.transform(kind)(value) for value in column.to_pylist()]


# --- values


@given(st.lists(st.none() | st.integers(FIRST_US, LAST_US), min_size=1, max_size=20))
def test_parts_of_times_are_what_iceberg_prints(microseconds: list[int | None]) -> None:
    column = pa.array(microseconds, UTC)
    numbers = [value.value for value in column]
    for word in ("year", "month", "day", "hour"):
        transform = transform_of(partition_key(f"{word}(x)"))
        keys = transform.pyarrow_transform(TimestamptzType())(pa.array(numbers, UTC)).cast(pa.int32())
        printed = [transform.to_human_string(TimestamptzType(), key) for key in keys.to_pylist()]
        found = ["null" if value is None else str(value) for value in values(f"{word}(x)", column)]
        assert found == [text.lstrip("0") if word == "year" else text for text in printed]


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        ("year(x)", [1969, 1970, 1, 9999, None, None]),
        ("month(x)", ["1969-12", "1970-01", "0001-01", "9999-12", None, None]),
        ("hour(x)", ["1969-12-31-23", "1970-01-01-00", "0001-01-01-00", "9999-12-31-23", None, None]),
    ],
)
@pytest.mark.parametrize("kind", [UTC, pa.timestamp("us")], ids=str)
def test_times_before_1970_and_at_the_ends_of_the_calendar(
    key: str, wanted: list[Any], kind: pa.DataType
) -> None:
    column = pa.array([-1, 0, FIRST_US, LAST_US, FIRST_US - 1, LAST_US + 1], pa.int64()).cast(kind)
    assert values(key, column) == wanted
    assert values(key, pa.array([None, None], kind)) == [None, None]


def test_a_date_has_a_year_a_month_and_a_day() -> None:
    column = pa.array([datetime.date(1969, 12, 31), None, datetime.date(2026, 11, 28)], pa.date32())
    assert values("year(x)", column) == [1969, None, 2026]
    assert values("month(x)", column) == ["1969-12", None, "2026-11"]
    assert values("day(x)", column) == column.to_pylist()


FIRST_DAY, LAST_DAY = FIRST_US // DAY_US, LAST_US // DAY_US


@pytest.mark.parametrize("key", ["x", "day(x)"])
def test_a_date_that_no_calendar_has_is_null(key: str) -> None:
    """Avro has such dates: one record with it must not stop the job."""
    days = pa.array([FIRST_DAY, FIRST_DAY - 1, LAST_DAY, LAST_DAY + 1, 2**31 - 1, -(2**31)], pa.int32())
    wanted = [datetime.date.min, None, datetime.date.max, None, None, None]
    assert values(key, days.cast(pa.date32())) == wanted


NARROW = st.lists(st.none() | st.integers(-(2**31) + 1000, 2**31 - 1), min_size=1, max_size=20)
WIDE = st.lists(st.none() | st.integers(-(2**63) + 1000, 2**63 - 1), min_size=1, max_size=20)
WORDS = st.lists(st.none() | st.text(st.characters(codec="utf-8")), min_size=1, max_size=20)


@given(NARROW, WIDE, WORDS, st.integers(1, 1000))
def test_truncated_values_are_those_of_iceberg(
    narrow: list[int | None], wide: list[int | None], words: list[str | None], width: int
) -> None:
    key = f"truncate({width},x)"
    columns = [
        (pa.array(narrow, pa.int32()), IntegerType()),
        (pa.array(wide, pa.int64()), LongType()),
        (pa.array(words, pa.string()), StringType()),
    ]
    for column, kind in columns:
        assert values(key, column) == by_iceberg(key, column, kind)


def test_the_least_numbers_wrap_around_as_in_iceberg() -> None:
    for bits, kind in ((32, IntegerType()), (64, LongType())):
        column = pa.array([-(2 ** (bits - 1))], pa.int32() if bits == 32 else pa.int64())
        wanted = transform_of(partition_key("truncate(10,x)")).pyarrow_transform(kind)(column).to_pylist()
        assert values("truncate(10,x)", column) == wanted
    assert values("truncate(10,x)", pa.array([-128], pa.int8())) == [-130]


@given(NARROW, WIDE, WORDS, st.lists(st.none() | st.binary()), st.integers(1, 2**31 - 1))
def test_buckets_are_those_of_iceberg(
    narrow: list[int | None],
    wide: list[int | None],
    words: list[str | None],
    keys: list[bytes | None],
    count: int,
) -> None:
    key = f"bucket({count},x)"
    days = [None if value is None else value % 100_000 - 50_000 for value in narrow]
    columns = [
        (pa.array(narrow, pa.int32()), IntegerType()),
        (pa.array(wide, pa.int64()), LongType()),
        (pa.array(words, pa.string()), StringType()),
        (pa.array(keys, pa.binary()), BinaryType()),
        (pa.array(days, pa.int32()).cast(pa.date32()), DateType()),
        (pa.array([None if day is None else day * DAY_US - 1 for day in days], UTC), TimestamptzType()),
    ]
    for column, kind in columns:
        assert values(key, column) == by_iceberg(key, column, kind)


def test_buckets_of_icebergs_specification() -> None:
    """The hashes of its Appendix B, of which the sign is dropped."""
    hashes = [
        (pa.array([34], pa.int32()), 2017239379),
        (pa.array([34], pa.int64()), 2017239379),
        (pa.array([datetime.date(2017, 11, 16)]), -653330422),
        (pa.array([datetime.datetime(2017, 11, 16, 22, 31, 8)], pa.timestamp("us")), -2047944441),
        (pa.array(["iceberg"]), 1210000089),
        (pa.array([b"\x00\x01\x02\x03"]), -188683207),
    ]
    for column, found in hashes:
        assert buckets_of(column, 2**31 - 1).to_pylist() == [(found & 0x7FFF_FFFF) % (2**31 - 1)]


# --- tables, and who else reads them


def landed(root: Path, keys: Sequence[str], **how: int) -> DeltaSink:
    sink = created(root, *keys)
    assert tables.commit(sink, written(sink, 0, **how), PausedRuntime.seeded(1))
    return sink


def expected(key: str, **how: int) -> dict[int, Any]:
    """The value of each row of `written`, computed here."""
    found: dict[int, Any] = {}
    for offset in range(how["rows"]):
        at = datetime.datetime(1970, 1, 1) + datetime.timedelta(
            microseconds=how["first_us"] + offset * how["apart_us"]
        )
        found[offset] = {
            "year": at.year,
            "month": at.strftime("%Y-%m"),
            "day": at.date(),
            "hour": at.strftime("%Y-%m-%d-%H"),
            "truncate": offset // 4 * 4,
            "bucket": by_iceberg("bucket(3,x)", pa.array([offset], pa.int64()), LongType())[0],
        }[partition_key(key).transform]
    return found


SPREAD = {"rows": 12, "first_us": -5 * HOUR_US - 1, "apart_us": HOUR_US * 250}
"""Twelve times from the last day of 1969 on, ten days apart."""


@pytest.mark.parametrize("key", [*TIMES, *NUMBERS])
def test_other_readers_find_the_values_and_open_only_the_files_of_one(tmp_path: Path, key: str) -> None:
    sink, wanted, column = (
        landed(tmp_path, [key], **SPREAD),
        expected(key, **SPREAD),
        column_of(partition_key(key)),
    )
    rows = other_writer(sink).to_pyarrow_dataset()
    found = {
        "polars": polars.read_delta(sink.url).select("_offset", column).rows(),
        "delta-rs": zip(*other_writer(sink).to_pyarrow_table(columns=["_offset", column]), strict=True),
        "duckdb": duckdb.sql(f"SELECT _offset, {column} FROM rows").fetchall(),
    }
    assert rows.schema.names == [*LAYOUT.schema().names, column]
    for reader, pairs in found.items():
        plain = {getattr(n, "as_py", lambda n=n: n)(): getattr(v, "as_py", lambda v=v: v)() for n, v in pairs}
        assert plain == wanted, reader

    chosen = wanted[SPREAD["rows"] - 1]
    same = [offset for offset, value in wanted.items() if value == chosen]
    [kept] = other_writer(sink).file_uris(file_pruning_predicate=[(column, "=", text_of(chosen))])
    for file in Path(sink.url).rglob("*.parquet"):
        if str(file) != kept:
            file.unlink()
    literal = f"DATE '{chosen}'" if isinstance(chosen, datetime.date) else repr(chosen)
    for read in (by_polars, by_duckdb):
        assert read(sink, f"{column} = {literal}") == same
        with pytest.raises((OSError, duckdb.Error), match=r"(?i)no such file"):
            read(sink, f"{column} <> {literal}")


def test_readers_that_take_the_values_from_paths_find_the_same(tmp_path: Path) -> None:
    keys = [*TIMES, *NUMBERS]
    sink = landed(tmp_path, keys, **SPREAD)
    columns = [column_of(partition_key(key)) for key in keys]
    found = duckdb.read_parquet(other_writer(sink).file_uris(), hive_partitioning=True).select(
        "_offset", *columns
    )
    wanted = {key: expected(key, **SPREAD) for key in keys}
    rows = {offset: values for offset, *values in found.fetchall()}
    assert rows == {offset: [wanted[key][offset] for key in keys] for offset in range(SPREAD["rows"])}


def test_keys_of_one_transform_have_columns_of_their_own(tmp_path: Path) -> None:
    keys = [
        "bucket(3,_offset)",
        "bucket(4,_offset)",
        "bucket(3,_partition)",
        "truncate(4,_offset)",
        "hour(_timestamp)",
    ]
    sink = landed(tmp_path, keys, **SPREAD)
    found = other_writer(sink).metadata().partition_columns
    assert found == [
        "_offset_bucket_3",
        "_offset_bucket_4",
        "_partition_bucket_3",
        "_offset_truncate_4",
        "_timestamp_hour",
    ]
    assert offsets(sink) == list(range(12))


def test_a_time_that_no_calendar_has_is_in_the_partition_of_nulls(tmp_path: Path) -> None:
    sink = landed(tmp_path, ["hour(_timestamp)"], rows=2, first_us=LAST_US, apart_us=1)
    for read in (by_polars, by_duckdb):
        assert read(sink, "_timestamp_hour IS NULL") == [1]
        assert read(sink, "_timestamp_hour = '9999-12-31-23'") == [0]


TEXTS = ["x" * 300, "x" * 301, "ж" * 45, "y" * 250, "a/b", None, "", "../.."]


def test_a_text_that_is_too_long_for_a_directory_is_a_partition_too(tmp_path: Path) -> None:
    sink = DeltaSink(str(tmp_path))
    rows = pa.table({"note": TEXTS, "_offset": pa.array(range(len(TEXTS)), pa.int64())})
    files = sink.prepare(rows.schema, ["note"], evolves=False)
    found = RangeFiles(OffsetRange("orders", 0, 0, 9), files.root, "zstd", token="ab")
    for part in files.partitioning.split(files.fitted(rows.to_batches()[0])):
        found.add(part)
    found.finish()
    found.publish()
    tp = TopicPartition("orders", 0)
    wanted = TableCommit(job="j", batch=0, start={tp: 0}, end={tp: 9}, files=found.written())
    assert tables.commit(sink, wanted, PausedRuntime.seeded(1))
    texts = dict(enumerate(text or None for text in TEXTS))
    read = other_writer(sink).to_pyarrow_table(columns=["_offset", "note"]).to_pylist()
    assert {row["_offset"]: row["note"] for row in read} == texts
    assert by_duckdb(sink, f"note = '{TEXTS[0]}'") == [0]
    in_paths = {number: None if number in (0, 1, 2) else text for number, text in texts.items()}
    assert dict(polars.read_delta(sink.url).select("_offset", "note").rows()) == in_paths  # as documented
    assert sink.garbage(2**60) == []


@pytest.mark.parametrize("keys", [1, 2, 3, 10])
def test_directories_have_no_more_bytes_than_the_name_of_an_object_allows(keys: int) -> None:
    columns = [f"c{number}" for number in range(keys)]
    rows = pa.record_batch({column: ["z" * 200] for column in [*columns, "x"]})
    [part] = DeltaPartitioning(tuple(map(partition_key, columns))).split(rows)
    assert len(part.key.directory) <= 700
    assert max(map(len, part.key.directory.split("/"))) <= 255
    assert part.key.values == ("z" * 200,) * keys
    assert ("z" in part.key.directory) == (keys < 3)


@pytest.mark.parametrize("wanted", [(), ("topic",), ("day(_timestamp)",)])
def test_a_table_that_is_there_keeps_its_keys(tmp_path: Path, wanted: tuple[str, ...]) -> None:
    sink = created(tmp_path, "day(_timestamp)")
    files = sink.prepare(LAYOUT.schema(), wanted, evolves=False)
    assert files.partitioning == DeltaPartitioning((partition_key("day(_timestamp)"),))


@pytest.mark.parametrize(("keys", "is_by"), [([], "nothing"), (["topic"], "_topic")])
def test_other_keys_than_those_of_the_table_are_refused(tmp_path: Path, keys: list[str], is_by: str) -> None:
    with pytest.raises(ConfigError, match=rf"is partitioned by {is_by}, and --partition-by says day\("):
        created(tmp_path, *keys).check(LAYOUT.schema(), ("day(_timestamp)",), evolves=False)


# --- keys and tables that are refused


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        (["month(at)"], r"month\(at\) would be the column at_month, and the rows have one of this name"),
        (["day(At2)"], r"day\(At2\) would be the column At2_day, and the rows have one of this name"),
        (["hour(at)", "hour(at)"], r"hour\(at\) is there twice"),
        (["hour(on)"], "on is date32"),
        (["year(n)"], "n is int32"),
        (["truncate(2,at)"], "at is timestamp"),
        (["bucket(2,ok)"], "ok is bool"),
        (["bucket(2,price)"], r"price is decimal128\(4, 2\).*--sink iceberg:…"),
    ],
)
def test_keys_that_a_table_cannot_have_are_refused(keys: list[str], reason: str) -> None:
    kinds = {
        "at": UTC,
        "at_month": pa.string(),
        "At2": UTC,
        "at2_Day": pa.date32(),
        "on": pa.date32(),
        "n": pa.int32(),
    }
    rows = pa.schema({**kinds, "ok": pa.bool_(), "price": pa.decimal128(4, 2)})
    with pytest.raises(ConfigError, match=reason):
        check_keys("t", [partition_key(key) for key in keys], rows)


def of_another_program(root: Path, column: str, kind: pa.DataType, *found: Any) -> DeltaSink:
    """A table that kclient has not made, with one row for each value of its partition column."""
    schema = LAYOUT.schema().append(pa.field(column, kind))
    sink = DeltaSink(str(root / "table"))
    table = DeltaTable.create(sink.url, Schema.from_arrow(schema), partition_by=[column])
    rows = pa.Table.from_pylist([{column: value, "_offset": -1} for value in found], schema)
    write_deltalake(table, rows, mode="append")
    return sink


@pytest.mark.parametrize(
    ("column", "kind", "value", "key"),
    [
        ("_timestamp_year", pa.int32(), 2026, "year(_timestamp)"),
        ("_timestamp_month", pa.string(), "2026-11", "month(_timestamp)"),
        ("_timestamp_hour", pa.string(), "2026-11-28-04", "hour(_timestamp)"),
        ("_offset_truncate_4", pa.int64(), 8, "truncate(4,_offset)"),
        ("_offset_bucket_3", pa.int32(), 2, "bucket(3,_offset)"),
    ],
)
def test_a_table_of_another_program_is_followed_by_the_name_of_its_column(
    tmp_path: Path, column: str, kind: pa.DataType, value: Any, key: str
) -> None:
    sink = of_another_program(tmp_path, column, kind, value, None)
    sink.check(LAYOUT.schema(), (key,), evolves=False)
    assert tables.commit(sink, written(sink, 0, **SPREAD), PausedRuntime.seeded(1))
    rows = polars.read_delta(sink.url).filter(polars.col("_offset") >= 0).select("_offset", column).rows()
    assert dict(rows) == expected(key, **SPREAD)


@pytest.mark.parametrize(
    ("column", "kind", "value", "reason"),
    [
        ("_timestamp_month", pa.int32(), 11, r"_timestamp_month is int32, and month\(_timestamp\) is string"),
        ("_timestamp_day", pa.int32(), 28, r"_timestamp_day is int32, and day\(_timestamp\) is date32"),
        ("_timestamp_hour", pa.int32(), 4, r"_timestamp_hour is int32, and hour\(_timestamp\) is string"),
        ("_timestamp_month", pa.string(), "202611", "_timestamp_month has the value 202611"),
        ("_timestamp_hour", pa.string(), "04", "_timestamp_hour has the value 04"),
        (
            "_offset_truncate_4",
            pa.int32(),
            4,
            r"_offset_truncate_4 is int32, and truncate\(4,_offset\) is int64",
        ),
        ("_offset_month", pa.string(), "2026-11", "its partition column _offset_month is in no row"),
        ("_offset_truncate_2147483648", pa.int64(), 0, "_offset_truncate_2147483648 is in no row"),
        ("_offset_bucket_9999999999", pa.int32(), 0, "_offset_bucket_9999999999 is in no row"),
    ],
)
def test_a_table_whose_column_has_other_values_is_refused(
    tmp_path: Path, column: str, kind: pa.DataType, value: Any, reason: str
) -> None:
    sink = of_another_program(tmp_path, column, kind, None, value)
    for evolves in (False, True):
        with pytest.raises(ConfigError, match=reason):
            sink.check(LAYOUT.schema(), ("topic",), evolves=evolves)


def test_a_new_field_with_the_name_of_a_computed_column_is_refused(tmp_path: Path) -> None:
    """Else its values would divide the rows, beside those that were computed before."""
    sink = landed(tmp_path, ["month(_timestamp)"], **SPREAD)
    rows = LAYOUT.schema().append(pa.field("_timestamp_month", pa.string()))
    with pytest.raises(ConfigError, match="the rows have another column of this name"):
        sink.check(rows, ("topic",), evolves=True)


def test_a_table_that_is_divided_by_as_many_other_columns_since_is_refused(tmp_path: Path) -> None:
    sink = created(tmp_path, "hour(_timestamp)")
    wanted = written(sink, 0)
    schema = LAYOUT.schema().append(pa.field("_timestamp_month", pa.string()))
    DeltaTable.create(sink.url, Schema.from_arrow(schema), mode="overwrite", partition_by="_timestamp_month")
    with pytest.raises(SinkError, match="was changed while files were written for it: its partitions differ"):
        tables.commit(sink, wanted, PausedRuntime.seeded(1))


@pytest.mark.parametrize("value", [None, ""])
def test_a_record_without_a_value_for_a_partition_column_that_must_have_one_is_refused(
    tmp_path: Path, value: str | None
) -> None:
    """delta-rs would commit it, and nobody could read the table any more."""
    column = pa.field("_timestamp_month", pa.string(), nullable=False)
    sink = DeltaSink(str(tmp_path))
    DeltaTable.create(sink.url, Schema.from_arrow(LAYOUT.schema().append(column)), partition_by=column.name)
    sound, wanted = written(sink, 0), written(sink, 1, first_us=LAST_US + 1, apart_us=0)
    files = tuple(attrs.evolve(file, values=(value,)) for file in wanted.files)
    assert tables.commit(sink, sound, PausedRuntime.seeded(1))
    says = "record of orders-0 from the offsets 10 to 20 has no value for _timestamp_month.* DROP NOT NULL"
    with pytest.raises(SinkError, match=says):
        tables.commit(sink, attrs.evolve(wanted, files=files), PausedRuntime.seeded(1))
    assert (sink.load().version(), offsets(sink)) == (1, list(range(10)))
