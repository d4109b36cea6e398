"""A Delta table in a directory with the checkpoint of its job, and what other programs read in it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import duckdb
import polars
from deltalake import DeltaTable

from kclient.embedded import EmbeddedCluster
from tests.spark.jobs.support import Landed, RecordingReporter, run

COLUMNS = ("_topic", "_partition", "_offset", "value")


@attrs.frozen
class DeltaLake:
    """One directory with the table and the checkpoint of the job."""

    root: Path

    @property
    def where(self) -> str:
        return str(self.root / "table")

    @property
    def checkpoint(self) -> Path:
        return self.root / "checkpoint"

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(self.where)

    def settings(self, **changed: Any) -> dict[str, Any]:
        """What makes a job of `support.given` one into the table."""
        return {"sink": f"delta:{self.where}", **changed}

    def run(self, cluster: EmbeddedCluster, **changed: Any) -> RecordingReporter:
        return run(cluster, self.root, **self.settings(**changed))

    # --- judges

    def by_delta_rs(self) -> list[Landed]:
        return _landed(self.table.to_pyarrow_table(columns=list(COLUMNS)).to_pylist())

    def by_polars(self, version: int | None = None) -> list[Landed]:
        return _landed(polars.read_delta(self.where, version=version).select(*COLUMNS).to_dicts())

    def by_duckdb(self) -> list[Landed]:
        """DuckDB reads the files that the newest version names, with a Parquet reader of its own."""
        files = self.table.file_uris()
        if not files:
            return []
        found = duckdb.read_parquet(files, hive_partitioning=True, union_by_name=True)
        return sorted(Landed(*row) for row in found.select(*COLUMNS).fetchall())

    def files_on_disk(self) -> list[str]:
        return sorted(
            str(path) for path in Path(self.where).rglob("*.parquet") if "_delta_log" not in path.parts
        )


def _landed(rows: list[dict[str, Any]]) -> list[Landed]:
    found = [Landed(*(row[name] for name in COLUMNS)) for row in rows]
    return sorted(row for row in found if row.topic is not None)


def assert_exactly_once(lake: DeltaLake, wanted: list[Landed]) -> None:
    """Every record is in the table once, by two readers."""
    for found in (lake.by_delta_rs(), lake.by_polars()):
        assert {row: times for row, times in Counter(found).items() if times > 1} == {}
        assert found == sorted(wanted)
