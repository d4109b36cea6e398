"""The schema: exactly Spark's, any subset of it, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest

from kclient.errors import ConfigError, InternalError
from kclient.records.batch import read_batches
from kclient.records.reader import PartitionReader
from kclient.records.writer import NewRecord, build_batch
from kclient.spark.arrow_batches import TYPES, Batcher, check_columns, checked, ddl, default_columns
from kclient.spark.decoding import ValueDecoder

types = pytest.importorskip("pyspark.sql.types")


def spark_schema(columns: tuple[str, ...]) -> object:
    """What Spark compares the first batch with."""
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructField, StructType

    kinds = {
        "binary": types.BinaryType(),
        "string": types.StringType(),
        "int": types.IntegerType(),
        "bigint": types.LongType(),
        "timestamp": types.TimestampType(),
        TYPES["headers"]: types.ArrayType(
            StructType([StructField("key", types.StringType()), StructField("value", types.BinaryType())])
        ),
    }
    fields = [StructField(name, kinds[TYPES[name]]) for name in columns]
    return to_arrow_schema(StructType(fields), timezone="UTC")


def one_batch(columns: tuple[str, ...]) -> object:
    data = build_batch([NewRecord(b"k", b"v", 1_000, [("h", None)]), NewRecord(None, b"", -1)])
    (batch,) = Batcher(columns, 10_000, 4_194_304).batches(PartitionReader("t", 3, data, 0), end=2)
    return batch


@pytest.mark.spec("SP-27", "ST-09")
@pytest.mark.parametrize(
    "columns",
    [
        default_columns(include_headers=False),
        default_columns(include_headers=True),
        ("value", "offset"),
        ("timestampType", "headers", "key"),
    ],
)
def test_arrow_batches_have_the_very_schema_that_spark_compares_with(columns: tuple[str, ...]) -> None:
    assert spark_schema(columns).equals(one_batch(columns).schema)  # type: ignore[attr-defined]


COLUMNS = ("key", "topic", "offset", "timestamp")
GOOD: dict[str, pa.DataType] = {
    "key": pa.binary(),
    "topic": pa.string(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
WRONG: dict[str, pa.Schema] = {
    "reordered columns": pa.schema({name: GOOD[name] for name in reversed(COLUMNS)}),
    "one column less": pa.schema({name: GOOD[name] for name in COLUMNS[:3]}),
    "large_string": pa.schema({**GOOD, "topic": pa.large_string()}),
    "dictionary": pa.schema({**GOOD, "topic": pa.dictionary(pa.int32(), pa.string())}),
    "binary_view": pa.schema({**GOOD, "key": pa.binary_view()}),
    "not null": pa.schema([pa.field(name, kind, name != "offset") for name, kind in GOOD.items()]),
    "timestamp[ms]": pa.schema({**GOOD, "timestamp": pa.timestamp("ms", tz="UTC")}),
    "a naive timestamp": pa.schema({**GOOD, "timestamp": pa.timestamp("us")}),
    "another zone": pa.schema({**GOOD, "timestamp": pa.timestamp("us", tz="Europe/Berlin")}),
}


def empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)


@pytest.mark.spec("SP-27", "ST-09")
@pytest.mark.parametrize("what", WRONG)
def test_a_batch_that_spark_would_refuse_is_caught_before(what: str) -> None:
    wanted = ValueDecoder({}).arrow_schema(COLUMNS)
    assert wanted.equals(pa.schema(GOOD))
    with pytest.raises(InternalError, match=" instead of "):
        next(checked(iter([empty(WRONG[what])]), wanted))


@pytest.mark.spec("SP-27")
def test_batches_of_the_right_schema_pass_and_a_reader_that_ends_early_closes_what_it_reads() -> None:
    closed: list[bool] = []

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            while True:
                yield empty(pa.schema(GOOD))
        finally:
            closed.append(True)

    for many in (1, 3):
        reading = checked(batches(), pa.schema(GOOD))
        assert [len(next(reading)) for _ in range(many)] == [0] * many
        reading.close()  # type: ignore[attr-defined]
    assert closed == [True, True]
    assert list(checked(iter([]), pa.schema(GOOD))) == []


@pytest.mark.spec("SP-27")
def test_rows_hold_what_the_records_say() -> None:
    rows = one_batch(default_columns(include_headers=True)).to_pylist()  # type: ignore[attr-defined]
    assert rows[0]["headers"] == [{"key": "h", "value": None}]
    assert rows[1]["headers"] is None
    assert (rows[1]["key"], rows[1]["value"]) == (None, b"")
    assert rows[1]["timestamp"].timestamp() == -0.001
    assert {(row["topic"], row["partition"], row["timestampType"]) for row in rows} == {("t", 3, 0)}


@pytest.mark.spec("SP-30", "ST-09")
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([("values", "binary")], "did you mean value?"),
        ([("value", "string")], "value is binary, not string"),
        ([("offset", "int")], "offset is bigint, not int"),
        ([("value", "binary"), ("value", "binary")], "twice"),
        ([], "no column"),
    ],
)
def test_a_schema_that_kafka_cannot_give_is_refused(fields: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")) as caught:
        check_columns(fields)
    assert ddl(TYPES) in str(caught.value)


@pytest.mark.spec("SP-28")
def test_the_first_batch_is_small_and_none_is_large() -> None:
    data = b"".join(
        build_batch([NewRecord(None, b"x" * 100)] * 5_000, base_offset=5_000 * number) for number in range(6)
    )
    batches = list(
        Batcher(("offset",), 10_000, 4_194_304).batches(PartitionReader("t", 0, data, 0), end=30_000)
    )
    assert [batch.num_rows for batch in batches] == [1_000, 10_000, 10_000, 9_000]
    large = build_batch([NewRecord(None, b"x" * 300_000)] * 50)
    batches = list(Batcher(("value",), 10_000, 1_048_576).batches(PartitionReader("t", 0, large, 0), end=50))
    assert sum(batch.num_rows for batch in batches) == 50
    assert all(batch.nbytes <= 1_048_576 + 300_100 for batch in batches[1:])


@pytest.mark.spec("SP-61", "SP-62")
def test_a_piece_is_cut_at_the_end_in_the_middle_of_a_batch() -> None:
    data = build_batch([NewRecord(None, b"x")] * 100, base_offset=50)
    (batch,) = Batcher(("offset",), 10_000, 4_194_304).batches(PartitionReader("t", 0, data, 60), end=70)
    assert batch.column("offset").to_pylist() == list(range(60, 70))
    assert next(iter(read_batches(data))).next_offset == 150


@pytest.mark.spec("SP-02")
def test_the_package_and_its_pure_parts_load_neither_pyspark_nor_pyarrow() -> None:
    code = (
        "import sys, kclient, kclient.spark, kclient.spark.options, kclient.spark.ranges, kclient.spark.arrow_batches, "
        "kclient.spark.executor; print([m for m in ('pyspark', 'pyarrow') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == "[]"
