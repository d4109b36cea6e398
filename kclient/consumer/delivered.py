"""What the application has in hand: the records of the last poll, until it asks for more.

A record is *consumed* when it was handed out, and *released* when the application then asked for the next one,
committed, or closed cleanly. Explicit commits and `position()` go by what is consumed, automatic commits by what is
released. The positions table is ahead of both while records wait here to be iterated.

Whether the application has processed the records in hand: close() commits them only then.

close() counts as asking for the next record, unless one of these says that the records may be half processed:

    an exception is being handled that was not yet when the records were taken      with, finally, contextlib.closing
    the task that took them was cancelled since, whatever became of the exception   task.cancel(), and a lifespan
    that task failed, or has not ended and another one closes                       the loop in a task of its own
    another thread than the one that took them closes                               the loop in a thread of its own

The task that asks has the records, also where another one waits for them: `create_task(consumer.poll())`, `gather`, and
`wait_for` before Python 3.12. Of `anext(consumer)` in such a task it is not known which one asked: looking at every
record would slow down iteration, so it counts as half processed.

`ThreadProcessing` of the sync facade holds the last line: a thread, unlike a task, leaves no trace of how it ended. A
record whose exception the application has caught, and whose except block is over, counts as processed.

UndecodedRecords counts records whose deserializer failed and that were skipped or kept, and logs them, throttled.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from kclient.log import THROTTLE_SECONDS, get_logger
from kclient.records.reader import Chunk
from kclient.records.records import Record, Records
from kclient.types import OffsetAndMetadata, TopicPartition

log = get_logger("kclient.fetch")

DONE: Final[Mapping[str, str]] = {
    "skip": "left out",
    "keep": "handed out as Undecoded",
    "dlq": "given to the dead-letter sink",
}

Offsets = dict[TopicPartition, OffsetAndMetadata]


class DeliveredRecords:
    """The records of one poll: handed out at once, or one by one while iterating.

    Iterating goes on where it stopped, also after an interrupt or a `break`: the place is kept here and not in the
    iterator.
    """

    def __init__(self, records: Records[Any, Any], *, one_by_one: bool) -> None:
        self._chunks = [chunk for chunk in records.chunks if len(chunk)]
        self._one_by_one = one_by_one
        self._at = 0  # the chunk that is being handed out
        self._current: Record[Any, Any] | None = None  # the record that was handed out last, of that chunk
        self._returned: set[TopicPartition] = set()
        self._committed: Offsets = {}
        self.half_processed = (
            False  # an interrupted application closes: its listener's commit() leaves these out
        )
        self._iterator: Iterator[Record[Any, Any]] | None = None

    def replace(self, records: Records[Any, Any]) -> None:
        """Hand out these instead, before anything was: what interceptors left out counts as handed out."""
        self._chunks = [chunk for chunk in records.chunks if len(chunk)]

    def next(self) -> Record[Any, Any] | None:
        """The next record, None when all were handed out."""
        if self._iterator is None:
            self._iterator = iter(self)
        return next(self._iterator, None)

    def __iter__(self) -> Iterator[Record[Any, Any]]:
        """The records that were not handed out yet, each consumed as it comes out."""
        if not self._one_by_one:
            return
        while self._at < len(self._chunks):
            chunk = self._chunks[self._at]
            overtaken = False
            for record in self._rest(chunk):
                self._current = record
                yield record
                overtaken = self._current is not record  # by another loop over the same consumer
                if overtaken or chunk.partition in self._returned:
                    break
            if not overtaken:
                self._at += 1
                self._current = None

    def _rest(self, chunk: Chunk) -> Iterator[Record[Any, Any]]:
        if chunk.partition in self._returned:
            return iter(())
        records = iter(Records[Any, Any]((chunk,)))
        last = self._current
        if last is None or _partition(last) != chunk.partition:
            return records
        return (record for record in records if record.offset > last.offset)

    def consumed(self, positions: Mapping[TopicPartition, OffsetAndMetadata]) -> Offsets:
        """Positions, less what was not handed out yet; less all that is in hand once that is half processed."""
        if self.half_processed:
            return self.committable(positions)
        held = self._waiting() if self._one_by_one else {}
        if self._current is not None and _partition(self._current) not in self._returned:
            held[_partition(self._current)] = _behind(self._current)
        return _overlaid(positions, held)

    def committable(self, positions: Mapping[TopicPartition, OffsetAndMetadata]) -> Offsets:
        """Positions, less all that is in hand. An application that iterates meanwhile may be a record further on."""
        held = self._waiting() if self._one_by_one else _first_offsets(self._chunks)
        if (current := self._current) is not None:
            held[_partition(current)] = _at(current)
        for tp, confirmed in self._committed.items():
            if tp in held and held[tp].offset < confirmed.offset:
                held[tp] = confirmed
        return _overlaid(positions, held)

    def count_from(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> dict[TopicPartition, int]:
        """How many records of each partition there are from these offsets on; partitions without any are left out."""
        counts: Counter[TopicPartition] = Counter()
        for chunk in self._chunks:
            if chunk.partition in offsets and chunk.partition not in self._returned:
                first = offsets[chunk.partition].offset
                counts[chunk.partition] += sum(
                    offset >= first for run in chunk.runs for offset in run.offsets
                )
        return dict(+counts)

    def mark_committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """The application committed these itself: they are released."""
        self._committed.update(offsets)

    def return_undelivered(self, partitions: Iterable[TopicPartition] | None = None) -> Offsets:
        """Give up what iteration has not handed out yet, of these partitions or of all; where each goes on from."""
        rest = self._waiting() if self._one_by_one else {}
        if self._current is not None and _partition(self._current) not in self._returned:
            rest[_partition(self._current)] = _behind(self._current)
        chosen = rest if partitions is None else {tp: rest[tp] for tp in partitions if tp in rest}
        self._returned.update(chosen)
        return chosen

    def return_all(self) -> Offsets:
        """Give up everything, for the poll that should have returned it was interrupted."""
        return _first_offsets(self._chunks)

    def _waiting(self) -> Offsets:
        """The first record of each partition that iteration has not begun with."""
        waiting, current = self._chunks[self._at :], self._current
        if current is not None and waiting and waiting[0].partition == _partition(current):
            waiting = waiting[1:]
        firsts = _first_offsets(waiting)
        return {tp: offset for tp, offset in firsts.items() if tp not in self._returned}


def nothing_delivered() -> DeliveredRecords:
    """Nothing in hand."""
    return DeliveredRecords(Records(), one_by_one=False)


def _first_offsets(chunks: Iterable[Chunk]) -> Offsets:
    first: Offsets = {}
    for chunk in chunks:
        run = chunk.runs[0]
        first.setdefault(chunk.partition, OffsetAndMetadata(run.offsets[0], run.leader_epoch))
    return first


def _overlaid(positions: Mapping[TopicPartition, OffsetAndMetadata], held: Offsets) -> Offsets:
    return {tp: held.get(tp, position) for tp, position in positions.items()}


def _partition(record: Record[Any, Any]) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)


def _at(record: Record[Any, Any]) -> OffsetAndMetadata:
    return OffsetAndMetadata(record.offset, record.leader_epoch)


def _behind(record: Record[Any, Any]) -> OffsetAndMetadata:
    return OffsetAndMetadata(record.offset + 1, record.leader_epoch)


class TaskProcessing:
    """The records in hand, as taken by a task."""

    def __init__(self) -> None:
        self._task: asyncio.Task[object] | None = None
        self._cancels = 0
        self._handled: BaseException | None = None

    def taken(self, asking: asyncio.Task[object] | None = None) -> None:
        """This task takes records, or the running one. An exception that is handled already says nothing about them."""
        self._task = task = asking or asyncio.current_task()
        self._cancels = 0 if task is None else task.cancelling()
        self._handled = sys.exception()

    def interrupted(self) -> bool:
        """Whether they may be half processed, judged in the task that closes."""
        return self.raising() or self._is_unfinished()

    def raising(self) -> bool:
        """Whether an exception is being handled that was not yet when they were taken."""
        return exception_since(self._handled)

    def _is_unfinished(self) -> bool:
        task = self._task
        if task is None:
            return False
        if task.cancelling() > self._cancels:
            return True
        if task is asking_task():
            return False
        if not task.done() or task.cancelled() or _only_asked(task):
            return True
        return bool(
            task.get_stack(limit=1)
        )  # `exception()` would keep asyncio from logging one that is never retrieved


def _only_asked(task: asyncio.Task[object]) -> bool:
    """Whether this task ran `anext(consumer)` and nothing else: another one processes the record."""
    return getattr(task.get_coro(), "__name__", "") == "__anext__"


def asking_task() -> asyncio.Task[object] | None:
    """The task that makes a call, if there is one: `asyncio.run(consumer.poll())` is called before its loop runs."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def exception_since(handled: BaseException | None) -> bool:
    """Whether an exception is being handled that is not this one."""
    exc = sys.exception()
    return exc is not None and exc is not handled


class UndecodedRecords:
    """`total` counts those that were delivered or skipped; `left_out` is called with the number of skipped ones."""

    def __init__(self, on_decode_error: str, left_out: Callable[[int], None] | None = None) -> None:
        self.total = 0
        self._doing = DONE.get(on_decode_error, "")
        self._left_out = left_out if on_decode_error in ("skip", "dlq") else None
        self._told = 0
        self._quiet_until = 0.0

    def note(self, chunks: Iterable[Chunk], now: float) -> None:
        """What a poll is about to return. `now` is the loop's time."""
        count, last = 0, None
        for chunk in chunks:
            if chunk.undecoded:
                count, last = count + chunk.undecoded, chunk
        if last is None:
            return
        self.total += count
        if self._left_out is not None:
            self._left_out(count)
        if now >= self._quiet_until:
            self._quiet_until = now + THROTTLE_SECONDS
            log.warning(
                "%d records could not be decoded and were %s, the last of %s before offset %d",
                self.total - self._told,
                self._doing,
                last.partition,
                last.next_offset,
            )
            self._told = self.total
