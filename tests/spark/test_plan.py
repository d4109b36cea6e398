"""Ranges: split exactly, and held against what the log still has."""

from __future__ import annotations

import logging
import pickle
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.errors import DataLossError
from kclient.spark.plan import LogBounds, OffsetRange, report, split, within_log


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
def test_a_changed_offset_is_told_with_both_numbers() -> None:
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


@pytest.mark.spec("SP-12", "SP-59")
def test_ranges_and_their_errors_pickle() -> None:
    wanted = OffsetRange("t", 0, 0, 10, topic_id=b"a" * 16)
    assert pickle.loads(pickle.dumps(wanted)) == wanted
    with pytest.raises(DataLossError) as caught:
        report(within_log(wanted, LogBounds(5, 10))[1], fail=True)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.kind, copy.partitions) == (str(caught.value), "START_OFFSET_RESET", (("t", 0),))
