"""The records in flight: in which order they are handled, and which offsets may be committed. Pure.

A record is *in flight* from the poll that returned it until its handler has finished. Two views on the same records:

    lane         records that must be handled one after another: those of one key, or of one partition
    partition    all records in the order of the log; the *committable* offset is after the longest finished prefix

Worked example: offsets 10 to 14 of one partition are in flight, the keys are A B A C B, and 11 and 13 have finished:

    lanes        A: 10 12 · B: 14 (11 is done) · C: (13 is done)
    partition    10 11 12 13 14, of which 11 and 13 are finished: nothing is committable
    10 finishes  12 13 14: the committable offset is 12, so 13 is delivered again if the process dies now

A record that is *dropped* is not begun, nor tried again: its partition was revoked or lost, or the run ends. It stays
unfinished, so no later offset of its partition becomes committable. A lane outlives the assignment of its partition: a
handler that is still running when the partition comes back holds up the redelivered records of its key.
"""

from __future__ import annotations

import asyncio
import enum
from collections import deque
from collections.abc import Hashable, Iterable
from typing import Any, Final, Literal

import attrs

from kclient.errors import UsageError
from kclient.records.records import Record, Records
from kclient.types import OffsetAndMetadata, TopicPartition

Ordering = Literal["key", "partition"]
ORDERINGS: Final = ("key", "partition", None)


class HandlingState(enum.Enum):
    """Where a record is between poll() and the end of its handler."""

    WAITING = "waiting"  # for the records before it in its lane, or for one of the `concurrency` slots
    RUNNING = "running"
    BACKING_OFF = "backing off"
    ENDED = "ended"  # finished, dropped, or given up


@attrs.define(eq=False)
class InFlightRecord:
    """One record in flight. `since` is the loop's time at which poll() returned it, `attempts` counts handler calls."""

    record: Any  # a Record; None when it has finished, since thousands may wait for an earlier one
    offset: int
    leader_epoch: int | None
    partition: PartitionInFlight
    since: float
    state: HandlingState = HandlingState.WAITING
    attempts: int = 0
    begun: bool = False  # its lane has come to it
    finished: bool = False
    dropped: bool = False
    in_thread: bool = False
    failure: str = ""  # the class of the last exception
    scope: asyncio.Timeout | None = None  # around all attempts, so that `cancel` ends them

    def is_dropped(self) -> bool:
        """Return whether `drop` was called."""
        return self.dropped

    def drop(self) -> None:
        """Begin no attempt any more. One that is running continues."""
        self.dropped = True
        if self.state is not HandlingState.RUNNING:
            self.cancel()

    def cancel(self) -> None:
        """End the attempt that is running, unless it runs on a thread, which nothing can end."""
        self.dropped = True
        if self.scope is not None and not self.in_thread and not self.scope.expired():
            self.scope.reschedule(0.0)


class PartitionInFlight:
    """The records of one assigned partition, from the first that has not finished on.

    `sent` is the offset of the last commit that was sent.
    """

    def __init__(self, tp: TopicPartition) -> None:
        self.tp = tp
        self.records: deque[InFlightRecord] = deque()
        self.committable: OffsetAndMetadata | None = None
        self.sent: OffsetAndMetadata | None = None
        self._last_offset = -1
        self._end: OffsetAndMetadata | None = None

    def follows(self, offset: int) -> bool:
        """Return whether a record with this offset comes after all others; not after a seek back, or a reset."""
        return offset > self._last_offset

    def add(self, record: InFlightRecord) -> None:
        """Add the next record of the log."""
        self.records.append(record)
        self._last_offset = record.offset

    def position_moved(self, end: OffsetAndMetadata) -> None:
        """Note the position after a poll: transaction markers may follow the last record."""
        self._end = end
        if not self.records:
            self.committable = end

    def finish(self, record: InFlightRecord) -> None:
        """Note that a handler has finished, in any order. Move the committable offset."""
        record.finished, record.record = True, None
        while self.records and self.records[0].finished:
            done = self.records.popleft()
            self.committable = OffsetAndMetadata(done.offset + 1, done.leader_epoch)
        if not self.records and self._end is not None:
            self.committable = self._end

    @property
    def unfinished(self) -> int:
        """How many records have not finished."""
        return sum(not record.finished for record in self.records)

    @property
    def resume_at(self) -> OffsetAndMetadata | None:
        """Return the offset of the first unfinished record; None if all have finished."""
        if not self.records:
            return None
        first = self.records[0]
        return self.committable or OffsetAndMetadata(first.offset, first.leader_epoch)


