"""Partition keys as they are typed, and rows divided into the files of a table."""

from __future__ import annotations

import datetime
import pickle
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kclient.errors import SinkError
from kclient.spark.ranges import OffsetRange
from kclient.spark.sink import parquet
from kclient.spark.sink.parquet import DirectTarget, write_batches
from kclient.spark.sink.partitions import (
    Part,
    PartitionKey,
    PartKey,
    TableFiles,
    grouped,
    partition_key,
    split_keys,
)
from kclient.spark.sink.row_layout import RowLayout
from tests.spark.test_direct import RANGE, everything, records


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("topic", PartitionKey("identity", "_topic")),
        ("date(timestamp)", PartitionKey("day", "_timestamp")),
        ("carrier", PartitionKey("identity", "carrier")),
        ("identity(carrier)", PartitionKey("identity", "carrier")),
        ("hour( _timestamp )", PartitionKey("hour", "_timestamp")),
        ("bucket(16, _key)", PartitionKey("bucket", "_key", 16)),
        ("truncate(4,dest.code)", PartitionKey("truncate", "dest.code", 4)),
    ],
)
def test_a_key_is_a_column_or_a_transform_of_one(text: str, key: PartitionKey) -> None:
    assert partition_key(text) == key
    assert partition_key(str(key)) == key


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("day()", "no partition key"),
        ("day(x", "no partition key"),
        ("week(x)", "week is no transform"),
        ("bucket(x)", "write as"),
        ("day(3,x)", "write as"),
        ("bucket(0,x)", "must be from 1 to"),
        ("truncate(9999999999,x)", "must be from 1 to"),
    ],
)
def test_what_is_no_key_is_refused_with_an_example(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        partition_key(text)


def test_a_list_of_keys_is_split_outside_of_parentheses() -> None:
    assert split_keys("topic, bucket(16, _key),day(x)") == ["topic", "bucket(16, _key)", "day(x)"]


def test_rows_are_grouped_by_all_keys_and_keep_their_order() -> None:
    rows = pa.record_batch({"a": ["x", "y", None, "x", None, "x"], "b": [1, 2, 3, 1, 3, 2], "n": range(6)})
    found = {values: some.column("n").to_pylist() for values, some in grouped(rows, [rows["a"], rows["b"]])}
    assert found == {("x", 1): [0, 3], ("y", 2): [1], (None, 3): [2, 4], ("x", 2): [5]}
    assert [values for values, _ in grouped(rows, [])] == [()]
    none = rows.slice(0, 0)
    assert list(grouped(none, [none["a"], none["b"]])) == []
    many = [rows["n"]] * 30  # the product of their sizes would be 6 to the 30th
    assert sorted(values[0] for values, _ in grouped(rows, many)) == list(range(6))


# --- the files of a table --------------------------------------------------------------------------------------------


@attrs.frozen
class ByKey:
    """Each key has a part of its own."""

    def split(self, rows: pa.RecordBatch) -> Iterator[Part]:
        for values, some in grouped(rows, [rows.column("_key")]):
            yield Part(PartKey("_key=…", values), some)


SCHEMA = pa.schema(
    [
        pa.field(field.name, field.type, metadata={"PARQUET:field_id": str(number)})
        for number, field in enumerate(RowLayout().schema(), 1)
    ]
)


def target(root: Path, **changed: Any) -> DirectTarget:
    table = TableFiles(str(root), "0" * 16, SCHEMA, ByKey())
    return DirectTarget(root=str(root), table=attrs.evolve(table, **changed))


@pytest.mark.parametrize("value", ["a", None, 7, float("nan"), datetime.date(2026, 1, 2)])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_rows_with_one_key_are_one_group(value: object, count: int) -> None:
    rows = pa.record_batch({"k": [value] * count, "n": list(range(count))})
    [(key, some)] = grouped(rows, [rows["k"], rows["k"]])
    assert key == (value, value) or key[0] != key[0]
    assert some.column("n").to_pylist() == list(range(count))


def test_each_part_is_a_file_with_its_values_its_footer_and_the_tables_ids(tmp_path: Path) -> None:
    written = write_batches(RANGE, [records(100, 4), records(104, 2)], target(tmp_path))
    keys = [b"k100", b"k101", b"k102", b"k103", b"k104", None]
    assert [(file.values, file.rows) for file in written.files] == [((key,), 1) for key in keys]
    for file in written.files:
        found = pq.ParquetFile(tmp_path / file.path)
        assert file.bytes == (tmp_path / file.path).stat().st_size
        footer = pq.read_metadata(BytesIO(file.footer or b""))
        assert footer.row_group(0).to_dict() == found.metadata.row_group(0).to_dict()
        ids = [field.metadata[b"PARQUET:field_id"] for field in found.schema_arrow]
        assert ids == [b"%d" % number for number in range(1, len(SCHEMA) + 1)]


def test_every_attempt_has_names_of_its_own(tmp_path: Path) -> None:
    once = write_batches(RANGE, [records(100, 3)], pickle.loads(pickle.dumps(target(tmp_path))))
    again = write_batches(RANGE, [records(100, 3)], target(tmp_path))
    assert not {file.path for file in once.files} & {file.path for file in again.files}
    assert everything(tmp_path) == sorted(file.path for file in (*once.files, *again.files))
    assert all(
        file.path.startswith("_key=…/00003-00000000000000000100-00000000000000000250-") for file in once.files
    )


def test_more_parts_than_open_files_wait_and_a_range_has_a_bound_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "OPEN_FILES", 2)
    batches = [records(100, 6), records(106, 6)]
    written = write_batches(RANGE, batches, target(tmp_path))
    rows = sorted((file.values[0] or b"", file.rows) for file in written.files)
    assert rows == [(b"", 1), *((b"k%d" % n, 1) for n in range(100, 112) if n % 7)]
    monkeypatch.setattr(parquet, "MAX_PARTS", 5)
    with pytest.raises(SinkError, match="more than 5 different partitions"):
        write_batches(RANGE, batches, target(tmp_path / "more"))
    assert everything(tmp_path / "more") == []


def test_values_are_converted_to_a_wider_type_and_columns_that_the_rows_lack_are_null(tmp_path: Path) -> None:
    wider = SCHEMA.set(1, pa.field("_partition", pa.int64())).append(pa.field("later", pa.string()))
    written = write_batches(RANGE, [records(100, 1)], target(tmp_path, schema=wider))
    row = pq.ParquetFile(tmp_path / written.files[0].path).read()
    assert (row.schema.field("_partition").type, row.column("_partition").to_pylist()) == (pa.int64(), [3])
    assert row.column("later").to_pylist() == [None]
    narrow = SCHEMA.set(2, pa.field("_offset", pa.int8()))
    with pytest.raises(SinkError, match="A value does not fit into its column"):
        write_batches(
            OffsetRange("t", 0, 300, 301), [records(300, 1)], target(tmp_path / "narrow", schema=narrow)
        )
