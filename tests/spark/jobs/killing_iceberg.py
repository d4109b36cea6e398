"""The same for a job that commits into an Iceberg table: every step from its creation to the end of a batch."""

from __future__ import annotations

from collections.abc import Mapping

import pyiceberg.table.update.snapshot as snapshots
from pyiceberg.catalog.sql import SqlCatalog

from kclient.spark.group_progress import GroupCommitter
from kclient.spark.ingest.checkpoint import Checkpoint
from kclient.spark.sink import parquet, tables
from kclient.spark.sink.iceberg import IcebergTable
from tests.spark.jobs.killing import Step, main

CREATION, BATCH = 0, 1
"""How often a function has been called before the step: the table's creation writes metadata too."""

STEPS: Mapping[str, Step] = {
    "before the job is claimed": Step(Checkpoint, "claim", "before"),
    "before the table is created": Step(SqlCatalog, "create_table", "before"),
    "before the table's metadata": Step(SqlCatalog, "_write_metadata", "before"),
    "after the table's metadata": Step(SqlCatalog, "_write_metadata", "after"),
    "after the table is created": Step(SqlCatalog, "create_table", "after"),
    "after the start is kept": Step(Checkpoint, "store_start", "after"),
    "before the offsets are written": Step(Checkpoint, "begin", "before"),
    "after the offsets are written": Step(Checkpoint, "begin", "after"),
    "after a temporary file": Step(parquet, "publish", "before"),
    "after a rename": Step(parquet, "publish", "after"),
    "before the table is read": Step(tables, "commit", "before"),
    "before the commit": Step(IcebergTable, "try_commit", "before"),
    "before the manifest": Step(snapshots, "write_manifest", "before"),
    "after the manifest": Step(snapshots, "write_manifest", "after"),
    "before the manifest list": Step(snapshots, "write_manifest_list", "before"),
    "after the manifest list": Step(snapshots, "write_manifest_list", "after"),
    "before the catalog is asked": Step(SqlCatalog, "commit_table", "before"),
    "after the catalog has answered": Step(SqlCatalog, "commit_table", "after"),
    "after the commit": Step(tables, "commit", "after"),
    "before the checkpoint's commit": Step(Checkpoint, "commit", "before"),
    "after the checkpoint's commit": Step(Checkpoint, "commit", "after"),
    "before the group's commit": Step(GroupCommitter, "commit", "before"),
}
SAMPLE: tuple[tuple[str, int], ...] = (
    ("after the table's metadata", CREATION),
    ("after a rename", CREATION),
    ("after the manifest list", CREATION),
    ("after the table's metadata", BATCH),
    ("after the catalog has answered", CREATION),
    ("before the checkpoint's commit", BATCH),
)
"""The kills of `make test`."""

KILLS: tuple[tuple[str, int], ...] = (
    *((step, CREATION) for step in STEPS),
    # The first call of these belongs to the table's creation.
    ("before the table's metadata", BATCH),
    ("after the table's metadata", BATCH),
    # Batches after the first.
    ("after the offsets are written", 2),
    ("after a rename", 4),
    ("after the table's metadata", 3),
    ("after the catalog has answered", 2),
    ("before the checkpoint's commit", BATCH),
)

if __name__ == "__main__":
    main(STEPS)
