"""The views over a history, each once on Spark, over rows that say what must come out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kclient.errors import ArgumentError
from kclient.spark.offsets_history.store import HistoryStore
from kclient.spark.offsets_history.views import create_views, lag_table, view_texts
from kclient.spark.ranges import OffsetRange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = 1_357_034_400_000  # 2013-01-01T10:00Z
MINUTE = 60_000
DAY = 1440 * MINUTE


def at(minutes: float) -> datetime:
    return datetime.fromtimestamp(START / 1000, UTC) + timedelta(minutes=minutes)


def commit(src: int, group: str, offset: int | None, minutes: int) -> dict[str, Any]:
    """A commit that the job reads in the minute in which it is made, on a broker whose clock is far ahead."""
    return {
        "group": group,
        "topic": "flights",
        "partition": 0,
        "offset": offset,
        "commit_ts": None if offset is None else START + minutes * MINUTE,
        "tombstone": offset is None,
        "txn": False,
        "src_partition": 0,
        "src_offset": src,
        "record_ts": START + minutes * MINUTE + DAY,
        "ingest_ts": START + minutes * MINUTE,
    }


def member(src: int, group: str, record: str, minutes: int, **fields: Any) -> dict[str, Any]:
    moment = START + minutes * MINUTE
    base = {"group": group, "record": record, "tombstone": False, "src_partition": 0, "src_offset": src}
    return base | {"record_ts": moment, "ingest_ts": moment} | fields


def owns(*partitions: int) -> list[dict[str, Any]]:
    return [{"topic": "flights", "partition": partition} for partition in partitions]


COMMITS = [
    commit(1, "delays", 1, 0),
    commit(2, "delays", 2, 0),  # both are read by the first run
    commit(3, "delays", 4, 1),
    commit(4, "old", 2, 0),
    commit(5, "ahead", 100, 0),
    commit(6, "gone", 1, 0),
    commit(7, "gone", None, 1),
]
GROUPS = [
    member(
        10, "delays", "GroupMetadata", 0, generation=1, member_id="a", client_id="one", assignment=owns(0, 1)
    ),
    member(
        11, "delays", "GroupMetadata", 30, generation=2, member_id="a", client_id="one", assignment=owns(0)
    ),
    member(
        11, "delays", "GroupMetadata", 30, generation=2, member_id="b", client_id="two", assignment=owns(1)
    ),
    member(
        12, "delays", "GroupMetadata", 40, generation=2, member_id="a", client_id="one", assignment=owns(0)
    ),
    member(13, "old", "GroupMetadata", 5, generation=7),
    member(14, "newer", "ConsumerGroupMetadata", 0, generation=3),
    member(15, "newer", "ConsumerGroupMemberMetadata", 0, member_id="x", client_id="three"),
    member(16, "newer", "ConsumerGroupCurrentMemberAssignment", 1, member_id="x", assignment=owns(0)),
    member(17, "newer", "ConsumerGroupCurrentMemberAssignment", 9, member_id="x", tombstone=True),
]
HIGHS = [4, 10, 20, 30]


@pytest.fixture
def history(tmp_path: Path) -> Path:
    store = HistoryStore(tmp_path)
    store.write_range(OffsetRange("__consumer_offsets", 0, 0, 100), {"commits": COMMITS, "groups": GROUPS})
    for number, high in enumerate(HIGHS):
        moment = START + number * MINUTE + 30_000
        mark = {"topic": "flights", "partition": 0, "low": 5 if number == 3 else 0, "high": high, "lso": high}
        store.write_sample("watermarks", [mark | {"sampled_at": moment}], moment)
    moment = START + MINUTE
    position = {"topic": "flights", "partition": 0, "offset": 4, "record_ts": START, "sampled_at": moment}
    store.write_sample("positions", [position], moment)
    return tmp_path


@pytest.mark.spec("SP-94", "SP-95")
def test_lag_without_spark(history: Path) -> None:
    rows = lag_table(history).to_pylist()
    behind: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows:
        assert (row["topic"], row["partition"], row["lso"]) == ("flights", 0, row["high"])
        values = (row["committed"], row["high"], row["lag"], row["lag_seconds"])
        behind.setdefault(row["group"], []).append(values)
    assert behind["delays"] == [(2, 4, 2, None), (4, 10, 6, 90.0), (4, 20, 16, 150.0), (4, 30, 25, 210.0)]
    assert behind["old"][-1] == (2, 30, 25, 170.0)  # the log begins at 5 by then
    assert {values[2:] for values in behind["ahead"]} == {(0, 0.0)}
    assert len(behind["gone"]) == 1  # until it was removed
    assert [row["sampled_at"] for row in rows if row["group"] == "delays"] == [at(n + 0.5) for n in range(4)]


EXACT, INTERPOLATED, UNKNOWN = "exact", "interp", None


@pytest.mark.spec("U-27")
@pytest.mark.parametrize(
    ("committed", "wanted"),
    [
        (4, [(EXACT, 90.0), (EXACT, 150.0), (EXACT, 210.0)]),  # its record was looked up, written at minute 0
        # written before the first sample; then the log begins at 5, written 10 s after that sample
        (3, [(UNKNOWN, None), (UNKNOWN, None), (UNKNOWN, None), (INTERPOLATED, 170.0)]),
        (10, [(INTERPOLATED, 60.0), (INTERPOLATED, 120.0)]),  # the first one after the second sample
        (15, [(INTERPOLATED, 30.0), (INTERPOLATED, 90.0)]),  # half way between the second and the third
        (19, [(INTERPOLATED, 6.0), (INTERPOLATED, 66.0)]),
        (20, [(INTERPOLATED, 60.0)]),
        (29, [(INTERPOLATED, 6.0)]),
        (30, []),
    ],
)
def test_lag_in_time_names_its_method(
    history: Path, committed: int, wanted: list[tuple[str | None, float | None]]
) -> None:
    commits = {"commits": [commit(20, "timed", committed, -1)]}
    HistoryStore(history).write_range(OffsetRange("__consumer_offsets", 0, 100, 200), commits)
    rows = [row for row in lag_table(history).to_pylist() if row["group"] == "timed"]
    assert [(row["lag_seconds_method"], row["lag_seconds"]) for row in rows if row["lag"]] == wanted
    nothing_left = {(row["lag_seconds_method"], row["lag_seconds"]) for row in rows if not row["lag"]}
    assert nothing_left <= {(EXACT, 0.0)}


def test_a_history_that_has_not_begun_has_no_lag(tmp_path: Path) -> None:
    assert lag_table(tmp_path).num_rows == 0


@pytest.mark.parametrize("read", [lag_table, lambda directory: create_views(None, directory)])  # type: ignore[arg-type]
def test_a_directory_that_does_not_exist_is_not_an_empty_history(read: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name in ("missing", "file"):
        with pytest.raises(ArgumentError, match=f"{name} is not a directory"):
            read(tmp_path / name)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.spec("SP-94", "ST-20")
def test_every_view_on_spark(spark: SparkSession, history: Path) -> None:
    create_views(spark, history)

    def rows(query: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in spark.sql(query).collect()]

    by_group = "SELECT group, committed, high, lag FROM lag WHERE group = '{}' ORDER BY sampled_at"
    assert rows(by_group.format("delays")) == [
        ("delays", 2, 4, 2),
        ("delays", 4, 10, 6),
        ("delays", 4, 20, 16),
        ("delays", 4, 30, 25),  # the log begins at 5 by then
    ]
    assert rows(by_group.format("old"))[-1] == ("old", 2, 30, 25)  # what is left behind the log's start
    assert {row[-1] for row in rows(by_group.format("ahead"))} == {0}
    assert len(rows(by_group.format("gone"))) == 1  # until it was removed
    both = (
        "SELECT group, topic, partition, unix_micros(sampled_at), committed, low, high, lso, lag, lag_seconds, "
        "lag_seconds_method FROM lag JOIN lag_seconds USING (group, topic, partition, sampled_at, lag) "
        "ORDER BY sampled_at, group"
    )
    without_spark = lag_table(history)
    sampled = without_spark.column("sampled_at").cast("int64")
    place = without_spark.schema.get_field_index("sampled_at")
    expected = without_spark.set_column(place, "sampled_at", sampled).to_pylist()
    assert rows(both) == [tuple(row.values()) for row in expected]
    seconds = "SELECT lag_seconds FROM lag_seconds WHERE group = '{}' ORDER BY sampled_at"
    assert [row[0] for row in rows(seconds.format("delays"))] == [None, 90.0, 150.0, 210.0]
    assert {row[0] for row in rows(seconds.format("ahead"))} == {0.0}
    assert rows("SELECT group, hour, commits, records FROM commit_rate WHERE group = 'delays'") == [
        ("delays", naive(0), 3, 3)
    ]
    assert sorted(rows("SELECT group, rebalances, generation FROM rebalances")) == [
        ("delays", 2, 2),
        ("newer", 1, 3),
        ("old", 1, 7),
    ]
    assert sorted(rows("SELECT group, committed, grown, lag FROM stalled")) == [
        ("delays", 4, 20, 25),
        ("old", 2, 16, 18),
        ("old", 2, 20, 25),
    ]
    owners = (
        "SELECT partition, member_id, client_id, since, until FROM owners WHERE group = '{}' ORDER BY 4, 1"
    )
    assert rows(owners.format("newer")) == [(0, "x", "three", naive(1), naive(9))]
    assert rows(owners.format("delays")) == [
        (0, "a", "one", naive(0), naive(30)),
        (1, "a", "one", naive(0), naive(30)),
        (0, "a", "one", naive(30), naive(40)),
        (1, "b", "two", naive(30), naive(40)),
        (0, "a", "one", naive(40), None),
    ]
    assert sorted(rows("SELECT group, last_commit, expires_at FROM expiring_groups")) == [
        ("ahead", naive(0), naive(7 * 1440)),
        ("old", naive(0), naive(5 + 7 * 1440)),
    ]
    assert rows("SELECT count(*) FROM unknown") == [(0,)]  # a table without files


def naive(minutes: float) -> datetime:
    """As Spark's rows have times: in the time zone of this process."""
    return at(minutes).astimezone().replace(tzinfo=None)


def test_numbers_that_are_none_are_refused() -> None:
    for given in ({"samples": 1}, {"retention_minutes": 0}, {"samples": "3; DROP TABLE x"}):
        with pytest.raises(ArgumentError, match="cannot work with"):
            view_texts(**given)  # type: ignore[arg-type]
