"""Bugs of positions, M-11 to M-25."""

from __future__ import annotations

from typing import Any

import attrs

from kclient.consumer import AsyncConsumer, close
from kclient.consumer.core import ConsumerCore
from kclient.fetch.delivery import DecodeTask
from kclient.fetch.fetcher import Fetcher
from kclient.fetch.response import FetchResponseHandler
from kclient.group import offset_fetch
from kclient.positions.state import EARLIEST, FETCHING, PartitionState
from kclient.positions.table import Positions
from kclient.protocol.errors import OFFSET_OUT_OF_RANGE
from kclient.records import reader
from kclient.records.reader import PartitionReader
from kclient.types import OffsetAndMetadata, TopicPartition
from tests.simulation.mutants.reading_scripts import cut_and_committed
from tests.simulation.mutants.surfacing import surface
from tests.simulation.mutants.table import Patch, mutant


@mutant("M-11", "I-15", seed=2)
def reset_on_disconnect(patch: Patch) -> None:
    """Reset positions when a Fetch finds no response."""

    def failed(self: Fetcher, node: Any, error: Any) -> None:
        before(self, node, error)
        for tp, one in node.requested.items():
            if self._positions.find(tp, one.position_version) is not None:
                self._positions.request_offset_reset(tp, EARLIEST)

    before = patch.put(Fetcher, "_request_failed", failed)


@mutant("M-12", "I-15", seed=122)
def reset_by_follower(patch: Patch) -> None:
    """Reset where a follower says that the offset is out of range."""

    def take_error(
        self: FetchResponseHandler, node_id: int, asked: Any, code: int, state: Any, frame: Any
    ) -> Any:
        if code == OFFSET_OUT_OF_RANGE and state.position is not None:
            node_id = state.position.leader.node_id
        return before(self, node_id, asked, code, state, frame)

    before = patch.put(FetchResponseHandler, "_handle_error", take_error)


@mutant("M-13", "I-11", "I-04", seed=180)
def seek_keeps_buffer(patch: Patch) -> None:
    """Deliver what is buffered of a partition although the application called seek()."""

    def seek(self: AsyncConsumer, partition: TopicPartition, offset: Any) -> None:
        session = self._core
        kept = [one for one in session.buffer.queue(partition) if not one.error_code]
        before(self, partition, offset)
        state = session.positions.state(partition)
        if kept and state.fetch_state is FETCHING and state.position is not None:
            for one in kept:
                one.position_version = state.position_version
            state.position = attrs.evolve(state.position, offset=kept[0].next_offset)
            session.buffer.add(kept)

    before = patch.put(AsyncConsumer, "seek", seek)


@mutant("M-14", "I-04", seed=47)
def late_answer_after_seek(patch: Patch) -> None:
    """Accept the response to a Fetch that was under way when the application called seek()."""

    def take_one(self: FetchResponseHandler, node_id: int, asked: Any, partition: Any, frame: Any) -> Any:
        state = self._positions.find(asked.tp)
        if (
            state is not None
            and state.fetch_state is FETCHING
            and state.position_version != asked.position_version
        ):
            if not self._buffer.queue(asked.tp) and state.position is not None:
                state.position = attrs.evolve(state.position, offset=asked.offset)
            asked = attrs.evolve(asked, position_version=state.position_version)
        return before(self, node_id, asked, partition, frame)

    before = patch.put(FetchResponseHandler, "_handle_partition", take_one)


@mutant("M-15", "I-04", seed=154)
def pause_drops_buffer(patch: Patch) -> None:
    """Drop what is buffered of a partition that is paused, and go on after it."""

    def pause(self: AsyncConsumer, partitions: Any) -> None:
        session = self._core
        before(self, partitions)
        for tp in partitions:
            queue = session.buffer.queue(tp)
            if queue and queue[-1].end_offset is not None and session.positions.position(tp) is not None:
                session.positions.advance(tp, queue[-1].end_offset, None)
                session.buffer.drop([tp])

    before = patch.put(AsyncConsumer, "pause", pause)


@mutant("M-16", "I-11", seed=47)
def hand_out_paused(patch: Patch) -> None:
    """Deliver records of paused partitions."""

    def is_fetchable(self: PartitionState) -> bool:
        return self.fetch_state is FETCHING and not self.pending_revocation and not self.out_of_range

    patch.put(PartitionState, "is_fetchable", property(is_fetchable))


