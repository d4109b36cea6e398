"""Bugs of `kclient.handlers`, M-138 to M-149."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from kclient.handlers.in_flight import HandlingState, InFlight, InFlightRecord, PartitionInFlight
from kclient.handlers.runner import HandlerRunner
from kclient.records.records import Record
from kclient.types import OffsetAndMetadata, TopicPartition
from tests.simulation.handling_plans import run_handled
from tests.simulation.mutants.table import Patch, Symptoms, mutant


def handled(seed: int) -> Symptoms:
    """A group whose members run handlers."""
    return [(violation.invariant, str(violation)) for violation in run_handled(seed).violations]


@mutant("M-138", "I-01", look=handled)
def highest_finished_committed(patch: Patch) -> None:
    """Commit the offset after the record that has finished last, whatever is unfinished before it."""

    def finish(self: PartitionInFlight, record: InFlightRecord) -> None:
        epoch = record.leader_epoch
        before(self, record)
        self.committable = OffsetAndMetadata(record.offset + 1, epoch)

    before = patch.put(PartitionInFlight, "finish", finish)


@mutant("M-139", "I-01", look=handled)
def position_committed(patch: Patch) -> None:
    """Commit the position, as a loop does that hands records over to tasks and commits after each poll."""

    def position_moved(self: PartitionInFlight, end: OffsetAndMetadata) -> None:
        before(self, end)
        self.committable = end

    before = patch.put(PartitionInFlight, "position_moved", position_moved)


@mutant("M-140", "I-41", look=handled)
def keys_not_ordered(patch: Patch) -> None:
    """Give each record a lane of its own."""

    def lane_key(self: InFlight, record: Record[Any, Any]) -> Any:
        return record.topic, record.partition, None, record.offset

    patch.put(InFlight, "_lane_key", lane_key)


@mutant("M-141", "I-41", look=handled)
def retry_overtaken(patch: Patch) -> None:
    """Let the lane go on with the next record of the key while one waits for another try."""

    async def handle(self: HandlerRunner, record: InFlightRecord) -> bool:
        trying = asyncio.ensure_future(before(self, record))
        while not trying.done() and record.state is not HandlingState.BACKING_OFF:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        if trying.done():
            return trying.result()
        trying.add_done_callback(
            lambda done: done.cancelled() or self._in_flight.end(record, finished=done.result())
        )
        return False

    before = patch.put(HandlerRunner, "_handle", handle)


@mutant("M-142", "I-42", look=handled)
def partitions_not_paused(patch: Patch) -> None:
    """Poll on, however much is in flight."""
    patch.put(HandlerRunner, "_pause", lambda self, partitions: None)


@mutant("M-143", "I-42", seed=2, look=handled)
def slots_ignored(patch: Patch) -> None:
    """Run the handlers of all lanes at once."""

    def init(self: HandlerRunner, *args: Any, **options: Any) -> None:
        before(self, *args, **options)
        self._slots = asyncio.Semaphore(1_000_000)

    before = patch.put(HandlerRunner, "__init__", init)


@mutant("M-144", "I-01", look=handled)
def failed_record_passed_over(patch: Patch) -> None:
    """Count a record as finished when its retries are over and nothing keeps dead letters."""

    async def give_up(self: HandlerRunner, record: InFlightRecord, failure: Exception) -> bool:
        return True if self.options.dead_letter is None else await before(self, record, failure)

    before = patch.put(HandlerRunner, "_give_up", give_up)


@mutant("M-145", "I-01", seed=2, look=handled)
def dropped_record_finished(patch: Patch) -> None:
    """Count records as finished that are dropped before they have begun."""

    def drop(self: InFlight, partition: PartitionInFlight) -> None:
        waiting = [one for one in partition.records if not one.begun]
        before(self, partition)
        for one in waiting:
            partition.finish(one)

    before = patch.put(InFlight, "_drop", drop)


@mutant("M-146", "I-43", seed=2, look=handled)
def revoked_at_once(patch: Patch) -> None:
    """Give revoked partitions away while their handlers run."""

    async def wait(self: HandlerRunner, partitions: Any, timeout: float) -> None: ...

    patch.put(HandlerRunner, "_wait_for_running", wait)


@mutant("M-147", "I-02", "I-41", look=handled)
def positions_not_moved_back(patch: Patch) -> None:
    """Leave the positions after records that a run has polled and not handled."""
    patch.put(HandlerRunner, "_rewind", lambda self: None)


@mutant("M-148", "I-43", seed=2, look=handled)
def revoked_records_begun(patch: Patch) -> None:
    """Handle what waits of partitions that were revoked or lost."""

    def forget(self: InFlight, partitions: Iterable[TopicPartition]) -> None:
        for tp in partitions:
            self.partitions.pop(tp, None)

    patch.put(InFlight, "forget", forget)
    patch.put(InFlight, "drop", lambda self, partitions: None)


@mutant("M-149", "I-41", look=handled)
def lane_goes_on_after_failure(patch: Patch) -> None:
    """Come to the next record of a key after one that ended the run."""

    def stop(self: HandlerRunner) -> None:
        self._stopping = True
        self._core.changed.notify()

    patch.put(HandlerRunner, "stop", stop)
