"""The directory of a history: the files of its tables, and its state.

    _history.json                                  the cluster, and the next offset of each partition
    commits/date=2026-11-22/00007-…-….parquet      one row for each commit, or its removal; named after the range
    groups/date=…                                  one for each member of a group as it was written, or the group alone
    watermarks/date=…                              one for each partition with commits, each time it is sampled
    positions/date=…                               when the record at a committed offset was written
    unknown/date=…                                 records that are newer than this reader, or damaged, as they came

A range's files get their names before the state moves past it. Files of a killed run after the state are removed before
the range is read again, so no record is in two files. The topic is compacted, so a file may hold the only copy of a
record: only files after the saved offset are ever removed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa

from kclient.errors import ArgumentError
from kclient.spark.offsets import dump_offsets, parse_offsets
from kclient.spark.offsets_history.rows import Row
from kclient.spark.ranges import OffsetRange
from kclient.spark.sink.atomic_files import read_json, sink_errors, write_atomically
from kclient.spark.sink.parquet import HiddenFile, ParquetFile
from kclient.types import TopicPartition

STATE: Final = "_history.json"
VERSION: Final = 1
CODEC: Final = "zstd"
DAY_MS: Final = 86_400_000
_FILE: Final = re.compile(r"(?P<partition>\d{5})-(?P<start>\d{20})-\d{20}\.parquet", re.ASCII)
_ORDER: Final = [("group", "ascending"), ("src_offset", "ascending")]


@attrs.frozen(kw_only=True)
class HistoryState:
    """How far a history has read.

    `committed` are the partitions with commits of any group, `waiting` the committed offsets whose record did not exist
    yet at the last lookup.
    """

    cluster_id: str | None
    topic_id: str | None
    offsets: Mapping[TopicPartition, int]
    committed: frozenset[TopicPartition] = frozenset()
    waiting: Mapping[TopicPartition, frozenset[int]] = attrs.field(factory=dict)


def history_directory(directory: str | Path) -> Path:
    """Return the directory of a history to read. Raises ArgumentError if there is none."""
    path = Path(directory)
    if not path.is_dir():
        raise ArgumentError(
            f"{path} is not a directory, so it holds no history. The path is misspelt, or no run has written to it. "
            "Give the directory that offsets-history has as --out."
        )
    return path


class HistoryStore:
    """The history in a directory. Every method may raise SinkError."""

    def __init__(self, directory: str | Path) -> None:
        self.path: Final = Path(directory)

    def state(self) -> HistoryState | None:
        """Return its state, None for a new history."""
        path = self.path / STATE
        damaged = "It was damaged, or another program wrote it."
        restore = "Restore it from a copy, or begin a new history in another directory."
        return read_json(path, _state, f"The file {path}", f"{damaged} {restore}")

    def keep(self, state: HistoryState) -> None:
        """Move on."""
        content = {
            "version": VERSION,
            "cluster_id": state.cluster_id,
            "topic_id": state.topic_id,
            "offsets": json.loads(dump_offsets(state.offsets)),
            "committed": [list(tp) for tp in sorted(state.committed)],
            "waiting": [
                [*tp, offset] for tp, offsets in sorted(state.waiting.items()) for offset in sorted(offsets)
            ],
        }
        write_atomically(self.path / STATE, json.dumps(content, indent=1).encode())

    def has_tables(self) -> bool:
        """Return whether any table has a file."""
        with sink_errors(self.path):
            return any(not path.name.startswith(".") for path in self._files())

    def tidy(self, offsets: Mapping[int, int]) -> int:
        """Remove the files of ranges that begin at or after the state's offsets, and half-written ones."""
        removed = 0
        with sink_errors(self.path):
            for path in self._files():
                match = _FILE.fullmatch(path.name)
                kept = None if match is None else offsets.get(int(match["partition"]))
                lag = match is not None and kept is not None and int(match["start"]) >= kept
                if lag or path.name.startswith("."):
                    path.unlink()
                    removed += 1
        return removed

    def _files(self) -> list[Path]:
        return [path for table in TABLES for path in (self.path / table).glob("date=*/*")]

    def write_range(self, wanted: OffsetRange, tables: Mapping[str, list[Row]]) -> None:
        """Write the rows of a range, by the dates of their records, each file ordered by group."""
        name = f"{wanted.partition:05d}-{wanted.start:020d}-{wanted.end:020d}.parquet"
        for table, rows in tables.items():
            for date, of_date in _by_date(rows, "record_ts").items():
                self._write(table, date, name, of_date)

    def write_sample(self, table: str, rows: list[Row], sampled_ms: int) -> None:
        """Write the rows of one sample."""
        for date, of_date in _by_date(rows, "sampled_at").items():
            self._write(table, date, f"sample-{sampled_ms:013d}.parquet", of_date)

    def _write(self, table: str, date: str, name: str, rows: list[Row]) -> None:
        made = as_stored(table, rows)
        if "group" in made.schema.names:
            made = made.sort_by(_ORDER)
        file = ParquetFile(HiddenFile(self.path / table / f"date={date}" / name), made.schema, CODEC)
        try:
            for batch in made.to_batches():
                file.add(batch)
            file.finish()
        except BaseException:
            file.discard()
            raise
        file.publish()