@mutant("M-17", "I-07", seed=72)
def position_of_fetch(patch: Patch) -> None:
    """Move the position when records are fetched, not when they are delivered."""

    async def position(self: AsyncConsumer, partition: TopicPartition, timeout: float | None = None) -> Any:
        session = self._core
        offset = await before(self, partition, timeout)
        ends = [one.end_offset for one in session.buffer.queue(partition) if one.end_offset is not None]
        return max([offset, *ends])

    before = patch.put(AsyncConsumer, "position", position)


@mutant("M-18", "I-22", "I-02", seed=46)
def next_is_behind_last_record(patch: Patch) -> None:
    """Go on after the last record of a batch, which is not always the last offset of the batch."""

    def leave(self: PartitionReader, batch: Any) -> None:
        was = self.next_offset if self._section is not None else None
        before(self, batch)
        if was is not None and self._batch is None:
            self.next_offset = was

    before = patch.put(PartitionReader, "_leave", leave)


def stays_before(patch: Patch, where: Any) -> None:
    """Let the position stay before batches that give no records, where they end a response."""

    def leave(self: PartitionReader, batch: Any) -> None:
        was = self.next_offset
        before(self, batch)
        if self._batch is None and where(batch):
            self.next_offset = was

    before = patch.put(PartitionReader, "_leave", leave)


@mutant("M-19", "I-22", "I-02", seed=29)
def control_batch_does_not_advance(patch: Patch) -> None:
    """Stay before a control batch."""
    stays_before(patch, lambda batch: batch.is_control)


@mutant("M-20", "I-22", "I-02", seed=95)
def aborted_answer_does_not_advance(patch: Patch) -> None:
    """Stay before a response that holds nothing but what was aborted."""

    def take(self: DecodeTask, fetch: Any, *limits: int) -> None:
        before(self, fetch, *limits)
        last = self.decoded[-1] if self.decoded else None
        if last is not None and last.fetch is fetch and fetch.aborted_transactions and not len(last.chunk):
            self.decoded.pop()

    before = patch.put(DecodeTask, "_take", take)


@mutant("M-21", "I-06", "I-03", "I-07", seed=47)
def deliver_below_position(patch: Patch) -> None:
    """Deliver the records of a batch that are below the position."""
    patch.put(reader, "bisect_left", lambda offsets, position, first=0: first)


@mutant("M-22", "I-07", seed=180)
def remember_position(patch: Patch) -> None:
    """Go on where one stood when a partition comes back that others had meanwhile."""

    def assign(self: Positions, partitions: Any) -> None:
        known = self.__dict__.setdefault("known", {})
        known |= {tp: state.position for tp, state in self.items() if state.fetch_state is FETCHING}
        had = self.assigned()
        before(self, partitions)
        for tp in self.assigned():
            if isinstance(self, Positions) and tp not in had and (place := known.get(tp)) is not None:
                self.seek(tp, OffsetAndMetadata(place.offset, place.offset_epoch), place.leader)

    before = patch.put(Positions, "assign", assign)


@mutant("M-23", "I-11", seed=180)
def unsubscribe_keeps_buffer(patch: Patch) -> None:
    """Deliver after unsubscribing what was buffered before."""

    async def unsubscribe(session: ConsumerCore, **given: Any) -> None:
        buffer = session.buffer
        kept = [one for tp in buffer.partitions() for one in buffer.queue(tp) if not one.error_code]
        await before(session, **given)
        late.extend(kept)

    late = surface(patch)
    before = patch.put(close, "unsubscribe", unsubscribe)


@mutant("M-24", "I-13", seed=122)
def one_epoch_for_both(patch: Patch) -> None:
    """Keep the epoch of the data and that of the leader in one place."""

    def follow_leader(self: Positions, tp: TopicPartition, leader: Any, *, can_validate: bool) -> None:
        state = self.state(tp)
        if (
            state.position is not None
            and state.position.offset_epoch is not None
            and leader.epoch is not None
        ):
            state.position = attrs.evolve(state.position, offset_epoch=leader.epoch)
        before(self, tp, leader, can_validate=can_validate)

    before = patch.put(Positions, "follow_leader", follow_leader)


@mutant("M-25", "I-13", look=cut_and_committed)
def drop_committed_epoch(patch: Patch) -> None:
    """Forget the leader epoch of a committed offset."""

    def offset(entry: Any) -> OffsetAndMetadata | None:
        found: OffsetAndMetadata | None = before(entry)
        return None if found is None else OffsetAndMetadata(found.offset, None, found.metadata)

    before = patch.put(offset_fetch, "committed_offset", offset)
