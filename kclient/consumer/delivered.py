"""The delivered records: what the last poll returned, until the application asks for more.

A record is *consumed* when it was handed out. It is *committable* when the application has then asked for the next one,
committed, or closed cleanly. Explicit commits and `position()` use the consumed offsets, automatic commits the
committable ones. While records are iterated, the positions table is ahead of both.

Worked example: a poll for iteration delivers the offsets 10, 11, 12 of partition 0 and 10, 11 of partition 1. The
positions are 13 and 12 from then on. The offsets of partitions 0 and 1 that the two kinds of commit would store:

    the loop has         consumed()     committable()
    no record yet        10 and 10      10 and 10
    record 10 of 0       11 and 10      10 and 10         record 10 may be half processed
    record 12 of 0       13 and 10      12 and 10
    record 10 of 1       13 and 11      13 and 10
    taken the last one   13 and 12      13 and 12         and asked for another record

While record 12 of partition 0 is processed, mark_committed(13 of 0) makes committable() 13 and 10, and
return_undelivered(1) returns offset 10 of partition 1, to which the consumer then moves the position back.

A plain poll hands out all records at once: consumed() is 13 and 12, committable() 10 and 10 until the next poll.

Iteration reads ahead: one poll delivers the records of several, because the steps of a poll, and the change of threads
of a sync consumer, cost more than decoding 500 records. `ahead` holds them, one Records for each poll, and those that
`arrow_batches` gathers for a batch. The positions are after all of them; consumed(), committable() and the two return_…
functions count them as not handed out. `following()` makes the next of them the delivered records. The user's thread
calls it between two calls on the loop: it changes nothing but returns a new object, so that an interrupt, or a look
from the loop, finds either the old or the new delivery.

close() commits the delivered records only if the application has processed them: `kclient.consumer.processing`.

UndecodedRecords counts and logs (throttled) records whose deserializer failed and that were skipped or kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any, Final, Self

import attrs

from kclient.consumer.iteration import iteration
from kclient.log import THROTTLE_SECONDS, get_logger
from kclient.records.reader import Chunk
from kclient.records.records import Record, Records
from kclient.types import OffsetAndMetadata, TopicPartition

log: Final = get_logger("kclient.fetch")

ACTIONS: Final[Mapping[str, str]] = {
    "skip": "left out",
    "keep": "handed out as Undecoded",
    "dlq": "given to the dead-letter sink",
}

Offsets = dict[TopicPartition, OffsetAndMetadata]


@attrs.define
class RecordsAhead:
    """Records of the next polls, one Records for each poll, with the number and the size of all."""

    polls: list[Records[Any, Any]] = attrs.field(factory=list)
    count: int = 0
    size_bytes: int = 0

    def __bool__(self) -> bool:
        return bool(self.polls)

    def add(self, records: Records[Any, Any]) -> None:
        """Add the records of one more poll."""
        self.polls.append(records)
        self.count += len(records)
        self.size_bytes += _size_bytes(records)

    def first(self) -> Records[Any, Any]:
        """Return the records of the first poll, or no records."""
        return self.polls[0] if self.polls else Records()

    def after_first(self) -> Self:
        """Return all but the first poll, as a new object."""
        first = self.first()
        return type(self)(self.polls[1:], self.count - len(first), self.size_bytes - _size_bytes(first))

    def chunks(self) -> Iterator[Chunk]:
        """Iterate over the chunks of all polls."""
        return (chunk for records in self.polls for chunk in records.chunks)

    def remove(self, partitions: Container[TopicPartition]) -> None:
        """Remove the records of these partitions."""
        polls, self.polls, self.count, self.size_bytes = self.polls, [], 0, 0
        for records in polls:
            left = Records[Any, Any](chunk for chunk in records.chunks if chunk.partition not in partitions)
            if len(left):
                self.add(left)


class DeliveredRecords:
    """The records of one poll: handed out at once, or one by one while iterating; and those read ahead.

    `received` is False while the thread that polled has not received them.
    """

    def __init__(
        self, records: Records[Any, Any], *, one_by_one: bool, ahead: RecordsAhead | None = None
    ) -> None:
        self.records = records
        self.ahead: RecordsAhead = ahead or RecordsAhead()
        self.received = True
        self.one_by_one = one_by_one
        self._returned: set[TopicPartition] = set()
        self._committed: Offsets = {}
        # Set while an interrupted application closes: its listener's commit() leaves these records out.
        self.half_processed = False
        self.replace(records)

    def following(self) -> DeliveredRecords:
        """Return what iteration hands out after these: the first of the records read ahead."""
        return DeliveredRecords(self.ahead.first(), one_by_one=True, ahead=self.ahead.after_first())

    @property
    def all_handed_out(self) -> bool:
        """Whether iteration has handed out every record of this poll."""
        return not self.one_by_one or self._iteration.place()[0] >= len(self._chunks)

    def replace(self, records: Records[Any, Any]) -> None:
        """Hand out these records instead. Those that interceptors have left out count as consumed."""
        self._chunks = [chunk for chunk in records.chunks if len(chunk)]
        self._iteration = iteration(self._chunks if self.one_by_one else ())
        self._shared: Iterator[Record[Any, Any]] | None = None

    def shared(self) -> Iterator[Record[Any, Any]]:
        """Return the one iterator of all who take single records. It has ended when all were handed out."""
        if self._shared is None:
            self._shared = iter(self)
        return self._shared

    def __iter__(self) -> Iterator[Record[Any, Any]]:
        """Iterate over the records that were not handed out yet; each is consumed when it is handed out."""
        return iter(self._iteration)

    def consumed(self, positions: Mapping[TopicPartition, OffsetAndMetadata]) -> Offsets:
        """Return the offsets after all records handed out, or `committable` if those are half processed."""
        if self.half_processed:
            return self.committable(positions)
        return _overlaid(positions, self._not_handed_out())

    def committable(self, positions: Mapping[TopicPartition, OffsetAndMetadata]) -> Offsets:
        """Return the positions without all delivered records. A loop that runs meanwhile may be one record further."""
        handed_out = self._waiting() if self.one_by_one else _first_offsets(self._chunks)
        held = self._first_ahead() | handed_out
        if (last := self._iteration.place()[1]) is not None:
            held[last.partition] = OffsetAndMetadata(last.offset, last.leader_epoch)
        for tp, confirmed in self._committed.items():
            if tp in held and held[tp].offset < confirmed.offset:
                held[tp] = confirmed
        return _overlaid(positions, held)

    def count_from(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> dict[TopicPartition, int]:
        """Return the number of records from these offsets on for each partition that has any."""
        counts: Counter[TopicPartition] = Counter()
        for chunk in self._chunks:
            if chunk.partition in offsets and chunk.partition not in self._returned:
                first = offsets[chunk.partition].offset
                counts[chunk.partition] += sum(
                    offset >= first for run in chunk.runs for offset in run.offsets
                )
        return dict(+counts)

    def mark_committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Note offsets that the application has committed: they are committable."""
        self._committed.update(offsets)

    def return_undelivered(self, partitions: Iterable[TopicPartition] | None = None) -> Offsets:
        """Drop records that iteration has not handed out, of these partitions or of all. Return their first offsets."""
        wanted = None if partitions is None else {*partitions}
        if self.one_by_one:
            # Before the place is read: nothing is handed out from then on, even if another thread iterates.
            for index, chunk in enumerate(self._chunks):
                if wanted is None or chunk.partition in wanted:
                    self._iteration.end(index)
        rest = self._not_handed_out()
        chosen = rest if wanted is None else {tp: rest[tp] for tp in rest if tp in wanted}
        if self.one_by_one:
            self._returned.update(chosen)
        self.ahead.remove(chosen)
        return chosen

    def return_all(self) -> Offsets:
        """Return the first offset of every partition: the poll was interrupted before it returned the records."""
        return self._first_ahead() | _first_offsets(self._chunks)

    def _not_handed_out(self) -> Offsets:
        """Return the first offset of each partition that has records left, of this poll or read ahead."""
        rest = self._waiting() if self.one_by_one else {}
        last = self._iteration.place()[1]
        if last is not None and last.partition not in self._returned:
            rest[last.partition] = OffsetAndMetadata(last.offset + 1, last.leader_epoch)
        return self._first_ahead() | rest

    def _first_ahead(self) -> Offsets:
        return _first_offsets(chunk for chunk in self.ahead.chunks() if len(chunk))

    def _waiting(self) -> Offsets:
        """Return the first offset of each partition that iteration has not begun."""
        index, last = self._iteration.place()
        firsts = _first_offsets(self._chunks[index if last is None else index + 1 :])
        return {tp: offset for tp, offset in firsts.items() if tp not in self._returned}


