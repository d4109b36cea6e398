"""Handing out records: three steps, so that the middle one may run in another thread than the loop.

    begin     on the loop: takes partitions out of the line that are fetchable and whose data begin at the position
    decode    anywhere: CRC, decompression, deserializers; ends with the first failure (`DecodeTask`)
    finish    on the loop: looks at each partition again, moves positions, returns Records

Positions move in `finish` and nowhere else. An error met after records were taken waits for the next poll; the records
are handed out first. A partition whose error was told waits behind all others: one bad record stops nobody else.
"""

from __future__ import annotations

import asyncio
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
from kclient.records.reader import Chunk
from kclient.records.records import Records
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.positions.state import PartitionState
    from kclient.positions.table import Positions

logger = get_logger("kclient.fetch")

QUICK_PIECE: Final = 64  # records that are only cut out of their batch take a fraction of a millisecond
GROWTH: Final = 8


@attrs.frozen
class DecodedChunk:
    """Records of one entry, from `start_offset` on."""

    fetch: CompletedFetch
    start_offset: int
    chunk: Chunk


class DecodeTask:
    """`picked` was taken out of the buffer's line. After `decode`, `taken` holds the records in order, `failure` what
    ended them early and `failed` the entry that it belongs to. `runs_user_code`: there is a deserializer to call.
    """

    def __init__(self, picked: Sequence[CompletedFetch], max_records: int, config: Config) -> None:
        self.picked = picked
        self.taken: list[DecodedChunk] = []
        self.failure: KclientError | None = None
        self.failed: CompletedFetch | None = None
        self._to_do = deque(picked)
        self._wanted = max_records
        self._config = config
        self.runs_user_code = config.key_deserializer is not None or config.value_deserializer is not None
        self._unpacked_bytes_left = config.buffer_memory_bytes
        self._piece = 1 if self.runs_user_code else QUICK_PIECE

    def decode(self, budget_seconds: float | None = None) -> bool:
        """Decode up to the wanted number of records; True when done. Any thread, one at a time.

        Fewer where their batches take `buffer_memory_bytes` decompressed: the next poll opens the next one.

        With a budget it returns False when that time is over, so that a caller in the loop can let others run. What is
        not an error of kclient (KeyboardInterrupt) passes through; the task is then given up.
        """
        if budget_seconds is not None:
            return self._decode_within(budget_seconds)
        while self._goes_on:
            self._take(self._to_do[0], self._wanted)
        return True

    @property
    def _goes_on(self) -> bool:
        return bool(self._to_do) and self._wanted > 0

    def _decode_within(self, budget_seconds: float) -> bool:
        """In pieces that grow while they are quick: nobody knows how long a deserializer takes."""
        clock = asyncio.get_running_loop().time
        end = clock() + budget_seconds
        while self._goes_on:
            begun = clock()
            self._take(self._to_do[0], min(self._piece, self._wanted))
            now = clock()
            if now >= end:
                break
            if now - begun < budget_seconds / (2 * GROWTH):
                self._piece *= GROWTH
        return not self._goes_on

    def _take(self, fetch: CompletedFetch, count: int) -> None:
        start_offset = fetch.next_offset
        try:
            chunk = fetch.take(count, self._config, self._unpacked_bytes_left)
        except KclientError as exc:
            self.failure, self.failed = exc, fetch
            self._to_do.clear()
            return
        taken = len(chunk)
        if chunk.next_offset != start_offset:
            self.taken.append(DecodedChunk(fetch, start_offset, chunk))
            self._wanted -= taken
        if taken:  # else what was decompressed is free again
            self._unpacked_bytes_left -= chunk.unpacked_bytes
        if fetch.exhausted:
            self._to_do.popleft()
        elif not taken and self._unpacked_bytes_left <= 0:
            self._to_do.clear()


