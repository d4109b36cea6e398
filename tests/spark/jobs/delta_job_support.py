"""A Delta table in a directory with the checkpoint of its job, and what other programs read in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from kclient.spark.sink.delta import DeltaSink
from tests.spark.jobs.support import Landed
from tests.spark.jobs.table_support import COLUMNS, TableLake, landed


@attrs.frozen
class DeltaLake(TableLake):
    """A table by delta-rs."""

    @property
    def where(self) -> str:
        return str(self.root / "table")

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(self.where)

    def settings(self, **changed: Any) -> dict[str, Any]:
        return {"sink": f"delta:{self.where}", **changed}

    def open(self) -> DeltaSink:
        return DeltaSink(self.where)

    def judged(self) -> tuple[list[Landed], ...]:
        return self.by_delta_rs(), self.by_polars()

    def by_delta_rs(self) -> list[Landed]:
        return landed(self.table.to_pyarrow_table(columns=list(COLUMNS)).to_pylist())

    def by_polars(self, version: int | None = None) -> list[Landed]:
        return landed(polars.read_delta(self.where, version=version).select(*COLUMNS).to_dicts())

    def by_duckdb(self) -> list[Landed]:
        """DuckDB reads the files that the newest version names, with a Parquet reader of its own."""
        files = self.table.file_uris()
        if not files:
            return []
        found = duckdb.read_parquet(files, hive_partitioning=True, union_by_name=True)
        return sorted(Landed(*row) for row in found.select(*COLUMNS).fetchall())

    def batches(self) -> int:
        return self.table.version()  # one version for each batch, after the table's creation

    def counted_files(self) -> list[str]:
        return sorted(self.table.file_uris())

    def files_on_disk(self) -> list[str]:
        return sorted(
            str(path) for path in Path(self.where).rglob("*.parquet") if "_delta_log" not in path.parts
        )

    def append(self, rows: pa.Table) -> bool:
        if not DeltaTable.is_deltatable(self.where):
            return False
        try:
            write_deltalake(self.where, rows, mode="append", schema_mode="merge")
        except CommitFailedError:
            return False
        return True

    def appended(self) -> list[int]:
        table = self.table.to_pyarrow_table()
        return list(table.filter(pc.is_null(table["_topic"]))["_offset"].to_pylist())
