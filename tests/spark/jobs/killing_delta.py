"""The same for a job that commits into a Delta table: every step from its creation to the end of a batch."""

from __future__ import annotations

from collections.abc import Mapping

from deltalake import DeltaTable

from kclient.spark.group_progress import GroupCommitter
from kclient.spark.ingest.checkpoint import Checkpoint
from kclient.spark.sink import parquet, tables
from kclient.spark.sink.delta import DeltaSink
from tests.spark.jobs.killing import Step, main

STEPS: Mapping[str, Step] = {
    "before the job is claimed": Step(Checkpoint, "claim", "before"),
    "before the table is created": Step(DeltaTable, "create", "before"),
    "after the table is created": Step(DeltaTable, "create", "after"),
    "after the start is kept": Step(Checkpoint, "store_start", "after"),
    "before the offsets are written": Step(Checkpoint, "begin", "before"),
    "after the offsets are written": Step(Checkpoint, "begin", "after"),
    "after a temporary file": Step(parquet, "publish", "before"),
    "after a rename": Step(parquet, "publish", "after"),
    "before the table is read": Step(tables, "commit", "before"),
    "before the commit": Step(DeltaSink, "try_commit", "before"),
    "before the log": Step(DeltaTable, "create_write_transaction", "before"),
    "after the log": Step(DeltaTable, "create_write_transaction", "after"),
    "after the log is on the disk": Step(DeltaSink, "_sync", "after"),
    "after the commit": Step(tables, "commit", "after"),
    "before the checkpoint's commit": Step(Checkpoint, "commit", "before"),
    "after the checkpoint's commit": Step(Checkpoint, "commit", "after"),
    "before the group's commit": Step(GroupCommitter, "commit", "before"),
}
SAMPLE: tuple[tuple[str, int], ...] = (
    ("after the table is created", 0),
    ("after a rename", 0),
    ("before the log", 1),
    ("after the log", 0),
    ("before the checkpoint's commit", 1),
)
"""The kills of `make test`."""

KILLS: tuple[tuple[str, int], ...] = (
    *((step, 0) for step in STEPS),
    ("after the log is on the disk", 1),  # that of the first batch; the one before is of the table's creation
    # Batches after the first.
    ("after the offsets are written", 2),
    ("after a rename", 4),
    ("before the log", 1),
    ("after the log", 2),
    ("before the checkpoint's commit", 1),
)

if __name__ == "__main__":
    main(STEPS)
