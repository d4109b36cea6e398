"""Views over the tables: as SQL for Spark, and `lag_table` without Spark.

    lag               the lag of each group, each time the ends were sampled
    lag_seconds       the age of the record that each group would read next
    commit_rate       commits and records for each hour
    rebalances        new generations for each hour
    stalled           groups whose offset stood still over several samples while the log grew
    owners            who held a partition, from when to when
    expiring_groups   groups without members, and when their offsets will be removed

Each view reads the tables by their names, or a view before it. A commit is joined to a sample by the time at which this
job knew of it, not by the broker's clock: the two may differ, and ends are always sampled after the commits of the same
run. Lag is never negative.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs
import pyarrow as pa
import pyarrow.dataset as ds

from kclient.errors import ArgumentError
from kclient.spark.offsets_history.store import MICROS, TABLES, history_directory
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLES: Final = 3
RETENTION_MINUTES: Final = 10_080
"""`offsets.retention.minutes` by default: 7 days."""

LAG: Final = """
WITH known AS (
  SELECT *, lead(ingest_ts) OVER (PARTITION BY group, topic, partition ORDER BY src_offset) AS until
  FROM commits
)
SELECT c.group, w.topic, w.partition, w.sampled_at, c.offset AS committed, w.low, w.high, w.lso,
       greatest(0, w.high - greatest(c.offset, w.low)) AS lag
FROM watermarks w JOIN known c
  ON c.topic = w.topic AND c.partition = w.partition
 AND c.ingest_ts <= w.sampled_at AND (c.until IS NULL OR c.until > w.sampled_at)
WHERE NOT c.tombstone
"""

LAG_SECONDS: Final = """
WITH written AS (
  SELECT topic, partition, offset, min(record_ts) AS record_ts FROM positions GROUP BY topic, partition, offset
), spans AS (
  SELECT topic, partition, high AS first, lead(high) OVER samples AS next,
         unix_micros(sampled_at) AS since, unix_micros(lead(sampled_at) OVER samples) AS until
  FROM watermarks WINDOW samples AS (PARTITION BY topic, partition ORDER BY sampled_at)
), between AS (
  SELECT l.group, l.topic, l.partition, l.sampled_at,
         max(s.since + CAST(floor(CAST(greatest(l.committed, l.low) - s.first AS DOUBLE) / (s.next - s.first)
                                  * (s.until - s.since)) AS BIGINT)) AS written_at
  FROM lag l JOIN spans s
    ON s.topic = l.topic AND s.partition = l.partition AND s.until <= unix_micros(l.sampled_at)
   AND s.first <= greatest(l.committed, l.low) AND greatest(l.committed, l.low) < s.next
  GROUP BY l.group, l.topic, l.partition, l.sampled_at
), timed AS (
  SELECT l.group, l.topic, l.partition, l.sampled_at, l.lag,
         CASE WHEN l.lag = 0 OR p.record_ts IS NOT NULL THEN 'exact'
              WHEN b.written_at IS NOT NULL THEN 'interp' END AS method,
         CASE WHEN l.lag = 0 THEN unix_micros(l.sampled_at)
              ELSE coalesce(unix_micros(p.record_ts), b.written_at) END AS written_at
  FROM lag l
  LEFT JOIN written p ON p.topic = l.topic AND p.partition = l.partition AND p.offset = l.committed
  LEFT JOIN between b ON b.group = l.group AND b.topic = l.topic AND b.partition = l.partition
                     AND b.sampled_at = l.sampled_at
)
SELECT group, topic, partition, sampled_at, lag,
       CASE WHEN method IS NOT NULL
            THEN CAST(greatest(0, unix_micros(sampled_at) - written_at) div 1000 AS DOUBLE) / 1000 END AS lag_seconds,
       method AS lag_seconds_method
FROM timed
"""
"""Of the record at the committed offset: `exact` by its timestamp, `interp` between two samples of the log's end."""

COMMIT_RATE: Final = """
SELECT group, topic, partition, date_trunc('HOUR', commit_ts) AS hour, count(*) AS commits,
       max(offset) - min(offset) AS records, count(*) / 60.0 AS commits_per_minute
FROM commits WHERE NOT tombstone
GROUP BY group, topic, partition, date_trunc('HOUR', commit_ts)
"""

