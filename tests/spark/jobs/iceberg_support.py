"""A catalog in SQLite with a warehouse beside it, and what is in its tables, read by programs that are not ours."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import duckdb
import polars as pl
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table

from kclient.embedded import EmbeddedCluster
from tests.spark.jobs.support import Landed, RecordingReporter, run

os.environ["POLARS_ICEBERG_PLANNER"] = "pyiceberg"  # the planner of Polars' own is another package

TABLE = "lake.db.orders"
IDENTIFIER = ("db", "orders")


@attrs.frozen
class Lake:
    """One directory with the catalog, its file, the warehouse, and the checkpoint of the job."""

    root: Path

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
    def checkpoint(self) -> Path:
        return self.root / "checkpoint"

    @property
    def catalog(self) -> Catalog:
        return load_catalog("lake", **self.properties)

    @property
    def table(self) -> Table:
        return self.catalog.load_table(IDENTIFIER)

    def settings(self, **changed: Any) -> dict[str, Any]:
        """What makes a job of `support.given` one into the table."""
        return {"sink": f"iceberg:{TABLE}", "catalog": str(self.catalog_file), **changed}

    def run(self, cluster: EmbeddedCluster, **changed: Any) -> RecordingReporter:
        return run(cluster, self.root, **self.settings(**changed))

    # --- judges

    def by_pyiceberg(self) -> list[Landed]:
        columns = ("_topic", "_partition", "_offset", "value")
        return _landed(self.table.scan(selected_fields=columns).to_arrow().to_pylist())

    def by_polars(self) -> list[Landed]:
        """Polars reads the files with a Parquet reader of its own."""
        frame = pl.scan_iceberg(self.table, reader_override="native")
        return _landed(frame.select("_topic", "_partition", "_offset", "value").collect().to_dicts())

    def by_duckdb(self) -> list[Landed]:
        """DuckDB reads the files that the newest snapshot names."""
        files = [task.file.file_path.removeprefix("file://") for task in self.table.scan().plan_files()]
        if not files:
            return []
        found = duckdb.read_parquet(files, hive_partitioning=False, union_by_name=True)
        names = ("_topic", "_partition", "_offset", "value")
        return sorted(Landed(*row) for row in found.select(*names).fetchall())

    def files_on_disk(self) -> list[str]:
        return sorted(str(path) for path in (self.root / "warehouse").rglob("*.parquet"))


def _landed(rows: list[dict[str, Any]]) -> list[Landed]:
    return sorted(
        Landed(row["_topic"], row["_partition"], row["_offset"], row["value"])
        for row in rows
        if row["_topic"] is not None
    )


def assert_exactly_once(lake: Lake, wanted: list[Landed]) -> None:
    """Every record is in the table once, by two readers."""
    for found in (lake.by_pyiceberg(), lake.by_polars()):
        assert {row: times for row, times in Counter(found).items() if times > 1} == {}
        assert found == sorted(wanted)
