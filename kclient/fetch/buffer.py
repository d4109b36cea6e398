"""Fetched data that polls have not returned yet: a short queue per partition, one memory budget for all. Pure.

    ready     partitions with data, in the order in which polls take them. A poll takes one out and puts it back: at the
              front if it has more records for the next poll, at the end if others are first
    parked    partitions that may not be returned now, for example paused ones; they keep their data, and polls do not
              look at them until positions change

Memory counts per response, not per partition: all partitions of a response share its bytes, which are freed when the
last of them is used up. For example a response of 100 kB with 90 kB of a-0 and 10 kB of a-1:

    a-0 used up     100 kB still count: the memoryview of a-1 keeps the whole response alive
    a-1 used up     0
"""

from __future__ import annotations

import struct
import sys
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from kclient.change_signal import ChangeSignal
from kclient.config import Config
from kclient.errors import CorruptDataError
from kclient.generated.fetch_response import AbortedTransaction
from kclient.log import get_logger
from kclient.metrics.fetching import ResponseSizes
from kclient.records.batch import MAGIC_POSITION, MIN_MESSAGE_BYTES, SIZE_PREFIX_BYTES, batch_headers
from kclient.records.reader import Chunk, PartitionReader
from kclient.records.undecodable import undecodable
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.positions.table import Positions

logger: Final = get_logger("kclient.fetch")

_LENGTH = struct.Struct(">i")
_LENGTH_POSITION = 8
NOTHING = memoryview(b"")


@attrs.define(eq=False)
class ResponseMemory:
    """Memory of one response. `users`: buffered entries that share it; it is freed with the last one."""

    size_bytes: int
    sizes: ResponseSizes | None = None
    users: int = 0


