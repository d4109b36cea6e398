"""Bugs of fetching and of the buffer, M-26 to M-43 and M-121."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from kclient.errors import CorruptBatchError
from kclient.fetch import plan, response
from kclient.fetch import request as request_module
from kclient.fetch.buffer import CompletedFetch, FetchBuffer, MemoryBudget, ResponseMemory
from kclient.fetch.delivery import DecodeTask, RecordDelivery
from kclient.fetch.response import FetchResponseHandler
from kclient.positions.table import Positions
from kclient.protocol.errors import FENCED_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER
from kclient.records import reader
from kclient.records.batch import Batch
from kclient.records.reader import Chunk, PartitionReader
from kclient.types import LeaderAndEpoch, TopicPartition
from tests.simulation.mutants import plans
from tests.simulation.mutants.reading_scripts import (
    damage_beside,
    error_beside,
    follower_left_behind,
    moved_leader,
)
from tests.simulation.mutants.surfacing import fetched, surface
from tests.simulation.mutants.table import Patch, mutant

OTHERS_LEAD = (NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH)


@mutant("M-26", "I-04", seed=47)
def drop_head(patch: Patch) -> None:
    """Drop the head of a buffer in 2 % of reads."""

    def take(self: CompletedFetch, max_records: int, config: Any, most_bytes: int) -> Chunk:
        chunk: Chunk = before(self, max_records, config, most_bytes)
        if chunk.runs and next(reads) % 50 == 0:
            del chunk.runs[0]
        return chunk

    reads = itertools.count(1)
    before = patch.put(CompletedFetch, "take", take)


@mutant("M-27", "I-06", "I-03", seed=72)
def duplicate_last_batch(patch: Patch) -> None:
    """Deliver the last batch of a response twice if another follows."""

    def add(self: FetchBuffer, fetches: Sequence[CompletedFetch]) -> None:
        followed.update(id(self.queue(one.tp)[0]) for one in fetches if self.queue(one.tp))
        before_add(self, fetches)

    def take(self: CompletedFetch, max_records: int, config: Any, most_bytes: int) -> Chunk:
        chunk: Chunk = before_take(self, max_records, config, most_bytes)
        if self.exhausted and chunk.runs and id(self) in followed:
            chunk.runs.append(chunk.runs[-1])
        followed.discard(id(self))
        return chunk

    followed: set[int] = set()
    before_add = patch.put(FetchBuffer, "add", add)
    before_take = patch.put(CompletedFetch, "take", take)


@mutant("M-31", "I-26", "I-22", "I-02", seed=124)
def old_leader_epoch(patch: Patch) -> None:
    """Ask the next leader with the epoch of the one before, again and again."""

    def follow_leader(self: Positions, tp: TopicPartition, leader: Any, *, can_validate: bool) -> None:
        position = self.state(tp).position
        if position is not None and position.leader.epoch is not None:
            leader = LeaderAndEpoch(leader.node_id, position.leader.epoch)
        before(self, tp, leader, can_validate=can_validate)

    before = patch.put(Positions, "follow_leader", follow_leader)


@mutant("M-32", "I-22", look=moved_leader)
def not_leader_is_empty(patch: Patch) -> None:
    """Take NOT_LEADER_OR_FOLLOWER for a response without records: do not update metadata."""

    def take_error(
        self: FetchResponseHandler, node_id: int, asked: Any, code: int, state: Any, frame: Any
    ) -> Any:
        if code in OTHERS_LEAD:
            self.backoffs.failed(asked.tp, node_id)
            return None
        return before(self, node_id, asked, code, state, frame)

    before = patch.put(FetchResponseHandler, "_handle_error", take_error)
    patch.put(response, "NAMES_NEW_LEADER", frozenset())


@mutant("M-33", "I-22", look=follower_left_behind)
def keep_preferred_replica(patch: Patch) -> None:
    """Read from the preferred replica for ever."""
    patch.put(plan, "_drop_read_replica", lambda *_: False)


@mutant("M-34", "I-11", seed=2)
def deliver_revoked(patch: Patch) -> None:
    """Deliver what a Fetch brings for a partition that was revoked meanwhile."""

    def take_one(
        self: FetchResponseHandler, node_id: int, asked: Any, partition: Any, frame: ResponseMemory
    ) -> Any:
        if asked.tp not in self._positions and partition.records and not partition.error_code:
            late.extend([fetched(asked, partition, frame)])
        return before(self, node_id, asked, partition, frame)

    late = surface(patch)
    before = patch.put(FetchResponseHandler, "_handle_partition", take_one)


@mutant("M-35", "I-32", seed=162)
def no_budget(patch: Patch) -> None:
    """Fetch however much is buffered."""

    def grant(self: MemoryBudget, partitions: int, nodes: int) -> int:
        return min(self._config.fetch_max_bytes, partitions * self._config.max_partition_fetch_bytes)

    patch.put(MemoryBudget, "grant", grant)


class Fixed(dict[TopicPartition, int]):
    """Who came first stays first."""

    def __delitem__(self, tp: TopicPartition) -> None: ...

    def __setitem__(self, tp: TopicPartition, turn: int) -> None:
        self.setdefault(tp, turn)


@mutant("M-36", "I-29", seed=3, look=plans.looking_at(plans.ONE_BY_ONE))
def no_rotation(patch: Patch) -> None:
    """Serve the partitions in the same order always."""

    def add(self: FetchBuffer, fetches: Sequence[CompletedFetch]) -> None:
        add_before(self, fetches)
        self._ready = OrderedDict.fromkeys(sorted(self._ready))

    def begin(self: FetchResponseHandler, *arguments: Any) -> None:
        begin_before(self, *arguments)
        self.fetch_order = Fixed()

    begin_before = patch.put(FetchResponseHandler, "__init__", begin)
    add_before = patch.put(FetchBuffer, "add", add)


@mutant("M-37", "I-22", look=error_beside)
def error_stops_others(patch: Patch) -> None:
    """Skip the partitions after one with an error in a response."""

    def take(self: FetchResponseHandler, node_id: int, session: Any, answer: Any) -> Any:
        useful = before(self, node_id, session, answer)
        codes = [one.error_code for topic in answer.responses for one in topic.partitions]
        if any(codes) and len(session.partitions) > sum(map(bool, codes)):
            for state in filter(None, map(self._positions.find, session.partitions)):
                state.paused = True
        return useful

    before = patch.put(FetchResponseHandler, "handle", take)


@mutant("M-38", "I-04", look=damage_beside)
def raise_after_draining(patch: Patch) -> None:
    """Raise the error that ended decoding although records were taken: they are lost."""

    def finish(self: RecordDelivery, task: DecodeTask) -> Any:
        records = before(self, task)
        if task.decode_error is not None:
            raise task.decode_error
        return records

    before = patch.put(RecordDelivery, "finish", finish)


@mutant("M-39", "I-05", seed=3)
def cut_batch_is_corrupt(patch: Patch) -> None:
    """Call a response corrupt whose end cuts a batch off."""

    def batch_at(field: bytes, position: int) -> Batch | None:
        batch = before(field, position)
        if batch is None and position < len(field):
            raise CorruptBatchError("the last batch is cut off", base_offset=0)
        return batch

    before = patch.put(reader, "batch_at", batch_at)


@mutant("M-40", "I-01", "I-04", seed=9)
def skip_damaged(patch: Patch) -> None:
    """Go past a batch with a wrong checksum without a word."""

    def enter(self: PartitionReader, batch: Batch) -> None:
        try:
            batch.check_crc()
        except CorruptBatchError:
            self._leave(batch)
        else:
            before(self, batch)

    before = patch.put(PartitionReader, "_enter", enter)


@mutant("M-41", "I-05", seed=9)
def check_no_crc(patch: Patch) -> None:
    """Do not verify checksums."""
    patch.put(Batch, "check_crc", lambda self: None)


@mutant("M-42", "I-22", "I-02", seed=63)
def too_large_for_partition(patch: Patch) -> None:
    """Throw away what is larger than max_partition_fetch_bytes."""

    def take_one(
        self: FetchResponseHandler, node_id: int, asked: Any, partition: Any, frame: ResponseMemory
    ) -> Any:
        if len(partition.records or b"") > self._config.max_partition_fetch_bytes:
            return None
        return before(self, node_id, asked, partition, frame)

    before = patch.put(FetchResponseHandler, "_handle_partition", take_one)


@mutant("M-43", "I-02", seed=180)
def stop_at_last_stable(patch: Patch) -> None:
    """Read up to the last stable offset only, whatever the isolation level."""

    def build_request(step: Any, max_bytes: int, config: Any) -> Any:
        request = before(step, max_bytes, config)
        request.isolation_level = 1
        return request

    before = patch.put(request_module, "build_request", build_request)


@mutant("M-121", "I-03", "I-06", seed=9)
def order_of_arrival(patch: Patch) -> None:
    """Deliver the responses of two nodes about one partition in the order in which they come."""

    def take_one(
        self: FetchResponseHandler, node_id: int, asked: Any, partition: Any, frame: ResponseMemory
    ) -> Any:
        state = self._positions.find(asked.tp)
        old = state is not None and state.position is not None and state.position.leader.node_id != node_id
        if old and partition.records and not partition.error_code:
            late.extend([fetched(asked, partition, frame)])
        return before(self, node_id, asked, partition, frame)

    late = surface(patch)
    before = patch.put(FetchResponseHandler, "_handle_partition", take_one)
