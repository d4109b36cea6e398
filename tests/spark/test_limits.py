"""How much a micro-batch takes: shares in proportion, at least one record of each partition, minimum and delay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.spark.ranges import NO_LIMIT, Limit, backlog, must_wait, prorate
from kclient.types import TopicPartition

T = [TopicPartition("t", number) for number in range(4)]

sizes = st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**6)), min_size=1, max_size=12)


def ranges(of: list[tuple[int, int]]) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    start = {TopicPartition("t", number): first for number, (first, _) in enumerate(of)}
    return start, {TopicPartition("t", number): first + size for number, (first, size) in enumerate(of)}


@pytest.mark.spec("SP-53", "ST-03")
@given(sizes, st.integers(1, 10**6))
def test_shares_stay_inside_and_none_starves(of: list[tuple[int, int]], most: int) -> None:
    start, end = ranges(of)
    cut = prorate(start, end, most)
    total = backlog(start, end)
    assert cut.keys() == end.keys()
    assert all(start[tp] <= cut[tp] <= end[tp] for tp in end)
    assert all(cut[tp] > start[tp] for tp in end if end[tp] > start[tp])
    below_one = sum(0 < (end[tp] - start[tp]) * most < total for tp in end)
    assert backlog(start, cut) <= most + below_one


@pytest.mark.spec("SP-53", "ST-03")
@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 400)), min_size=1, max_size=6))
def test_again_and_again_reaches_the_end(of: list[tuple[int, int]]) -> None:
    start, end = ranges(of)
    for _ in range(backlog(start, end) + 1):
        start = prorate(start, end, 30)
    assert start == end


@pytest.mark.spec("SP-53")
def test_the_shares_of_three_partitions() -> None:
    start = {T[0]: 0, T[1]: 100, T[2]: 7, T[3]: 5}
    end = {T[0]: 900, T[1]: 190, T[2]: 17, T[3]: 5}
    assert prorate(start, end, 100) == {T[0]: 90, T[1]: 109, T[2]: 8, T[3]: 5}
    assert prorate(start, end, 5) == {T[0]: 4, T[1]: 101, T[2]: 8, T[3]: 5}
    assert prorate(start, end, 1000) == prorate(start, end, None) == end


@pytest.mark.spec("SP-51", "SP-53")
def test_an_end_below_the_start_is_kept() -> None:
    """The broker's end after a loss: the batch goes back to it, whatever the limit."""
    assert prorate({T[0]: 500, T[1]: 0}, {T[0]: 300, T[1]: 100}, 10) == {T[0]: 300, T[1]: 10}


@pytest.mark.spec("SP-54")
def test_too_little_waits_until_the_last_batch_is_old() -> None:
    limit = Limit(min_rows=100, max_delay=60.0)
    start, some, enough = {T[0]: 0}, {T[0]: 99}, {T[0]: 100}
    assert must_wait(start, some, limit, 59.9)
    assert not must_wait(start, some, limit, 60.0)
    assert not must_wait(start, some, limit, None)
    assert not must_wait(start, enough, limit, 0.0)
    assert not must_wait(start, some, NO_LIMIT, 0.0)
