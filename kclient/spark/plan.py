"""Ranges of offsets: what a batch reads, what the log still holds of it, and how it is split. Pure.

Nothing here depends on a broker, a clock or Spark: the same start, end and options give the same ranges.

Spec: SP-55, SP-56, SP-57, SP-59.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import attrs

from kclient.errors import DataLossError
from kclient.types import TopicPartition

log = logging.getLogger("kclient.spark")


@attrs.frozen(order=True)
class OffsetRange:
    """Offsets `start` to before `end` of one partition. `topic_id` is that of the topic which was planned."""

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
    """What a partition's leader holds: the log start offset, and the end that this isolation level sees."""

    start: int
    end: int
    topic_id: bytes | None = None


@attrs.frozen
class Loss:
    """One thing that was planned and is not there. `kind` is the name that Spark's own source gives it."""

    kind: str
    partition: TopicPartition
    text: str


def within_log(wanted: OffsetRange, log: LogBounds | None) -> tuple[OffsetRange | None, list[Loss]]:
    """What can be read of a range, and what is lost of it. `log` is None where the partition does not exist.

    Spec: SP-57, table 5.4.
    """
    if log is None:
        return None, [Loss("PARTITIONS_DELETED", wanted.tp, f"{wanted.tp} does not exist any more")]
    losses = _recreated(wanted, log)
    start, end = wanted.start, wanted.end
    if log.end < start:
        text = f"{wanted.tp}: the end of the log is before the start: its offset was changed from {start} to {log.end}"
        return None, [*losses, Loss("PARTITION_OFFSET_CHANGED", wanted.tp, text)]
    if start < log.start:
        missing = min(log.start, end) - start
        text = f"{wanted.tp}: asked from {start}, the log starts at {log.start}: up to {missing} records are gone"
        losses.append(Loss("START_OFFSET_RESET", wanted.tp, text))
        start = log.start
    if end > log.end:
        text = (
            f"{wanted.tp}: asked to read up to {end}, the log ends at {log.end}: {end - log.end} are missing"
        )
        losses.append(Loss("COULD_NOT_READ_OFFSET_RANGE", wanted.tp, text))
        end = log.end
    return (attrs.evolve(wanted, start=start, end=end) if start < end else None), losses


def data_loss(losses: Sequence[Loss]) -> DataLossError:
    """The error for what was lost, all of it at once."""
    told = "; ".join(loss.text for loss in losses[:5])
    more = f" and {len(losses) - 5} more" if len(losses) > 5 else ""
    return DataLossError(
        f"Records that this query asks for are not there: {told}{more}. They aged out, were deleted, or the topic was "
        "truncated or made anew. To read what is left and do without the rest set option failOnDataLoss to false.",
        kind=losses[0].kind,
        partitions=tuple(dict.fromkeys(loss.partition for loss in losses)),
    )


def report(losses: Sequence[Loss], *, fail: bool) -> None:
    """Raise DataLossError for what was lost, or warn of each where the user does without it."""
    if losses and fail:
        raise data_loss(losses)
    for loss in losses:
        log.warning("data loss (%s): %s", loss.kind, loss.text)


def split(
    ranges: Iterable[OffsetRange],
    min_partitions: int | None = None,
    max_records_per_partition: int | None = None,
) -> list[OffsetRange]:
    """Pieces that cover the ranges exactly, disjoint and in order; empty ranges are dropped.

    First no piece may be larger than `max_records_per_partition`; then, if there are still fewer pieces than
    `min_partitions`, big ones are divided in proportion to their size, so that about that many come out.

    Spec: SP-55, SP-56.
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
    """How many tasks each range gets: those whose share rounds to one stay whole, the others share the rest."""
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


def _recreated(wanted: OffsetRange, log: LogBounds) -> list[Loss]:
    if wanted.topic_id is None or log.topic_id is None or wanted.topic_id == log.topic_id:
        return []
    text = f"topic {wanted.topic} was made anew: its id was {wanted.topic_id.hex()}, now it is {log.topic_id.hex()}"
    return [Loss("TOPIC_RECREATED", wanted.tp, text)]
