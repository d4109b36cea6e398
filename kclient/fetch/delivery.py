"""From the buffer to the records that poll() returns, in three steps: the second may run in another thread.

    begin     on the loop: takes fetchable partitions whose data begin at the position out of the ready queue
    decode    any thread: CRC, decompression, deserializers; ends at the first error (`DecodeTask`)
    finish    on the loop: checks each partition again, moves positions, returns Records

Only `finish` moves positions. Between `begin` and `finish` a seek, a pause or a revocation can come: the position
decides again which decoded records count. For example max_records 5, a-0 holds offsets 10 to 12, a-1 20 to 29:

    begin     a-0 at 10, a-1 at 20
    decode    a-0: 10 11 12      a-1: 20 21
    seek      a-0 to 0                             while decoding
    finish    a-0 is at 0, not at 10: dropped      a-1 moves to 22, returns 20 21

Errors, and where each is kept:

    the broker's error code for a partition     CompletedFetch.error_code       `begin` raises it or resets the position
    what ended the decoding                     DecodeTask.decode_error, with   `finish` raises it if there is no record
                                                the entry in error_entry        to return, else a later poll meets it
    a damaged batch, met for the first time     _refetched                      fetched again, not raised: a bit may
                                                                                have flipped on the way
    raised, and the user has not moved on yet   CompletedFetch.blocking_error   the partition waits after all others, so
                                                                                one bad record does not stop them
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

import attrs

from kclient.config import Config
from kclient.errors import CorruptBatchError, KclientError, TooManyHeadersError
from kclient.fetch.buffer import CompletedFetch, FetchBuffer
from kclient.log import TRACE, get_logger
from kclient.metrics.fetching import FetchMetrics
from kclient.metrics.registry import Registry
from kclient.network.errors import broker_error
from kclient.protocol.errors import CORRUPT_MESSAGE, OFFSET_OUT_OF_RANGE, TOPIC_AUTHORIZATION_FAILED
from kclient.records.decoder import is_native
from kclient.records.reader import Chunk
from kclient.records.records import Records
from kclient.types import DeserializerFunction, TopicPartition

if TYPE_CHECKING:
    from kclient.positions.state import PartitionState
    from kclient.positions.table import Positions

logger: Final = get_logger("kclient.fetch")

FIRST_PIECE: Final = 512  # records: a usual poll
# The native decoder reads so many records in 0.2 ms. Each piece becomes columns of its own, which cost more than that.
NATIVE_PIECE: Final = 16_384
PIECE_BYTES: Final = 1024 * 1024  # of decompressed batches, which take a few milliseconds
GROWTH: Final = 8


@attrs.frozen
class DecodedChunk:
    """Decoded records of one entry of the buffer, from `start_offset` on."""

    fetch: CompletedFetch
    start_offset: int
    chunk: Chunk


class DecodeTask:
    """The decoding for one poll.

    `picked`: the entries of the buffer to decode. `ahead`: the poll has records already, a later one meets the error.
    After `decode`, `decoded` contains the records in order, `decode_error` the error that ended the decoding early and
    `error_entry` its entry. `runs_user_code`: there is a deserializer to call; `may_block`: and it may wait.
    """

    def __init__(
        self,
        picked: Sequence[CompletedFetch],
        max_records: int,
        config: Config,
        max_unpacked_bytes: int,
        *,
        ahead: bool,
    ) -> None:
        self.picked = picked
        self.ahead = ahead
        self.decoded: list[DecodedChunk] = []
        self.decode_error: KclientError | None = None
        self.error_entry: CompletedFetch | None = None
        self._to_do = deque(picked)
        self._wanted = max_records
        self._config = config
        self.runs_user_code: Final = (
            config.key_deserializer is not None or config.value_deserializer is not None
        )
        self.may_block: Final = any(map(_may_block, (config.key_deserializer, config.value_deserializer)))
        self._unpacked_bytes_left = max_unpacked_bytes
        self._piece = 1 if self.runs_user_code else NATIVE_PIECE if is_native() else FIRST_PIECE

    def decode(self, budget_seconds: float | None = None) -> bool:
        """Decode up to `max_records` records. Return True when done. Any thread may call this, one at a time.

        Decode fewer if their batches take `max_unpacked_bytes` decompressed: the next poll opens the next batch.

        With a budget, return False when it is used up, so that a caller on the loop can let other tasks run. Exceptions
        that are not errors of kclient (KeyboardInterrupt) are not caught; the next `begin` abandons the task then.
        """
        if budget_seconds is not None:
            return self._decode_within(budget_seconds)
        while self._has_more:
            self._take(self._to_do[0], self._wanted)
        return True

    @property
    def _has_more(self) -> bool:
        return bool(self._to_do) and self._wanted > 0

    def _decode_within(self, budget_seconds: float) -> bool:
        """Decode in pieces that grow while they are quick, because the time of a deserializer is not known."""
        clock = asyncio.get_running_loop().time
        end = clock() + budget_seconds
        while self._has_more:
            begun = clock()
            self._take(self._to_do[0], min(self._piece, self._wanted), PIECE_BYTES)
            now = clock()
            if now >= end:
                break
            if now - begun < budget_seconds / (2 * GROWTH):
                self._piece *= GROWTH
        return not self._has_more

    def _take(self, fetch: CompletedFetch, count: int, max_bytes: int = sys.maxsize) -> None:
        start_offset = fetch.next_offset
        try:
            chunk = fetch.take(count, self._config, min(max_bytes, self._unpacked_bytes_left))
        except KclientError as exc:
            self.decode_error, self.error_entry = exc, fetch
            self._to_do.clear()
            return
        taken = len(chunk)
        if chunk.next_offset != start_offset:
            self.decoded.append(DecodedChunk(fetch, start_offset, chunk))
            self._wanted -= taken
        if taken:  # without records (all dropped or aborted) the decompressed batch is free again
            self._unpacked_bytes_left -= chunk.unpacked_bytes
        if fetch.exhausted:
            self._to_do.popleft()
        elif not taken and self._unpacked_bytes_left <= 0:
            self._to_do.clear()


def _may_block(deserializer: DeserializerFunction[Any] | None) -> bool:
    return bool(getattr(getattr(deserializer, "__self__", None), "may_block", False))


class RecordDelivery:
    """Decode what is buffered at the position, and return it to polls."""

    def __init__(
        self,
        positions: Positions,
        buffer: FetchBuffer,
        config: Config,
        metrics: FetchMetrics | None = None,
    ) -> None:
        self._metrics = metrics or FetchMetrics(Registry())
        self._committed_only = config.isolation_level == "read_committed"
        self._positions = positions
        self._buffer = buffer
        self._config = config
        self._seen = -1
        self._task: DecodeTask | None = None
        # Entries with a batch that is decompressed and not used up.
        self._open: WeakSet[CompletedFetch] = WeakSet()
        # Damaged batches that are fetched again: partition → version of its position, offset.
        self._refetched: dict[TopicPartition, tuple[int, int]] = {}

    # --- begin -----------------------------------------------------------------------------------

    def begin(
        self, max_records: int, *, ahead: bool = False, max_unpacked_bytes: int | None = None
    ) -> DecodeTask | None:
        """Return what a poll may decode now, None if there is nothing. Raise the error of the partition that is next.

        With `ahead` the poll has records already, and an error waits for a later one: None if the next may raise. A
        task decompresses `buffer_memory_bytes` at most, or `max_unpacked_bytes`. Partitions without data cost nothing.
        Pass every task to `finish`. A task that was not passed on, because its poll was cancelled while decoding, is
        abandoned here, and its records are fetched again.
        """
        self._abandon_task()
        if self._seen != self._positions.changed.count:
            self._seen = self._positions.changed.count
            self._buffer.unpark()
            self._forget_damaged()
        picked = self._pick(max_records, ahead=ahead)
        if not picked:
            return None
        if self._open:
            self._close_batches(picked)
        limit = self._config.buffer_memory_bytes if max_unpacked_bytes is None else max_unpacked_bytes
        self._task = DecodeTask(picked, max_records, self._config, limit, ahead=ahead)
        return self._task

    def _close_batches(self, picked: list[CompletedFetch]) -> None:
        """Close the batches of partitions that are not read now (paused, blocked) if they take too much memory."""
        others = [fetch for fetch in self._open if fetch not in picked]
        if sum(fetch.open_bytes for fetch in others) > self._config.buffer_memory_bytes:
            for fetch in others:
                fetch.close_batch()
                self._open.discard(fetch)

    def _note_open(self, picked: Iterable[CompletedFetch]) -> None:
        for fetch in picked:
            if fetch.open_bytes:
                self._open.add(fetch)
            elif self._open:
                self._open.discard(fetch)

    def _pick(self, max_records: int, *, ahead: bool) -> list[CompletedFetch]:
        """Take entries for about so many records out of the ready queue; a blocked one only if there is no other.

        With `ahead`, take neither a blocked one nor one with an error.
        """
        picked: list[CompletedFetch] = []
        blocked: list[CompletedFetch] = []
        expected = 0
        while expected < max_records and (fetch := self._buffer.take_ready()) is not None:
            # Records first: this poll returns them, the next one raises.
            if fetch.error_code and (ahead or picked or blocked):
                self._buffer.put_back(fetch.tp, in_front=True)
                break
            if not self._may_deliver(fetch):
                continue
            if fetch.is_blocked:
                blocked.append(fetch)
            else:
                picked.append(fetch)
                expected += fetch.expected_records
        if not picked and blocked and not ahead:
            picked.append(blocked.pop(0))
        for fetch in blocked:
            self._buffer.put_back(fetch.tp, in_front=False)
        return picked

    def _may_deliver(self, fetch: CompletedFetch) -> bool:
        """Return whether the entry may be decoded now; if not, drop it, park it, or handle its error."""
        tp = fetch.tp
        state = self._positions.find(tp, fetch.position_version)
        if state is None or state.position is None:
            self._drop(tp, "the position was moved or the partition revoked meanwhile")
        elif state.position.offset != fetch.next_offset:
            self._drop(tp, f"it begins at {fetch.next_offset}, the position is {state.position.offset}")
        elif fetch.error_code:
            self._handle_error_code(fetch)
        elif state.is_fetchable:
            return True
        else:
            self._buffer.park(tp)
        return False

    def _drop(self, tp: TopicPartition, why: str) -> None:
        logger.debug("Dropping the fetched data of %s: %s", tp, why)
        self._buffer.drop([tp])

    def _handle_error_code(self, fetch: CompletedFetch) -> None:
        """Mark the partition out of range, or raise the error."""
        self._buffer.remove_head(fetch)
        self._buffer.put_back(fetch.tp, in_front=False)
        if fetch.error_code == OFFSET_OUT_OF_RANGE:
            logger.info("Offset %d of %s is out of range", fetch.fetch_offset, fetch.tp)
            self._positions.mark_out_of_range(fetch.tp)
            return
        topics = {fetch.tp.topic: None}
        if fetch.error_code == TOPIC_AUTHORIZATION_FAILED:
            topics |= self._other_unauthorized_topics()
        raise fetch_error(fetch, list(topics))

    def _other_unauthorized_topics(self) -> dict[str, None]:
        """Remove all buffered authorization errors and return their topics, so that one exception names them all."""
        topics: dict[str, None] = {}
        for tp in self._buffer.partitions():
            head = self._buffer.queue(tp)[0]
            if head.error_code == TOPIC_AUTHORIZATION_FAILED and self._positions.find(
                tp, head.position_version
            ):
                self._buffer.remove_head(head)
                topics[tp.topic] = None
        return topics

    # --- finish ----------------------------------------------------------------------------------

    def finish(self, task: DecodeTask) -> Records[Any, Any]:
        """Return the records of a decoded task, after moving the positions of their partitions.

        The result is empty but has `next_offsets()` if there were only control batches, aborted or compacted data.
        Raise the error that ended the decoding if the poll has no record to return; for a damaged batch, the second
        time.
        """
        self._task = None
        self._note_open(task.picked)
        delivered = [decoded.chunk for decoded in task.decoded if self._deliver(decoded)]
        self._requeue(task)
        exc, entry = task.decode_error, task.error_entry
        if (
            exc is not None
            and entry is not None
            and not task.ahead
            and not any(map(len, delivered))
            and self._is_current(entry)
            and not self._refetches(entry, exc)
        ):
            self._buffer.block(entry, exc.text)
            raise exc
        return Records(delivered, keeps_errors=self._config.on_decode_error == "keep")

    def _refetches(self, entry: CompletedFetch, exc: KclientError) -> bool:
        """Drop a damaged batch, so that it is fetched again. Return False if this was done before."""
        place = (entry.position_version, entry.next_offset)
        if isinstance(exc, TooManyHeadersError) or not isinstance(exc, CorruptBatchError):
            return False
        if self._refetched.get(entry.tp) == place:
            return False
        logger.warning("A batch is damaged and will be fetched once more: %s", exc.text)
        self._refetched[entry.tp] = place
        self._buffer.drop([entry.tp])
        # Other partitions may have data. Without this, the poll that returns nothing now would wait for new data.
        self._buffer.changed.notify()
        return True

    def _forget_damaged(self) -> None:
        """Forget damaged batches of partitions that were moved or revoked meanwhile."""
        refetched = self._refetched.items()
        self._refetched = {tp: place for tp, place in refetched if self._positions.find(tp, place[0])}

    def _deliver(self, decoded: DecodedChunk) -> bool:
        """Move the position if it is still where the records begin. Return whether it was."""
        fetch, chunk = decoded.fetch, decoded.chunk
        if not self._is_at(fetch, decoded.start_offset):
            self._drop(fetch.tp, "seek, pause or revocation came while it was decoded")
            return False
        fetch.blocking_error = None
        self._refetched.pop(fetch.tp, None)
        self._positions.advance(fetch.tp, chunk.next_offset, chunk.leader_epoch)
        self._measure(fetch, chunk)
        count, old, new = len(chunk), decoded.start_offset, chunk.next_offset
        logger.log(TRACE, "%s: handed out %d records, position %d → %d", fetch.tp, count, old, new)
        return True

    def _measure(self, fetch: CompletedFetch, chunk: Chunk) -> None:
        """Record sizes, and lag and lead of the new position."""
        state, size_bytes, records = self._positions.state(fetch.tp), chunk.size_bytes, len(chunk)
        end = state.last_stable_offset if self._committed_only else state.high_watermark
        lag = None if end is None else max(0, end - chunk.next_offset)
        start = state.log_start_offset
        lead = None if start is None else max(0, chunk.next_offset - start)
        self._metrics.handed_out(fetch.tp, size_bytes, records, lag, lead)
        if fetch.memory.sizes is not None:
            fetch.memory.sizes.add(fetch.tp.topic, size_bytes, records)

    def _is_at(self, fetch: CompletedFetch, offset: int) -> bool:
        state: PartitionState | None = self._positions.find(fetch.tp, fetch.position_version)
        return (
            state is not None
            and state.is_fetchable
            and state.position is not None
            and state.position.offset == offset
        )

    def _is_current(self, entry: CompletedFetch) -> bool:
        """Return whether the entry that could not be decoded is still buffered, and its partition still there."""
        is_buffered = not entry.exhausted and entry in self._buffer.queue(entry.tp)
        return is_buffered and self._is_at(entry, entry.next_offset)

    def _requeue(self, task: DecodeTask) -> None:
        """Remove used-up entries. The others are first at the next poll, in the same order."""
        for fetch in task.picked:
            if fetch.exhausted:
                self._buffer.remove_head(fetch)
                self._buffer.put_back(fetch.tp, in_front=False)
        for fetch in reversed(task.picked):
            if not fetch.exhausted and fetch in self._buffer.queue(fetch.tp):
                self._buffer.put_back(fetch.tp, in_front=True)

    def _abandon_task(self) -> None:
        """Drop what a cancelled poll decoded: its readers have moved on, its positions have not."""
        task, self._task = self._task, None
        if task is not None:
            self._buffer.drop(dict.fromkeys(decoded.fetch.tp for decoded in task.decoded))
            for fetch in reversed(task.picked):
                self._buffer.put_back(fetch.tp, in_front=True)


def fetch_error(fetch: CompletedFetch, topics: Sequence[str]) -> KclientError:
    """Return the error that a poll raises for the error code of a partition."""
    if fetch.error_code != CORRUPT_MESSAGE:
        doing = f"Fetching {fetch.tp} at offset {fetch.fetch_offset}"
        return broker_error(fetch.error_code, doing, topics=topics)
    return CorruptBatchError(
        f"The broker cannot read {fetch.tp} at offset {fetch.fetch_offset}: CORRUPT_MESSAGE (2). Its log segment is "
        f"damaged. Look at the broker's log, or seek past offset {fetch.fetch_offset}.",
        topic=fetch.tp.topic,
        partition=fetch.tp.partition,
        base_offset=fetch.fetch_offset,
    )