class RecordDelivery:
    """From the buffer to the user, at the position."""

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
        self._open: WeakSet[CompletedFetch] = WeakSet()  # with a batch that is decompressed and not used up
        self._fetched_again: dict[
            TopicPartition, tuple[int, int]
        ] = {}  # position_version and offset of a damaged batch

    # --- begin ---------------------------------------------------------------------------------------------------

    def begin(self, max_records: int) -> DecodeTask | None:
        """What a poll may decode now, None if there is nothing. Raises the error of a partition whose turn it is.

        Costs nothing for partitions without data. Every task goes to `finish`; one that did not (the poll was
        cancelled while decoding) is undone here, and its records are fetched again.
        """
        self._undo_task()
        if self._seen != self._positions.changed.count:
            self._seen = self._positions.changed.count
            self._buffer.unpark()
            self._forget_damaged()
        picked = self._pick(max_records)
        if not picked:
            return None
        if self._open:
            self._close_batches(picked)
        self._task = DecodeTask(picked, max_records, self._config)
        return self._task

    def _close_batches(self, picked: list[CompletedFetch]) -> None:
        """Close the batches of partitions that are not read now (paused, failing) where they take too much memory."""
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

    def _pick(self, max_records: int) -> list[CompletedFetch]:
        """Heads of the line for about so many records; one whose failure was told already only if there is no other."""
        picked: list[CompletedFetch] = []
        failing: list[CompletedFetch] = []
        expected = 0
        while expected < max_records and (fetch := self._buffer.take_ready()) is not None:
            if fetch.error_code and (picked or failing):
                self._buffer.put_back(fetch.tp, in_front=True)
                break
            if not self._may_deliver(fetch):
                continue
            if fetch.failing:
                failing.append(fetch)
            else:
                picked.append(fetch)
                expected += fetch.expected_records
        if not picked and failing:
            picked.append(failing.pop(0))
        for fetch in failing:
            self._buffer.put_back(fetch.tp, in_front=False)
        return picked

    def _may_deliver(self, fetch: CompletedFetch) -> bool:
        """Whether it can be handed out now; else it is dropped, parked, or its error is dealt with."""
        tp = fetch.tp
        state = self._positions.find(tp, fetch.position_version)
        if state is None or state.position is None:
            self._drop(tp, "the position was moved or the partition revoked meanwhile")
        elif state.position.offset != fetch.next_offset:
            self._drop(tp, f"it begins at {fetch.next_offset}, the position is {state.position.offset}")
        elif fetch.error_code:
            self._act_on_error(fetch)
        elif state.is_fetchable:
            return True
        else:
            self._buffer.park(tp)
        return False

    def _drop(self, tp: TopicPartition, why: str) -> None:
        logger.debug("Dropping what was fetched of %s: %s", tp, why)
        self._buffer.drop([tp])

    def _act_on_error(self, fetch: CompletedFetch) -> None:
        """Its turn has come: mark the partition out of range, or raise."""
        self._buffer.remove_head(fetch)
        self._buffer.put_back(fetch.tp, in_front=False)
        if fetch.error_code == OFFSET_OUT_OF_RANGE:
            logger.info("Offset %d of %s is out of range", fetch.fetch_offset, fetch.tp)
            self._positions.mark_out_of_range(fetch.tp)
            return
        topics = {fetch.tp.topic: None}
        if fetch.error_code == TOPIC_AUTHORIZATION_FAILED:
            topics |= self._other_refused_topics()
        raise fetch_error(fetch, list(topics))

    def _other_refused_topics(self) -> dict[str, None]:
        """Topics of all waiting authorization errors, which one exception tells at once."""
        topics: dict[str, None] = {}
        for tp in self._buffer.partitions():
            head = self._buffer.queue(tp)[0]
            if head.error_code == TOPIC_AUTHORIZATION_FAILED and self._positions.find(
                tp, head.position_version
            ):
                self._buffer.remove_head(head)
                topics[tp.topic] = None
        return topics

    # --- finish --------------------------------------------------------------------------------------------------

    def finish(self, task: DecodeTask) -> Records[Any, Any]:
        """The records of a decoded task, with their partitions' positions moved behind them.

        Empty but with `next_offsets()` where only control batches, aborted or compacted data were passed. Raises the
        failure that ended decoding if there is no record to return. Of a damaged batch only the second time.
        """
        self._task = None
        self._note_open(task.picked)
        delivered = [taken.chunk for taken in task.taken if self._deliver(taken)]
        failed = self._line_up(task)
        if (
            task.failure is not None
            and failed is not None
            and not any(map(len, delivered))
            and not self._fetches_again(failed, task.failure)
        ):
            self._buffer.set_failing(failed, task.failure.text)
            raise task.failure
        return Records(delivered, keeps_errors=self._config.on_decode_error == "keep")

    def _fetches_again(self, failed: CompletedFetch, failure: KclientError) -> bool:
        """Whether a damaged batch is fetched once more before it is told: a bit may flip on the way."""
        place = (failed.position_version, failed.next_offset)
        if isinstance(failure, TooManyHeadersError) or not isinstance(failure, CorruptBatchError):
            return False
        if self._fetched_again.get(failed.tp) == place:
            return False
        logger.warning("A batch is damaged and will be fetched once more: %s", failure.text)
        self._fetched_again[failed.tp] = place
        self._buffer.drop([failed.tp])
        self._buffer.changed.notify()  # others may have data, and the poll that got none must not wait for news
        return True

    def _forget_damaged(self) -> None:
        """Batches that nobody will come to any more: their partitions were moved or revoked."""
        again = self._fetched_again
        self._fetched_again = {tp: one for tp, one in again.items() if self._positions.find(tp, one[0])}

    def _deliver(self, taken: DecodedChunk) -> bool:
        """Move the position, if the partition is still where the records begin."""
        fetch, chunk = taken.fetch, taken.chunk
        if not self._is_at(fetch, taken.start_offset):
            self._drop(fetch.tp, "seek, pause or revocation came while it was decoded")
            return False
        fetch.failing = False
        self._fetched_again.pop(fetch.tp, None)
        self._positions.advance(fetch.tp, chunk.next_offset, chunk.leader_epoch)
        self._measure(fetch, chunk)
        count, old, new = len(chunk), taken.start_offset, chunk.next_offset
        logger.log(TRACE, "%s: handed out %d records, position %d → %d", fetch.tp, count, old, new)
        return True

    def _measure(self, fetch: CompletedFetch, chunk: Chunk) -> None:
        """Lag and lead go by the new position."""
        state, size_bytes, records = self._positions.state(fetch.tp), chunk.size_bytes, len(chunk)
        end = state.last_stable_offset if self._committed_only else state.high_watermark
        lag = None if end is None else max(0, end - chunk.next_offset)
        start = state.log_start_offset
        lead = None if start is None else max(0, chunk.next_offset - start)
        self._metrics.handed_out(fetch.tp, size_bytes, records, lag, lead)
        if fetch.frame.sizes is not None:
            fetch.frame.sizes.add(fetch.tp.topic, size_bytes, records)

    def _is_at(self, fetch: CompletedFetch, offset: int) -> bool:
        state: PartitionState | None = self._positions.find(fetch.tp, fetch.position_version)
        return (
            state is not None
            and state.is_fetchable
            and state.position is not None
            and state.position.offset == offset
        )

    def _line_up(self, task: DecodeTask) -> CompletedFetch | None:
        """Used-up entries go; who has more, or failed, is first at the next poll. Returns who failed, if it counts."""
        failed = None
        for fetch in task.picked:
            if fetch.exhausted:
                self._buffer.remove_head(fetch)
                self._buffer.put_back(fetch.tp, in_front=False)
        for fetch in reversed(task.picked):
            if not fetch.exhausted and fetch in self._buffer.queue(fetch.tp):
                self._buffer.put_back(fetch.tp, in_front=True)
                if fetch is task.failed and self._is_at(fetch, fetch.next_offset):
                    failed = fetch
        return failed

    def _undo_task(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            self._buffer.drop(dict.fromkeys(taken.fetch.tp for taken in task.taken))
            for fetch in reversed(task.picked):
                self._buffer.put_back(fetch.tp, in_front=True)


def fetch_error(fetch: CompletedFetch, topics: Sequence[str]) -> KclientError:
    """The error of a partition that a poll raises."""
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