@attrs.define(eq=False)
class CompletedFetch:
    """What one response contained for one partition: an entry of the buffer, bytes or an error code.

    `position_version` is the version of the position when the request was built. `end_offset` is the offset after the
    last whole batch, read from its header, so that the next fetch can begin there before anything is decoded.
    `blocking_error` is the text of an error that a poll raised, of a bad batch or a deserializer, until the user seeks.
    """

    tp: TopicPartition
    position_version: int
    fetch_offset: int
    memory: ResponseMemory
    data: memoryview = NOTHING
    end_offset: int | None = None
    aborted_transactions: Sequence[AbortedTransaction] | None = None
    error_code: int = 0
    blocking_error: str | None = None
    _reader: PartitionReader | None = None

    @property
    def is_blocked(self) -> bool:
        """Whether a poll raised an error of this entry, so that the user has to act."""
        return self.blocking_error is not None

    @property
    def next_offset(self) -> int:
        """The offset of what `take` returns next."""
        return self.fetch_offset if self._reader is None else self._reader.next_offset

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left to take."""
        return self._reader is not None and self._reader.exhausted

    @property
    def expected_records(self) -> int:
        """About how many records are left; fewer after compaction or with transactions."""
        return 1 if self.end_offset is None else max(1, self.end_offset - self.next_offset)

    @property
    def open_bytes(self) -> int:
        """Bytes of memory of a decompressed batch that is not used up."""
        return 0 if self._reader is None else self._reader.open_bytes

    def close_batch(self) -> None:
        """Free that memory. The next `take` decompresses the batch again, and continues where this one stopped."""
        self.fetch_offset, self._reader = self.next_offset, None

    def take(self, max_records: int, config: Config, max_unpacked_bytes: int = sys.maxsize) -> Chunk:
        """Return the next records. Raise what PartitionReader.take raises."""
        if self._reader is None:
            self._reader = PartitionReader(
                *self.tp,
                self.data,
                self.fetch_offset,
                isolation_level=config.isolation,
                aborted_transactions=self.aborted_transactions,
                check_crcs=config.check_crcs,
                max_decompressed_batch_bytes=config.max_decompressed_batch_bytes,
                max_headers_per_record=config.max_headers_per_record,
                key_deserializer=config.key_deserializer,
                value_deserializer=config.value_deserializer,
                undecodable=undecodable(config.on_decode_error, config.dead_letters),
            )
        return self._reader.take(max_records, max_unpacked_bytes)


def end_of(data: memoryview) -> int | None:
    """Return the offset after the last whole batch, None if only decoding shows it (formats 0 and 1, bad bytes)."""
    last, position, size = None, 0, len(data)
    while size - position > MAGIC_POSITION:
        length = _LENGTH.unpack_from(data, position + _LENGTH_POSITION)[0]
        after = position + SIZE_PREFIX_BYTES + length
        if length < MIN_MESSAGE_BYTES or after > size:
            break
        last, position = position, after
    # Only format 2 has its last offset in the header; compressed messages of 0 and 1 have it inside.
    if last is None or data[last + MAGIC_POSITION] != 2:
        return None
    try:
        return next(batch_headers(data[last:position])).next_offset
    except CorruptDataError:
        return None  # the poll that reaches these bytes raises the error


class FetchBuffer:
    """Queues of all partitions. `changed` signals new data or errors, `space_freed` that a fetch may fit again."""

    def __init__(self) -> None:
        self.changed: Final = ChangeSignal()
        self.space_freed: Final = ChangeSignal()
        self.bytes_used: int = 0
        self._queues: dict[TopicPartition, deque[CompletedFetch]] = {}
        self._ready: OrderedDict[TopicPartition, None] = OrderedDict()
        self._parked: dict[TopicPartition, None] = {}
        self._dirty: dict[TopicPartition, None] = {}

    def __len__(self) -> int:
        """Return how many partitions have something buffered."""
        return len(self._queues)

    def partitions(self) -> tuple[TopicPartition, ...]:
        """Return the partitions that have something buffered."""
        return tuple(self._queues)

    # --- in --------------------------------------------------------------------------------------

    def add(self, fetches: Sequence[CompletedFetch]) -> None:
        """Append the entries of one response to the queues of their partitions."""
        for fetch in fetches:
            # The partitions of a response share its memory, which counts once, until the last of them is used up.
            if not fetch.memory.users:
                self.bytes_used += fetch.memory.size_bytes
            fetch.memory.users += 1
            self.mark_dirty(fetch.tp)
            queue = self._queues.get(fetch.tp)
            if queue is None:
                self._queues[fetch.tp] = deque([fetch])
                self._ready[fetch.tp] = None
            else:
                queue.append(fetch)
        if fetches:
            self.changed.notify()

    # --- out -------------------------------------------------------------------------------------

    def take_ready(self) -> CompletedFetch | None:
        """Take the first partition out of the ready queue and return its first entry."""
        while self._ready:
            # A partition that was dropped may still stand in the ready queue.
            queue = self._queues.get(self._ready.popitem(last=False)[0])
            if queue:
                return queue[0]
        return None

    def put_back(self, tp: TopicPartition, *, in_front: bool) -> None:
        """Return a partition to the ready queue if it still has something."""
        self.mark_dirty(tp)
        if tp in self._queues:
            self._ready[tp] = None
            self._ready.move_to_end(tp, last=not in_front)

    def block(self, fetch: CompletedFetch, error: str) -> None:
        """Move an entry whose error was raised to the end. Requests to its node need not wait for it any more."""
        fetch.blocking_error = error
        self.put_back(fetch.tp, in_front=False)
        self.space_freed.notify()

    def park(self, tp: TopicPartition) -> None:
        """Keep a partition out of the ready queue until `unpark`."""
        self._parked[tp] = None

    def unpark(self) -> None:
        """Return all parked partitions to the end of the ready queue."""
        parked, self._parked = self._parked, {}
        for tp in parked:
            self.put_back(tp, in_front=False)

    def remove_head(self, fetch: CompletedFetch) -> None:
        """Remove an entry that was used up."""
        queue = self._queues.get(fetch.tp)
        # A seek may have dropped the entry since it was picked.
        if queue and queue[0] is fetch:
            queue.popleft()
            self.mark_dirty(fetch.tp)
            if not queue:
                del self._queues[fetch.tp]
            self._release([fetch])

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Remove everything of these partitions."""
        for tp in partitions:
            self.mark_dirty(tp)
            self._parked.pop(tp, None)
            self._release(self._queues.pop(tp, ()))

    def retain(self, partitions: Iterable[TopicPartition]) -> None:
        """Remove everything of all other partitions."""
        kept = set(partitions)
        self.drop([tp for tp in self._queues if tp not in kept])

    # --- what is next to be fetched of it may have changed -----------------------------------------

    def mark_dirty(self, tp: TopicPartition) -> None:
        """Have the next fetch of this partition planned again."""
        self._dirty[tp] = None

    def take_dirty(self) -> Iterable[TopicPartition]:
        """Return the partitions marked dirty since the last call."""
        dirty, self._dirty = self._dirty, {}
        return dirty

    # --- questions -------------------------------------------------------------------------------

    def queue(self, tp: TopicPartition) -> Sequence[CompletedFetch]:
        """Return what is buffered of a partition, oldest first."""
        return self._queues.get(tp, ())

    def _release(self, fetches: Iterable[CompletedFetch]) -> None:
        for fetch in fetches:
            fetch.memory.users -= 1
            if not fetch.memory.users:
                self.bytes_used -= fetch.memory.size_bytes
                if fetch.memory.sizes is not None:
                    fetch.memory.sizes.done()
        self.space_freed.notify()


