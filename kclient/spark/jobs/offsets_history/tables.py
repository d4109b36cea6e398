"""The tables: their columns as Arrow types. Each is a directory of Parquet files, by the date of the record in UTC.

commits/date=2026-11-22/00007-….parquet        one row for each commit, or its removal
groups/date=…                                  one for each member of a group as it was written, or the group alone
watermarks/date=…                              one for each partition that anybody commits, each time it is sampled
positions/date=…                               when the record at a committed offset was written
unknown/date=…                                 records that are newer than this reader, or damaged, as they came
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

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
    """A time as it is, None if no date can name it: clients may commit any number, and write nanoseconds as a time."""
    return None if milliseconds is None or not FIRST_MS <= milliseconds <= LAST_MS else milliseconds


def as_stored(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    """Rows of a table, their times in microseconds, as Spark and everybody else read them. Those not `storable` are
    null.
    """
    schema = TABLES[name]
    times = [field.name for field in schema if field.type == MICROS]
    read = pa.schema([field.with_type(MILLIS) if field.type == MICROS else field for field in schema])
    named = [row | {time: storable(row.get(time)) for time in times} for row in rows]
    return pa.Table.from_pylist(named, read).cast(schema)
