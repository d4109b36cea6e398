"""What was fetched and not handed out yet: per partition a short queue, over all one count of bytes. Pure.

A queue stands in line in `ready` until somebody takes it out to hand out records, and is put back in front (more of it)
or behind all others (others first). Queues that may not be handed out now, paused ones say, are parked: they keep their
data and cost a poll nothing.

Bytes count per frame: a frame stays in memory, and counts, until the last partition that came with it is drained.
"""

from __future__ import annotations

import struct
import sys
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import attrs

from kclient.change_signal import ChangeSignal
from kclient.config import Config
from kclient.errors import CorruptDataError
from kclient.generated.fetch_response import AbortedTransaction
from kclient.log import get_logger
from kclient.metrics.fetching import AnswerSizes
from kclient.records.batch import MAGIC_POSITION, MIN_MESSAGE_BYTES, SIZE_PREFIX_BYTES, read_batches
from kclient.records.reader import Chunk, PartitionReader
from kclient.records.undecodable import undecodable
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.positions.table import Positions

logger = get_logger("kclient.fetch")

_LENGTH = struct.Struct(">i")
_LENGTH_POSITION = 8
NOTHING = memoryview(b"")


@attrs.define(eq=False)
class ResponseMemory:
    """One answer in memory. It is freed as a whole, when the last partition that came with it was drained."""

    size_bytes: int
    sizes: AnswerSizes | None = None
    users: int = 0


@attrs.define(eq=False)
class CompletedFetch:
    """An entry of the buffer. `position_version` is what the partition was when it was asked for.

    `failing` is set where the user was told of a broken batch or a failed deserializer, and has to act.
    """

    tp: TopicPartition
    position_version: int
    fetch_offset: int
    frame: ResponseMemory
    data: memoryview = NOTHING
    end_offset: int | None = None
    aborted_transactions: Sequence[AbortedTransaction] | None = None
    error_code: int = 0
    failing: bool = False
    failure: str = ""  # what the user was told, while failing
    _reader: PartitionReader | None = None

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
        """About how many records are left; compaction and transactions may leave fewer."""
        return 1 if self.end_offset is None else max(1, self.end_offset - self.next_offset)

    @property
    def open_bytes(self) -> int:
        """What a decompressed batch that is not used up takes in memory."""
        return 0 if self._reader is None else self._reader.open_bytes

    def close_batch(self) -> None:
        """Free that memory. The next `take` decompresses the batch again, and goes on where this one stopped."""
        self.fetch_offset, self._reader = self.next_offset, None

    def take(self, max_records: int, config: Config, max_unpacked_bytes: int = sys.maxsize) -> Chunk:
        """The next records. Runs where decoding runs; raises what PartitionReader.take raises."""
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
    """The offset behind the last whole batch. None where only decoding can tell (formats 0 and 1, broken bytes)."""
    last, position, size = None, 0, len(data)
    while size - position > MAGIC_POSITION:
        length = _LENGTH.unpack_from(data, position + _LENGTH_POSITION)[0]
        after = position + SIZE_PREFIX_BYTES + length
        if length < MIN_MESSAGE_BYTES or after > size:
            break
        last, position = position, after
    if last is None or data[last + MAGIC_POSITION] != 2:
        return None
    try:
        return next(read_batches(data[last:position])).next_offset
    except CorruptDataError:
        return None  # the poll that comes to these bytes tells