class Lane:
    """Records that are handled one after another. `current` is the one whose attempts have begun."""

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.current: InFlightRecord | None = None
        self._queue: deque[InFlightRecord] = deque()

    def add(self, record: InFlightRecord) -> None:
        """Add a record after all others."""
        self._queue.append(record)

    def next(self) -> InFlightRecord | None:
        """Return the next record that was not dropped; None if there is none."""
        while self._queue:
            record = self._queue.popleft()
            if not record.dropped:
                record.begun = True
                self.current = record
                return record
        return None


class InFlight:
    """All records in flight. `count` is their number, without those that have finished or were dropped."""

    def __init__(self, ordered_by: Ordering | None) -> None:
        self.partitions: dict[TopicPartition, PartitionInFlight] = {}
        self.lanes: dict[Hashable, Lane] = {}
        self.count: int = 0
        self._ordered_by = ordered_by

    def add(self, records: Records[Any, Any], now: float) -> list[Lane]:
        """Add the records of a poll, which returned at `now`. Return the lanes that are new.

        Raise UsageError for a key that is not hashable, before any record is added.
        """
        new: list[Lane] = []
        for key, record in [(self._lane_key(record), record) for record in records]:
            in_flight = self._in_flight(record, now)
            lane = self.lanes.get(key)
            if lane is None:
                lane = self.lanes[key] = Lane(key)
                new.append(lane)
            lane.add(in_flight)
            in_flight.partition.add(in_flight)
            self.count += 1
        for tp, end in records.next_offsets().items():
            self._partition(tp).position_moved(end)
        return new

    def end(self, record: InFlightRecord, *, finished: bool) -> None:
        """Note that no attempt of this record will follow. `finished`: its offset may be committed."""
        if record.state is not HandlingState.ENDED:
            record.state, record.scope = HandlingState.ENDED, None
            self.count -= 1
        if finished:
            record.partition.finish(record)

    def next(self, lane: Lane) -> InFlightRecord | None:
        """Return the next record of a lane. None: the lane is empty, and ends."""
        record = lane.next()
        if record is None:
            del self.lanes[lane.key]
        return record

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Begin no record of these partitions any more."""
        for tp in partitions:
            if (partition := self.partitions.get(tp)) is not None:
                self._drop(partition)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Remove these partitions: what still runs of them is not committed by this consumer."""
        for tp in partitions:
            if (partition := self.partitions.pop(tp, None)) is not None:
                self._drop(partition)
                for record in partition.records:
                    record.cancel()

    def running(self, partitions: Iterable[TopicPartition]) -> list[InFlightRecord]:
        """Return the records of these partitions whose handlers are running."""
        found = (self.partitions[tp] for tp in partitions if tp in self.partitions)
        return [one for each in found for one in each.records if one.state is HandlingState.RUNNING]

    def _drop(self, partition: PartitionInFlight) -> None:
        for record in partition.records:
            if record.state is HandlingState.ENDED:
                continue
            record.drop()
            if not record.begun:
                self.end(record, finished=False)

    def _in_flight(self, record: Record[Any, Any], now: float) -> InFlightRecord:
        tp = TopicPartition(record.topic, record.partition)
        partition = self._partition(tp)
        if not partition.follows(record.offset):
            # The position went back. What is in flight from after it is delivered again.
            self._drop(self.partitions.pop(tp))
            partition = self._partition(tp)
        return InFlightRecord(record, record.offset, record.leader_epoch, partition, now)

    def _partition(self, tp: TopicPartition) -> PartitionInFlight:
        partition = self.partitions.get(tp)
        if partition is None:
            partition = self.partitions[tp] = PartitionInFlight(tp)
        return partition

    def _lane_key(self, record: Record[Any, Any]) -> Hashable:
        """Return what all records that are handled in order have in common."""
        if self._ordered_by == "partition":
            return record.topic, record.partition
        if self._ordered_by is None or record.key is None:
            return record.topic, record.partition, None, record.offset
        key = (record.topic, record.partition, record.key)
        try:
            hash(key)
        except TypeError:
            raise UsageError(
                f"The key of {record.topic}-{record.partition} offset {record.offset} is a "
                f"{type(record.key).__name__}, which is not hashable, so records cannot be ordered by it. Let "
                'key_deserializer return text or bytes, or use ordered_by="partition".'
            ) from None
        return key
