"""Ranges of offsets: what a batch reads, and what the log still holds of it. Pure.

Nothing here depends on a broker, a clock or Spark: the same start, end and options give the same ranges. What is
planned and not there is a Loss, and this table is the only place that decides what becomes of it:

    situation                            kind                                            when the user does without
    start < log start                    START_OFFSET_RESET                              read from the log start
    log end < start                      PARTITION_OFFSET_CHANGED                        nothing; on from the log end
    end > log end                        COULD_NOT_READ_OFFSET_RANGE                     read what is there
    partition gone                       PARTITIONS_DELETED                              left out
    new partition gone before its start  INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS         left out
    new partition, log start > 0         ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO read from the log start
    topic id changed                     TOPIC_RECREATED                                 like new partitions

The kinds are the names of Spark's own source, but for the last, which it cannot see.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import attrs

from kclient.errors import DataLossError
from kclient.log import get_logger
from kclient.types import TopicPartition

log = get_logger("kclient.spark")


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


Offsets: TypeAlias = Mapping[TopicPartition, int]
Bounds: TypeAlias = Mapping[TopicPartition, LogBounds]
TopicIds: TypeAlias = Mapping[str, bytes]
NO_IDS: Final[TopicIds] = {}


@attrs.frozen
class Loss:
    """One thing that was planned and is not there. `kind` is the name that Spark's own source gives it."""

    kind: str
    partition: TopicPartition
    text: str


tolerated: Final[Counter[str]] = Counter()
"""How many losses of each kind this process did without, because failOnDataLoss is false."""


# --- the table -------------------------------------------------------------------------------------------------------


def behind(needed: Offsets, bounds: Bounds) -> list[TopicPartition]:
    """The partitions whose log ends before an offset that is needed: lost, or the broker's answer is old.

    Ask again before this counts as a loss.
    """
    return [tp for tp, offset in needed.items() if tp in bounds and bounds[tp].end < offset]


def next_starts(
    start: Offsets, bounds: Bounds, known: TopicIds = NO_IDS
) -> tuple[dict[TopicPartition, int], list[Loss]]:
    """Where the next batch begins in each partition that `bounds` tells of, and what is lost on the way there.

    `start` is where the last one ended; a partition that it does not name is new and begins at its log's start. `known`
    are the ids of topics when `start` was written, where anything tells them.
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
    """What a batch from `start` to `end` reads of the logs as they are now, and what is lost of it."""
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
    """What can be read of one range, and what is lost of it. `log` is None where the partition does not exist.

    A piece of a batch keeps its borders even when the topic was made anew, so that pieces never overlap.
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
        text = f"{tp} is new, and was gone before anybody knew where it begins"
        return [Loss("INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS", tp, text)]
    if log.start <= 0:
        return []
    text = f"{tp} is new, and its log starts at {log.start}: as many records are gone"
    return [Loss("ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO", tp, text)]


def _recreated(tp: TopicPartition, old: bytes | None, new: bytes | None) -> list[Loss]:
    """Brokers before 2.8 have no ids."""
    if old is None or new is None or old == new:
        return []
    text = f"topic {tp.topic} was made anew: its id was {old.hex()}, now it is {new.hex()}"
    return [Loss("TOPIC_RECREATED", tp, text)]


# --- what becomes of a loss ------------------------------------------------------------------------------------------


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
    """Raise DataLossError for what was lost, or warn of each and count it where the user does without it."""
    if losses and fail:
        raise data_loss(losses)
    for loss in losses:
        tolerated[loss.kind] += 1
        log.warning("data loss (%s, the %d. in this process): %s", loss.kind, tolerated[loss.kind], loss.text)