REBALANCES: Final = """
WITH written AS (
  SELECT group, src_offset, max(generation) AS generation, max(record_ts) AS record_ts
  FROM groups WHERE record IN ('GroupMetadata', 'ConsumerGroupMetadata') AND NOT tombstone
  GROUP BY group, src_offset
), changed AS (
  SELECT *, lag(generation) OVER (PARTITION BY group ORDER BY src_offset) AS previous FROM written
)
SELECT group, date_trunc('HOUR', record_ts) AS hour, count(*) AS rebalances, max(generation) AS generation
FROM changed WHERE previous IS NULL OR previous <> generation
GROUP BY group, date_trunc('HOUR', record_ts)
"""

STALLED: Final = """
WITH windows AS (
  SELECT *, min(committed) OVER recent AS lowest, max(committed) OVER recent AS highest,
         min(high) OVER recent AS high_before, min(sampled_at) OVER recent AS since, count(*) OVER recent AS samples
  FROM lag
  WINDOW recent AS (PARTITION BY group, topic, partition ORDER BY sampled_at
                    ROWS BETWEEN {samples} - 1 PRECEDING AND CURRENT ROW)
)
SELECT group, topic, partition, sampled_at, since, committed, high, high - high_before AS grown, lag
FROM windows WHERE samples = {samples} AND lowest = highest AND high > high_before AND lag > 0
"""

OWNERS: Final = """
WITH classic_written AS (
  SELECT group, src_offset, max(record_ts) AS since FROM groups
  WHERE record = 'GroupMetadata' GROUP BY group, src_offset
), classic_spans AS (
  SELECT *, lead(since) OVER (PARTITION BY group ORDER BY src_offset) AS until FROM classic_written
), newer_spans AS (
  SELECT *, record_ts AS since,
         lead(record_ts) OVER (PARTITION BY group, member_id ORDER BY src_offset) AS until
  FROM groups WHERE record = 'ConsumerGroupCurrentMemberAssignment'
), clients AS (
  SELECT group, member_id, max_by(client_id, src_offset) AS client_id, max_by(client_host, src_offset) AS client_host
  FROM groups WHERE record = 'ConsumerGroupMemberMetadata' AND NOT tombstone GROUP BY group, member_id
), held AS (
  SELECT g.group, g.member_id, g.client_id, g.client_host, s.since, s.until, explode(g.assignment) AS owned
  FROM groups g JOIN classic_spans s ON s.group = g.group AND s.src_offset = g.src_offset
  WHERE g.record = 'GroupMetadata'
  UNION ALL
  SELECT n.group, n.member_id, c.client_id, c.client_host, n.since, n.until, explode(n.assignment) AS owned
  FROM newer_spans n LEFT JOIN clients c ON c.group = n.group AND c.member_id = n.member_id
)
SELECT group, owned.topic, owned.topic_id, owned.partition, member_id, client_id, client_host, since, until FROM held
"""

EXPIRING_GROUPS: Final = """
WITH last_commits AS (
  SELECT group, topic, partition, max_by(tombstone, src_offset) AS removed, max_by(commit_ts, src_offset) AS commit_ts
  FROM commits GROUP BY group, topic, partition
), committed AS (
  SELECT group, max(commit_ts) AS last_commit, count(*) AS partitions FROM last_commits WHERE NOT removed GROUP BY group
), classic_last AS (
  SELECT group, max(src_offset) AS src_offset FROM groups WHERE record = 'GroupMetadata' GROUP BY group
), newer_last AS (
  SELECT group, member_id, max_by(tombstone, src_offset) AS gone
  FROM groups WHERE record = 'ConsumerGroupMemberMetadata' GROUP BY group, member_id
), alive AS (
  SELECT g.group FROM groups g JOIN classic_last l ON l.group = g.group AND l.src_offset = g.src_offset
  WHERE g.record = 'GroupMetadata' AND g.member_id IS NOT NULL
  UNION
  SELECT group FROM newer_last WHERE NOT gone
), emptied AS (
  SELECT group, max(record_ts) AS at FROM groups WHERE NOT tombstone GROUP BY group
)
SELECT c.group, c.partitions, c.last_commit,
       greatest(c.last_commit, coalesce(e.at, c.last_commit)) + make_dt_interval(0, 0, {minutes}, 0) AS expires_at
FROM committed c LEFT JOIN emptied e ON e.group = c.group
WHERE c.group NOT IN (SELECT group FROM alive)
"""


