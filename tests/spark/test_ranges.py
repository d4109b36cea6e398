"""Ranges: split exactly, and held against what the log still has."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.errors import DataLossError
from kclient.spark.ranges import (
    Bounds,
    LogBounds,
    Loss,
    OffsetRange,
    Offsets,
    TopicIds,
    ending_before,
    next_starts,
    ranges_between,
    report,
    split,
    tolerated,
    within_log,
)
from kclient.types import TopicPartition


@st.composite
def planned(draw: st.DrawFn) -> list[OffsetRange]:
    starts = draw(st.lists(st.integers(0, 10**6), min_size=1, max_size=8))
    return [
        OffsetRange("t", number, start, start + draw(st.integers(-5, 10**5)))
        for number, start in enumerate(starts)
    ]


limits = st.none() | st.integers(1, 50)


@pytest.mark.spec("SP-55", "SP-56", "ST-04", "I-21")
@given(planned(), limits, st.none() | st.integers(5_000, 10**6))
def test_pieces_cover_the_ranges_exactly_in_order(
    ranges: list[OffsetRange], least: int | None, most: int | None
) -> None:
    pieces = split(ranges, least, most)
    for wanted in ranges:
        mine = [piece for piece in pieces if piece.partition == wanted.partition]
        assert [piece.start for piece in mine] == sorted(piece.start for piece in mine)
        borders = [wanted.start, *(piece.end for piece in mine)]
        assert [(piece.start, piece.end) for piece in mine] == list(pairwise(borders))
        assert borders[-1] == max(wanted.start, wanted.end)
    assert all(piece.size > 0 for piece in pieces)
    assert most is None or all(piece.size <= most for piece in pieces)
    assert pieces == split(list(reversed(ranges)), least, most)


@pytest.mark.spec("SP-55", "ST-04")
@given(planned(), st.integers(1, 50))
def test_about_as_many_pieces_as_wanted(ranges: list[OffsetRange], least: int) -> None:
    pieces, whole = split(ranges, least), split(ranges)
    assert len(pieces) >= len(whole)
    records = sum(piece.size for piece in whole)
    if records:
        assert len(pieces) >= min(least, records) - len(whole)
        assert len(pieces) <= max(least, len(whole)) + len(whole)


@pytest.mark.spec("SP-55")
def test_big_ranges_are_divided_and_small_ones_stay_whole() -> None:
    pieces = split([OffsetRange("t", 0, 0, 1000), OffsetRange("t", 1, 0, 10)], min_partitions=5)
    assert [(piece.partition, piece.start, piece.end) for piece in pieces] == [
        (0, 0, 250),
        (0, 250, 500),
        (0, 500, 750),
        (0, 750, 1000),
        (1, 0, 10),
    ]
    assert [piece.size for piece in split([OffsetRange("t", 0, 5, 15)], max_records_per_partition=4)] == [
        3,
        3,
        4,
    ]


LOST = [
    # wanted, the log, what is left, kind
    ((0, 100), (0, 100), (0, 100), None),
    ((0, 100), (40, 200), (40, 100), "START_OFFSET_RESET"),
    ((0, 30), (40, 200), None, "START_OFFSET_RESET"),
    ((500, 600), (0, 300), None, "PARTITION_OFFSET_CHANGED"),
    ((50, 600), (0, 300), (50, 300), "COULD_NOT_READ_OFFSET_RANGE"),
    ((300, 600), (0, 300), None, "COULD_NOT_READ_OFFSET_RANGE"),
    ((7, 7), (0, 300), None, None),
]


@pytest.mark.spec("SP-57", "ST-05")
@pytest.mark.parametrize(("wanted", "log", "left", "kind"), LOST)
def test_what_the_log_has_lost_is_an_error_or_left_out(
    wanted: tuple[int, int],
    log: tuple[int, int],
    left: tuple[int, int] | None,
    kind: str | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    readable, losses = within_log(OffsetRange("t", 3, *wanted), LogBounds(*log))
    assert (None if readable is None else (readable.start, readable.end)) == left
    assert [loss.kind for loss in losses] == ([kind] if kind else [])
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        report(losses, fail=False)
    assert len(caplog.records) == len(losses)
    if kind is None:
        report(losses, fail=True)
    else:
        with pytest.raises(DataLossError, match=r"t-3.*failOnDataLoss") as caught:
            report(losses, fail=True)
        assert (caught.value.kind, caught.value.partitions) == (kind, (("t", 3),))


@pytest.mark.spec("SP-57")
def test_a_changed_offset_is_reported_with_both_numbers() -> None:
    _, losses = within_log(OffsetRange("t", 0, 500, 600), LogBounds(0, 300))
    assert "offset was changed from 500 to 300" in losses[0].text
    _, losses = within_log(OffsetRange("t", 0, 100, 600), LogBounds(150, 600))
    assert "50 records" in losses[0].text


@pytest.mark.spec("SP-57", "SP-58")
def test_a_deleted_partition_and_a_recreated_topic_are_losses() -> None:
    wanted = OffsetRange("t", 0, 0, 10, topic_id=b"a" * 16)
    assert [loss.kind for loss in within_log(wanted, None)[1]] == ["PARTITIONS_DELETED"]
    readable, losses = within_log(wanted, LogBounds(0, 10, b"b" * 16))
    assert [loss.kind for loss in losses] == ["TOPIC_RECREATED"]
    assert readable is not None
    assert (b"a" * 16).hex() in losses[0].text
    assert (b"b" * 16).hex() in losses[0].text
    assert within_log(wanted, LogBounds(0, 10))[1] == []  # brokers before 2.8 have no ids


T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
OLD, NEW = b"a" * 16, b"b" * 16


class Situation(NamedTuple):
    """A row of the table: where the last batch ended, where this one ends, the logs now, and what must come of it."""

    kind: str
    start: Offsets
    end: Offsets
    logs: Bounds
    ranges: list[tuple[int, int, int]]
    next_starts: Offsets
    expected: str
    known: TopicIds = MappingProxyType({})
    next_kind: str | None = "the same"


SITUATIONS = [
    Situation(
        "START_OFFSET_RESET",
        {T0: 10, T1: 0},
        {T0: 100, T1: 5},
        {T0: LogBounds(40, 200), T1: LogBounds(0, 9)},
        [(0, 40, 100), (1, 0, 5)],
        {T0: 40, T1: 0},
        "t-0: asked from 10, the log starts at 40: up to 30 records are gone",
    ),
    Situation(
        "PARTITION_OFFSET_CHANGED",
        {T0: 500, T1: 0},
        {T0: 600, T1: 5},
        {T0: LogBounds(0, 300), T1: LogBounds(0, 9)},
        [(1, 0, 5)],
        {T0: 300, T1: 0},
        "offset was changed from 500 to 300",
    ),
    Situation(
        "COULD_NOT_READ_OFFSET_RANGE",
        {T0: 50},
        {T0: 600},
        {T0: LogBounds(0, 300)},
        [(0, 50, 300)],
        {T0: 50},
        "asked to read up to 600, the log ends at 300: 300 are missing",
        next_kind=None,
    ),
    Situation(
        "PARTITIONS_DELETED",
        {T0: 50, T1: 0},
        {T0: 60, T1: 9},
        {T1: LogBounds(0, 9)},
        [(1, 0, 9)],
        {T1: 0},
        "t-0 does not exist any more",
    ),
    Situation(
        "PARTITIONS_DELETED",
        {T0: 50, T1: 0},
        {T1: 9},
        {T1: LogBounds(0, 9)},
        [(1, 0, 9)],
        {T1: 0},
        "t-0 does not exist any more",
    ),
    Situation(
        "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO",
        {T0: 5},
        {T0: 6, T1: 20},
        {T0: LogBounds(0, 6), T1: LogBounds(7, 20)},
        [(0, 5, 6), (1, 7, 20)],
        {T0: 5, T1: 7},
        "t-1 is new, and its log starts at 7",
    ),
    Situation(
        "INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS",
        {T0: 5},
        {T0: 6, T1: 20},
        {T0: LogBounds(0, 6)},
        [(0, 5, 6)],
        {T0: 5},
        "t-1 is new, and was deleted before its start",
        next_kind=None,
    ),
    Situation(
        "TOPIC_RECREATED",
        {T0: 50},
        {T0: 60},
        {T0: LogBounds(3, 80, NEW)},
        [(0, 3, 60)],
        {T0: 3},
        f"topic t was recreated: its id was {OLD.hex()}, now it is {NEW.hex()}",
        {"t": OLD},
    ),
]


@pytest.fixture
def _counts_from_zero() -> Iterator[None]:
    tolerated.clear()
    yield
    tolerated.clear()


@pytest.mark.usefixtures("_counts_from_zero")
@pytest.mark.spec("SP-50", "SP-57", "SP-58", "ST-05")
@pytest.mark.parametrize("row", SITUATIONS, ids=lambda row: f"{row.kind}-{len(row.end)}")
def test_every_row_of_the_table_in_a_batch(row: Situation, caplog: pytest.LogCaptureFixture) -> None:
    ranges, losses = ranges_between(row.start, row.end, row.logs, row.known)
    assert [(one.partition, one.start, one.end) for one in ranges] == row.ranges
    _fails_or_warns(losses, row.kind, row.expected, caplog)


@pytest.mark.usefixtures("_counts_from_zero")
@pytest.mark.spec("SP-50", "SP-57", "SP-58", "ST-05")
@pytest.mark.parametrize("row", SITUATIONS, ids=lambda row: f"{row.kind}-{len(row.end)}")
def test_every_row_of_the_table_between_two_batches(row: Situation, caplog: pytest.LogCaptureFixture) -> None:
    starts, losses = next_starts(row.start, row.logs, row.known)
    assert starts == row.next_starts
    if row.next_kind is None:
        assert losses == []
    else:
        _fails_or_warns(losses, row.kind, row.expected, caplog)


def _fails_or_warns(losses: list[Loss], kind: str, expected: str, caplog: pytest.LogCaptureFixture) -> None:
    """failOnDataLoss true is one error that says what to set; false is a warning and a count."""
    with pytest.raises(DataLossError, match="set option failOnDataLoss to false") as caught:
        report(losses, fail=True)
    assert caught.value.kind == kind
    assert expected in str(caught.value)
    assert tolerated == {}
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        report(losses, fail=False)
    assert [expected in message for message in caplog.messages] == [True]
    assert kind in caplog.text
    assert tolerated == {kind: 1}


@pytest.mark.spec("SP-57", "SP-58")
def test_what_is_all_there_loses_nothing() -> None:
    logs = {T0: LogBounds(0, 10, OLD), T1: LogBounds(0, 0, OLD)}
    assert next_starts({T0: 10}, logs, {"t": OLD}) == ({T0: 10, T1: 0}, [])
    assert ranges_between({T0: 10}, {T0: 10, T1: 0}, logs, {"t": OLD}) == ([], [])
    assert next_starts({T0: 1}, {T0: LogBounds(0, 10)}, {"t": OLD}) == ({T0: 1}, [])  # a broker before 2.8


@pytest.mark.spec("SP-51")
def test_a_log_that_ends_before_what_was_seen_is_asked_again() -> None:
    logs = {T0: LogBounds(0, 300), T1: LogBounds(0, 9)}
    assert ending_before({T0: 301, T1: 9, TopicPartition("gone", 0): 5}, logs) == [T0]


offsets = st.integers(0, 1000)
positions = st.dictionaries(st.builds(TopicPartition, st.just("t"), st.integers(0, 5)), offsets)
logs_of = st.builds(
    lambda found: {tp: LogBounds(min(pair), max(pair)) for tp, pair in found.items()},
    st.dictionaries(st.builds(TopicPartition, st.just("t"), st.integers(0, 5)), st.tuples(offsets, offsets)),
)


@pytest.mark.spec("SP-57", "ST-05")
@given(positions, positions, logs_of)
def test_what_is_read_is_in_the_log_and_asked_for_and_the_rest_is_reported(
    start: Offsets, end: Offsets, logs: Bounds
) -> None:
    ranges, losses = ranges_between(start, end, logs)
    for one in ranges:
        assert logs[one.tp].start <= one.start < one.end <= logs[one.tp].end
        assert start.get(one.tp, 0) <= one.start
        assert one.end <= end[one.tp]
    readable = {one.tp: one for one in ranges}
    lost = {loss.partition for loss in losses}
    for tp, first in start.items():
        read = (readable[tp].start, readable[tp].end) if tp in readable else (first, first)
        if tp not in end or read != (first, max(first, end[tp])):
            assert tp in lost
    starts, _ = next_starts(start, logs)
    assert starts.keys() == logs.keys()
    assert all(log.start <= starts[tp] <= log.end for tp, log in logs.items())


@pytest.mark.spec("SP-12", "SP-59")
def test_ranges_and_their_errors_pickle() -> None:
    wanted = OffsetRange("t", 0, 0, 10, topic_id=b"a" * 16)
    assert pickle.loads(pickle.dumps(wanted)) == wanted
    with pytest.raises(DataLossError) as caught:
        report(within_log(wanted, LogBounds(5, 10))[1], fail=True)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.kind, copy.partitions) == (str(caught.value), "START_OFFSET_RESET", (("t", 0),))
