"""A Delta table of a few rows, as a job writes it, and what other readers find in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
from deltalake import DeltaTable

from kclient.records.arrow import SCHEMA
from kclient.spark.ranges import OffsetRange
from kclient.spark.sink import tables
from kclient.spark.sink.delta import DeltaSink
from kclient.spark.sink.parquet import DirectTarget, write_batches
from kclient.spark.sink.row_layout import RowLayout
from kclient.spark.sink.tables import TableCommit, TableProgress
from kclient.types import TopicPartition
from tests.spark.memory_table import PausedRuntime

JOB = "nightly"
TP = TopicPartition("orders", 0)
LAYOUT = RowLayout()
DAY_US = 86_400_000_000


def created(root: Path, *keys: str) -> DeltaSink:
    """A table for rows of `LAYOUT`."""
    sink = DeltaSink(str(root / "table"))
    sink.prepare(LAYOUT.schema(), keys, evolves=False)
    return sink


def commit(sink: DeltaSink, wanted: TableCommit) -> bool:
    return tables.commit(sink, wanted, PausedRuntime.seeded(1))


def progress(sink: DeltaSink, job: str = JOB) -> TableProgress | None:
    """What a new process reads."""
    fresh = DeltaSink(sink.url)
    return fresh.progress(fresh.load(), job)


def three_batches(root: Path) -> DeltaSink:
    """A table with three batches of ten rows, in its versions 1 to 3."""
    sink = created(root)
    for batch in range(3):
        commit(sink, written(sink, batch))
    return sink


def written(
    sink: DeltaSink,
    batch: int,
    rows: int = 10,
    tp: TopicPartition = TP,
    job: str = JOB,
    *,
    first_us: int = 0,
    apart_us: int = DAY_US,
) -> TableCommit:
    """Batch number `batch` of one partition, after others of the same size; its files are there."""
    start = batch * rows
    wanted = OffsetRange(*tp, start, start + rows)
    files = sink.prepare(LAYOUT.schema(), ("topic",), evolves=False)
    target = DirectTarget(root=files.root, layout=LAYOUT, table=files).of_batch(batch)
    found = write_batches(wanted, [records(start, rows, first_us, apart_us)], target)
    return TableCommit(job=job, batch=batch, start={tp: start}, end={tp: start + rows}, files=found.files)


def records(start: int, rows: int, first_us: int = 0, apart_us: int = DAY_US) -> pa.RecordBatch:
    """Records of the source with values like `value 7`; that of offset 0 has the first time."""
    offsets = range(start, start + rows)
    columns: dict[str, list[Any]] = {
        "offset": list(offsets),
        "timestamp": [first_us + offset * apart_us for offset in offsets],
        "headers": [[] for _ in offsets],
        "key": [None for _ in offsets],
        "value": [b"value %d" % offset for offset in offsets],
    }
    names = LAYOUT.read()
    arrays = [pa.array(columns[name], SCHEMA.field(name).type) for name in names]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


def offsets(sink: DeltaSink, version: int | None = None) -> list[int]:
    """The offsets of all rows, read by Polars."""
    return sorted(polars.read_delta(sink.url, version=version)["_offset"].to_list())


def by_polars(sink: DeltaSink, where: str) -> list[int]:
    """The offsets of rows that meet a condition of SQL; Polars opens only the files that may have some."""
    rows = polars.scan_delta(sink.url).filter(polars.sql_expr(where)).select("_offset").collect()
    return sorted(rows["_offset"].to_list())


def by_duckdb(sink: DeltaSink, where: str) -> list[int]:
    """The same by DuckDB, which hands the condition to the dataset of delta-rs."""
    rows = DeltaTable(sink.url).to_pyarrow_dataset()  # noqa: F841 DuckDB finds it by its name
    return sorted(row[0] for row in duckdb.sql(f"SELECT _offset FROM rows WHERE {where}").fetchall())


def other_writer(sink: DeltaSink) -> DeltaTable:
    """The table as another program opens it."""
    return DeltaTable(sink.url)
