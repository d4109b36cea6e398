"""Filters that save reading: which are taken, and that no row is lost or too many by them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.spark.ranges import EVERYTHING, OffsetRange, RangeFilter, take

filters = pytest.importorskip("pyspark.sql.datasource", reason="the filters are Spark's own classes")

RANGES = [OffsetRange(topic, partition, 5, 25) for topic in "ab" for partition in range(3)]
ROWS = [(one.topic, one.partition, offset) for one in RANGES for offset in range(one.start, one.end)]

HOLDS = {
    "EqualTo": lambda value, wanted: value == wanted,
    "In": lambda value, wanted: value in wanted,
    "LessThan": lambda value, wanted: value < wanted,
    "LessThanOrEqual": lambda value, wanted: value <= wanted,
    "GreaterThan": lambda value, wanted: value > wanted,
    "GreaterThanOrEqual": lambda value, wanted: value >= wanted,
}
COLUMNS = ("topic", "partition", "offset")
values = {"topic": st.sampled_from("abc"), "partition": st.integers(-1, 4), "offset": st.integers(-3, 30)}


@st.composite
def conditions(draw: st.DrawFn) -> Any:
    """One of Spark's filters on topic, partition or offset, of those that are taken and those that are not."""
    column, name = draw(st.sampled_from(COLUMNS)), draw(st.sampled_from(list(HOLDS)))
    value = draw(st.lists(values[column]).map(tuple) if name == "In" else values[column])
    return getattr(filters, name)((column,), value)


def passes(row: tuple[str, int, int], condition: Any) -> bool:
    return HOLDS[type(condition).__name__](row[COLUMNS.index(condition.attribute[0])], condition.value)


def read(narrowing: RangeFilter) -> list[tuple[str, int, int]]:
    return [(r.topic, r.partition, offset) for r in narrowing.of(RANGES) for offset in range(r.start, r.end)]


@pytest.mark.spec("SP-32", "ST-10")
@given(st.lists(conditions(), max_size=5))
def test_what_is_read_and_what_spark_still_filters_are_the_rows_that_pass(wanted: list[Any]) -> None:
    narrowing, left = take(wanted)
    rows = [row for row in read(narrowing) if all(passes(row, condition) for condition in left)]
    assert rows == [row for row in ROWS if all(passes(row, condition) for condition in wanted)]
    taken = [condition for condition in wanted if condition not in left]
    assert all(passes(row, condition) for row in read(narrowing) for condition in taken)


@pytest.mark.spec("SP-32")
def test_the_example_of_ten_records_reads_exactly_these() -> None:
    narrowing, left = take(
        [
            filters.EqualTo(("partition",), 1),
            filters.GreaterThanOrEqual(("offset",), 10),
            filters.LessThan(("offset",), 20),
            filters.EqualTo(("topic",), "b"),
        ]
    )
    assert left == []
    assert read(narrowing) == [("b", 1, offset) for offset in range(10, 20)]


@pytest.mark.spec("SP-32")
@pytest.mark.parametrize(
    "condition",
    [
        filters.Not(filters.EqualTo(("topic",), "a")),
        filters.IsNotNull(("topic",)),
        filters.EqualNullSafe(("topic",), "a"),
        filters.StringStartsWith(("topic",), "a"),
        filters.EqualTo(("key",), b"1"),
        filters.EqualTo(("value", "offset"), 5),
        filters.LessThan(("partition",), 2),
        filters.In(("offset",), (1, 2)),
        filters.EqualTo(("offset",), "7"),
        filters.EqualTo(("partition",), True),
        filters.In(("topic",), ("a", 1)),
        filters.LessThan(("timestamp",), datetime(2020, 1, 1, tzinfo=UTC)),
    ],
    ids=repr,
)
def test_every_other_filter_is_left_to_spark(condition: Any) -> None:
    assert take([condition]) == (EVERYTHING, [condition])


@pytest.mark.spec("SP-32")
def test_a_null_in_a_list_matches_nothing() -> None:
    narrowing, left = take([filters.In(("partition",), (1, None))])
    assert left == []
    assert {partition for _, partition, _ in read(narrowing)} == {1}


@pytest.mark.spec("SP-32")
@pytest.mark.parametrize("name", ["GreaterThan", "GreaterThanOrEqual"])
def test_a_time_is_a_hint_that_spark_filters_by_too(name: str) -> None:
    condition = getattr(filters, name)(("timestamp",), datetime(1970, 1, 1, 0, 0, 5, 1999, UTC))
    assert take([condition]) == (RangeFilter(since_ms=5001), [condition])


@pytest.mark.spec("SP-32")
@pytest.mark.parametrize("time", [datetime(1969, 12, 31, tzinfo=UTC), datetime(2020, 1, 1), "2020-01-01"])
def test_a_time_that_records_without_one_pass_or_without_a_zone_is_no_hint(time: Any) -> None:
    condition = filters.GreaterThan(("timestamp",), time)
    assert take([condition]) == (EVERYTHING, [condition])
