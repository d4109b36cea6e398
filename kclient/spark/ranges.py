"""Ranges of offsets: what a batch reads, what the log still holds of it, and how it is split into tasks. Pure.

Nothing here depends on a broker, a clock or Spark: the same start, end and options give the same ranges. Offsets that
are planned but no longer in the log are a Loss. This table is the only place that decides what happens then:

    situation                            kind                                            with failOnDataLoss=false
    start < log start                    START_OFFSET_RESET                              read from the log start
    log end < start                      PARTITION_OFFSET_CHANGED                        nothing; go on at the log end
    end > log end                        COULD_NOT_READ_OFFSET_RANGE                     read what is there
    partition gone                       PARTITIONS_DELETED                              left out
    new partition gone before its start  INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS         left out
    new partition, log start > 0         ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO read from the log start
    topic id changed                     TOPIC_RECREATED                                 like new partitions

The kinds are the names of Spark's own source, except the last, which it cannot detect.

A micro-batch takes part of the backlog:

    minimum       no batch until the backlog is that large, or the last batch is `max_delay` old
    maximum       every partition contributes in proportion to its backlog, at least one offset

Filters of a batch (`pushFilters`) that save reading:

    topic, partition     = and IN             applied here
    offset               < <= > >=            applied here
    timestamp            > >=                 a hint: skip the records before the first one that is new enough; Spark
                                              filters the rest, because log order is not time order
    anything else                             left to Spark
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

import attrs

from kclient.errors import DataLossError
from kclient.log import get_logger
from kclient.types import TopicPartition

log: Final = get_logger("kclient.spark")


@attrs.frozen(order=True)
class OffsetRange:
    """Offsets of one partition from `start` to before `end`. `topic_id` is the id of the topic that was planned."""

    topic: str
    partition: int
    start: int
    end: int
    topic_id: bytes | None = attrs.field(default=None, order=False)

    @property
    def tp(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def size(self) -> int:
        return max(0, self.end - self.start)


class LogBounds(NamedTuple):
    """The log of a partition on its leader: log start offset, and the end that this isolation level sees."""

    start: int
    end: int
    topic_id: bytes | None = None


Offsets: TypeAlias = Mapping[TopicPartition, int]
Bounds: TypeAlias = Mapping[TopicPartition, LogBounds]
TopicIds: TypeAlias = Mapping[str, bytes]
NO_IDS: Final[TopicIds] = {}


@attrs.frozen
class Loss:
    """Records that were planned and are gone. `kind` is the name in Spark's own source."""

    kind: str
    partition: TopicPartition
    text: str


tolerated: Final[Counter[str]] = Counter()
"""How many losses of each kind this process has tolerated, because failOnDataLoss is false."""

COME_AGAIN: Final = frozenset({"TOPIC_RECREATED"})
COME_AGAIN_IN_TABLES: Final = COME_AGAIN | {"PARTITION_OFFSET_CHANGED"}
"""Losses that `kclient ingest` never tolerates: the same offsets come again, as those of other records. What landed
could not be told from what lands. In a directory a log that was cut is tolerated: there files say what landed when."""


# --- the table -------------------------------------------------------------------------------------------------------


def ending_before(needed: Offsets, bounds: Bounds) -> list[TopicPartition]:
    """Return the partitions whose log ends before a needed offset: records are lost, or the broker's response is old.

    Ask again before this counts as a loss.
    """
    return [tp for tp, offset in needed.items() if tp in bounds and bounds[tp].end < offset]


def next_starts(
    start: Offsets, bounds: Bounds, known: TopicIds = NO_IDS
) -> tuple[dict[TopicPartition, int], list[Loss]]:
    """Return where the next batch begins in each partition in `bounds`, and what is lost before it.

    `start` is where the last one ended; a partition that it does not name is new and begins at its log's start. `known`
    are the topic ids when `start` was written, where they are known.
    """
    losses = [_deleted(tp) for tp in start if tp not in bounds]
    starts: dict[TopicPartition, int] = {}
    for tp, log in bounds.items():
        again = _recreated(tp, known.get(tp.topic), log.topic_id)
        if tp not in start:
            found = _added(tp, log)
        elif again or start[tp] < log.start:
            found = again or [_aged(tp, start[tp], log.start, log.end)]
        else:
            starts[tp] = min(start[tp], log.end)
            losses += [_truncated(tp, start[tp], log.end)] if log.end < start[tp] else []
            continue
        starts[tp] = log.start
        losses += found
    return starts, losses