def view_texts(samples: int = SAMPLES, retention_minutes: int = RETENTION_MINUTES) -> dict[str, str]:
    """Return view → its query, in an order in which they can be created.

    `samples` is how many samples in a row make a group stalled, `retention_minutes` what the brokers are set to. Raises
    ArgumentError for numbers that are none.
    """
    for number, least in ((samples, 2), (retention_minutes, 1)):
        if isinstance(number, bool) or not isinstance(number, int) or number < least:
            raise ArgumentError(
                f"A view cannot work with {number!r}. Give whole numbers: samples of 2 or more, minutes."
            )
    return {
        "lag": LAG,
        "lag_seconds": LAG_SECONDS,
        "commit_rate": COMMIT_RATE,
        "rebalances": REBALANCES,
        "stalled": STALLED.format(samples=samples),
        "owners": OWNERS,
        "expiring_groups": EXPIRING_GROUPS.format(minutes=retention_minutes),
    }


def create_views(
    spark: SparkSession,
    directory: str | Path,
    *,
    samples: int = SAMPLES,
    retention_minutes: int = RETENTION_MINUTES,
) -> None:
    """Make the tables of a history, and the views over them, temporary views of a session.

    Call it again to see files that came later. Raises ArgumentError where there is no such directory.
    """
    history = history_directory(directory)
    for name in TABLES:
        place = history / name
        files = sorted(map(str, place.glob("date=*/[!._]*.parquet")))
        reader = spark.read.schema(table_ddl(name)).option("basePath", str(place))
        found = reader.parquet(*files) if files else spark.createDataFrame([], table_ddl(name))
        found.createOrReplaceTempView(name)
    for name, text in view_texts(samples, retention_minutes).items():
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {text}")


def table_ddl(name: str) -> str:
    """Return the columns of a table as DDL, with the date by which its files are partitioned."""
    from kclient.spark.decoding.ddl import spark_name

    return ", ".join(f"`{field.name}` {spark_name(field.type)}" for field in TABLES[name]) + ", `date` date"


# --- lag without Spark -----------------------------------------------------------------------------------------------


LAG_SCHEMA: Final = pa.schema(
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
    """What a group committed for a partition, in log order; None after a removal."""

    known_at: list[int] = attrs.Factory(list)
    offsets: list[int | None] = attrs.Factory(list)

    def at(self, moment: int) -> int | None:
        """Return the last commit that this job had seen at that time."""
        count = bisect_right(self.known_at, moment)
        return self.offsets[count - 1] if count else None


def lag_table(directory: str | Path) -> pa.Table:
    """Return a row for each group, partition and sample, ordered by time: the columns of both views.

    `lag` and `lag_seconds` are never negative. `lag_seconds_method` is `exact` if the timestamp of the record at the
    committed offset is known, `interp` if its time lies between two samples of the log's end, and null, as
    `lag_seconds`, if it was written before the first sample. Raises ArgumentError if there is no such directory.
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
    return pa.Table.from_pylist(rows, LAG_SCHEMA).sort_by(order)


def _row(
    group: str,
    mark: Row,
    committed: int,
    written: dict[tuple[TopicPartition, int], int],
    ends: dict[TopicPartition, _Ends],
) -> Row:
    tp, sampled_at = TopicPartition(mark["topic"], mark["partition"]), mark["sampled_at"]
    next_offset = max(committed, mark["low"])
    lag, method = max(0, mark["high"] - next_offset), EXACT
    moment = written.get((tp, committed)) if lag else sampled_at
    if moment is None:
        moment, method = ends[tp].written_at(next_offset, sampled_at), INTERPOLATED
    return {
        **mark,
        "group": group,
        "committed": committed,
        "lag": lag,
        "lag_seconds": None if moment is None else max(0, sampled_at - moment) // 1000 / 1000,
        "lag_seconds_method": None if moment is None else method,
    }


@attrs.define
class _Ends:
    """The high watermarks of one partition, by the time of their samples."""

    sampled_at: list[int] = attrs.Factory(list)
    highs: list[int] = attrs.Factory(list)

    def written_at(self, offset: int, before: int) -> int | None:
        """Return when the log grew beyond an offset, between two samples up to `before`; None if no two enclose it.

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
    """Yield the rows of a table, their times in microseconds since 1970."""
    files = sorted(map(str, (history / name).glob("date=*/[!._]*.parquet")))
    schema = TABLES[name]
    plain = pa.schema([field.with_type(pa.int64()) if field.type == MICROS else field for field in schema])
    for batch in ds.dataset(files, schema=schema).to_batches() if files else ():
        yield from pa.Table.from_batches([batch], schema).cast(plain).to_pylist()
