"""The views `lag` and `lag_seconds` without Spark, as one table: how far each group was behind at each sample, and for
how long the record has waited that it would read next.
"""

from __future__ import annotations

import math
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
        ("lag_seconds_method", pa.string()),
    ]
)

EXACT: Final = "exact"
INTERPOLATED: Final = "interp"

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
    """A row for each group, partition and sample, ordered by time: the columns of both views. `lag` and
    `lag_seconds` are never negative. `lag_seconds_method` is `exact` where the timestamp of the record at the
    committed offset is known, `interp` where its time lies between two samples of the log's end, and null, as
    `lag_seconds`, where it was written before the first sample. Raises ArgumentError where there is no such directory.
    """
    history = history_directory(directory)
    commits = _commits(history)
    written: dict[tuple[TopicPartition, int], int] = {}
    for row in _rows(history, "positions"):
        if row["record_ts"] is not None:
            place = TopicPartition(row["topic"], row["partition"]), row["offset"]
            written[place] = min(row["record_ts"], written.get(place, row["record_ts"]))
    marks = list(_rows(history, "watermarks"))
    ends = _ends(marks)
    rows = [
        _row(group, mark, committed, written, ends)
        for mark in marks
        for group, of_group in commits.get(TopicPartition(mark["topic"], mark["partition"]), {}).items()
        if (committed := of_group.at(mark["sampled_at"])) is not None
    ]
    order = [(name, "ascending") for name in ("sampled_at", "group", "topic", "partition")]
    return pa.Table.from_pylist(rows, LAG).sort_by(order)


def _row(
    group: str,
    mark: Row,
    committed: int,
    written: dict[tuple[TopicPartition, int], int],
    ends: dict[TopicPartition, _Ends],
) -> Row:
    tp, sampled_at = TopicPartition(mark["topic"], mark["partition"]), mark["sampled_at"]
    next_offset = max(committed, mark["low"])
    behind, method = max(0, mark["high"] - next_offset), EXACT
    moment = written.get((tp, committed)) if behind else sampled_at
    if moment is None:
        moment, method = ends[tp].written_at(next_offset, sampled_at), INTERPOLATED
    return {
        **mark,
        "group": group,
        "committed": committed,
        "lag": behind,
        "lag_seconds": None if moment is None else max(0, sampled_at - moment) // 1000 / 1000,
        "lag_seconds_method": None if moment is None else method,
    }


@attrs.define
class _Ends:
    """The high watermarks of one partition, by the time of their samples."""

    sampled_at: list[int] = attrs.Factory(list)
    highs: list[int] = attrs.Factory(list)

    def written_at(self, offset: int, before: int) -> int | None:
        """When the log grew beyond an offset, if two samples up to `before` have it between them; the newest such two.

        A log that was truncated has grown beyond it more than once.
        """
        for later in range(bisect_right(self.sampled_at, before) - 1, 0, -1):
            first, end = self.highs[later - 1], self.highs[later]
            if first <= offset < end:
                since, until = self.sampled_at[later - 1], self.sampled_at[later]
                return since + math.floor((offset - first) / (end - first) * (until - since))
        return None


def _ends(marks: list[Row]) -> dict[TopicPartition, _Ends]:
    found: dict[TopicPartition, _Ends] = {}
    for mark in sorted(marks, key=lambda mark: mark["sampled_at"]):
        ends = found.setdefault(TopicPartition(mark["topic"], mark["partition"]), _Ends())
        ends.sampled_at.append(mark["sampled_at"])
        ends.highs.append(mark["high"])
    return found


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