def ranges_between(
    start: Offsets, end: Offsets, bounds: Bounds, known: TopicIds = NO_IDS
) -> tuple[list[OffsetRange], list[Loss]]:
    """Return the ranges that a batch from `start` to `end` can read of the logs as they are now, and its losses."""
    losses = [_deleted(tp) for tp in start if tp not in end]
    ranges: list[OffsetRange] = []
    for tp, last in end.items():
        log = bounds.get(tp)
        if tp not in start:
            losses += _added(tp, log)
        if log is None:
            losses += [_deleted(tp)] if tp in start else []
            continue
        again = _recreated(tp, known.get(tp.topic), log.topic_id)
        first = log.start if again or tp not in start else start[tp]
        readable, lost = within_log(OffsetRange(*tp, first, last, log.topic_id), log)
        ranges += [] if readable is None else [readable]
        losses += [*again, *lost]
    return ranges, losses


def within_log(wanted: OffsetRange, log: LogBounds | None) -> tuple[OffsetRange | None, list[Loss]]:
    """Return what can be read of one range, and its losses. `log` is None if the partition does not exist.

    A task's range keeps its borders even when the topic was recreated, so that ranges never overlap.
    """
    if log is None:
        return None, [_deleted(wanted.tp)]
    tp, start, end = wanted.tp, wanted.start, wanted.end
    losses = _recreated(tp, wanted.topic_id, log.topic_id)
    if log.end < start:
        return None, [*losses, _truncated(tp, start, log.end)]
    if start < log.start:
        losses.append(_aged(tp, start, log.start, end))
        start = log.start
    if end > log.end:
        losses.append(_cut_short(tp, end, log.end))
        end = log.end
    return (attrs.evolve(wanted, start=start, end=end) if start < end else None), losses


def _aged(tp: TopicPartition, start: int, log_start: int, end: int) -> Loss:
    missing = max(0, min(log_start, end) - start)
    text = f"{tp}: asked from {start}, the log starts at {log_start}: up to {missing} records are gone"
    return Loss("START_OFFSET_RESET", tp, text)


def _truncated(tp: TopicPartition, start: int, log_end: int) -> Loss:
    text = f"{tp}: the end of the log is before the start: its offset was changed from {start} to {log_end}"
    return Loss("PARTITION_OFFSET_CHANGED", tp, text)


def _cut_short(tp: TopicPartition, end: int, log_end: int) -> Loss:
    text = f"{tp}: asked to read up to {end}, the log ends at {log_end}: {end - log_end} are missing"
    return Loss("COULD_NOT_READ_OFFSET_RANGE", tp, text)


def _deleted(tp: TopicPartition) -> Loss:
    return Loss("PARTITIONS_DELETED", tp, f"{tp} does not exist any more")


def _added(tp: TopicPartition, log: LogBounds | None) -> list[Loss]:
    if log is None:
        text = f"{tp} is new, and was deleted before its start offset was known"
        return [Loss("INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS", tp, text)]
    if log.start <= 0:
        return []
    text = f"{tp} is new, and its log starts at {log.start}: as many records are gone"
    return [Loss("ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO", tp, text)]


def _recreated(tp: TopicPartition, old: bytes | None, new: bytes | None) -> list[Loss]:
    """Return a loss if the topic id has changed. Brokers before 2.8 have no ids."""
    if old is None or new is None or old == new:
        return []
    text = f"topic {tp.topic} was recreated: its id was {old.hex()}, now it is {new.hex()}"
    return [Loss("TOPIC_RECREATED", tp, text)]


# --- reporting losses ------------------------------------------------------------------------------------------


def fatal_losses(*, is_table: bool) -> frozenset[str]:
    """Return the losses that a job of `kclient ingest` never tolerates."""
    return COME_AGAIN_IN_TABLES if is_table else COME_AGAIN


def data_loss(losses: Sequence[Loss]) -> DataLossError:
    """Return one error for all losses."""
    return _error(
        f"Records that this query asks for are not there: {_listed(losses)}. They aged out, were deleted, or the topic "
        "was truncated or recreated. To read what is left and do without the rest set option failOnDataLoss to false.",
        losses,
    )


def _come_again(losses: Sequence[Loss]) -> DataLossError:
    return _error(
        f"The offsets of this job come again, as those of other records: {_listed(losses)}. A topic was deleted and "
        "recreated, or a log was cut, for example by an unclean leader election. What has landed stays, and a job does "
        "not go on after it, also not with --accept-data-loss. Begin a new job with a --checkpoint of its own, and a "
        "--sink, or in a table a --job, of its own; with --start at a file of offsets it lands only what is new.",
        losses,
    )


