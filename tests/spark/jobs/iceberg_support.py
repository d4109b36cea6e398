"""A catalog in SQLite with a warehouse beside it, and what is in its tables, read by programs that are not ours."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import attrs
import duckdb
import polars as pl
import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from kclient.spark.sink.iceberg import IcebergTable
from tests.spark.jobs.support import Landed
from tests.spark.jobs.table_support import TableLake, landed

os.environ["POLARS_ICEBERG_PLANNER"] = "pyiceberg"  # the planner of Polars' own is another package

TABLE = "lake.db.orders"
IDENTIFIER = ("db", "orders")
COLUMNS = ("_topic", "_kafka_partition", "_offset", "value")


@attrs.frozen
class Lake(TableLake):
    """A table by pyiceberg, with the catalog and its file beside the warehouse."""

    def __attrs_post_init__(self) -> None:
        (self.root / "warehouse").mkdir(parents=True, exist_ok=True)
        lines = [f"{name}: {value}" for name, value in self.properties.items()]
        self.catalog_file.write_text("catalog:\n  lake:\n    " + "\n    ".join(lines) + "\n")

    @property
    def properties(self) -> dict[str, str]:
        uri = f"sqlite:///{self.root / 'catalog.db'}"
        return {"type": "sql", "uri": uri, "warehouse": f"file://{self.root / 'warehouse'}"}

    @property
    def catalog_file(self) -> Path:
        return self.root / "catalog.yaml"

    @property
    def catalog(self) -> Catalog:
        return load_catalog("lake", **self.properties)

    @property
    def table(self) -> Table:
        return self.catalog.load_table(IDENTIFIER)

    def settings(self, **changed: Any) -> dict[str, Any]:
        return {"sink": f"iceberg:{TABLE}", "catalog": str(self.catalog_file), **changed}

    def open(self) -> IcebergTable:
        return IcebergTable(TABLE, str(self.catalog_file))

    def judged(self) -> tuple[list[Landed], ...]:
        return self.by_pyiceberg(), self.by_polars()

    def by_pyiceberg(self) -> list[Landed]:
        return landed(self.table.scan(selected_fields=COLUMNS).to_arrow().to_pylist(), COLUMNS)

    def by_polars(self) -> list[Landed]:
        """Polars reads the files with a Parquet reader of its own."""
        frame = pl.scan_iceberg(self.table, reader_override="native")
        return landed(frame.select(*COLUMNS).collect().to_dicts(), COLUMNS)

    def by_duckdb(self) -> list[Landed]:
        """DuckDB reads the files that the newest snapshot names."""
        files = [task.file.file_path.removeprefix("file://") for task in self.table.scan().plan_files()]
        if not files:
            return []
        found = duckdb.read_parquet(files, hive_partitioning=False, union_by_name=True)
        return sorted(Landed(*row) for row in found.select(*COLUMNS).fetchall())

    def batches(self) -> int:
        return len(self.table.snapshots())

    def counted_files(self) -> list[str]:
        files = self.table.inspect.all_files().to_pylist()
        return sorted({file["file_path"].removeprefix("file://") for file in files})

    def files_on_disk(self) -> list[str]:
        return sorted(str(path) for path in (self.root / "warehouse").rglob("*.parquet"))

    def append(self, rows: pa.Table) -> bool:
        if not self.catalog.table_exists(IDENTIFIER):
            return False
        try:
            self.table.append(rows)
        except CommitFailedException:
            return False
        return True

    def appended(self) -> list[int]:
        return list(self.table.scan(row_filter="_topic is null").to_arrow().column("_offset").to_pylist())
