"""Helpers of the tests of offsets-history: a run of it, and its tables read as plain Parquet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from kclient.spark.offsets_history import HistoryRun, OffsetsHistorySettings, run


def keep(bootstrap: str, out: Path, **given: Any) -> HistoryRun:
    """One run, as the command line makes it."""
    return run(OffsetsHistorySettings.parse({"bootstrap": bootstrap, "out": str(out), **given}))


def table(
    out: Path, name: str, wanted: Callable[[dict[str, Any]], bool] = lambda _: True
) -> list[dict[str, Any]]:
    """The rows of a table in the order of the log, or of sampling."""
    if not (out / name).is_dir():
        return []
    rows = ds.dataset(out / name, partitioning="hive").to_table().to_pylist()
    order = ("src_partition", "src_offset", "member_id", "topic", "partition", "sampled_at")
    return sorted(
        filter(wanted, rows), key=lambda row: [(row.get(key) is not None, row.get(key)) for key in order]
    )