def _listed(losses: Sequence[Loss]) -> str:
    more = f" and {len(losses) - 5} more" if len(losses) > 5 else ""
    return "; ".join(loss.text for loss in losses[:5]) + more


def _error(text: str, losses: Sequence[Loss]) -> DataLossError:
    partitions = tuple(dict.fromkeys(loss.partition for loss in losses))
    return DataLossError(text, kind=losses[0].kind, partitions=partitions)


def report(losses: Sequence[Loss], *, fail: bool, fatal: Container[str] = ()) -> None:
    """Raise DataLossError for what was lost, or log a WARNING for each and count it if `fail` is false.

    Losses of a `fatal` kind are an error in both cases.
    """
    if ended := [loss for loss in losses if loss.kind in fatal]:
        raise _come_again(ended)
    if losses and fail:
        raise data_loss(losses)
    for loss in losses:
        tolerated[loss.kind] += 1
        log.warning("data loss (%s, the %d. in this process): %s", loss.kind, tolerated[loss.kind], loss.text)


# --- splitting into tasks --------------------------------------------------------------------------------------------


def split(
    ranges: Iterable[OffsetRange],
    min_partitions: int | None = None,
    max_records_per_partition: int | None = None,
) -> list[OffsetRange]:
    """Split ranges into pieces that cover them exactly, disjoint and in order; drop empty ranges.

    First no piece may be larger than `max_records_per_partition`; then, if there are still fewer pieces than
    `min_partitions`, big ones are divided in proportion to their size, so that about that many come out.
    """
    pieces = sorted(piece for piece in ranges if piece.size)
    if max_records_per_partition is not None:
        most = max_records_per_partition
        pieces = [part for piece in pieces for part in _divide(piece, -(-piece.size // most))]
    if min_partitions is None or len(pieces) >= min_partitions:
        return pieces
    shares = _shares([piece.size for piece in pieces], min_partitions)
    return [part for piece, share in zip(pieces, shares, strict=True) for part in _divide(piece, share)]


def _shares(sizes: Sequence[int], wanted: int) -> list[int]:
    """Return how many tasks each range gets.

    Ranges whose share rounds to one stay whole, the others divide the remaining tasks.
    """
    total = sum(sizes)
    small = [_rounded(size * wanted, total) <= 1 for size in sizes]
    left = max(1, wanted - sum(small))
    large_total = sum(size for size, is_small in zip(sizes, small, strict=True) if not is_small)
    return [
        1 if is_small else max(1, _rounded(size * left, large_total))
        for size, is_small in zip(sizes, small, strict=True)
    ]


def _rounded(numerator: int, denominator: int) -> int:
    return (2 * numerator + denominator) // (2 * denominator)


def _divide(piece: OffsetRange, parts: int) -> list[OffsetRange]:
    parts = min(parts, piece.size)
    cuts = [piece.start + piece.size * part // parts for part in range(parts + 1)]
    return [attrs.evolve(piece, start=start, end=end) for start, end in pairwise(cuts)]


# --- limits of a micro-batch -----------------------------------------------------------------------------------------


@attrs.frozen
class Limit:
    """The limits of one micro-batch; None means no limit. The delay is in seconds."""

    max_rows: int | None = None
    min_rows: int | None = None
    max_delay: float = 0.0


NO_LIMIT = Limit()


def backlog(start: Offsets, end: Offsets) -> int:
    """Return how many offsets lie between the two; a partition without a start counts from 0."""
    return sum(max(0, offset - start.get(tp, 0)) for tp, offset in end.items())


def must_wait(start: Offsets, end: Offsets, limit: Limit, since_last_batch: float | None) -> bool:
    """Return whether the backlog is too small for a batch. The first batch of a run (None) never waits."""
    if limit.min_rows is None or since_last_batch is None or since_last_batch >= limit.max_delay:
        return False
    return backlog(start, end) < limit.min_rows


def prorate(start: Offsets, end: Offsets, max_rows: int | None) -> dict[TopicPartition, int]:
    """Return where a batch of about `max_rows` ends: each partition's share is in proportion to its backlog.

    A share is rounded down, but to no less than 1, so that no partition starves; the sum may therefore exceed the
    maximum by as many as there are partitions whose share is below 1.
    """
    total = backlog(start, end)
    if max_rows is None or total <= max_rows:
        return dict(end)
    return {tp: _share(start.get(tp, 0), offset, max_rows, total) for tp, offset in end.items()}


def _share(start: int, end: int, max_rows: int, total: int) -> int:
    size = end - start
    return end if size <= 0 else start + min(size, max(1, max_rows * size // total))


# --- filters of a batch ----------------------------------------------------------------------------------------------


EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@attrs.frozen
class RangeFilter:
    """Which parts of a batch's ranges are read; None for all. Offsets from `first` to before `end`."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    first: int = 0
    end: int | None = None
    since_ms: int | None = None

    def of(self, ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
        """Return the parts of the ranges that pass; drop empty ones."""
        kept = (self._cut(one) for one in ranges if self._chosen(one.tp))
        return [one for one in kept if one.size]

    def _chosen(self, tp: TopicPartition) -> bool:
        return (self.topics is None or tp.topic in self.topics) and (
            self.partitions is None or tp.partition in self.partitions
        )

    def _cut(self, one: OffsetRange) -> OffsetRange:
        end = one.end if self.end is None else min(one.end, self.end)
        return attrs.evolve(one, start=max(one.start, self.first), end=end)


EVERYTHING: Final = RangeFilter()

Step: TypeAlias = Callable[[RangeFilter, Any], RangeFilter]


def take(filters: Iterable[Any]) -> tuple[RangeFilter, list[Any]]:
    """Return the filter that narrows a batch, and the filters that Spark must still apply, in their order."""
    narrowing, left = EVERYTHING, []
    for one in filters:
        step = STEPS.get((getattr(one, "attribute", ()), type(one).__name__))
        try:
            narrowing = narrowing if step is None else step(narrowing, one.value)
        except TypeError:  # a value that the column never holds, which Spark compares as it sees fit
            step = None
        if step is None or one.attribute == ("timestamp",):
            left.append(one)
    return narrowing, left


def _topics(narrowing: RangeFilter, values: Iterable[Any]) -> RangeFilter:
    wanted = frozenset(_checked(value, str) for value in values if value is not None)
    return attrs.evolve(narrowing, topics=wanted if narrowing.topics is None else wanted & narrowing.topics)


def _partitions(narrowing: RangeFilter, values: Iterable[Any]) -> RangeFilter:
    wanted = frozenset(_checked(value, int) for value in values if value is not None)
    both = wanted if narrowing.partitions is None else wanted & narrowing.partitions
    return attrs.evolve(narrowing, partitions=both)


def _from(narrowing: RangeFilter, offset: int) -> RangeFilter:
    return attrs.evolve(narrowing, first=max(narrowing.first, offset))


def _before(narrowing: RangeFilter, offset: int) -> RangeFilter:
    return attrs.evolve(narrowing, end=min(offset, offset if narrowing.end is None else narrowing.end))


def _since(narrowing: RangeFilter, time: Any) -> RangeFilter:
    """Narrow to records from a time on; ignore a value of another type, and one that records without a time satisfy."""
    if not isinstance(time, datetime) or time.tzinfo is None or time <= EPOCH:
        return narrowing
    milliseconds = (time - EPOCH) // timedelta(milliseconds=1)
    return attrs.evolve(narrowing, since_ms=max(milliseconds, narrowing.since_ms or 0))


def _checked(value: Any, kind: type) -> Any:
    if isinstance(value, bool) or not isinstance(value, kind):
        raise TypeError(f"not {kind.__name__}")
    return value


STEPS: Final[Mapping[tuple[tuple[str, ...], str], Step]] = {
    (("topic",), "EqualTo"): lambda narrowing, value: _topics(narrowing, [value]),
    (("topic",), "In"): _topics,
    (("partition",), "EqualTo"): lambda narrowing, value: _partitions(narrowing, [value]),
    (("partition",), "In"): _partitions,
    (("offset",), "EqualTo"): lambda narrowing, value: _before(
        _from(narrowing, _checked(value, int)), value + 1
    ),
    (("offset",), "LessThan"): lambda narrowing, value: _before(narrowing, _checked(value, int)),
    (("offset",), "LessThanOrEqual"): lambda narrowing, value: _before(narrowing, _checked(value, int) + 1),
    (("offset",), "GreaterThan"): lambda narrowing, value: _from(narrowing, _checked(value, int) + 1),
    (("offset",), "GreaterThanOrEqual"): lambda narrowing, value: _from(narrowing, _checked(value, int)),
    (("timestamp",), "GreaterThan"): _since,
    (("timestamp",), "GreaterThanOrEqual"): _since,
}
"""Column and filter → how it narrows."""
