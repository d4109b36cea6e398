"""Distinct records are counted exactly, whatever comes twice and in whatever order."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from demo.measures import ConsumedOffsets, ranges

spans = st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(0, 20))


@given(st.lists(spans, max_size=40))
def test_the_tally_counts_what_a_set_would(given_spans: list[tuple[int, int, int]]) -> None:
    consumed, seen, delivered = ConsumedOffsets(3), [set[int](), set[int](), set[int]()], 0
    for partition, start, size in given_spans:
        consumed.add(partition, start, start + size)
        seen[partition].update(range(start, start + size))
        delivered += size
        assert [consumed.distinct(number) for number in range(3)] == [len(offsets) for offsets in seen]
    assert consumed.total == sum(map(len, seen))
    assert consumed.repeated == delivered - consumed.total


@given(st.sets(st.integers(0, 50)))
def test_ranges_hold_the_offsets_and_no_other(offsets: set[int]) -> None:
    found = ranges(sorted(offsets))
    assert {offset for start, end in found for offset in range(start, end)} == offsets
    assert all(before[1] < after[0] for before, after in pairwise(found))
