"""`ingest verify`: whether every offset that a job has landed is in its table once, by the rows themselves.

    rows of the table: topic, partition, offset → runs of consecutive offsets → sorted, compared with the job's range
        a run that begins before the one before it has ended        duplicates
        a run that begins later than that                           a gap

A gap is not a loss by itself: compaction, aborted transactions and their markers leave offsets without a record. The
log says which it is (`explain`), as far as it reaches. Memory grows with the number of runs, not of rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from kclient.spark.offsets import MAX_OFFSET
from kclient.spark.sink.partitions import grouped
from kclient.types import TopicPartition

NEAR_OFFSETS: Final = 10_000
"""Gaps that are no further apart are one read of the log: that is faster than one request for each."""


class Span(NamedTuple):
    """Offsets from `start` to before `end`."""

    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start

    def __str__(self) -> str:
        return str(self.start) if self.size == 1 else f"{self.start} to {self.end - 1}"


@attrs.frozen(kw_only=True)
class Explained:
    """What the log says about gaps: its records that the table does not have, and offsets without a record.

    `unknown` are offsets that the log does not hold: before its start, or after its end.
    """

    missing: tuple[Span, ...] = ()
    absent: tuple[Span, ...] = ()
    unknown: tuple[Span, ...] = ()


@attrs.frozen(kw_only=True)
class VerifiedPartition:
    """One partition: the offsets that the job has landed, and how they are in the table.

    `outside` is how many rows belong to other offsets, those of another job for example. `explained` is None if no log
    was asked.
    """

    tp: TopicPartition
    claimed: Span
    rows: int
    outside: int
    duplicates: tuple[Span, ...]
    gaps: tuple[Span, ...]
    explained: Explained | None = None

    @property
    def is_proven(self) -> bool:
        """Whether nothing is there twice, and the log has no record for any gap."""
        if self.duplicates:
            return False
        known = self.explained
        return not self.gaps if known is None else not (known.missing or known.unknown)


def verified(
    batches: Iterable[pa.RecordBatch], claimed: Mapping[TopicPartition, Sequence[Span]]
) -> list[VerifiedPartition]:
    """Compare rows with the offsets that a job and its backfills have landed: one result for each span.

    The batches have `_topic`, `_partition` and `_offset`, in any order.
    """
    runs: dict[TopicPartition, list[Span]] = defaultdict(list)
    for batch in batches:
        for tp, offsets in by_partition(batch):
            runs[tp] += _runs(offsets)
    return [
        found for tp, spans in sorted(claimed.items()) for found in _of_partition(tp, spans, sorted(runs[tp]))
    ]


def _of_partition(tp: TopicPartition, spans: Sequence[Span], runs: list[Span]) -> list[VerifiedPartition]:
    """Compare one partition. Rows outside of all spans count with the first one."""
    found = [_compared(tp, span, runs) for span in joined(spans)]
    outside = sum(run.size for run in runs) - sum(each.rows for each in found)
    return [attrs.evolve(each, outside=0 if number else outside) for number, each in enumerate(found)]


def joined(spans: Iterable[Span]) -> list[Span]:
    """Return spans in order, those that touch as one."""
    whole: list[Span] = []
    for span in sorted(spans):
        if whole and span.start <= whole[-1].end:
            whole[-1] = Span(whole[-1].start, max(whole[-1].end, span.end))
        else:
            whole.append(span)
    return whole


def common(spans: Sequence[Span], others: Iterable[Span]) -> Iterator[Span]:
    """Yield what is in one of the spans and in one of the others; both are in order, and none overlaps another."""
    at = 0
    for other in others:
        while at < len(spans) and spans[at].end <= other.start:
            at += 1
        inside = at
        while inside < len(spans) and spans[inside].start < other.end:
            yield Span(max(spans[inside].start, other.start), min(spans[inside].end, other.end))
            inside += 1


def near(gaps: Iterable[Span]) -> Iterator[list[Span]]:
    """Yield gaps in groups that are read from the log at once: there is a gap for each transaction, for example."""
    group: list[Span] = []
    for gap in gaps:
        if group and gap.start - group[-1].end > NEAR_OFFSETS:
            yield group
            group = []
        group.append(gap)
    if group:
        yield group


def without(span: Span, others: Iterable[Span]) -> Iterator[Span]:
    """Yield what is left of a span without others that lie inside of it, in order."""
    at = span.start
    for other in others:
        if other.start > at:
            yield Span(at, other.start)
        at = other.end
    if at < span.end:
        yield Span(at, span.end)


def explain(
    found: VerifiedPartition, log: Span, read: Callable[[Span], Iterable[pa.Array]]
) -> VerifiedPartition:
    """Return a partition with its gaps explained by the log, which holds the offsets `log` and is read by `read`."""
    missing: list[Span] = []
    absent: list[Span] = []
    for group in near(common(found.gaps, [log]) if log.size else ()):
        whole = Span(group[0].start, group[-1].end)
        records = joined(run for offsets in read(whole) for run in _runs(offsets))
        missing += common(group, records)
        absent += common(group, without(whole, records))
    unknown = joined(common(found.gaps, (Span(0, log.start), Span(log.end, MAX_OFFSET))))
    return attrs.evolve(
        found, explained=Explained(missing=tuple(missing), absent=tuple(absent), unknown=tuple(unknown))
    )


def by_partition(batch: pa.RecordBatch) -> Iterator[tuple[TopicPartition, pa.Array]]:
    """Yield the offsets of each partition.

    Only the offsets are divided: delta-rs reads texts as string_view, of which pyarrow cannot take rows.
    """
    keys = [batch.column("_topic"), batch.column("_partition")]
    for (topic, partition), rows in grouped(batch.select(["_offset"]), keys):
        if topic is not None and partition is not None:
            yield TopicPartition(topic, partition), rows.column("_offset")


def _runs(offsets: pa.Array) -> list[Span]:
    """Return offsets as runs. An offset that is there twice is in two of them."""
    ordered = offsets.drop_null().sort()
    if not len(ordered):
        return []
    breaks = pc.indices_nonzero(pc.not_equal(pc.pairwise_diff(ordered).fill_null(1), 1))
    starts = pa.concat_arrays([pa.array([0], pa.uint64()), breaks])
    firsts = ordered.take(starts).to_pylist()
    lengths = [*starts.to_pylist()[1:], len(ordered)]
    return [
        Span(first, first + length - start)
        for first, start, length in zip(firsts, starts.to_pylist(), lengths, strict=True)
    ]


def _compared(tp: TopicPartition, claimed: Span, runs: list[Span]) -> VerifiedPartition:
    duplicates: list[Span] = []
    gaps: list[Span] = []
    inside = 0
    at = claimed.start
    for run in runs:
        start, end = max(run.start, claimed.start), min(run.end, claimed.end)
        size = max(0, end - start)
        inside += size
        if not size:
            continue
        if start < at:
            duplicates.append(Span(start, min(end, at)))
        elif start > at:
            gaps.append(Span(at, start))
        at = max(at, end)
    if at < claimed.end:
        gaps.append(Span(at, claimed.end))
    return VerifiedPartition(
        tp=tp,
        claimed=claimed,
        rows=inside,
        outside=0,
        duplicates=tuple(duplicates),
        gaps=tuple(gaps),
    )