def _by_date(rows: Iterable[Row], column: str) -> dict[str, list[Row]]:
    """Return the rows by day in UTC; rows whose time is not a valid date get the day of their arrival."""
    days: dict[int, list[Row]] = {}
    for row in rows:
        moment = storable(row.get(column))
        days.setdefault((row["ingest_ts"] if moment is None else moment) // DAY_MS, []).append(row)
    return {
        datetime.fromtimestamp(day * DAY_MS / 1000, UTC).date().isoformat(): found
        for day, found in days.items()
    }


def _state(content: Any) -> HistoryState:
    if content["version"] != VERSION:
        raise ValueError(f"its version is {content['version']!r}, not {VERSION}")
    waiting: dict[TopicPartition, frozenset[int]] = {}
    for topic, partition, offset in content["waiting"]:
        tp = TopicPartition(topic, partition)
        waiting[tp] = waiting.get(tp, frozenset()) | {offset}
    return HistoryState(
        cluster_id=content["cluster_id"],
        topic_id=content["topic_id"],
        offsets=parse_offsets(json.dumps(content["offsets"])) if content["offsets"] else {},
        committed=frozenset(TopicPartition(*tp) for tp in content["committed"]),
        waiting=waiting,
    )


# --- the columns of the tables ---------------------------------------------------------------------------------------


MILLIS: Final = pa.timestamp("ms", tz="UTC")
MICROS: Final = pa.timestamp("us", tz="UTC")

OWNED: Final = pa.struct([("topic", pa.string()), ("topic_id", pa.string()), ("partition", pa.int32())])

_SOURCE: Final = [
    ("src_partition", pa.int32()),
    ("src_offset", pa.int64()),
    ("record_ts", MICROS),
    ("ingest_ts", MICROS),
]

TABLES: Final = {
    "commits": pa.schema(
        [
            ("group", pa.string()),
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("leader_epoch", pa.int32()),
            ("metadata", pa.string()),
            ("commit_ts", MICROS),
            ("expire_ts", MICROS),
            ("tombstone", pa.bool_()),
            ("txn", pa.bool_()),
            *_SOURCE,
        ]
    ),
    "groups": pa.schema(
        [
            ("group", pa.string()),
            ("record", pa.string()),
            ("protocol_type", pa.string()),
            ("protocol", pa.string()),
            ("generation", pa.int32()),
            ("leader", pa.string()),
            ("state_ts", MICROS),
            ("member_id", pa.string()),
            ("instance_id", pa.string()),
            ("client_id", pa.string()),
            ("client_host", pa.string()),
            ("rebalance_timeout_ms", pa.int32()),
            ("session_timeout_ms", pa.int32()),
            ("assignment", pa.list_(pa.field("element", OWNED))),
            ("tombstone", pa.bool_()),
            *_SOURCE,
        ]
    ),
    "watermarks": pa.schema(
        [
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("low", pa.int64()),
            ("high", pa.int64()),
            ("lso", pa.int64()),
            ("sampled_at", MICROS),
        ]
    ),
    "positions": pa.schema(
        [
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("record_ts", MICROS),
            ("sampled_at", MICROS),
        ]
    ),
    "unknown": pa.schema(
        [
            ("record_type", pa.int32()),
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("problem", pa.string()),
            *_SOURCE,
        ]
    ),
}
"""Table → its columns. Those called `…_ts` and `sampled_at` are given as milliseconds since 1970."""

FIRST_MS: Final = -62_135_596_800_000
LAST_MS: Final = 253_402_300_799_999
"""The first and last millisecond that a date can name: years 1 to 9999."""


def storable(milliseconds: int | None) -> int | None:
    """Return a time, None if no date can express it: clients may commit any number, for example nanoseconds."""
    return None if milliseconds is None or not FIRST_MS <= milliseconds <= LAST_MS else milliseconds


def as_stored(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    """Return the rows of a table, times in microseconds as Spark expects. Times that are not `storable` are null."""
    schema = TABLES[name]
    times = [field.name for field in schema if field.type == MICROS]
    read = pa.schema([field.with_type(MILLIS) if field.type == MICROS else field for field in schema])
    named = [row | {time: storable(row.get(time)) for time in times} for row in rows]
    return pa.Table.from_pylist(named, read).cast(schema)
