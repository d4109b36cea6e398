"""The views `lag` and `lag_seconds` without Spark, as one table: how far each group was behind at each sample, and for
how long the record has waited that it would read next.

Spec: SP-94, SP-95.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
import pyarrow as pa
import pyarrow.dataset as ds

from kclient.spark.jobs.offsets_history.store import history_directory
from kclient.spark.jobs.offsets_history.tables import MICROS, TABLES
from kclient.types import TopicPartition

LAG: Final = pa.schema(
    [
        ("group", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("sampled_at", MICROS),
        ("committed", pa.int64()),
        ("low", pa.int64()),
        ("high", pa.int64()),
        ("lso", pa.int64()),
        ("lag", pa.int64()),
        ("lag_seconds", pa.float64()),
    ]
)

Row: TypeAlias = dict[str, Any]


@attrs.define
class _Commits:
    """What a group committed for a partition, in the order of the log; None where it was removed."""

    known_at: list[int] = attrs.Factory(list)
    offsets: list[int | None] = attrs.Factory(list)

    def at(self, moment: int) -> int | None:
        """The last that this job knew of by then."""
        count = bisect_right(self.known_at, moment)
        return self.offsets[count - 1] if count else None


def lag_table(directory: str | Path) -> pa.Table:
    """A row for each group, partition and sample, ordered by time: the columns of both views. `lag` is never negative;
    `lag_seconds` is null where the record was not found. Raises ArgumentError where there is no such directory.

    Spec: SP-94.
    """
    history = history_directory(directory)
    commits = _commits(history)
    written: dict[tuple[TopicPartition, int], int] = {}
    for row in _rows(history, "positions"):
        if row["record_ts"] is not None:
            place = TopicPartition(row["topic"], row["partition"]), row["offset"]
            written[place] = min(row["record_ts"], written.get(place, row["record_ts"]))
    rows = [
        _row(group, mark, committed, written)
        for mark in _rows(history, "watermarks")
        for group, of_group in commits.get(TopicPartition(mark["topic"], mark["partition"]), {}).items()
        if (committed := of_group.at(mark["sampled_at"])) is not None
    ]
    order = [(name, "ascending") for name in ("sampled_at", "group", "topic", "partition")]
    return pa.Table.from_pylist(rows, LAG).sort_by(order)


def _row(group: str, mark: Row, committed: int, written: dict[tuple[TopicPartition, int], int]) -> Row:
    behind = max(0, mark["high"] - max(committed, mark["low"]))
    moment = written.get((TopicPartition(mark["topic"], mark["partition"]), committed))
    waits: float | None = 0.0
    if behind:
        waits = None if moment is None else max(0, mark["sampled_at"] - moment) // 1000 / 1000
    return {**mark, "group": group, "committed": committed, "lag": behind, "lag_seconds": waits}


def _commits(history: Path) -> dict[TopicPartition, dict[str, _Commits]]:
    found: dict[TopicPartition, dict[str, _Commits]] = {}
    for row in sorted(_rows(history, "commits"), key=lambda row: row["src_offset"]):
        groups = found.setdefault(TopicPartition(row["topic"], row["partition"]), {})
        kept = groups.setdefault(row["group"], _Commits())
        kept.known_at.append(row["ingest_ts"])
        kept.offsets.append(None if row["tombstone"] else row["offset"])
    return found


def _rows(history: Path, name: str) -> Iterator[Row]:
    """The rows of a table, their times in microseconds since 1970."""
    files = sorted(map(str, (history / name).glob("date=*/[!._]*.parquet")))
    schema = TABLES[name]
    plain = pa.schema([field.with_type(pa.int64()) if field.type == MICROS else field for field in schema])
    for batch in ds.dataset(files, schema=schema).to_batches() if files else ():
        yield from pa.Table.from_batches([batch], schema).cast(plain).to_pylist()