class FetchBuffer:
    """`changed` tells that data or errors arrived, `room` that space for the next fetch came free."""

    def __init__(self) -> None:
        self.changed = ChangeSignal()
        self.room = ChangeSignal()
        self.bytes_used = 0
        self._queues: dict[TopicPartition, deque[CompletedFetch]] = {}
        self._ready: OrderedDict[TopicPartition, None] = OrderedDict()
        self._parked: dict[TopicPartition, None] = {}
        self._dirty: dict[TopicPartition, None] = {}

    def __len__(self) -> int:
        """How many partitions have something buffered."""
        return len(self._queues)

    def partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions that have something buffered."""
        return tuple(self._queues)

    # --- in --------------------------------------------------------------------------------------

    def add(self, fetches: Sequence[CompletedFetch]) -> None:
        """Append what one answer brought, each to its partition."""
        for fetch in fetches:
            if not fetch.frame.users:
                self.bytes_used += fetch.frame.size_bytes
            fetch.frame.users += 1
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
        """The head of the partition that is first in line, which leaves the line until it is put back or parked."""
        while self._ready:
            queue = self._queues.get(self._ready.popitem(last=False)[0])
            if queue:
                return queue[0]
        return None

    def put_back(self, tp: TopicPartition, *, in_front: bool) -> None:
        """Let a partition stand in line again, if it still has something."""
        self.mark_dirty(tp)
        if tp in self._queues:
            self._ready[tp] = None
            self._ready.move_to_end(tp, last=not in_front)

    def set_failing(self, fetch: CompletedFetch, failure: str = "") -> None:
        """The user was told that this head cannot be drained: it waits behind all others, and nobody waits for it."""
        fetch.failing, fetch.failure = True, failure
        self.put_back(fetch.tp, in_front=False)
        self.room.notify()

    def park(self, tp: TopicPartition) -> None:
        """Keep a partition out of the line until `unpark`."""
        self._parked[tp] = None

    def unpark(self) -> None:
        """Let all parked partitions stand in line again."""
        parked, self._parked = self._parked, {}
        for tp in parked:
            self.put_back(tp, in_front=False)

    def remove_head(self, fetch: CompletedFetch) -> None:
        """Forget an entry that was used up."""
        queue = self._queues.get(fetch.tp)
        if queue and queue[0] is fetch:
            queue.popleft()
            self.mark_dirty(fetch.tp)
            if not queue:
                del self._queues[fetch.tp]
            self._release([fetch])

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget everything of these partitions."""
        for tp in partitions:
            self.mark_dirty(tp)
            self._parked.pop(tp, None)
            self._release(self._queues.pop(tp, ()))

    def retain(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget everything of all other partitions."""
        kept = set(partitions)
        self.drop([tp for tp in self._queues if tp not in kept])

    # --- what is next to be fetched of it may have changed -----------------------------------------

    def mark_dirty(self, tp: TopicPartition) -> None:
        """Have the next plan look at this partition again."""
        self._dirty[tp] = None

    def take_dirty(self) -> Iterable[TopicPartition]:
        """What was dirty since the last call, each once."""
        dirty, self._dirty = self._dirty, {}
        return dirty

    # --- questions -------------------------------------------------------------------------------

    def queue(self, tp: TopicPartition) -> Sequence[CompletedFetch]:
        """What is buffered of a partition, oldest first."""
        return self._queues.get(tp, ())

    def _release(self, fetches: Iterable[CompletedFetch]) -> None:
        for fetch in fetches:
            fetch.frame.users -= 1
            if not fetch.frame.users:
                self.bytes_used -= fetch.frame.size_bytes
                if fetch.frame.sizes is not None:
                    fetch.frame.sizes.done()
        self.room.notify()


SMALLEST_FETCH_BYTES = 65_536


class MemoryBudget:
    """`buffer_memory_bytes`, shared by all nodes."""

    def __init__(self, buffer: FetchBuffer, config: Config) -> None:
        self._buffer = buffer
        self._config = config
        self.reserved_bytes = 0

    def grant(self, partitions: int, nodes: int) -> int | None:
        """How many bytes a request for so many partitions may ask for, with so many nodes in use; None: not now."""
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
        """An answer of up to so many bytes is on its way."""
        self.reserved_bytes += count

    def release(self, count: int) -> None:
        """It came, or will not come."""
        self.reserved_bytes -= count

    def make_room(self, positions: Positions) -> None:
        """What waits for the user, paused or broken, must not starve others: if nothing else is there, drop some."""
        buffer = self._buffer
        fetchable = {tp: positions.is_fetchable(tp) for tp in buffer.partitions()}
        if any(may and not buffer.queue(tp)[0].failing for tp, may in fetchable.items()):
            return
        if fetchable:
            first = min(fetchable, key=fetchable.__getitem__)  # the paused before the broken
            logger.debug(
                "The buffer is full of data that nobody may have now; %s will be fetched again", first
            )
            buffer.drop([first])
