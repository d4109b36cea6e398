"""HandlerProgress: what a run of handlers is doing, and what it has done so far."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from kclient.handlers.in_flight import HandlingState, InFlight, PartitionInFlight
from kclient.text import LONGEST_TEXT, format_count, printable
from kclient.types import TopicPartition


@attrs.frozen
class PartitionProgress:
    """The records in flight of one partition.

    `oldest` is the offset of the first unfinished record, `oldest_seconds` the time since poll() returned it,
    `attempts` how often its handler was called, `failure` the class of the exception that it raised last, "" if none.
    `held_back` records after it have finished, and are committed when it has.
    """

    unfinished: int
    oldest: int
    oldest_seconds: float
    attempts: int
    failure: str
    held_back: int

    def __str__(self) -> str:
        state = f"{self.unfinished} unfinished, oldest offset {self.oldest} for {self.oldest_seconds:.1f} s"
        if self.failure:
            state += f" (attempt {self.attempts}, the last one raised {self.failure})"
        if self.held_back:
            state += f"; {self.held_back} finished after it wait for it"
        return state


@attrs.frozen(repr=False)
class HandlerProgress:
    """A run of handlers at one moment. `str()` is a table.

    `in_flight` records were polled and have not finished: `running`, `backing_off` before another try, the others wait.
    `handled`, `retries` and `dead_letters` count since the run began. `partitions` holds those with unfinished records.
    """

    in_flight: int
    running: int
    backing_off: int
    handled: int
    retries: int
    dead_letters: int
    partitions: Mapping[TopicPartition, PartitionProgress]

    @property
    def summary(self) -> str:
        """One line about the run."""
        waiting = self.in_flight - self.running - self.backing_off
        return (
            f"{format_count(self.in_flight, 'record')} in flight ({self.running} running, {waiting} waiting, "
            f"{self.backing_off} backing off); {self.handled} handled, "
            f"{format_count(self.retries, 'retry', 'retries')}, {format_count(self.dead_letters, 'dead letter')}"
        )

    def __str__(self) -> str:
        names = {tp: printable(str(tp)) for tp in self.partitions}
        width = max(map(len, names.values()), default=0)
        rows = [f"{names[tp]:<{width}}  {state}" for tp, state in self.partitions.items()]
        return "\n".join(printable(line, LONGEST_TEXT) for line in (self.summary, *rows))

    __repr__ = __str__


@attrs.define
class HandlerCounts:
    """What a run has done so far."""

    handled: int = 0
    retries: int = 0
    dead_letters: int = 0


def progress_of(in_flight: InFlight, counts: HandlerCounts, now: float) -> HandlerProgress:
    """Return the progress of a run. `now` is the loop's time."""
    states = [lane.current.state for lane in in_flight.lanes.values() if lane.current is not None]
    partitions = {
        tp: partition_progress(partition, now)
        for tp, partition in sorted(in_flight.partitions.items())
        if partition.records
    }
    return HandlerProgress(
        in_flight.count,
        states.count(HandlingState.RUNNING),
        states.count(HandlingState.BACKING_OFF),
        counts.handled,
        counts.retries,
        counts.dead_letters,
        partitions,
    )


def partition_progress(partition: PartitionInFlight, now: float) -> PartitionProgress:
    """Return the progress of a partition that has unfinished records."""
    oldest, unfinished = partition.records[0], partition.unfinished
    return PartitionProgress(
        unfinished,
        oldest.offset,
        now - oldest.since,
        oldest.attempts,
        oldest.failure,
        len(partition.records) - unfinished,
    )