SMALLEST_FETCH_BYTES = 65_536


class MemoryBudget:
    """Divide `buffer_memory_bytes` between buffered responses and requests in flight.

    A request reserves what its response may contain, and passes it to the broker as max_bytes. The broker may exceed it
    by one batch (KIP-74), and so may the buffer: a record larger than the whole budget passes when nothing else is
    buffered or in flight. For example with 64 MB for 4 nodes, 10 MB buffered, 20 MB reserved, fetch_max_bytes 50 MB:

        a node's share 64 / 4 = 16 MB     available 64 − 10 − 20 = 34 MB     granted 16 MB
        with 60 MB buffered instead       available < 64 kB                  None: wait for polls
    """

    def __init__(self, buffer: FetchBuffer, config: Config) -> None:
        self._buffer = buffer
        self._config = config
        self.reserved_bytes: int = 0

    def grant(self, partitions: int, nodes: int) -> int | None:
        """Return max_bytes of a request for so many partitions while so many nodes are used; None: not now."""
        config = self._config
        most = min(config.fetch_max_bytes, partitions * config.max_partition_fetch_bytes)
        share = max(1, config.buffer_memory_bytes // max(1, nodes))
        wanted = max(1, min(most, share))
        available = config.buffer_memory_bytes - self._buffer.bytes_used - self.reserved_bytes
        if not self._buffer.bytes_used and not self.reserved_bytes:
            return wanted
        if available < min(wanted, SMALLEST_FETCH_BYTES):
            return None
        return min(wanted, available)

    def reserve(self, count: int) -> None:
        """Reserve memory for a response of up to so many bytes."""
        self.reserved_bytes += count

    def release(self, count: int) -> None:
        """Release it: the response came, or will not come."""
        self.reserved_bytes -= count

    def make_space(self, positions: Positions) -> None:
        """Drop one partition if everything buffered is paused or blocked, so that this does not starve the others."""
        buffer = self._buffer
        fetchable = {tp: positions.is_fetchable(tp) for tp in buffer.partitions()}
        if any(may and not buffer.queue(tp)[0].is_blocked for tp, may in fetchable.items()):
            return
        if fetchable:
            first = min(fetchable, key=fetchable.__getitem__)  # False first: paused before blocked
            logger.debug(
                "The buffer is full of paused and blocked partitions; %s will be fetched again", first
            )
            buffer.drop([first])
