"""Whether every offset is in a table once, by its rows: duplicates, gaps, and what the log says about these."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pytest

from kclient.spark.sink.verify import Span, VerifiedPartition, explain, verified
from kclient.types import TopicPartition

TP, OTHER = TopicPartition("flights", 0), TopicPartition("flights", 1)


def rows(*offsets: int | None, tp: TopicPartition = TP) -> pa.RecordBatch:
    count = len(offsets)
    return pa.record_batch(
        {
            "_topic": pa.array([tp.topic] * count, pa.string()),
            "_partition": pa.array([tp.partition] * count, pa.int32()),
            "_offset": pa.array(offsets, pa.int64()),
        }
    )


def one(*batches: pa.RecordBatch, first: int = 0, end: int = 10) -> VerifiedPartition:
    [found] = verified(batches, {TP: [Span(first, end)]})
    return found


def test_all_offsets_once_in_any_order_are_proven() -> None:
    found = one(rows(5, 6, 7, 8, 9), rows(3, 1, 0, 4, 2))
    assert (found.rows, found.duplicates, found.gaps, found.is_proven) == (10, (), (), True)


def test_duplicates_and_gaps_are_listed() -> None:
    found = one(rows(0, 1, 2, 3, 5, 5), rows(2, 3, 7))
    assert found.duplicates == (Span(2, 4), Span(5, 6))
    assert found.gaps == (Span(4, 5), Span(6, 7), Span(8, 10))
    assert (found.rows, found.is_proven) == (9, False)
    assert [str(span) for span in found.gaps] == ["4", "6", "8 to 9"]


def test_rows_of_other_offsets_and_other_writers_are_told_apart() -> None:
    theirs = pa.record_batch(
        {"_topic": pa.nulls(2, pa.string()), "_partition": pa.nulls(2, pa.int32()), "_offset": [3, None]}
    )
    found = one(rows(1, 2, 3, 4, 5), theirs, first=2, end=4)
    assert (found.rows, found.outside, found.is_proven) == (2, 3, True)


def test_one_batch_may_hold_rows_of_several_topics_with_texts_as_delta_rs_reads_them() -> None:
    batch = pa.record_batch(
        {
            "_topic": pa.array(["flights", "clicks", None, "flights", "flights"], pa.string_view()),
            "_partition": pa.array([1, 0, None, 0, 1], pa.int32()),
            "_offset": pa.array([8, 3, 4, 5, 7], pa.int64()),
        }
    )
    claimed = {TP: [Span(5, 6)], OTHER: [Span(7, 9)], TopicPartition("clicks", 0): [Span(3, 4)]}
    assert [(each.rows, each.is_proven) for each in verified([batch], claimed)] == [
        (1, True),
        (1, True),
        (2, True),
    ]


def test_a_partition_without_rows_is_a_gap_and_one_that_nobody_claims_is_not_listed() -> None:
    found = verified([rows(0, tp=OTHER)], {TP: [Span(5, 8)]})
    assert [(each.tp, each.gaps) for each in found] == [(TP, (Span(5, 8),))]
    assert one(first=8, end=8).is_proven


def test_the_log_says_what_is_missing_and_what_never_was(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Span] = []
    monkeypatch.setattr("kclient.spark.sink.verify.NEAR_OFFSETS", 0)

    def read(span: Span) -> Iterator[pa.Array]:
        asked.append(span)
        yield pa.array([offset for offset in (4, 5, 8) if span.start <= offset < span.end], pa.int64())

    found = explain(one(rows(3, 6)), Span(2, 10), read)
    assert asked == [Span(2, 3), Span(4, 6), Span(7, 10)]
    assert found.explained is not None
    assert found.explained.unknown == (Span(0, 2),)
    assert found.explained.missing == (Span(4, 6), Span(8, 9))
    assert found.explained.absent == (Span(2, 3), Span(7, 8), Span(9, 10))
    assert not found.is_proven
    compacted = explain(one(rows(0, 1, 2, 3, 9)), Span(0, 20), lambda span: [pa.array([], pa.int64())])
    assert compacted.is_proven


def test_near_gaps_are_one_read_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Span] = []
    monkeypatch.setattr("kclient.spark.sink.verify.NEAR_OFFSETS", 2)

    def read(span: Span) -> Iterator[pa.Array]:
        asked.append(span)
        yield pa.array([offset for offset in (0, 1, 3, 4, 5) if offset in range(*span)], pa.int64())
        yield pa.array([offset for offset in (6, 7, 8) if offset in range(*span)], pa.int64())

    found = explain(one(rows(0, 2, 3, 7, 8, 9), end=12), Span(0, 12), read)
    assert asked == [Span(1, 7), Span(10, 12)]
    assert found.explained is not None
    assert found.explained.missing == (Span(1, 2), Span(4, 7))
    assert found.explained.absent == (Span(10, 12),)


@pytest.mark.parametrize(
    ("log", "unknown"),
    [
        (Span(0, 3), (Span(3, 4), Span(6, 9))),  # cut, or a topic of that name in another cluster
        (Span(8, 20), (Span(2, 4), Span(6, 8))),  # the rest has aged out
        (Span(7, 7), (Span(2, 4), Span(6, 9))),
        (Span(50, 60), (Span(2, 4), Span(6, 9))),
    ],
)
def test_a_gap_that_the_log_does_not_hold_is_not_proven(log: Span, unknown: tuple[Span, ...]) -> None:
    found = explain(one(rows(0, 1, 4, 5), end=9), log, lambda span: ())
    assert found.explained is not None
    assert found.explained.unknown == unknown
    assert not found.is_proven


@pytest.mark.parametrize("seed", range(20))
def test_it_counts_as_a_plain_count_does(seed: int) -> None:
    rng = random.Random(seed)
    offsets = [rng.randrange(5, 60) for _ in range(rng.randrange(0, 80))]
    cut = sorted(rng.randrange(len(offsets) + 1) for _ in range(2))
    found = one(*(rows(*part) for part in (offsets[: cut[0]], offsets[cut[0] :])), first=10, end=50)
    counts = Counter(offset for offset in offsets if 10 <= offset < 50)
    gaps = [offset for span in found.gaps for offset in range(*span)]
    assert gaps == [offset for offset in range(10, 50) if not counts[offset]]
    twice = {offset for span in found.duplicates for offset in range(*span)}
    assert twice == {offset for offset, times in counts.items() if times > 1}
    assert (found.rows, found.outside) == (sum(counts.values()), len(offsets) - sum(counts.values()))
