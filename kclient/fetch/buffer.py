"""What was fetched and not handed out yet: per partition a short queue, over all one count of bytes. Pure.

A queue stands in line in `ready` until somebody takes it out to hand out records, and is put back in front (more of it)
or behind all others (others first). Queues that may not be handed out now, paused ones say, are parked: they keep their
data and cost a poll nothing.

Bytes count per frame: a frame stays in memory, and counts, until the last partition that came with it is drained.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence

from kclient.change_signal import ChangeSignal
from kclient.fetch.completed import CompletedFetch
from kclient.types import TopicPartition


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