def nothing_delivered(ahead: RecordsAhead | None = None) -> DeliveredRecords:
    """Return an empty delivery."""
    return DeliveredRecords(Records(), one_by_one=False, ahead=ahead)


def _size_bytes(records: Records[Any, Any]) -> int:
    return sum(chunk.size_bytes for chunk in records.chunks)


def _first_offsets(chunks: Iterable[Chunk]) -> Offsets:
    first: Offsets = {}
    for chunk in chunks:
        run = chunk.runs[0]
        first.setdefault(chunk.partition, OffsetAndMetadata(run.offsets[0], run.leader_epoch))
    return first


def _overlaid(positions: Mapping[TopicPartition, OffsetAndMetadata], held: Offsets) -> Offsets:
    return {tp: held.get(tp, position) for tp, position in positions.items()}


class UndecodedRecords:
    """`total` counts kept and skipped records; `left_out` is called with the number of skipped ones."""

    def __init__(self, on_decode_error: str, left_out: Callable[[int], None] | None = None) -> None:
        self.total: int = 0
        self._action = ACTIONS.get(on_decode_error, "")
        self._left_out = left_out if on_decode_error in ("skip", "dlq") else None
        self._logged = 0
        self._next_log = 0.0

    def note(self, chunks: Iterable[Chunk], now: float) -> None:
        """Count the undecoded records of a poll. `now` is the loop's time."""
        count, last = 0, None
        for chunk in chunks:
            if chunk.undecoded:
                count, last = count + chunk.undecoded, chunk
        if last is None:
            return
        self.total += count
        if self._left_out is not None:
            self._left_out(count)
        if now >= self._next_log:
            self._next_log = now + THROTTLE_SECONDS
            log.warning(
                "%d records could not be decoded and were %s, the last of %s before offset %d",
                self.total - self._logged,
                self._action,
                last.partition,
                last.next_offset,
            )
            self._logged = self.total
